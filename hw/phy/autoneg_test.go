package phy

import (
	"errors"
	"testing"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

func TestNegotiationResult(t *testing.T) {
	full := func(speed int) hw.Link { return hw.Link{Speed: speed, FullDuplex: true} }
	for _, c := range []struct {
		name string
		n    negotiation
		want hw.Link
	}{
		{"gigabit", negotiation{anar: 0x01e1, lpa: 0xc1e1, gbcr: 0x0200, gbsr: 0x7c00, gigabit: true}, full(1000)},
		{"gigabit half only in common", negotiation{anar: 0x01e1, lpa: 0xc1e1, gbcr: 0x0300, gbsr: 0x0400, gigabit: true}, hw.Link{Speed: 1000}},
		{"gigabit not ours", negotiation{anar: 0x01e1, lpa: 0xc1e1, gbcr: 0, gbsr: 0x0c00, gigabit: true}, full(100)},
		{"register 9 and 10 absent", negotiation{anar: 0x01e1, lpa: 0xc1e1, gbcr: 0xffff, gbsr: 0xffff}, full(100)},
		{"100 half before 10 full", negotiation{anar: 0x01e1, lpa: 0x40e1}, hw.Link{Speed: 100}},
		{"10 full", negotiation{anar: 0x01e1, lpa: 0x4061}, full(10)},
		{"10 half", negotiation{anar: 0x01e1, lpa: 0x4021}, hw.Link{Speed: 10}},
		{"nothing in common", negotiation{anar: 0x0101, lpa: 0x4021}, hw.Link{}},
		{"parallel detection of 100", negotiation{anar: 0x01e1, lpa: 0x0080}, hw.Link{Speed: 100}},
		{"symmetric pause", negotiation{anar: 0x05e1, lpa: 0xc5e1}, hw.Link{Speed: 100, FullDuplex: true, RXPause: true, TXPause: true}},
		{"pause, half duplex", negotiation{anar: 0x0481, lpa: 0xc481}, hw.Link{Speed: 100}},
		{"receive pause", negotiation{anar: 0x0de1, lpa: 0xc9e1}, hw.Link{Speed: 100, FullDuplex: true, RXPause: true}},
		{"send pause", negotiation{anar: 0x09e1, lpa: 0xcde1}, hw.Link{Speed: 100, FullDuplex: true, TXPause: true}},
	} {
		c.n.bmcr |= BMCRAutoneg
		if d := cmp.Diff(c.want, c.n.resolve()); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	for bmcr, want := range map[BMCR]hw.Link{
		0x0000: {Speed: 10}, 0x0100: full(10), 0x2000: {Speed: 100}, 0x2100: full(100), 0x0040: {Speed: 1000}, 0x0140: full(1000),
		0x2140: {}, // reserved
	} {
		if d := cmp.Diff(want, negotiation{bmcr: bmcr, anar: 0x0de1, lpa: 0xcde1}.resolve()); d != "" {
			t.Errorf("forced %#04x: %s", uint16(bmcr), d)
		}
	}
}

func TestStatus(t *testing.T) {
	all := Partner{Autoneg: true, Modes: AllModes}
	for _, c := range []struct {
		name string
		set  func(*model)
		o    Options
		want Status
	}{
		{"cable pulled", func(m *model) { m.plugged = false }, Options{}, Status{Autoneg: true}},
		{"negotiating", func(m *model) { m.hold = true }, Options{}, Status{Autoneg: true}},
		{"partner without gigabit", func(m *model) { m.partner = Mode100Full | Mode10Half }, Options{},
			Status{Up: true, Autoneg: true, Complete: true, Link: hw.Link{Speed: 100, FullDuplex: true},
				Partner: Partner{Autoneg: true, Modes: Mode100Full | Mode10Half}}},
		{"partner forced to 100 full: duplex mismatch", func(m *model) { m.partner, m.partnerSilent = Mode100Full, true }, Options{},
			Status{Up: true, Autoneg: true, Complete: true, Link: hw.Link{Speed: 100}, Partner: Partner{Modes: Mode100Half}}},
		{"two pairs only", func(m *model) { m.downshift = Mode100Full }, Options{Settings: Settings{Pause: PauseSymmetric}},
			Status{Up: true, Autoneg: true, Complete: true, Link: hw.Link{Speed: 100, FullDuplex: true}, Partner: all, Downshifted: true}},
		{"nothing in common", func(m *model) { m.partner = Mode10Half }, Options{Settings: Settings{Advertise: Mode100Full}},
			Status{Autoneg: true, Complete: true, Partner: Partner{Autoneg: true, Modes: Mode10Half}}},
	} {
		m := newModel(t)
		c.set(m)
		m.negotiate()
		p, _ := m.open(c.o)
		got, err := p.Status()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestStatusFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*model)
		up   bool
	}{
		{"corrupt partner word", func(m *model) { m.corrupt = 100 }, true},
		{"master and slave", func(m *model) { m.masterFault = true }, false},
	} {
		m := newModel(t)
		c.set(m)
		p, _ := m.open(Options{})
		s, err := p.Status()
		if err != nil || s.Up != c.up || !errors.Is(s.Fault, ErrPartner) {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
}

func TestStatusOfALostPHY(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	m.set(func() { m.gone = true })
	if _, err := p.Status(); !errors.Is(err, hw.ErrNoPHY) {
		t.Error(err)
	}
	if _, err := p.EEE(); !errors.Is(err, hw.ErrNoPHY) {
		t.Errorf("EEE: %v", err)
	}
}
