package mmio

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sort"
	"sync"

	"dwnet/hw"
)

// minPool is the smallest region: the copy routines are timed in it, and less does not hold a ring.
const minPool = 4096

// pool cuts one region of DMA memory into blocks, first fit. Nobody allocates in a hurry: a driver does when it starts.
type pool struct {
	m       *mapping
	mem     raw
	name    string
	bus     uint32 // of the first byte
	align   int    // what every block is aligned to, a power of two
	fastIn  bool   // copy in by Go's copy
	fastOut bool
	outer   *outerCache // beyond the CPU's barrier; nil: none

	mu     sync.Mutex
	closed bool
	blocks []*block // in use, by offset
}

// alloc implements hw.Port's Alloc.
func (p *pool) alloc(size, align int) (hw.Memory, error) {
	if size <= 0 || align <= 0 || align&(align-1) != 0 {
		return nil, fmt.Errorf("mmio: %w: Alloc of %d bytes aligned to %d", hw.ErrConfig, size, align)
	}
	align = max(align, p.align)
	if size > p.mem.n || align > p.mem.n {
		return nil, p.full(size, align)
	}
	size = (size + align - 1) &^ (align - 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("mmio: Alloc from %s: %w", p.name, hw.ErrClosed)
	}
	off, at, ok := p.find(size, align)
	if !ok {
		return nil, p.full(size, align)
	}
	b := &block{pool: p, off: off, mem: p.mem.sub(off, size)}
	zero(b.mem)
	p.blocks = append(p.blocks, nil)
	copy(p.blocks[at+1:], p.blocks[at:])
	p.blocks[at] = b
	return b, nil
}

func (p *pool) full(size, align int) error {
	return &Error{Op: "allocate from", Path: p.name, Detail: fmt.Sprintf("%d bytes aligned to %d", size, align), Err: ErrOutOfMemory,
		Remedy: "give the port a larger region, or the rings fewer slots"}
}

// find is the first gap that holds size bytes whose bus address is a multiple of align, and where it goes among the blocks.
func (p *pool) find(size, align int) (off, at int, ok bool) {
	up := func(off int) (int, bool) {
		over := int((uint64(p.bus) + uint64(off)) & uint64(align-1))
		if over != 0 {
			off += align - over
		}
		return off, off <= p.mem.n
	}
	off, ok = up(0)
	for i, b := range p.blocks {
		if !ok || off <= b.off && size <= b.off-off {
			return off, i, ok
		}
		off, ok = up(b.off + b.mem.n)
	}
	return off, len(p.blocks), ok && size <= p.mem.n-off
}

// free implements hw.Port's Free.
func (p *pool) free(m hw.Memory) error {
	b, ok := m.(*block)
	if !ok || b == nil || b.pool != p {
		return fmt.Errorf("mmio: %w: Free of a block that is not of %s", hw.ErrConfig, p.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].off >= b.off })
	if i == len(p.blocks) || p.blocks[i] != b {
		return fmt.Errorf("mmio: %w: Free of a block that is free already", hw.ErrConfig)
	}
	p.blocks = append(p.blocks[:i], p.blocks[i+1:]...)
	b.freed = true
	return nil
}

// used is how many bytes are allocated.
func (p *pool) used() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, b := range p.blocks {
		n += b.mem.n
	}
	return n
}

// close takes the memory away from the blocks, too.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if err := p.m.close(); err != nil {
		return &Error{Op: "unmap", Path: p.name, Err: err}
	}
	p.closed = true
	return nil
}

