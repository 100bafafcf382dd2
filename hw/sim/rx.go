package sim

import (
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"sync/atomic"
)

// rxSlots is how many frames the receive FIFO can hold whatever its size; a power of two.
const rxSlots = 128

// rxEngine is the MAC's receive FIFO and the receive DMA engine. Fields that are not atomic are guarded by the board's
// lock.
type rxEngine struct {
	base   listBase
	cur    uint32
	curBuf uint32
	desc   *block
	data   *block
	dead   bool // bus error, or latched by an overflow: no frame gets through until a reset

	entries   atomic.Int64 // of the ring; read by the cable without the lock
	chainSeen bool
	ringSeen  bool

	fifo       [rxSlots]rxFrame
	head, tail uint32 // run freely
	blocked    bool   // the frame at the head waits for a descriptor or a start
	free       int64  // when the bus is free
	riwtAt     int64  // when the interrupt watchdog fires
	flowOn     bool   // the sender was asked to pause
	flowAgain  int64  // when it must be asked again
	rand       *rand.PCG

	waiting atomic.Bool // a lane waits for a descriptor
}

// rxFrame is a frame in the receive FIFO, or on its way into memory.
type rxFrame struct {
	buf    []byte
	n      int // bytes for memory, with FCS unless it was stripped
	size   int // bytes of the FIFO
	wire   int // bytes on the wire without FCS
	status uint32
	ext    uint32 // RDES4
	at     int64  // when it is in memory
	dur    int64  // how long the bus needs
}

func (x *rxEngine) init(b *Board) { x.rand = rand.NewPCG(damageSeed, uint64(b.opts.Address[5])) }

// damageSeed makes the damage of SetRXDamageRate the same in each run.
const damageSeed = 0x0DD5EED

// reset is what a software reset does. b.mu is held.
func (x *rxEngine) reset(b *Board) {
	x.base, x.cur, x.curBuf = listBase{}, 0, 0
	x.dead, x.blocked, x.flowOn = false, false, false
	x.head = x.tail
	x.riwtAt, x.flowAgain = never, never
	b.rxState.Store(rsStopped)
	b.unwatch(ringRX)
}

// start is SR going from 0 to 1 while stopped. b.mu is held.
func (x *rxEngine) start(b *Board) {
	if !x.base.ever {
		b.violate(RuleStartOrder, "SR set, but the receive list base was not written since the reset")
		return
	}
	if x.base.written {
		x.cur = x.base.addr
		x.base.written = false
	}
	x.chainSeen, x.ringSeen = false, false
	x.entries.Store(int64(b.watchRX(x.base.addr)))
	b.rxState.Store(rsWaiting)
	x.unblock(b.wireNow())
	if !x.owned(b) {
		x.suspend(b)
	}
	b.tx.wake = b.tx.wake || x.head != x.tail
}

// stop is SR going from 1 to 0. The engine is never within a frame here. b.mu is held.
func (x *rxEngine) stop(b *Board) {
	if b.faults.frozen(BitSR) {
		return
	}
	b.rxState.Store(rsStopped)
	x.blocked = x.head != x.tail
	b.unwatch(ringRX)
	b.raise(stRPS)
}

// owned reports whether the current descriptor is the engine's. b.mu is held.
func (x *rxEngine) owned(b *Board) bool {
	m := b.arena.lookup(x.cur, 16, x.desc)
	if m == nil {
		return true // let the fetch fail
	}
	x.desc = m
	b.cnt.dmaReads++
	return loadWord(m, int(x.cur-m.bus)/4)&descOWN != 0
}

// suspend is the engine meeting a descriptor that the CPU owns. b.mu is held.
func (x *rxEngine) suspend(b *Board) {
	if b.rxState.Load() == rsWaiting {
		b.rxState.Store(rsSuspended)
		b.raise(stRU)
	}
}

// kickRX is a receive poll demand.
func (b *Board) kickRX() {
	b.cnt.rxKicks.Add(1)
	if b.rxState.Load() != rsSuspended {
		return
	}
	b.mu.Lock()
	if b.rxState.Load() == rsSuspended && b.rx.owned(b) {
		b.rxState.Store(rsWaiting)
		b.rx.unblock(b.wireNow())
	}
	b.mu.Unlock()
	b.pokeNow()
}

// unblock lets the frame at the head go on at a time. b.mu is held.
func (x *rxEngine) unblock(w int64) {
	x.blocked = false
	if x.head != x.tail {
		fr := &x.fifo[x.head%rxSlots]
		fr.at = max(fr.at, w)
	}
}

// wireNow is the present in wire time.
func (b *Board) wireNow() int64 {
	now := b.clock.nanos()
	if r := b.runner.Load(); r != nil {
		now -= r.shift.Load()
	}
	return now
}

// run moves what is due into memory. b.mu is held.
func (x *rxEngine) run(b *Board, w int64, m laneMode) {
	if x.riwtAt <= w {
		x.riwtAt = never
		b.raise(stRI)
	}
	for x.head != x.tail {
		fr := &x.fifo[x.head%rxSlots]
		if fr.at > w {
			break
		}
		if x.blocked {
			if b.rxState.Load() == rsStopped || !x.owned(b) {
				break
			}
			x.unblock(w)
		}
		if !x.toMemory(b, fr, w, m.lossless || b.reg[mustSlot(regOpMode)]&opDFF != 0) {
			x.blocked = true
			break
		}
		x.head++
	}
	if x.flowOn {
		x.flow(b, w)
	}
}

// next is when run has something to do. b.mu is held.
func (x *rxEngine) next() int64 {
	at := min(x.riwtAt, x.flowAgain)
	if x.head != x.tail && !x.blocked {
		at = min(at, x.fifo[x.head%rxSlots].at)
	}
	return at
}

