package sim

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// storeBuffer holds back what the CPU stores until its next barrier, as the store buffers of an ARM core and its outer
// cache may: see Faults.SetStoreBuffer. The CPU itself sees its stores at once.
type storeBuffer struct {
	on atomic.Bool

	mu      sync.Mutex
	pending []heldStore
}

// heldStore is one store that the device does not see yet.
type heldStore struct {
	m    *block
	off  int
	data []byte
	word bool // of one word, atomically
}

// put holds a store back and reports whether it did.
func (s *storeBuffer) put(m *block, off int, data []byte, word bool) bool {
	if !s.on.Load() {
		return false
	}
	_ = m.bytes[off : off+len(data)]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, heldStore{m, off, append([]byte(nil), data...), word})
	return true
}

// putWord is put of one word.
func (s *storeBuffer) putWord(m *block, w int, v uint32) bool {
	return s.on.Load() && s.put(m, w*4, binary.LittleEndian.AppendUint32(nil, v), true)
}

// overlay puts held stores over what was read from a block.
func (s *storeBuffer) overlay(m *block, off int, dst []byte) {
	if !s.on.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.pending {
		if h.m != m {
			continue
		}
		from, to := max(h.off, off), min(h.off+len(h.data), off+len(dst))
		if from < to {
			copy(dst[from-off:to-off], h.data[from-h.off:])
		}
	}
}

// drain lets the device see everything.
func (s *storeBuffer) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.pending {
		switch {
		case h.m.freed.Load():
		case h.word:
			storeWord(h.m, h.off/4, binary.LittleEndian.Uint32(h.data))
		default:
			copy(h.m.bytes[h.off:], h.data)
		}
	}
	s.pending = nil
}

// set switches the buffer on or off.
func (s *storeBuffer) set(on bool) {
	s.on.Store(on)
	if !on {
		s.drain()
	}
}
