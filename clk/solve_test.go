package clk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The glue register's bits that are not the clock tree's: mode, delay and reference clock of the worked set-ups.
const (
	prgRGMII   = 1 << 0
	prgDelay2  = 1 << 5
	prgRefClks = 1 << 12
)

// The worked set-ups, from any state of the tree's own fields: the registers come out bit for bit.
func TestRGMIITransmitClock(t *testing.T) {
	for _, tc := range []struct {
		name  string
		soc   func(testing.TB) *soc
		glue  uint32 // bits of others
		prg   uint32
		cntl9 uint32 // zero: left alone
		rate  Hz
		divIn Hz
		ppm   float64
	}{
		{"Odroid-C1 rgmii, MAC delays by 2 ns", meson8b, prgRGMII | prgDelay2 | prgRefClks, 0x00001521, 0x0005C667, 124999102, 499996410, -7.184},
		{"Odroid-C1 rgmii-id", meson8b, prgRGMII | prgRefClks, 0x00001501, 0x0005C667, 124999102, 499996410, -7.184},
		{"Odroid-C1 rgmii, MAC delays both", meson8b, prgRGMII | prgDelay2 | prgRefClks | 3<<13, 0x00007521, 0x0005C667, 124999102, 499996410, -7.184},
		{"Odroid-C2 rgmii, MAC delays by 2 ns", gxbb, prgRGMII | prgDelay2 | prgRefClks, 0x00001621, 0, 125000000, 1000 * MHz, 0},
	} {
		for _, left := range []struct{ prg, cntl9 uint32 }{
			{0, 0},
			{1<<4 | 7<<7 | 1<<10, 0x01FFFFFE},
			{1 << 7, 0x000ACCCD}, // 250 MHz with a divider of one: the set-up that loses packets
			{3 << 7, 0x0005C666},
		} {
			s := tc.soc(t)
			s.prg.words[offPrgEth0] = tc.glue | left.prg
			s.hhi.words[offMPLLCntl9] = left.cntl9
			change, err := SetRate(s.tx, 125*MHz, 0)
			if err != nil {
				t.Fatalf("%s from %#x: %v", tc.name, left, err)
			}
			if _, err := Enable(s.tx); err != nil {
				t.Fatalf("%s: %v", tc.name, err)
			}
			if got := s.prg.words[offPrgEth0]; got != tc.prg {
				t.Errorf("%s from %#x: PRG_ETH0 = %#08x, want %#08x", tc.name, left, got, tc.prg)
			}
			want := tc.cntl9
			if want == 0 {
				want = left.cntl9
			}
			if got := s.hhi.words[offMPLLCntl9]; got != want {
				t.Errorf("%s from %#x: HHI_MPLL_CNTL9 = %#08x, want %#08x", tc.name, left, got, want)
			}
			if r, err := s.tx.Rate(); err != nil || r != tc.rate || change.Rate != tc.rate || change.Plan.Rate != tc.rate {
				t.Errorf("%s: rate %v (%v), change %v, plan %v, want %v", tc.name, r, err, change.Rate, change.Plan.Rate, tc.rate)
			}
			if r, err := s.sel.Rate(); err != nil || r != tc.divIn {
				t.Errorf("%s: the divider gets %v (%v), want %v", tc.name, r, err, tc.divIn)
			}
			if d := Deviation(change.Rate, 125*MHz); d < tc.ppm-0.001 || d > tc.ppm+0.001 {
				t.Errorf("%s: %.3f ppm off, want %.3f", tc.name, d, tc.ppm)
			}
			if err := s.div.Check(0); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
	}
}

// 500 MHz and a divider of two is the only solution on Meson8b. The nearest rate of all has a divider of one, and an input
// of 250 MHz with which the delayed clock is not formed rightly: a solver free to take it would, so the bound on the input
// is what prevents it, with or without a table.
func TestDividerOneIsNotTaken(t *testing.T) {
	free := newSoC(t, socOptions{fixed: 2550 * MHz, div: func(c *DividerConfig) { c.Table, c.OneBased, c.MinInput = nil, true, 0 }})
	p, err := Solve(free.tx, 125*MHz, 0)
	if err != nil || p.Rate != 124999850 {
		t.Fatalf("without bounds: %v (%v): the trap is gone, this test says nothing", p, err)
	}
	for name, bound := range map[string]func(c *DividerConfig){
		"table":       func(c *DividerConfig) { c.MinInput = 0 },
		"input":       func(c *DividerConfig) { c.Table, c.OneBased = nil, true },
		"both":        func(c *DividerConfig) {},
		"zero passes": func(c *DividerConfig) { c.Table, c.OneBased, c.AllowZero = nil, true, true },
	} {
		s := newSoC(t, socOptions{fixed: 2550 * MHz, div: bound})
		if _, err := SetRate(s.tx, 125*MHz, 0); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := s.prg.words[offPrgEth0] >> 7 & 7; got != 2 {
			t.Errorf("%s: bits 9:7 are %d, want 2", name, got)
		}
		if r, _ := s.mpll.Rate(); r != 499996410 {
			t.Errorf("%s: MPLL2 at %v", name, r)
		}
	}
}

// A plan is the settings in the order in which they are made, and writes nothing.
func TestSolveOnlyReads(t *testing.T) {
	s := meson8b(t)
	p, err := Solve(s.tx, 125*MHz, 0)
	if err != nil {
		t.Fatal(err)
	}
	if s.written() != 0 {
		t.Errorf("%d writes", s.written())
	}
	var got []string
	for _, st := range p.Steps {
		got = append(got, fmt.Sprintf("%s -> %d", st.Setting, st.Out))
	}
	want := []string{"mpll2_div at 500000000 Hz -> 499996410", "m250_sel input 0 -> 499996410", "m250_div /2 -> 249998205"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
	const line = "rgmii_tx_en: mpll2_div at 500000000 Hz, m250_sel input 0, m250_div /2: 124999102 Hz (-7.2 ppm off)"
	if p.String() != line {
		t.Errorf("plan prints as %q, want %q", p, line)
	}
}

// A parent at 250 MHz that cannot be changed leaves nothing: the error lists each divisor with its reason.
func TestStuckParent(t *testing.T) {
	stuck := source{&other{name: "mpll2", rate: 250 * MHz}}
	s := newSoC(t, socOptions{fixed: 2550 * MHz, mpll: stuck})
	_, err := SetRate(s.tx, 125*MHz, 0)
	wantError(t, "SetRate", err, ErrNoRate, ErrConstraint)
	var e *RateError
	if !errors.As(err, &e) {
		t.Fatal("no RateError")
	}
	if len(e.Tried) != 6 || e.Clock != "rgmii_tx_en" || e.Want != 125*MHz || e.Tolerance != DefaultTolerance {
		t.Errorf("error is %+v", e)
	}
	for i, a := range e.Tried {
		want := Attempt{Clock: "m250_div", Setting: fmt.Sprintf("m250_sel input 0, m250_div /%d", i+2), Want: 250 * MHz, In: 250 * MHz,
			Reason: "the input is 250000000 Hz, needs at least 500000000 Hz"}
		if d := cmp.Diff(want, a); d != "" {
			t.Errorf("attempt %d (-want +got):\n%s", i, d)
		}
	}
	if s.written() != 0 {
		t.Errorf("%d writes before the error", s.written())
	}

	// Without the bound on the input the rates are simply wrong.
	s = newSoC(t, socOptions{fixed: 2550 * MHz, mpll: stuck, div: func(c *DividerConfig) { c.MinInput = 0 }})
	_, err = SetRate(s.tx, 125*MHz, 0)
	wantError(t, "SetRate", err, ErrNoRate)
	if !errors.As(err, &e) || e.Best != 62500000 || !strings.Contains(err.Error(), "m250_div /3 from 250000000 Hz gives 83333334 Hz instead of 250000000 Hz: -66.67 % off") {
		t.Errorf("error is %v", err)
	}
	if s.written() != 0 {
		t.Errorf("%d writes before the error", s.written())
	}
}

// A rate that is not passed on to the parent stays where the boot loader left it.
func TestKeepParent(t *testing.T) {
	s := newSoC(t, socOptions{fixed: 2550 * MHz, div: func(c *DividerConfig) { c.KeepParent = true }})
	s.hhi.words[offMPLLCntl9] = 0x000ACCCD // 250 MHz
	_, err := SetRate(s.tx, 125*MHz, 0)
	wantError(t, "parent at 250 MHz", err, ErrNoRate, ErrConstraint)
	s.hhi.words[offMPLLCntl9] = 0x0005C667
	if _, err := SetRate(s.tx, 125*MHz, 0); err != nil {
		t.Errorf("parent at 500 MHz: %v", err)
	}
	if len(s.hhi.writes) != 0 {
		t.Errorf("the parent was written: %v", s.hhi.writes)
	}
	s.hhi.words[offMPLLCntl9] = 0
	_, err = SetRate(s.tx, 125*MHz, 0)
	wantError(t, "parent with nonsense", err, ErrNoRate, ErrInvalid)
}

// A divider that rounds down takes the vendor's 500.002 MHz for too fast and would make 83.3 MHz of it. That is never
// accepted.
func TestRoundingDownIsNotAccepted(t *testing.T) {
	for _, round := range []Rounding{RoundDown, RoundClosest} {
		s := newSoC(t, socOptions{fixed: 2550 * MHz, div: func(c *DividerConfig) { c.KeepParent, c.Round = true, round }})
		s.hhi.words[offMPLLCntl9] = 0x0005C666
		change, err := SetRate(s.tx, 125*MHz, 0)
		if round == RoundClosest {
			if err != nil || change.Rate != 125000598 {
				t.Errorf("closest: %v, %v", change, err)
			}
			continue
		}
		wantError(t, "down", err, ErrNoRate)
		var e *RateError
		if !errors.As(err, &e) || e.Best != 83333732 || s.written() != 0 {
			t.Errorf("down: %v, %d writes", err, s.written())
		}
	}
}

// On newer chips MPLL2 belongs to somebody else, so the mux stays at the input where it is.
func TestKeepInput(t *testing.T) {
	keep := func(c *MuxConfig) { c.KeepInput = true }
	s := newSoC(t, socOptions{fixed: 2000 * MHz, fclkInput: true, sel: keep})
	p, err := Solve(s.tx, 125*MHz, 0)
	if err != nil || len(p.Steps) != 1 || p.Rate != 125*MHz {
		t.Errorf("at FCLK_DIV2: %v (%v)", p, err)
	}
	s.prg.words[offPrgEth0] = 1 << 4
	p, err = Solve(s.tx, 125*MHz, 0)
	if err != nil || p.Rate == 125*MHz || p.Steps[0].Clock != Clock(s.mpll) {
		t.Errorf("at MPLL2: %v (%v)", p, err)
	}
	// An input that nobody knows cannot be kept.
	s = newSoC(t, socOptions{fixed: 2000 * MHz, sel: func(c *MuxConfig) { c.KeepInput, c.Inputs[1] = true, nil }})
	s.prg.words[offPrgEth0] = 1 << 4
	_, err = Solve(s.tx, 125*MHz, 0)
	wantError(t, "unknown input", err, ErrNoRate, ErrInvalid)
}

// An input of a mux that cannot be read does not spoil the others, and is named if they do not do either.
func TestMuxWithBrokenInput(t *testing.T) {
	broken := source{&other{name: "broken", err: &Error{Clock: "broken", Op: "read", Err: ErrInvalid}}}
	good := must[*Fixed](t)(NewFixed("good", 100))
	f, _ := testField(0, 1, 0)
	m := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: f, Inputs: []Clock{broken, good}}))
	if p, err := Solve(m, 100, 0); err != nil || p.Steps[0].Setting != "mux input 1" {
		t.Errorf("%v, %v", p, err)
	}
	_, err := Solve(m, 200, 0)
	wantError(t, "Solve", err, ErrNoRate, ErrInvalid)
	if !strings.Contains(err.Error(), "mux input 0") || !strings.Contains(err.Error(), "best is 100 Hz") {
		t.Errorf("error is %v", err)
	}
	only := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: f, Inputs: []Clock{broken}}))
	_, err = Solve(only, 100, 0)
	wantError(t, "Solve", err, ErrNoRate, ErrInvalid)
}

