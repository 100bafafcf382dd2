package clk_test

import (
	"errors"
	"fmt"

	"dwnet/clk"
)

// window is where the registers are; on a board, mapped memory.
type window map[uint32]uint32

func (w window) Load32(off uint32) uint32     { return w[off] }
func (w window) Store32(off uint32, v uint32) { w[off] = v }

// The RGMII transmit clock of an Odroid-C1 (Amlogic S805, Meson8b), as in Linux, drivers/clk/meson/meson8b.c and
// drivers/net/ethernet/stmicro/stmmac/dwmac-meson8b.c.
func Example() {
	const hhiMPLLCntl9 = 0x2A0
	hhi := window{hhiMPLLCntl9: 0x000ACCCD} // the boot loader's 250 MHz
	prg := window{0: 0x00001001}            // RGMII mode, reference clocks on
	mpllCntl9 := clk.Reg{Bank: clk.NewBank(hhi), Name: "HHI_MPLL_CNTL9", Off: hhiMPLLCntl9}
	prgEth0 := clk.Reg{Bank: clk.NewBank(prg), Name: "PRG_ETH0"}
	bit := func(r clk.Reg, n uint8) clk.Field { return clk.Field{Reg: r, Shift: n, Width: 1} }

	pll := must(clk.NewFixed("fixed_pll", 2550*clk.MHz))
	mpll := must(clk.NewMPLL(clk.MPLLConfig{Name: "mpll2_div", Parent: pll,
		N2:        clk.Field{Reg: mpllCntl9, Shift: 16, Width: 9},
		SDM:       clk.Field{Reg: mpllCntl9, Shift: 0, Width: 14},
		SDMEnable: bit(mpllCntl9, 15)}))
	mpll2 := must(clk.NewGate(clk.GateConfig{Name: "mpll2", Parent: mpll, Field: bit(mpllCntl9, 14)}))
	sel := must(clk.NewMux(clk.MuxConfig{Name: "m250_sel", Inputs: []clk.Clock{mpll2, mpll2}, Field: bit(prgEth0, 4)}))
	div := must(clk.NewDivider(clk.DividerConfig{Name: "m250_div", Parent: sel,
		Field: clk.Field{Reg: prgEth0, Shift: 7, Width: 3},
		Table: clk.TableRange(2, 7), MinInput: 4 * 125 * clk.MHz})) // with less, the clock is not formed rightly
	half := must(clk.NewFactor(clk.FactorConfig{Name: "fixed_div2", Parent: div, Mult: 1, Div: 2}))
	tx := must(clk.NewGate(clk.GateConfig{Name: "rgmii_tx_en", Parent: half, Field: bit(prgEth0, 10)}))

	change := must(clk.SetRate(tx, 125*clk.MHz, 0))
	must(clk.Enable(tx))
	fmt.Println(change.Plan)
	fmt.Printf("HHI_MPLL_CNTL9 %#08x, PRG_ETH0 %#08x\n", hhi[hhiMPLLCntl9], prg[0])
	fmt.Print(clk.Describe(tx))

	// With an input of at least 500 MHz, which MPLL2 can hardly exceed, there is no faster clock.
	_, err := clk.Solve(tx, 200*clk.MHz, 0)
	var no *clk.RateError
	if errors.As(err, &no) {
		fmt.Printf("%v: best is %v\n", no.Want, no.Best)
		for _, a := range no.Tried[:2] {
			fmt.Println(" ", a)
		}
	}
	// Output:
	// rgmii_tx_en: mpll2_div at 500000000 Hz, m250_sel input 0, m250_div /2: 124999102 Hz (-7.2 ppm off)
	// HHI_MPLL_CNTL9 0x0005c667, PRG_ETH0 0x00001501
	// rgmii_tx_en       124999102 Hz  on             PRG_ETH0[10]
	//  fixed_div2       124999102 Hz  *1/2
	//   m250_div        249998205 Hz  /2             PRG_ETH0[9:7]
	//    m250_sel       499996410 Hz  input 0 of 2   PRG_ETH0[4]
	//     mpll2         499996410 Hz  on             HHI_MPLL_CNTL9[14]
	//      mpll2_div    499996410 Hz  N2 5 SDM 1639  HHI_MPLL_CNTL9
	//       fixed_pll  2550000000 Hz
	// 200000000 Hz: best is 159372568 Hz
	//   mpll2_div at 800000000 Hz, m250_sel input 0, m250_div /2 from 637490273 Hz gives 318745137 Hz instead of 400000000 Hz: -20.31 % off
	//   mpll2_div at 1200000000 Hz, m250_sel input 0, m250_div /3 from 637490273 Hz gives 212496758 Hz instead of 400000000 Hz: -46.88 % off
}

// must is for an example; a program would return the error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
