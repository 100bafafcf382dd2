package board

import (
	"fmt"
	"strings"

	"dwnet/hw"
)

// PRG is the glue register PRG_ETH0 (vendor: PREG_ETH_REG0). Source: Linux dwmac-meson8b.c; Hardkernel's U-Boot,
// arch-m8b/aml_eth_reg.h, for the bits that Linux does not name.
type PRG uint32

const (
	PRGInterfaceRGMII PRG = 1 << 0 // on AXG and later a value of the field 2:0
	PRGInterfaceRMII  PRG = 4 << 0 // AXG and later
	PRGDataBigEndian  PRG = 1 << 1 // before AXG
	PRGDescBigEndian  PRG = 1 << 2 // before AXG
	PRGRMIIRXInvert   PRG = 1 << 3
	PRGM250Sel        PRG = 1 << 4  // clkin1 instead of clkin0
	PRGTXClockEnable  PRG = 1 << 10 // gate of the RGMII transmit clock
	PRGRMIIInvert     PRG = 1 << 11 // invert the RMII clock, from which 25 and 2.5 MHz are made
	PRGClockEnable    PRG = 1 << 12 // generate the transmit clock and the PHY's reference clock
	PRGAdjEnable      PRG = 1 << 13 // retiming of the received signals
	PRGAdjSetup       PRG = 1 << 14 // with delay and skew chosen by itself, which counts as 2 ns
	PRGCaliStart      PRG = 1 << 25
	PRGCaliRise       PRG = 1 << 26
	PRGRXReuse        PRG = 1 << 30
	PRGUrgent         PRG = 1 << 31

	prgInterfaceBit  = PRGInterfaceRGMII
	prgInterfaceMask = PRG(7)
	prgTXDelayShift  = 5
	prgTXDelayMask   = PRG(3) << prgTXDelayShift
	prgDividerShift  = 7
	prgDividerMask   = PRG(7) << prgDividerShift
	prgAdjDelayShift = 15
	prgAdjDelayMask  = PRG(0x1f) << prgAdjDelayShift
	prgAdjSkewShift  = 20
	prgAdjSkewMask   = PRG(0x1f) << prgAdjSkewShift
	prgCaliSelShift  = 27
	prgCaliSelMask   = PRG(7) << prgCaliSelShift

	prgAdjMask   = PRGAdjEnable | PRGAdjSetup | prgAdjDelayMask | prgAdjSkewMask
	prgDelayMask = prgTXDelayMask | prgAdjMask

	// txDelayUnit is a quarter of the transmit clock's 8 ns, retiming what ADJ_SETUP makes, both in picoseconds.
	txDelayUnit = 2000
	retiming    = 2000
)

// Layout is how PRG_ETH0 and its neighbour are laid out.
type Layout uint8

const (
	// LayoutMeson8b: bit 0 is the interface. Meson8b, Meson8m2, GXBB, GXL, GXM.
	LayoutMeson8b Layout = iota
	// LayoutAXG: bits 2:0 are the interface.
	LayoutAXG
	// LayoutG12A: as AXG, and PRG_ETH1 delays the receive clock in steps of 200 ps.
	LayoutG12A
)

func (l Layout) String() string {
	switch l {
	case LayoutMeson8b:
		return "Meson8b"
	case LayoutAXG:
		return "AXG"
	case LayoutG12A:
		return "G12A"
	}
	return fmt.Sprintf("Layout(%d)", uint8(l))
}

// interfaceMask is the bits that choose the interface, interfaceBits their value for a mode.
func (l Layout) interfaceMask() PRG {
	if l == LayoutMeson8b {
		return prgInterfaceBit
	}
	return prgInterfaceMask
}

func (l Layout) interfaceBits(m hw.InterfaceMode) PRG {
	switch {
	case rgmii(m):
		return PRGInterfaceRGMII
	case l == LayoutMeson8b:
		return 0
	}
	return PRGInterfaceRMII
}

// PRG_ETH1 of G12A and later: bits 19:16 delay RX_CLK, 0 to 3000 ps.
const (
	prg1RXDelayShift = 16
	prg1RXDelayMask  = 0xf << prg1RXDelayShift
	prg1RXDelayUnit  = 200
	prg1RXDelayMax   = 3000
)

