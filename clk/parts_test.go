package clk

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDividerKinds(t *testing.T) {
	in := must[*Fixed](t)(NewFixed("in", 1000))
	for _, tc := range []struct {
		name string
		c    DividerConfig
		want map[uint32]uint32 // field value to divisor; missing: nonsense
	}{
		{"zero-based", DividerConfig{}, map[uint32]uint32{0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8}},
		{"one-based", DividerConfig{OneBased: true}, map[uint32]uint32{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}},
		{"one-based, zero passes", DividerConfig{OneBased: true, AllowZero: true},
			map[uint32]uint32{0: 1, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}},
		{"RGMII", DividerConfig{Table: TableRange(2, 7)}, map[uint32]uint32{2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7}},
		{"table with gaps", DividerConfig{Table: []TableEntry{{4, 16}, {0, 1}, {1, 6}}}, map[uint32]uint32{4: 16, 0: 1, 1: 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, r := testField(7, 3, 0)
			tc.c.Name, tc.c.Parent, tc.c.Field = "div", in, f
			d := must[*Divider](t)(NewDivider(tc.c))
			for v := uint32(0); v < 8; v++ {
				r.words[0] = v << 7
				div, err := d.Div()
				rate, rateErr := d.Rate()
				want, ok := tc.want[v]
				if !ok {
					wantError(t, "Div", err, ErrInvalid)
					wantError(t, "Rate", rateErr, ErrInvalid)
					if rate != 0 || !strings.Contains(err.Error(), "REG[9:7]") || !strings.Contains(err.Error(), "allowed are") {
						t.Errorf("value %d: rate %v, error %v", v, rate, err)
					}
					continue
				}
				if err != nil || div != want {
					t.Errorf("value %d: /%d (%v), want /%d", v, div, err, want)
				}
				if w := Hz((1000 + want - 1) / want); rateErr != nil || rate != w {
					t.Errorf("value %d: rate %v (%v), want %v", v, rate, rateErr, w)
				}
			}
			// Every divisor can be written, and zero never is.
			for div := uint32(0); div < 20; div++ {
				r.words[0] = 3 << 7
				possible := false
				for v, w := range tc.want {
					possible = possible || w == div && !(tc.c.AllowZero && v == 0)
				}
				err := d.SetDiv(div)
				if !possible {
					wantError(t, "SetDiv", err, ErrConfig)
					continue
				}
				if got, e := d.Div(); err != nil || e != nil || got != div {
					t.Errorf("SetDiv(%d): %v, reads /%d (%v)", div, err, got, e)
				}
				if tc.c.OneBased && r.words[0] == 0 {
					t.Errorf("SetDiv(%d) wrote zero", div)
				}
			}
		})
	}
}

// Rounding as Linux does it, including the case that made an RGMII clock of 83.3 MHz: the vendor's 500.002 MHz is a little
// too fast for a divider of 2 that must not exceed 250 MHz.
func TestDividerRounding(t *testing.T) {
	f, _ := testField(7, 3, 0)
	in := must[*Fixed](t)(NewFixed("in", 1000))
	for _, tc := range []struct {
		round    Rounding
		in, want Hz
		div      uint32 // zero: cannot
		out      Hz
	}{
		{RoundDown, 500002394, 250 * MHz, 3, 166667465},
		{RoundClosest, 500002394, 250 * MHz, 2, 250001197},
		{RoundClosest, 499996410, 250 * MHz, 2, 249998205},
		{RoundDown, 499996410, 250 * MHz, 2, 249998205},
		{RoundClosest, 1200, 500, 3, 400},  // 600 is as near: the slower one
		{RoundClosest, 1200, 350, 4, 300},  // and 400
		{RoundClosest, 1000, 300, 3, 334},  // rounded up
		{RoundDown, 1000, 333, 4, 250},     // 334 is too fast
		{RoundDown, 1000, 334, 3, 334},     // exact as rounded
		{RoundDown, 1000, 142, 0, 0},       // 1000/7 is 143
		{RoundClosest, 1000, 1, 7, 143},    // the slowest
		{RoundClosest, 1000, 5000, 2, 500}, // the fastest
		{RoundDown, 1000, 5000, 2, 500},    //
		{RoundClosest, MaxRate, 1, 7, 1<<40/7 + 1},
	} {
		d := must[*Divider](t)(NewDivider(DividerConfig{Name: "div", Parent: in, Field: f, Table: TableRange(2, 7), Round: tc.round}))
		div, out, err := d.Best(tc.in, tc.want)
		if tc.div == 0 {
			wantError(t, "Best", err, ErrNoRate)
			continue
		}
		if err != nil {
			t.Errorf("%v from %v: %v", tc.want, tc.in, err)
		}
		if div != tc.div || out != tc.out {
			t.Errorf("%v from %v: /%d %v, want /%d %v", tc.want, tc.in, div, out, tc.div, tc.out)
		}
	}
}

