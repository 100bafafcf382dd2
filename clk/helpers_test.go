package clk

import (
	"errors"
	"fmt"
	"testing"
)

// regs is a register window of ordinary memory that remembers its writes.
type regs struct {
	words  map[uint32]uint32
	writes []regWrite
	gone   bool              // everything reads as all ones
	stuck  map[uint32]uint32 // bits that do not take a write
	dies   int               // gone after this many writes; zero: never
}

type regWrite struct{ Off, Value uint32 }

func newRegs() *regs { return &regs{words: map[uint32]uint32{}, stuck: map[uint32]uint32{}} }

func (r *regs) Load32(off uint32) uint32 {
	if r.gone {
		return allOnes
	}
	return r.words[off]
}

func (r *regs) Store32(off uint32, v uint32) {
	r.writes = append(r.writes, regWrite{off, v})
	if r.gone {
		return
	}
	s := r.stuck[off]
	r.words[off] = r.words[off]&s | v&^s
	if r.dies != 0 && len(r.writes) >= r.dies {
		r.gone = true
	}
}

// Registers of Amlogic's Meson8b and GXBB: Linux, drivers/clk/meson/meson8b.c and gxbb.c,
// drivers/net/ethernet/stmicro/stmmac/dwmac-meson8b.c.
const (
	offMPLLCntl5 = 0x290
	offMPLLCntl6 = 0x294
	offMPLLCntl9 = 0x2A0
	offPrgEth0   = 0 // in a window of its own

	mpll2Enable = 1 << 14
)

// soc is the clock tree of one chip's RGMII transmit clock.
type soc struct {
	hhi, prg           *regs
	fixed              *Fixed
	mpll               *MPLL
	mpllGate, fclk     *Gate
	sel                *Mux
	div                *Divider
	tx                 *Gate
	prgEth0, mpllCntl9 Reg
}

// must is for constructors with good arguments.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

type socOptions struct {
	fixed     Hz
	fclkInput bool // input 0 of the mux is FCLK_DIV2 (GXBB), else MPLL2 (Meson8b)
	div       func(*DividerConfig)
	sel       func(*MuxConfig)
	mpll      Clock // instead of MPLL2 with its gate
}

func newSoC(t testing.TB, o socOptions) *soc {
	t.Helper()
	s := &soc{hhi: newRegs(), prg: newRegs()}
	hhi, prg := NewBank(s.hhi), NewBank(s.prg)
	s.mpllCntl9 = Reg{Bank: hhi, Name: "HHI_MPLL_CNTL9", Off: offMPLLCntl9}
	s.prgEth0 = Reg{Bank: prg, Name: "PRG_ETH0", Off: offPrgEth0}
	cntl5 := Reg{Bank: hhi, Name: "HHI_MPLL_CNTL5", Off: offMPLLCntl5}
	cntl6 := Reg{Bank: hhi, Name: "HHI_MPLL_CNTL6", Off: offMPLLCntl6}

	s.fixed = must[*Fixed](t)(NewFixed("fixed_pll", o.fixed))
	prediv := must[*Divider](t)(NewDivider(DividerConfig{Name: "mpll_prediv", Parent: s.fixed,
		Field: Field{cntl5, 12, 1}, KeepParent: true}))
	s.mpll = must[*MPLL](t)(NewMPLL(MPLLConfig{Name: "mpll2_div", Parent: prediv,
		N2: Field{s.mpllCntl9, 16, 9}, SDM: Field{s.mpllCntl9, 0, 14}, SDMEnable: Field{s.mpllCntl9, 15, 1}}))
	s.mpllGate = must[*Gate](t)(NewGate(GateConfig{Name: "mpll2", Parent: s.mpll, Field: Field{s.mpllCntl9, 14, 1}}))
	fclkDiv := must[*Factor](t)(NewFactor(FactorConfig{Name: "fclk_div2_div", Parent: s.fixed, Mult: 1, Div: 2}))
	s.fclk = must[*Gate](t)(NewGate(GateConfig{Name: "fclk_div2", Parent: fclkDiv, Field: Field{cntl6, 27, 1}}))

	var source Clock = s.mpllGate
	if o.mpll != nil {
		source = o.mpll
	}
	mux := MuxConfig{Name: "m250_sel", Inputs: []Clock{source, source}, Field: Field{s.prgEth0, 4, 1}}
	if o.fclkInput {
		mux.Inputs[0] = s.fclk
	}
	if o.sel != nil {
		o.sel(&mux)
	}
	s.sel = must[*Mux](t)(NewMux(mux))
	div := DividerConfig{Name: "m250_div", Parent: s.sel, Field: Field{s.prgEth0, 7, 3},
		Table: TableRange(2, 7), MinInput: 4 * 125 * MHz}
	if o.div != nil {
		o.div(&div)
	}
	s.div = must[*Divider](t)(NewDivider(div))
	half := must[*Factor](t)(NewFactor(FactorConfig{Name: "fixed_div2", Parent: s.div, Mult: 1, Div: 2}))
	s.tx = must[*Gate](t)(NewGate(GateConfig{Name: "rgmii_tx_en", Parent: half, Field: Field{s.prgEth0, 10, 1}}))
	return s
}

func meson8b(t testing.TB) *soc { return newSoC(t, socOptions{fixed: 2550 * MHz}) }
func gxbb(t testing.TB) *soc    { return newSoC(t, socOptions{fixed: 2000 * MHz, fclkInput: true}) }

// written is how often anything was written.
func (s *soc) written() int { return len(s.hhi.writes) + len(s.prg.writes) }

// testField returns a field of a window of its own, holding v.
func testField(shift, width uint8, word uint32) (Field, *regs) {
	r := newRegs()
	r.words[0] = word
	return Field{Reg{Bank: NewBank(r), Name: "REG"}, shift, width}, r
}

// other is a clock of somebody else.
type other struct {
	name string
	rate Hz
	err  error
	set  func(o *other, want Hz) error // nil: becomes what was asked
	log  *[]string
	can  func(want Hz) (Hz, error) // nil: anything
}

func (o *other) Name() string      { return o.name }
func (o *other) Rate() (Hz, error) { return o.rate, o.err }
func (o *other) Round(want Hz) (Hz, error) {
	if o.can != nil {
		return o.can(want)
	}
	return want, nil
}
func (o *other) SetRate(want Hz) error {
	if o.log != nil {
		*o.log = append(*o.log, fmt.Sprintf("%s at %d", o.name, want))
	}
	if o.set != nil {
		return o.set(o, want)
	}
	o.rate = want
	return nil
}

// source hides SetRate and Round: a clock that can only be read.
type source struct{ o *other }

func (s source) Name() string      { return s.o.name }
func (s source) Rate() (Hz, error) { return s.o.rate, s.o.err }

func wantError(t testing.TB, what string, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("%s: error is %v, want %v", what, err, w)
		}
	}
}
