package sim

import (
	"container/heap"
	"sync"
	"time"

	"dwnet/hw"
)

// never is a time that does not come.
const never int64 = 1<<63 - 1

// simClock is a clock that the simulator can count nanoseconds on and wait for.
type simClock interface {
	hw.Clock
	// nanos is the time since the clock's own zero.
	nanos() int64
	// wall is the time of day at a nanosecond count.
	wall(nanos int64) time.Time
	// newWaiter makes something that one goroutine blocks on. A precise one keeps microseconds, at the price of an
	// operating system thread of its own.
	newWaiter(precise bool) waiter
}

// waiter lets one goroutine wait for a time or for a poke, whichever comes first.
type waiter interface {
	// enter and leave are called by the waiting goroutine before its first and after its last wait.
	enter()
	leave()
	// wait returns at the deadline or after a poke; a poke since the last wait makes it return at once. It may return early.
	wait(deadline int64)
	// poke never blocks.
	poke()
}

// holder is a clock that can be kept from going on while something is still to be done at the present moment.
type holder interface {
	hold()
	release()
}

func hold(c simClock) {
	if h, ok := c.(holder); ok {
		h.hold()
	}
}

func release(c simClock) {
	if h, ok := c.(holder); ok {
		h.release()
	}
}

// asSimClock makes any clock usable by the simulator.
func asSimClock(c hw.Clock) simClock {
	if c == nil {
		return theRealClock
	}
	if s, ok := c.(simClock); ok {
		return s
	}
	return foreignClock{c}
}

// preciseBelow is how far ahead a time must lie for the Go runtime's timers to be good enough: they may be a millisecond
// late on an idle process.
const preciseBelow = 5 * time.Millisecond

// realClock is the machine's monotonic clock, or one that runs slower by a whole factor.
type realClock struct {
	base  time.Time
	scale int64

	mu      sync.Mutex
	timers  timerHeap
	seq     uint64
	running bool
	w       waiter
}

var theRealClock = newRealClock(1)

// IsReal reports whether this is the machine's own time, so that a network stack may read that more cheaply.
func (c *realClock) IsReal() bool { return c.scale == 1 }

func newRealClock(scale int64) *realClock {
	c := &realClock{base: time.Now(), scale: scale}
	c.w = c.newWaiter(true)
	return c
}

// RealClock is the machine's clock, with timers that keep microseconds where the operating system lets them. It is always
// the same one.
func RealClock() hw.Clock { return theRealClock }

// NewDilatedClock is a clock on which time passes n times slower than on the machine's: a simulation that needs n times
// as long as it should then still measures right. Factors below one are taken as one.
func NewDilatedClock(n int) hw.Clock {
	if n <= 1 {
		return theRealClock
	}
	return newRealClock(int64(n))
}

func (c *realClock) realNanos() int64 { return int64(time.Since(c.base)) }
func (c *realClock) nanos() int64     { return int64(time.Since(c.base)) / c.scale }

func (c *realClock) wall(n int64) time.Time { return c.base.Add(time.Duration(n)) }

// Now implements hw.Clock.
func (c *realClock) Now() time.Time {
	if c.scale == 1 {
		return time.Now()
	}
	return c.wall(c.nanos())
}

// Sleep implements hw.Clock.
func (c *realClock) Sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	real := d * time.Duration(c.scale)
	if real >= preciseBelow {
		time.Sleep(real)
		return
	}
	preciseSleep(real)
}

// AfterFunc implements hw.Clock.
func (c *realClock) AfterFunc(d time.Duration, f func()) hw.Timer {
	t := &realTimer{c: c, f: f, index: -1}
	c.mu.Lock()
	c.arm(t, d)
	c.mu.Unlock()
	return t
}

func (c *realClock) newWaiter(precise bool) waiter {
	if precise {
		return newPreciseWaiter(c)
	}
	return newChanWaiter(c)
}

// arm schedules t; c.mu is held.
func (c *realClock) arm(t *realTimer, d time.Duration) {
	real := max(d, 0) * time.Duration(c.scale)
	if real >= preciseBelow {
		if t.long == nil {
			t.long = time.AfterFunc(real, t.f)
		} else {
			t.long.Reset(real)
		}
		return
	}
	t.when = c.realNanos() + int64(real)
	c.seq++
	t.seq = c.seq
	heap.Push(&c.timers, t)
	if !c.running {
		c.running = true
		go c.serve()
	} else if t.index == 0 {
		c.w.poke()
	}
}

// disarm cancels t and reports whether it was pending; c.mu is held.
func (c *realClock) disarm(t *realTimer) bool {
	if t.index >= 0 {
		heap.Remove(&c.timers, t.index)
		return true
	}
	return t.long != nil && t.long.Stop()
}

// serve runs short timers until there are none left.
func (c *realClock) serve() {
	c.w.enter()
	defer c.w.leave()
	for {
		c.mu.Lock()
		now := c.realNanos()
		for len(c.timers) > 0 && c.timers[0].when <= now {
			go heap.Pop(&c.timers).(*realTimer).f()
		}
		if len(c.timers) == 0 {
			c.running = false
			c.mu.Unlock()
			return
		}
		next := c.timers[0].when
		c.mu.Unlock()
		c.w.wait((next + c.scale - 1) / c.scale)
	}
}

// realTimer is a hw.Timer of a realClock: a short one waits in the clock's heap, a long one in the Go runtime.
type realTimer struct {
	c     *realClock
	f     func()
	long  *time.Timer
	when  int64 // real nanoseconds
	seq   uint64
	index int // in the heap, -1 outside
}

// Stop implements hw.Timer.
func (t *realTimer) Stop() bool {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return t.c.disarm(t)
}

// Reset implements hw.Timer.
func (t *realTimer) Reset(d time.Duration) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	t.c.disarm(t)
	t.c.arm(t, d)
}

// timerHeap orders timers by time, then by age.
type timerHeap []*realTimer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].when != h[j].when {
		return h[i].when < h[j].when
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*realTimer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

// foreignClock adapts a clock that the simulator did not make.
type foreignClock struct{ hw.Clock }

var foreignEpoch = time.Unix(0, 0)

func (c foreignClock) nanos() int64           { return c.Now().UnixNano() }
func (c foreignClock) wall(n int64) time.Time { return foreignEpoch.Add(time.Duration(n)) }
func (c foreignClock) newWaiter(bool) waiter  { return newChanWaiter(c) }
