package mmio

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"dwnet/hw"
)

// newTestPool is a pool over n bytes of memory at a bus address.
func newTestPool(t *testing.T, bus uint32, n int) *pool {
	t.Helper()
	tr := newTree(t)
	tr.memory("/dev/mem", int64(n))
	f, err := tr.sys().open("/dev/mem", deviceFlags)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := mapRange(f, 0, 0, uint64(n), 4096)
	if err != nil {
		t.Fatal(err)
	}
	p := &pool{m: m, mem: m.mem, name: "test", bus: bus, align: 64}
	t.Cleanup(func() { p.close() })
	return p
}

// A block's bus address and size are multiples of what was asked for, and at least of a cache line; it is zeroed, also when
// its memory was used before.
func TestAllocAlignsAndZeroes(t *testing.T) {
	p := newTestPool(t, 0x5C000040, 1<<16) // not at a large power of two: addresses are aligned, not offsets
	for i := range p.mem.n / 4 {
		p.mem.store32(4*i, 0xDEADBEEF)
	}
	for _, c := range []struct{ size, align, wantSize, wantAlign int }{
		{1, 1, 64, 64},
		{64, 4, 64, 64},
		{65, 64, 128, 64},
		{100, 4096, 4096, 4096},
		{2048, 16, 2048, 64},
		{4096 + 1, 1024, 5120, 1024},
	} {
		m, err := p.alloc(c.size, c.align)
		if err != nil {
			t.Fatal(err)
		}
		if m.Size() != c.wantSize || m.Bus()%uint32(c.wantAlign) != 0 {
			t.Errorf("%+v: %d bytes at 0x%x", c, m.Size(), m.Bus())
		}
		if m.Bus() < p.bus || uint64(m.Bus())+uint64(m.Size()) > uint64(p.bus)+uint64(p.mem.n) {
			t.Errorf("%+v: block at 0x%x is outside of the region", c, m.Bus())
		}
		got := make([]byte, m.Size())
		m.CopyOut(got, 0)
		if !bytes.Equal(got, make([]byte, m.Size())) {
			t.Errorf("%+v: not zeroed", c)
		}
	}
}

func TestAllocRefusesNonsense(t *testing.T) {
	p := newTestPool(t, 0x5C000000, 1<<14)
	for _, c := range []struct {
		size, align int
		want        error
	}{
		{0, 64, hw.ErrConfig}, {-1, 64, hw.ErrConfig}, {64, 0, hw.ErrConfig}, {64, 48, hw.ErrConfig}, {64, -64, hw.ErrConfig},
		{1<<14 + 1, 64, ErrOutOfMemory}, {1 << 30, 64, ErrOutOfMemory}, {int(^uint(0) >> 1), 64, ErrOutOfMemory},
		{64, 1 << 15, ErrOutOfMemory}, {64, 1 << 30, ErrOutOfMemory},
	} {
		m, err := p.alloc(c.size, c.align)
		if m != nil {
			t.Errorf("%+v: got a block", c)
		}
		wantError(t, err, c.want)
	}
	if p.used() != 0 {
		t.Errorf("%d bytes in use after refusals", p.used())
	}
}

func TestFreeRefusesWhatIsNotItsOwn(t *testing.T) {
	p, q := newTestPool(t, 0x5C000000, 1<<14), newTestPool(t, 0x5D000000, 1<<14)
	a, _ := p.alloc(64, 64)
	b, _ := q.alloc(64, 64)
	wantError(t, p.free(b), hw.ErrConfig, "not of test")
	wantError(t, p.free(nil), hw.ErrConfig)
	wantError(t, p.free((*block)(nil)), hw.ErrConfig)
	if err := p.free(a); err != nil {
		t.Fatal(err)
	}
	wantError(t, p.free(a), hw.ErrConfig, "free already")
	// A block that came in its place is not freed by the old one.
	c, _ := p.alloc(64, 64)
	wantError(t, p.free(a), hw.ErrConfig)
	c.Store32(0, 5)
	if c.Load32(0) != 5 {
		t.Error("the new block does not work")
	}
}

