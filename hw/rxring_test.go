package hw

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// got is a frame as a caller of the ring sees it.
type got struct {
	Frame   RXFrame
	Content []byte
}

// drain takes everything out of the ring, as a poll loop does.
func (b *bench) drain() []got {
	var out []got
	for {
		f, ok := b.m.RX().Next()
		if !ok {
			return out
		}
		g := got{Frame: f, Content: make([]byte, f.Len)}
		b.m.RX().CopyOut(g.Content)
		b.m.RX().Release()
		out = append(out, g)
	}
}

// good are the frames among them without an error.
func good(gs []got) [][]byte {
	var out [][]byte
	for _, g := range gs {
		if g.Frame.Err == 0 {
			out = append(out, g.Content)
		}
	}
	return out
}

func (b *bench) checkRX(want RXStats) {
	b.t.Helper()
	if d := cmp.Diff(want, b.m.RX().Stats()); d != "" {
		b.t.Error(d)
	}
}

// RXR-01: with every slot full the engine is suspended. Draining, Release and Resume are enough for the next frame: one poll
// demand, after the slots are back.
func TestRXR01_RingFullAndResumed(t *testing.T) {
	b := newBench(t, Config{RXSlots: 4})
	for i := range 4 {
		if !b.dma.receive(frame(60, i), rdFT) {
			t.Fatal("no slot")
		}
	}
	if b.dma.receive(frame(60, 4), rdFT) {
		t.Fatal("a fifth frame fits four slots")
	}
	b.mac.rxState = 4
	b.mac.set(0x1014, 1<<7|1<<15) // RU, the only interrupt
	if c := b.m.Interrupts(); !c.RXUnavailable() || c.RX() {
		t.Fatalf("cause %v", c)
	}
	b.mac.onStore = func(off, v uint32) {
		if off == 0x1008 {
			for i := range 4 {
				if b.dma.rx.mem.words[i*4]>>31 == 0 {
					t.Error("poll demand before the slots were given back")
				}
			}
			b.mac.rxState = 3
			b.dma.receive(frame(60, 4), rdFT)
		}
	}
	if n := len(b.drain()); n != 4 {
		t.Fatalf("%d frames", n)
	}
	mark := b.mac.mark()
	mem := b.dma.rx.mem
	mem.record = true
	b.mac.onLoad = func(off uint32) {
		b.mac.onLoad = nil
		if d := cmp.Diff([]string{"barrier 0 0"}, mem.events); d != "" {
			t.Errorf("before the state is read: %s", d)
		}
	}
	b.m.RX().Resume()
	mem.record = false
	if n := len(b.mac.log) - mark; n != 2 {
		t.Errorf("Resume is %d register accesses", n)
	}
	if gs := b.drain(); len(gs) != 1 || !bytes.Equal(gs[0].Content, frame(60, 4)) {
		t.Errorf("after Resume: %d frames", len(gs))
	}
	mark = b.mac.mark()
	b.m.RX().Resume() // the engine runs: no poll demand
	if n := len(b.mac.log) - mark; n != 1 {
		t.Errorf("Resume of a running engine is %d register accesses", n)
	}
	b.checkRX(RXStats{Frames: 5, Bytes: 300, Resumed: 1})
	b.checkRules()
}

// RXR-03, RXR-04: bad frames give their slots back like good ones and do not stop the draining.
func TestRXR03_RXR04_BadFramesDoNotStallTheRing(t *testing.T) {
	b := newBench(t, Config{RXSlots: 4})
	for round := range 5 {
		b.dma.receive(frame(60, round), rdFT)
		b.dma.receive(frame(60, 99), rdFT|1<<15|1<<1)
		b.dma.receive(frame(60, round+50), rdFT)
		if g := good(b.drain()); len(g) != 2 || !bytes.Equal(g[1], frame(60, round+50)) {
			t.Fatalf("round %d: %d good frames", round, len(g))
		}
	}
	b = newBench(t, Config{RXSlots: 64})
	for range 63 {
		b.dma.receive(frame(100, 0), rdFT|1<<15|1<<1)
	}
	b.dma.receive(frame(100, 1), rdFT)
	if gs := b.drain(); len(gs) != 64 || len(good(gs)) != 1 {
		t.Errorf("%d frames, %d good", len(gs), len(good(gs)))
	}
	b.checkRX(RXStats{Frames: 1, Bytes: 100, Errors: 63, CRC: 63})
}

