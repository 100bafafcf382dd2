package hw

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Configuration words as worked out from the bit table, with RE and TE, and what is not a link.
func TestSetLinkConfigWords(t *testing.T) {
	for _, c := range []struct {
		l    Link
		want uint32
	}{
		{Link{Speed: 1000, FullDuplex: true}, 0x00610C0C},
		{Link{Speed: 100, FullDuplex: true}, 0x0061CC0C},
		{Link{Speed: 10, FullDuplex: true}, 0x00618C0C},
		{Link{Speed: 1000}, 0x0061040C},
		{Link{Speed: 100}, 0x0061C40C},
		{Link{Speed: 10}, 0x0061840C},
	} {
		b := newBench(t, Config{})
		if err := b.m.SetLink(c.l); err != nil || b.mac.get(0) != c.want {
			t.Errorf("%v: 0x%08x, want 0x%08x (%v)", c.l, b.mac.get(0), c.want, err)
		}
	}
	b := newBench(t, Config{})
	mark := b.mac.mark()
	for _, s := range []int{0, -1, 2500, 99} {
		if err := b.m.SetLink(Link{Speed: s}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "Speed") {
			t.Errorf("speed %d: %v", s, err)
		}
	}
	p := newFakePort(t)
	p.mac.feature &^= 1 << 2
	p.mac.resetRegs()
	if err := p.open(Config{}).SetLink(Link{Speed: 100}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("half duplex without the feature: %v", err)
	}
	if len(b.mac.writes(mark)) != 0 {
		t.Error("a refused link was written")
	}
	if got := (Link{Speed: 100, FullDuplex: true, TXPause: true}).String(); got != "100 Mbit/s full duplex, pause tx" {
		t.Errorf("%q", got)
	}
}

// FLOW-01: over all changes from one pause state to another the register is a function of the new one; half duplex has none.
func TestFLOW01_NothingOfTheOldPauseStays(t *testing.T) {
	word := map[Link]uint32{}
	for _, full := range []bool{false, true} {
		for _, rx := range []bool{false, true} {
			for _, tx := range []bool{false, true} {
				var w uint32
				if full && rx {
					w |= 4
				}
				if full && tx {
					w |= 0xFFFF0002
				}
				word[Link{Speed: 100, FullDuplex: full, RXPause: rx, TXPause: tx}] = w
			}
		}
	}
	b := newBench(t, Config{})
	for from := range word {
		for to, want := range word {
			_ = b.m.SetLink(from)
			if err := b.m.SetLink(to); err != nil || b.mac.get(0x18) != want {
				t.Fatalf("%v to %v: 0x%08x, want 0x%08x (%v)", from, to, b.mac.get(0x18), want, err)
			}
		}
	}
	b.checkRules()

	// With a receive FIFO too small the MAC cannot send PAUSE, so it is left off.
	p := newFakePort(t)
	p.info.RXFIFOBytes = 2048
	m := p.open(Config{})
	if err := m.SetLink(Link{Speed: 100, FullDuplex: true, RXPause: true, TXPause: true}); err != nil || p.mac.get(0x18) != 4 || m.Link().TXPause {
		t.Errorf("small FIFO: 0x%x, %v", p.mac.get(0x18), err)
	}
}

// FLOW-05: by default there is no pause; resolution follows IEEE 802.3 table 28B-3 over all 16 combinations.
func TestFLOW05_PauseResolution(t *testing.T) {
	b := newBench(t, Config{})
	if b.mac.get(0x18) != 0 {
		t.Errorf("default flow control 0x%x", b.mac.get(0x18))
	}
	type in struct{ pause, asym, partnerPause, partnerAsym bool }
	type out struct{ tx, rx bool }
	for i := range 16 {
		c := in{i&8 != 0, i&4 != 0, i&2 != 0, i&1 != 0}
		var want out
		switch i {
		case 0b1010, 0b1011, 0b1110, 0b1111:
			want = out{true, true}
		case 0b1101:
			want = out{false, true}
		case 0b0111:
			want = out{true, false}
		}
		tx, rx := ResolvePause(c.pause, c.asym, c.partnerPause, c.partnerAsym)
		if (out{tx, rx}) != want {
			t.Errorf("%+v: tx %v rx %v", c, tx, rx)
		}
	}
}

