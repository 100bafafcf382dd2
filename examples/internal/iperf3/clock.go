package iperf3

import "time"

// Clock is the time that tests are measured in. Durations, pacing and time limits all come from it.
type Clock interface {
	// Now never goes back.
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once at least d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a pending call of [Clock.AfterFunc].
type Timer interface {
	// Stop cancels the call and reports whether it did so before the call started.
	Stop() bool
	// Reset cancels the call and schedules it anew, d from now.
	Reset(d time.Duration)
}

// SystemClock is the machine's clock.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

type systemTimer struct{ t *time.Timer }

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) Timer {
	return systemTimer{time.AfterFunc(d, f)}
}

func (t systemTimer) Stop() bool            { return t.t.Stop() }
func (t systemTimer) Reset(d time.Duration) { t.t.Reset(d) }

// alarm turns a clock's timer into a channel. A wake-up may be stale: whoever receives from C looks at the clock again.
type alarm struct {
	C     chan struct{}
	clock Clock
	timer Timer
}

func newAlarm(c Clock) *alarm { return &alarm{C: make(chan struct{}, 1), clock: c} }

// Set makes C readable d from now. One goroutine uses an alarm.
func (a *alarm) Set(d time.Duration) {
	if a.timer == nil {
		a.timer = a.clock.AfterFunc(d, func() {
			select {
			case a.C <- struct{}{}:
			default:
			}
		})
		return
	}
	a.timer.Reset(d)
}

// Stop cancels the alarm.
func (a *alarm) Stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// past is a deadline that has passed on any clock: setting it interrupts a blocked Read or Write.
var past = time.Unix(1, 0)

// hangGuard bounds, in real time, calls that the clock in use may never interrupt because nobody steps it any more.
const hangGuard = 30 * time.Second