// Divider is m250_div, by which the selected clock is divided; the fixed divider by two behind it makes the transmit clock. 0 is
// no clock, and 1 one that TX cannot be delayed against.
func (v PRG) Divider() int { return int(v & prgDividerMask >> prgDividerShift) }

// Input is the mux input that is selected, 0 for clkin0 and 1 for clkin1.
func (v PRG) Input() int { return int(v & PRGM250Sel >> 4) }

// TXDelay is the delay of the transmit clock in picoseconds.
func (v PRG) TXDelay() int { return int(v&prgTXDelayMask>>prgTXDelayShift) * txDelayUnit }

// RXDelay is what the retiming of the received signals amounts to in picoseconds; known is false in manual mode, where
// ADJ_DELAY and ADJ_SKEW say it in clocks of another domain.
func (v PRG) RXDelay() (ps int, known bool) {
	switch {
	case v&PRGAdjEnable == 0:
		return 0, true
	case v&PRGAdjSetup != 0 && v&(prgAdjDelayMask|prgAdjSkewMask) == 0:
		return retiming, true
	}
	return 0, false
}

// AdjDelay and AdjSkew are the fields of manual retiming.
func (v PRG) AdjDelay() int { return int(v & prgAdjDelayMask >> prgAdjDelayShift) }
func (v PRG) AdjSkew() int  { return int(v & prgAdjSkewMask >> prgAdjSkewShift) }

// RGMII reports whether the interface is RGMII rather than RMII.
func (v PRG) RGMII(l Layout) bool { return v&l.interfaceMask() == PRGInterfaceRGMII }

// String decodes the register as LayoutMeson8b; see Decode.
func (v PRG) String() string { return v.Decode(LayoutMeson8b) }

// Decode prints each bit that says something, in words.
func (v PRG) Decode(l Layout) string {
	var s []string
	add := func(format string, args ...any) { s = append(s, fmt.Sprintf(format, args...)) }
	on := func(bit PRG, set, clear string) {
		if text := map[bool]string{true: set, false: clear}[v&bit != 0]; text != "" {
			s = append(s, text)
		}
	}
	switch i := v & l.interfaceMask(); {
	case i == PRGInterfaceRGMII:
		add("RGMII")
	case i == l.interfaceBits(hw.ModeRMII):
		add("RMII")
	default:
		add("interface %d", uint32(i))
	}
	if l == LayoutMeson8b {
		on(PRGDataBigEndian, "big endian data", "")
		on(PRGDescBigEndian, "big endian descriptors", "")
	}
	on(PRGRMIIRXInvert, "RMII RX clock inverted", "")
	add("m250 from clkin%d / %d", v.Input(), v.Divider())
	add("TX delay %s", nanoseconds(v.TXDelay()))
	on(PRGTXClockEnable, "TX clock on", "TX clock off")
	on(PRGRMIIInvert, "RMII clock inverted", "")
	on(PRGClockEnable, "clocks on", "clocks off")
	switch {
	case v&PRGAdjEnable == 0:
		add("RX retiming off")
	case v&PRGAdjSetup != 0:
		add("RX retiming automatic")
	default:
		add("RX retiming manual")
	}
	if v&PRGAdjEnable == 0 && v&PRGAdjSetup != 0 {
		add("ADJ_SETUP")
	}
	if n := v.AdjDelay(); n != 0 {
		add("ADJ_DELAY %d", n)
	}
	if n := v.AdjSkew(); n != 0 {
		add("ADJ_SKEW 0x%x", n)
	}
	on(PRGCaliStart, "calibration", "")
	on(PRGCaliRise, "calibrate rising edge", "")
	if n := v & prgCaliSelMask >> prgCaliSelShift; n != 0 {
		add("CALI_SEL %d", uint32(n))
	}
	on(PRGRXReuse, "RX reuse", "")
	on(PRGUrgent, "urgent", "")
	return strings.Join(s, ", ")
}

func nanoseconds(ps int) string {
	if ps%1000 == 0 {
		return fmt.Sprintf("%d ns", ps/1000)
	}
	return fmt.Sprintf("%d.%d ns", ps/1000, ps%1000/100)
}

// PRGConfig is what PRG_ETH0 is to do.
type PRGConfig struct {
	Layout Layout
	Mode   hw.InterfaceMode
	// TXDelay and RXDelay are made by the MAC, in picoseconds. TXDelay is 0, 2000, 4000 or 6000; RXDelay is 0 or 2000, by
	// retiming, and on G12A also what PRG_ETH1 does. RMII has none.
	TXDelay, RXDelay int
	// Input and Divider make the transmit clock of RGMII: clkin0 or clkin1, divided by 2 to 7.
	Input, Divider int
}

