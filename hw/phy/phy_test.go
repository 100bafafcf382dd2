package phy

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

func TestOpenEndsPowerDownAndIsolation(t *testing.T) {
	for _, bits := range []BMCR{BMCRPowerDown, BMCRIsolate, BMCRPowerDown | BMCRIsolate} {
		m := newModel(t)
		m.std[RegBMCR] |= uint16(bits)
		m.negotiate()
		p, c := m.open(Options{})
		if v := BMCR(m.std[RegBMCR]); v&bits != 0 {
			t.Errorf("%v: BMCR %v", bits, v)
		}
		if s, err := p.Status(); err != nil || !s.Up {
			t.Errorf("%v: %+v, %v", bits, s, err)
		}
		if bits&BMCRPowerDown != 0 && c.slept < wakeSettle {
			t.Errorf("%v: settled for %v", bits, c.slept)
		}
	}
}

// A PHY that does not come to itself ends in an error that says what is missing, within the bound, on the PHY's clock.
func TestOpenIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(*model)
		err   error
		mask  BMCR
		least time.Duration
		most  time.Duration
	}{
		{"power-down stays", func(m *model) { m.std[RegBMCR] |= uint16(BMCRPowerDown); m.stuckSleep = true },
			hw.ErrTimeout, BMCRPowerDown | BMCRIsolate, wakeLimit, 2 * wakeLimit},
		{"reset stays", func(m *model) { m.std[RegBMCR] |= uint16(BMCRReset) },
			hw.ErrTimeout, BMCRReset, 500 * time.Millisecond, 2 * resetLimit},
		{"absent", func(m *model) { m.gone = true }, hw.ErrNoPHY, 0, 0, 0},
		{"broken bus", func(m *model) { m.fail = func(int) error { return errBus } }, errBus, 0, 0, 0},
		{"identifier of zeroes", func(m *model) { m.std[RegID1], m.std[RegID2] = 0, 0 }, hw.ErrNoPHY, 0, 0, 0},
		{"identifier of ones", func(m *model) { m.std[RegID1], m.std[RegID2] = 0xffff, 0xffff }, hw.ErrNoPHY, 0, 0, 0},
	} {
		m := newModel(t)
		c.set(m)
		clk := newClock()
		p, err := Open(m, clk, Options{})
		if p != nil || !errors.Is(err, c.err) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if clk.slept < c.least || clk.slept > c.most {
			t.Errorf("%s: gave up after %v, want %v to %v", c.name, clk.slept, c.least, c.most)
		}
		var e *hw.Error
		if c.mask != 0 && (!errors.As(err, &e) || e.Reg != "BMCR" || e.Mask != uint32(c.mask) || e.Last&e.Mask == 0 || e.Wait < c.least) {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

func TestBadOptionsAreRefusedBeforeAnyAccess(t *testing.T) {
	for _, o := range []Options{
		{Mode: hw.ModeMII + 1},
		{ID: 0xffffffff},
		{ID: 0x0000ffff},
		{EEEBroken: 1},
		{Settings: Settings{Advertise: 0x40}},
		{Settings: Settings{Forced: Mode1000Full}},
		{Settings: Settings{Forced: Mode100Full | Mode100Half}},
		{Settings: Settings{Forced: Mode100Full, Advertise: Mode100Full}},
		{Settings: Settings{Pause: 4}},
		{Settings: Settings{EEE: 8}},
	} {
		m := newModel(t)
		if _, err := Open(m, newClock(), o); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("%+v: %v", o, err)
		}
		if m.accesses != 0 {
			t.Errorf("%+v: %d accesses", o, m.accesses)
		}
	}
}

// What only the PHY can tell is refused before its settings are touched.
func TestSettingsBeyondThePHY(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*model)
		o    Options
	}{
		{"1000 over RMII", func(*model) {}, Options{Mode: hw.ModeRMII, Settings: Settings{Advertise: Mode1000Full}}},
		{"10 full", func(m *model) { m.std[RegBMSR] &^= uint16(BMSR10Full) }, Options{Settings: Settings{Forced: Mode10Full}}},
		{"EEE of a PHY without", func(m *model) { m.mmd[[2]uint16{mmdPCS, pcsEEEAbility}] = absent },
			Options{Settings: Settings{EEE: EEE100TX}}},
	} {
		m := newModel(t)
		c.set(m)
		_, err := Open(m, newClock(), c.o)
		if !errors.Is(err, hw.ErrConfig) {
			t.Errorf("%s: %v", c.name, err)
		}
		l := m.writes()
		if wrote(l, RegBMCR) || wrote(l, RegANAR) || wrote(l, RegGBCR) {
			t.Errorf("%s: wrote %v", c.name, l)
		}
	}
}

