package board

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"dwnet/clk"
	"dwnet/hw"
	"dwnet/hw/phy"
	"github.com/google/go-cmp/cmp"
)

// right is an Odroid-C1 as Open leaves it.
func right(t *testing.T, b Board) *soc {
	t.Helper()
	s := newC1()
	if _, err := Open(bg(), b, s, &clock{}, Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// report is what the PHY of a board that is right says.
func report(b Board) phy.Report {
	d, _ := phy.DelaysFor(b.Mode)
	return phy.Report{ID: phy.RTL8211F, Mode: b.Mode, Control: phy.BMCRAutoneg, Delays: d,
		Status: phy.Status{Up: true, Autoneg: true, Complete: true, Link: hw.Link{Speed: 1000, FullDuplex: true},
			Partner: phy.Partner{Autoneg: true, Modes: phy.AllModes}},
		EEE: phy.EEE{Supported: phy.EEE100TX | phy.EEE1000T, Partner: phy.EEE1000T}}
}

func TestNothingIsWrongWithABoardThatIsRight(t *testing.T) {
	for _, mode := range []hw.InterfaceMode{hw.ModeRGMII, hw.ModeRGMIIID, hw.ModeRGMIIRXID, hw.ModeRGMIITXID, hw.ModeRMII} {
		b := c1(func(b *Board) { b.Mode = mode })
		s := right(t, b)
		st := mustState(t, b, s)
		for _, f := range slices.Concat(st.Diagnose(), st.WithPHY(report(b)).Diagnose()) {
			t.Errorf("%v: %v", mode, f)
		}
	}
}

// One fault at a time, by register, and what the diagnosis makes of it.
func TestDiagnosis(t *testing.T) {
	set := func(addr, clear, bits uint32) func(*soc) {
		return func(s *soc) { s.words[addr] = s.words[addr]&^clear | bits }
	}
	for _, c := range []struct {
		name string
		mode hw.InterfaceMode
		f    func(*soc)
		want []string
		sev  Severity
		text []string // what the words must tell
	}{
		{"divider 1, MPLL2 250 MHz", hw.ModeRGMIIID,
			func(s *soc) { set(c1PRG, 7<<7, 1<<7)(s); set(c1MPLL2, 0x01ff3fff, 10<<16|3277)(s) },
			[]string{FindDivider, FindInput}, Error,
			[]string{"m250_div is 1", "80 % loss of transmit rate at 1000 Mbit/s", "needs ≥ 2 with an input ≥ 500 MHz", "249999701 Hz"}},
		{"divider 1 alone", hw.ModeRGMIIID, set(c1PRG, 7<<7, 1<<7), []string{FindDivider}, Error, []string{"m250_div is 1"}},
		{"divider 0", hw.ModeRGMIIID, set(c1PRG, 7<<7, 0), []string{FindDivider}, Error, []string{"2 to 7"}},
		{"divider 3, 83.3 MHz", hw.ModeRGMIIID, set(c1PRG, 7<<7, 3<<7), []string{FindClockRate}, Error,
			[]string{"83332735 Hz", "-33.3 %"}},
		{"32-bit overflow", hw.ModeRGMIIID, set(c1MPLL2, 0x3fff, 7), []string{FindClockRate}, Error, []string{"127489106 Hz", "+2.0 %"}},
		{"loader's MPLL2", hw.ModeRGMIIID, set(c1MPLL2, 0x3fff, 1638), nil, 0, nil},
		{"MPLL2 slow, divider 2", hw.ModeRGMIIID, set(c1MPLL2, 0x01ff3fff, 10<<16|3277), []string{FindInput, FindClockRate}, Error,
			[]string{"4 × 125 MHz", "-50.0 %"}},
		{"MPLL2 nonsense", hw.ModeRGMIIID, set(c1MPLL2, 0x01ff0000, 1<<16), []string{FindClockInvalid}, Error, []string{"allowed are 4 to 127"}},
		{"MPLL2 off", hw.ModeRGMIIID, set(c1MPLL2, 1<<14, 0), []string{FindSourceOff}, Error, []string{"MPLL2"}},
		{"TX clock gate", hw.ModeRGMIIID, set(c1PRG, 1<<10, 0), []string{FindTXClockOff}, Error, []string{"bit 10"}},
		{"clocks off", hw.ModeRGMIIID, set(c1PRG, 1<<12, 0), []string{FindClocksOff}, Error, []string{"bit 12"}},
		{"TX delay on both sides", hw.ModeRGMIIID, set(c1PRG, 3<<5, 1<<5), []string{FindTXDelayTwice}, Error,
			[]string{"both MAC and PHY add a transmit delay", "4 ns in all", "2 ns by the MAC + 2 ns by the PHY"}},
		{"RX delay on both sides", hw.ModeRGMIIRXID, func(s *soc) { set(c1PRG, 0, 3<<13)(s); set(c1MPLL6, 0, 1<<27)(s) },
			[]string{FindRXDelayTwice}, Error, []string{"both MAC and PHY add a receive delay"}},
		{"4 ns by the MAC", hw.ModeRGMII, set(c1PRG, 3<<5, 2<<5), []string{FindTXDelayWrong}, Error, []string{"4 ns"}},
		{"6 ns by the MAC", hw.ModeRGMIIRXID, set(c1PRG, 3<<5, 3<<5), []string{FindTXDelayWrong}, Error, []string{"6 ns"}},
		{"no TX delay", hw.ModeRGMII, set(c1PRG, 3<<5, 0), []string{FindTXDelayMissing}, Error, []string{"nobody adds a transmit delay"}},
		{"no RX delay", hw.ModeRGMII, set(c1PRG, 3<<13, 0), []string{FindRXDelayMissing}, Error, []string{"nobody adds a receive delay"}},
		{"retiming without its clock", hw.ModeRGMII, set(c1MPLL6, 1<<27, 0), []string{FindRetimingClock}, Error, []string{"FCLK_DIV2"}},
		{"retiming by hand", hw.ModeRGMII, set(c1PRG, 1<<14, 4<<15|0xc<<20), []string{FindRetimingManual}, Warning, []string{"ADJ_DELAY 4"}},
		{"RMII inversion in RGMII", hw.ModeRGMII, set(c1PRG, 0, 1<<11), []string{FindRMIIInvert}, Info, nil},
		{"RMII without inversion", hw.ModeRMII, set(c1PRG, 1<<11, 0), []string{FindRMIIInvert}, Error, nil},
		{"retiming in RMII", hw.ModeRMII, set(c1PRG, 0, 1<<13), []string{FindRetimingManual}, Warning, nil},
		{"interface", hw.ModeRGMIIID, set(c1PRG, 1, 0), []string{FindInterface}, Error, []string{"RMII", "rgmii-id"}},
		{"interface", hw.ModeRMII, set(c1PRG, 0, 1), []string{FindInterface}, Error, []string{"RGMII"}},
		{"memory power", hw.ModeRGMIIID, set(c1MemPD, 0, 4), []string{FindMACPower}, Error, []string{"HHI_MEM_PD_REG0"}},
		{"gate", hw.ModeRGMIIID, set(c1Gate, 8, 0), []string{FindMACGate}, Error, []string{"HHI_GCLK_MPEG1 bit 3"}},
		{"pins", hw.ModeRGMIIID, set(c1Mux7, 1<<20, 0), []string{FindPins}, Error, []string{"PERIPHS_PIN_MUX_7"}},
		{"pad given twice", hw.ModeRGMIIID, set(0xc11080d4, 0, 1<<11), []string{FindPins}, Error, []string{"PERIPHS_PIN_MUX_9"}},
		{"PHY in reset", hw.ModeRGMIIID, set(c1GPIOOut, 1<<23, 0), []string{FindPHYHeld}, Error, []string{"GPIOH_4"}},
	} {
		b := c1(func(b *Board) { b.Mode = c.mode })
		s := right(t, b)
		c.f(s)
		s.log = nil
		l := mustState(t, b, s).Diagnose()
		if d := cmp.Diff(c.want, ids(l)); d != "" {
			t.Errorf("%s: %s%v", c.name, d, l)
			continue
		}
		if len(l) > 0 && l[0].Severity != c.sev {
			t.Errorf("%s: %v", c.name, l[0])
		}
		all := ""
		for _, f := range l {
			if f.What == "" || f.Consequence == "" {
				t.Errorf("%s: %+v", c.name, f)
			}
			all += f.String() + "\n"
		}
		for _, w := range c.text {
			if !strings.Contains(all, w) {
				t.Errorf("%s: %q is not in\n%s", c.name, w, all)
			}
		}
		if s.log != nil {
			t.Errorf("%s: the diagnosis wrote %v", c.name, s.log)
		}
	}
}

// Hardkernel's boot loader leaves delays on both sides for a kernel that believes in rgmii-id.
func TestDiagnosisOfTheBootLoader(t *testing.T) {
	s := right(t, OdroidC1())
	s.words[c1PRG] = 0x7d21
	s.words[c1MPLL2] = 0x0005c666
	l := mustState(t, OdroidC1(), s).Diagnose()
	if d := cmp.Diff([]string{FindTXDelayTwice, FindRXDelayTwice, FindRetimingClock, FindRMIIInvert}, ids(l)); d != "" {
		t.Errorf("%s%v", d, l)
	}
	// For what the loader itself makes of it, nothing is wrong but the inversion.
	s.words[c1MPLL6] |= 1 << 27
	b := c1(func(b *Board) { b.Mode = hw.ModeRGMII })
	if d := cmp.Diff([]string{FindRMIIInvert}, ids(mustState(t, b, s).Diagnose())); d != "" {
		t.Error(d)
	}
}

func TestDiagnosisWithThePHY(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(*phy.Report)
		want []string
		sev  Severity
	}{
		{"right", func(r *phy.Report) {}, nil, 0},
		{"delays by the straps", func(r *phy.Report) { r.Delays.TX = false }, []string{FindTXDelayMissing, FindPHYDelays}, Error},
		{"unknown delays are taken for those of the mode", func(r *phy.Report) { r.Delays = phy.Delays{} }, nil, 0},
		{"power-down", func(r *phy.Report) { r.Control |= phy.BMCRPowerDown }, []string{FindPHYPowerDown}, Error},
		{"isolated", func(r *phy.Report) { r.Control |= phy.BMCRIsolate }, []string{FindPHYIsolated}, Error},
		{"ALDPS", func(r *phy.Report) { r.ALDPS = true }, []string{FindPHYALDPS}, Warning},
		{"EEE 1000T in use", func(r *phy.Report) { r.EEE.Advertised, r.EEE.Active = phy.EEE1000T, true }, []string{FindEEEBroken}, Error},
		{"EEE 1000T advertised", func(r *phy.Report) { r.EEE.Advertised = phy.EEE1000T }, []string{FindEEEBroken}, Warning},
		{"EEE 100TX in use", func(r *phy.Report) { r.EEE.Advertised, r.EEE.Active = phy.EEE100TX, true }, []string{FindEEEActive}, Info},
		{"two pairs", func(r *phy.Report) { r.Status.Downshifted, r.Status.Link.Speed = true, 100 }, []string{FindDownshift}, Warning},
		{"partner is set by hand", func(r *phy.Report) { r.Status.Partner.Autoneg, r.Status.Link = false, hw.Link{Speed: 100} },
			[]string{FindHalfDuplex}, Warning},
		{"nonsense from the partner", func(r *phy.Report) { r.Status.Fault = phy.ErrPartner }, []string{FindNegotiation}, Error},
	} {
		b := OdroidC1()
		r := report(b)
		c.f(&r)
		l := mustState(t, b, right(t, b)).WithPHY(r).Diagnose()
		if d := cmp.Diff(c.want, ids(l)); d != "" {
			t.Errorf("%s: %s%v", c.name, d, l)
		} else if len(l) > 0 && l[0].Severity != c.sev {
			t.Errorf("%s: %v", c.name, l[0])
		}
	}
	// A PHY that delays although the mode says it does not: seen only by asking it.
	b := c1(func(b *Board) { b.Mode = hw.ModeRGMII })
	r := report(b)
	r.Delays.TX, r.Delays.RX = true, true
	l := mustState(t, b, right(t, b)).WithPHY(r).Diagnose()
	if d := cmp.Diff([]string{FindTXDelayTwice, FindRXDelayTwice, FindPHYDelays}, ids(l)); d != "" {
		t.Error(d)
	}
}

func TestDiagnosisOfTraces(t *testing.T) {
	s := newC2()
	if _, err := Open(bg(), OdroidC2(), s, &clock{}, Options{}); err != nil {
		t.Fatal(err)
	}
	s.words[c2PRG] |= 3 << 13
	s.words[c2PRG] |= 1 << 4 // clkin1, MPLL2, which is off
	l := mustState(t, OdroidC2(), s).Diagnose()
	for _, want := range []string{FindRXDelayTwice, FindSourceOff} {
		if !slices.Contains(ids(l), want) {
			t.Errorf("%s is not among %v", want, l)
		}
	}
}

func TestDiagnosisOfASoCWhoseGlueAloneIsKnown(t *testing.T) {
	for _, c := range []struct {
		soc  SoC
		prg  uint32
		prg1 uint32
		want []string
	}{
		{AXG(), 0x1621, 0, []string{FindRXDelayMissing}},
		{AXG(), 0x7621, 0, nil},
		{AXG(), 0x16a1, 0, []string{FindDivider, FindRXDelayMissing}},
		{G12A(), 0x1621, 10 << 16, nil},
		{G12A(), 0x1621, 9 << 16, []string{FindRXDelayWrong}},
	} {
		b := Board{Name: "test", SoC: c.soc, Mode: hw.ModeRGMII}
		s := &soc{words: map[uint32]uint32{c.soc.PRG: c.prg, c.soc.PRG + 4: c.prg1}}
		if c.prg == 0x16a1 {
			s.words[c.soc.PRG] = 0x1621&^(7<<7) | 1<<7
		}
		st := mustState(t, b, s)
		if d := cmp.Diff(c.want, ids(st.Diagnose())); d != "" {
			t.Errorf("%s 0x%x: %s", c.soc.Name, c.prg, d)
		}
		if !strings.Contains(st.String(), "PRG_ETH0") {
			t.Error(st.String())
		}
	}
}

func TestTrafficDiagnosis(t *testing.T) {
	full := hw.Link{Speed: 1000, FullDuplex: true}
	for _, c := range []struct {
		name   string
		after  hw.Counters
		link   hw.Link
		expect bool
	}{
		{"quiet", hw.Counters{}, full, false},
		{"missed", hw.Counters{RXMissed: 1}, full, true},
		{"overflow", hw.Counters{RXFIFOOverflow: 1}, full, true},
		{"pause is on", hw.Counters{RXMissed: 1}, hw.Link{Speed: 1000, FullDuplex: true, TXPause: true}, false},
		{"half duplex", hw.Counters{RXMissed: 1}, hw.Link{Speed: 100}, false},
	} {
		if l := DiagnoseTraffic(hw.Counters{}, c.after, c.link); (l != nil) != c.expect {
			t.Errorf("%s: %v", c.name, l)
		}
	}
	before := hw.Counters{RXMissed: 5, RXOverflow: 7}
	if l := DiagnoseTraffic(before, before, full); l != nil {
		t.Errorf("old losses: %v", l)
	}
}

func TestStatePrints(t *testing.T) {
	s := right(t, OdroidC1())
	got := mustState(t, OdroidC1(), s).String()
	want := `board      Hardkernel Odroid-C1, Meson8b (S805), rgmii-id
PRG_ETH0   0x00001501: RGMII, m250 from clkin0 / 2, TX delay 0 ns, TX clock on, clocks on, RX retiming off
MAC        memory power on, clock on
PHY reset  released
MPLL2      499996410 Hz, on, in use
FCLK_DIV2  1275000000 Hz, off
TX clock   124999102 Hz (-7.2 ppm)
clk81      159375000 Hz
`
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	s.words[c1MPLL2], s.words[c1Mux7], s.words[c1GPIOOut] = 0, 0, 0
	got = mustState(t, OdroidC1(), s).String()
	for _, w := range []string{"MPLL2      no valid rate, off, in use", "TX clock   no valid rate", "PERIPHS_PIN_MUX_7", "held"} {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in\n%s", w, got)
		}
	}
	st := mustState(t, OdroidC1(), right(t, OdroidC1()))
	if len(st.Clocks) < 6 || st.Clocks[0].Name != "rgmii_tx_en" || st.Clocks[0].Rate != 124999102*1 || st.Clocks[len(st.Clocks)-1].Rate != 2550*clk.MHz {
		t.Errorf("%+v", st.Clocks)
	}
}