// RXR-08: neither Release nor Resume nor anything else stores to a slot that the DMA owns; the trap is in the memory.
func TestRXR08_OwnedSlotsAreLeftAlone(t *testing.T) {
	b := newBench(t, Config{RXSlots: 7})
	mem := b.dma.rx.mem
	mem.rings = 7 * 16
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 500 {
		for range rnd.IntN(9) {
			b.dma.receive(frame(60+rnd.IntN(1400), 0), rdFT)
		}
		if rnd.IntN(4) == 0 {
			b.m.RX().Release() // nothing held
			b.m.RX().Resume()
		}
		for range rnd.IntN(9) {
			if _, ok := b.m.RX().Next(); ok {
				b.m.RX().Release()
				b.m.RX().Release()
			}
		}
		owned := 0
		for i := range 7 {
			owned += int(mem.words[i*4] >> 31)
		}
		var full int
		for full = 0; full < 7 && mem.words[b.m.rx.at(b.m.rx.next, full)*4]>>31 == 0; full++ {
		}
		if owned+full != 7 {
			t.Fatalf("%d owned by the DMA, %d frames waiting", owned, full)
		}
	}
}

// RXR-09: a slot given back is exactly OWN, size, ring bit and address, whatever status it carried.
func TestRXR09_RearmedWords(t *testing.T) {
	for _, p := range []*fakePort{newFakePort(t), enhancedPort(t)} {
		b := p.bench(Config{RXSlots: 2, RXWatchdog: 0})
		b.dma.scribble = true
		for i := range 31 {
			slot := b.m.rx.next
			status := uint32(rdFS|rdLS) | 1<<i | 64<<16
			b.dma.put(frame(64, i), status)
			if _, ok := b.m.RX().Next(); !ok {
				t.Fatalf("status bit %d: no frame", i)
			}
			b.m.RX().Release()
			end := when(slot == 1, 1<<25)
			if b.dma.enhanced {
				end = when(slot == 1, 1<<15)
			}
			want := []uint32{1 << 31, 1536 | end, b.m.rx.mem.Bus() + 64 + uint32(slot)*1536, 0}
			if d := cmp.Diff(want, b.dma.rx.mem.words[slot*4:slot*4+4]); d != "" {
				t.Fatalf("status bit %d: %s", i, d)
			}
		}
	}
}

// The receive watchdog makes slots silent; without it each raises RI.
func TestRXWatchdogSetsDIC(t *testing.T) {
	b := newBench(t, Config{RXWatchdog: 0x40})
	if v := b.mac.get(0x1024); v != 0x40 {
		t.Errorf("watchdog 0x%x", v)
	}
	if b.dma.rx.word(1)>>31 != 1 {
		t.Error("DIC is not set")
	}
	b = newBench(t, Config{})
	if b.dma.rx.word(1)>>31 != 0 || b.mac.get(0x1024) != 0 {
		t.Error("DIC or the watchdog is set")
	}
}

// RXR-13: a backlog of n frames costs at most n+1 descriptor reads, also when the frames take several slots.
func TestRXR13_ReadsPerFrame(t *testing.T) {
	for n := 1; n <= 16; n++ {
		b := newBench(t, Config{RXSlots: 32, RXSlotBytes: 64})
		b.dma.rx.mem.loads = 0
		for i := range n {
			b.dma.receive(frame(100, i), rdFT) // two slots
		}
		if len(b.drain()) != n || b.dma.rx.mem.loads > 2*n+1 {
			t.Errorf("%d frames of two slots took %d reads", n, b.dma.rx.mem.loads)
		}
		b.dma.rx.mem.loads = 0
		for i := range n {
			b.dma.receive(frame(50, i), rdFT)
		}
		if len(b.drain()) != n || b.dma.rx.mem.loads > n+1 {
			t.Errorf("%d frames took %d reads", n, b.dma.rx.mem.loads)
		}
	}
}

