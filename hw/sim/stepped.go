package sim

import (
	"container/heap"
	"sync"
	"time"

	"dwnet/hw"
)

// SteppedClock is a clock that stands still until Advance is called. The simulator's own work (wires, DMA engines) is
// finished for each moment before Advance goes on to the next, so what a board does under it is reproducible. What other
// goroutines do when the clock wakes them is up to the Go scheduler.
type SteppedClock struct {
	start time.Time

	mu     sync.Mutex
	cond   sync.Cond // one of the counts below changed
	now    int64
	events stepHeap
	seq    uint64
	busy   int  // simulator goroutines that have not finished the present moment
	calls  int  // functions of timers that have not returned
	napped int  // how many of these need not be waited for, since somebody fell asleep in the meantime
	moving bool // an Advance is under way
}

// NewSteppedClock makes a clock that stands at the given time.
func NewSteppedClock(start time.Time) *SteppedClock {
	c := &SteppedClock{start: start}
	c.cond.L = &c.mu
	return c
}

// Now implements hw.Clock.
func (c *SteppedClock) Now() time.Time { return c.wall(c.nanos()) }

func (c *SteppedClock) nanos() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *SteppedClock) wall(n int64) time.Time { return c.start.Add(time.Duration(n)) }

// Sleep implements hw.Clock: it returns when Advance has moved the clock far enough.
func (c *SteppedClock) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	done := make(chan struct{})
	c.mu.Lock()
	c.push(&stepEvent{fire: func() { close(done) }}, d)
	c.napped = c.calls
	c.cond.Broadcast()
	c.mu.Unlock()
	<-done
}

// AfterFunc implements hw.Clock. Advance calls f in a goroutine of its own and waits until it returns or sleeps on this
// clock.
func (c *SteppedClock) AfterFunc(d time.Duration, f func()) hw.Timer {
	t := &stepTimer{c: c}
	t.ev.index = -1
	t.ev.fire = func() {
		c.calls++
		go func() {
			defer c.returned()
			f()
		}()
	}
	c.mu.Lock()
	c.push(&t.ev, d)
	c.mu.Unlock()
	return t
}

// Advance moves the clock by d, running whatever falls due on the way in the order of its time. Calls of it from several
// goroutines take turns.
func (c *SteppedClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.moving {
		c.cond.Wait()
	}
	c.moving = true
	target := c.now + int64(max(d, 0))
	for {
		for c.busy > 0 || c.calls > c.napped {
			c.cond.Wait()
		}
		if len(c.events) == 0 || c.events[0].when > target {
			break
		}
		ev := heap.Pop(&c.events).(*stepEvent)
		c.now = max(c.now, ev.when)
		ev.fire()
	}
	c.now = max(c.now, target)
	c.moving = false
	c.cond.Broadcast()
}

// Next tells how far ahead the next event is, and whether there is one.
func (c *SteppedClock) Next() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return 0, false
	}
	return time.Duration(max(c.events[0].when-c.now, 0)), true
}

func (c *SteppedClock) hold() {
	c.mu.Lock()
	c.busy++
	c.mu.Unlock()
}

func (c *SteppedClock) release() {
	c.mu.Lock()
	c.busy--
	c.cond.Broadcast()
	c.mu.Unlock()
}

// returned is the end of a timer's function.
func (c *SteppedClock) returned() {
	c.mu.Lock()
	c.calls--
	c.napped = min(c.napped, c.calls)
	c.cond.Broadcast()
	c.mu.Unlock()
}

func (c *SteppedClock) push(e *stepEvent, d time.Duration) {
	e.when = c.now + int64(max(d, 0))
	c.seq++
	e.seq = c.seq
	heap.Push(&c.events, e)
}

func (c *SteppedClock) remove(e *stepEvent) bool {
	if e.index < 0 {
		return false
	}
	heap.Remove(&c.events, e.index)
	return true
}

func (c *SteppedClock) newWaiter(bool) waiter {
	w := &stepWaiter{c: c}
	w.cond.L = &c.mu
	w.ev.index = -1
	w.ev.fire = w.wake
	return w
}

type stepTimer struct {
	c  *SteppedClock
	ev stepEvent
}

// Stop implements hw.Timer.
func (t *stepTimer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.remove(&t.ev)
}

// Reset implements hw.Timer.
func (t *stepTimer) Reset(d time.Duration) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.remove(&t.ev)
	t.c.push(&t.ev, d)
}

// stepWaiter is the waiter of a simulator goroutine. From the poke or the deadline on until it waits again, it holds up
// Advance.
type stepWaiter struct {
	c      *SteppedClock
	cond   sync.Cond
	ev     stepEvent
	asleep bool
	poked  bool
	left   bool // after leave
	counts bool // holds up Advance
}

func (w *stepWaiter) count(on bool) {
	if w.counts == on {
		return
	}
	w.counts = on
	if on {
		w.c.busy++
	} else {
		w.c.busy--
		w.c.cond.Broadcast()
	}
}

func (w *stepWaiter) enter() {
	w.c.mu.Lock()
	w.count(true)
	w.c.mu.Unlock()
}

func (w *stepWaiter) leave() {
	w.c.mu.Lock()
	w.left = true
	w.count(false)
	w.c.mu.Unlock()
}

func (w *stepWaiter) wait(deadline int64) {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.poked {
		w.poked = false
		return
	}
	if deadline <= c.now {
		return
	}
	if deadline != never {
		c.push(&w.ev, time.Duration(deadline-c.now))
	}
	w.asleep = true
	w.count(false)
	for w.asleep {
		w.cond.Wait()
	}
	c.remove(&w.ev)
	w.poked = false
}

// wake ends the wait; c.mu is held.
func (w *stepWaiter) wake() {
	if w.asleep {
		w.asleep = false
		w.count(true)
		w.cond.Signal()
	}
}

func (w *stepWaiter) poke() {
	w.c.mu.Lock()
	w.poked = true
	w.count(!w.left)
	w.wake()
	w.c.mu.Unlock()
}

// stepEvent is something that happens at a time; fire is called with the clock locked.
type stepEvent struct {
	when  int64
	seq   uint64
	fire  func()
	index int
}

type stepHeap []*stepEvent

func (h stepHeap) Len() int { return len(h) }
func (h stepHeap) Less(i, j int) bool {
	if h[i].when != h[j].when {
		return h[i].when < h[j].when
	}
	return h[i].seq < h[j].seq
}
func (h stepHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *stepHeap) Push(x any) {
	e := x.(*stepEvent)
	e.index = len(*h)
	*h = append(*h, e)
}
func (h *stepHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	e.index = -1
	return e
}