// Hash bins of well-known groups, from the CRC of IEEE 802.3; the register bits follow.
func TestHashVectors(t *testing.T) {
	for _, c := range []struct {
		addr            [6]byte
		b64, b128, b256 int
		reg             uint32
		bit             int
	}{
		{[6]byte{0x01, 0x00, 0x5E, 0x00, 0x00, 0x01}, 32, 64, 128, 0x08, 0},
		{[6]byte{0x01, 0x00, 0x5E, 0x00, 0x00, 0xFB}, 48, 96, 192, 0x08, 16},
		{[6]byte{0x01, 0x00, 0x5E, 0x7F, 0xFF, 0xFA}, 20, 40, 81, 0x0C, 20},
		{[6]byte{0x33, 0x33, 0x00, 0x00, 0x00, 0x01}, 1, 3, 6, 0x0C, 1},
		{[6]byte{0x33, 0x33, 0x00, 0x00, 0x00, 0xFB}, 17, 35, 70, 0x0C, 17},
		{[6]byte{0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}, 61, 122, 244, 0x08, 29},
		{[6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x0E}, 30, 60, 120, 0x0C, 30},
		{[6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}, 47, 95, 190, 0x08, 15},
	} {
		if b := [3]int{HashBin(c.addr, 64), HashBin(c.addr, 128), HashBin(c.addr, 256)}; b != [3]int{c.b64, c.b128, c.b256} {
			t.Errorf("%x: bins %v, want %d %d %d", c.addr, b, c.b64, c.b128, c.b256)
		}
		if !multicast(c.addr) {
			continue
		}
		for _, bins := range []int{64, 128, 256} {
			b := newBench(t, Config{HashBins: bins})
			if err := b.m.SetFilter(Filter{Multicast: [][6]byte{c.addr}}); err != nil {
				t.Fatal(err)
			}
			reg, bit := c.reg, c.bit
			switch bins {
			case 128:
				reg, bit = 0x500+uint32(c.b128/32*4), c.b128%32
			case 256:
				reg, bit = 0x500+uint32(c.b256/32*4), c.b256%32
			}
			for off, v := range map[uint32]uint32{0x08: 0, 0x0C: 0, 0x500: 0, 0x504: 0, 0x508: 0, 0x50C: 0, 0x510: 0, 0x514: 0, 0x518: 0, 0x51C: 0, reg: 1 << bit} {
				if got := b.mac.get(off); off == reg && got != 1<<bit || off != reg && got != v {
					t.Errorf("%x, %d bins: 0x%x holds 0x%x", c.addr, bins, off, got)
				}
			}
			if got := b.mac.get(4); got != 0x404 {
				t.Errorf("%d bins: filter 0x%x", bins, got)
			}
		}
	}
}

