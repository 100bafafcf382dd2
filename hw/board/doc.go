// Package board brings up what lies around the MAC on Amlogic SoCs: pins, memory power, clock gates, the clock of the RGMII
// transmitter, resets, the glue register PRG_ETH0, and the reset line of the PHY. It also reads all that back from a board as
// a boot loader or a kernel has left it, and says in words what is wrong with it.
//
// A [Board] is a description, such as [OdroidC1]; change its fields for another wiring. [Open] programs it, [Read] and
// [State.Diagnose] only look:
//
//	b := board.OdroidC1()
//	g, err := board.Open(ctx, b, mapper, clock, board.Options{}) // clocks, pins, PHY reset
//	m, err := hw.Open(port, hw.Config{})                         // the MAC, which needs them
//	p, err := phy.Open(m, clock, b.PHYOptions(phy.Settings{}))   // delays, advertisement
//
// and closes them in the opposite order. Physical addresses become registers by a [Mapper], so that the package needs no
// particular operating system.
//
// # Delays
//
// RGMII wants the clock about 2 ns after the data at the receiving end, in each direction, once: from the MAC, from the PHY or
// from the traces. The interface mode says which side makes it, as in a device tree: with rgmii-id the PHY makes both, with
// rgmii none. A [Delay] of zero value is what the mode and the board's traces leave for the MAC. Delays made twice are refused.
//
// Sources: Linux drivers/net/ethernet/stmicro/stmmac/dwmac-meson8b.c, drivers/clk/meson/{meson8b.c,gxbb.c,clk-mpll.c},
// drivers/pinctrl/meson/pinctrl-{meson8b,meson-gxbb}.c, drivers/pmdomain/amlogic/meson-ee-pwrc.c,
// include/dt-bindings/reset/amlogic,meson8b-reset.h, Documentation/devicetree/bindings/net/amlogic,meson-dwmac.yaml and the
// boards' .dts files; Hardkernel's U-Boot for the Odroid-C1, board/hardkernel/odroidc/odroidc-eth.c.
package board