// Dividers that keep the transmit clock's quarter periods apart. With 0 there is no clock, with 1 the delay is not formed: TX
// lost four fifths of its rate on an Odroid-C1 (Linux bd6f48546b9c).
const (
	minDivider = 2
	maxDivider = 7
)

// Encode is the register for c and the bits of it that c has a say in; all others must stay as they are. In RMII these are the
// interface, the inversion, the clocks and the retiming: divider, mux and TX delay mean nothing then and are left alone. The
// error matches [hw.ErrConfig].
func (c PRGConfig) Encode() (value, mask PRG, err error) {
	if err := checkMode(c.Mode); err != nil {
		return 0, 0, err
	}
	mask = c.Layout.interfaceMask() | prgAdjMask | PRGRMIIInvert | PRGClockEnable
	value = c.Layout.interfaceBits(c.Mode) | PRGClockEnable
	if !rgmii(c.Mode) {
		if c.TXDelay != 0 || c.RXDelay != 0 {
			return 0, 0, configError("delay", "%v has none", c.Mode)
		}
		return value | PRGRMIIInvert, mask, nil
	}
	if c.TXDelay < 0 || c.TXDelay > 3*txDelayUnit || c.TXDelay%txDelayUnit != 0 {
		return 0, 0, configError("TXDelay", "%d ps is not 0, 2000, 4000 or 6000", c.TXDelay)
	}
	if err := c.Layout.checkRXDelay(c.RXDelay); err != nil {
		return 0, 0, err
	}
	if c.Input < 0 || c.Input > 1 {
		return 0, 0, configError("Input", "%d is not 0 (clkin0) or 1 (clkin1)", c.Input)
	}
	if c.Divider < minDivider || c.Divider > maxDivider {
		return 0, 0, configError("Divider", "%d is not from %d to %d", c.Divider, minDivider, maxDivider)
	}
	mask |= prgTXDelayMask | prgDividerMask | PRGM250Sel | PRGTXClockEnable
	value |= PRG(c.TXDelay/txDelayUnit)<<prgTXDelayShift | PRG(c.Divider)<<prgDividerShift | PRGTXClockEnable
	if c.Input == 1 {
		value |= PRGM250Sel
	}
	if c.retimes() {
		value |= PRGAdjEnable | PRGAdjSetup
	}
	return value, mask, nil
}

// EncodePRG1 is PRG_ETH1 for c and the bits that c has a say in: none before G12A.
func (c PRGConfig) EncodePRG1() (value, mask uint32) {
	if c.Layout != LayoutG12A || !rgmii(c.Mode) {
		return 0, 0
	}
	return uint32(c.RXDelay/prg1RXDelayUnit) << prg1RXDelayShift, prg1RXDelayMask
}

// retimes reports whether the receive delay is made by retiming.
func (c PRGConfig) retimes() bool { return c.Layout != LayoutG12A && c.RXDelay != 0 }

func (l Layout) checkRXDelay(ps int) error {
	if l == LayoutG12A {
		if ps < 0 || ps > prg1RXDelayMax || ps%prg1RXDelayUnit != 0 {
			return configError("RXDelay", "%d ps is not from 0 to 3000 in steps of 200", ps)
		}
		return nil
	}
	if ps != 0 && ps != retiming {
		return configError("RXDelay", "%d ps is not 0 or 2000", ps)
	}
	return nil
}

func rgmii(m hw.InterfaceMode) bool {
	switch m {
	case hw.ModeRGMII, hw.ModeRGMIIID, hw.ModeRGMIIRXID, hw.ModeRGMIITXID:
		return true
	}
	return false
}

func checkMode(m hw.InterfaceMode) error {
	if rgmii(m) || m == hw.ModeRMII {
		return nil
	}
	return configError("Mode", "%v is not rgmii, rgmii-id, rgmii-rxid, rgmii-txid or rmii", m)
}

func configError(name, format string, args ...any) error {
	return &hw.Error{Op: "configure board", Err: hw.ErrConfig, Hint: name + ": " + fmt.Sprintf(format, args...)}
}
