package sim

import "time"

func duration(ns int64) time.Duration { return time.Duration(ns) }

// What a frame takes on the wire besides its bytes (IEEE 802.3 4.4.2).
const (
	preambleBytes = 8 // with the start frame delimiter
	gapBits       = 96
)

// laneSlots is how many frames a lane can hold; a power of two.
const laneSlots = 64

// noQuota is the quota of a sink that takes as many frames as come.
const noQuota = 1 << 30

// unlimitedBatch is how many frames go through a lane without wire time before the other side's lock is taken. It is
// small so that the frames stay in the CPU's cache.
const unlimitedBatch = 16

// source is where a lane's frames come from. Its methods are called with its lock held, except lock itself.
type source interface {
	lock()
	unlock()
	// fetchAt is the earliest time at which fetch may succeed; never if only a poke can help.
	fetchAt(l *lane) int64
	// fetch puts the next frame into f, or returns false if there is none now.
	fetch(l *lane, f *flight, w int64) bool
	// startAt is when the transmitter may begin the next frame.
	startAt(f *flight) int64
	// depart is told that a frame begins to leave and sets its fate; in a lane without wire time it may be told again.
	depart(f *flight)
	// done is told that a frame has left.
	done(f *flight, w int64)
	// window is how many frames may be between fetch and done.
	window() uint32
	// idle ends a run.
	idle()
	// control returns whether a PAUSE frame is to be sent now, in f.
	control(f *flight) bool
	// controlAt is when control may have one; never if it has none.
	controlAt() int64
	// gap is the time between frames in bit times.
	gap() int64
}

// sink is where a lane's frames go. Its methods are called with its lock held, except lock itself.
type sink interface {
	lock()
	unlock()
	// arrive takes a frame at a time. In lossless mode it may refuse for now, without side effects that a repetition
	// would double.
	arrive(f *flight, w int64, m laneMode) bool
	// run does what is due without a frame arriving.
	run(w int64, m laneMode)
	// quota is how many frames may arrive within one run, see runner.
	quota() int
}

// laneMode is how the wire behaves.
type laneMode struct {
	perByte  int64 // nanoseconds; 0 is no wire time
	lossless bool  // frames wait rather than overflow the sink
}

// lane carries the frames of one direction. Indices run freely: delivered ≤ sent ≤ started ≤ fetched. fetched, started
// and sent are guarded by the source's lock, the rest belongs to the runner.
type lane struct {
	r    *runner
	src  source
	dst  sink
	self sink  // where a MAC in loopback mode sends to; nil for other sources
	wire *wire // what the cable does to frames; nil without a cable

	slots     [laneSlots]flight
	fetched   uint32
	started   uint32
	offered   uint32 // without wire time: frames before this are being delivered, with no lock of the source held
	flushing  bool   // the source wants its frames thrown away
	sent      uint32
	delivered uint32
	held      bool  // the sink refused the next frame
	moved     int64 // bytes delivered in this run
	unlimited bool  // the last run was one without wire time
	retry     int64 // when to try it again
	backoff   int64
	resume    int64 // when the sink last took a frame that it had refused
	wireFree  int64 // guarded by the source's lock

	ctl     flight // a PAUSE frame on the wire
	ctlBusy bool
}

func (l *lane) init(src source, self sink) { l.src, l.self = src, self }

func (l *lane) slot(i uint32) *flight { return &l.slots[i%laneSlots] }

// pending is how many frames are between fetch and done.
func (l *lane) pending() int { return int(l.fetched - l.sent) }

// shift is by how much the wire's time is behind the clock.
func (l *lane) shift() int64 {
	if l.r == nil {
		return 0
	}
	return l.r.shift.Load()
}

// abort throws away what has not left yet. The source's lock is held.
func (l *lane) abort() {
	i := l.sent
	if int32(l.offered-i) > 0 { // those before are being looked at; their epoch tells what has happened to them
		i = l.offered
	}
	l.drop(i)
}

