package hw

import (
	"errors"
	"sync"
	"testing"
	"time"
)

// PHY-03: the MDIO clock is never faster than 2.5 MHz and the codes change exactly at the documented frequencies.
func TestPHY03_CSRRange(t *testing.T) {
	for _, c := range []struct {
		hz, code, div uint32
	}{
		{20_000_000, 2, 16}, {34_999_999, 2, 16}, {35_000_000, 3, 26}, {59_999_999, 3, 26}, {60_000_000, 0, 42},
		{99_999_999, 0, 42}, {100_000_000, 1, 62}, {149_999_999, 1, 62}, {150_000_000, 4, 102}, {159_375_000, 4, 102},
		{249_999_999, 4, 102}, {250_000_000, 5, 124}, {300_000_000, 5, 124},
	} {
		code, div, err := CSRRange(c.hz)
		if code != c.code || div != c.div || err != nil {
			t.Errorf("%d Hz: %d, %d, %v, want %d, %d", c.hz, code, div, err, c.code, c.div)
		}
	}
	for hz := uint32(20_000_000); hz <= 300_000_000; hz += 12_345 {
		if _, div, err := CSRRange(hz); err != nil || hz/div > 2_500_000 {
			t.Fatalf("%d Hz: MDC of %d Hz, %v", hz, hz/max(div, 1), err)
		}
	}
	for _, hz := range []uint32{0, 1, 19_999_999, 300_000_001, 0xFFFFFFFF} {
		if _, _, err := CSRRange(hz); !errors.Is(err, ErrConfig) {
			t.Errorf("%d Hz: %v", hz, err)
		}
	}
}

// PHY-05: commands bit for bit.
func TestPHY05_EncodeMII(t *testing.T) {
	for _, c := range []struct {
		phy, reg int
		clock    uint32
		write    bool
		want     MIIAddress
	}{
		{0, 2, 4, false, 0x00000091}, {0, 31, 4, true, 0x000007D3}, {31, 31, 5, true, 31<<11 | 31<<6 | 5<<2 | 2 | 1},
		{0, 0, 0, false, 1}, {32, 32, 16, false, 1}, // what does not fit does not spill
	} {
		if got := EncodeMII(c.phy, c.reg, c.clock, c.write); got != c.want {
			t.Errorf("%d %d %d %v: 0x%x, want 0x%x", c.phy, c.reg, c.clock, c.write, uint32(got), uint32(c.want))
		}
	}
}

// FuzzMII (PHY-05): a command taken apart is what went into it, and no field touches another.
func FuzzMII(f *testing.F) {
	f.Add(0, 2, uint32(4), false)
	f.Add(31, 31, uint32(15), true)
	f.Fuzz(func(t *testing.T, phy, reg int, clock uint32, write bool) {
		v := EncodeMII(phy, reg, clock, write)
		if v.PHY() != phy&31 || v.Reg() != reg&31 || v.Clock() != clock&15 || v.Write() != write || !v.Busy() || v>>16 != 0 {
			t.Errorf("%d %d %d %v became %v", phy, reg, clock, write, v)
		}
		if EncodeMII(v.PHY(), v.Reg(), v.Clock(), v.Write()) != v {
			t.Errorf("%v does not survive", v)
		}
	})
}