func TestOpenChecksTheIdentifierThatTheBoardNames(t *testing.T) {
	m := newPlain(t, RTL8211E)
	if _, err := Open(m, newClock(), Options{ID: RTL8211F}); !errors.Is(err, hw.ErrConfig) {
		t.Error(err)
	}
	if l := m.writes(); l != nil {
		t.Errorf("wrote %v", l)
	}
	if _, err := Open(m, newClock(), Options{ID: RTL8211E}); err != nil {
		t.Error(err)
	}
}

// A stop and start of the interface must not take the link down: everything on it would wait for seconds.
func TestReopenKeepsTheLink(t *testing.T) {
	for _, m := range []*model{newModel(t), newPlain(t, RTL8211E)} {
		o := Options{Mode: hw.ModeRGMIIID, Settings: Settings{Pause: PauseSymmetric}, EEEBroken: EEE1000T}
		p, _ := m.open(o)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		m.writes()
		m.restarts, m.latched = 0, false
		p, _ = m.open(o)
		if l := m.writes(); wrote(l, RegBMCR) || wrote(l, RegANAR) || wrote(l, RegGBCR) || m.restarts != 0 || m.latched {
			t.Errorf("%v: wrote %v, %d restarts", m.id, l, m.restarts)
		}
		s, changed, err := NewMonitor(p, MonitorOptions{}).Poll(time.Unix(2000, 0))
		if err != nil || !changed || !s.Up || s.Link.Speed != 1000 || s.Flaps != 0 {
			t.Errorf("%v: first poll %+v, %v, %v", m.id, s, changed, err)
		}
		o.ForceRenegotiate = true
		m.open(o)
		if m.restarts != 1 {
			t.Errorf("%v: %d restarts with ForceRenegotiate", m.id, m.restarts)
		}
	}
}

// A program that was killed in the middle of a transaction leaves any page. Where the board says what PHY it has, Open finds
// its way out.
func TestOpenFindsItsWayOutOfALeftPage(t *testing.T) {
	m := newModel(t)
	m.page = rtlPageRGMII
	p, _ := m.open(Options{ID: RTL8211F, Mode: hw.ModeRGMIIID})
	if s, err := p.Status(); err != nil || s.Link.Speed != 1000 {
		t.Errorf("%+v, %v", s, err)
	}
	m.violations = nil // the first look at the identifier is one
	if m.page != rtlPageStandard {
		t.Errorf("page %#x", m.page)
	}
}

// Wherever the bus fails during Open, the error comes out, and a second Open on a bus that works again succeeds.
func TestOpenSurvivesABusFaultAnywhere(t *testing.T) {
	o := Options{Mode: hw.ModeRGMIIID}
	probe := newModel(t)
	probe.open(o)
	total := probe.accesses
	if total < 20 {
		t.Fatalf("%d accesses", total)
	}
	for at := range total {
		m := newModel(t)
		m.fail = func(n int) error {
			if n == at {
				return errBus
			}
			return nil
		}
		if _, err := Open(m, newClock(), o); !errors.Is(err, errBus) {
			t.Fatalf("access %d: %v", at, err)
		}
		m.check()
		p, _ := m.open(o)
		if s, err := p.Status(); err != nil || s.Link.Speed != 1000 {
			t.Errorf("access %d: %+v, %v", at, s, err)
		}
	}
}

