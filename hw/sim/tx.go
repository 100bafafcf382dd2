package sim

import "sync/atomic"

// What an engine needs besides moving the bytes, in nanoseconds: reading a descriptor, writing its status.
const (
	descTime   = 150
	statusTime = 100
)

// Limits of a transmitted frame (Intel socal/alt_emac.h, MAC configuration JD and JE).
const (
	minFrame     = 60 // without FCS
	headerBytes  = 14
	fcsBytes     = 4
	jabberMax    = 2048
	jabberJumbo  = 10240
	longestFrame = 16384
)

// txEngine is the transmit DMA engine and the MAC's transmitter. Its frames wait in the board's lane. Fields that are not
// atomic are guarded by the board's lock.
type txEngine struct {
	base   listBase
	cur    uint32
	curBuf uint32
	desc   *block // block of the last descriptor
	data   *block // block of the last buffer

	stopping bool
	dead     bool // bus error or jabber: no access until a reset
	wake     bool // a register write wants the runner to look
	partial  bool // the next frame has been begun: its first descriptors are in the slot
	cic      uint32
	noPad    bool
	noCRC    bool

	free      int64 // when the engine can fetch the next descriptor
	dmaEnd    int64
	epoch     uint32 // counts resets
	chainSeen bool
	ringSeen  bool
	underflow bool   // by fault
	hungAt    uint32 // the first descriptor whose status was not written, by fault
	dry       bool   // the next descriptor was the CPU's when the last run ended

	pausedUntil int64 // by a PAUSE frame
	notBefore   int64 // when the transmitter was last enabled
	pauseOut    bool  // a PAUSE frame is to be sent
	pauseTime   uint16

	kickAt      atomic.Int64  // when the first poll demand not yet seen came, + 1; 0: none
	suspendedAt atomic.Uint32 // descriptor at which the engine is suspended; 0: it is not
	unkicked    atomic.Int64  // when OWN was set there, + 1; 0: it was not, or a poll demand came
	kickWatch   atomic.Bool
}

// reset is what a software reset does. b.mu is held.
func (t *txEngine) reset(b *Board) {
	t.base, t.cur, t.curBuf = listBase{}, 0, 0
	t.stopping, t.dead, t.partial, t.underflow = false, false, false, false
	t.pauseOut, t.pausedUntil, t.hungAt = false, 0, 0
	t.epoch++
	t.kickAt.Store(0)
	t.suspendedAt.Store(0)
	t.unkicked.Store(0)
	b.txState.Store(tsStopped)
	b.lane.abort()
	b.lane.flushing = false
	b.unwatch(ringTX)
}

// start is ST going from 0 to 1 while stopped. b.mu is held.
func (t *txEngine) start(b *Board) {
	if !t.base.ever {
		b.violate(RuleStartOrder, "ST set, but the transmit list base was not written since the reset")
		return
	}
	if t.base.written {
		t.cur = t.base.addr
		t.base.written = false
		t.partial = false
	}
	t.chainSeen, t.ringSeen = false, false
	b.unwatch(ringTX)
	t.stopping = false
	now := b.clock.nanos()
	t.kickAt.Store(now + 1)
	b.txState.Store(tsSuspended) // the start is its first poll demand
	t.wake = true
}

// tryStop stops the engine once the frames that it has begun are out. b.mu is held.
func (t *txEngine) tryStop(b *Board) {
	if !t.stopping || b.lane.pending() > 0 || b.faults.frozen(BitST) {
		t.wake = true
		return
	}
	t.partial = false
	t.suspendedAt.Store(0)
	t.unkicked.Store(0)
	b.txState.Store(tsStopped)
	b.unwatch(ringTX)
	b.raise(stTPS)
}

// flush throws away the frames in the FIFO. b.mu is held.
func (t *txEngine) flush(b *Board) {
	b.lane.flushing = true
	t.wake = true
}

// suspend is the engine meeting a descriptor that the CPU owns. b.mu is held.
func (t *txEngine) suspend(b *Board) {
	if b.txState.Load() != tsSuspended || t.suspendedAt.Load() != t.cur {
		t.suspendedAt.Store(t.cur)
		b.txState.Store(tsSuspended)
	}
	b.raise(stTU)
	t.tryStop(b)
}

// txSource is a board as the source of a lane.
type txSource struct{ b *Board }

func (s *txSource) lock()   { s.b.mu.Lock() }
func (s *txSource) unlock() { s.b.mu.Unlock() }

