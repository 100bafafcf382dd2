package sim

import (
	"encoding/binary"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"dwnet/hw"
)

// memoryBase is where the DMA arena starts on the bus. The S805's DRAM starts at 0x40000000 (Linux
// arch/arm/boot/dts/amlogic/meson8b.dtsi); a driver that leaves out the bus address does not get away with it.
const memoryBase = 0x4C100000

const (
	defaultMemoryBytes = 8 << 20
	minAlign           = 64 // a cache line; also what keeps blocks apart
)

// arena is the board's DMA memory. Blocks are cut from it first fit, moving on, so that freed memory is not soon reused
// and an engine that still touches it is caught.
type arena struct {
	words []uint32
	bytes []byte

	mu     sync.Mutex
	blocks []*block // by offset
	next   int      // where the search for room starts
	failIn int      // fail the n-th allocation from now; 0 never

	// index is an immutable copy of blocks for the engines.
	index atomic.Pointer[[]*block]

	stores storeBuffer
}

func newArena(size int) *arena {
	a := &arena{words: make([]uint32, (size+3)/4)}
	a.bytes = bytesOf(a.words)
	a.index.Store(&[]*block{})
	return a
}

// alloc cuts a block out of the arena.
func (a *arena) alloc(s *session, size, align int) (*block, error) {
	if size <= 0 || align <= 0 || align&(align-1) != 0 {
		return nil, fmt.Errorf("sim: %w: Alloc of %d bytes aligned to %d", hw.ErrConfig, size, align)
	}
	align = max(align, minAlign)
	size = (size + align - 1) &^ (align - 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failIn > 0 {
		if a.failIn--; a.failIn == 0 {
			return nil, fmt.Errorf("sim: out of DMA memory (by request) for %d bytes", size)
		}
	}
	off, ok := a.find(a.next, size, align)
	if !ok {
		off, ok = a.find(0, size, align)
	}
	if !ok {
		return nil, fmt.Errorf("sim: out of DMA memory: no %d bytes aligned to %d of %d", size, align, len(a.bytes))
	}
	b := &block{a: a, sess: s, off: off, bus: memoryBase + uint32(off)}
	b.words = a.words[off/4 : (off+size)/4 : (off+size)/4]
	b.bytes = bytesOf(b.words)
	clear(b.bytes)
	i := sort.Search(len(a.blocks), func(i int) bool { return a.blocks[i].off >= off })
	a.blocks = append(a.blocks, nil)
	copy(a.blocks[i+1:], a.blocks[i:])
	a.blocks[i] = b
	a.next = off + size
	a.publish()
	return b, nil
}

// find looks for room from an offset on; a.mu is held.
func (a *arena) find(from, size, align int) (int, bool) {
	// Bus addresses are aligned, not offsets.
	up := func(off int) int { return (off+memoryBase+align-1)&^(align-1) - memoryBase }
	off := up(from)
	for _, b := range a.blocks {
		if b.off+len(b.bytes) <= off {
			continue
		}
		if off+size <= b.off {
			break
		}
		off = up(b.off + len(b.bytes))
	}
	return off, off+size <= len(a.bytes)
}

// free gives b back and reports whether it was allocated.
func (a *arena) free(b *block) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, x := range a.blocks {
		if x == b {
			a.blocks = append(a.blocks[:i:i], a.blocks[i+1:]...)
			b.freed.Store(true)
			a.publish()
			return true
		}
	}
	return false
}

// freeOf gives back every block of a session.
func (a *arena) freeOf(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := make([]*block, 0, len(a.blocks))
	for _, b := range a.blocks {
		if b.sess == s {
			b.freed.Store(true)
			continue
		}
		kept = append(kept, b)
	}
	a.blocks = kept
	a.publish()
}

func (a *arena) publish() {
	index := append([]*block(nil), a.blocks...)
	a.index.Store(&index)
}