// drop makes the frames from i on end at once, going nowhere. The source's lock is held.
func (l *lane) drop(i uint32) {
	for ; i != l.fetched; i++ {
		f := l.slot(i)
		f.aborted = true
		f.ready, f.end = 0, 0
	}
}

// flush throws away what has not left yet, with a status that says so, when the runner asks for it: then no frame is
// between the two sides. The source's lock is held.
func (l *lane) flush() {
	l.flushing = false
	for i := l.sent; i != l.fetched; i++ {
		l.slot(i).status |= txFF | txES
	}
	l.drop(l.sent)
}

// run moves the lane on to time w and returns how many frames it moved.
func (l *lane) run(w int64, m laneMode) int {
	l.unlimited = m.perByte == 0
	l.moved = 0
	if l.unlimited {
		return l.runUnlimited(w, m)
	}
	moved := 0
	quota := l.quota()
	for {
		n := l.transmit(w, m, quota-moved)
		got, refused := l.deliver(l.sent, w, m)
		moved += got
		if n+got == 0 || refused || moved >= quota {
			break
		}
	}
	l.src.lock()
	l.src.idle()
	l.src.unlock()
	return moved
}

func (l *lane) quota() int {
	if l.dst == nil {
		return noQuota
	}
	return l.dst.quota()
}

// transmit does the source's side: fetch, start, done. It returns how many frames left, at most limit.
func (l *lane) transmit(w int64, m laneMode, limit int) int {
	l.src.lock()
	defer l.src.unlock()
	l.wireFree = max(l.wireFree, l.resume)
	l.offered = l.sent
	if l.flushing {
		l.flush()
	}
	left := 0
	for left < limit {
		// What comes first is done first: the engine's timing depends on it.
		fetch := never
		if l.fetched-l.sent < l.src.window() && l.fetched-l.delivered < laneSlots {
			fetch = l.src.fetchAt(l)
		}
		if l.started != l.sent {
			if f := l.slot(l.sent); f.end <= w && f.end < fetch {
				if f.aborted {
					f.fate = fateAborted
				}
				l.sent++
				left++
				l.src.done(f, w)
				continue
			}
		} else {
			if !l.held && !l.ctlBusy && l.src.control(&l.ctl) {
				l.ctlBusy = true
				l.ctl.end = max(l.wireFree, w) + l.wireTime(&l.ctl, m)
				l.wireFree = l.ctl.end + l.src.gap()*m.perByte/8
			}
			if s, ok := l.nextStart(); ok && s <= w && (!l.held || l.slot(l.started).aborted) {
				l.start(s, w, m)
				continue
			}
		}
		if fetch > w {
			break
		}
		if l.src.fetch(l, l.slot(l.fetched), w) {
			l.fetched++
		}
	}
	return left
}

// start puts the next frame on the wire at time s.
func (l *lane) start(s, w int64, m laneMode) {
	f := l.slot(l.started)
	l.started++
	l.src.depart(f)
	f.end = w
	if f.fate != fateAborted {
		f.end = s + l.wireTime(f, m)
		l.wireFree = f.end + l.src.gap()*m.perByte/8
	}
}

func (l *lane) wireTime(f *flight, m laneMode) int64 {
	return int64(preambleBytes+f.n+fcsBytes) * m.perByte
}

// nextStart is when the next frame can begin. The wire must be free.
func (l *lane) nextStart() (int64, bool) {
	if l.started == l.fetched {
		return never, false
	}
	f := l.slot(l.started)
	if f.aborted {
		return 0, true
	}
	return max(f.ready, l.wireFree, l.src.startAt(f)), true
}

// next is when run has something to do.
func (l *lane) next(m laneMode) int64 {
	l.src.lock()
	defer l.src.unlock()
	at := never
	if l.ctlBusy {
		at = l.ctl.end
	}
	if !l.ctlBusy && !l.held && l.started == l.sent {
		at = l.src.controlAt()
	}
	if l.held {
		return min(at, l.retry)
	}
	if l.started != l.sent {
		return min(at, l.slot(l.sent).end)
	}
	if s, ok := l.nextStart(); ok {
		if s != never {
			s += l.wireTime(l.slot(l.started), m)
		}
		return min(at, s)
	}
	return min(at, l.src.fetchAt(l))
}