func TestFindingsForPrograms(t *testing.T) {
	b, err := json.Marshal(Finding{FindDivider, Error, "what", "so", "do"})
	if err != nil || string(b) != `{"ID":"tx-clock-divider","Severity":"error","What":"what","Consequence":"so","Remedy":"do"}` {
		t.Errorf("%s, %v", b, err)
	}
	if got := (Finding{ID: "x", Severity: Warning, What: "what", Consequence: "so"}).String(); got != "warning: what: so" {
		t.Error(got)
	}
	if Severity(7).String() != "Severity(7)" || Info.String() != "info" {
		t.Error(Severity(7), Info)
	}
}

// Registers may hold anything. Reading and judging them gives an error or words, and never a panic or a made-up rate.
func FuzzRead(f *testing.F) {
	f.Add(uint32(0x1501), uint32(0x0005c667), uint32(0), uint32(0x5183))
	f.Add(uint32(0), uint32(0), uint32(0), uint32(0))
	f.Add(uint32(0xfffffffe), uint32(0xfffffffe), uint32(0xfffffffe), uint32(0xfffffffe))
	f.Fuzz(func(t *testing.T, prg, mpll2, mpll5, mpeg uint32) {
		s := &soc{words: map[uint32]uint32{c1PRG: prg, c1MPLL2: mpll2, c1MPLLPre: mpll5, c1ClkMPEG: mpeg, c1MPLL6: mpll5}}
		for _, mode := range []hw.InterfaceMode{hw.ModeRGMIIID, hw.ModeRMII} {
			st, err := Read(c1(func(b *Board) { b.Mode = mode }), s)
			if err != nil {
				continue
			}
			_ = st.String()
			st.Diagnose()
			if st.TXClockHz != 0 && st.ClockErr != nil {
				t.Errorf("a rate of %d Hz and %v", st.TXClockHz, st.ClockErr)
			}
			if n2 := mpll2 >> 16 & 0x1ff; (n2 < 4 || n2 > 127) && st.TXClockHz != 0 {
				t.Errorf("MPLL_CNTL9 0x%08x makes %d Hz", mpll2, st.TXClockHz)
			}
		}
	})
}