// fetchAt is when the engine can look at its next descriptor.
func (s *txSource) fetchAt(l *lane) int64 {
	t := &s.b.tx
	if t.dead || TXHang(s.b.faults.txHang.Load()) == TXHangStopped {
		return never
	}
	switch s.b.txState.Load() {
	case tsStopped:
		return never
	case tsSuspended:
		k := t.kickAt.Load()
		if k == 0 {
			return never
		}
		return max(t.free, k-1-l.shift())
	}
	if t.stopping && !t.partial || t.wrapped(l) {
		return never
	}
	return t.free
}

// wrapped reports whether the engine has come round to a descriptor whose frame is still on its way: that has OWN set, but
// is not a new frame.
func (t *txEngine) wrapped(l *lane) bool {
	if t.partial {
		return false
	}
	if t.hungAt != 0 && t.cur == t.hungAt {
		return true
	}
	return l.sent != l.fetched && l.slot(l.sent).descBus == t.cur
}

// fetch reads the next frame into f.
func (s *txSource) fetch(l *lane, f *flight, w int64) bool {
	b := s.b
	t := &b.tx
	begin := t.free
	if b.txState.Load() == tsSuspended {
		k := t.kickAt.Swap(0)
		if k == 0 {
			return false
		}
		begin = max(begin, k-1-l.shift())
		if t.stopping {
			t.tryStop(b)
			return false
		}
		b.txState.Store(tsFetching)
		t.suspendedAt.Store(0)
		t.unkicked.Store(0)
	} else if k := t.kickAt.Load(); t.dry && k != 0 {
		begin = max(begin, k-1-l.shift())
	}
	t.dry = false
	lay := b.layout()
	for {
		m := b.arena.lookup(t.cur, lay.words*4, t.desc)
		if m == nil {
			b.violate(RuleDMAAddress, "transmit descriptor at bus 0x%08x", t.cur)
			b.fatal(BusErrorTXDescriptorRead)
			return false
		}
		t.desc = m
		at := int(t.cur-m.bus) / 4
		b.mark(ringTX, lay, m, at)
		d0 := loadWord(m, at)
		b.cnt.dmaReads++
		if d0&descOWN == 0 {
			if k := t.kickAt.Swap(0); k != 0 {
				begin = max(begin, k-1-l.shift())
				if loadWord(m, at)&descOWN != 0 {
					continue
				}
			}
			if t.partial {
				b.violate(RuleOwnOrder, "the frame's descriptor at bus 0x%08x is not the engine's yet", t.cur)
			}
			t.suspend(b)
			return false
		}
		d1, d2, d3 := loadWord(m, at+1), loadWord(m, at+2), loadWord(m, at+3)
		d := lay.decodeTX(d0, d1)
		if !s.take(f, m, at, &d, d2, d3, lay) {
			return false
		}
		next := lay.follow(t.cur, t.base.addr, d3, d.chained, d.end)
		this := t.cur
		t.cur = next
		if !d.last {
			b.giveBack(m, at, lay.txDone(d0, 0), this)
			continue
		}
		t.partial = false
		f.desc, f.descAt, f.descBus, f.d0, f.ic, f.epoch = m, at, this, d0, d.ic, t.epoch
		s.finish(f, begin)
		if l.unlimited {
			t.free = w
		}
		return true
	}
}

// take adds the buffers of one descriptor to the frame in f.
func (s *txSource) take(f *flight, m *block, at int, d *txDesc, d2, d3 uint32, lay layout) bool {
	b := s.b
	t := &b.tx
	if d.stale != 0 {
		b.violate(RuleStaleDescriptor, "transmit DES0 at bus 0x%08x has 0x%08x beside OWN", t.cur, d.stale)
	}
	t.noteStyle(b, d.chained, d.end)
	if d.first == t.partial {
		b.violate(RuleFirstLast, "transmit descriptor at bus 0x%08x: FS is %v, within a frame %v", t.cur, d.first, t.partial)
	}
	if d.first || !t.partial {
		f.reset()
		t.partial = true
		t.cic, t.noPad, t.noCRC = d.cic, d.noPad, d.noCRC
		if d.cic != 0 && b.reg[mustSlot(regOpMode)]&opTSF == 0 {
			b.violate(RuleCICWithoutTSF, "descriptor at bus 0x%08x, CIC %d", t.cur, d.cic)
		}
	}
	n2 := d.n2
	if d.chained {
		if n2 != 0 {
			b.violate(RuleBufferSize, "transmit descriptor at bus 0x%08x: chained, and buffer 2 of %d bytes", t.cur, n2)
		}
		n2 = 0
	}
	if d.n1 == 0 {
		b.violate(RuleBufferSize, "transmit descriptor at bus 0x%08x: buffer 1 is empty", t.cur)
	}
	return s.copy(f, d2, d.n1) && s.copy(f, d3, n2)
}

