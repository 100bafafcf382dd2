package link

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"dwnet/hw"
)

// StackClock makes a port's clock the clock of a network stack (stack.Options.Clock), so that TCP's timers and the wire
// run on the same time also when a simulated board is slowed down or stepped.
func StackClock(c hw.Clock) tcpip.Clock {
	if r, ok := c.(interface{ IsReal() bool }); ok && r.IsReal() {
		return tcpip.NewStdClock() // the same time, cheaper to read
	}
	return &stackClock{clock: c, origin: c.Now()}
}

type stackClock struct {
	clock  hw.Clock
	origin time.Time
}

func (c *stackClock) Now() time.Time { return c.clock.Now() }

func (c *stackClock) NowMonotonic() tcpip.MonotonicTime {
	return tcpip.MonotonicTime{}.Add(c.clock.Now().Sub(c.origin))
}

func (c *stackClock) AfterFunc(d time.Duration, f func()) tcpip.Timer {
	return c.clock.AfterFunc(d, f)
}
