package sim

import (
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// States of a waiter's word.
const (
	waiterBusy   = 0 // the goroutine runs
	waiterPoked  = 1 // it will not block the next time
	waiterAsleep = 2 // it blocks and must be woken
)

// chanWaiter waits on a channel and a timer of its clock. Its deadlines are as exact as that timer.
type chanWaiter struct {
	c     simClock
	state atomic.Uint32
	ch    chan struct{}
	timer hw.Timer
}

func newChanWaiter(c simClock) *chanWaiter {
	return &chanWaiter{c: c, ch: make(chan struct{}, 1)}
}

func (w *chanWaiter) enter() {}

func (w *chanWaiter) leave() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *chanWaiter) wait(deadline int64) {
	if !w.state.CompareAndSwap(waiterBusy, waiterAsleep) {
		w.state.Store(waiterBusy)
		return
	}
	if deadline != never {
		d := deadline - w.c.nanos()
		if d <= 0 {
			w.awake()
			return
		}
		if w.timer == nil {
			w.timer = w.c.AfterFunc(time.Duration(d), w.poke)
		} else {
			w.timer.Reset(time.Duration(d))
		}
	}
	<-w.ch
	if deadline != never {
		w.timer.Stop()
	}
	w.state.Store(waiterBusy)
}

// awake gives up going to sleep; a poke that saw the goroutine asleep has sent or will send its token.
func (w *chanWaiter) awake() {
	if w.state.Swap(waiterBusy) == waiterPoked {
		<-w.ch
	}
}

func (w *chanWaiter) poke() {
	if w.state.Swap(waiterPoked) == waiterAsleep {
		w.ch <- struct{}{} // has room: there is one token for each time that the goroutine fell asleep
	}
}