// After Free a block is dead: it reads as ones and cannot harm whoever has its memory now.
func TestUseAfterFreeDoesNoHarm(t *testing.T) {
	p := newTestPool(t, 0x5C000000, 1<<14)
	old, _ := p.alloc(64, 64)
	if err := p.free(old); err != nil {
		t.Fatal(err)
	}
	now, _ := p.alloc(64, 64)
	if now.Bus() != old.Bus() {
		t.Fatal("memory was not used again: the test proves nothing")
	}
	old.Store32(0, 0xBAD)
	old.CopyIn(4, []byte{1, 2, 3})
	got := []byte{0, 0, 0}
	old.CopyOut(got, 0)
	if now.Load32(0) != 0 || now.Load32(4) != 0 || old.Load32(0) != allOnes || !bytes.Equal(got, []byte{0xFF, 0xFF, 0xFF}) {
		t.Errorf("new block has 0x%x 0x%x, old one reads 0x%x % x", now.Load32(0), now.Load32(4), old.Load32(0), got)
	}
}

// Blocks never overlap, whatever is allocated and freed in which order, memory is not lost, and neighbours keep their bytes.
func TestAllocFreeAtRandom(t *testing.T) {
	p := newTestPool(t, 0x5C000000+64, 1<<18)
	rnd := rand.New(rand.NewPCG(7, 7))
	type held struct {
		m    hw.Memory
		fill byte
	}
	var blocks []held
	check := func(h held) {
		got := make([]byte, h.m.Size())
		h.m.CopyOut(got, 0)
		if !bytes.Equal(got, bytes.Repeat([]byte{h.fill}, len(got))) {
			t.Fatalf("block at 0x%x was overwritten", h.m.Bus())
		}
	}
	for i := range 3000 {
		if len(blocks) > 0 && rnd.IntN(5) < 2 {
			k := rnd.IntN(len(blocks))
			check(blocks[k])
			if err := p.free(blocks[k].m); err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks[:k], blocks[k+1:]...)
			continue
		}
		m, err := p.alloc(1+rnd.IntN(9000), 1<<rnd.IntN(14))
		if err != nil {
			wantError(t, err, ErrOutOfMemory)
			continue
		}
		h := held{m, byte(i)}
		m.CopyIn(0, bytes.Repeat([]byte{h.fill}, m.Size()))
		blocks = append(blocks, h)
	}
	sum := 0
	for _, h := range blocks {
		check(h)
		sum += h.m.Size()
	}
	if p.used() != sum {
		t.Errorf("%d bytes in use, blocks have %d", p.used(), sum)
	}
	for _, h := range blocks {
		if err := p.free(h.m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.alloc(p.mem.n-64, 64); err != nil || p.used() != p.mem.n-64 {
		t.Errorf("after all was freed: %v", err)
	}
}

// Both copy routines put the same bytes in the same place.
func TestBlockCopies(t *testing.T) {
	for _, fast := range []bool{false, true} {
		t.Run(fmt.Sprint("fast ", fast), func(t *testing.T) {
			p := newTestPool(t, 0x5C000000, 1<<14)
			p.fastIn, p.fastOut = fast, fast
			m, _ := p.alloc(4096, 64)
			want := pattern(4096, 3)
			m.CopyIn(0, want)
			for off := 1; off < 4096; off += 501 {
				piece := pattern(min(77, 4096-off), byte(off))
				copy(want[off:], piece)
				m.CopyIn(off, piece)
				got := make([]byte, len(piece))
				m.CopyOut(got, off)
				if !bytes.Equal(got, piece) {
					t.Errorf("offset %d reads back differently", off)
				}
			}
			got := make([]byte, 4096)
			m.CopyOut(got, 0)
			if !bytes.Equal(got, want) {
				t.Error("block differs")
			}
			m.Barrier()
			for name, f := range map[string]func(){
				"CopyIn over the end":  func() { m.CopyIn(4090, make([]byte, 7)) },
				"CopyOut over the end": func() { m.CopyOut(make([]byte, 7), 4090) },
				"CopyIn before":        func() { m.CopyIn(-1, make([]byte, 1)) },
				"Load32 after":         func() { m.Load32(4096) },
				"Store32 misaligned":   func() { m.Store32(6, 0) },
			} {
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s does not panic", name)
						}
					}()
					f()
				}()
			}
		})
	}
}