// copy reads one buffer.
func (s *txSource) copy(f *flight, bus uint32, n int) bool {
	if n == 0 {
		return true
	}
	b := s.b
	t := &b.tx
	t.curBuf = bus
	m := b.arena.lookup(bus, n, t.data)
	if m == nil {
		b.violate(RuleDMAAddress, "transmit buffer of %d bytes at bus 0x%08x", n, bus)
		b.fatal(BusErrorTXData)
		return false
	}
	t.data = m
	off := int(bus - m.bus)
	f.append(m.bytes[off : off+n])
	return true
}

// noteStyle checks that a list is a ring or a chain throughout.
func (t *txEngine) noteStyle(b *Board, chained, end bool) {
	t.chainSeen = t.chainSeen || chained
	t.ringSeen = t.ringSeen || end || !chained
	if t.chainSeen && t.ringSeen {
		b.violate(RuleMixedChain, "transmit descriptor at bus 0x%08x: chained %v, end of ring %v", t.cur, chained, end)
		t.chainSeen, t.ringSeen = false, false
	}
}

// giveBack writes DES0 of a descriptor without OWN. b.mu is held.
func (b *Board) giveBack(m *block, at int, d0, bus uint32) bool {
	if m.freed.Load() {
		b.violate(RuleDMAAddress, "status write to the freed descriptor at bus 0x%08x", bus)
		return false
	}
	if b.faults.scribble.Load() {
		for i := 1; i <= 3; i++ {
			storeWord(m, at+i, scribbled)
		}
	}
	storeWord(m, at, d0)
	b.cnt.dmaWrites++
	return true
}

// scribbled is what SetScribble leaves behind.
const scribbled = 0xA5A5A5A5

// done writes a frame's status back when it has left.
func (s *txSource) done(f *flight, w int64) {
	b := s.b
	t := &b.tx
	if f.epoch != t.epoch || f.desc == nil {
		return
	}
	t.free = max(t.free, f.end+statusTime) // with OSF too: the frame after the next one had to wait for this
	b.countTX(f)
	if b.faults.txHang.Load() == uint32(TXHangStatus) {
		if t.hungAt == 0 {
			t.hungAt = f.descBus
		}
		return
	}
	lay := b.layout()
	if !b.giveBack(f.desc, f.descAt, lay.txDone(f.d0, f.status), f.descBus) {
		b.fatal(BusErrorTXDescriptorWrite)
		return
	}
	bits := uint32(0)
	if f.ic {
		bits |= stTI
	}
	if f.status&txUF != 0 {
		bits |= stUNF
		b.txState.Store(tsSuspended)
		t.suspendedAt.Store(t.cur)
	}
	if f.status&txJT != 0 {
		bits |= stTJT
		t.dead = true
	}
	if bits != 0 {
		b.raise(bits)
	}
	if t.stopping {
		t.tryStop(b)
	}
}

// window is how many frames may be between descriptor and wire: with OSF a second one is read while the first leaves.
func (s *txSource) window() uint32 {
	if s.b.reg[mustSlot(regOpMode)]&opOSF != 0 {
		return 2
	}
	return 1
}

// idle looks ahead at the end of a run: if the next descriptor is not the engine's now, then the engine, which may be due
// to fetch it before the next run, must not find it earlier than the poll demand that follows.
func (s *txSource) idle() {
	b := s.b
	t := &b.tx
	t.dry = false
	if b.txState.Load() != tsFetching || t.desc == nil || !t.desc.holds(t.cur, 4) {
		return
	}
	t.kickAt.Store(0)
	t.dry = loadWord(t.desc, int(t.cur-t.desc.bus)/4)&descOWN == 0
}

// dmaTime is how long the bus needs for n bytes. b.mu is held.
func (b *Board) dmaTime(n int) int64 {
	rate := b.faults.bandwidth.Load()
	if rate == 0 {
		rate = b.opts.DMABytesPerSecond
	}
	return int64(n) * 1e9 / rate
}

// raiseQuietly latches bits that interrupt only if they are enabled one by one, which they rarely are.
func (b *Board) raiseQuietly(bits uint32) {
	if b.status.Load()&bits != bits {
		b.raise(bits)
	}
}
