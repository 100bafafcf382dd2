package phy

import (
	"fmt"

	"dwnet/hw"
)

// Registers of the RTL8211F, by page. Source: Linux drivers/net/phy/realtek/realtek_main.c; RTL8211F data sheet, PHYSR.
const (
	rtlPageSelect   = 0x1f
	rtlPageStandard = 0xa42

	rtlPageINER = 0xa42
	rtlINER     = 0x12
	rtlINERLink = 1 << 4

	rtlPagePHY      = 0xa43
	rtlPHYCR1       = 0x18
	rtlALDPSPLLOff  = 1 << 1
	rtlALDPSEnable  = 1 << 2
	rtlALDPSXtalOff = 1 << 12
	rtlALDPSMask    = rtlALDPSPLLOff | rtlALDPSEnable | rtlALDPSXtalOff
	rtlPHYCR2       = 0x19
	rtlClockOut     = 1 << 0
	rtlPHYModeEEE   = 1 << 5 // the PHY does EEE on its own and keeps LPI from the MAC
	rtlPHYSR        = 0x1a
	rtlPHYSRLink    = 1 << 2
	rtlPHYSRFull    = 1 << 3
	rtlPHYSRSpeed   = 3 << 4
	rtlINSR         = 0x1d

	rtlPageRGMII = 0xd08
	rtlTXCR      = 0x11
	rtlTXDelay   = 1 << 8
	rtlRXCR      = 0x15
	rtlRXDelay   = 1 << 3
)

var rtl8211f = driver{
	name:        "RTL8211F",
	pages:       pages{sel: rtlPageSelect, standard: rtlPageStandard, highest: 0xfff},
	setUp:       rtlSetUp,
	intact:      rtlIntact,
	delays:      rtlDelays,
	aldps:       rtlALDPS,
	resolved:    rtlResolved,
	interrupt:   rtlInterrupt,
	acknowledge: rtlAcknowledge,
	extra: []register{
		{"INER", rtlPageINER, rtlINER, func(v uint16) string { return decode(v, bit(4, "LINK"), bit(7, "PME")) }},
		{"PHYCR1", rtlPagePHY, rtlPHYCR1, func(v uint16) string {
			return decode(v, bit(12, "ALDPS_XTAL_OFF"), bit(2, "ALDPS_ENABLE"), bit(1, "ALDPS_PLL_OFF"))
		}},
		{"PHYCR2", rtlPagePHY, rtlPHYCR2, func(v uint16) string { return decode(v, bit(5, "PHY_EEE"), bit(0, "CLKOUT_EN")) }},
		{"PHYSR", rtlPagePHY, rtlPHYSR, rtlStatusString},
		{"TXCR", rtlPageRGMII, rtlTXCR, func(v uint16) string { return decode(v, bit(8, "TX_DELAY")) }},
		{"RXCR", rtlPageRGMII, rtlRXCR, func(v uint16) string { return decode(v, bit(3, "RX_DELAY")) }},
	},
}

// rtlSetUp sets the delays, which the straps chose at reset, and turns off what stops the receive clock: ALDPS does while there
// is no link, and a reset of the MAC hangs then. EEE by the PHY alone is turned off as well.
func rtlSetUp(p *PHY) error {
	if _, err := p.modifyPaged(rtlPagePHY, rtlPHYCR1, rtlALDPSMask, 0); err != nil {
		return err
	}
	if _, err := p.modifyPaged(rtlPagePHY, rtlPHYCR2, rtlPHYModeEEE, 0); err != nil {
		return err
	}
	// An interrupt that the last user enabled must not pull the line for ever.
	if err := rtlInterrupt(p, p.interrupt); err != nil {
		return err
	}
	want, ok := DelaysFor(p.opt.Mode)
	if !ok {
		return nil
	}
	before, err := rtlDelays(p)
	if err != nil {
		return err
	}
	err = p.paged(rtlPageRGMII, func(a Access) error {
		for _, r := range []struct {
			reg int
			bit uint16
			on  bool
		}{{rtlTXCR, rtlTXDelay, want.TX}, {rtlRXCR, rtlRXDelay, want.RX}} {
			v, err := a.Read(r.reg)
			if err != nil {
				return err
			}
			v &^= r.bit
			if r.on {
				v |= r.bit
			}
			if err := a.Write(r.reg, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	got, err := rtlDelays(p)
	if err != nil {
		return err
	}
	if got != want {
		return &hw.Error{Op: fmt.Sprintf("PHY %d: delays for %v", p.raw.addr, p.opt.Mode), Err: ErrReadBack,
			Hint: fmt.Sprintf("%v where it must be %v", got, want)}
	}
	if before != want {
		p.log.Info("PHY delays changed", "addr", p.raw.addr, "from", before, "to", want)
	}
	return nil
}

func rtlIntact(p *PHY) (bool, error) {
	aldps, err := rtlALDPS(p)
	if err != nil {
		return false, err
	}
	want, ok := DelaysFor(p.opt.Mode)
	if !ok {
		return !aldps, nil
	}
	d, err := rtlDelays(p)
	return !aldps && d == want, err
}

func rtlDelays(p *PHY) (Delays, error) {
	d := Delays{Known: true}
	err := p.paged(rtlPageRGMII, func(a Access) error {
		tx, err := a.Read(rtlTXCR)
		if err != nil {
			return err
		}
		rx, err := a.Read(rtlRXCR)
		d.TX, d.RX = tx&rtlTXDelay != 0, rx&rtlRXDelay != 0
		return err
	})
	return d, err
}

func rtlALDPS(p *PHY) (bool, error) {
	v, err := p.readPaged(rtlPagePHY, rtlPHYCR1)
	return v&rtlALDPSEnable != 0, err
}

var rtlSpeeds = [4]int{10, 100, 1000, 0}

func rtlResolved(p *PHY) (l hw.Link, ok bool, err error) {
	v, err := p.readPaged(rtlPagePHY, rtlPHYSR)
	l.Speed = rtlSpeeds[v&rtlPHYSRSpeed>>4]
	l.FullDuplex = v&rtlPHYSRFull != 0
	return l, v&rtlPHYSRLink != 0 && l.Speed != 0, err
}

func rtlStatusString(v uint16) string {
	duplex := "half"
	if v&rtlPHYSRFull != 0 {
		duplex = "full"
	}
	link := "down"
	if v&rtlPHYSRLink != 0 {
		link = "up"
	}
	return fmt.Sprintf("%s %d/%s", link, rtlSpeeds[v&rtlPHYSRSpeed>>4], duplex)
}

// rtlInterrupt clears what is pending before it unmasks, and after it has masked.
func rtlInterrupt(p *PHY, on bool) error {
	if on {
		if _, err := rtlAcknowledge(p); err != nil {
			return err
		}
		return p.paged(rtlPageINER, func(a Access) error { return a.Write(rtlINER, rtlINERLink) })
	}
	if err := p.paged(rtlPageINER, func(a Access) error { return a.Write(rtlINER, 0) }); err != nil {
		return err
	}
	_, err := rtlAcknowledge(p)
	return err
}

func rtlAcknowledge(p *PHY) (bool, error) {
	v, err := p.readPaged(rtlPagePHY, rtlINSR)
	return v&rtlINERLink != 0, err
}
