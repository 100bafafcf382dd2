package mmio

import (
	"container/heap"
	"runtime"
	"sync"
	"time"
)

// shortTimers are the timers that end within preciseBelow of when they were set. One goroutine, on a thread of its own, waits
// for the earliest; it is there while there are such timers.
type shortTimers struct {
	mu      sync.Mutex
	heap    timerHeap
	serving *waker // of the goroutine; nil while there is none
}

// clockTimer is a timer of realClock: a short one is in the heap, a long one is Go's.
type clockTimer struct {
	c     *realClock
	f     func()
	long  *time.Timer
	when  time.Time
	index int // in the heap, -1 outside
}

// Stop implements hw.Timer.
func (t *clockTimer) Stop() bool {
	s := &t.c.short
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.disarm(s)
}

// Reset implements hw.Timer.
func (t *clockTimer) Reset(d time.Duration) {
	s := &t.c.short
	s.mu.Lock()
	defer s.mu.Unlock()
	t.disarm(s)
	if d < preciseBelow && s.ready() {
		t.when = time.Now().Add(d)
		heap.Push(&s.heap, t)
		if t.index == 0 {
			s.serving.wake()
		}
		return
	}
	if t.long == nil {
		t.long = time.AfterFunc(d, t.f)
	} else {
		t.long.Reset(d)
	}
}

// disarm cancels the timer and reports whether it was pending; s.mu is held.
func (t *clockTimer) disarm(s *shortTimers) bool {
	if t.index >= 0 {
		heap.Remove(&s.heap, t.index)
		return true
	}
	return t.long != nil && t.long.Stop()
}

// ready starts the goroutine if it is not there; s.mu is held. Without a descriptor for it the timers are Go's.
func (s *shortTimers) ready() bool {
	if s.serving == nil {
		w, err := newWaker()
		if err != nil {
			return false
		}
		s.serving = w
		go s.serve(w)
	}
	return true
}

// serve runs timers until there are none.
func (s *shortTimers) serve(w *waker) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		s.mu.Lock()
		w.take()
		now := time.Now()
		for len(s.heap) > 0 && !s.heap[0].when.After(now) {
			go heap.Pop(&s.heap).(*clockTimer).f()
		}
		if len(s.heap) == 0 {
			s.serving = nil
			s.mu.Unlock()
			w.close()
			return
		}
		next := s.heap[0].when
		s.mu.Unlock()
		_, _ = w.wait(-1, max(time.Until(next), 0))
	}
}

// timerHeap orders timers by time.
type timerHeap []*clockTimer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].when.Before(h[j].when) }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*clockTimer)
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
