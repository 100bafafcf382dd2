package sim

import (
	"sync"
	"sync/atomic"
)

// How often a runner looks at a busy wire. At 1000 Mbit/s a frame takes 12 µs, less than a thread's waking takes, so frames
// are handled several at a time; the times in simulated time stay exact.
const (
	coarse      = 50_000
	latestCatch = 1_000_000 // how late a run may be and still catch up
)

// runner is the goroutine that moves the lanes of a cable, or of a board that is on none. It sleeps while nothing is due.
//
// Its time is wire time: the clock's, less by what the machine was too late to catch up with (shift).
type runner struct {
	clock  simClock
	mode   func() laneMode
	w      waiter
	lanes  []*lane
	boards []*Board
	idle   func() // called when nothing is due, without locks; may be nil

	shift    atomic.Int64 // by how much wire time is behind the clock
	deadline atomic.Int64 // until when it sleeps; never: it must be poked to notice anything
	finished chan struct{}

	mu      sync.Mutex
	cond    sync.Cond // runs or stopped changed
	stopped bool
	runs    uint64
	last    int64 // wire time of the last run
}

// newRunner makes a runner for some lanes. A precise one has a thread of its own.
func newRunner(clock simClock, precise bool, mode func() laneMode) *runner {
	r := &runner{clock: clock, mode: mode, w: clock.newWaiter(precise), finished: make(chan struct{})}
	r.cond.L = &r.mu
	r.deadline.Store(never)
	return r
}

// add gives the runner a lane; it must not have been started.
func (r *runner) add(l *lane) {
	l.r = r
	r.lanes = append(r.lanes, l)
}

func (r *runner) start() {
	r.w.poke()
	go r.loop()
}

// stop ends the goroutine and waits for it.
func (r *runner) stop() {
	r.mu.Lock()
	r.stopped = true
	r.cond.Broadcast()
	r.mu.Unlock()
	r.w.poke()
	<-r.finished
}

// pokeAt makes the runner run soon, unless it will anyhow.
func (r *runner) pokeAt(now int64) {
	if d := r.deadline.Load(); d-now > coarse {
		r.w.poke()
	}
}

// sync waits until the runner has run once more from the beginning.
func (r *runner) sync() {
	r.mu.Lock()
	defer r.mu.Unlock()
	want := r.runs + 1
	r.w.poke()
	for r.runs < want && !r.stopped {
		r.cond.Wait()
	}
}

func (r *runner) loop() {
	defer close(r.finished)
	r.w.enter()
	defer r.w.leave()
	for {
		r.deadline.Store(never)
		next, ok := r.run()
		if !ok {
			return
		}
		for _, b := range r.boards {
			b.flush()
		}
		if next == never && r.idle != nil {
			r.idle()
		}
		r.deadline.Store(next)
		r.w.wait(next)
	}
}

// run moves everything on to now. It returns when to run next, on the clock.
func (r *runner) run() (next int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return 0, false
	}
	m := r.mode()
	now := r.clock.nanos()
	w := now - r.shift.Load()
	if m.perByte != 0 {
		// A run that comes late catches up only so far; the rest shifts the schedule.
		if due := max(r.due(m), r.last); w-due > latestCatch {
			r.shift.Add(w - due - latestCatch)
			w = due + latestCatch
		}
	}
	pause := int64(0)
	moved := 0
	for _, l := range r.lanes {
		n := l.run(w, m)
		moved += n
		if m.perByte == 0 {
			continue
		}
		quota := l.quota()
		if n >= quota {
			// The other side has to see these before more come: the time until now is lost.
			if at := l.next(m); at < w {
				r.shift.Add(w - at)
				w = at
			}
		}
		if n > 2 {
			pause = min(coarse, int64(quota)*m.perByte*minFrame)
		}
	}
	for _, b := range r.boards {
		b.mu.Lock()
		b.rx.run(b, w, m)
		b.mu.Unlock()
	}
	r.last = w
	r.runs++
	r.cond.Broadcast()
	due := r.due(m)
	switch {
	case due == never:
		return never, true
	case m.perByte == 0 && due <= w && moved > 0:
		return now, true
	}
	at := due + r.shift.Load()
	if m.perByte < fastByte {
		at = max(at, now+pause)
	}
	return max(at, now+1), true
}

// fastByte is the time of a byte below which frames are handled several at a time: between 1000 and 100 Mbit/s.
const fastByte = 20

// due is when something is to be done, in wire time.
func (r *runner) due(m laneMode) int64 {
	due := never
	for _, l := range r.lanes {
		due = min(due, l.next(m))
	}
	for _, b := range r.boards {
		b.mu.Lock()
		due = min(due, b.rx.next())
		b.mu.Unlock()
	}
	return due
}