// After Close nothing that is stored reaches the memory, and nothing crashes.
func TestPoolClose(t *testing.T) {
	tr := newTree(t)
	dev := tr.memory("/dev/mem", 8192)
	f, _ := tr.sys().open("/dev/mem", deviceFlags)
	m, err := mapRange(f, 0, 0, 8192, 4096)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	p := &pool{m: m, mem: m.mem, name: "test", bus: 4096, align: 64}
	b, _ := p.alloc(64, 64)
	b.Store32(0, 1)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	b.Store32(0, 2)
	b.CopyIn(4, []byte{9, 9, 9, 9})
	if dev.word(0) != 1 || dev.word(4) != 0 {
		t.Errorf("device has %d, %d", dev.word(0), dev.word(4))
	}
	_, err = p.alloc(64, 64)
	wantError(t, err, hw.ErrClosed)
	if err := p.free(b); err != nil {
		t.Errorf("Free after Close: %v", err)
	}
	if err := p.close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

// Memory that is not there, or repeats itself, is found before a driver trusts it; good memory is left as it was.
func TestProbe(t *testing.T) {
	p := newTestPool(t, 4096, 1<<16)
	copy(p.mem.bytes(), pattern(1<<16, 0x11))
	if err := p.probe(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(p.mem.bytes(), pattern(1<<16, 0x11)) {
		t.Error("probe changed the memory")
	}

	f, err := newMemfd(t, 4096).open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := mapRange(aliasMap{f}, 0, 0, 1<<16, 4096)
	if err != nil {
		t.Fatal(err)
	}
	alias := &pool{m: m, mem: m.mem, name: "mirror", bus: 0x5C000000, align: 64}
	wantError(t, alias.probe(), ErrAddress, "mirror", "0x5c000000+0x10000", "does not stay")

	short, err := newMemfd(t, 4096).open()
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if m, err = mapRange(short, 0, 0, 1<<16, 4096); err != nil {
		t.Fatal(err)
	}
	hole := &pool{m: m, mem: m.mem, name: "hole", bus: 0x5C000000, align: 64}
	wantError(t, hole.probe(), ErrAddress, "hole", "nothing answers")
}

// The outer cache's buffers are emptied after the CPU's, by every barrier.
func TestBarrierReachesTheOuterCache(t *testing.T) {
	tr := newTree(t)
	dev := tr.memory("/dev/mem", outerCacheBytes)
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: outerCacheBytes})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := newTestPool(t, 0x5C000000, 1<<14)
	p.outer = &outerCache{w}
	b, _ := p.alloc(64, 64)
	dev.setWord(outerCacheSync, 0x77)
	b.Barrier()
	if got := dev.word(outerCacheSync); got != 0 {
		t.Errorf("cache sync register holds 0x%x after a barrier", got)
	}
}

func BenchmarkCopy(b *testing.B) {
	mem := rawOf(make([]byte, 4096))
	frame := make([]byte, frameBytes)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"safe/in", func() { storeBytes(mem, 0, frame) }},
		{"safe/in-misaligned", func() { storeBytes(mem, headerBytes, frame) }},
		{"safe/out", func() { loadBytes(mem, frame, 0) }},
		{"fast/in", func() { copy(mem.bytes(), frame) }},
		{"fast/out", func() { copy(frame, mem.bytes()) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(frameBytes)
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
}

func BenchmarkBarrier(b *testing.B) {
	for b.Loop() {
		barrier()
	}
}