// probe stores and loads a word at both ends of the region and in between, and puts back what was there. It tells memory
// that does not exist, or is something else, before a driver trusts it.
func (p *pool) probe() error {
	const pattern = 0x5AA5C33C
	offsets := []int{0}
	for off := 4; off < p.mem.n-4; off *= 2 {
		offsets = append(offsets, off)
	}
	offsets = append(offsets, p.mem.n-4)
	saved := make([]uint32, len(offsets))
	bad := -1
	gone := answers(p.mem, 0)
	if gone == nil {
		gone = answers(p.mem, p.mem.n-4)
	}
	answered := gone == nil && guarded(func() {
		for i, off := range offsets {
			saved[i] = p.mem.load32(off)
		}
		// All patterns are there before the first is read: they differ, so that memory that repeats itself shows.
		for i, off := range offsets {
			p.mem.store32(off, bits.RotateLeft32(pattern, i))
		}
		p.barrier()
		for i, off := range offsets {
			if p.mem.load32(off) != bits.RotateLeft32(pattern, i) && bad < 0 {
				bad = off
			}
		}
		for i := len(offsets) - 1; i >= 0; i-- {
			p.mem.store32(offsets[i], saved[i])
		}
		p.barrier()
	})
	switch {
	case gone != nil && !errors.Is(gone, hw.ErrGone):
		return &Error{Op: "probe", Path: p.name, Err: gone}
	case !answered:
		return addressError(p.name, uint64(p.bus), uint64(p.mem.n), "nothing answers there")
	case bad >= 0:
		return addressError(p.name, uint64(p.bus), uint64(p.mem.n), "what is stored at offset 0x%x does not stay there", bad)
	}
	return nil
}

func (p *pool) barrier() {
	barrier()
	if p.outer != nil {
		p.outer.sync()
	}
}

// block is one piece of DMA memory. It implements hw.Memory. After Close of its port it is private memory that nobody looks
// at; after Free it reads as all ones, and stores are lost.
type block struct {
	pool  *pool
	off   int
	mem   raw
	freed bool // a plain flag: using a block while another goroutine frees it is a race anyway
}

// Bus implements hw.Memory.
func (b *block) Bus() uint32 { return b.pool.bus + uint32(b.off) }

// Size implements hw.Memory.
func (b *block) Size() int { return b.mem.n }

// Load32 implements hw.Memory.
func (b *block) Load32(off int) uint32 {
	if b.freed {
		return allOnes
	}
	v := b.mem.load32(off)
	runtime.KeepAlive(b)
	return v
}

// Store32 implements hw.Memory.
func (b *block) Store32(off int, v uint32) {
	if b.freed {
		return
	}
	b.mem.store32(off, v)
	runtime.KeepAlive(b)
}

// CopyIn implements hw.Memory.
func (b *block) CopyIn(off int, src []byte) {
	dst := b.mem.bytes()[off : off+len(src)] // panics if outside
	switch {
	case b.freed:
	case b.pool.fastIn:
		copy(dst, src)
	default:
		storeBytes(b.mem, off, src)
	}
	runtime.KeepAlive(b)
}

// CopyOut implements hw.Memory.
func (b *block) CopyOut(dst []byte, off int) {
	src := b.mem.bytes()[off : off+len(dst)] // panics if outside
	switch {
	case b.freed:
		for i := range dst {
			dst[i] = 0xFF
		}
	case b.pool.fastOut:
		copy(dst, src)
	default:
		loadBytes(b.mem, dst, off)
	}
	runtime.KeepAlive(b)
}

// Barrier implements hw.Memory.
func (b *block) Barrier() { b.pool.barrier() }

// outerCache is an ARM L2C-310 whose store buffer the CPU's barrier does not reach.
type outerCache struct{ w *Window }

// outerCacheSync is the cache sync register of the L2C-310, which does not answer before the buffers are empty. Source: ARM
// DDI 0246, "Cache Sync"; Linux arch/arm/mm/cache-l2x0.c, __l2c210_cache_sync, and arch/arm/mm/flush.c, arm_heavy_mb.
const outerCacheSync = 0x730

// outerCacheBytes is the size of its register block.
const outerCacheBytes = 0x1000

func (o *outerCache) sync() {
	o.w.Store32(outerCacheSync, 0)
	barrier()
}
