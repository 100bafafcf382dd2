package mmio

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// An earlier timer does not wait for a later one whose goroutine sleeps already.
func TestEarlierTimerOvertakes(t *testing.T) {
	asleep := func() bool {
		s := &theClock.short
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.serving != nil && s.serving.state.Load() == wakerAsleep
	}
	within(t, "an earlier timer before a later one", func() {
		for overtook := false; !overtook; {
			var late atomic.Bool
			later := Clock().AfterFunc(preciseBelow-time.Millisecond, func() { late.Store(true) })
			for !asleep() && !late.Load() {
				runtime.Gosched()
			}
			fired := make(chan bool)
			Clock().AfterFunc(100*time.Microsecond, func() { fired <- late.Load() || !later.Stop() })
			overtook = !<-fired // a stall of the machine may spoil a round
		}
	})
}