// fill is the FIFO fill level as the debug register has it.
func (x *rxEngine) fill(b *Board) uint32 {
	switch n := x.occupied(b.wireNow()); {
	case x.head == x.tail:
		return 0
	case n >= b.opts.RXFIFOBytes*15/16:
		return 3
	case x.flowOn:
		return 2
	}
	return 1
}

// occupied is how many bytes are in the FIFO at a time. b.mu is held.
func (x *rxEngine) occupied(at int64) int {
	sum := 0
	for i := x.head; i != x.tail; i++ {
		fr := &x.fifo[i%rxSlots]
		switch left := fr.at - at; {
		case x.blocked || left >= fr.dur:
			sum += fr.size
		case left > 0:
			sum += int(int64(fr.size) * left / fr.dur)
		}
	}
	return sum
}

// rxSink is a board as the sink of a lane.
type rxSink struct{ b *Board }

func (s *rxSink) lock()                   { s.b.mu.Lock() }
func (s *rxSink) unlock()                 { s.b.mu.Unlock() }
func (s *rxSink) run(w int64, m laneMode) { s.b.rx.run(s.b, w, m) }

// quota is a quarter of the ring, so that a driver that was not given the CPU is not flooded.
func (s *rxSink) quota() int {
	if n := int(s.b.rx.entries.Load() / 4); n > 0 && s.b.rxState.Load() != rsStopped {
		return n
	}
	return noQuota
}

// arrive is the end of a frame at the PHY.
func (s *rxSink) arrive(f *flight, at int64, m laneMode) bool {
	b := s.b
	x := &b.rx
	if f.fate != fateLoop {
		if b.reg[mustSlot(regConfig)]&cfgRE == 0 || !b.phy.up() || b.reg[mustSlot(regPMT)]&pmtPowerDown != 0 {
			b.cnt.dropDisabled++
			return true
		}
		if b.phy.speed != b.macSpeed() {
			b.cnt.dropSpeed++
			return true
		}
	} else if b.reg[mustSlot(regConfig)]&cfgRE == 0 {
		b.cnt.dropDisabled++
		return true
	}
	direct := m.perByte == 0 && x.head == x.tail
	if m.lossless && !x.room(b, f, direct, at) {
		return false
	}
	if !f.fcsBad && draw(x.rand, &b.faults.damage) {
		f.fcsBad = true
		flip(f, x.rand.Uint64())
	}
	slot := &x.fifo[x.tail%rxSlots]
	if !b.admit(f, slot, at) {
		return true
	}
	if direct {
		slot.buf, f.buf = f.buf, slot.buf
		ok := x.toMemory(b, slot, at, false)
		slot.buf, f.buf = f.buf, slot.buf
		_ = ok
		return true
	}
	if room := b.opts.RXFIFOBytes - x.occupied(at); slot.size > room || x.tail-x.head == rxSlots {
		b.overflow()
		if !x.cutShort(b, slot, room) {
			return true
		}
	}
	slot.buf, f.buf = f.buf, slot.buf
	slot.dur = descTime + b.dmaTime(slot.n)
	slot.at = max(at, x.free) + slot.dur
	x.free = slot.at
	x.tail++
	x.flow(b, at)
	return true
}

// cutShort makes the best of a frame that did not fit the FIFO: in threshold mode its beginning is on its way into memory
// already, and is closed with OE and a length of 0. b.mu is held.
func (x *rxEngine) cutShort(b *Board, fr *rxFrame, room int) bool {
	op := b.reg[mustSlot(regOpMode)]
	room &^= 15
	if op&opRSF != 0 || x.dead || room < rxThresholds[op>>opRTC&3] || x.tail-x.head == rxSlots {
		return false
	}
	fr.n, fr.size = room, room
	fr.status = rxOE | rxES
	return true
}

// room reports whether a frame that may wait can be taken now. b.mu is held.
func (x *rxEngine) room(b *Board, f *flight, direct bool, at int64) bool {
	if b.rxState.Load() == rsStopped || x.dead {
		return true // lost as it would be on hardware: nothing will make room
	}
	if !direct {
		return x.tail-x.head < rxSlots && x.occupied(at)+f.n+fcsBytes <= b.opts.RXFIFOBytes || x.head == x.tail
	}
	if x.owned(b) {
		return true
	}
	x.suspend(b)
	return false
}

// overflow counts a frame that did not fit the FIFO. b.mu is held.
func (b *Board) overflow() {
	b.cnt.dropOverflow++
	b.countMMC(mmcRXOverflow, 1)
	b.countFIFO()
	if b.faults.deadOnOvf.Load() {
		b.rx.dead = true
	}
	b.raise(stOVF)
}

// countFIFO counts in the upper half of the missed frame register. b.mu is held.
func (b *Board) countFIFO() {
	i := mustSlot(regMissed)
	if b.reg[i]>>fifoShift&fifoMax == fifoMax {
		b.reg[i] = b.reg[i]&^(fifoMax<<fifoShift) | fifoOverflow
		return
	}
	b.reg[i] += 1 << fifoShift
}

// missed counts a frame for which there was no descriptor. b.mu is held.
func (b *Board) missed() {
	b.cnt.dropDescriptor++
	i := mustSlot(regMissed)
	if b.reg[i]&missedMax == missedMax {
		b.reg[i] = b.reg[i]&^missedMax | missedOverflow
		return
	}
	b.reg[i]++
}

// putFCS writes four bytes behind a frame as its FCS.
func (b *Board) putFCS(p []byte, n int, bad bool) {
	if !b.opts.RealFCS {
		copy(p[n:], "fcs?")
		return
	}
	v := crc32.ChecksumIEEE(p[:n])
	if bad {
		v = ^v
	}
	binary.LittleEndian.PutUint32(p[n:], v)
}
