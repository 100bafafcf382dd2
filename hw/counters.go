package hw

import "iter"

// counterState accumulates the counters, which have 32 bits in the device and begin anew at each reset.
type counterState struct {
	total     Counters
	last      []uint32 // of mmcCounters, as last read
	suspended bool     // a reset is under way; the registers mean nothing
}

// Counters reads the counters of the MAC and the DMA and adds what was new to those before. The device's own counters wrap at
// 32 bits, octets after 34 s at 1 Gbit/s: call it at least that often if the figures matter. It may be called from any
// goroutine. During a reset and after Close it returns what was known last.
func (m *MAC) Counters() Counters {
	m.readCounters()
	m.countersMu.Lock()
	defer m.countersMu.Unlock()
	return m.counters.total
}

// readCounters brings the totals up to date.
func (m *MAC) readCounters() {
	m.countersMu.Lock()
	defer m.countersMu.Unlock()
	s := &m.counters
	if s.suspended || s.last == nil || m.closed.Load() || m.reg.Load32(RegStatus) == allOnes {
		return
	}
	for i, c := range mmcCounters {
		if !m.hasCounter(c) {
			continue
		}
		v := m.reg.Load32(c.offset)
		if v == allOnes && m.reg.Load32(RegStatus) == allOnes {
			return
		}
		*c.field(&s.total) += uint64(v - s.last[i]) // the difference is right across a wrap
		s.last[i] = v
	}
	if v := m.reg.Load32(RegMissedFrames); v != allOnes {
		s.addMissed(MissedFrames(v))
	}
}

// addMissed adds what the missed frame counter lost by being read.
func (s *counterState) addMissed(v MissedFrames) {
	s.total.RXMissed += uint64(v.Missed())
	s.total.RXOverflow += uint64(v.Overflow())
}

// hasCounter reports whether the core has the counter.
func (m *MAC) hasCounter(c counter) bool {
	return m.feature.hasMMC() && (!c.checksumEngine() || m.feature.Has(FeatRXChecksum2))
}

// countersSuspend takes the counters for the last time before a reset.
func (m *MAC) countersSuspend() {
	m.readCounters()
	m.countersMu.Lock()
	defer m.countersMu.Unlock()
	m.counters.suspended = true
}

// countersRestart says that the counters were reset and count again.
func (m *MAC) countersRestart() {
	m.countersMu.Lock()
	defer m.countersMu.Unlock()
	m.counters.last = make([]uint32, len(mmcCounters))
	m.counters.suspended = false
}

// All are the counters by the vendor's names, in the order of their registers.
func (c Counters) All() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for _, r := range mmcCounters {
			if !yield(r.name, *r.field(&c)) {
				return
			}
		}
		_ = yield("missed_frames", c.RXMissed) && yield("overflow_frames", c.RXOverflow)
	}
}
