package board

import "dwnet/clk"

// Block is a range of physical addresses.
type Block struct {
	Name string
	Base uint32
	Size uint32
}

// Bits are adjacent bits of a register at a physical address. With a width of zero there are none.
type Bits struct {
	Name         string // the vendor's name of the register
	Addr         uint32
	Shift, Width uint8
	// MayBeOnes says that the register may read as all ones, as one full of gates may.
	MayBeOnes bool
}

// PinMux is bits of a pin multiplexer to set for Ethernet, and those that would give the same pads to somebody else.
type PinMux struct {
	Name       string
	Addr       uint32
	Set, Clear uint32
}

// Source is a clock that reaches the glue's multiplexer.
type Source uint8

const (
	SourceNone     Source = iota // not connected, or not known
	SourceMPLL2                  // fractional, programmed by this package
	SourceFCLKDiv2               // half the fixed PLL
)

// SoC describes what this package has to know about a system on chip.
type SoC struct {
	Name string
	// Compatible is the device tree's name of its MAC.
	Compatible string
	// Blocks are the registers to be mapped, MAC the MAC's own, which are not.
	Blocks []Block
	MAC    Block

	Layout Layout
	// PRG is the address of PRG_ETH0; PRG_ETH1 follows.
	PRG uint32

	// MemPower must be all zero before the MAC is touched; Gate is the clock of the MAC's registers and buses.
	MemPower, Gate Bits
	// ResetBit of the register at ResetAddr pulses the MAC's reset when a one is written; zeroes do nothing.
	ResetAddr uint32
	ResetBit  uint8

	FixedPLL clk.Hz
	// MPLLPreDiv divides the fixed PLL for the MPLLs by its value plus one.
	MPLLPreDiv Bits
	// MPLL2 and its fields.
	MPLL2SDM, MPLL2SDMEnable, MPLL2N2, MPLL2Gate Bits
	// FCLKDiv2Gate is the gate of FCLK_DIV2, which also drives the retiming.
	FCLKDiv2Gate Bits
	// CLK81Sel, CLK81Div and CLK81Gate make the clock of the MAC's registers, from which MDC is divided. Read only.
	CLK81Sel, CLK81Div, CLK81Gate Bits

	// Inputs of the glue's multiplexer, clkin0 and clkin1.
	Inputs [2]Source

	// RGMII and RMII are the pins. With none the pins are left as they are.
	RGMII, RMII []PinMux

	// RXFIFO and TXFIFO are the depths of the MAC's FIFOs in bytes.
	RXFIFO, TXFIFO int
}

// complete reports whether there is enough to bring the SoC up. Of some only the glue is known, for reading.
func (s SoC) complete() bool { return s.Gate.Width != 0 && s.MemPower.Width != 0 && s.ResetAddr != 0 }

// hhi is the registers of the clock controller that Meson8b and GXBB share, from its base address on. Sources: Linux
// drivers/clk/meson/meson8b.{c,h} and gxbb.{c,h}, drivers/pmdomain/amlogic/meson-ee-pwrc.c.
func hhi(s SoC, base uint32) SoC {
	const (
		memPD0    = 0x100
		gclkMPEG1 = 0x144
		mpegClk   = 0x174
		mpll5     = 0x290
		mpll6     = 0x294
		mpll9     = 0x2a0
	)
	s.MemPower = Bits{"HHI_MEM_PD_REG0", base + memPD0, 2, 2, true}
	s.Gate = Bits{"HHI_GCLK_MPEG1", base + gclkMPEG1, 3, 1, true}
	s.CLK81Div = Bits{"HHI_MPEG_CLK_CNTL", base + mpegClk, 0, 7, false}
	s.CLK81Gate = Bits{"HHI_MPEG_CLK_CNTL", base + mpegClk, 7, 1, false}
	s.CLK81Sel = Bits{"HHI_MPEG_CLK_CNTL", base + mpegClk, 12, 3, false}
	s.MPLLPreDiv = Bits{"HHI_MPLL_CNTL5", base + mpll5, 12, 1, false}
	s.FCLKDiv2Gate = Bits{"HHI_MPLL_CNTL6", base + mpll6, 27, 1, false}
	s.MPLL2SDM = Bits{"HHI_MPLL_CNTL9", base + mpll9, 0, 14, false}
	s.MPLL2Gate = Bits{"HHI_MPLL_CNTL9", base + mpll9, 14, 1, false}
	s.MPLL2SDMEnable = Bits{"HHI_MPLL_CNTL9", base + mpll9, 15, 1, false}
	s.MPLL2N2 = Bits{"HHI_MPLL_CNTL9", base + mpll9, 16, 9, false}
	return s
}

// The reset controller is at the same place on all of them: RESET_ETHERNET is number 43 (Linux
// include/dt-bindings/reset/amlogic,meson8b-reset.h and amlogic,meson-gxbb-reset.h), 32 to a register.
const (
	reset1        = 0xc1104408
	resetEthernet = 43 - 32
)

var (
	macBlock   = Block{"MAC", 0xc9410000, 0x10000}
	resetBlock = Block{"RESET", 0xc1104400, 0x20}
)