// lookup finds the block that holds n bytes at a bus address; hint is tried first.
func (a *arena) lookup(bus uint32, n int, hint *block) *block {
	if hint != nil && hint.holds(bus, n) {
		return hint
	}
	index := *a.index.Load()
	i := sort.Search(len(index), func(i int) bool { return index[i].bus > bus })
	if i > 0 && index[i-1].holds(bus, n) {
		return index[i-1]
	}
	return nil
}

// block is one piece of DMA memory. It implements hw.Memory for the CPU's side; the engines use words and bytes.
type block struct {
	a     *arena
	sess  *session
	off   int
	bus   uint32
	words []uint32
	bytes []byte
	freed atomic.Bool

	// ring says which words belong to a running descriptor list; nil for most blocks.
	ring atomic.Pointer[ringMap]
	// epoch counts barriers.
	epoch atomic.Uint32
}

func (m *block) holds(bus uint32, n int) bool {
	off := uint64(bus - m.bus)
	return bus >= m.bus && off+uint64(n) <= uint64(len(m.bytes)) && !m.freed.Load()
}

// Bus implements hw.Memory.
func (m *block) Bus() uint32 { return m.bus }

// Size implements hw.Memory.
func (m *block) Size() int { return len(m.bytes) }

// Load32 implements hw.Memory.
func (m *block) Load32(off int) uint32 {
	w := off >> 2
	if off&3 != 0 || m.unusable() {
		if !m.check("Load32", off, 4) {
			return gone
		}
	}
	if r := m.ring.Load(); r != nil {
		r.cpuLoad(w)
	}
	v := atomic.LoadUint32(&m.words[w])
	if m.a.stores.on.Load() {
		var p [4]byte
		binary.LittleEndian.PutUint32(p[:], v)
		m.a.stores.overlay(m, w*4, p[:])
		v = binary.LittleEndian.Uint32(p[:])
	}
	return v
}

// Store32 implements hw.Memory.
func (m *block) Store32(off int, v uint32) {
	w := off >> 2
	if off&3 != 0 || m.unusable() {
		if !m.check("Store32", off, 4) {
			return
		}
	}
	if r := m.ring.Load(); r != nil {
		r.cpuStore(m, w, v)
	}
	if m.a.stores.putWord(m, w, v) {
		return
	}
	atomic.StoreUint32(&m.words[w], v)
}

// CopyIn implements hw.Memory.
func (m *block) CopyIn(off int, src []byte) {
	if m.unusable() && !m.check("CopyIn", off, len(src)) {
		return
	}
	if r := m.ring.Load(); r != nil {
		r.cpuCopy(m, off, len(src))
	}
	if m.a.stores.put(m, off, src, false) {
		return
	}
	copy(m.bytes[off:off+len(src)], src)
}

// CopyOut implements hw.Memory.
func (m *block) CopyOut(dst []byte, off int) {
	if m.unusable() && !m.check("CopyOut", off, len(dst)) {
		for i := range dst {
			dst[i] = 0xFF
		}
		return
	}
	copy(dst, m.bytes[off:off+len(dst)])
	m.a.stores.overlay(m, off, dst)
}

// Barrier implements hw.Memory. It completes the stores to all blocks, as a barrier of the CPU does.
func (m *block) Barrier() {
	m.epoch.Add(1)
	if m.a.stores.on.Load() {
		m.a.stores.drain()
	}
}

func (m *block) unusable() bool { return m.freed.Load() || m.sess.closed.Load() }

// check reports a bad access and whether it may go on.
func (m *block) check(op string, off, n int) bool {
	b := m.sess.b
	defer b.flush()
	if m.unusable() {
		what := "a freed block"
		if m.sess.closed.Load() {
			what = "a block of a closed port"
		}
		b.violate(RuleUseAfterClose, "%s at offset %d of %s at bus 0x%08x", op, off, what, m.bus)
		return false
	}
	b.violate(RuleAccessMode, "%s at offset %d: not a multiple of 4", op, off)
	return true
}
