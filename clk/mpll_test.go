package clk

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The settings for the rates that matter on Meson8b, to the bit: register HHI_MPLL_CNTL9 with output and fraction enabled.
func TestMPLLTable(t *testing.T) {
	for _, tc := range []struct {
		want   Hz
		n2, s  uint32
		actual Hz
		reg    uint32
	}{
		{125 * MHz, 20, 6554, 124999851, 0x0014D99A},
		{250 * MHz, 10, 3277, 249999701, 0x000ACCCD},
		{500 * MHz, 5, 1639, 499996410, 0x0005C667},
		{637500000, 4, 1, 637490273, 0x0004C001},
		{700 * MHz, 4, 1, 637490273, 0x0004C001},
		{MaxRate, 4, 1, 637490273, 0x0004C001},
	} {
		n2, sdm, err := MPLLParams(2550*MHz, tc.want)
		if err != nil || n2 != tc.n2 || sdm != tc.s {
			t.Errorf("%v: N2 %d SDM %d (%v), want %d %d", tc.want, n2, sdm, err, tc.n2, tc.s)
		}
		if r, err := MPLLRate(2550*MHz, n2, sdm); err != nil || r != tc.actual {
			t.Errorf("%v: gives %v (%v), want %v", tc.want, r, err, tc.actual)
		}
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9] = mpll2Enable
		if err := s.mpll.SetRate(tc.want); err != nil {
			t.Fatal(err)
		}
		if got := s.hhi.words[offMPLLCntl9]; got != tc.reg {
			t.Errorf("%v: HHI_MPLL_CNTL9 = %#08x, want %#08x", tc.want, got, tc.reg)
		}
		if r, err := s.mpll.Rate(); err != nil || r != tc.actual {
			t.Errorf("%v: reads back %v (%v), want %v", tc.want, r, err, tc.actual)
		}
	}
}

// The vendor's boot loader uses the next lower fraction.
func TestMPLLVendorSetting(t *testing.T) {
	s := meson8b(t)
	s.hhi.words[offMPLLCntl9] = 0x0005C666
	if r, err := s.mpll.Rate(); err != nil || r != 500002394 {
		t.Errorf("rate is %v (%v), want 500002394 Hz", r, err)
	}
}

// The bottom of the range: the largest divider.
func TestMPLLBottom(t *testing.T) {
	for _, want := range []Hz{1, 19 * MHz} {
		n2, sdm, err := MPLLParams(2550*MHz, want)
		if err != nil || n2 != n2Max || sdm != sdmMax {
			t.Errorf("%v: N2 %d SDM %d (%v)", want, n2, sdm, err)
		}
	}
	// A remainder of zero would need SDM 0, and one just below the next divider SDM 16384.
	if _, sdm, _ := MPLLParams(2550*MHz, 510*MHz); sdm != sdmMin {
		t.Errorf("remainder 0: SDM is %d", sdm)
	}
	if _, sdm, _ := MPLLParams(2550*MHz, 510*MHz+1); sdm != sdmMax {
		t.Errorf("remainder of nearly one: SDM is %d", sdm)
	}
}

// In 32 bits the product of remainder and 16384 wraps, which put the clock 2 % off. The wrong values are known, so this
// shows that the test rates are ones where it matters.
func TestMPLLIsNot32Bit(t *testing.T) {
	for want, wrong := range map[Hz]Hz{500 * MHz: 509956425, 250 * MHz: 254979769, 125 * MHz: 127489885} {
		div, rem := 2550*MHz/want, 2550*MHz%want
		sdm := uint32(ceilDiv(uint64(uint32(rem)*sdmDen), uint64(want)))
		if r, err := MPLLRate(2550*MHz, uint32(div), sdm); err != nil || r != wrong {
			t.Errorf("%v in 32 bits: %v (%v), expected the known wrong %v", want, r, err, wrong)
		}
		n2, sdm, _ := MPLLParams(2550*MHz, want)
		if r, _ := MPLLRate(2550*MHz, n2, sdm); !within(r, want, 10) {
			t.Errorf("%v: got %v", want, r)
		}
	}
}

// bigRate and bigParams are the definitions in arithmetic without a width.
func bigRate(parent Hz, n2, sdm uint32) Hz {
	num := new(big.Int).Mul(big.NewInt(int64(parent)), big.NewInt(16384))
	den := new(big.Int).Add(new(big.Int).Mul(big.NewInt(16384), big.NewInt(int64(n2))), big.NewInt(int64(sdm)))
	q, m := new(big.Int).DivMod(num, den, new(big.Int))
	if m.Sign() != 0 {
		q.Add(q, big.NewInt(1))
	}
	return Hz(q.Uint64())
}

func bigParams(parent, want Hz) (n2, sdm uint32) {
	// The ratio as a fraction: N2 is its floor, SDM the rest in units of 1/16384, rounded up.
	ratio := new(big.Rat).SetFrac(big.NewInt(int64(parent)), big.NewInt(int64(want)))
	whole := new(big.Int).Quo(ratio.Num(), ratio.Denom())
	rest := new(big.Rat).Sub(ratio, new(big.Rat).SetInt(whole))
	rest.Mul(rest, big.NewRat(16384, 1))
	up := new(big.Int).Quo(rest.Num(), rest.Denom())
	if !rest.IsInt() {
		up.Add(up, big.NewInt(1))
	}
	switch {
	case whole.Cmp(big.NewInt(4)) < 0:
		return 4, 1
	case whole.Cmp(big.NewInt(127)) > 0:
		return 127, 16383
	}
	return uint32(whole.Uint64()), uint32(min(max(up.Uint64(), 1), 16383))
}