func TestPowerDownIsolateAndReset(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{Mode: hw.ModeRGMIIID})
	step := func(name string, err error, set, clear BMCR, up bool) {
		t.Helper()
		if v := BMCR(m.std[RegBMCR]); err != nil || v&set != set || v&clear != 0 {
			t.Errorf("%s: BMCR %v, %v", name, v, err)
		}
		if s, err := p.Status(); err != nil || s.Up != up {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	step("power down", p.SetPowerDown(true), BMCRPowerDown, 0, false)
	step("power up", p.SetPowerDown(false), 0, BMCRPowerDown, true)
	step("isolate", p.SetIsolate(true), BMCRIsolate, 0, true)
	step("connect", p.SetIsolate(false), 0, BMCRIsolate, true)
	m.writes()
	step("reset", p.Reset(), 0, BMCRReset, true)
	if d, err := p.Delays(); err != nil || !d.TX || !d.RX {
		t.Errorf("delays after a reset: %v, %v", d, err)
	}
	m.set(func() { m.stuckReset = true })
	if err := p.Reset(); !errors.Is(err, hw.ErrTimeout) {
		t.Errorf("reset that does not end: %v", err)
	}
}

func TestApplyRestartsOnceAndOnlyForAChange(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	for i, c := range []struct {
		s        Settings
		restarts int
		bmcr     BMCR
		anar     uint16
		gbcr     uint16
	}{
		{Settings{}, 0, 0x1140, 0x01e1, 0x0200},
		{Settings{Advertise: modesNo1000H}, 0, 0x1140, 0x01e1, 0x0200},
		{Settings{Advertise: AllModes, Pause: PauseReceive}, 1, 0x1140, 0x0de1, 0x0300},
		{Settings{Advertise: AllModes, Pause: PauseReceive}, 0, 0x1140, 0x0de1, 0x0300},
		{Settings{Advertise: Mode100Full | Mode10Full}, 1, 0x1140, 0x0141, 0x0000},
		{Settings{Advertise: Mode1000Full}, 1, 0x1140, 0x0001, 0x0200},
		{Settings{Forced: Mode100Half}, 0, 0x2000, 0x0001, 0x0200},
		{Settings{Forced: Mode100Half}, 0, 0x2000, 0x0001, 0x0200},
		{Settings{Forced: Mode10Full}, 0, 0x0100, 0x0001, 0x0200},
		{Settings{Advertise: Mode1000Full}, 1, 0x1300 &^ 0x0200, 0x0001, 0x0200}, // speed bits mean nothing now
		{Settings{Advertise: Mode1000Full, EEE: EEE1000T}, 1, 0x1100, 0x0001, 0x0200},
	} {
		m.restarts = 0
		restarted, err := p.Apply(c.s)
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		if m.restarts != c.restarts || restarted != (c.restarts > 0) {
			t.Errorf("%d: %d restarts, told %v", i, m.restarts, restarted)
		}
		if BMCR(m.std[RegBMCR]) != c.bmcr || m.std[RegANAR] != c.anar || m.std[RegGBCR] != c.gbcr {
			t.Errorf("%d: BMCR %#04x ANAR %#04x GBCR %#04x, want %#04x %#04x %#04x", i,
				m.std[RegBMCR], m.std[RegANAR], m.std[RegGBCR], uint16(c.bmcr), c.anar, c.gbcr)
		}
		if d := cmp.Diff(c.s, p.Settings()); d != "" {
			t.Errorf("%d: %s", i, d)
		}
	}
	before := p.Settings()
	m.writes()
	if _, err := p.Apply(Settings{Forced: Mode1000Full}); !errors.Is(err, hw.ErrConfig) {
		t.Errorf("forced 1000: %v", err)
	}
	if l := m.writes(); l != nil || p.Settings() != before {
		t.Errorf("a refused setting wrote %v", l)
	}
}

func TestForcedModes(t *testing.T) {
	for _, c := range []struct {
		mode Modes
		link hw.Link
	}{
		{Mode10Half, hw.Link{Speed: 10}}, {Mode10Full, hw.Link{Speed: 10, FullDuplex: true}},
		{Mode100Half, hw.Link{Speed: 100}}, {Mode100Full, hw.Link{Speed: 100, FullDuplex: true}},
	} {
		for _, m := range []*model{newModel(t), newPlain(t, RTL8211E)} {
			m.partnerPause = PauseSymmetric
			p, _ := m.open(Options{Settings: Settings{Forced: c.mode}})
			s, err := p.Status()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(Status{Up: true, Link: c.link}, s); d != "" {
				t.Errorf("%v %v: %s", m.id, c.mode, d)
			}
			if err := p.Restart(); err != nil || m.restarts != 0 {
				t.Errorf("%v: restart of nothing: %v, %d", c.mode, err, m.restarts)
			}
		}
	}
}

func TestEEEIsOffByDefault(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{EEEBroken: EEE1000T})
	l := m.writes()
	adv, restart := -1, -1
	for i, o := range l {
		switch {
		case o == op{mmdAN, anEEEAdvertise, 0}:
			adv = i
		case o.Page == 0 && o.Reg == RegBMCR && BMCR(o.V)&BMCRRestart != 0:
			restart = i
		case o.Page == mmdPCS:
			t.Errorf("wrote %v: the receive clock may stop in LPI", o)
		}
	}
	if adv < 0 || restart < adv {
		t.Errorf("7.60 must be cleared before autonegotiation: %v", l)
	}
	e, err := p.EEE()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(EEE{Supported: allEEE, Partner: allEEE, Broken: EEE1000T}, e); d != "" {
		t.Error(d)
	}
}

