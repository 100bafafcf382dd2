package mmio

import "encoding/binary"

// The copy for Device memory. On ARM an access to such memory must be aligned to its size or it faults, and what Go's copy
// does is nobody's promise: on arm64 it reads and writes 16 bytes at a time at any address, and covers the end of a piece by
// an access that overlaps what was already copied. So here
//
//   - the device's side sees aligned accesses of 8, 16 and 32 bits only, in rising order, none repeated;
//   - stores stay inside the piece, byte for byte: the neighbours may belong to the device at that moment;
//   - loads are of whole words, each read once (every load of uncached memory goes to the DRAM and back). The first and the
//     last may reach up to three bytes over the piece, never out of the block, whose ends are multiples of four.
//
// Sources: Arm ARM, "Alignment support"; github.com/esa-tu-darmstadt/tapasco pull request 368 (wide store at the tail).

// device is memory that takes aligned accesses of at most a word.
type device interface {
	load32(off int) uint32
	store32(off int, v uint32)
	store16(off int, v uint16)
	store8(off int, v uint8)
	loadWords(dst []byte, off int)
	storeWords(off int, src []byte)
}

// word and putWord are a word in a slice, in the machine's byte order: what loadWords and storeWords do with one.
func word(b []byte) uint32       { return binary.NativeEndian.Uint32(b) }
func putWord(b []byte, v uint32) { binary.NativeEndian.PutUint32(b, v) }

// storeBytes writes src at off.
func storeBytes[D device](d D, off int, src []byte) {
	if off&1 != 0 && len(src) >= 1 {
		d.store8(off, src[0])
		off, src = off+1, src[1:]
	}
	if off&2 != 0 && len(src) >= 2 {
		d.store16(off, binary.NativeEndian.Uint16(src))
		off, src = off+2, src[2:]
	}
	// Here off is a multiple of four, or less than two bytes are left.
	if n := len(src) &^ 3; n > 0 {
		d.storeWords(off, src[:n])
		off, src = off+n, src[n:]
	}
	if len(src) >= 2 {
		d.store16(off, binary.NativeEndian.Uint16(src))
		off, src = off+2, src[2:]
	}
	if len(src) >= 1 {
		d.store8(off, src[0])
	}
}

// loadBytes reads len(dst) bytes at off.
func loadBytes[D device](d D, dst []byte, off int) {
	var w [4]byte
	if in := off & 3; in != 0 && len(dst) > 0 {
		putWord(w[:], d.load32(off-in))
		n := copy(dst, w[in:])
		off, dst = off+n, dst[n:]
	}
	if n := len(dst) &^ 3; n > 0 {
		d.loadWords(dst[:n], off)
		off, dst = off+n, dst[n:]
	}
	if len(dst) > 0 {
		putWord(w[:], d.load32(off))
		copy(dst, w[:])
	}
}

// zero clears the memory by aligned word stores; its length is a multiple of four.
func zero(r raw) {
	var zeros [1024]byte
	for off := 0; off < r.n; off += len(zeros) {
		r.storeWords(off, zeros[:min(len(zeros), r.n-off)])
	}
}
