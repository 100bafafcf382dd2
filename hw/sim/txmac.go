package sim

// finish turns what the descriptors held into the frame that goes on the wire.
func (s *txSource) finish(f *flight, begin int64) {
	b := s.b
	t := &b.tx
	cfg := b.reg[mustSlot(regConfig)]
	op := b.reg[mustSlot(regOpMode)]
	read := f.n
	if f.n < headerBytes {
		b.violate(RuleFrameSize, "frame of %d bytes", f.n)
	}
	if cfg&cfgJD == 0 {
		limit := jabberMax
		if cfg&cfgJE != 0 {
			limit = jabberJumbo
		}
		if f.n > limit {
			f.n = limit
			f.status |= txJT | txES
			f.fcsBad = true
		}
	}
	padded := false
	if !t.noPad && f.n < minFrame {
		f.pad(minFrame)
		padded = true
	}
	if t.noCRC && !padded {
		f.takeFCS()
	}
	if t.cic != 0 {
		s.insertChecksum(f, op)
	}
	if t.underflow {
		t.underflow = false
		f.status |= txUF | txES
		f.fcsBad = true
	}
	t.dmaEnd = begin + descTime + b.dmaTime(read)
	t.free = t.dmaEnd
	f.ready = t.dmaEnd
	if op&opTSF == 0 {
		s.startEarly(f, op, begin)
	}
	b.raiseQuietly(stETI)
}

// txThresholds are the values of TTC.
var txThresholds = [8]int{64, 128, 192, 256, 40, 32, 24, 16}

// startEarly lets a frame leave in threshold mode, where a bus that is slower than the wire makes it underflow.
func (s *txSource) startEarly(f *flight, op uint32, begin int64) {
	b := s.b
	limit := txThresholds[op>>opTTC&7]
	if f.n <= limit {
		return
	}
	f.ready = begin + descTime + b.dmaTime(limit)
	wire := int64(f.n-limit) * b.nsPerByte()
	if b.dmaTime(f.n-limit) > wire && wire > 0 {
		f.status |= txUF | txES
		f.fcsBad = true
	}
}

// startAt is when the MAC lets a frame begin; never if it is switched off.
func (s *txSource) startAt(f *flight) int64 {
	b := s.b
	if f.aborted {
		return 0
	}
	if b.reg[mustSlot(regConfig)]&cfgTE == 0 || b.faults.txHang.Load() == uint32(TXHangStopped) {
		return never
	}
	return max(b.tx.pausedUntil, b.tx.notBefore)
}

// depart decides whether a frame reaches the cable.
func (s *txSource) depart(f *flight) {
	b := s.b
	switch {
	case f.aborted || f.epoch != b.tx.epoch:
		f.fate = fateAborted
	case b.reg[mustSlot(regConfig)]&cfgLM != 0:
		f.fate = fateLoop
	case !b.phy.up():
		f.fate = fateNoLink
	case b.macSpeed() != b.phy.speed:
		f.fate = fateSpeed
	default:
		f.fate = fateSent
	}
}

// control makes a PAUSE frame if one is due (IEEE 802.3 annex 31B).
func (s *txSource) control(f *flight) bool {
	b := s.b
	if !b.tx.pauseOut || b.reg[mustSlot(regConfig)]&cfgTE == 0 {
		return false
	}
	b.tx.pauseOut = false
	f.reset()
	f.append(pauseFrame(b.addr[0].bytes, b.tx.pauseTime))
	f.pad(minFrame)
	f.epoch = b.tx.epoch
	s.depart(f)
	b.countMMC(mmcTXPause, 1)
	return true
}

// controlAt is when a PAUSE frame is to be sent.
func (s *txSource) controlAt() int64 {
	if !s.b.tx.pauseOut || s.b.reg[mustSlot(regConfig)]&cfgTE == 0 {
		return never
	}
	return 0
}

// gap is the inter-frame gap that the IFG field asks for.
func (s *txSource) gap() int64 {
	return gapBits - int64(s.b.reg[mustSlot(regConfig)]>>cfgIFG&7)*8
}