// Best agrees with trying all divisors, for random inputs.
func TestDividerBestIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	f, _ := testField(0, 6, 0)
	parent := must[*Fixed](t)(NewFixed("in", 1))
	for range 20000 {
		c := DividerConfig{Name: "div", Parent: parent, Field: f, Round: Rounding(r.IntN(2)), OneBased: r.IntN(2) == 0}
		d := must[*Divider](t)(NewDivider(c))
		in, want := Hz(1+r.Uint64N(3000)), Hz(1+r.Uint64N(3000))
		bestOut := Hz(0)
		for div := Hz(1); div <= 64; div++ {
			out := in / div
			if in%div != 0 {
				out++
			}
			if div == 64 && c.OneBased || c.Round == RoundDown && out > want {
				continue
			}
			near := func(x Hz) int64 { return max(int64(x)-int64(want), int64(want)-int64(x)) }
			if bestOut == 0 || near(out) < near(bestOut) || near(out) == near(bestOut) && out < bestOut {
				bestOut = out
			}
		}
		div, out, err := d.Best(in, want)
		if bestOut == 0 {
			wantError(t, "Best", err, ErrNoRate)
			continue
		}
		if err != nil || out != bestOut || divide(in, div) != out {
			t.Fatalf("%v from %v: /%d %v (%v), want %v", want, in, div, out, err, bestOut)
		}
	}
}

func TestDividerCheck(t *testing.T) {
	f, r := testField(7, 3, 2<<7)
	for _, tc := range []struct {
		in    Hz
		value uint32
		want  error
	}{
		{500 * MHz, 2, nil},
		{499996410, 2, nil}, // the nearest that an MPLL can do
		{499400 * KHz, 2, ErrConstraint},
		{250 * MHz, 2, ErrConstraint},
		{1000500 * KHz, 4, nil},
		{1002 * MHz, 4, ErrConstraint},
		{500 * MHz, 1, ErrInvalid},
		{500 * MHz, 0, ErrInvalid},
	} {
		in := must[*Fixed](t)(NewFixed("in", tc.in))
		d := must[*Divider](t)(NewDivider(DividerConfig{Name: "div", Parent: in, Field: f, Table: TableRange(2, 7),
			MinInput: 500 * MHz, MaxInput: 1000 * MHz}))
		r.words[0] = tc.value << 7
		if err := d.Check(0); tc.want == nil && err != nil {
			t.Errorf("%v /%d: %v", tc.in, tc.value, err)
		} else if tc.want != nil {
			wantError(t, tc.in.String(), err, tc.want)
		}
	}
}

