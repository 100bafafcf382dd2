package board

import (
	"context"
	"errors"
	"strings"
	"testing"

	"dwnet/clk"
	"dwnet/hw"
	"dwnet/hw/phy"
	"github.com/google/go-cmp/cmp"
)

func bg() context.Context { return context.Background() }

// c1 is the board in a mode.
func c1(change func(*Board)) Board {
	b := OdroidC1()
	if change != nil {
		change(&b)
	}
	return b
}

func TestOpenProgramsTheBoard(t *testing.T) {
	type want struct {
		prg, mpll2 uint32
		tx         uint64
		fclk       bool
	}
	for _, c := range []struct {
		name string
		b    Board
		s    *soc
		w    want
	}{
		{"C1 as the device tree has it", OdroidC1(), newC1(), want{0x1501, 0x0205c667, 124999102, false}},
		{"C1 rgmii", c1(func(b *Board) { b.Mode = hw.ModeRGMII }), newC1(), want{0x7521, 0x0205c667, 124999102, true}},
		{"C1 rgmii without RX delay", c1(func(b *Board) { b.Mode, b.RXDelay = hw.ModeRGMII, NoDelay }), newC1(),
			want{0x1521, 0x0205c667, 124999102, false}},
		{"C1 rgmii, RX in the traces", c1(func(b *Board) { b.Mode, b.TraceRX = hw.ModeRGMII, 2000 }), newC1(),
			want{0x1521, 0x0205c667, 124999102, false}},
		{"C1 rgmii-txid", c1(func(b *Board) { b.Mode = hw.ModeRGMIITXID }), newC1(), want{0x7501, 0x0205c667, 124999102, true}},
		{"C1 rgmii-rxid", c1(func(b *Board) { b.Mode = hw.ModeRGMIIRXID }), newC1(), want{0x1521, 0x0205c667, 124999102, false}},
		{"C1 with 4 ns on request", c1(func(b *Board) { b.Mode, b.TXDelay = hw.ModeRGMII, Delay4ns }), newC1(),
			want{0x7541, 0x0205c667, 124999102, true}},
	} {
		g, err := Open(bg(), c.b, c.s, &clock{}, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := c.s.words[c1PRG]; got != c.w.prg {
			t.Errorf("%s: PRG_ETH0 0x%08x, want 0x%08x", c.name, got, c.w.prg)
		}
		if got := c.s.words[c1MPLL2]; got != c.w.mpll2 {
			t.Errorf("%s: MPLL_CNTL9 0x%08x, want 0x%08x", c.name, got, c.w.mpll2)
		}
		if on := c.s.words[c1MPLL6]>>27&1 == 1; on != c.w.fclk {
			t.Errorf("%s: FCLK_DIV2 on: %v", c.name, on)
		}
		st, err := g.State()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if st.TXClockHz != c.w.tx || st.InputHz != 499996410 || st.MPLL2.RateHz != 499996410 || st.CLK81Hz != 159375000 {
			t.Errorf("%s: TX %d Hz from %d Hz, MPLL2 %d Hz, clk81 %d Hz", c.name, st.TXClockHz, st.InputHz, st.MPLL2.RateHz, st.CLK81Hz)
		}
		if g.Info().CSRClockHz != 159375000 || g.Info().Mode != c.b.Mode {
			t.Errorf("%s: %+v", c.name, g.Info())
		}
		for addr, v := range map[uint32]uint32{
			c1MemPD: 0xfffffff3, c1Gate: 0xffffffff, c1Mux6: 0x3f4f, c1Mux7: 0x00f00000, 0xc11080d4: 0, 0xc11080c0: 0,
			c1GPIODir: 0xff7fffff, c1GPIOOut: 0x00800000,
		} {
			if c.s.words[addr] != v {
				t.Errorf("%s: 0x%08x holds 0x%08x, want 0x%08x", c.name, addr, c.s.words[addr], v)
			}
		}
		if err := g.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestOpenC2(t *testing.T) {
	s := newC2()
	g, err := Open(bg(), OdroidC2(), s, &clock{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.words[c2PRG] != 0x1621 || s.words[c2MPLL6] != 0x08ab0000 || s.words[0xc883c2a0] != 1 || s.words[0xc88344c8] != 0x3fff {
		t.Errorf("PRG_ETH0 0x%08x, MPLL_CNTL6 0x%08x, MPLL_CNTL9 0x%08x, MUX_6 0x%08x",
			s.words[c2PRG], s.words[c2MPLL6], s.words[0xc883c2a0], s.words[0xc88344c8])
	}
	st, err := g.State()
	if err != nil || st.TXClockHz != 125_000_000 || st.InputHz != 1_000_000_000 || st.CLK81Hz != 166666667 {
		t.Errorf("%d Hz from %d Hz, clk81 %d Hz, %v", st.TXClockHz, st.InputHz, st.CLK81Hz, err)
	}
	if f := st.Diagnose(); f != nil {
		t.Errorf("%v", f)
	}
}

// RMII has its clock from outside: MPLL2, mux, divider, TX delay and the gate of the TX clock are left as they are.
func TestOpenRMIILeavesTheClockTree(t *testing.T) {
	for _, before := range []uint32{0, 0x000003f1 | 1<<10, 0x80000000} {
		s := newC1()
		s.words[c1PRG] = before
		g, err := Open(bg(), c1(func(b *Board) { b.Mode = hw.ModeRMII }), s, &clock{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := s.words[c1PRG], before&^1|0x1800; got != want {
			t.Errorf("from 0x%08x: 0x%08x, want 0x%08x", before, got, want)
		}
		if s.words[c1MPLL2] != 0x02000000 || s.words[c1MPLL6] != 0x01230000 {
			t.Errorf("MPLL_CNTL9 0x%08x, MPLL_CNTL6 0x%08x", s.words[c1MPLL2], s.words[c1MPLL6])
		}
		if s.words[c1Mux6] != 0x064f || s.words[c1Mux7] != 0x00300000 {
			t.Errorf("pins 0x%08x 0x%08x", s.words[c1Mux6], s.words[c1Mux7])
		}
		st, err := g.State()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range st.Diagnose() {
			t.Errorf("%v", f)
		}
	}
}

// The order in which things come up, as one list. Within PRG_ETH0 it is Linux's.
func TestOrderOfBringUp(t *testing.T) {
	s := newC1()
	clk := &clock{}
	if _, err := Open(bg(), c1(func(b *Board) { b.Mode = hw.ModeRGMII }), s, clk, Options{}); err != nil {
		t.Fatal(err)
	}
	var order []string
	name := map[uint32]string{c1MemPD: "memory power", c1Gate: "gate", c1MPLL2: "MPLL2", c1MPLL6: "FCLK_DIV2", c1Reset1: "MAC reset",
		c1PRG: "PRG_ETH0", c1GPIODir: "PHY reset", c1GPIOOut: "PHY reset"}
	for _, w := range s.log {
		n, ok := name[w.Addr]
		if !ok {
			n = "pins"
		}
		if len(order) == 0 || order[len(order)-1] != n {
			order = append(order, n)
		}
	}
	want := []string{"pins", "memory power", "gate", "FCLK_DIV2", "MPLL2", "MAC reset", "PRG_ETH0", "MPLL2", "PRG_ETH0", "PHY reset"}
	if d := cmp.Diff(want, order); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]uint32{0x0001, 0x6021, 0x6121, 0x6521, 0x7521}, s.changes(c1PRG)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]uint32{1 << 11}, s.changes(c1Reset1)); d != "" {
		t.Error(d)
	}
	// Low as an input first, so that the pin does not jump, then an output, then high.
	if d := cmp.Diff([]uint32{0x00800000}, s.changes(c1GPIOOut)); d != "" {
		t.Error(d)
	}
	if clk.slept < 90*ms {
		t.Errorf("took %v, the PHY's reset alone is 90 ms", clk.slept)
	}
}

// Each bit that is not ours survives.
func TestOpenTouchesOnlyItsBits(t *testing.T) {
	s := newC1()
	s.words[c1PRG] = 0xfe00000e | 1<<11 | 0x3<<5 | 0x7<<7
	s.words[c1MPLL2] = 0xfe3e1999 // nonsense and other bits
	s.words[c1Mux6], s.words[c1Mux7] = 0xffffc0b0, 0x7f0fffff
	if _, err := Open(bg(), OdroidC1(), s, &clock{}, Options{}); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[uint32]uint32{
		c1PRG: 0xfe00150f, c1MPLL2: 0xfe05c667, c1Mux6: 0xffffffcf, c1Mux7: 0x7fffffff,
	} {
		if got := s.words[addr]; got != want {
			t.Errorf("0x%08x holds 0x%08x, want 0x%08x", addr, got, want)
		}
	}
}

func TestCloseUndoesEverything(t *testing.T) {
	for _, b := range []Board{OdroidC1(), c1(func(b *Board) { b.Mode = hw.ModeRGMII }), c1(func(b *Board) { b.Mode = hw.ModeRMII })} {
		s := newC1()
		s.words[c1PRG] = 0x7d21 // the boot loader's
		before := s.image()
		g, err := Open(bg(), b, s, &clock{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		opened := len(s.log)
		if err := g.Close(); err != nil {
			t.Errorf("%v: %v", b.Mode, err)
		}
		if d := cmp.Diff(before, s.image()); d != "" {
			t.Errorf("%v: %s", b.Mode, d)
		}
		// In reverse: the last register that was changed is the first that is put back.
		if first, last := s.log[opened].Addr, s.log[opened-1].Addr; first != last {
			t.Errorf("%v: undo begins with 0x%08x, the last change was to 0x%08x", b.Mode, first, last)
		}
		if s.closed != len(b.SoC.Blocks) {
			t.Errorf("%d windows closed", s.closed)
		}
		if err := g.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		if _, err := g.State(); !errors.Is(err, hw.ErrClosed) {
			t.Errorf("state after close: %v", err)
		}
		if err := g.ResetPHY(bg()); !errors.Is(err, hw.ErrClosed) {
			t.Errorf("reset after close: %v", err)
		}
	}
}

// A write that does not stay, whichever it is, ends in an error with the name of the step, and the board as it was.
func TestFailureHalfWayUndoesEverything(t *testing.T) {
	b := c1(func(b *Board) { b.Mode = hw.ModeRGMII })
	count := newC1()
	if _, err := Open(bg(), b, count, &clock{}, Options{}); err != nil {
		t.Fatal(err)
	}
	if count.writes < 15 {
		t.Fatalf("only %d writes", count.writes)
	}
	seen := map[string]bool{}
	for n := 1; n <= count.writes; n++ {
		if count.log[n-1].Addr == c1Reset1 {
			continue // a pulse reads back as nothing, so its loss cannot be seen
		}
		s := newC1()
		before := s.image()
		s.lose = n
		g, err := Open(bg(), b, s, &clock{}, Options{})
		var step *StepError
		if g != nil || !errors.As(err, &step) || !errors.Is(err, clk.ErrReadback) {
			t.Errorf("write %d (%v): %v", n, count.log[n-1], err)
			continue
		}
		seen[step.Step] = true
		if d := cmp.Diff(before, s.image()); d != "" {
			t.Errorf("write %d, step %s: %s", n, step.Step, d)
		}
		if s.closed != len(b.SoC.Blocks) {
			t.Errorf("write %d: %d windows closed", n, s.closed)
		}
	}
	for _, want := range []string{"pins", "memory power", "MAC gate", "clock source", "interface mode", "delays", "TX clock rate",
		"TX clock gate", "clocks on", "PHY reset"} {
		if !seen[want] {
			t.Errorf("no failure in step %q was tried", want)
		}
	}
}

// The bus may go away at any access. That is an error each time, and no panic, and after a look that finds it gone from the
// beginning nothing is written.
func TestBusGone(t *testing.T) {
	s := newC1()
	s.dead = true
	if _, err := Open(bg(), OdroidC1(), s, &clock{}, Options{}); !errors.Is(err, hw.ErrGone) {
		t.Error(err)
	}
	if _, err := Read(OdroidC1(), s); !errors.Is(err, hw.ErrGone) {
		t.Error(err)
	}
	if s.log != nil {
		t.Errorf("wrote %v", s.log)
	}
	count := newC1()
	if _, err := Open(bg(), OdroidC1(), count, &clock{}, Options{}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < count.accesses; n++ {
		s := newC1()
		s.deadAfter = n
		if g, err := Open(bg(), OdroidC1(), s, &clock{}, Options{}); err == nil || g != nil {
			t.Errorf("gone after %d of %d accesses: no error", n, count.accesses)
		}
	}
	s = newC1()
	g, err := Open(bg(), OdroidC1(), s, &clock{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.dead = true
	if err := g.Close(); !errors.Is(err, hw.ErrGone) {
		t.Errorf("closed on a bus that is gone: %v", err)
	}
}

// What cannot work is refused before the first write, with the allowed values.
func TestBadDescriptionsAreRefusedBeforeTheFirstWrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		b     Board
		o     Options
		is    error
		names string
	}{
		{"MII", c1(func(b *Board) { b.Mode = hw.ModeMII }), Options{}, hw.ErrConfig, "rgmii-txid"},
		{"mode 99", c1(func(b *Board) { b.Mode = 99 }), Options{}, hw.ErrConfig, "rmii"},
		{"3 ns", c1(func(b *Board) { b.Mode, b.TXDelay = hw.ModeRGMII, Picoseconds(3000) }), Options{}, hw.ErrConfig, "0, 2000, 4000 or 6000"},
		{"8 ns", c1(func(b *Board) { b.Mode, b.TXDelay = hw.ModeRGMII, Picoseconds(8000) }), Options{}, hw.ErrConfig, "8000"},
		{"-1 ns", c1(func(b *Board) { b.Mode, b.TXDelay = hw.ModeRGMII, Picoseconds(-1000) }), Options{}, hw.ErrConfig, "-1000"},
		{"RX 4 ns", c1(func(b *Board) { b.Mode, b.RXDelay = hw.ModeRGMII, Delay4ns }), Options{}, hw.ErrConfig, "0 or 2000"},
		{"TX twice", c1(func(b *Board) { b.TXDelay = Delay2ns }), Options{}, hw.ErrConfig, "PHY"},
		{"RX twice", c1(func(b *Board) { b.RXDelay = Delay2ns }), Options{}, hw.ErrConfig, "PHY"},
		{"RMII with delay", c1(func(b *Board) { b.Mode, b.TXDelay = hw.ModeRMII, Delay2ns }), Options{}, hw.ErrConfig, "rmii"},
		{"trace", c1(func(b *Board) { b.TraceTX = 9000 }), Options{}, hw.ErrConfig, "2000"},
		{"reset time", c1(func(b *Board) { b.ResetTiming.Assert = -1 }), Options{}, hw.ErrConfig, "10s"},
		{"policy", OdroidC1(), Options{ResetPHY: 9}, hw.ErrConfig, "ResetPHY"},
		{"AXG", c1(func(b *Board) { b.SoC = AXG() }), Options{}, hw.ErrUnsupported, "AXG"},
		{"slow PLL", c1(func(b *Board) { b.SoC.FixedPLL = 1200 * clk.MHz }), Options{}, clk.ErrNoRate, "500000000"},
		{"no source", c1(func(b *Board) { b.SoC.Inputs = [2]Source{} }), Options{}, nil, "source"},
		{"register outside", c1(func(b *Board) { b.SoC.PRG = 0x12345678 }), Options{}, hw.ErrGone, "PRG_ETH0"},
	} {
		s := newC1()
		g, err := Open(bg(), c.b, s, &clock{}, c.o)
		if g != nil || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.name, err)
		}
		if s.log != nil {
			t.Errorf("%s: wrote %v", c.name, s.log)
		}
	}
}

func TestMapFailure(t *testing.T) {
	for n := 1; n <= 3; n++ {
		s := newC1()
		s.failMap = n
		if _, err := Open(bg(), OdroidC1(), s, &clock{}, Options{}); !errors.Is(err, errMap) || s.closed != n-1 || s.log != nil {
			t.Errorf("map %d: %v, %d closed, wrote %v", n, err, s.closed, s.log)
		}
	}
	none := MapFunc(func(phys, size uint32) (hw.Registers, error) { return nil, nil })
	if _, err := Open(bg(), OdroidC1(), none, &clock{}, Options{}); !errors.Is(err, hw.ErrUnsupported) {
		t.Error(err)
	}
}

// A board that is found as it is to be is written nothing but the MAC's reset, and the PHY keeps its link.
func TestWarmOpenLeavesThePHYAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      Options
		change func(*soc)
		pulses bool
	}{
		{"as left", Options{}, func(*soc) {}, false},
		{"always", Options{ResetPHY: ResetAlways}, func(*soc) {}, true},
		{"PHY held", Options{}, func(s *soc) { s.words[c1GPIOOut] = 0 }, true},
		{"other delay", Options{}, func(s *soc) { s.words[c1PRG] |= 1 << 5 }, true},
		{"gate closed", Options{}, func(s *soc) { s.words[c1Gate] = gateOthers }, true},
		{"never", Options{ResetPHY: ResetNever}, func(s *soc) { s.words[c1PRG] = 0 }, false},
	} {
		s := newC1()
		g, err := Open(bg(), OdroidC1(), s, &clock{}, Options{KeepOnClose: true})
		if err != nil {
			t.Fatal(err)
		}
		if g.Warm() {
			t.Error("a board out of reset is not warm")
		}
		image := s.image()
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(image, s.image()); d != "" {
			t.Errorf("KeepOnClose: %s", d)
		}
		s.log = nil
		c.change(s)
		g, err = Open(bg(), OdroidC1(), s, &clock{}, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if pulses := s.changes(c1GPIOOut) != nil; pulses != c.pulses {
			t.Errorf("%s: PHY reset: %v", c.name, pulses)
		}
		if c.name == "as left" {
			if d := cmp.Diff([]write{{c1Reset1, 1 << 11}}, s.log); d != "" || !g.Warm() {
				t.Errorf("warm %v: %s", g.Warm(), d)
			}
		}
	}
}

// resetLine is a line of somebody else's.
type resetLine struct {
	log  []bool
	fail error
}

func (l *resetLine) SetReset(held bool) error {
	l.log = append(l.log, held)
	return l.fail
}

func TestForeignResetLine(t *testing.T) {
	s, l := newC1(), &resetLine{}
	g, err := Open(bg(), OdroidC1(), s, &clock{}, Options{PHYReset: l})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]bool{true, false}, l.log); d != "" || s.changes(c1GPIOOut) != nil || s.changes(c1GPIODir) != nil {
		t.Errorf("%s; pins written: %v", d, s.log)
	}
	if err := g.ResetPHY(bg()); err != nil || len(l.log) != 4 {
		t.Errorf("%v, %v", err, l.log)
	}
	s, l = newC1(), &resetLine{fail: errMap}
	before := s.image()
	if _, err := Open(bg(), OdroidC1(), s, &clock{}, Options{PHYReset: l}); !errors.Is(err, errMap) {
		t.Error(err)
	}
	if d := cmp.Diff(before, s.image()); d != "" {
		t.Error(d)
	}
	s = newC1()
	if _, err := Open(bg(), c1(func(b *Board) { b.PHYReset = GPIO{} }), s, &clock{}, Options{}); err != nil {
		t.Errorf("a board without reset line: %v", err)
	}
}

func TestResetPHYAtRunTime(t *testing.T) {
	s := newC1()
	g, err := Open(bg(), OdroidC1(), s, &clock{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.log = nil
	if err := g.ResetPHY(bg()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]write{{c1GPIOOut, 0}, {c1GPIOOut, 0x00800000}}, s.log); d != "" {
		t.Error(d)
	}
}

func TestContextEndsTheBringUp(t *testing.T) {
	over, cancel := context.WithCancel(bg())
	cancel()
	s := newC1()
	if _, err := Open(over, OdroidC1(), s, &clock{}, Options{}); !errors.Is(err, context.Canceled) || s.log != nil {
		t.Errorf("ended before: %v, wrote %v", err, s.log)
	}
	// During the PHY's reset: the MAC gate stands for all that is already done.
	s = newC1()
	before := s.image()
	ctx, cancel := context.WithCancel(bg())
	clk := &clock{never: true}
	s.onWrite = func(w write) {
		if w.Addr == c1GPIODir {
			cancel()
		}
	}
	if _, err := Open(ctx, OdroidC1(), s, clk, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if d := cmp.Diff(before, s.image()); d != "" {
		t.Error(d)
	}
	// Between two steps.
	s = newC1()
	ctx, cancel = context.WithCancel(bg())
	s.onWrite = func(w write) {
		if w.Addr == c1PRG {
			cancel()
		}
	}
	if _, err := Open(ctx, OdroidC1(), s, &clock{}, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if d := cmp.Diff(before, s.image()); d != "" {
		t.Error(d)
	}
}

func TestDescriptions(t *testing.T) {
	for _, b := range Boards() {
		if err := b.Validate(); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
		o := b.PHYOptions(phy.Settings{Pause: phy.PauseSymmetric})
		if o.Addr != hw.PHYAt(0) || o.ID != phy.RTL8211F || o.Mode != b.Mode || o.Settings.Pause != phy.PauseSymmetric {
			t.Errorf("%s: %+v", b.Name, o)
		}
		if i := b.Info(); i.RXFIFOBytes != 4096 || i.TXFIFOBytes != 2048 {
			t.Errorf("%s: %+v", b.Name, i)
		}
	}
	if OdroidC1().EEEBroken != phy.EEE1000T {
		t.Error("EEE at 1000 is broken on the C1")
	}
	for _, s := range SoCs() {
		// Every register that a description names lies in a block that is mapped.
		inside := func(what string, addr uint32) {
			for _, b := range s.Blocks {
				if addr >= b.Base && addr-b.Base+4 <= b.Size && addr%4 == 0 {
					return
				}
			}
			t.Errorf("%s: %s at 0x%08x is in no block", s.Name, what, addr)
		}
		inside("PRG_ETH0", s.PRG)
		if s.Layout == LayoutG12A {
			inside("PRG_ETH1", s.PRG+4)
		}
		for _, f := range []Bits{s.MemPower, s.Gate, s.MPLLPreDiv, s.MPLL2SDM, s.MPLL2SDMEnable, s.MPLL2N2, s.MPLL2Gate,
			s.FCLKDiv2Gate, s.CLK81Sel, s.CLK81Div, s.CLK81Gate} {
			if f.Width != 0 {
				inside(f.Name, f.Addr)
			}
		}
		for _, m := range append(append([]PinMux{}, s.RGMII...), s.RMII...) {
			inside(m.Name, m.Addr)
			if m.Set&m.Clear != 0 {
				t.Errorf("%s: %s sets and clears 0x%x", s.Name, m.Name, m.Set&m.Clear)
			}
		}
		if s.complete() {
			inside("reset", s.ResetAddr)
		}
	}
}
