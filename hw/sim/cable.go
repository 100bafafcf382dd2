package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// End is something that a cable can be plugged into: a [*Board], a [*Host] or a [*TAP].
type End interface {
	// Name says which end it is, for messages.
	Name() string

	attach(c *Cable, side int) error
	detach(c *Cable)
	path() *lane
	intake() sink
	// simClock is the clock the end lives in; nil if it has none of its own.
	simClock() simClock
	ability() ability
	setLink(l link, at int64)
	setRunner(old, r *runner)
	// drops is how many frames arrived for which there was no room.
	drops() uint64
}

// CableOptions describe a cable.
type CableOptions struct {
	// SpeedMbps is what the cable carries at most: 1000, 100 or 10. Frames take their time on it, with preamble, FCS and
	// gap, and PHYs do not negotiate more. 0 is a cable without wire time: frames take no time, wait until the receiver
	// has room, and PHYs negotiate as on a good cable.
	SpeedMbps int
	// BackPressure makes frames wait for the receiver on a cable with wire time too, rather than overflow it. That is not
	// what Ethernet does; it is for machines too slow to drain a receiver in time.
	BackPressure bool
	// DamageRate is the share of frames, 0 to 1, that get a bit error behind their header: the receiver finds a bad FCS.
	DamageRate float64
	// LossRate is the share of frames that do not arrive.
	LossRate float64
	// Seed picks the frames that are damaged or lost: the n-th frames of each direction, the same in each run.
	Seed uint64
	// Capture gets every frame put on the wire in either direction, as a pcap file with nanoseconds and without FCS. It is
	// written by one goroutine at a time, and flushed when the cable falls idle and by Close, which returns the first error.
	Capture io.Writer
	// Clock is the cable's time if neither end has a clock; nil is RealClock.
	Clock hw.Clock
}

// Cable joins two ends.
type Cable struct {
	opts    CableOptions
	ends    [2]End
	clock   simClock
	r       *runner
	wires   [2]wire
	plugged atomic.Bool
	rate    atomic.Int64 // nanoseconds for each byte at the negotiated speed
	begin   int64
	dropped [2]uint64 // what the ends had dropped before they were on this cable
	cap     *capture

	mu     sync.Mutex // serialises autonegotiation and Close
	closed bool
	err    error
}

// Connect joins two ends that are on no other cable. Boards negotiate the link, which takes Options.AutonegTime.
func Connect(a, b End, o CableOptions) (*Cable, error) {
	switch {
	case a == nil || b == nil:
		return nil, fmt.Errorf("sim: %w: Connect needs two ends", hw.ErrConfig)
	case a == b:
		return nil, fmt.Errorf("sim: %w: Connect of %s with itself", hw.ErrConfig, a.Name())
	case o.SpeedMbps != 0 && o.SpeedMbps != 10 && o.SpeedMbps != 100 && o.SpeedMbps != 1000:
		return nil, fmt.Errorf("sim: %w: CableOptions.SpeedMbps %d", hw.ErrConfig, o.SpeedMbps)
	case !(o.DamageRate >= 0 && o.DamageRate <= 1):
		return nil, fmt.Errorf("sim: %w: CableOptions.DamageRate %v", hw.ErrConfig, o.DamageRate)
	case !(o.LossRate >= 0 && o.LossRate <= 1):
		return nil, fmt.Errorf("sim: %w: CableOptions.LossRate %v", hw.ErrConfig, o.LossRate)
	}
	c := &Cable{opts: o, ends: [2]End{a, b}}
	ca, cb := a.simClock(), b.simClock()
	switch {
	case ca != nil && cb != nil && ca != cb:
		return nil, fmt.Errorf("sim: %w: %s and %s live in different clocks", hw.ErrConfig, a.Name(), b.Name())
	case ca != nil:
		c.clock = ca
	case cb != nil:
		c.clock = cb
	default:
		c.clock = asSimClock(o.Clock)
	}
	if o.Capture != nil {
		c.cap = newCapture(o.Capture, c.clock)
	}
	c.rate.Store(rate1000)
	c.plugged.Store(true)
	c.begin = c.clock.nanos()
	if err := a.attach(c, 0); err != nil {
		return nil, err
	}
	if err := b.attach(c, 1); err != nil {
		a.detach(c)
		return nil, err
	}
	c.r = newRunner(c.clock, o.SpeedMbps != 0, c.mode)
	if c.cap != nil {
		c.r.idle = c.cap.flush
	}
	for i, e := range c.ends {
		w := &c.wires[i]
		w.c = c
		w.rand = rand.NewPCG(o.Seed, uint64(i))
		c.dropped[i] = c.ends[1-i].drops()
		w.damage.Store(threshold(o.DamageRate))
		w.loss.Store(threshold(o.LossRate))
		l := e.path()
		c.r.add(l)
		l.dst, l.wire = c.ends[1-i].intake(), w
		if b, ok := e.(*Board); ok {
			c.r.boards = append(c.r.boards, b)
		}
	}
	for _, e := range c.ends {
		e.setRunner(nil, c.r)
	}
	c.renegotiate()
	c.r.start()
	return c, nil
}

