package mmio

import (
	"fmt"
	"unsafe"
)

// raw is a piece of mapped memory. Its methods touch it by aligned accesses of at most 32 bits, each made once; only bytes
// gives a slice, for mappings that take any access. Offsets outside panic, as for a slice, and so do misaligned words.
type raw struct {
	p unsafe.Pointer
	n int
}

// rawOf is the memory of a slice. The garbage collector does not learn of it: use it for mapped memory only, or keep b.
func rawOf(b []byte) raw { return raw{unsafe.Pointer(unsafe.SliceData(b)), len(b)} }

// sub is n bytes at off.
func (r raw) sub(off, n int) raw { return rawOf(r.bytes()[off : off+n : off+n]) }

// bytes is the memory as a slice. Whether it may be read and written as one depends on the mapping.
func (r raw) bytes() []byte { return unsafe.Slice((*byte)(r.p), r.n) }

// at is the address of n bytes at off, n being 1, 2 or 4.
func (r raw) at(off, n int) unsafe.Pointer {
	if off < 0 || off > r.n-n || off&(n-1) != 0 {
		panic(fmt.Sprintf("mmio: access of %d bytes at offset %d of a block of %d bytes", n, off, r.n))
	}
	return unsafe.Add(r.p, off)
}

func (r raw) load32(off int) uint32     { return load32(r.at(off, 4)) }
func (r raw) store32(off int, v uint32) { store32(r.at(off, 4), v) }
func (r raw) store16(off int, v uint16) { store16(r.at(off, 2), v) }
func (r raw) store8(off int, v uint8)   { store8(r.at(off, 1), v) }

// loadWords reads len(dst)/4 words from off on.
func (r raw) loadWords(dst []byte, off int) {
	p := rawOf(dst)
	src := rawOf(r.bytes()[off : off+len(dst)])
	if !unalignedHeap && uintptr(p.p)%4 != 0 {
		for i := 0; i+4 <= len(dst); i += 4 {
			putWord(dst[i:], src.load32(i))
		}
		return
	}
	copyWords(p.p, src.p, len(dst)/4)
}

// storeWords writes len(src)/4 words from off on.
func (r raw) storeWords(off int, src []byte) {
	p := rawOf(src)
	dst := rawOf(r.bytes()[off : off+len(src)])
	if !unalignedHeap && uintptr(p.p)%4 != 0 {
		for i := 0; i+4 <= len(src); i += 4 {
			dst.store32(i, word(src[i:]))
		}
		return
	}
	copyWords(dst.p, p.p, len(src)/4)
}

// aligned reports that the memory starts at a multiple of n bytes.
func (r raw) aligned(n int) bool { return uintptr(r.p)%uintptr(n) == 0 }
