package hw

import "sync/atomic"

// RXFrame is a frame that the MAC received.
type RXFrame struct {
	Len     int     // bytes without FCS. With Err set it may be anything from 0 to what its slots hold
	Err     RXError // 0: good
	Verdict Verdict // of the checksum engine
	VLAN    bool    // the first tag is a VLAN tag
	Slots   int     // slots that it lies in
}

// RXRing is the receive ring: slots of one descriptor and one buffer each, in DMA memory. One goroutine at a time uses it;
// only Stats may be called from anywhere. Start, Stop, Reset and Close of the MAC exclude it.
//
// For each frame: Next, CopyOut if it is wanted, Release always. After a batch, Resume. The buffers stay where they are: the
// caller never sees DMA memory, and what it does to its copy cannot reach it.
type RXRing struct {
	block
	reg      Registers
	checksum bool // a type 2 checksum engine is on
	noInt    bool // DIC in each descriptor: the receive watchdog interrupts
	closed   atomic.Bool

	next int // slot of the next frame's start
	// part is the number of slots of a frame seen so far whose end the DMA has not written yet. They are not read again.
	part   int
	orphan bool // those slots began without FS

	held int // slots of the frame that Next returned and Release has not given back
	len  int // its length

	stats rxCounters
}

func newRXRing(b block, reg Registers, noInt bool) *RXRing {
	return &RXRing{block: b, reg: reg, noInt: noInt}
}

// Slots is the number of slots.
func (r *RXRing) Slots() int { return r.slots }

// SlotBytes is the size of a slot's buffer. A frame, its FCS included, must fit one slot, or it is an error.
func (r *RXRing) SlotBytes() int { return r.slotBytes }

// Next is the next complete frame, or false if there is none: the ring is empty, the frame before was not released or the MAC
// is closed. A frame that takes several slots is reported once, with an error, when its last slot is there.
func (r *RXRing) Next() (RXFrame, bool) {
	if r.held != 0 || r.closed.Load() {
		return RXFrame{}, false
	}
	for r.part < r.slots {
		// The one read of this word. OWN clear means that the DMA is done with the slot and has written all of the word.
		s := RXStatus(r.mem.Load32(r.desc(r.at(r.next, r.part))))
		if s.Own() {
			return RXFrame{}, false
		}
		switch {
		case r.part == 0:
			r.orphan = !s.First()
		case s.First(): // the frame before has no end
			return r.broken(r.part), true
		}
		r.part++
		if s.Last() {
			return r.complete(s), true
		}
	}
	return r.broken(r.slots), true // the whole ring without an end: nothing more can come
}

// complete reports the frame of the r.part slots seen, s being the status of the last.
func (r *RXRing) complete(s RXStatus) RXFrame {
	slots := r.part
	f := RXFrame{
		Len: s.FrameBytes() - fcsBytes, Err: s.Errors(r.checksum), Verdict: s.Verdict(r.checksum),
		VLAN: s&rxVLAN != 0, Slots: slots,
	}
	if r.orphan {
		f.Err |= RXBroken
	}
	if slots > 1 {
		f.Err |= RXTooLong
	} else if s.FrameBytes() > r.slotBytes {
		f.Err |= RXBadLength
	}
	if f.Len < headerBytes && f.Err == 0 {
		f.Err = RXRunt
	}
	f.Len = min(max(f.Len, 0), slots*r.slotBytes)
	if s&rxDribble != 0 {
		r.stats.dribble.Add(1)
	}
	r.hold(f)
	return f
}

// broken reports slots that do not make a frame.
func (r *RXRing) broken(slots int) RXFrame {
	f := RXFrame{Err: RXBroken, Slots: slots}
	if slots > 1 {
		f.Err |= RXTooLong
	}
	r.hold(f)
	return f
}

func (r *RXRing) hold(f RXFrame) {
	r.held, r.len, r.part = f.Slots, f.Len, 0
	r.stats.add(f)
	// OWN was read clear. The barrier keeps the reads of the frame's bytes from being done before that.
	r.mem.Barrier()
}

