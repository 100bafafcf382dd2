package hw

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bench is an opened and started MAC on fake hardware, with DMA engines at its rings.
type bench struct {
	*fakePort
	m   *MAC
	dma *fakeDMA
}

func newBench(t testing.TB, c Config) *bench {
	t.Helper()
	p := newFakePort(t)
	return p.bench(c)
}

func (p *fakePort) bench(c Config) *bench {
	p.t.Helper()
	m := p.open(c)
	b := &bench{fakePort: p, m: m, dma: &fakeDMA{}}
	b.start()
	return b
}

func (b *bench) start() {
	b.t.Helper()
	if err := b.m.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.dma.attach(b.fakePort, b.m)
}

// enhancedPort is a port whose core has enhanced descriptors.
func enhancedPort(t testing.TB) *fakePort {
	p := newFakePort(t)
	p.mac.feature |= 1 << 24
	p.mac.resetRegs()
	return p
}

// send writes and commits a frame.
func (b *bench) send(f []byte, o TXFlags) {
	b.t.Helper()
	b.m.TX().Write(0, f)
	if err := b.m.TX().Commit(len(f), o); err != nil {
		b.t.Fatalf("Commit(%d): %v", len(f), err)
	}
}

func (b *bench) checkSent(want ...[]byte) {
	b.t.Helper()
	if len(b.dma.sent) != len(want) {
		b.t.Fatalf("%d frames on the wire, want %d", len(b.dma.sent), len(want))
	}
	for i := range want {
		if !bytes.Equal(b.dma.sent[i], want[i]) {
			b.t.Errorf("frame %d: %d bytes on the wire, want %d, or other content", i, len(b.dma.sent[i]), len(want[i]))
		}
	}
}

// TXR-01: a short frame in a slot that held a long one goes out short, and the descriptor's words do not depend on what was in
// them.
func TestTXR01_NothingOfTheOldFrameSurvives(t *testing.T) {
	for _, p := range []*fakePort{newFakePort(t), enhancedPort(t)} {
		b := p.bench(Config{TXSlots: 2})
		long, other, short := frame(1514, 1), frame(200, 2), frame(60, 3)
		b.send(long, TXFlags{Interrupt: true, Checksum: CICFull})
		b.send(other, TXFlags{})
		b.dma.sendAll()
		b.m.TX().Reclaim()
		b.send(short, TXFlags{})
		b.dma.sendAll()
		b.checkSent(long, other, short)

		// Whatever the words were, they end up the same.
		var want Descriptor
		for i := range 65 {
			b.m.TX().Reclaim()
			mem := b.dma.tx.mem
			slot := b.m.tx.head * 4
			for w := range 4 {
				v := uint32(0)
				if i < 32 {
					v = 1 << i
				} else if i < 64 {
					v = ^uint32(1 << (i - 32))
				}
				if w == 0 {
					v &^= 1 << 31 // the CPU's
				}
				mem.words[slot+w] = v
			}
			b.send(short, TXFlags{})
			got := Descriptor(mem.words[slot : slot+4])
			if i == 0 {
				want = got
			}
			want[2], want[1] = got[2], want[1]&^(1<<25)|got[1]&(1<<25) // address and end of ring differ by slot
			want[0] = want[0]&^(1<<21) | got[0]&(1<<21)
			if got != want {
				t.Fatalf("old words of pattern %d show: %08x, want %08x", i, got, want)
			}
			b.dma.sendAll()
		}
		b.checkRules()
	}
}