// A frame that arrives slot by slot is found when it is complete, and the slots seen before are not read again.
func TestPartialFrameIsNotReadTwice(t *testing.T) {
	b := newBench(t, Config{RXSlots: 16, RXSlotBytes: 64})
	mem := b.dma.rx.mem
	b.dma.put(frame(64, 0), rdFS)
	for range 5 {
		b.dma.put(frame(64, 0), 0)
		mem.loads = 0
		if _, ok := b.m.RX().Next(); ok || mem.loads > 3 {
			t.Fatalf("complete: %v, with %d reads", ok, mem.loads)
		}
	}
	b.dma.put(frame(64, 0), rdLS|rdFT|448<<16)
	if f, ok := b.m.RX().Next(); !ok || f.Slots != 7 || f.Err != RXTooLong || f.Len != 444 {
		t.Errorf("%+v %v", f, ok)
	}
}

// RXR-14: after Stop and Start, ring and engine begin at the first slot, wherever they were.
func TestRXR14_FirstFrameAfterRestart(t *testing.T) {
	b := newBench(t, Config{RXSlots: 7})
	for round := range 50 {
		for i := range 3 {
			b.dma.receive(frame(60, i), rdFT)
		}
		if round%2 == 0 {
			b.drain()
		} else {
			b.m.RX().Next() // held, and two frames left behind
		}
		if err := b.m.Stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		b.dma.receive(frame(100, round), rdFT)
		if gs := b.drain(); len(gs) != 1 || !bytes.Equal(gs[0].Content, frame(100, round)) {
			t.Fatalf("round %d: %d frames", round, len(gs))
		}
	}
	b.checkRules()
}

// RXF-01: the size that a descriptor advertises is inside its buffer, and a device that fills it to the last byte touches no
// other buffer.
func TestRXF01_AdvertisedSize(t *testing.T) {
	for _, size := range []int{16, 64, 1520, 1536, 2032} {
		b := newBench(t, Config{RXSlots: 4, RXSlotBytes: size})
		for i := range 4 {
			d := b.m.rx.layout.DecodeRX(Descriptor(b.dma.rx.mem.words[i*4 : i*4+4]))
			if d.Bytes != size || d.Bytes > 2047 {
				t.Fatalf("size %d is advertised as %d", size, d.Bytes)
			}
			from := int(d.Addr - b.dma.rx.mem.bus)
			if i > 0 {
				before := b.m.rx.layout.DecodeRX(Descriptor(b.dma.rx.mem.words[i*4-4 : i*4]))
				if int(before.Addr-b.dma.rx.mem.bus)+before.Bytes > from {
					t.Errorf("size %d: buffers %d and %d overlap", size, i-1, i)
				}
			}
			if from < 4*16 || from+size > b.dma.rx.mem.Size() {
				t.Errorf("size %d: buffer %d outside", size, i)
			}
		}
	}
}

// RXF-02: a frame larger than a slot is one bad frame, never two good ones; its slots come back. A frame that fits to the byte
// is good.
func TestRXF02_LargerThanASlot(t *testing.T) {
	b := newBench(t, Config{RXSlots: 8, RXSlotBytes: 256})
	for n := 200; n < 1100; n += 1 + n%3 {
		f := frame(n, n)
		if !b.dma.receive(f, rdFT) {
			t.Fatalf("%d bytes: no slot", n)
		}
		gs := b.drain()
		slots := (n + 4 + 255) / 256
		want := RXFrame{Len: n, Verdict: ChecksumGood, Slots: slots}
		if slots > 1 {
			want.Err = RXTooLong
		}
		if len(gs) != 1 || gs[0].Frame != want || !bytes.Equal(gs[0].Content, f) {
			t.Fatalf("%d bytes: %d frames, %+v, want %+v", n, len(gs), gs[0].Frame, want)
		}
	}
}

// RXF-04, RXF-10, RXF-14 and lying descriptors: whatever the length field says, nothing is out of bounds, and a length that
// cannot be is an error.
func TestRXF04_RXF10_LyingLengths(t *testing.T) {
	b := newBench(t, Config{RXSlots: 2, RXSlotBytes: 1536})
	for fl := 0; fl < 1<<14; fl++ {
		if fl > 64 && fl%1536 > 64 && fl != 1<<14-1 {
			continue // nothing changes in between
		}
		b.dma.put(nil, rdFS|rdLS|rdFT|uint32(fl)<<16)
		f, ok := b.m.RX().Next()
		if !ok {
			t.Fatalf("length %d: no frame", fl)
		}
		want := RXFrame{Len: fl - 4, Verdict: ChecksumGood, Slots: 1}
		switch {
		case fl < 18:
			want.Err = RXRunt
			want.Len = max(fl-4, 0)
		case fl > 1536:
			want.Err = RXBadLength
			want.Len = min(fl-4, 1536)
		}
		if f != want {
			t.Fatalf("length %d: %+v, want %+v", fl, f, want)
		}
		buf := make([]byte, 1<<14)
		b.m.RX().CopyOut(buf[:f.Len])
		b.m.RX().CopyOut(buf) // more than there is
		b.m.RX().CopyOut(nil)
		b.m.RX().Release()
	}
}

