package mmio

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// fenced is memory between two pages that nobody may touch.
func fenced(t *testing.T, pages int) []byte {
	t.Helper()
	page := os.Getpagesize()
	all, err := unix.Mmap(-1, 0, (pages+2)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(all) })
	for _, fence := range [][]byte{all[:page], all[(pages+1)*page:]} {
		if err := unix.Mprotect(fence, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return all[page : (pages+1)*page : (pages+1)*page]
}

// The assembly does on real memory what the algorithm says: every offset, length and alignment of the heap's side, up to the
// last byte before memory that is not there, on either side.
func TestSafeCopyOnRealMemory(t *testing.T) {
	mem := fenced(t, 1)
	size := 96
	for _, base := range []int{0, len(mem) - size} {
		block := mem[base : base+size]
		r := rawOf(block)
		for off := range 12 {
			for n := 0; off+n <= size; n++ {
				for skew := range 4 {
					heap := pattern(n+skew, byte(n))[skew:]
					for i := range block {
						block[i] = 0xEE
					}
					storeBytes(r, off, heap)
					want := bytes.Repeat([]byte{0xEE}, size)
					copy(want[off:], heap)
					if !bytes.Equal(block, want) {
						t.Fatalf("base %d off %d, %d bytes, skew %d: stored\n% x, want\n% x", base, off, n, skew, block, want)
					}
					back := make([]byte, n+skew+1)
					loadBytes(r, back[skew:skew+n], off)
					if !bytes.Equal(back[skew:skew+n], heap) || back[skew+n] != 0 {
						t.Fatalf("base %d off %d, %d bytes, skew %d: loaded\n% x, want\n% x", base, off, n, skew, back[skew:], heap)
					}
				}
			}
		}
	}
}

func TestSafeCopyOfLargePieces(t *testing.T) {
	mem := fenced(t, 4)
	r := rawOf(mem)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		off := rnd.IntN(len(mem))
		n := rnd.IntN(len(mem) - off + 1)
		skew := rnd.IntN(8)
		src := make([]byte, n+skew)
		for i := range src {
			src[i] = byte(rnd.Uint32())
		}
		storeBytes(r, off, src[skew:])
		dst := make([]byte, n+skew)
		loadBytes(r, dst[skew:], off)
		if !bytes.Equal(mem[off:off+n], src[skew:]) || !bytes.Equal(dst[skew:], src[skew:]) {
			t.Fatalf("off %d, %d bytes, skew %d: copies differ", off, n, skew)
		}
	}
}

func TestZeroClearsAllAndNothingElse(t *testing.T) {
	mem := fenced(t, 2)
	for i := range mem {
		mem[i] = 0xEE
	}
	zero(rawOf(mem[64 : len(mem)-64]))
	want := make([]byte, len(mem))
	for i := range 64 {
		want[i], want[len(want)-1-i] = 0xEE, 0xEE
	}
	if !bytes.Equal(mem, want) {
		t.Error("zero left or took something")
	}
}

// Offsets outside of a block, and words at odd places, are a bug of the caller and panic, as for a slice.
func TestRawAccessOutsidePanics(t *testing.T) {
	r := rawOf(fenced(t, 1)[:64])
	for name, f := range map[string]func(){
		"load before":     func() { r.load32(-4) },
		"load after":      func() { r.load32(64) },
		"load across end": func() { r.load32(62) },
		"load misaligned": func() { r.load32(2) },
		"store after":     func() { r.store32(64, 1) },
		"halfword odd":    func() { r.store16(1, 1) },
		"byte after":      func() { r.store8(64, 1) },
		"words after":     func() { r.loadWords(make([]byte, 8), 60) },
		"store words":     func() { r.storeWords(-4, make([]byte, 8)) },
		"sub":             func() { r.sub(60, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestWordAccess(t *testing.T) {
	mem := fenced(t, 1)
	r := rawOf(mem)
	last := len(mem) - 4
	r.store32(last, 0x11223344)
	if got := r.load32(last); got != 0x11223344 || word(mem[last:]) != got {
		t.Errorf("word reads 0x%x", got)
	}
	r.store16(last+2, 0xAABB)
	r.store8(last, 0xCC)
	if want := uint32(0xAABB33CC); r.load32(last) != want {
		t.Errorf("word is 0x%x after smaller stores, want 0x%x", r.load32(last), want)
	}
}