// Meson8b is the S805.
func Meson8b() SoC {
	const periphs, mux = 0xc1108000, 0xc11080b0 // PERIPHS_PIN_MUX_0
	s := SoC{
		Name: "Meson8b (S805)", Compatible: "amlogic,meson8b-dwmac",
		Blocks: []Block{{"HHI", 0xc1104000, 0x400}, resetBlock, {"PERIPHS", periphs, 0x200}},
		MAC:    macBlock, Layout: LayoutMeson8b, PRG: periphs + 0x140,
		ResetAddr: reset1, ResetBit: resetEthernet,
		FixedPLL: 2550 * clk.MHz,
		Inputs:   [2]Source{SourceMPLL2, SourceMPLL2},
		// Linux drivers/pinctrl/meson/pinctrl-meson8b.c, eth_* groups. Cleared are the other functions of pads GPIOH_3 to
		// GPIOH_9 (PHY interrupt, PHY reset, TXD, TX_CLK) and, in RGMII, TXD0 and TXD1 on the pads of RXD3 and RXD2.
		RGMII: []PinMux{
			{"PERIPHS_PIN_MUX_1", mux + 4*1, 0, 1 << 23},       // hdmi_cec_0
			{"PERIPHS_PIN_MUX_4", mux + 4*4, 0, 0xe},           // i2c_sda_d1, i2c_sck_d1, clk_24m_out
			{"PERIPHS_PIN_MUX_5", mux + 4*5, 0, 0xf << 24},     // i2c_b1, i2c_c1
			{"PERIPHS_PIN_MUX_9", mux + 4*9, 0, 0xf << 10},     // spi_1
			{"PERIPHS_PIN_MUX_6", mux + 4*6, 0x3f4f, 0x3 << 4}, // rxd1, rxd0, rx_dv, rx_clk, tx_en, ref_clk, mdc, mdio, tx_clk, txd2, txd3
			{"PERIPHS_PIN_MUX_7", mux + 4*7, 0x00f00000, 0},    // txd0, txd1, rxd3, rxd2
		},
		RMII: []PinMux{
			{"PERIPHS_PIN_MUX_1", mux + 4*1, 0, 1 << 23},
			{"PERIPHS_PIN_MUX_5", mux + 4*5, 0, 0xf << 24},
			{"PERIPHS_PIN_MUX_9", mux + 4*9, 0, 0xf << 10},
			{"PERIPHS_PIN_MUX_6", mux + 4*6, 0x064f, 0x3 << 4}, // rxd1, rxd0, rx_dv, rx_clk, tx_en, mdc, mdio
			{"PERIPHS_PIN_MUX_7", mux + 4*7, 0x00300000, 0},    // txd0, txd1
		},
		RXFIFO: 4096, TXFIFO: 2048,
	}
	return hhi(s, 0xc1104000)
}

// Meson8m2 is the S812: the glue and clocks of Meson8b. Its pins differ and are left as they are. Its FIFOs are taken to be
// those of Meson8b, of which the device tree says nothing.
func Meson8m2() SoC {
	s := Meson8b()
	s.Name, s.Compatible = "Meson8m2 (S812)", "amlogic,meson8m2-dwmac"
	s.RGMII, s.RMII = nil, nil
	return s
}

// GXBB is the S905: the transmit clock comes from FCLK_DIV2, 1 GHz.
func GXBB() SoC {
	const periphs, mux = 0xc8834400, 0xc88344b0
	s := SoC{
		Name: "GXBB (S905)", Compatible: "amlogic,meson-gxbb-dwmac",
		Blocks: []Block{{"HHI", 0xc883c000, 0x400}, resetBlock, {"PERIPHS", periphs, 0x200}},
		MAC:    macBlock, Layout: LayoutMeson8b, PRG: periphs + 0x140,
		ResetAddr: reset1, ResetBit: resetEthernet,
		FixedPLL: 2000 * clk.MHz,
		Inputs:   [2]Source{SourceFCLKDiv2, SourceMPLL2},
		// Linux drivers/pinctrl/meson/pinctrl-meson-gxbb.c, eth_* groups.
		RGMII:  []PinMux{{"PERIPHS_PIN_MUX_6", mux + 4*6, 0x3fff, 0}},
		RMII:   []PinMux{{"PERIPHS_PIN_MUX_6", mux + 4*6, 0x3c73, 0}},
		RXFIFO: 4096, TXFIFO: 2048,
	}
	return hhi(s, 0xc883c000)
}

// AXG is the A113D. Only its glue is described: it can be read and encoded, and not be brought up.
func AXG() SoC {
	return SoC{
		Name: "AXG (A113D)", Compatible: "amlogic,meson-axg-dwmac",
		Blocks: []Block{{"PRG_ETH", 0xff634540, 8}},
		MAC:    Block{"MAC", 0xff3f0000, 0x10000}, Layout: LayoutAXG, PRG: 0xff634540,
		FixedPLL: 2000 * clk.MHz, Inputs: [2]Source{SourceFCLKDiv2, SourceMPLL2},
		RXFIFO: 4096, TXFIFO: 2048,
	}
}

// G12A is the S905X2 and its relatives, as AXG.
func G12A() SoC {
	s := AXG()
	s.Name, s.Compatible, s.Layout = "G12A (S905X2)", "amlogic,meson-g12a-dwmac", LayoutG12A
	return s
}

// SoCs is all that are known.
func SoCs() []SoC { return []SoC{Meson8b(), Meson8m2(), GXBB(), AXG(), G12A()} }