// Data goes to its register before the command; arguments out of range never reach the bus.
func TestMDIOAccess(t *testing.T) {
	b := newBench(t, Config{})
	mark := b.mac.mark()
	if err := b.m.WritePHY(0, 31, 0x0A43); err != nil {
		t.Fatal(err)
	}
	var writes []access
	for _, a := range b.mac.log[mark:] {
		if a.write {
			writes = append(writes, a)
		}
	}
	if len(writes) != 2 || writes[0].off != 0x14 || writes[0].v != 0x0A43 || writes[1].off != 0x10 || writes[1].v != 0x07D3 {
		t.Errorf("%v", trace(writes))
	}
	if v, err := b.m.ReadPHY(0, 31); v != 0x0A43 || err != nil {
		t.Errorf("read back 0x%x, %v", v, err)
	}
	if v, err := b.m.ReadPHY(7, 2); v != 0xFFFF || err != nil {
		t.Errorf("nobody at 7: 0x%x, %v", v, err)
	}
	// A command of somebody else's is under way: ours waits, and is not dropped.
	b.mac.mdioBusy = b.clk.Now().Add(200 * time.Microsecond)
	if v, err := b.m.ReadPHY(0, 2); v != 0x001C || err != nil {
		t.Errorf("behind another command: 0x%x, %v", v, err)
	}
	b.mac.mdioBusy = b.clk.Now().Add(200 * time.Microsecond)
	if err := b.m.WritePHY(0, 31, 7); err != nil || b.mac.phys[0].regs[31] != 7 {
		t.Errorf("behind another command: %d written, %v", b.mac.phys[0].regs[31], err)
	}
	b.checkRules()
	mark = b.mac.mark()
	for _, a := range [][2]int{{-1, 0}, {32, 0}, {0, -1}, {0, 32}} {
		if _, err := b.m.ReadPHY(a[0], a[1]); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", a, err)
		}
	}
	if b.mac.mark() != mark {
		t.Error("the bus was used")
	}
}

// PHY-06: four goroutines at once, on a bus that drops commands while it is busy, each read what they should. Run with -race.
func TestPHY06_Concurrent(t *testing.T) {
	p := newFakePort(t)
	for a := 1; a < 5; a++ {
		phy := newFakePHY()
		for r := 16; r < 31; r++ {
			phy.regs[r] = uint16(a<<8 | r)
		}
		p.mac.phys[a] = phy
	}
	m := p.open(Config{})
	var wg sync.WaitGroup
	for a := 1; a < 5; a++ {
		wg.Go(func() {
			for i := range 100 {
				r := 16 + i%15
				if v, err := m.ReadPHY(a, r); v != uint16(a<<8|r) || err != nil {
					t.Errorf("PHY %d register %d: 0x%x, %v", a, r, v, err)
				}
				if err := m.WritePHY(a, 31, uint16(i)); err != nil {
					t.Error(err)
				}
				_, _, _ = m.LinkStatus()
				_ = m.Counters()
				_ = m.Dump()
			}
		})
	}
	wg.Wait()
	p.checkRules()
}

