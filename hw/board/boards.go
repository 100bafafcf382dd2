package board

import (
	"errors"
	"fmt"

	"dwnet/hw"
	"dwnet/hw/phy"
)

// Board describes the wiring of one board.
type Board struct {
	Name       string
	Compatible string // in the device tree
	SoC        SoC

	// Mode is the wiring to the PHY and who makes its delays.
	Mode hw.InterfaceMode
	// TXDelay and RXDelay are made by the MAC.
	TXDelay, RXDelay Delay
	// TraceTX and TraceRX are made by the traces, in picoseconds.
	TraceTX, TraceRX int

	// PHYAddr is the PHY's address, PHYID its identifier; zero values take any.
	PHYAddr hw.PHYAddr
	PHYID   phy.ID
	// PHYReset and PHYInterrupt are wired to the PHY. Without a reset line the PHY is not reset.
	PHYReset     GPIO
	PHYInterrupt GPIO
	ResetTiming  phy.ResetTiming
	// EEEBroken are modes in which the board loses packets with Energy-Efficient Ethernet.
	EEEBroken phy.EEEModes

	// Address is the station address, zero if the description does not know it.
	Address [6]byte
}

// GPIO is a pin of the SoC's, by its registers. The zero value is none.
type GPIO struct {
	Name         string
	Dir, Out, In Bits // Dir: 1 is input
	ActiveLow    bool
	Interrupt    int // input of the GPIO interrupt controller, 0 if not wired to it
}

func (g GPIO) exists() bool { return g.Out.Width != 0 }

// gpio is a pin of a bank whose direction, output and input registers follow each other.
func gpio(name, reg string, dir uint32, bit uint8, activeLow bool, irq int) GPIO {
	at := func(i uint32, suffix string) Bits { return Bits{reg + suffix, dir + 4*i, bit, 1, true} }
	return GPIO{name, at(0, "_EN_N"), at(1, "_O"), at(2, "_I"), activeLow, irq}
}

// OdroidC1 is the Hardkernel Odroid-C1 and C1+. Sources: Linux meson8b-odroidc1.dts; Hardkernel's U-Boot for the pins.
//
// The board needs a delay in both directions, and the PHY makes them (rgmii-id). Its first device trees marked EEE at 1000
// Mbit/s as broken because of packet loss, and this description does so still.
func OdroidC1() Board {
	const gpio3 = 0xc1108054 // bank H: pin n is bit 19+n
	return Board{
		Name: "Hardkernel Odroid-C1", Compatible: "hardkernel,odroid-c1", SoC: Meson8b(),
		Mode:         hw.ModeRGMIIID,
		PHYAddr:      hw.PHYAt(0),
		PHYID:        phy.RTL8211F,
		PHYReset:     gpio("GPIOH_4", "PREG_PAD_GPIO3", gpio3, 23, true, 18),
		PHYInterrupt: gpio("GPIOH_3", "PREG_PAD_GPIO3", gpio3, 22, true, 17),
		ResetTiming:  phy.ResetTiming{Assert: phy.DefaultAssert, Settle: phy.DefaultSettle},
		EEEBroken:    phy.EEE1000T,
	}
}

// OdroidC2 is the Hardkernel Odroid-C2. Source: Linux meson-gxbb-odroidc2.dts.
//
// Its device tree has the MAC delay the transmit clock and nobody the receive clock, so that is taken to be in the traces.
func OdroidC2() Board {
	const gpioZ = 0xc8834454
	return Board{
		Name: "Hardkernel Odroid-C2", Compatible: "hardkernel,odroid-c2", SoC: GXBB(),
		Mode:         hw.ModeRGMII,
		TXDelay:      Delay2ns,
		TraceRX:      wantDelay,
		PHYAddr:      hw.PHYAt(0),
		PHYID:        phy.RTL8211F,
		PHYReset:     gpio("GPIOZ_14", "PREG_PAD_GPIO3", gpioZ, 14, true, 28),
		PHYInterrupt: gpio("GPIOZ_15", "PREG_PAD_GPIO3", gpioZ, 15, true, 29),
		ResetTiming:  phy.ResetTiming{Assert: phy.DefaultAssert, Settle: phy.DefaultSettle},
	}
}

// Boards is all that are known.
func Boards() []Board { return []Board{OdroidC1(), OdroidC2()} }

// Validate checks the description without the hardware. The error matches [hw.ErrConfig], or [hw.ErrUnsupported] for a SoC that
// can only be read, and names the field and what it may be.
func (b Board) Validate() error {
	if !b.SoC.complete() {
		return &hw.Error{Op: "configure board", Err: hw.ErrUnsupported,
			Hint: fmt.Sprintf("SoC %q: clocks and resets are not known, it can only be read", b.SoC.Name)}
	}
	c, err := b.glue()
	if err == nil {
		// Input and divider are found later; any valid pair will do for the check.
		c.Divider = minDivider
		_, _, err = c.Encode()
	}
	return errors.Join(err, b.ResetTiming.Validate())
}

// glue is what PRG_ETH0 is to do, as far as the description says it: without input and divider.
func (b Board) glue() (c PRGConfig, err error) {
	c = PRGConfig{Layout: b.SoC.Layout, Mode: b.Mode}
	if err := checkMode(b.Mode); err != nil {
		return c, err
	}
	if !rgmii(b.Mode) {
		for _, d := range []struct {
			name  string
			delay Delay
		}{{"TXDelay", b.TXDelay}, {"RXDelay", b.RXDelay}} {
			if ps, _ := d.delay.Picoseconds(); ps != 0 {
				return c, configError(d.name, "%v: %v has no delays, it is 0 or auto", d.delay, b.Mode)
			}
		}
		return c, nil
	}
	for _, t := range []struct {
		name string
		ps   int
	}{{"TraceTX", b.TraceTX}, {"TraceRX", b.TraceRX}} {
		if t.ps < 0 || t.ps > wantDelay {
			return c, configError(t.name, "%d ps is not from 0 to %d", t.ps, wantDelay)
		}
	}
	ptx, prx := phyDelays(b.Mode)
	if c.TXDelay, err = macDelay("TXDelay", b.TXDelay, ptx, b.TraceTX); err != nil {
		return c, err
	}
	c.RXDelay, err = macDelay("RXDelay", b.RXDelay, prx, b.TraceRX)
	return c, err
}

// PHYOptions is how the board's PHY is to be opened.
func (b Board) PHYOptions(s phy.Settings) phy.Options {
	return phy.Options{Addr: b.PHYAddr, ID: b.PHYID, Mode: b.Mode, EEEBroken: b.EEEBroken, Settings: s}
}

// Info is what the description knows about the MAC, for a port.
func (b Board) Info() hw.Info {
	return hw.Info{Name: b.Name, RXFIFOBytes: b.SoC.RXFIFO, TXFIFOBytes: b.SoC.TXFIFO, Mode: b.Mode, Address: b.Address}
}