func TestMux(t *testing.T) {
	a := must[*Fixed](t)(NewFixed("a", 100))
	b := must[*Fixed](t)(NewFixed("b", 200))
	f, r := testField(12, 3, 0xF0F)
	m := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: f, Inputs: []Clock{a, nil, b}, Values: []uint32{6, 1, 0}}))
	for v, want := range map[uint32]Hz{6: 100, 0: 200} {
		r.words[0] = v<<12 | 0xF0F
		if got, err := m.Rate(); err != nil || got != want {
			t.Errorf("value %d: %v (%v), want %v", v, got, err, want)
		}
	}
	for _, v := range []uint32{1, 2, 3, 4, 5, 7} {
		r.words[0] = v << 12
		rate, err := m.Rate()
		wantError(t, "Rate", err, ErrInvalid)
		if rate != 0 {
			t.Errorf("value %d: %v", v, rate)
		}
	}
	for _, i := range []int{-1, 1, 3} {
		wantError(t, "Select", m.Select(i), ErrConfig)
	}
	if err := m.Select(0); err != nil {
		t.Fatal(err)
	}
	if p, err := m.Parent(); err != nil || p != Clock(a) {
		t.Errorf("parent is %v (%v)", p, err)
	}
	// A clock of somebody else without a rate is not believed.
	odd := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: f, Inputs: []Clock{&other{name: "odd"}, a}}))
	r.words[0] = 0
	_, err := odd.Rate()
	wantError(t, "rate 0 of another clock", err, ErrInvalid)
}

func TestGate(t *testing.T) {
	in := must[*Fixed](t)(NewFixed("in", 1000))
	for _, low := range []bool{false, true} {
		f, r := testField(10, 1, 0xA5A5A5A5)
		g := must[*Gate](t)(NewGate(GateConfig{Name: "gate", Parent: in, Field: f, ActiveLow: low}))
		for _, on := range []bool{true, false, true} {
			if err := g.SetEnabled(on); err != nil {
				t.Fatal(err)
			}
			if got, err := g.Enabled(); err != nil || got != on {
				t.Errorf("active low %v: enabled %v (%v), want %v", low, got, err, on)
			}
			if bit := r.words[0]>>10&1 == 1; bit != (on != low) || r.words[0]&^(1<<10) != 0xA5A5A5A5&^(1<<10) {
				t.Errorf("active low %v, on %v: register %#08x", low, on, r.words[0])
			}
			if rate, err := g.Rate(); err != nil || rate != 1000 {
				t.Errorf("rate is %v (%v)", rate, err)
			}
		}
	}
}

func TestFactor(t *testing.T) {
	for _, tc := range []struct {
		in        Hz
		mult, div uint32
		want      Hz // zero: nonsense
	}{
		{249998205, 1, 2, 124999102}, // rounded down
		{24 * MHz, 425, 4, 2550 * MHz},
		{24 * MHz, 83, 1, 1992 * MHz}, // not in whole MHz of anything
		{1, 1, 2, 0},
		{MaxRate, 2, 1, 0},
		{MaxRate, 1 << 30, 1 << 30, MaxRate}, // wraps in 64 bits
		{MaxRate, 1<<31 - 1, 1, 0},
	} {
		in := must[*Fixed](t)(NewFixed("in", tc.in))
		f := must[*Factor](t)(NewFactor(FactorConfig{Name: "factor", Parent: in, Mult: tc.mult, Div: tc.div}))
		got, err := f.Rate()
		if tc.want == 0 {
			wantError(t, "Rate", err, ErrInvalid)
		}
		if got != tc.want || tc.want != 0 && err != nil {
			t.Errorf("%v * %d/%d = %v (%v), want %v", tc.in, tc.mult, tc.div, got, err, tc.want)
		}
	}
}