// mode is how the wire behaves now.
func (c *Cable) mode() laneMode {
	if c.opts.SpeedMbps == 0 {
		return laneMode{lossless: true}
	}
	return laneMode{perByte: max(c.rate.Load(), rateOf(c.opts.SpeedMbps)), lossless: c.opts.BackPressure}
}

// renegotiate lets both ends agree on a link.
func (c *Cable) renegotiate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	a, b := c.ends[0], c.ends[1]
	var la, lb link
	if c.plugged.Load() {
		la, lb = negotiate(a.ability(), b.ability(), c.opts.SpeedMbps)
	}
	if la.speed != 0 {
		c.rate.Store(rateOf(la.speed))
	}
	at := c.clock.nanos() + int64(c.autonegTime())
	a.setLink(la, at)
	b.setLink(lb, at)
}

func (c *Cable) autonegTime() time.Duration {
	var t time.Duration
	for _, e := range c.ends {
		if b, ok := e.(*Board); ok {
			t = max(t, b.opts.AutonegTime)
		}
	}
	return t
}

// SetDamageRate changes CableOptions.DamageRate.
func (c *Cable) SetDamageRate(rate float64) {
	for i := range c.wires {
		c.wires[i].damage.Store(threshold(rate))
	}
}

// SetLossRate changes CableOptions.LossRate.
func (c *Cable) SetLossRate(rate float64) {
	for i := range c.wires {
		c.wires[i].loss.Store(threshold(rate))
	}
}

// Unplug pulls the cable: the link goes down at once, and what is on the wire is lost.
func (c *Cable) Unplug() {
	if c.plugged.Swap(false) {
		c.renegotiate()
	}
}

// Plug puts it back: the PHYs negotiate anew.
func (c *Cable) Plug() {
	if !c.plugged.Swap(true) {
		c.renegotiate()
	}
}

// Stats returns the cable's counts so far.
func (c *Cable) Stats() CableStats {
	shift := c.r.shift.Load()
	s := CableStats{HostStall: time.Duration(shift), Elapsed: time.Duration(c.clock.nanos() - c.begin - shift)}
	for i, d := range []*DirectionStats{&s.AToB, &s.BToA} {
		w := &c.wires[i]
		*d = DirectionStats{Frames: w.frames.Load(), Bytes: w.bytes.Load(), Damaged: w.damaged.Load(), Lost: w.lost.Load(),
			Dropped: c.ends[1-i].drops() - c.dropped[i]}
	}
	return s
}

// Close takes the cable away: the links go down, and no goroutine of it is left. It may be called several times. It returns
// the first error of the capture.
func (c *Cable) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return c.err
	}
	c.closed = true
	c.mu.Unlock()
	c.plugged.Store(false)
	c.r.stop()
	for _, e := range c.ends {
		l := e.path()
		l.r, l.dst, l.wire, l.held = nil, nil, nil, false
		e.setLink(link{}, never)
		e.setRunner(c.r, nil)
		e.detach(c)
	}
	if c.cap != nil {
		c.cap.flush()
		c.mu.Lock()
		c.err = c.cap.err
		c.mu.Unlock()
	}
	return c.err
}

func (c *Cable) capture(f *flight, at int64) {
	if c.cap != nil {
		c.cap.frame(f.data(), at+c.r.shift.Load())
	}
}

var errAttached = errors.New("is on a cable already")

// attach, detach and the rest of End, for a board.

func (b *Board) attach(c *Cable, side int) error {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return fmt.Errorf("sim: connect %s: %w", b.opts.Name, hw.ErrClosed)
	case b.cable != nil:
		b.mu.Unlock()
		return fmt.Errorf("sim: connect %s: %w", b.opts.Name, errAttached)
	}
	b.cable, b.side = c, side
	b.mu.Unlock()
	if r := b.runner.Swap(nil); r != nil {
		r.stop()
	}
	return nil
}

func (b *Board) detach(c *Cable) {
	b.mu.Lock()
	if b.cable == c {
		b.cable = nil
	}
	busy := b.txState.Load() != tsStopped
	b.mu.Unlock()
	if busy {
		b.pokeNow() // what is in the ring goes on into nothing
	}
}

func (b *Board) path() *lane        { return &b.lane }
func (b *Board) intake() sink       { return &rxSink{b} }
func (b *Board) simClock() simClock { return b.clock }

func (b *Board) drops() uint64 {
	s := b.Stats()
	return s.RXDropOverflow + s.RXDropDescriptor
}

func (b *Board) ability() ability {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.phy.ability()
}

func (b *Board) setRunner(old, r *runner) {
	if old == nil {
		b.runner.Store(r)
		return
	}
	b.runner.CompareAndSwap(old, r)
}

// ownRunner starts a runner for a board that is on no cable: its frames leave at the MAC's speed, to nowhere.
func (b *Board) ownRunner() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.cable != nil || b.runner.Load() != nil {
		return b.runner.Load() != nil
	}
	r := newRunner(b.clock, true, func() laneMode { return laneMode{perByte: b.nsPerByte()} })
	r.boards = []*Board{b}
	r.add(&b.lane)
	b.runner.Store(r)
	r.start()
	return true
}