// TXR-03, TXR-04: on rings of any size exactly the ring's descriptors are used, in turn; exactly the last ends the ring and
// none is chained.
func TestTXR03_TXR04_RingWraps(t *testing.T) {
	for _, p := range []func(testing.TB) *fakePort{newFakePort, enhancedPort} {
		for _, n := range []int{2, 3, 4, 7, 256} {
			b := p(t).bench(Config{TXSlots: n, RXSlots: n})
			var want [][]byte
			for i := range 3 * n {
				f := frame(60+i%1400, i)
				want = append(want, f)
				b.send(f, TXFlags{})
				if i%2 == 1 || n == 2 {
					b.dma.sendAll()
					b.m.TX().Reclaim()
				}
			}
			b.dma.sendAll()
			b.checkSent(want...)
			for i, d := range b.dma.descs {
				if d != i%n {
					t.Fatalf("%d slots: descriptor %d is number %d", n, i, d)
				}
			}
			for i := range n {
				tx, rx := b.dma.tx.mem.words[i*4:i*4+4], b.dma.rx.mem.words[i*4:i*4+4]
				txEnd, txChain, rxEnd, rxChain := tx[1]>>25&1, tx[1]>>24&1, rx[1]>>25&1, rx[1]>>24&1
				if b.dma.enhanced {
					txEnd, txChain, rxEnd, rxChain = tx[0]>>21&1, tx[0]>>20&1, rx[1]>>15&1, rx[1]>>14&1
				}
				last := when(i == n-1, 1)
				if txEnd != last || rxEnd != last || txChain|rxChain != 0 {
					t.Errorf("%d slots, %d: TX %08x RX %08x", n, i, tx, rx)
				}
			}
		}
	}
}

// TXR-06: whatever moment reclaim runs at while a frame is handed over, it never frees a frame that was not sent, and every
// frame is freed exactly once. The hook runs the other side between any two accesses of the producer.
func TestTXR06_ReclaimBetweenAnyTwoStores(t *testing.T) {
	for _, length := range []int{60, 4000} {
		for stop := 0; stop < 40; stop++ {
			for _, device := range []bool{false, true} {
				b := newBench(t, Config{TXSlots: 4})
				var freed, bytesFreed int
				step, inside := 0, false
				b.dma.tx.mem.hook = func(string) {
					if inside {
						return
					}
					if step++; step != stop {
						return
					}
					inside = true
					if device {
						b.dma.sendAll()
					}
					d := b.m.TX().Reclaim()
					freed, bytesFreed = freed+d.Frames, bytesFreed+d.Bytes
					if freed > len(b.dma.sent) {
						t.Fatalf("%d bytes, stop %d: %d frames freed, %d sent", length, stop, freed, len(b.dma.sent))
					}
					inside = false
				}
				for i := range 3 {
					if i == 2 {
						b.dma.tx.mem.hook = nil // a fixed point to compare with
						b.dma.sendAll()
						d := b.m.TX().Reclaim()
						freed, bytesFreed = freed+d.Frames, bytesFreed+d.Bytes
						break
					}
					if b.m.TX().Free() < 3 {
						d := func() TXDone {
							inside = true
							defer func() { inside = false }()
							b.dma.sendAll()
							return b.m.TX().Reclaim()
						}()
						freed, bytesFreed = freed+d.Frames, bytesFreed+d.Bytes
					}
					b.send(frame(length, i), TXFlags{})
				}
				if freed != 2 || bytesFreed != 2*length || b.m.TX().Pending() != 0 {
					t.Errorf("%d bytes, stop %d: freed %d frames, %d bytes, %d slots pending", length, stop, freed, bytesFreed, b.m.TX().Pending())
				}
				b.checkSent(frame(length, 0), frame(length, 1))
			}
		}
	}
}

// A completion that the poll loop looks for just before the frame is published is not lost: Commit wakes the loop. Without
// such a meeting it does not.
func TestCommitWakesAPollLoopThatLookedTooEarly(t *testing.T) {
	b := newBench(t, Config{})
	b.send(frame(60, 0), TXFlags{})
	b.m.TX().Kick()
	b.dma.sendAll()
	b.m.TX().Reclaim()
	if b.irq.wakes != 0 {
		t.Fatalf("%d wake-ups without cause", b.irq.wakes)
	}
	seen := -1
	b.mac.onStore = nil
	mem := b.dma.tx.mem
	armed := false
	mem.hook = func(op string) {
		if op == "barrier" {
			armed = true // the OWN store is next; run behind it
		}
	}
	// The interrupt comes between OWN and the index: emulated by a port memory whose OWN store completes the frame.
	b.m.tx.mem = &afterStore{fakeMemory: mem, then: func() {
		if armed && seen < 0 {
			b.dma.sendAll()
			seen = b.m.TX().Reclaim().Frames
		}
	}}
	b.send(frame(60, 1), TXFlags{Interrupt: true})
	if seen != 0 || len(b.dma.sent) != 2 {
		t.Fatalf("the early look saw %d frames, %d sent", seen, len(b.dma.sent))
	}
	if b.irq.wakes != 1 {
		t.Errorf("%d wake-ups, want 1", b.irq.wakes)
	}
	if d := b.m.TX().Reclaim(); d.Frames != 1 {
		t.Errorf("the second look sees %+v", d)
	}
}

