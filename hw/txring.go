package hw

import (
	"math"
	"sync/atomic"
)

// TXFlags say how a frame is sent.
type TXFlags struct {
	// Interrupt raises TI when the frame is out. Frames without it complete silently and are found by the next Reclaim.
	Interrupt bool
	// Checksum says what the MAC inserts. It needs the feature, and a frame of at most TXRing.MaxChecksum bytes.
	Checksum CIC
}

// TXDone is what one Reclaim found completed. Bytes are those given to Commit.
type TXDone struct {
	Frames, Slots, Bytes int
	Errors               int // frames among them that did not go out well
}

// TXRing is the transmit ring: slots of one descriptor and one buffer each, in DMA memory.
//
// There is one producer (Free, Write, Discard, Commit, Kick) and one consumer (Reclaim) at a time. They may be different
// goroutines that run at once; two producers, or two consumers, need a lock of their own. Pending and Stats may be called
// from anywhere. Start, Stop, Reset, RestartTX and Close of the MAC exclude both.
//
// A frame is written piece by piece into the free slots, then published by Commit. Which slots are in use is known by two
// indices that run freely and wrap at 32 bits, one moved by each side: a slot is completed when it is between them and the
// DMA has cleared OWN. OWN alone says nothing: it is clear as well in a slot that the producer is about to hand over.
type TXRing struct {
	block
	reg         Registers
	wake        func() // ends the poll loop's wait
	maxFrame    int
	maxChecksum int // 0: no checksum insertion
	closed      atomic.Bool

	// Producer.
	prod  atomic.Uint32 // slots ever published
	head  int           // slot that the next frame starts in
	wrote int           // end of the bytes written into the frame under construction
	lost  int           // start of those that found no slot

	// Consumer.
	cons  atomic.Uint32 // slots ever reclaimed
	tail  int
	scans atomic.Uint32 // calls of Reclaim, see Commit

	// shadow is what the descriptors of a frame do not tell once the DMA has written to them, by the frame's first slot.
	// An entry is the producer's outside cons..prod and the consumer's within.
	shadow []txFrame

	stats txCounters
}

// txFrame is a frame in the ring.
type txFrame struct {
	bytes uint32
	slots uint32
}

const nothingLost = math.MaxInt

// Errors of Commit, made once: the hot path allocates nothing.
var (
	errTXClosed   = &Error{Op: "commit frame", Err: ErrClosed}
	errTXLength   = &Error{Op: "commit frame", Hint: "length below 14 bytes or above TXRing.MaxFrame", Err: ErrConfig}
	errTXHole     = &Error{Op: "commit frame", Hint: "length beyond the bytes written", Err: ErrConfig}
	errTXChecksum = &Error{Op: "commit frame", Hint: "checksum insertion above TXRing.MaxChecksum", Err: ErrConfig}
	errTXCIC      = &Error{Op: "commit frame", Hint: "no transmit checksum engine", Err: ErrUnsupported}
)

func newTXRing(b block, reg Registers, wake func(), maxChecksum int) *TXRing {
	r := &TXRing{
		block: b, reg: reg, wake: wake, lost: nothingLost,
		maxFrame:    min(maxJabber-fcsBytes, b.slots*b.slotBytes),
		maxChecksum: maxChecksum,
		shadow:      make([]txFrame, b.slots),
	}
	return r
}

// Slots is the number of slots.
func (r *TXRing) Slots() int { return r.slots }

// SlotBytes is the number of bytes that fit a slot. A longer frame takes several.
func (r *TXRing) SlotBytes() int { return r.slotBytes }

// MaxFrame is the length of the longest frame that Commit takes, without FCS.
func (r *TXRing) MaxFrame() int { return r.maxFrame }

// MaxChecksum is the length of the longest frame, without FCS, that the MAC can insert checksums into; 0 if it has no engine
// for that. The engine holds a frame back until its sum is known, so the frame and the bursts under way must fit the FIFO:
// beyond that the sum would be wrong and frames behind it damaged (TI SLAU723A, EMAC, transmit checksum offload engine).
func (r *TXRing) MaxChecksum() int { return r.maxChecksum }

// Free is the number of free slots, as the producer sees them. It can only grow until the next Commit.
func (r *TXRing) Free() int { return r.slots - int(r.prod.Load()-r.cons.Load()) }

// Pending is the number of slots committed and not yet reclaimed.
func (r *TXRing) Pending() int {
	// The consumer's index first: read the other way round, a Commit and a Reclaim between the loads would make it
	// negative.
	cons := r.cons.Load()
	return min(int(r.prod.Load()-cons), r.slots)
}