// The filter register for each kind of filter. FILT-05: neither RA nor PR unless asked for. FILT-01: without a hash, joining any
// group passes all multicast, and leaving the last ends that.
func TestFILT01_FILT05_FilterWords(t *testing.T) {
	group := [6]byte{0x01, 0, 0x5E, 0, 0, 1}
	other := [6]byte{0x33, 0x33, 0, 0, 0, 1}
	own := func(n byte) [6]byte { return [6]byte{2, 0, 0, 0, 0, n} }
	for _, c := range []struct {
		name string
		f    Filter
		bins int
		want FrameFilter
		hash [2]uint32 // words 0 and 1
		n    int       // perfect entries used
	}{
		{"nothing", Filter{}, 64, 0x400, [2]uint32{}, 0},
		{"nothing, no hash", Filter{}, 0, 0x400, [2]uint32{}, 0},
		{"all multicast", Filter{AllMulticast: true, Multicast: [][6]byte{group}}, 64, 0x410, [2]uint32{}, 0},
		{"two groups", Filter{Multicast: [][6]byte{group, other}}, 64, 0x404, [2]uint32{2, 1}, 0},
		{"group without hash", Filter{Multicast: [][6]byte{group}}, 0, 0x410, [2]uint32{}, 0},
		{"promiscuous", Filter{Promiscuous: true, Multicast: [][6]byte{group}}, 64, 0x81, [2]uint32{}, 0},
		{"three more addresses", Filter{Unicast: [][6]byte{own(1), own(2), own(3)}}, 64, 0x400, [2]uint32{}, 3},
		{"one too many", Filter{Unicast: [][6]byte{own(1), own(2), own(3), {0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}}}, 64, 0x402, [2]uint32{0, 1 << 15}, 3},
		{"one too many, no hash", Filter{Unicast: [][6]byte{own(1), own(2), own(3), own(4)}}, 0, 0x81, [2]uint32{}, 3},
	} {
		w := c.f.words(c.bins, 4)
		if w.filter != c.want || w.hash != [8]uint32{c.hash[0], c.hash[1]} || len(w.perfect) != c.n {
			t.Errorf("%s: %v %x, %d entries", c.name, w.filter, w.hash, len(w.perfect))
		}
		if w.filter&FiltRA != 0 || w.filter&FiltPR != 0 && !c.f.Promiscuous && c.bins != 0 {
			t.Errorf("%s: %v", c.name, w.filter)
		}
	}

	p := newFakePort(t)
	p.mac.feature &^= 1 << 4
	p.mac.resetRegs()
	m := p.open(Config{})
	for _, step := range []struct {
		f    Filter
		want uint32
	}{{Filter{}, 0x400}, {Filter{Multicast: [][6]byte{group}}, 0x410}, {Filter{Multicast: [][6]byte{group, other}}, 0x410}, {Filter{}, 0x400}} {
		if err := m.SetFilter(step.f); err != nil || p.mac.get(4) != step.want {
			t.Errorf("%+v: 0x%x, %v", step.f, p.mac.get(4), err)
		}
	}
	for _, a := range p.mac.writes(0) {
		if a.off == 8 || a.off == 12 {
			t.Error("hash table written where there is none")
		}
	}
	p.checkRules()
}

// FILT-03: addresses that are not in the list any more are not in the filter, high word first in every change; the caller's
// slices are its own.
func TestFILT03_StaleEntries(t *testing.T) {
	own := func(n byte) [6]byte { return [6]byte{2, 0, 0, 0, 0, n} }
	b := newBench(t, Config{})
	if b.m.entries != 4 {
		t.Fatalf("%d entries found of 4", b.m.entries)
	}
	list := [][6]byte{own(1), own(2), own(3)}
	check := func(want ...[6]byte) {
		t.Helper()
		var got [][6]byte
		for n := uint32(1); n < 4; n++ {
			if high := b.mac.get(0x40 + 8*n); high>>31 != 0 {
				got = append(got, AddressOf(high, b.mac.get(0x44+8*n)))
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	if err := b.m.SetFilter(Filter{Unicast: list}); err != nil {
		t.Fatal(err)
	}
	check(list...)
	list[0] = own(9)
	if got := b.m.Filter().Unicast[0]; got != own(1) {
		t.Errorf("the caller's slice shows: %x", got)
	}
	mark := b.mac.mark()
	_ = b.m.SetFilter(Filter{Unicast: [][6]byte{own(1)}})
	check(own(1))
	want := []string{"0050=0000ffff", "0054=ffffffff", "0058=0000ffff", "005c=ffffffff"}
	if d := cmp.Diff(want, trace(b.mac.writes(mark))[:4]); d != "" {
		t.Error(d)
	}
	_ = b.m.SetFilter(Filter{})
	check()
	for _, f := range []Filter{{Multicast: [][6]byte{own(1)}}, {Unicast: [][6]byte{{1}}}, {Unicast: [][6]byte{{}}}} {
		if err := b.m.SetFilter(f); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	b.checkRules()
}

// A changed low word alone still writes both, as the low write is what hands the address over.
func TestAddressPairIsWrittenWhole(t *testing.T) {
	b := newBench(t, Config{})
	mark := b.mac.mark()
	_ = b.m.SetAddress([6]byte{0x02, 0x1E, 0x06, 0xC1, 0x00, 0x01}) // high word as before
	_ = b.m.SetAddress([6]byte{0x02, 0x1E, 0x06, 0xC1, 0x00, 0x02}) // low word as before
	_ = b.m.SetAddress([6]byte{0x02, 0x1E, 0x06, 0xC1, 0x00, 0x02})
	want := []string{"0040=80000100", "0044=c1061e02", "0040=80000200", "0044=c1061e02"}
	if d := cmp.Diff(want, trace(b.mac.writes(mark))); d != "" {
		t.Error(d)
	}
	b.checkRules()
}