// afterStore runs something after each store.
type afterStore struct {
	*fakeMemory
	then func()
}

func (a *afterStore) Store32(off int, v uint32) {
	a.fakeMemory.Store32(off, v)
	a.then()
}

// TXR-08, TXR-09: frames that fill slots exactly, and one byte around that: one FS, on the first; one LS and at most one IC, on
// the last; no empty slot; the checksum code on the first.
func TestTXR08_TXR09_SegmentBoundaries(t *testing.T) {
	for _, c := range []struct {
		port *fakePort
		max  int
	}{{newFakePort(t), 2032}, {enhancedPort(t), 8176}, {newFakePort(t), 64}} {
		b := c.port.bench(Config{TXSlots: 8, TXSlotBytes: c.max})
		for k := 1; k <= 4; k++ {
			for n := k*c.max - 1; n <= k*c.max+1; n++ {
				if n > b.m.TX().MaxFrame() {
					continue
				}
				f := frame(n, n)
				first := len(b.dma.descs)
				slot := b.m.tx.head
				want := (n + c.max - 1) / c.max
				b.send(f, TXFlags{Interrupt: true})
				if p := b.m.TX().Pending(); p != want {
					t.Errorf("%d bytes in slots of %d take %d, want %d", n, c.max, p, want)
				}
				for i := range want {
					d := b.m.tx.layout.DecodeTX(Descriptor(b.dma.tx.mem.words[b.m.tx.at(slot, i)*4:][:4]))
					if !d.Own || d.First != (i == 0) || d.Last != (i == want-1) || d.Interrupt != d.Last || d.Bytes == 0 {
						t.Errorf("%d bytes, slot %d of %d: %+v", n, i, want, d)
					}
				}
				b.dma.sendAll()
				if got := len(b.dma.descs) - first; got != want || !bytes.Equal(b.dma.sent[len(b.dma.sent)-1], f) {
					t.Errorf("%d bytes: %d descriptors, or other content", n, got)
				}
				if d := b.m.TX().Reclaim(); d != (TXDone{Frames: 1, Slots: want, Bytes: n}) {
					t.Errorf("%d bytes: %+v", n, d)
				}
			}
		}
	}
}

// The control word of a frame: IC only when asked for, the checksum code as given.
func TestCommitFlags(t *testing.T) {
	b := newBench(t, Config{})
	for i, o := range []TXFlags{{}, {Interrupt: true}, {Checksum: CICHeader}, {Checksum: CICPayload}, {Interrupt: true, Checksum: CICFull}} {
		b.send(frame(60, i), o)
		b.dma.sendAll()
		w := b.dma.txs[i]
		if got := (TXFlags{w>>31 != 0, CIC(w >> 27 & 3)}); got != o {
			t.Errorf("%+v became %+v", o, got)
		}
	}
}

// The order of a hand-over (case TXR-06): payload, later slots, the rest of the
// first, a barrier, then OWN of the first, alone and last; another barrier before the poll demand.
func TestHandOverOrder(t *testing.T) {
	b := newBench(t, Config{TXSlots: 4, TXSlotBytes: 64})
	mem := b.dma.tx.mem
	mem.record = true
	b.m.TX().Write(0, frame(100, 1))
	if err := b.m.TX().Commit(100, TXFlags{}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"in 64 64", "in 128 36", // payload
		"store 28 4", "store 24 4", "store 20 4", "store 16 4", // second slot, OWN last
		"store 12 4", "store 8 4", "store 4 4", // first slot without DES0
		"barrier 0 0",
		"store 0 4",
	}
	if d := cmp.Diff(want, mem.events); d != "" {
		t.Error(d)
	}
	mem.events = nil
	kicked := false
	b.mac.onStore = func(off, v uint32) {
		if off == 0x1004 {
			kicked = true
			if !slices.Equal(mem.events, []string{"barrier 0 0"}) {
				t.Errorf("before the kick: %v", mem.events)
			}
		}
	}
	mark := b.mac.mark()
	b.m.TX().Kick()
	if n := len(b.mac.log) - mark; !kicked || n != 1 {
		t.Errorf("a kick is %d register accesses", n)
	}
}

