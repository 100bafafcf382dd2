package sim

// toMemory writes a frame through the descriptors. It returns false if the frame must stay because there is no
// descriptor and keep is set; otherwise the frame is gone, one way or the other. b.mu is held.
func (x *rxEngine) toMemory(b *Board, fr *rxFrame, w int64, keep bool) bool {
	if b.rxState.Load() == rsStopped {
		if !keep && x.head == x.tail { // straight from the wire
			b.missed()
			return true
		}
		return false
	}
	if x.dead {
		b.missed()
		return true
	}
	if !x.owned(b) {
		x.suspend(b)
		if keep {
			return false
		}
		b.missed()
		return true
	}
	b.rxState.Store(rsWaiting)
	x.write(b, fr, w)
	return true
}

// write fills descriptors with the frame; the first one is the engine's. b.mu is held.
func (x *rxEngine) write(b *Board, fr *rxFrame, w int64) {
	lay := b.layout()
	done := 0
	first := uint32(rxFS)
	for {
		m := b.arena.lookup(x.cur, lay.words*4, x.desc)
		if m == nil {
			b.violate(RuleDMAAddress, "receive descriptor at bus 0x%08x", x.cur)
			b.fatal(BusErrorRXDescriptorRead)
			return
		}
		x.desc = m
		at := int(x.cur-m.bus) / 4
		b.mark(ringRX, lay, m, at)
		d0, d1, d2, d3 := loadWord(m, at), loadWord(m, at+1), loadWord(m, at+2), loadWord(m, at+3)
		d := lay.decodeRX(d1)
		x.check(b, d0, &d)
		n2 := d.n2
		if d.chained && !d.end {
			n2 = 0
		}
		n, ok := x.fillBuffer(b, d2, fr.buf[done:fr.n], d.n1)
		done += n
		if ok {
			n, ok = x.fillBuffer(b, d3, fr.buf[done:fr.n], n2)
			done += n
		}
		if !ok {
			return
		}
		this := x.cur
		x.cur = lay.follow(this, x.base.addr, d3, d.chained, d.end)
		status := first
		first = 0
		last := done == fr.n
		cut := false
		if !last && (d.n1 == 0 && n2 == 0 || !x.owned(b)) {
			last, cut = true, true
		}
		if last {
			status |= rxLS | fr.status | uint32(fr.n)<<rxFL
			if fr.status&rxOE != 0 {
				status &^= rxFLMask
			}
			if cut {
				status = status&^rxFLMask | rxDE | rxES | uint32(done)<<rxFL
			}
			if lay.words == 8 {
				storeWord(m, at+4, fr.ext)
			}
		} else {
			status |= uint32(done) << rxFL
		}
		if !b.giveBack(m, at, status, this) {
			b.fatal(BusErrorRXDescriptorWrite)
			return
		}
		if last {
			x.finish(b, fr, &d, w, cut)
			return
		}
		b.raiseQuietly(stERI)
	}
}

// check looks for what a driver must not put into a receive descriptor.
func (x *rxEngine) check(b *Board, d0 uint32, d *rxDesc) {
	if d0 != descOWN {
		b.violate(RuleStaleDescriptor, "receive DES0 at bus 0x%08x has 0x%08x beside OWN", x.cur, d0&^descOWN)
	}
	bus := b.opts.BusBytes
	switch {
	case d.chained && d.n2 != 0:
		b.violate(RuleBufferSize, "receive descriptor at bus 0x%08x: chained, and buffer 2 of %d bytes", x.cur, d.n2)
	case d.n1%bus != 0 || d.n2%bus != 0:
		b.violate(RuleBufferSize, "receive descriptor at bus 0x%08x: buffers of %d and %d bytes on a bus of %d", x.cur, d.n1, d.n2, bus)
	case d.n1 == 0 && d.n2 == 0:
		b.violate(RuleBufferSize, "receive descriptor at bus 0x%08x has no buffer", x.cur)
	}
	x.chainSeen = x.chainSeen || d.chained
	x.ringSeen = x.ringSeen || d.end || !d.chained
	if x.chainSeen && x.ringSeen {
		b.violate(RuleMixedChain, "receive descriptor at bus 0x%08x: chained %v, end of ring %v", x.cur, d.chained, d.end)
		x.chainSeen, x.ringSeen = false, false
	}
}

// fillBuffer writes as much of p as a buffer takes.
func (x *rxEngine) fillBuffer(b *Board, bus uint32, p []byte, size int) (int, bool) {
	n := min(len(p), size)
	if n == 0 {
		return 0, true
	}
	x.curBuf = bus
	m := b.arena.lookup(bus, n, x.data)
	if m == nil {
		b.violate(RuleDMAAddress, "receive buffer of %d bytes at bus 0x%08x", n, bus)
		b.fatal(BusErrorRXData)
		return 0, false
	}
	x.data = m
	copy(m.bytes[bus-m.bus:], p[:n])
	return n, true
}

// finish ends a frame: counts, interrupt, and a look at the next descriptor.
func (x *rxEngine) finish(b *Board, fr *rxFrame, d *rxDesc, w int64, cut bool) {
	if cut {
		b.cnt.truncated++
	} else if fr.status&rxOE == 0 { // else it is an overflow already

		b.cnt.rxFrames++
		b.cnt.rxBytes += uint64(fr.wire)
	}
	bits := uint32(0)
	if fr.status&rxRWT != 0 {
		bits |= stRWT
	}
	if !d.dic {
		bits |= stRI
		x.riwtAt = never
	} else if t := b.reg[mustSlot(regRXWatchdog)]; t != 0 && x.riwtAt == never {
		x.riwtAt = w + int64(t)*riwtCycles*1_000_000_000/csrClockHz
	}
	if bits != 0 {
		b.raise(bits)
	}
	if !x.owned(b) {
		x.suspend(b)
	}
}

// riwtCycles is the unit of the receive interrupt watchdog in system clock cycles.
const riwtCycles = 256