// Write copies p into the frame under construction, at byte off from its start. Pieces may come in any order. What finds no
// free slot is dropped and remembered: Commit of a frame that it belongs to fails. A negative off and a closed MAC make
// Commit fail too.
func (r *TXRing) Write(off int, p []byte) {
	if len(p) == 0 {
		return
	}
	if off < 0 || r.closed.Load() {
		r.lost = 0
		return
	}
	space := r.Free()*r.slotBytes - off
	if len(p) > space {
		r.lost = min(r.lost, off+max(space, 0))
		if space <= 0 {
			return
		}
		p = p[:space]
	}
	r.wrote = max(r.wrote, off+len(p))
	slot, in := r.head, off
	if off >= r.slotBytes {
		slot, in = r.at(r.head, off/r.slotBytes), off%r.slotBytes
	}
	for len(p) > 0 {
		n := min(len(p), r.slotBytes-in)
		r.mem.CopyIn(r.buffer(slot)+in, p[:n])
		p, in = p[n:], 0
		slot = r.at(slot, 1)
	}
}

// Discard forgets the frame under construction.
func (r *TXRing) Discard() { r.wrote, r.lost = 0, nothingLost }

// Commit publishes the frame under construction, n bytes from its start without FCS, and hands it to the DMA, which may send
// it at once: account for it before. Frames shorter than 60 bytes are padded by the MAC. The frame under construction is
// gone afterwards, also when Commit fails.
//
// Errors match [ErrRingFull] (not enough free slots), [ErrConfig] (n below 14, above MaxFrame or beyond what was written; too
// long for a checksum), [ErrUnsupported] (checksum without an engine) or [ErrClosed].
//
// If the consumer looked at the ring while the frame was handed over, it may have seen the interrupt of the frame and not the
// frame. Commit then calls the port's Interrupt.Wake, so that the poll loop looks again.
func (r *TXRing) Commit(n int, o TXFlags) error {
	wrote, lost := r.wrote, r.lost
	r.Discard()
	switch {
	case r.closed.Load():
		return errTXClosed
	case n < headerBytes || n > r.maxFrame:
		return errTXLength
	case o.Checksum != CICNone && r.maxChecksum == 0:
		return errTXCIC
	case o.Checksum != CICNone && n > r.maxChecksum:
		return errTXChecksum
	}
	slots := 1
	if n > r.slotBytes {
		slots = (n + r.slotBytes - 1) / r.slotBytes
	}
	if n > lost || slots > r.Free() {
		return ErrRingFull
	}
	if n > wrote {
		return errTXHole // whatever an earlier frame left there would go out
	}

	// The slots behind the first may be the DMA's at once: it stops at the first, which is still the CPU's.
	for i := slots - 1; i > 0; i-- {
		slot := r.at(r.head, i)
		last := i == slots-1
		w := r.layout.EncodeTX(TXDesc{
			Own: true, Last: last, Interrupt: last && o.Interrupt, EndOfRing: r.last(slot),
			Bytes: min(r.slotBytes, n-i*r.slotBytes), Addr: r.bus(slot),
		})
		r.storeTail(slot, w)
		r.mem.Store32(r.desc(slot), w[0])
	}
	w := r.layout.EncodeTX(TXDesc{
		Own: true, First: true, Last: slots == 1, Interrupt: slots == 1 && o.Interrupt, Checksum: o.Checksum,
		EndOfRing: r.last(r.head), Bytes: min(r.slotBytes, n), Addr: r.bus(r.head),
	})
	r.storeTail(r.head, w)
	r.shadow[r.head] = txFrame{bytes: uint32(n), slots: uint32(slots)}
	scans := r.scans.Load()

	// Hand-over. Payload, DES1 to DES3 and the OWN of the later slots must be in memory before the DMA can see this OWN,
	// with which the frame becomes its own. Linux has the same barrier in stmmac_xmit (stmmac_main.c, dma_wmb).
	r.mem.Barrier()
	r.mem.Store32(r.desc(r.head), w[0])

	// Only now the consumer: before, it would take the clear OWN of the first slot for a completed frame.
	r.head = r.at(r.head, slots)
	r.prod.Add(uint32(slots))
	if r.scans.Load() != scans && r.wake != nil {
		r.wake()
	}
	return nil
}

// Kick tells the DMA that there are frames: one barrier, one register write. It is cheap enough for each burst and needed
// after each: an engine that found nothing to send is suspended until then.
func (r *TXRing) Kick() {
	if r.closed.Load() {
		return
	}
	// OWN must be in memory before the DMA is told to look, or it goes back to sleep over an old descriptor.
	r.mem.Barrier()
	r.reg.Store32(RegTXPollDemand, pollDemandValue)
}

// Reclaim frees the slots of all frames completed since the last call, in order. It reads one descriptor word of each frame,
// the status in its last slot, once, and that of the first frame that is not completed.
func (r *TXRing) Reclaim() TXDone {
	if r.closed.Load() {
		return TXDone{}
	}
	return r.reclaim()
}

