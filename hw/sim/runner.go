package sim

import (
	"sync"
	"sync/atomic"
)

// How often a runner looks at a busy wire. At 1000 Mbit/s a frame takes 12 µs, less than waking a thread takes, so frames are
// handled several at a time; the times in simulated time stay exact. On a machine that is late all the same, it is better
// to come less often.
const (
	coarseLeast = 50_000
	coarseMost  = 200_000
	soon        = 10_000    // a poke can wait that long on a wire where each frame is handled in its time
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
	patience atomic.Int64 // how long a poke may wait
	deadline atomic.Int64 // until when it sleeps; never: it must be poked to notice anything
	finished chan struct{}

	mu      sync.Mutex
	cond    sync.Cond // runs or stopped changed
	stopped bool
	runs    uint64
	last    int64 // wire time of the last run
	planned int64 // when this run was to be, on the clock
	lag     int64 // how late runs are, on average
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
	if d := r.deadline.Load(); d-now > r.patience.Load() {
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
		if latest := max(r.due(m), r.last); latest < w-latestCatch {
			r.shift.Add(w - latestCatch - latest)
			w = latest + latestCatch
		}
		if late := now - r.planned; late >= 0 {
			r.lag += (min(late, latestCatch) - r.lag) / 8
		}
	}
	coarse := min(max(2*r.lag, coarseLeast), coarseMost)
	pause := int64(0)
	for _, l := range r.lanes {
		n := l.run(w, m)
		if m.perByte == 0 {
			continue
		}
		quota := l.quota()
		if n >= quota {
			// The other side has to see these before more come: the time until now is lost.
			if at := max(l.next(m), r.last); at < w {
				r.shift.Add(w - at)
				w = at
			}
		}
		if n > 2 { // a stream: no more than half of the quota at once
			pause = min(coarse, l.moved*m.perByte/int64(n)*int64(quota/2))
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
	next = never
	patience := int64(soon)
	switch {
	case due == never:
	case m.perByte == 0:
		patience = 0
		next = max(due+r.shift.Load(), now)
	case m.perByte < fastByte:
		patience = coarse
		next = max(due+r.shift.Load(), now+pause)
	default:
		next = max(due+r.shift.Load(), now+1)
	}
	r.patience.Store(patience)
	r.planned = next
	return next, true
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