// Tolerance is exact, and a rate just beyond it is an error.
func TestTolerance(t *testing.T) {
	for _, tc := range []struct {
		rate Hz
		tol  PPM
		ok   bool
	}{
		{125 * MHz, 1, true},
		{125000125, 1, true},
		{125000126, 1, false},
		{124999875, 1, true},
		{124999874, 1, false},
		{125125000, 0, true}, // 0.1 %
		{125125001, 0, false},
		{124875000, 0, true},
		{124874999, 0, false},
		{1, maxTolerance, true},
		{250 * MHz, maxTolerance, true},
		{250*MHz + 1, maxTolerance, false},
	} {
		c := must[*Fixed](t)(NewFixed("fixed", tc.rate))
		_, err := Solve(c, 125*MHz, tc.tol)
		if tc.ok != (err == nil) {
			t.Errorf("%v within %d ppm: %v", tc.rate, tc.tol, err)
		}
		if !tc.ok {
			wantError(t, "Solve", err, ErrNoRate)
			if !strings.Contains(err.Error(), "tried") {
				t.Errorf("%v: the error does not say what was tried", err)
			}
		}
	}
}

func TestSolveArguments(t *testing.T) {
	s := meson8b(t)
	var nilGate *Gate
	for name, f := range map[string]func() error{
		"nil clock":      func() error { return second(Solve(nil, 1, 0)) },
		"nil gate":       func() error { return second(Solve(nilGate, 1, 0)) },
		"rate 0":         func() error { return second(Solve(s.tx, 0, 0)) },
		"rate too large": func() error { return second(SetRate(s.tx, MaxRate+1, 0)) },
		"tolerance":      func() error { return second(SetRate(s.tx, 1, maxTolerance+1)) },
		"enable nil":     func() error { return second(Enable(nilGate)) },
	} {
		wantError(t, name, f(), ErrConfig)
	}
}

