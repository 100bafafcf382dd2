package mmio

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// touched is one access that a spy saw.
type touched struct {
	off, n int
	store  bool
}

// spy is Device memory that keeps a record, and complains as hardware would.
type spy struct {
	t   *testing.T
	mem []byte
	log *[]touched
}

func (s spy) touch(off, n int, store bool) {
	s.t.Helper()
	if off%n != 0 || n > 4 {
		s.t.Errorf("access of %d bytes at offset %d: bus error", n, off)
	}
	if off < 0 || off+n > len(s.mem) {
		s.t.Fatalf("access of %d bytes at offset %d outside of %d bytes", n, off, len(s.mem))
	}
	*s.log = append(*s.log, touched{off, n, store})
}

func (s spy) load32(off int) uint32 {
	s.touch(off, 4, false)
	return word(s.mem[off:])
}

func (s spy) store32(off int, v uint32) {
	s.touch(off, 4, true)
	putWord(s.mem[off:], v)
}

func (s spy) store16(off int, v uint16) {
	s.touch(off, 2, true)
	var w [4]byte
	putWord(w[:], uint32(v)|uint32(v)<<16)
	copy(s.mem[off:], w[:2])
}

func (s spy) store8(off int, v uint8) {
	s.touch(off, 1, true)
	s.mem[off] = v
}

func (s spy) loadWords(dst []byte, off int) {
	for i := 0; i < len(dst); i += 4 {
		putWord(dst[i:], s.load32(off+i))
	}
}

func (s spy) storeWords(off int, src []byte) {
	for i := 0; i < len(src); i += 4 {
		s.store32(off+i, word(src[i:]))
	}
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*11) ^ seed
	}
	return b
}

// Copying into Device memory makes aligned accesses of at most a word, inside the piece, each byte written once: what is
// next to it may belong to the device.
func TestStoreBytesStaysInsideAndAligned(t *testing.T) {
	const size = 64
	for off := range 9 {
		for n := 0; n <= 40; n++ {
			s := spy{t: t, mem: bytes.Repeat([]byte{0xEE}, size), log: new([]touched)}
			src := pattern(n, 0x35)
			storeBytes(s, off, src)
			want := bytes.Repeat([]byte{0xEE}, size)
			copy(want[off:], src)
			if !bytes.Equal(s.mem, want) {
				t.Fatalf("off %d, %d bytes: memory is % x, want % x", off, n, s.mem, want)
			}
			count := make([]int, size)
			for _, a := range *s.log {
				if !a.store {
					t.Fatalf("off %d, %d bytes: read back at %d", off, n, a.off)
				}
				for i := a.off; i < a.off+a.n; i++ {
					count[i]++
				}
			}
			for i, c := range count {
				if inside := i >= off && i < off+n; inside && c != 1 || !inside && c != 0 {
					t.Fatalf("off %d, %d bytes: byte %d was written %d times", off, n, i, c)
				}
			}
		}
	}
}

// Copying out of uncached memory reads each word that the piece touches exactly once, none beyond (ikwzm/udmabuf issue 16:
// every load goes to the DRAM).
func TestLoadBytesReadsEachWordOnce(t *testing.T) {
	const size = 64
	for off := range 9 {
		for n := 0; n <= 40; n++ {
			s := spy{t: t, mem: pattern(size, 0x77), log: new([]touched)}
			dst := bytes.Repeat([]byte{0xEE}, n+2)
			loadBytes(s, dst[1:1+n], off)
			want := append(append([]byte{0xEE}, s.mem[off:off+n]...), 0xEE)
			if !bytes.Equal(dst, want) {
				t.Fatalf("off %d, %d bytes: got % x, want % x", off, n, dst, want)
			}
			var words []touched
			if n > 0 {
				for w := off &^ 3; w < off+n; w += 4 {
					words = append(words, touched{w, 4, false})
				}
			}
			if diff := cmp.Diff(words, *s.log, cmp.AllowUnexported(touched{})); diff != "" {
				t.Fatalf("off %d, %d bytes: accesses (-want +got):\n%s", off, n, diff)
			}
		}
	}
}

// A frame is copied in few accesses: words, and at most three smaller ones at each end.
func TestCopyOfAFrameTakesFewAccesses(t *testing.T) {
	for _, off := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprint("offset ", off), func(t *testing.T) {
			s := spy{t: t, mem: make([]byte, 2048), log: new([]touched)}
			storeBytes(s, off, make([]byte, frameBytes))
			if most := frameBytes/4 + 4; len(*s.log) > most {
				t.Errorf("%d stores for %d bytes, want at most %d", len(*s.log), frameBytes, most)
			}
		})
	}
}