// deliver hands over the frames up to end. It returns how many the sink took, and whether it refused one.
func (l *lane) deliver(end uint32, w int64, m laneMode) (n int, refused bool) {
	var locked sink
	defer func() {
		if locked != nil {
			locked.unlock()
		}
	}()
	offer := func(f *flight, at int64) bool {
		to := l.target(f)
		if to != locked {
			if locked != nil {
				locked.unlock()
			}
			if locked = to; to != nil {
				to.lock()
			}
		}
		return l.offer(to, f, at, m)
	}
	released := l.held
	if l.held {
		l.held = false
		l.resume = w
	}
	for {
		at := w
		more := l.delivered != end
		if more {
			at = min(w, l.slot(l.delivered).end)
			if released {
				at = w // it has waited until now
			}
		}
		if l.ctlBusy && l.ctl.end <= at {
			if !offer(&l.ctl, l.ctl.end) {
				l.hold(w)
				return n, true
			}
			l.ctlBusy = false
		}
		if !more {
			break
		}
		if !offer(l.slot(l.delivered), at) {
			l.hold(w)
			return n, true
		}
		l.moved += int64(preambleBytes + l.slot(l.delivered).n + fcsBytes)
		l.delivered++
		n++
	}
	l.backoff = 0
	return n, false
}

// target is where a frame goes; nil is nowhere.
func (l *lane) target(f *flight) sink {
	switch f.fate {
	case fateSent:
		return l.dst
	case fateLoop:
		return l.self
	}
	return nil
}

// offer puts one frame through the wire into the sink; false means that it must wait.
func (l *lane) offer(to sink, f *flight, at int64, m laneMode) bool {
	if to != nil {
		to.run(at, m)
	}
	switch {
	case f.fate == fateSent && l.wire != nil:
		return l.wire.carry(to, f, at, m)
	case to != nil:
		return to.arrive(f, at, m)
	}
	return true
}

// Waiting for a sink that has no room: it tells when it has, but a driver need not tell a simulated engine that does not
// suspend, so it is also looked at, ever more rarely.
const (
	retryFirst = 100_000
	retryMost  = 5_000_000
)

func (l *lane) hold(w int64) {
	l.held = true
	l.backoff = min(max(2*l.backoff, retryFirst), retryMost)
	l.retry = w + l.backoff
}

// runUnlimited moves frames without wire time until the source or the sink has no more to give.
func (l *lane) runUnlimited(w int64, m laneMode) int {
	moved := 0
	for {
		ready := l.fetchUnlimited(w)
		got, refused := l.deliver(ready, w, m)
		if got > 0 {
			l.src.lock()
			for l.sent != l.delivered && int32(l.delivered-l.sent) > 0 {
				f := l.slot(l.sent)
				l.sent++
				l.started = l.sent
				l.src.done(f, w)
			}
			l.src.unlock()
		}
		moved += got
		if refused || got == 0 || moved >= 4*laneSlots {
			return moved
		}
	}
}

// fetchUnlimited fetches a batch and returns up to which frame the transmitter may send.
func (l *lane) fetchUnlimited(w int64) (ready uint32) {
	l.src.lock()
	defer l.src.unlock()
	l.started = l.sent
	if l.flushing {
		l.flush()
	}
	for l.fetched-l.sent < unlimitedBatch && l.fetched-l.delivered < laneSlots && l.src.fetchAt(l) != never {
		if l.src.fetch(l, l.slot(l.fetched), w) {
			l.fetched++
		}
	}
	if !l.ctlBusy && l.src.control(&l.ctl) {
		l.ctlBusy = true
		l.ctl.end = w
	}
	for ready = l.sent; ready != l.fetched; ready++ {
		f := l.slot(ready)
		if !f.aborted && l.src.startAt(f) > w {
			break
		}
		f.end = w
		l.src.depart(f)
	}
	l.offered = ready
	return ready
}
