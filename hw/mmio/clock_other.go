//go:build !linux

package mmio

import "time"

// Elsewhere there is no hardware to drive, and Go's timers will do.
type shortTimers struct{}

const preciseBelow = 0

func preciseSleep(d time.Duration) { time.Sleep(d) }

type clockTimer struct {
	c     *realClock
	f     func()
	t     *time.Timer
	index int
}

// Stop implements hw.Timer.
func (t *clockTimer) Stop() bool { return t.t.Stop() }

// Reset implements hw.Timer.
func (t *clockTimer) Reset(d time.Duration) {
	if t.t == nil {
		t.t = time.AfterFunc(d, t.f)
		return
	}
	t.t.Reset(d)
}
