package sim

import (
	"fmt"
	"sync"
	"sync/atomic"

	"dwnet/hw"
)

// Board is a simulated board: a MAC with its DMA engines, DMA memory and a PHY. It is driven through a [hw.Port] and put
// on a cable with [Connect].
type Board struct {
	// What an access or an engine touches for each frame needs no lock. The first group rarely changes.
	opts      Options
	clock     simClock
	file      *registerFile
	arena     *arena
	intEnable atomic.Uint32
	extra     atomic.Uint32 // read-only mirrors in the status register, and the bus error kind
	busy      atomic.Bool   // a software reset may be under way
	macRate   atomic.Int64  // nanoseconds for each byte at the MAC's speed
	irq       atomic.Pointer[interrupt]
	runner    atomic.Pointer[runner]
	faults    Faults
	viol      violations

	_       cacheLine
	txState atomic.Uint32 // TS
	rxState atomic.Uint32 // RS
	_       cacheLine
	status  atomic.Uint32 // latched bits of the status register
	_       cacheLine
	cnt     counters
	_       cacheLine

	// mu guards everything below. It is held while an engine works through a batch, so nothing that a driver does for
	// each frame takes it. Whoever holds it calls nothing of the user's and takes no other board's.
	mu      sync.Mutex
	sess    *session
	closed  bool
	reg     [slots]uint32
	written [slots]int64 // when a register that crosses clocks was last written
	resetAt int64        // when the software reset ends
	flushAt int64        // when the FIFO flush ends; never while none is under way
	addr    [maxAddresses]macAddress
	wake    [wakeFilterWords]uint32
	wakePos int
	mmc     mmc
	mdio    mdio
	phy     phy
	tx      txEngine
	rx      rxEngine
	lane    lane
	watched [2][]*block // blocks with descriptors of a running list, by kind
	cable   *Cable
	side    int // which end of the cable
}

// NewBoard makes a board. It comes up as after power-on, not connected to anything. Close ends it.
func NewBoard(o Options) (*Board, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	b := &Board{opts: o, clock: asSimClock(o.Clock), file: newRegisterFile(&o), arena: newArena(o.MemoryBytes)}
	b.faults.b = b
	b.viol.b = b
	b.lane.init(&txSource{b}, &rxSink{b})
	b.rx.init(b)
	b.phy.init(b)
	b.powerOn()
	return b, nil
}

// Name is Options.Name, or what it was set to.
func (b *Board) Name() string { return b.opts.Name }

// Clock is the clock that the board lives in.
func (b *Board) Clock() hw.Clock { return b.clock }

// Faults are the board's fault switches.
func (b *Board) Faults() *Faults { return &b.faults }

// Close ends the board: its port, if open, is closed, a cable is pulled, and no goroutine of it is left. It may be called
// several times.
func (b *Board) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	s, c := b.sess, b.cable
	b.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
	if c != nil {
		_ = c.Close()
	}
	if r := b.runner.Swap(nil); r != nil {
		r.stop()
	}
	b.mu.Lock()
	b.phy.stop()
	b.resetEngines()
	b.mu.Unlock()
	b.flush()
	return nil
}

// Port opens the board for a driver. There is one driver at a time: until its port is closed, opening another one closes
// the first, whose user then breaks RuleUseAfterClose.
func (b *Board) Port() hw.Port {
	s := &session{b: b}
	s.irq.init(s)
	b.mu.Lock()
	old := b.sess
	b.sess = s
	if b.closed {
		s.closed.Store(true)
	}
	b.mu.Unlock()
	b.irq.Store(&s.irq)
	if old != nil {
		_ = old.Close()
	}
	return s
}

// session is one use of a board. It implements hw.Port and hw.Registers.
type session struct {
	b      *Board
	closed atomic.Bool
	irq    interrupt
}

// Info implements hw.Port.
func (s *session) Info() hw.Info {
	o := &s.b.opts
	return hw.Info{
		Name: o.Name, CSRClockHz: csrClockHz, RXFIFOBytes: o.RXFIFOBytes, TXFIFOBytes: o.TXFIFOBytes,
		BusBytes: o.BusBytes, Mode: phyModes[o.PHYMode], Address: o.Address,
	}
}

// Registers implements hw.Port.
func (s *session) Registers() hw.Registers { return s }

// Interrupt implements hw.Port.
func (s *session) Interrupt() hw.Interrupt { return &s.irq }

// Clock implements hw.Port.
func (s *session) Clock() hw.Clock { return s.b.clock }

// Alloc implements hw.Port.
func (s *session) Alloc(size, align int) (hw.Memory, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("sim: Alloc: %w", hw.ErrClosed)
	}
	m, err := s.b.arena.alloc(s, size, align)
	if err != nil {
		return nil, err // not a typed nil
	}
	return m, nil
}

// Free implements hw.Port.
func (s *session) Free(m hw.Memory) error {
	blk, ok := m.(*block)
	if !ok || blk.a != s.b.arena {
		return fmt.Errorf("sim: Free: %w: not this port's memory", hw.ErrConfig)
	}
	if s.closed.Load() {
		return nil // Close has freed it
	}
	if !s.b.arena.free(blk) {
		return fmt.Errorf("sim: Free: %w: freed before", hw.ErrConfig)
	}
	return nil
}

// Close implements hw.Port. The engines are not stopped: if they still run, they fail on the memory that is gone.
func (s *session) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.b.irq.CompareAndSwap(&s.irq, nil)
	s.irq.end()
	s.b.arena.freeOf(s)
	s.b.mu.Lock()
	if s.b.sess == s {
		s.b.sess = nil
	}
	s.b.mu.Unlock()
	return nil
}
