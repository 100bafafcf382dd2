package sim

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"dwnet/hw"
)

// TAPOptions say which TAP interface [OpenTAP] opens.
type TAPOptions struct {
	// Name is the interface's name, as "tap0": 1 to 15 bytes, no blanks, slashes, colons or percent signs. It is created
	// if there is none, and then vanishes with Close.
	Name string
}

// tapQueue is how many frames from the interface may wait for the wire. The rest waits in the kernel.
const tapQueue = 256

// TAP is the end of a cable that is a TAP interface of the machine: what the machine sends there comes out of the cable,
// and the other way round.
type TAP struct {
	q    queue
	name string
	file *os.File
	fd   int

	mu     sync.Mutex // guards writing
	room   sync.Cond  // of q.mu: the queue has run half empty, or the TAP was closed
	done   chan struct{}
	once   sync.Once
	err    error
	failed atomic.Uint64 // frames that the interface did not take
	bad    atomic.Uint64 // frames with a wrong FCS
}

// OpenTAP opens a TAP interface, creates it if there is none, and sets it up: MTU 1500, no offloads, no address, a queue
// long enough for a TCP window. It needs Linux and CAP_NET_ADMIN. Frames that the machine sends before the TAP is on a
// cable wait there.
func OpenTAP(o TAPOptions) (*TAP, error) {
	if err := checkTAPName(o.Name); err != nil {
		return nil, fmt.Errorf("sim: open TAP interface %q: %w", o.Name, err)
	}
	fd, err := openTAP(o.Name)
	if err != nil {
		return nil, fmt.Errorf("sim: open TAP interface %q: %w", o.Name, err)
	}
	t := &TAP{name: o.Name, fd: fd, file: os.NewFile(uintptr(fd), o.Name), done: make(chan struct{})}
	t.q.init(tapQueue)
	t.room.L = &t.q.mu
	t.q.low = t.room.Signal
	go t.read()
	return t, nil
}

func checkTAPName(name string) error {
	const longest = 15 // IFNAMSIZ less its zero, Linux include/uapi/linux/if.h
	switch {
	case name == "":
		return fmt.Errorf("%w: no name", hw.ErrConfig)
	case len(name) > longest:
		return fmt.Errorf("%w: the name is longer than %d bytes", hw.ErrConfig, longest)
	case name == "." || name == ".." || strings.ContainsAny(name, "/:% \t\n\v\f\r\x00"):
		return fmt.Errorf("%w: not an interface name", hw.ErrConfig)
	}
	return nil
}

// Name is the interface's name.
func (t *TAP) Name() string { return t.name }

// Close takes the interface off its cable, which is closed with it, and closes the interface.
func (t *TAP) Close() error {
	t.once.Do(func() {
		t.err = t.q.close()
		if err := t.file.Close(); t.err == nil {
			t.err = err
		}
		t.q.mu.Lock()
		t.room.Broadcast()
		t.q.mu.Unlock()
		<-t.done
	})
	return t.err
}

// read moves frames from the interface into the queue until the interface is closed.
func (t *TAP) read() {
	defer close(t.done)
	q := &t.q
	for {
		q.mu.Lock()
		for int(q.tail-q.head) == len(q.ring) && !q.closed {
			t.room.Wait()
		}
		closed := q.closed
		f := &q.ring[q.tail%uint32(len(q.ring))] // nobody else touches it before tail moves on
		q.mu.Unlock()
		if closed {
			return
		}
		f.reset()
		f.grow(smallBuffer)
		n, err := t.file.Read(f.buf)
		if err != nil {
			return
		}
		if n < headerBytes {
			continue
		}
		f.n = n
		if n < minFrame { // as an Ethernet card does
			f.pad(minFrame)
		}
		t.commit(f)
	}
}

// commit queues the frame that was read into the next slot.
func (t *TAP) commit(f *flight) {
	q := &t.q
	q.mu.Lock()
	now := int64(0)
	if q.cable != nil {
		now = q.cable.clock.nanos()
	}
	f.ready = now
	q.tail++
	q.mu.Unlock()
	if r := q.runner.Load(); r != nil {
		r.pokeAt(now)
	}
}

func (t *TAP) attach(c *Cable, _ int) error { return t.q.attach(c, t.name) }
func (t *TAP) detach(c *Cable)              { t.q.detach(c) }
func (t *TAP) path() *lane                  { return &t.q.lane }
func (t *TAP) intake() sink                 { return (*tapSink)(t) }
func (t *TAP) simClock() simClock           { return nil }
func (t *TAP) ability() ability             { return anyAbility }
func (t *TAP) setLink(link, int64)          {}
func (t *TAP) setRunner(old, r *runner)     { t.q.setRunner(old, r) }
func (t *TAP) drops() uint64                { return t.failed.Load() }

// tapSink is a TAP interface as the sink of a lane.
type tapSink TAP

func (s *tapSink) lock()               { s.mu.Lock() }
func (s *tapSink) unlock()             { s.mu.Unlock() }
func (s *tapSink) run(int64, laneMode) {}
func (s *tapSink) quota() int          { return noQuota }

func (s *tapSink) arrive(f *flight, _ int64, _ laneMode) bool {
	if f.fcsBad {
		s.bad.Add(1)
		return true
	}
	if err := writeTAP(s.fd, f.data()); err != nil {
		s.failed.Add(1)
	}
	return true
}
