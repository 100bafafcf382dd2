package sim

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"dwnet/hw"
)

// Errors of Host.Send and its relatives.
var (
	ErrHostFull = errors.New("sim: host queue full")
	errTooLong  = errors.New("sim: frame too long")
)

// Sizes of a host's queues, in frames.
const (
	hostQueue  = 1024
	hostInbox  = 2048
	hostLowFwd = 64
)

// Host is the end of a cable that a test or a traffic generator holds in its hand: it sends any frame, also what no driver
// could send, and gives what arrives to a function. It can do every speed and has no clock of its own.
type Host struct {
	q     queue
	rx    func(frame []byte)
	name  string
	clock atomic.Pointer[clockBox]

	in struct {
		sync.Mutex
		ring       [hostInbox][]byte
		lens       [hostInbox]int
		head, tail uint32
		draining   bool
		starved    bool // a frame was refused for lack of room
	}
	received, bad, dropped atomic.Uint64
}

type clockBox struct{ c simClock }

// HostStats count what has arrived at a [Host].
type HostStats struct {
	Received uint64 // given to the function
	Bad      uint64 // wrong FCS
	Dropped  uint64 // the function was too slow
}

// NewHost makes a host. Frames that arrive in order go to rx, one at a time, with no lock held; the slice is only valid
// during the call. With a nil rx they are counted only. On a cable without wire time, or with back-pressure, the sender
// waits while rx is slow; otherwise frames beyond a queue of 2048 are dropped.
func NewHost(rx func(frame []byte)) *Host {
	h := &Host{rx: rx, name: "host"}
	h.q.init(hostQueue)
	return h
}

// Name implements End.
func (h *Host) Name() string { return h.name }

// Send queues a frame, from destination address on and without FCS, which the wire adds. Short frames are not padded: the
// receiver sees a runt. The frame is copied. It returns ErrHostFull if the queue is full, and an error that is ErrClosed
// if the host was closed or is on no cable.
func (h *Host) Send(frame []byte) error { return h.q.put(frame, false, false) }

// SendBad is Send with an FCS that is wrong.
func (h *Host) SendBad(frame []byte) error { return h.q.put(frame, true, false) }

// SendRaw is Send of a frame that ends with its FCS, right or wrong.
func (h *Host) SendRaw(frame []byte) error { return h.q.put(frame, false, true) }

// Queued is how many frames wait to be sent.
func (h *Host) Queued() int { return h.q.len() }

// Stats returns the host's counts so far.
func (h *Host) Stats() HostStats {
	return HostStats{Received: h.received.Load(), Bad: h.bad.Load(), Dropped: h.dropped.Load()}
}

// Close takes the host off its cable, which is closed with it, and makes Send fail.
func (h *Host) Close() error { return h.q.close() }

func (h *Host) attach(c *Cable, _ int) error {
	h.clock.Store(&clockBox{c.clock})
	return h.q.attach(c, h.name)
}
func (h *Host) detach(c *Cable)          { h.q.detach(c) }
func (h *Host) path() *lane              { return &h.q.lane }
func (h *Host) intake() sink             { return (*hostSink)(h) }
func (h *Host) simClock() simClock       { return nil }
func (h *Host) ability() ability         { return anyAbility }
func (h *Host) setLink(link, int64)      {}
func (h *Host) setRunner(old, r *runner) { h.q.setRunner(old, r) }
func (h *Host) drops() uint64            { return h.dropped.Load() }

// hostSink is a host as the sink of a lane.
type hostSink Host

func (s *hostSink) lock()               { s.in.Lock() }
func (s *hostSink) unlock()             { s.in.Unlock() }
func (s *hostSink) run(int64, laneMode) {}
func (s *hostSink) quota() int          { return noQuota }

// arrive takes a frame; in.mu is held.
func (s *hostSink) arrive(f *flight, _ int64, m laneMode) bool {
	if f.fcsBad {
		s.bad.Add(1)
		return true
	}
	if s.rx == nil {
		s.received.Add(1)
		return true
	}
	in := &s.in
	if in.tail-in.head == hostInbox {
		if m.lossless {
			in.starved = true
			return false
		}
		s.dropped.Add(1)
		return true
	}
	i := in.tail % hostInbox
	in.ring[i] = append(in.ring[i][:0], f.data()...) // a copy: the sender still counts the frame when it closes the descriptor
	in.lens[i] = f.n
	in.tail++
	if !in.draining {
		in.draining = true
		box := s.clock.Load()
		hold(box.c)
		go (*Host)(s).drain(box.c)
	}
	return true
}