// TXR-11: after RestartTX the engine and the ring agree on where they are, and frames go out in order. The list base is
// rewritten while the engine is stopped, and reception is not touched.
func TestTXR11_RestartTX(t *testing.T) {
	b := newBench(t, Config{TXSlots: 8})
	for i := range 5 {
		b.send(frame(60, i), TXFlags{})
	}
	b.dma.sendOne()
	b.dma.sendOne()
	rx := b.dma.rx.word(0)
	mark := b.mac.mark()
	if err := b.m.RestartTX(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range b.mac.writes(mark) {
		got = append(got, fmt.Sprintf("%x=%x", a.off, a.v))
	}
	want := []string{"1018=2201306", fmt.Sprintf("1010=%x", b.dma.tx.base), "1018=2203306"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if b.m.TX().Pending() != 0 || b.m.TX().Free() != 8 {
		t.Errorf("%d pending, %d free", b.m.TX().Pending(), b.m.TX().Free())
	}
	if s := b.m.TX().Stats(); s.Flushed != 5 || s.Frames != 0 {
		t.Errorf("stats %+v", s)
	}
	b.dma.tx.pos = 0 // the engine took the new base over
	b.dma.sent = nil
	var sent [][]byte
	for i := range 10 {
		sent = append(sent, frame(100, i))
		b.send(sent[i], TXFlags{})
		b.dma.sendAll()
		b.m.TX().Reclaim()
	}
	b.checkSent(sent...)
	if b.dma.rx.word(0) != rx {
		t.Error("the receive ring was touched")
	}
	b.checkRules()
	if err := b.m.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := b.m.RestartTX(); !errors.Is(err, ErrConfig) {
		t.Errorf("restart of a stopped MAC: %v", err)
	}
}

// TXR-12: the indices run freely. N frames fit N slots and the next does not, wherever the indices start.
func TestTXR12_FullIsNotEmpty(t *testing.T) {
	for _, start := range []uint32{0, 0xFFFFFFF0, 0xFFFFFFFF, 1 << 31} {
		for _, n := range []int{2, 3, 7, 256} {
			p := newFakePort(t)
			m := p.open(Config{TXSlots: n})
			m.tx.prod.Store(start)
			m.tx.cons.Store(start)
			b := &bench{fakePort: p, m: m, dma: &fakeDMA{}}
			b.start()
			tx := m.TX()
			if tx.Free() != n || tx.Pending() != 0 {
				t.Fatalf("start 0x%x: %d free, %d pending", start, tx.Free(), tx.Pending())
			}
			for round := range 3 {
				for i := range n {
					if tx.Free() != n-i || tx.Pending() != i {
						t.Fatalf("start 0x%x, %d slots, %d used: %d free, %d pending", start, n, i, tx.Free(), tx.Pending())
					}
					b.send(frame(60, i), TXFlags{})
				}
				tx.Write(0, frame(60, 99))
				if err := tx.Commit(60, TXFlags{}); err != ErrRingFull {
					t.Fatalf("frame %d of %d: %v", n+1, n, err)
				}
				b.dma.sendAll()
				if len(b.dma.sent) != (round+1)*n {
					t.Fatalf("%d frames sent", len(b.dma.sent))
				}
				if d := tx.Reclaim(); d.Frames != n || d.Slots != n || d.Bytes != 60*n {
					t.Fatalf("%+v", d)
				}
			}
		}
	}
}

// TXR-15: rings start on a cache line and a bus width, and a port that hands out something else is refused.
func TestTXR15_Alignment(t *testing.T) {
	b := newBench(t, Config{TXSlots: 3, RXSlots: 5, TXSlotBytes: 1520, RXSlotBytes: 1520})
	for _, off := range []uint32{0x100C, 0x1010} {
		if v := b.mac.get(off); v == 0 || v%64 != 0 {
			t.Errorf("list base 0x%x", v)
		}
	}
	for i := range 5 {
		if a := b.dma.rx.mem.words[i*4+2]; a%64 != 0 {
			t.Errorf("receive buffer at 0x%x", a)
		}
	}
	for name, change := range map[string]func(*fakeMemory){
		"odd base":     func(m *fakeMemory) { m.bus += 16 },
		"short":        func(m *fakeMemory) { m.words = m.words[:len(m.words)/2] },
		"beyond 4 GiB": func(m *fakeMemory) { m.bus = 0xFFFFFFC0 },
	} {
		p := newFakePort(t)
		p.prepare = change
		if _, err := Open(p, Config{}); !errors.Is(err, ErrConfig) || len(p.blocks) != 0 {
			t.Errorf("%s: %v, %d blocks left", name, err, len(p.blocks))
		}
	}
}

// TXR-18: buffers belong to slots for ever and every frame is accounted for by what was committed, whatever became of it.
func TestTXR18_ShadowLengths(t *testing.T) {
	b := newBench(t, Config{TXSlots: 16, TXSlotBytes: 256})
	b.dma.scribble = true
	rnd := rand.New(rand.NewPCG(3, 4))
	var committed, done TXDone
	for range 2000 {
		n := 14 + rnd.IntN(2000)
		if rnd.IntN(3) == 0 || b.m.TX().Free()*256 < n {
			b.dma.sendAll()
			d := b.m.TX().Reclaim()
			done.Frames, done.Slots, done.Bytes = done.Frames+d.Frames, done.Slots+d.Slots, done.Bytes+d.Bytes
		}
		f := frame(n, n)
		b.send(f, TXFlags{})
		committed.Frames, committed.Slots, committed.Bytes = committed.Frames+1, committed.Slots+(n+255)/256, committed.Bytes+n
		b.dma.sendOne()
		if got := b.dma.sent[len(b.dma.sent)-1]; len(b.dma.sent) == committed.Frames && !bytes.Equal(got, f) {
			t.Fatalf("frame %d is not what was written", committed.Frames)
		}
	}
	b.dma.sendAll()
	d := b.m.TX().Reclaim()
	done.Frames, done.Slots, done.Bytes = done.Frames+d.Frames, done.Slots+d.Slots, done.Bytes+d.Bytes
	if done != committed || len(b.dma.sent) != committed.Frames {
		t.Errorf("committed %+v, done %+v, sent %d", committed, done, len(b.dma.sent))
	}
}

// Pieces of a frame may be written in any order and any size, across slots.
func TestWritePieces(t *testing.T) {
	b := newBench(t, Config{TXSlots: 8, TXSlotBytes: 64})
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 200 {
		f := frame(14+rnd.IntN(8*64-14), i)
		var cuts []int
		for at := 0; at < len(f); at += 1 + rnd.IntN(100) {
			cuts = append(cuts, at)
		}
		order := rnd.Perm(len(cuts))
		for _, k := range order {
			end := len(f)
			if k+1 < len(cuts) {
				end = cuts[k+1]
			}
			b.m.TX().Write(cuts[k], f[cuts[k]:end])
		}
		if err := b.m.TX().Commit(len(f), TXFlags{}); err != nil {
			t.Fatal(err)
		}
		b.dma.sendAll()
		b.m.TX().Reclaim()
		if !bytes.Equal(b.dma.sent[i], f) {
			t.Fatalf("frame %d of %d bytes damaged", i, len(f))
		}
	}
}

// What Commit refuses, it refuses without a trace: nothing goes out, nothing is used up, the next frame is fine.
func TestCommitErrors(t *testing.T) {
	b := newBench(t, Config{TXSlots: 4})
	tx := b.m.TX()
	if tx.MaxFrame() != 4*1536 || tx.SlotBytes() != 1536 || tx.Slots() != 4 {
		t.Fatalf("ring of %d x %d, longest frame %d", tx.Slots(), tx.SlotBytes(), tx.MaxFrame())
	}
	for _, c := range []struct {
		name  string
		write func()
		n     int
		o     TXFlags
		want  error
	}{
		{"too short", func() { tx.Write(0, frame(13, 0)) }, 13, TXFlags{}, ErrConfig},
		{"negative", func() { tx.Write(0, frame(60, 0)) }, -1, TXFlags{}, ErrConfig},
		{"too long", func() { tx.Write(0, frame(4*1536, 0)) }, 4*1536 + 1, TXFlags{}, ErrConfig},
		{"beyond what was written", func() { tx.Write(0, frame(60, 0)) }, 61, TXFlags{}, ErrConfig},
		{"nothing written", func() {}, 60, TXFlags{}, ErrConfig},
		{"discarded", func() { tx.Write(0, frame(60, 0)); tx.Discard() }, 60, TXFlags{}, ErrConfig},
		{"negative offset", func() { tx.Write(-1, frame(60, 0)); tx.Write(0, frame(60, 0)) }, 60, TXFlags{}, ErrRingFull},
		{"bytes that found no slot", func() { tx.Write(4*1536-10, frame(60, 0)); tx.Write(0, frame(1536, 0)) }, 4 * 1536, TXFlags{}, nil},
		{"checksum too long", func() { tx.Write(0, frame(1768, 0)) }, 1768, TXFlags{Checksum: CICFull}, ErrConfig},
	} {
		c.write()
		err := tx.Commit(c.n, c.o)
		if c.want == nil { // the dropped bytes were not part of the frame
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			b.dma.sendAll()
			tx.Reclaim()
			b.dma.sent = nil
		} else if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		f := frame(100, len(c.name))
		b.send(f, TXFlags{})
		b.dma.sendAll()
		b.checkSent(f)
		tx.Reclaim()
		b.dma.sent = nil
	}

	// A frame whose bytes did not all find a slot fails even when slots have come free since.
	for range 3 {
		b.send(frame(60, 1), TXFlags{})
	}
	f := frame(2000, 2)
	tx.Write(0, f)
	b.dma.sendAll()
	tx.Reclaim()
	if err := tx.Commit(2000, TXFlags{}); err != ErrRingFull {
		t.Errorf("bytes were lost: %v", err)
	}
	b.dma.sent = nil
	tx.Write(0, f)
	if err := tx.Commit(2000, TXFlags{}); err != nil {
		t.Error(err)
	}
	b.dma.sendAll()
	b.checkSent(f)

	// Without an engine there is no insertion.
	p := newFakePort(t)
	p.mac.feature &^= 1 << 16
	p.mac.resetRegs()
	b = p.bench(Config{})
	b.m.TX().Write(0, frame(60, 0))
	if err := b.m.TX().Commit(60, TXFlags{Checksum: CICHeader}); !errors.Is(err, ErrUnsupported) || b.m.TX().MaxChecksum() != 0 {
		t.Errorf("no engine: %v, limit %d", err, b.m.TX().MaxChecksum())
	}
}

// Completed frames with errors are counted by cause and go on being completed.
func TestTXErrorsAreCounted(t *testing.T) {
	b := newBench(t, Config{})
	status := []uint32{0, 1<<15 | 1<<1, 1<<15 | 1<<2, 1<<15 | 1<<8 | 15<<3, 1<<15 | 1<<9, 1<<15 | 1<<10, 1<<15 | 1<<11, 1 << 12,
		1<<15 | 1<<13, 1<<15 | 1<<14, 1 << 16, 1 | 3<<3, 1 << 15}
	b.dma.txStatus = func(i int) uint32 { return status[i] }
	for i := range status {
		b.send(frame(60, i), TXFlags{})
	}
	b.dma.sendAll()
	if d := b.m.TX().Reclaim(); d.Frames != len(status) || d.Errors != 11 {
		t.Errorf("%+v", d)
	}
	want := TXStats{
		Frames: 13, Bytes: 13 * 60, Errors: 11, Underflow: 1, ExcessDefer: 1, ExcessColl: 1, LateColl: 1, NoCarrier: 1,
		CarrierLost: 1, PayloadSum: 1, FIFOFlushed: 1, Jabber: 1, HeaderSum: 1, Deferred: 1, Collisions: 3,
	}
	if d := cmp.Diff(want, b.m.TX().Stats()); d != "" {
		t.Error(d)
	}
}

// The slots of a frame are free when its last descriptor is, not before; reclaim reads one word for each frame, and one more.
func TestReclaimReadsEachStatusOnce(t *testing.T) {
	b := newBench(t, Config{TXSlots: 16, TXSlotBytes: 64})
	mem := b.dma.tx.mem
	for i := range 4 {
		b.send(frame(200, i), TXFlags{}) // four slots
	}
	b.dma.sendOne()
	for i := range 3 { // the second frame's data is in the FIFO, but it is not out
		mem.words[(4+i)*4] &^= 1 << 31
	}
	mem.loads = 0
	if d := b.m.TX().Reclaim(); d.Frames != 1 || d.Slots != 4 || mem.loads != 2 {
		t.Errorf("%+v with %d reads", d, mem.loads)
	}
	b.dma.tx.pos = 7
	for i := 4; i < 16; i++ {
		mem.words[i*4] &^= 1 << 31
	}
	mem.loads = 0
	if d := b.m.TX().Reclaim(); d.Frames != 3 || d.Slots != 12 || mem.loads != 3 {
		t.Errorf("%+v with %d reads", d, mem.loads)
	}
}

// BQL-04, hw's part: a device that completes frames within the kick, or before Commit has returned, does no harm.
func TestSynchronousCompletion(t *testing.T) {
	b := newBench(t, Config{TXSlots: 2})
	var done int
	b.mac.onStore = func(off, v uint32) {
		if off == 0x1004 {
			b.dma.sendAll()
			done += b.m.TX().Reclaim().Frames
		}
	}
	for i := range 100 {
		b.send(frame(60, i), TXFlags{Interrupt: true})
		b.m.TX().Kick()
	}
	if done != 100 || b.m.TX().Pending() != 0 {
		t.Errorf("%d done, %d pending", done, b.m.TX().Pending())
	}
}

// TXR-14, hw's part: producer and consumer in goroutines of their own, with the device in a third. Run with -race. Every frame
// goes out once, in order, and whenever the producer finds the ring full, it finds space after the consumer's next turn.
func TestTXR14_ProducerAndConsumerAtOnce(t *testing.T) {
	const frames = 3000
	b := newBench(t, Config{TXSlots: 7, TXSlotBytes: 64})
	tx := b.m.TX()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	space := make(chan struct{}, 1)
	wg.Go(func() { // device
		for {
			select {
			case <-stop:
				return
			default:
				if !b.dma.sendOne() {
					runtime.Gosched()
				}
			}
		}
	})
	var done TXDone
	wg.Go(func() { // consumer
		for done.Frames < frames {
			d := tx.Reclaim()
			done.Frames, done.Bytes = done.Frames+d.Frames, done.Bytes+d.Bytes
			if d.Frames > 0 {
				select {
				case space <- struct{}{}:
				default:
				}
			} else {
				runtime.Gosched()
			}
			if p := tx.Pending(); p < 0 || p > 7 {
				t.Errorf("%d slots pending", p)
			}
		}
		close(stop)
	})
	total := 0
	for i := range frames {
		f := frame(14+i%200, i)
		for tx.Free()*64 < len(f) {
			<-space
		}
		tx.Write(0, f)
		if err := tx.Commit(len(f), TXFlags{}); err != nil {
			t.Errorf("frame %d: %v", i, err)
			break
		}
		total += len(f)
	}
	wg.Wait()
	if done.Bytes != total {
		t.Errorf("%d bytes done of %d", done.Bytes, total)
	}
	for i, got := range b.dma.sent {
		if !bytes.Equal(got, frame(14+i%200, i)) {
			t.Fatalf("frame %d is not what was sent", i)
		}
	}
}