// CopyOut copies the frame that Next returned into dst, from its first byte, at most its Len bytes. Each byte of DMA memory
// is read at most once; it is uncached on most systems, so copy everything at once and work on the copy.
func (r *RXRing) CopyOut(dst []byte) {
	if r.closed.Load() {
		return
	}
	dst = dst[:min(len(dst), r.len)]
	for slot := r.next; len(dst) > 0; slot = r.at(slot, 1) {
		n := min(len(dst), r.slotBytes)
		r.mem.CopyOut(dst[:n], r.buffer(slot))
		dst = dst[n:]
	}
}

// Release gives the slots of the frame that Next returned back to the DMA, whatever it was. Without such a frame it does
// nothing.
func (r *RXRing) Release() {
	if r.closed.Load() {
		return
	}
	for ; r.held > 0; r.held-- {
		r.arm(r.next)
		r.next = r.at(r.next, 1)
	}
	r.len = 0
}

// arm hands slot i to the DMA, all words anew.
func (r *RXRing) arm(i int) {
	w := r.layout.EncodeRX(RXDesc{Own: true, NoInterrupt: r.noInt, EndOfRing: r.last(i), Bytes: r.slotBytes, Addr: r.bus(i)})
	r.storeTail(i, w)
	// The frame's bytes were read and DES1 to DES3 are in memory before the DMA sees OWN (Linux stmmac_main.c,
	// stmmac_rx_refill, dma_wmb).
	r.mem.Barrier()
	r.mem.Store32(r.desc(i), w[0])
}

// Resume restarts the receive engine if it has suspended for want of a slot: at most one register read and one write. Call
// it after a batch of Releases. An engine that suspends just after, on a descriptor that it read before the Release, raises
// RU, so the caller comes back; and it looks again by itself when the next frame arrives.
func (r *RXRing) Resume() {
	if r.closed.Load() {
		return
	}
	r.mem.Barrier() // the OWNs of the batch, before the engine's state is looked at
	if rxState(r.reg.Load32(RegStatus)).Suspended() {
		r.stats.resumed.Add(1)
		r.reg.Store32(RegRXPollDemand, pollDemandValue)
	}
}

// rebuild hands all slots to the DMA, which is stopped, from the first on.
func (r *RXRing) rebuild() {
	r.next, r.part, r.held, r.len, r.orphan = 0, 0, 0, 0, false
	for i := range r.slots {
		r.arm(i)
	}
	r.mem.Barrier()
}

// RXStats counts what was received, since Open. A frame with several errors counts under the first of them, in the order
// below.
type RXStats struct {
	Frames, Bytes uint64 // good ones; bytes without FCS
	Errors        uint64 // the sum of what follows
	TooLong       uint64
	Broken        uint64
	Truncated     uint64
	FIFO          uint64
	Cut           uint64
	Receive       uint64
	LateColl      uint64
	CRC           uint64
	Giant         uint64
	Runt          uint64
	BadLength     uint64
	Length        uint64
	HeaderSum     uint64
	PayloadSum    uint64
	Other         uint64

	Dribble uint64 // with a dribbling bit; not an error by itself
	Resumed uint64 // times that Resume found the engine suspended
}

type rxCounters struct {
	frames, bytes, errors, dribble, resumed atomic.Uint64
	cause                                   [rxErrorsCount]atomic.Uint64 // by bit of RXError
}

func (c *rxCounters) add(f RXFrame) {
	if f.Err == 0 {
		c.frames.Add(1)
		c.bytes.Add(uint64(f.Len))
		return
	}
	c.errors.Add(1)
	c.cause[f.Err.first()].Add(1)
}

// Stats are the ring's counters. It may be called from anywhere, also after Close.
func (r *RXRing) Stats() RXStats {
	c := &r.stats
	s := RXStats{
		Frames: c.frames.Load(), Bytes: c.bytes.Load(), Errors: c.errors.Load(),
		Dribble: c.dribble.Load(), Resumed: c.resumed.Load(),
	}
	for i, p := range [rxErrorsCount]*uint64{
		&s.TooLong, &s.Broken, &s.Truncated, &s.FIFO, &s.Cut, &s.Receive, &s.LateColl, &s.CRC, &s.Giant, &s.Runt,
		&s.BadLength, &s.Length, &s.HeaderSum, &s.PayloadSum, &s.Other,
	} {
		*p = c.cause[i].Load()
	}
	return s
}