// Rates at the ends of the scale are errors, not wraps: a divider's need beyond MaxRate, a factor's below one Hertz.
func TestExtremeRates(t *testing.T) {
	s := meson8b(t)
	for _, want := range []Hz{1, 2, MaxRate - 1, MaxRate} {
		_, err := Solve(s.tx, want, 0)
		wantError(t, want.String(), err, ErrNoRate)
	}
	fast := must[*Factor](t)(NewFactor(FactorConfig{Name: "fast", Parent: &other{name: "any", rate: 1}, Mult: 1 << 20, Div: 1}))
	_, err := Solve(fast, 5, 0)
	wantError(t, "less than one Hertz of the parent", err, ErrNoRate)
	if p, err := Solve(fast, 3<<20, 0); err != nil || p.Rate != 3<<20 {
		t.Errorf("%v, %v", p, err)
	}
	// What another clock promises is checked.
	liar := &other{name: "liar", rate: 1, can: func(Hz) (Hz, error) { return 0, nil }}
	_, err = Solve(liar, 100, 0)
	wantError(t, "promise of 0 Hz", err, ErrNoRate, ErrInvalid)
}

// A tree with more combinations than can be looked at is refused, in bounded time.
func TestSearchIsBounded(t *testing.T) {
	var c Clock = &other{name: "source", rate: 1 * GHz}
	for i := range 4 {
		f, _ := testField(0, 10, 0)
		c = must[*Divider](t)(NewDivider(DividerConfig{Name: fmt.Sprintf("div%d", i), Parent: c, Field: f}))
	}
	_, err := Solve(c, 1000, 0)
	wantError(t, "Solve", err, ErrNoRate, ErrConfig)
	var e *RateError
	if !errors.As(err, &e) || len(e.Tried) != maxAttempts || e.Dropped == 0 {
		t.Errorf("kept %d attempts, dropped %d", len(e.Tried), e.Dropped)
	}
}