// PLL fields as in Linux, drivers/clk/meson/gxbb.c: HHI_MPLL_CNTL and CNTL2.
func TestPLL(t *testing.T) {
	r := newRegs()
	b := NewBank(r)
	cntl, cntl2 := Reg{Bank: b, Name: "HHI_MPLL_CNTL", Off: 0x280}, Reg{Bank: b, Name: "HHI_MPLL_CNTL2", Off: 0x284}
	xtal := must[*Fixed](t)(NewFixed("xtal", 24*MHz))
	p := must[*PLL](t)(NewPLL(PLLConfig{Name: "fixed_pll", Parent: xtal, M: Field{cntl, 0, 9}, N: Field{cntl, 9, 5},
		OD: Field{cntl, 16, 2}, Frac: Field{cntl2, 0, 12}, Lock: Field{cntl, 31, 1}}))
	reg := func(m, n, od, lock uint32) uint32 { return m | n<<9 | od<<16 | lock<<31 }
	for _, tc := range []struct {
		name        string
		cntl, cntl2 uint32
		want        Hz
		err         error
	}{
		{"2.55 GHz", reg(106, 1, 0, 1), 1024, 2550 * MHz, nil},
		{"odd M over N", reg(425, 4, 0, 1), 0, 2550 * MHz, nil},
		{"not in whole MHz", reg(101, 7, 0, 1), 0, 346285715, nil}, // 2424/7 MHz rounded up
		{"fraction rounded up", reg(83, 1, 0, 1), 1365, 1999998047, nil},
		{"output divider", reg(106, 1, 2, 1), 1024, 637500000, nil},
		{"N 0", reg(106, 0, 0, 1), 0, 0, ErrInvalid},
		{"M 0", reg(0, 1, 0, 1), 0, 0, ErrInvalid},
		{"reset state", 0, 0, 0, ErrInvalid},
		{"not locked", reg(106, 1, 0, 0), 0, 0, ErrInvalid},
		{"gone", allOnes, 0, 0, ErrGone},
	} {
		r.words[0x280], r.words[0x284] = tc.cntl, tc.cntl2
		got, err := p.Rate()
		if got != tc.want {
			t.Errorf("%s: %v (%v), want %v", tc.name, got, err, tc.want)
		}
		if tc.err != nil {
			wantError(t, tc.name, err, tc.err)
		} else if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// Wrong descriptions are refused, and the error names the field.
func TestConfigErrors(t *testing.T) {
	f1, _ := testField(0, 1, 0)
	f3, _ := testField(7, 3, 0)
	in := must[*Fixed](t)(NewFixed("in", 1000))
	regOf := f1.Reg
	wide := Field{regOf, 0, 13}
	off := func(f Field) Field { f.Reg.Off = 3; return f }
	var nilMux *Mux
	for _, tc := range []struct {
		what  string
		err   error
		names string
	}{
		{"fixed", second(NewFixed("", 1)), "Name"},
		{"fixed", second(NewFixed("f", 0)), "rate"},
		{"fixed", second(NewFixed("f", MaxRate+1)), "rate"},
		{"mux without inputs", second(NewMux(MuxConfig{Name: "m", Field: f1})), "Inputs"},
		{"mux with unknown inputs only", second(NewMux(MuxConfig{Name: "m", Field: f1, Inputs: []Clock{nil, nilMux}})), "Inputs"},
		{"mux with too many inputs", second(NewMux(MuxConfig{Name: "m", Field: f1, Inputs: []Clock{in, in, in}})), "Values"},
		{"mux with few values", second(NewMux(MuxConfig{Name: "m", Field: f1, Inputs: []Clock{in, in}, Values: []uint32{1}})), "Values"},
		{"mux with equal values", second(NewMux(MuxConfig{Name: "m", Field: f1, Inputs: []Clock{in, in}, Values: []uint32{1, 1}})), "Values"},
		{"mux without field", second(NewMux(MuxConfig{Name: "m", Inputs: []Clock{in}})), "Field"},
		{"mux without name", second(NewMux(MuxConfig{Field: f1, Inputs: []Clock{in}})), "Name"},
		{"gate without parent", second(NewGate(GateConfig{Name: "g", Field: f1})), "Parent"},
		{"gate with a nil parent", second(NewGate(GateConfig{Name: "g", Field: f1, Parent: nilMux})), "Parent"},
		{"gate of three bits", second(NewGate(GateConfig{Name: "g", Field: f3, Parent: in})), "Field"},
		{"gate at an odd address", second(NewGate(GateConfig{Name: "g", Field: off(f1), Parent: in})), "Field"},
		{"gate beyond the word", second(NewGate(GateConfig{Name: "g", Field: Field{regOf, 32, 1}, Parent: in})), "Field"},
		{"gate without name", second(NewGate(GateConfig{Field: f1, Parent: in})), "Name"},
		{"factor of zero", second(NewFactor(FactorConfig{Name: "f", Parent: in, Div: 1})), "Mult"},
		{"factor over zero", second(NewFactor(FactorConfig{Name: "f", Parent: in, Mult: 1})), "Div"},
		{"factor without parent", second(NewFactor(FactorConfig{Name: "f", Mult: 1, Div: 1})), "Parent"},
		{"factor without name", second(NewFactor(FactorConfig{Parent: in, Mult: 1, Div: 1})), "Name"},
		{"divider without parent", second(NewDivider(DividerConfig{Name: "d", Field: f3})), "Parent"},
		{"divider without name", second(NewDivider(DividerConfig{Parent: in, Field: f3})), "Name"},
		{"divider without field", second(NewDivider(DividerConfig{Name: "d", Parent: in})), "Field"},
		{"divider of 13 bits", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: wide})), "Field"},
		{"divider with an empty table", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: []TableEntry{}})), "Table"},
		{"divider with a large value", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: TableRange(2, 8)})), "Table"},
		{"divider by zero", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: TableRange(0, 7)})), "Table"},
		{"divider with a value twice", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: []TableEntry{{1, 1}, {1, 2}}})), "Table"},
		{"divider table, one-based", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: TableRange(2, 7), OneBased: true})), "Table"},
		{"divider table, zero allowed", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Table: TableRange(2, 7), AllowZero: true})), "Table"},
		{"divider zero-based, zero allowed", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, AllowZero: true})), "AllowZero"},
		{"divider rounding", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, Round: 2})), "Round"},
		{"divider bounds", second(NewDivider(DividerConfig{Name: "d", Parent: in, Field: f3, MinInput: 2, MaxInput: 1})), "MaxInput"},
		{"MPLL without parent", second(NewMPLL(MPLLConfig{Name: "m", N2: Field{regOf, 16, 9}, SDM: Field{regOf, 0, 14}})), "Parent"},
		{"MPLL without name", second(NewMPLL(MPLLConfig{Parent: in, N2: Field{regOf, 16, 9}, SDM: Field{regOf, 0, 14}})), "Name"},
		{"MPLL without N2", second(NewMPLL(MPLLConfig{Name: "m", Parent: in, SDM: Field{regOf, 0, 14}})), "N2"},
		{"MPLL with a short SDM", second(NewMPLL(MPLLConfig{Name: "m", Parent: in, N2: Field{regOf, 16, 9}, SDM: Field{regOf, 0, 13}})), "SDM"},
		{"MPLL with a wide enable", second(NewMPLL(MPLLConfig{Name: "m", Parent: in, N2: Field{regOf, 16, 9}, SDM: Field{regOf, 0, 14}, SDMEnable: f3})), "SDMEnable"},
		{"PLL without M", second(NewPLL(PLLConfig{Name: "p", Parent: in, N: f3})), "M"},
		{"PLL with a wide M", second(NewPLL(PLLConfig{Name: "p", Parent: in, M: wide, N: f3})), "M"},
		{"PLL with a wide lock", second(NewPLL(PLLConfig{Name: "p", Parent: in, M: f3, N: f3, Lock: f3})), "Lock"},
		{"PLL without parent", second(NewPLL(PLLConfig{Name: "p", M: f3, N: f3})), "Parent"},
		{"PLL without name", second(NewPLL(PLLConfig{Parent: in, M: f3, N: f3})), "Name"},
	} {
		wantError(t, tc.what, tc.err, ErrConfig)
		if tc.err != nil && !strings.Contains(tc.err.Error(), tc.names) {
			t.Errorf("%s: %q does not name %s", tc.what, tc.err, tc.names)
		}
	}
}

func second[T any](_ T, err error) error { return err }
