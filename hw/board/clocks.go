package board

import (
	"errors"

	"dwnet/clk"
)

// Clock rates of RGMII.
const (
	txClock = 125 * clk.MHz
	// phases is how many times faster the divider's input must be at least: TX_CLK is delayed by quarters of its period.
	phases = 4
	// MinInput is the slowest input of the divider.
	MinInput = phases * txClock
	// tolerance of the transmit clock. 100 ppm are allowed to the wire, and what an MPLL can do is within 10.
	tolerance clk.PPM = 100
)

// clocks is the part of a SoC's clock tree that ends at the MAC. Parts that the SoC does not have are nil.
type clocks struct {
	mpll2Div *clk.MPLL
	mpll2    *clk.Gate
	fclkDiv2 *clk.Gate
	sel      *clk.Mux
	div      *clk.Divider
	tx       *clk.Gate // rgmii_tx_en
	clk81    *clk.Gate
}

// newClocks builds the tree, after Linux drivers/clk/meson/meson8b.c and dwmac-meson8b.c. Nothing is read.
func newClocks(s SoC, r *registers) (c clocks, err error) {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	pll, err := clk.NewFixed("fixed_pll", s.FixedPLL)
	note(err)

	inputs := make([]clk.Clock, len(s.Inputs))
	if s.MPLL2N2.Width != 0 {
		pre, err := clk.NewDivider(clk.DividerConfig{Name: "mpll_prediv", Parent: pll, Field: r.field(s.MPLLPreDiv), KeepParent: true})
		note(err)
		c.mpll2Div, err = clk.NewMPLL(clk.MPLLConfig{Name: "mpll2_div", Parent: pre,
			N2: r.field(s.MPLL2N2), SDM: r.field(s.MPLL2SDM), SDMEnable: r.field(s.MPLL2SDMEnable)})
		note(err)
		c.mpll2, err = clk.NewGate(clk.GateConfig{Name: "mpll2", Parent: c.mpll2Div, Field: r.field(s.MPLL2Gate)})
		note(err)
	}
	if s.FCLKDiv2Gate.Width != 0 {
		half, err := clk.NewFactor(clk.FactorConfig{Name: "fclk_div2_div", Parent: pll, Mult: 1, Div: 2, KeepParent: true})
		note(err)
		c.fclkDiv2, err = clk.NewGate(clk.GateConfig{Name: "fclk_div2", Parent: half, Field: r.field(s.FCLKDiv2Gate)})
		note(err)
	}
	for i, in := range s.Inputs {
		switch {
		case in == SourceMPLL2 && c.mpll2 != nil:
			inputs[i] = c.mpll2
		case in == SourceFCLKDiv2 && c.fclkDiv2 != nil:
			inputs[i] = c.fclkDiv2
		}
	}

	prg := r.reg("PRG_ETH0", s.PRG, false)
	if inputs[0] != nil || inputs[1] != nil {
		c.sel, err = clk.NewMux(clk.MuxConfig{Name: "m250_sel", Inputs: inputs, Field: clk.Field{Reg: prg, Shift: 4, Width: 1}})
		note(err)
		c.div, err = clk.NewDivider(clk.DividerConfig{Name: "m250_div", Parent: c.sel, MinInput: MinInput,
			Field: clk.Field{Reg: prg, Shift: prgDividerShift, Width: 3}, Table: clk.TableRange(minDivider, maxDivider)})
		note(err)
		half, err := clk.NewFactor(clk.FactorConfig{Name: "fixed_div2", Parent: c.div, Mult: 1, Div: 2})
		note(err)
		c.tx, err = clk.NewGate(clk.GateConfig{Name: "rgmii_tx_en", Parent: half, Field: clk.Field{Reg: prg, Shift: 10, Width: 1}})
		note(err)
	}
	if s.CLK81Sel.Width != 0 {
		var fclk []clk.Clock
		for _, d := range []struct {
			name string
			div  uint32
		}{{"fclk_div4", 4}, {"fclk_div3", 3}, {"fclk_div5", 5}} {
			f, err := clk.NewFactor(clk.FactorConfig{Name: d.name, Parent: pll, Mult: 1, Div: d.div})
			note(err)
			fclk = append(fclk, f)
		}
		sel, err := clk.NewMux(clk.MuxConfig{Name: "mpeg_clk_sel", Inputs: fclk, Values: []uint32{5, 6, 7}, Field: r.field(s.CLK81Sel)})
		note(err)
		div, err := clk.NewDivider(clk.DividerConfig{Name: "mpeg_clk_div", Parent: sel, Field: r.field(s.CLK81Div)})
		note(err)
		c.clk81, err = clk.NewGate(clk.GateConfig{Name: "clk81", Parent: div, Field: r.field(s.CLK81Gate)})
		note(err)
	}
	return c, errors.Join(errs...)
}

// source is the clock behind a mux input, nil if it is not known.
func (c clocks) source(s Source) *clk.Gate {
	switch s {
	case SourceMPLL2:
		return c.mpll2
	case SourceFCLKDiv2:
		return c.fclkDiv2
	}
	return nil
}
