package clk

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// As a boot loader might leave it: MPLL2 at 250 MHz, both gates closed.
func TestDescribe(t *testing.T) {
	s := meson8b(t)
	s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = 0x000A8CCD, 0x00001111
	want := []string{
		`rgmii_tx_en          62499925 Hz  off             PRG_ETH0[10]`,
		` fixed_div2          62499925 Hz  *1/2`,
		`  m250_div          124999851 Hz  /2              PRG_ETH0[9:7]`,
		`   m250_sel         249999701 Hz  input 1 of 2    PRG_ETH0[4]`,
		`    mpll2           249999701 Hz  off             HHI_MPLL_CNTL9[14]`,
		`     mpll2_div      249999701 Hz  N2 10 SDM 3277  HHI_MPLL_CNTL9`,
		`      mpll_prediv  2550000000 Hz  /1              HHI_MPLL_CNTL5[12]`,
		`       fixed_pll   2550000000 Hz`,
	}
	if d := cmp.Diff(want, strings.Split(strings.TrimSuffix(Describe(s.tx), "\n"), "\n")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A part that cannot be read says why; parts above it keep their rates.
func TestDescribeNonsense(t *testing.T) {
	s := meson8b(t)
	s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = 0x0005C667, 0x00001081 // divider 1
	const why = "clk: m250_div: read divider: registers hold no valid clock setting (PRG_ETH0[9:7] = 0x1): allowed are 2 to 7"
	infos := Inspect(s.tx)
	want := []Info{
		{Name: "rgmii_tx_en", Kind: "gate", Setting: "off", Register: "PRG_ETH0[10]", Off: true, Error: why},
		{Name: "fixed_div2", Kind: "factor", Setting: "*1/2", Error: why},
		{Name: "m250_div", Kind: "divider", Register: "PRG_ETH0[9:7]", Error: why},
		{Name: "m250_sel", Kind: "mux", Rate: 499996410, Setting: "input 0 of 2", Register: "PRG_ETH0[4]"},
		{Name: "mpll2", Kind: "gate", Rate: 499996410, Setting: "on", Register: "HHI_MPLL_CNTL9[14]"},
		{Name: "mpll2_div", Kind: "mpll", Rate: 499996410, Setting: "N2 5 SDM 1639", Register: "HHI_MPLL_CNTL9"},
		{Name: "mpll_prediv", Kind: "divider", Rate: 2550 * MHz, Setting: "/1", Register: "HHI_MPLL_CNTL5[12]"},
		{Name: "fixed_pll", Kind: "fixed", Rate: 2550 * MHz},
	}
	if d := cmp.Diff(want, infos); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if text := Describe(s.tx); !strings.Contains(text, "?") || !strings.Contains(text, why) {
		t.Errorf("Describe:\n%s", text)
	}
	b, err := json.Marshal(infos[3])
	if want := `{"name":"m250_sel","kind":"mux","rate_hz":499996410,"setting":"input 0 of 2","register":"PRG_ETH0[4]"}`; err != nil || string(b) != want {
		t.Errorf("JSON is %s (%v)", b, err)
	}
	// A mux that points nowhere ends the walk.
	s = newSoC(t, socOptions{fixed: 2550 * MHz, sel: func(c *MuxConfig) { c.Inputs[1] = nil }})
	s.prg.words[offPrgEth0] = 1 << 4
	infos = Inspect(s.tx)
	if last := infos[len(infos)-1]; last.Name != "m250_sel" || !strings.Contains(last.Error, "no known clock is there") {
		t.Errorf("the walk ends at %+v", last)
	}
	if Inspect(nil) != nil || Describe(nil) != "" {
		t.Error("nil has a description")
	}
}

func TestDescribeOthers(t *testing.T) {
	f, r := testField(0, 16, 106|1<<9)
	pll := must[*PLL](t)(NewPLL(PLLConfig{Name: "pll", Parent: &other{name: "xtal", rate: 24 * MHz},
		M: Field{f.Reg, 0, 9}, N: Field{f.Reg, 9, 5}, Frac: Field{f.Reg, 16, 12}}))
	r.words[0] |= 1024 << 16
	want := []Info{
		{Name: "pll", Kind: "pll", Rate: 2550 * MHz, Setting: "M 106 N 1 OD 0 frac 1024/4096", Register: "REG[8:0]"},
		{Name: "xtal", Kind: "clock", Rate: 24 * MHz},
	}
	if d := cmp.Diff(want, Inspect(pll)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Whatever stands in the registers, reading and printing a tree gives a rate or an error, never a panic, and the solver
// finds its way out of every state.
func FuzzReadBack(f *testing.F) {
	f.Add(uint32(0x0005C667), uint32(0x1501), uint32(0), uint32(0))
	f.Add(uint32(0), uint32(0), uint32(0), uint32(0))
	f.Add(uint32(allOnes), uint32(allOnes), uint32(allOnes), uint32(allOnes))
	f.Fuzz(readBack)
}

func TestReadBackOfAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for range 3000 {
		readBack(t, r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32())
	}
}

func readBack(t *testing.T, cntl9, prg, cntl5, cntl6 uint32) {
	for _, s := range []*soc{meson8b(t), gxbb(t)} {
		s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = cntl9, prg
		s.hhi.words[offMPLLCntl5], s.hhi.words[offMPLLCntl6] = cntl5, cntl6
		r, err := s.tx.Rate()
		if (r == 0) != (err != nil) {
			t.Fatalf("rate %v, error %v", r, err)
		}
		if err != nil {
			wantSentinel(t, err, ErrInvalid, ErrGone)
		} else if in, _ := s.sel.Rate(); r != divide(in, prg>>7&7)/2 {
			t.Fatalf("rate %v from %v with PRG_ETH0 %#x", r, in, prg)
		}
		Describe(s.tx)

		before := [2]uint32{s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0]}
		change, err := SetRate(s.tx, 125*MHz, 0)
		after := [2]uint32{s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0]}
		if err != nil {
			wantSentinel(t, err, ErrNoRate, ErrGone)
			if after != before {
				t.Fatalf("an error left %#x, before %#x", after, before)
			}
			continue
		}
		if r, err := s.tx.Rate(); err != nil || !within(r, 125*MHz, DefaultTolerance) {
			t.Fatalf("set to %v (%v)", r, err)
		}
		const own9, ownPrg = 0x01FFBFFF, 7<<7 | 1<<4
		if after[0]&^own9 != before[0]&^own9 || after[1]&^ownPrg != before[1]&^ownPrg {
			t.Fatalf("bits of others: before %#x, after %#x", before, after)
		}
		if err := change.Restore(); err != nil {
			t.Fatal(err)
		}
		if got := [2]uint32{s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0]}; got != before {
			t.Fatalf("restored to %#x, before %#x", got, before)
		}
	}
}

func wantSentinel(t *testing.T, err error, some ...error) {
	t.Helper()
	for _, e := range some {
		if errors.Is(err, e) {
			return
		}
	}
	t.Fatalf("error is none of %v: %v", some, err)
}