// Slots that make no frame: an end without a beginning, a beginning without an end, a whole ring without an end. Each is one
// bad frame, and what follows is not lost.
func TestBrokenFrames(t *testing.T) {
	const ok60 = rdFS | rdLS | rdFT | 64<<16
	for _, c := range []struct {
		name  string
		words []uint32
		want  []RXFrame
	}{
		{"no first", []uint32{rdLS | rdFT | 64<<16, ok60}, []RXFrame{{Len: 60, Err: RXBroken, Verdict: ChecksumGood, Slots: 1}, {Len: 60, Verdict: ChecksumGood, Slots: 1}}},
		{"no first, two slots", []uint32{0, rdLS | rdFT | 64<<16, ok60}, []RXFrame{{Len: 60, Err: RXBroken | RXTooLong, Verdict: ChecksumGood, Slots: 2}, {Len: 60, Verdict: ChecksumGood, Slots: 1}}},
		{"no last", []uint32{rdFS, ok60}, []RXFrame{{Err: RXBroken, Slots: 1}, {Len: 60, Verdict: ChecksumGood, Slots: 1}}},
		{"no last, two slots", []uint32{rdFS, 0, ok60}, []RXFrame{{Err: RXBroken | RXTooLong, Slots: 2}, {Len: 60, Verdict: ChecksumGood, Slots: 1}}},
		{"no end at all", []uint32{rdFS, 0, 0, 0}, []RXFrame{{Err: RXBroken | RXTooLong, Slots: 4}}},
		{"nothing but middles", []uint32{0, 0, 0, 0}, []RXFrame{{Err: RXBroken | RXTooLong, Slots: 4}}},
		{"truncated for want of a slot", []uint32{rdFS, rdLS | 1<<15 | 1<<14}, []RXFrame{{Err: RXTooLong | RXTruncated, Slots: 2}}},
	} {
		b := newBench(t, Config{RXSlots: 4, RXSlotBytes: 64})
		for _, w := range c.words {
			b.dma.put(nil, w)
		}
		var frames []RXFrame
		for _, g := range b.drain() {
			frames = append(frames, g.Frame)
		}
		if d := cmp.Diff(c.want, frames); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		for i := range 4 {
			if b.dma.rx.mem.words[i*4] != 1<<31 {
				t.Errorf("%s: slot %d was not given back", c.name, i)
			}
		}
	}
}

// RXF-07: the FCS is always taken off by four bytes, for frames with an EtherType as for those with a length; ACS and CST stay
// off in the configuration.
func TestRXF07_FCS(t *testing.T) {
	b := newBench(t, Config{})
	if c := MACConfig(b.mac.get(0)); c&(1<<7|1<<25) != 0 {
		t.Errorf("configuration %v", c)
	}
	f := frame(60, 1)
	b.dma.receive(f, rdFT)
	b.dma.receive(f, 0) // length frame
	for _, g := range b.drain() {
		if g.Frame.Err != 0 || !bytes.Equal(g.Content, f) {
			t.Errorf("%+v, %d bytes", g.Frame, len(g.Content))
		}
	}
}

