//go:build !linux

package sim

import (
	"time"

	"dwnet/hw"
)

// newPreciseWaiter has nothing better than the runtime's timers here.
func newPreciseWaiter(c *realClock) waiter { return newChanWaiter(goTimerClock{c}) }

func preciseSleep(d time.Duration) { time.Sleep(d) }

// goTimerClock is a realClock whose timers are all the runtime's.
type goTimerClock struct{ *realClock }

func (c goTimerClock) AfterFunc(d time.Duration, f func()) hw.Timer {
	return goTimer{time.AfterFunc(d*time.Duration(c.scale), f), time.Duration(c.scale)}
}

type goTimer struct {
	t     *time.Timer
	scale time.Duration
}

func (t goTimer) Stop() bool            { return t.t.Stop() }
func (t goTimer) Reset(d time.Duration) { t.t.Reset(d * t.scale) }
