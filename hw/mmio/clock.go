package mmio

import (
	"time"

	"dwnet/hw"
)

// Clock is the machine's clock, the only one that hardware has. Short sleeps and timers keep some 20 µs on Linux, where Go's
// own may be a millisecond late.
func Clock() hw.Clock { return theClock }

var theClock = &realClock{}

// realClock is hw.Clock on the machine's monotonic clock.
type realClock struct{ short shortTimers }

// IsReal tells layers above that they may read the time from the machine directly.
func (*realClock) IsReal() bool { return true }

// Now implements hw.Clock.
func (*realClock) Now() time.Time { return time.Now() }

// Sleep implements hw.Clock.
func (*realClock) Sleep(d time.Duration) {
	switch {
	case d <= 0:
	case d < preciseBelow:
		preciseSleep(d)
	default:
		time.Sleep(d)
	}
}

// AfterFunc implements hw.Clock.
func (c *realClock) AfterFunc(d time.Duration, f func()) hw.Timer {
	t := &clockTimer{c: c, f: f, index: -1}
	t.Reset(d)
	return t
}
