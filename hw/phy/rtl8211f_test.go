package phy

import (
	"errors"
	"testing"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

// In each mode both delay bits are written, whatever the straps made of them, and nothing else in their registers.
func TestDelays(t *testing.T) {
	for _, c := range []struct {
		mode   hw.InterfaceMode
		tx, rx uint16 // registers after Open
		want   Delays
	}{
		{hw.ModeRGMII, 0x0009, 0x0011, Delays{true, false, false}},
		{hw.ModeRGMIIID, 0x0109, 0x0019, Delays{true, true, true}},
		{hw.ModeRGMIIRXID, 0x0009, 0x0019, Delays{true, false, true}},
		{hw.ModeRGMIITXID, 0x0109, 0x0011, Delays{true, true, false}},
	} {
		for _, strap := range []uint16{0, 1} {
			m := newModel(t)
			tx, rx := [2]uint16{rtlPageRGMII, rtlTXCR}, [2]uint16{rtlPageRGMII, rtlRXCR}
			m.banks[tx] |= strap << 8
			m.banks[rx] |= strap << 3
			p, _ := m.open(Options{Mode: c.mode})
			if m.banks[tx] != c.tx || m.banks[rx] != c.rx {
				t.Errorf("%v, straps %d: TXCR %#04x RXCR %#04x, want %#04x %#04x", c.mode, strap, m.banks[tx], m.banks[rx], c.tx, c.rx)
			}
			var n int
			for _, o := range m.writes() {
				if o.Page == rtlPageRGMII {
					n++
				}
			}
			if n != 2 {
				t.Errorf("%v, straps %d: %d writes to the delay registers", c.mode, strap, n)
			}
			if got, err := p.Delays(); err != nil || got != c.want {
				t.Errorf("%v: %v, %v", c.mode, got, err)
			}
		}
	}
}

func TestDelaysOfOtherModesAreLeft(t *testing.T) {
	for _, mode := range []hw.InterfaceMode{hw.ModeRMII, hw.ModeMII} {
		m := newModel(t)
		m.open(Options{Mode: mode})
		for _, o := range m.writes() {
			if o.Page == rtlPageRGMII {
				t.Errorf("%v: wrote %v", mode, o)
			}
		}
		if m.resolved() != Mode100Full {
			t.Errorf("%v: negotiated %v over a 4-bit interface", mode, m.resolved())
		}
	}
}

func TestDelayThatDoesNotStickIsAnError(t *testing.T) {
	for _, c := range []struct {
		reg  uint16
		bit  uint16
		mode hw.InterfaceMode
	}{{rtlTXCR, rtlTXDelay, hw.ModeRGMIIID}, {rtlRXCR, rtlRXDelay, hw.ModeRGMIIRXID}} {
		m := newModel(t)
		m.stuckBits = map[[2]uint16]uint16{{rtlPageRGMII, c.reg}: c.bit}
		_, err := Open(m, newClock(), Options{Mode: c.mode})
		if !errors.Is(err, ErrReadBack) {
			t.Errorf("%v: %v", c.mode, err)
		}
		m.check()
	}
}

// What stops the receive clock without a link, or keeps LPI from the MAC, is off after Open; the clock output is not ours.
func TestPowerSavingIsOff(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	if v := m.banks[[2]uint16{rtlPagePHY, rtlPHYCR1}]; v != 0x2100 {
		t.Errorf("PHYCR1 %#04x", v)
	}
	if v := m.banks[[2]uint16{rtlPagePHY, rtlPHYCR2}]; v != 0x0801 {
		t.Errorf("PHYCR2 %#04x", v)
	}
	if on, err := p.ALDPS(); on || err != nil {
		t.Errorf("ALDPS %v, %v", on, err)
	}
	m.set(func() { m.banks[[2]uint16{rtlPagePHY, rtlPHYCR1}] |= rtlALDPSEnable })
	if on, err := p.ALDPS(); !on || err != nil {
		t.Errorf("ALDPS %v, %v", on, err)
	}
}

func TestInterrupt(t *testing.T) {
	m := newModel(t)
	iner := [2]uint16{rtlPageINER, rtlINER}
	m.banks[iner] = 0x0090 // as the last user left it
	p, _ := m.open(Options{})
	if m.banks[iner] != 0 {
		t.Errorf("after Open: INER %#x", m.banks[iner])
	}
	m.pull()
	if err := p.SetInterrupt(true); err != nil {
		t.Fatal(err)
	}
	if m.banks[iner] != 0x0010 || m.pending != 0 {
		t.Errorf("enabled: INER %#x, pending %#x", m.banks[iner], m.pending)
	}
	if change, err := p.AcknowledgeInterrupt(); change || err != nil {
		t.Errorf("nothing happened: %v, %v", change, err)
	}
	m.plug()
	if change, err := p.AcknowledgeInterrupt(); !change || err != nil {
		t.Errorf("plugged: %v, %v", change, err)
	}
	if change, _ := p.AcknowledgeInterrupt(); change {
		t.Error("told twice")
	}
	m.pull()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if m.banks[iner] != 0 || m.pending != 0 {
		t.Errorf("closed: INER %#x, pending %#x", m.banks[iner], m.pending)
	}
}

func TestGenericPHYHasNoExtras(t *testing.T) {
	for _, id := range []ID{RTL8211E, 0x20005c90} {
		m := newPlain(t, id)
		p, _ := m.open(Options{Mode: hw.ModeRGMIIID})
		if p.Driver() != "generic" || p.ID() != id {
			t.Errorf("%v is driven by %s", p.ID(), p.Driver())
		}
		if d, err := p.Delays(); d.Known || err != nil {
			t.Errorf("delays %v, %v", d, err)
		}
		if err := p.SetInterrupt(true); !errors.Is(err, hw.ErrUnsupported) {
			t.Errorf("interrupt: %v", err)
		}
		if _, err := p.AcknowledgeInterrupt(); !errors.Is(err, hw.ErrUnsupported) {
			t.Errorf("acknowledge: %v", err)
		}
		if on, err := p.ALDPS(); on || err != nil {
			t.Errorf("ALDPS %v, %v", on, err)
		}
		for _, o := range m.writes() {
			if o.Page != 0 || o.Reg > RegESR {
				t.Errorf("wrote %v to a PHY that nothing is known of", o)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReportAndDump(t *testing.T) {
	m := newModel(t)
	m.addr = 3
	p, _ := m.open(Options{Mode: hw.ModeRGMIIID, Settings: Settings{Pause: PauseSymmetric}})
	m.set(func() { m.partnerPause = PauseSymmetric; m.negotiate(); m.latched = false })
	got, err := p.Report()
	if err != nil {
		t.Fatal(err)
	}
	want := Report{
		Addr: 3, ID: RTL8211F, Driver: "RTL8211F", Mode: hw.ModeRGMIIID, Supported: AllModes,
		Settings: Settings{Pause: PauseSymmetric}, Control: BMCRAutoneg | BMCRDuplex | BMCRSpeed1000,
		Status: Status{Up: true, Autoneg: true, Complete: true, Link: hw.Link{Speed: 1000, FullDuplex: true, RXPause: true, TXPause: true},
			Partner: Partner{Autoneg: true, Modes: AllModes, Pause: PauseSymmetric}, Master: true},
		EEE:    EEE{Supported: allEEE, Partner: allEEE},
		Delays: Delays{true, true, true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	list, err := p.Dump()
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]Value{}
	for _, v := range list {
		named[v.Name] = v
	}
	for _, w := range []Value{
		{"BMCR", 0, 0, 0x1140, "ANENABLE FULLDPLX SPEED1000"},
		{"PHYID2", 0, 3, 0xc916, ""},
		{"TXCR", rtlPageRGMII, rtlTXCR, 0x0109, "TX_DELAY 0x9"},
		{"PHYSR", rtlPagePHY, rtlPHYSR, 0x002c, "up 1000/full"},
	} {
		if d := cmp.Diff(w, named[w.Name]); d != "" {
			t.Errorf("%s: %s", w.Name, d)
		}
	}
	if _, ok := named["INSR"]; ok {
		t.Error("a dump must not clear the interrupt")
	}
}