// drain calls rx for what is in the inbox, and ends when it is empty.
func (h *Host) drain(c simClock) {
	defer release(c)
	in := &h.in
	var buf []byte
	for {
		in.Lock()
		if in.head == in.tail {
			in.draining = false
			in.Unlock()
			return
		}
		i := in.head % hostInbox
		buf, in.ring[i] = in.ring[i], buf
		n := in.lens[i]
		in.head++
		wake := in.starved && in.tail-in.head <= hostLowFwd
		if wake {
			in.starved = false
		}
		in.Unlock()
		if wake {
			h.q.poke()
		}
		h.received.Add(1)
		h.rx(buf[:n])
	}
}

// queue is a bounded queue of frames as the source of a lane. It serves hosts and TAP interfaces.
type queue struct {
	lane   lane
	runner atomic.Pointer[runner]

	mu         sync.Mutex
	ring       []flight
	head, tail uint32 // run freely
	cable      *Cable
	since      int64 // when it was put on the cable
	closed     bool
	low        func() // called when the queue has run half empty; may be nil
}

func (q *queue) init(n int) {
	q.ring = make([]flight, n)
	q.lane.init(q, nil)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.tail - q.head)
}

// put queues a copy of a frame.
func (q *queue) put(frame []byte, bad, fcs bool) error {
	if len(frame) > longestFrame {
		return fmt.Errorf("%w: %d bytes, %d are the most", errTooLong, len(frame), longestFrame)
	}
	q.mu.Lock()
	switch {
	case q.closed || q.cable == nil:
		q.mu.Unlock()
		return fmt.Errorf("sim: send: not on a cable: %w", hw.ErrClosed)
	case int(q.tail-q.head) == len(q.ring):
		q.mu.Unlock()
		return ErrHostFull
	}
	f := &q.ring[q.tail%uint32(len(q.ring))]
	f.reset()
	f.append(frame)
	if fcs {
		f.takeFCS()
	}
	f.fcsBad = f.fcsBad || bad
	now := q.cable.clock.nanos()
	f.ready = now
	q.tail++
	q.mu.Unlock()
	if r := q.runner.Load(); r != nil {
		r.pokeAt(now)
	}
	return nil
}

func (q *queue) poke() {
	if r := q.runner.Load(); r != nil {
		r.w.poke()
	}
}

func (q *queue) close() error {
	q.mu.Lock()
	q.closed = true
	c := q.cable
	q.mu.Unlock()
	if c != nil {
		return c.Close()
	}
	return nil
}

func (q *queue) attach(c *Cable, name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return fmt.Errorf("sim: connect %s: %w", name, hw.ErrClosed)
	case q.cable != nil:
		return fmt.Errorf("sim: connect %s: %w", name, errAttached)
	}
	q.cable = c
	q.since = c.begin
	return nil
}

func (q *queue) detach(c *Cable) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cable == c {
		q.cable = nil
		q.head = q.tail
	}
}

func (q *queue) setRunner(old, r *runner) {
	if old == nil {
		q.runner.Store(r)
		return
	}
	q.runner.CompareAndSwap(old, r)
}

func (q *queue) lock()   { q.mu.Lock() }
func (q *queue) unlock() { q.mu.Unlock() }

func (q *queue) fetchAt(l *lane) int64 {
	if q.head == q.tail {
		return never
	}
	return q.readyAt(&q.ring[q.head%uint32(len(q.ring))], l)
}

// readyAt is since when a frame waits, in wire time.
func (q *queue) readyAt(f *flight, l *lane) int64 { return max(f.ready, q.since) - l.shift() }

func (q *queue) fetch(l *lane, f *flight, w int64) bool {
	if q.head == q.tail {
		return false
	}
	g := &q.ring[q.head%uint32(len(q.ring))]
	buf := f.buf
	*f = *g
	f.ready = min(q.readyAt(g, l), w)
	g.buf = buf
	q.head++
	if q.low != nil && q.tail-q.head == uint32(len(q.ring)/2) {
		q.low()
	}
	return true
}

func (q *queue) startAt(*flight) int64 { return 0 }
func (q *queue) depart(*flight)        {}
func (q *queue) done(*flight, int64)   {}
func (q *queue) window() uint32        { return 2 }
func (q *queue) idle()                 {}
func (q *queue) control(*flight) bool  { return false }
func (q *queue) controlAt() int64      { return never }
func (q *queue) gap() int64            { return gapBits }