func TestEEEAtRunTime(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{EEEBroken: EEE100TX})
	for i, c := range []struct {
		set      EEEModes
		restarts int
		adv      EEEModes
		active   bool
	}{
		{EEE1000T, 1, EEE1000T, true},
		{EEE1000T, 0, EEE1000T, true},
		{allEEE, 0, EEE1000T, true}, // 100TX is broken here
		{EEE100TX, 1, 0, false},
		{EEE1000T, 1, EEE1000T, true},
		{0, 1, 0, false},
		{0, 0, 0, false},
	} {
		m.restarts = 0
		if _, err := p.SetEEE(c.set); err != nil {
			t.Fatal(err)
		}
		e, err := p.EEE()
		if err != nil {
			t.Fatal(err)
		}
		if m.restarts != c.restarts || e.Advertised != c.adv || e.Active != c.active {
			t.Errorf("%d: set %v: %d restarts, %+v", i, c.set, m.restarts, e)
		}
	}
}

func TestEEEIsActiveOnlyAtItsSpeed(t *testing.T) {
	for _, c := range []struct {
		adv, partner EEEModes
		modes        Modes
		active       bool
	}{
		{allEEE, allEEE, AllModes, true},
		{EEE100TX, allEEE, AllModes, false},
		{allEEE, EEE100TX, AllModes, false},
		{allEEE, EEE100TX, Mode100Full, true},
		{allEEE, allEEE, Mode100Half, false},
		{allEEE, allEEE, Mode10Full, false},
		{allEEE, 0, AllModes, false},
	} {
		m := newModel(t)
		m.partner, m.partnerEEE = c.modes, c.partner
		p, _ := m.open(Options{Settings: Settings{EEE: c.adv, Advertise: AllModes}})
		if e, err := p.EEE(); err != nil || e.Active != c.active {
			t.Errorf("%v with %v at %v: %+v, %v", c.adv, c.partner, c.modes, e, err)
		}
	}
	m := newPlain(t, RTL8211E)
	p, _ := m.open(Options{})
	if e, err := p.EEE(); err != nil || e != (EEE{}) {
		t.Errorf("PHY without EEE: %+v, %v", e, err)
	}
}

// Status must not take the news of a drop away from the monitor.
func TestStatusLeavesTheLatchToTheMonitor(t *testing.T) {
	for name, read := range map[string]func(*PHY) error{
		"status": func(p *PHY) error { s, err := p.Status(); return errors.Join(err, upError(s)) },
		"report": func(p *PHY) error { r, err := p.Report(); return errors.Join(err, upError(r.Status)) },
		"read":   func(p *PHY) error { _, err := p.Read(RegBMSR); return err },
		"dump":   func(p *PHY) error { _, err := p.Dump(); return err },
	} {
		m := newModel(t)
		p, c := m.open(Options{})
		mon := NewMonitor(p, MonitorOptions{})
		mon.Poll(c.Now())
		m.pull()
		m.plug()
		if err := read(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s, _, _ := mon.Poll(c.Now().Add(time.Second)); s.Up || s.Flaps != 1 {
			t.Errorf("after %s: %+v", name, s)
		}
	}
}

func upError(s Status) error {
	if !s.Up {
		return fmt.Errorf("link is up, told %+v", s)
	}
	return nil
}