// Random two-level trees: the solver finds what trying everything finds.
func TestSolverIsComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	n := 400
	if testing.Short() {
		n = 80
	}
	found := 0
	for range n {
		fixed := must[*Fixed](t)(NewFixed("pll", Hz(1+r.Uint64N(3000))*MHz))
		second := must[*Fixed](t)(NewFixed("fclk", Hz(1+r.Uint64N(2000))*MHz))
		fm, _ := testField(0, 32, 0)
		n2, sdm := Field{fm.Reg, 16, 9}, Field{fm.Reg, 0, 14}
		mpll := must[*MPLL](t)(NewMPLL(MPLLConfig{Name: "mpll", Parent: fixed, N2: n2, SDM: sdm}))
		fx, _ := testField(4, 1, 0)
		mux := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: fx, Inputs: []Clock{second, mpll}}))
		fd, _ := testField(7, 3, 0)
		minIn := Hz(r.Uint64N(600)) * MHz
		div := must[*Divider](t)(NewDivider(DividerConfig{Name: "div", Parent: mux, Field: fd, Table: TableRange(2, 7), MinInput: minIn}))
		want := Hz(10+r.Uint64N(300)) * MHz

		// All there is: both inputs, all divisors, and for the MPLL its promise for each.
		best := Hz(0)
		consider := func(in Hz, d uint32) {
			out := divide(in, d)
			if (in >= minIn || within(in, minIn, DefaultTolerance)) && (best == 0 || nearer(out, best, want)) {
				best = out
			}
		}
		for d := uint32(2); d <= 7; d++ {
			consider(second.rate, d)
			if in, err := mpll.Round(want * Hz(d)); err == nil {
				consider(in, d)
			}
		}
		p, err := Solve(div, want, 0)
		if best != 0 && within(best, want, DefaultTolerance) {
			found++
			if err != nil || distance(p.Rate, want) > distance(best, want) {
				t.Fatalf("%v: %v (%v), want %v", want, p, err, best)
			}
		} else {
			wantError(t, "Solve", err, ErrNoRate)
		}
	}
	if found < n/10 {
		t.Errorf("only %d of %d trees had a solution", found, n)
	}
}