func (r *TXRing) reclaim() TXDone {
	var d TXDone
	r.scans.Add(1) // before prod is read, see Commit
	var t txTally
	cons := r.cons.Load()
	used := int(r.prod.Load() - cons)
	for d.Slots < used {
		f := r.shadow[r.tail]
		n := int(f.slots)
		// OWN of the earlier slots clears when their data is in the FIFO; the frame is out when the last one's is clear.
		s := TXStatus(r.mem.Load32(r.desc(r.at(r.tail, n-1))))
		if s.Own() {
			break
		}
		d.Frames++
		d.Slots += n
		d.Bytes += int(f.bytes)
		if s&statusTXMask != 0 && t.add(s) {
			d.Errors++
		}
		r.tail = r.at(r.tail, n)
	}
	if d.Slots > 0 {
		r.cons.Store(cons + uint32(d.Slots))
		r.stats.add(d, &t)
	}
	return d
}

// rebuild empties the ring and writes every descriptor anew, owned by the CPU. The transmit DMA is stopped; the list base
// must be written before it starts again, as it would go on where it stopped.
func (r *TXRing) rebuild() {
	r.dropPending()
	r.head, r.tail = 0, 0
	r.Discard()
	for i := range r.slots {
		w := r.layout.EncodeTX(TXDesc{EndOfRing: r.last(i), Addr: r.bus(i)})
		r.storeTail(i, w)
		r.mem.Store32(r.desc(i), w[0])
	}
	r.mem.Barrier()
}

// dropPending counts the frames still in the ring as flushed and forgets them.
func (r *TXRing) dropPending() {
	cons := r.cons.Load()
	pending := int(r.prod.Load() - cons)
	for n := 0; n < pending; {
		f := r.shadow[r.at(r.tail, n)]
		n += int(f.slots)
		r.stats.flushed.Add(1)
	}
	r.cons.Store(cons + uint32(pending))
}

// abandon is the end of a ring whose DMA has stopped: what was sent is counted as that, the rest as flushed.
func (r *TXRing) abandon() {
	r.reclaim()
	r.dropPending()
}

// TXStats counts what became of frames, since Open. A frame with an error is in Errors and under one cause for each bit.
type TXStats struct {
	Frames, Bytes uint64 // completed, those with errors included; bytes without FCS and padding
	Flushed       uint64 // thrown away in the ring by Start, Reset, RestartTX or Close
	Errors        uint64
	Underflow     uint64 // FIFO ran dry
	Jabber        uint64
	FIFOFlushed   uint64 // thrown away in the FIFO
	PayloadSum    uint64 // payload checksum not inserted
	HeaderSum     uint64 // IP header checksum not inserted
	ExcessDefer   uint64
	ExcessColl    uint64
	LateColl      uint64
	NoCarrier     uint64
	CarrierLost   uint64
	Deferred      uint64 // not an error
	Collisions    uint64 // not an error
}

// txTally sums up one Reclaim, so that the atomic counters are touched once for a batch.
type txTally struct {
	errors, deferred, collisions uint64
	cause                        [len(txCauses)]uint64
}

// txCauses are the bits counted one by one.
var txCauses = [...]TXStatus{
	TXUnderflow, TXJabber, TXFlushed, TXPayloadSum, TXHeaderSum, TXExcessDeferral, TXExcessColl, TXLateColl, TXNoCarrier,
	TXCarrierLost,
}

// add counts the status of one frame and reports whether it has an error.
func (t *txTally) add(s TXStatus) bool {
	if s&TXDeferred != 0 {
		t.deferred++
	}
	t.collisions += uint64(s.Collisions())
	if s.Errors() == 0 {
		return false
	}
	t.errors++
	for i, bit := range txCauses {
		if s&bit != 0 {
			t.cause[i]++
		}
	}
	return true
}

type txCounters struct {
	frames, bytes, flushed, errors, deferred, collisions atomic.Uint64
	cause                                                [len(txCauses)]atomic.Uint64
}

func (c *txCounters) add(d TXDone, t *txTally) {
	c.frames.Add(uint64(d.Frames))
	c.bytes.Add(uint64(d.Bytes))
	if t.deferred|t.collisions != 0 {
		c.deferred.Add(t.deferred)
		c.collisions.Add(t.collisions)
	}
	if t.errors == 0 {
		return
	}
	c.errors.Add(t.errors)
	for i, n := range t.cause {
		c.cause[i].Add(n)
	}
}

// Stats are the ring's counters. It may be called from anywhere, also after Close.
func (r *TXRing) Stats() TXStats {
	c := &r.stats
	return TXStats{
		Frames: c.frames.Load(), Bytes: c.bytes.Load(), Flushed: c.flushed.Load(), Errors: c.errors.Load(),
		Underflow: c.cause[0].Load(), Jabber: c.cause[1].Load(), FIFOFlushed: c.cause[2].Load(),
		PayloadSum: c.cause[3].Load(), HeaderSum: c.cause[4].Load(), ExcessDefer: c.cause[5].Load(),
		ExcessColl: c.cause[6].Load(), LateColl: c.cause[7].Load(), NoCarrier: c.cause[8].Load(),
		CarrierLost: c.cause[9].Load(), Deferred: c.deferred.Load(), Collisions: c.collisions.Load(),
	}
}