// PHY-01, PHY-14: a PHY is found at any address from 0 to 31, and a fixed address, 0 among them, is used and no other.
func TestPHY01_PHY14_Scan(t *testing.T) {
	for _, at := range []int{0, 1, 17, 31} {
		p := newFakePort(t)
		p.mac.phys = map[int]*fakePHY{at: newFakePHY()}
		m := p.open(Config{})
		if addr, id, err := m.ScanPHY(); addr != at || id != 0x001CC916 || err != nil {
			t.Errorf("PHY at %d: found %d, 0x%x, %v", at, addr, id, err)
		}
		if _, up, err := m.LinkStatus(); !up || err != nil {
			t.Errorf("PHY at %d: up %v, %v", at, up, err)
		}
		m = p.open(Config{PHY: PHYAt((at + 1) % 32)})
		if _, _, err := m.ScanPHY(); !errors.Is(err, ErrNoPHY) {
			t.Errorf("PHY at %d, told %d: %v", at, (at+1)%32, err)
		}
	}
	p := newFakePort(t)
	p.mac.phys = map[int]*fakePHY{0: newFakePHY(), 3: newFakePHY()}
	for c, want := range map[PHYAddr]int{ScanPHY: 0, PHYAt(0): 0, PHYAt(3): 3} {
		m := p.open(Config{PHY: c})
		if addr, _, err := m.ScanPHY(); addr != want || err != nil {
			t.Errorf("told %d: %d, %v", c, addr, err)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []PHYAddr{PHYAt(-1), PHYAt(32), 77} {
		if _, err := Open(p, Config{PHY: a}); !errors.Is(err, ErrConfig) {
			t.Errorf("address %d: %v", a, err)
		}
	}
}

// Identifiers of nobody: ones, and zeros as some wirings give. A PHY that comes out of its reset a little late is still found.
func TestScanIgnoresEmptyAddresses(t *testing.T) {
	for _, id := range [][2]uint16{{0, 0}, {0xFFFF, 0xFFFF}, {0, 0xFFFF}, {0xFFFF, 0}} {
		p := newFakePort(t)
		p.mac.phys = map[int]*fakePHY{0: newFakePHY(), 2: newFakePHY()}
		p.mac.phys[0].regs[2], p.mac.phys[0].regs[3] = id[0], id[1]
		if addr, _, err := p.open(Config{}).ScanPHY(); addr != 2 || err != nil {
			t.Errorf("id %04x: found %d, %v", id, addr, err)
		}
	}
	p := newFakePort(t)
	late := newFakePHY()
	p.mac.phys = map[int]*fakePHY{}
	until := p.clk.now.Add(50 * time.Millisecond)
	p.mac.onStore = func(off, v uint32) {
		if off == 0x10 && !p.clk.Now().Before(until) {
			p.mac.mu.Lock()
			p.mac.phys[0] = late
			p.mac.mu.Unlock()
		}
	}
	if m := p.open(Config{}); m.phy.addr != 0 {
		t.Errorf("%v", m.phy)
	}
}

// A board without a PHY opens, and its link is what it was set to; one whose PHY is missing opens too, and says so when asked.
func TestNoPHY(t *testing.T) {
	p := newFakePort(t)
	p.mac.phys = nil
	m := p.open(Config{PHY: NoPHY})
	want := Link{Speed: 100, FullDuplex: true}
	_ = m.SetLink(want)
	if l, up, err := m.LinkStatus(); l != want || !up || err != nil {
		t.Errorf("%v %v %v", l, up, err)
	}
	if _, _, err := m.ScanPHY(); !errors.Is(err, ErrNoPHY) {
		t.Error(err)
	}
	for _, a := range p.mac.log {
		if a.off == 0x10 {
			t.Fatal("the bus was used")
		}
	}
	p = newFakePort(t)
	p.mac.phys = nil
	m = p.open(Config{})
	if _, up, err := m.LinkStatus(); up || !errors.Is(err, ErrNoPHY) {
		t.Errorf("%v %v", up, err)
	}
	p.mac.phys = map[int]*fakePHY{4: newFakePHY()} // plugged in
	if _, up, err := m.LinkStatus(); !up || err != nil {
		t.Errorf("%v %v", up, err)
	}
	p.mac.phys = nil // and out again
	if _, up, err := m.LinkStatus(); up || !errors.Is(err, ErrNoPHY) {
		t.Errorf("%v %v", up, err)
	}
}

// PHY-08: the status register is read twice. A link that is down is down; one that dropped and came back between two calls is
// down once, counted once, and then up.
func TestPHY08_LatchedLink(t *testing.T) {
	p := newFakePort(t)
	m := p.open(Config{})
	phy := p.mac.phys[0]
	check := func(want bool, drops uint64) {
		t.Helper()
		if _, up, err := m.LinkStatus(); up != want || err != nil || m.LinkDrops() != drops {
			t.Errorf("up %v, want %v, %d drops, want %d, %v", up, want, m.LinkDrops(), drops, err)
		}
	}
	phy.drop() // before anybody asked: no drop that anybody saw
	check(true, 0)
	check(true, 0)
	phy.drop()
	check(false, 1)
	check(true, 1)
	phy.up = false
	phy.drop()
	check(false, 2)
	check(false, 2)
	phy.up = true
	check(true, 2)
}

// What the registers say about the link, by the priority of IEEE 802.3 28B.3 and for forced modes.
func TestLinkStatusResolution(t *testing.T) {
	type regs struct{ bmcr, bmsr, anar, lpa, ctrl, stat uint16 }
	for _, c := range []struct {
		name string
		mode InterfaceMode
		r    regs
		want Link
		up   bool
	}{
		{"1000 full", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0xC1E1, 0x0200, 0x3800}, Link{Speed: 1000, FullDuplex: true}, true},
		{"1000 over RMII is 100", ModeRMII, regs{0x1140, 0x796D, 0x01E1, 0xC1E1, 0x0200, 0x3800}, Link{Speed: 100, FullDuplex: true}, true},
		{"partner has no 1000", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0xC1E1, 0x0200, 0}, Link{Speed: 100, FullDuplex: true}, true},
		{"1000 half", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0xC1E1, 0x0300, 0x0400}, Link{Speed: 1000}, true},
		{"no extended registers", ModeRGMII, regs{0x1140, 0x782D, 0x01E1, 0xC1E1, 0xFFFF, 0xFFFF}, Link{Speed: 100, FullDuplex: true}, true},
		{"100 half", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0x40E1, 0, 0}, Link{Speed: 100}, true},
		{"10 full", ModeRGMII, regs{0x1140, 0x796D, 0x0061, 0x41E1, 0, 0}, Link{Speed: 10, FullDuplex: true}, true},
		{"10 half, by parallel detection", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0x0021, 0, 0}, Link{Speed: 10}, true},
		{"nothing in common", ModeRGMII, regs{0x1140, 0x796D, 0x01E1, 0x0001, 0, 0}, Link{}, false},
		{"negotiating", ModeRGMII, regs{0x1140, 0x794D, 0x01E1, 0xC1E1, 0x0200, 0x3800}, Link{}, false},
		{"down", ModeRGMII, regs{0x1140, 0x7969, 0x01E1, 0xC1E1, 0x0200, 0x3800}, Link{}, false},
		{"pause both ways", ModeRGMII, regs{0x1140, 0x796D, 0x05E1, 0xC5E1, 0x0200, 0x3800}, Link{1000, true, true, true}, true},
		{"pause to be obeyed", ModeRGMII, regs{0x1140, 0x796D, 0x0DE1, 0xC9E1, 0x0200, 0x3800}, Link{1000, true, true, false}, true},
		{"no pause in half duplex", ModeRGMII, regs{0x1140, 0x796D, 0x05E1, 0x44E1, 0, 0}, Link{Speed: 100}, true},
		{"forced 100 full", ModeRGMII, regs{0x2100, 0x794D, 0x0DE1, 0xCDE1, 0, 0}, Link{Speed: 100, FullDuplex: true}, true},
		{"forced 10 half", ModeRGMII, regs{0x0000, 0x794D, 0x0DE1, 0xCDE1, 0, 0}, Link{Speed: 10}, true},
		{"forced 1000 full", ModeRGMII, regs{0x0140, 0x794D, 0, 0, 0, 0}, Link{Speed: 1000, FullDuplex: true}, true},
	} {
		p := newFakePort(t)
		p.info.Mode = c.mode
		phy := p.mac.phys[0]
		phy.regs[0], phy.regs[1], phy.regs[4], phy.regs[5], phy.regs[9], phy.regs[10] = c.r.bmcr, c.r.bmsr, c.r.anar, c.r.lpa, c.r.ctrl, c.r.stat
		phy.up = c.r.bmsr&4 != 0
		m := p.open(Config{})
		if l, up, err := m.LinkStatus(); l != c.want || up != c.up || err != nil {
			t.Errorf("%s: %v up %v, want %v up %v, %v", c.name, l, up, c.want, c.up, err)
		} else if up {
			if err := m.SetLink(l); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	p := newFakePort(t) // a MAC that cannot send PAUSE does not resolve to it
	p.info.RXFIFOBytes = 2048
	p.mac.phys[0].regs[4], p.mac.phys[0].regs[5] = 0x05E1, 0xC5E1
	if l, _, _ := p.open(Config{}).LinkStatus(); l.TXPause || !l.RXPause {
		t.Errorf("small FIFO: %v", l)
	}
}