// RXF-13: each kind of damage is counted under exactly one name, the worst, and nothing of it is good.
func TestRXF13_OneCounterForEachCause(t *testing.T) {
	n := func(set func(*RXStats)) RXStats {
		s := RXStats{Errors: 1}
		set(&s)
		return s
	}
	for _, c := range []struct {
		name   string
		status uint32
		length int
		want   RXStats
	}{
		{"CE", rdFT | 1<<15 | 1<<1, 60, n(func(s *RXStats) { s.CRC = 1 })},
		{"CE and dribble", rdFT | 1<<15 | 1<<1 | 1<<2, 60, n(func(s *RXStats) { s.CRC, s.Dribble = 1, 1 })},
		{"dribble alone", rdFT | 1<<2, 60, RXStats{Frames: 1, Bytes: 60, Dribble: 1}},
		{"DE", rdFT | 1<<15 | 1<<14, 60, n(func(s *RXStats) { s.Truncated = 1 })},
		{"LE", 1 << 12, 60, n(func(s *RXStats) { s.Length = 1 })},
		{"OE", rdFT | 1<<15 | 1<<11 | 1<<1, 60, n(func(s *RXStats) { s.FIFO = 1 })},
		{"RE", rdFT | 1<<15 | 1<<3 | 1<<1, 60, n(func(s *RXStats) { s.Receive = 1 })},
		{"watchdog", rdFT | 1<<15 | 1<<4 | 1<<1, 60, n(func(s *RXStats) { s.Cut = 1 })},
		{"late collision", rdFT | 1<<15 | 1<<6, 60, n(func(s *RXStats) { s.LateColl = 1 })},
		{"runt", rdFT, 13, n(func(s *RXStats) { s.Runt = 1 })},
		{"runt with bad CRC", rdFT | 1<<15 | 1<<1, 13, n(func(s *RXStats) { s.CRC = 1 })},
		{"header checksum", rdFT | 1<<7, 60, n(func(s *RXStats) { s.HeaderSum = 1 })},
		{"payload checksum", rdFT | 1, 60, n(func(s *RXStats) { s.PayloadSum = 1 })},
		{"both checksums", rdFT | 1<<15 | 1<<7 | 1, 60, n(func(s *RXStats) { s.HeaderSum = 1 })},
		{"summary alone", rdFT | 1<<15, 60, n(func(s *RXStats) { s.Other = 1 })},
		{"too long", rdFT, 1533, n(func(s *RXStats) { s.TooLong = 1 })},
	} {
		b := newBench(t, Config{})
		b.dma.receive(frame(c.length, 0), c.status)
		gs := b.drain()
		if len(gs) != 1 || (gs[0].Frame.Err == 0) != (c.want.Errors == 0) {
			t.Errorf("%s: %+v", c.name, gs)
		}
		if d := cmp.Diff(c.want, b.m.RX().Stats()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	p := newFakePort(t)
	b := p.bench(Config{NoRXChecksum: true})
	b.dma.receive(frame(1530, 0), rdFT|1<<7)
	if gs := b.drain(); len(gs) != 1 || gs[0].Frame.Err != RXGiant || gs[0].Frame.Verdict != ChecksumUnknown {
		t.Errorf("giant: %+v", gs)
	}
	b.checkRX(RXStats{Errors: 1, Giant: 1})
}

// RXF-14, ARM-09: the status is read once. A device that goes on changing words after that, which a real one does not do,
// changes nothing; what else is read is read behind a barrier.
func TestRXF14_ARM09_OneReadOfTheStatus(t *testing.T) {
	b := newBench(t, Config{RXSlots: 4})
	mem := b.dma.rx.mem
	b.dma.receive(frame(300, 1), rdFT)
	loads := 0
	mem.hook = func(op string) {
		if op == "load" {
			if loads++; loads > 1 {
				mem.words[0] = rdFS | rdLS | 60<<16
			}
		}
	}
	mem.record = true
	f, _ := b.m.RX().Next()
	buf := make([]byte, f.Len)
	b.m.RX().CopyOut(buf)
	if f.Len != 300 || !bytes.Equal(buf, frame(300, 1)) {
		t.Errorf("%+v", f)
	}
	want := []string{"load 0 4", "barrier 0 0", fmt.Sprintf("out %d 300", 64)}
	if d := cmp.Diff(want, mem.events); d != "" {
		t.Error(d)
	}
	// And the slot goes back in order: everything else, a barrier, OWN.
	mem.events = nil
	b.m.RX().Release()
	want = []string{"store 12 4", "store 8 4", "store 4 4", "barrier 0 0", "store 0 4"}
	if d := cmp.Diff(want, mem.events); d != "" {
		t.Error(d)
	}
}

// ARM-12, ARM-03: copying a frame out reads each byte of DMA memory once, and none outside the frame; ARM-06: what the caller
// does to its copy, and Release, leave the buffer as the device wrote it.
func TestARM12_ARM06_CopyOut(t *testing.T) {
	b := newBench(t, Config{RXSlots: 4, RXSlotBytes: 64})
	mem := b.dma.rx.mem
	for _, n := range []int{14, 59, 60, 61, 100, 200} {
		mem.reads = map[int]int{}
		f := frame(n, n)
		b.dma.receive(f, rdFT)
		before := slices.Clone(mem.words[16:])
		info, _ := b.m.RX().Next()
		buf := make([]byte, info.Len)
		b.m.RX().CopyOut(buf)
		if !bytes.Equal(buf, f) {
			t.Errorf("%d bytes: other content", n)
		}
		clear(buf)
		b.m.RX().Release()
		if !slices.Equal(before, mem.words[16:]) {
			t.Errorf("%d bytes: the buffer changed", n)
		}
		for off, times := range mem.reads {
			if times != 1 {
				t.Errorf("%d bytes: offset %d read %d times", n, off, times)
			}
		}
		if len(mem.reads) != n {
			t.Errorf("%d bytes: %d bytes read", n, len(mem.reads))
		}
	}
}

// Next without Release gives nothing more: no frame is handed out twice, and none is skipped.
func TestNextWithoutRelease(t *testing.T) {
	b := newBench(t, Config{RXSlots: 4})
	b.dma.receive(frame(60, 1), rdFT)
	b.dma.receive(frame(60, 2), rdFT)
	if _, ok := b.m.RX().Next(); !ok {
		t.Fatal("no frame")
	}
	if f, ok := b.m.RX().Next(); ok {
		t.Errorf("a second frame while the first is held: %+v", f)
	}
	b.m.RX().Release()
	if gs := b.drain(); len(gs) != 1 || !bytes.Equal(gs[0].Content, frame(60, 2)) {
		t.Errorf("%d frames", len(gs))
	}
	if n := b.m.RX().Slots() * b.m.RX().SlotBytes(); n != 4*1536 {
		t.Errorf("%d bytes of slots", n)
	}
}

// A VLAN frame is told apart; verdicts reach the caller.
func TestRXFrameDetails(t *testing.T) {
	b := newBench(t, Config{})
	b.dma.receive(frame(64, 1), rdFT|1<<10)
	b.dma.receive(frame(64, 1), 1)      // IP, payload unknown
	b.dma.receive(frame(64, 1), 1|1<<7) // not IP
	want := []RXFrame{
		{Len: 64, Verdict: ChecksumGood, VLAN: true, Slots: 1}, {Len: 64, Verdict: ChecksumL3Good, Slots: 1},
		{Len: 64, Verdict: ChecksumUnknown, Slots: 1},
	}
	for i, g := range b.drain() {
		if g.Frame != want[i] {
			t.Errorf("%+v, want %+v", g.Frame, want[i])
		}
	}
}

// FuzzRXRing: a device that writes any status words at all makes no panic, no slot is lost and the ring comes to rest.
func FuzzRXRing(f *testing.F) {
	f.Add([]byte{0x20, 0x03, 0xF2, 0x05, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F})
	f.Fuzz(func(t *testing.T, words []byte) {
		b := newBench(t, Config{RXSlots: 5, RXSlotBytes: 64})
		buf := make([]byte, 1<<14)
		for len(words) >= 4 {
			for range 5 {
				if len(words) < 4 {
					break
				}
				w := uint32(words[0]) | uint32(words[1])<<8 | uint32(words[2])<<16 | uint32(words[3])<<24
				b.dma.put(nil, w&^(1<<31))
				words = words[4:]
			}
			slots := 0
			for {
				f, ok := b.m.RX().Next()
				if !ok {
					break
				}
				if f.Len < 0 || f.Len > f.Slots*64 || f.Slots < 1 || f.Slots > 5 {
					t.Fatalf("%+v", f)
				}
				if f.Err == 0 && (f.Len < 14 || f.Len > 60 || f.Slots != 1) {
					t.Fatalf("good: %+v", f)
				}
				b.m.RX().CopyOut(buf[:f.Len])
				b.m.RX().Release()
				if slots += f.Slots; slots > 5 {
					t.Fatal("more slots came out than there are")
				}
			}
		}
		for i := range 5 {
			own := b.dma.rx.mem.words[i*4]>>31 != 0
			seen := b.m.rx.at(b.m.rx.next, b.m.rx.part)
			inPart := false
			for k := range b.m.rx.part {
				inPart = inPart || b.m.rx.at(b.m.rx.next, k) == i
			}
			if own == inPart {
				t.Fatalf("slot %d: owned %v, part of an unfinished frame %v (%d)", i, own, inPart, seen)
			}
		}
	})
}