func TestMPLLAgainstBig(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 16384))
	n := 200000
	if testing.Short() {
		n = 20000
	}
	for i := range n {
		parent := Hz(1 + r.Uint64N(math.MaxUint32)) // 4.29 GHz
		if i%10 == 0 {
			parent = Hz(1 + r.Uint64N(uint64(MaxRate)))
		}
		n2, sdm := uint32(n2Min+r.IntN(n2Max-n2Min+1)), uint32(sdmMin+r.IntN(sdmMax))
		rate, err := MPLLRate(parent, n2, sdm)
		if want := bigRate(parent, n2, sdm); err != nil || rate != want {
			t.Fatalf("rate of %v with N2 %d SDM %d: %v (%v), want %v", parent, n2, sdm, rate, err, want)
		}
		want := Hz(1 + r.Uint64N(uint64(parent)/3+1))
		n2, sdm, err = MPLLParams(parent, want)
		if bn, bs := bigParams(parent, want); err != nil || n2 != bn || sdm != bs {
			t.Fatalf("parameters for %v from %v: N2 %d SDM %d (%v), want %d %d", want, parent, n2, sdm, err, bn, bs)
		}
		// Within the range the result is not faster than wanted, and one step of the fraction away at most.
		got, _ := MPLLRate(parent, n2, sdm)
		if div := parent / want; div >= n2Min && div <= n2Max && sdm > sdmMin && sdm < sdmMax {
			if got > want || bigRate(parent, n2, sdm-1) < want {
				t.Fatalf("%v from %v: N2 %d SDM %d gives %v", want, parent, n2, sdm, got)
			}
		}
	}
}

func FuzzMPLL(f *testing.F) {
	f.Add(uint64(2550*MHz), uint64(500*MHz), uint32(5), uint32(1639))
	f.Add(uint64(0), uint64(0), uint32(0), uint32(0))
	f.Add(uint64(math.MaxUint64), uint64(1), uint32(math.MaxUint32), uint32(math.MaxUint32))
	f.Fuzz(func(t *testing.T, parent, want uint64, n2, sdm uint32) {
		if r, err := MPLLRate(Hz(parent), n2, sdm); err == nil && r != bigRate(Hz(parent), n2, sdm) {
			t.Errorf("MPLLRate(%d, %d, %d) = %v", parent, n2, sdm, r)
		}
		a, b, err := MPLLParams(Hz(parent), Hz(want))
		if err != nil {
			return
		}
		if n, s := bigParams(Hz(parent), Hz(want)); a != n || b != s {
			t.Errorf("MPLLParams(%d, %d) = %d, %d, want %d, %d", parent, want, a, b, n, s)
		}
	})
}

// Setting a rate clears its fields first and leaves all other bits, documented or not.
func TestMPLLTouchesItsFieldsOnly(t *testing.T) {
	const own = 0x1FF<<16 | 1<<15 | 0x3FFF
	for _, before := range []uint32{0, 0xC6000000, ^uint32(own), 0x01FFBFFF, 0xFFFFFFFE, 0x0014D99A} {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9] = before
		if err := s.mpll.SetRate(500 * MHz); err != nil {
			t.Fatal(err)
		}
		after := s.hhi.words[offMPLLCntl9]
		if after&^own != before&^own {
			t.Errorf("from %#08x: other bits became %#08x", before, after)
		}
		if after&own != 5<<16|1<<15|1639 {
			t.Errorf("from %#08x: fields became %#08x", before, after)
		}
		if len(s.hhi.writes) != 1 {
			t.Errorf("from %#08x: %d writes: in between the fields are a mixture", before, len(s.hhi.writes))
		}
		// Once more changes nothing.
		if err := s.mpll.SetRate(500 * MHz); err != nil || len(s.hhi.writes) != 1 {
			t.Errorf("again: %d writes, error %v", len(s.hhi.writes), err)
		}
	}
}

// A PLL that nobody programmed, or somebody programmed wrongly, has no rate.
func TestMPLLNonsense(t *testing.T) {
	for _, tc := range []struct {
		name string
		reg  uint32
		want error
	}{
		{"reset state", 0, ErrInvalid},
		{"N2 0", 0x0000C667, ErrInvalid},
		{"N2 3", 0x0003C667, ErrInvalid},
		{"N2 128", 0x0080C667, ErrInvalid},
		{"SDM 0", 0x0005C000, ErrInvalid},
		{"fraction off", 0x00054667, ErrInvalid},
		{"bus gone", 0xFFFFFFFF, ErrGone},
	} {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9] = tc.reg
		r, err := s.mpll.Rate()
		if r != 0 {
			t.Errorf("%s: a rate of %v was made up", tc.name, r)
		}
		wantError(t, tc.name, err, tc.want)
		// The whole tree says so.
		s.prg.words[offPrgEth0] = 2 << 7
		r, err = s.tx.Rate()
		if r != 0 {
			t.Errorf("%s: the transmit clock has a rate of %v", tc.name, r)
		}
		wantError(t, tc.name, err, tc.want)
	}
	for _, bad := range [][3]uint64{{0, 5, 1}, {uint64(MaxRate) + 1, 5, 1}, {1000, 0, 1}, {1000, 5, 0}, {1000, 5, 16384}} {
		r, err := MPLLRate(Hz(bad[0]), uint32(bad[1]), uint32(bad[2]))
		if r != 0 {
			t.Errorf("MPLLRate(%v) = %v", bad, r)
		}
		wantError(t, "MPLLRate", err, ErrInvalid)
	}
	for _, bad := range [][2]Hz{{0, 1}, {1, 0}, {MaxRate + 1, 1}, {1, MaxRate + 1}} {
		_, _, err := MPLLParams(bad[0], bad[1])
		wantError(t, "MPLLParams", err, ErrInvalid)
	}
}
