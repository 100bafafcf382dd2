package phy

import (
	"fmt"

	"dwnet/hw"
)

// Report is everything that a PHY tells about itself and its link, for printing.
type Report struct {
	Addr      int
	ID        ID
	Driver    string
	Mode      hw.InterfaceMode
	Supported Modes
	Settings  Settings
	Control   BMCR
	Status    Status
	EEE       EEE
	Delays    Delays // read back
	ALDPS     bool
}

// Report reads the state of the PHY. It disturbs neither the link nor a [Monitor].
func (p *PHY) Report() (r Report, err error) {
	r = Report{Addr: p.raw.addr, ID: p.id, Driver: p.drv.name, Mode: p.opt.Mode, Supported: p.Supported(), Settings: p.Settings()}
	bmcr, err := p.Read(RegBMCR)
	if err != nil {
		return r, err
	}
	r.Control = BMCR(bmcr)
	if r.Status, err = p.Status(); err != nil {
		return r, err
	}
	if r.EEE, err = p.EEE(); err != nil {
		return r, err
	}
	if r.Delays, err = p.Delays(); err != nil {
		return r, err
	}
	r.ALDPS, err = p.ALDPS()
	return r, err
}

// register is a register in a dump.
type register struct {
	name   string
	page   uint16 // 0: the standard one
	reg    int
	decode func(uint16) string
}

var standard = []register{
	{"BMCR", 0, RegBMCR, func(v uint16) string { return BMCR(v).String() }},
	{"BMSR", 0, RegBMSR, func(v uint16) string { return BMSR(v).String() }},
	{"PHYID1", 0, RegID1, nil},
	{"PHYID2", 0, RegID2, nil},
	{"ANAR", 0, RegANAR, func(v uint16) string { return Advertisement(v).String() }},
	{"ANLPAR", 0, RegANLPAR, func(v uint16) string { return Advertisement(v).String() }},
	{"ANER", 0, RegANER, func(v uint16) string {
		return decode(v, bit(4, "MFAULTS"), bit(3, "NPCAPABLE"), bit(2, "ENABLENPAGE"), bit(1, "LCWP"), bit(0, "NWAY"))
	}},
	{"GBCR", 0, RegGBCR, gbcrString},
	{"GBSR", 0, RegGBSR, gbsrString},
	{"GBESR", 0, RegESR, func(v uint16) string {
		return decode(v, bit(15, "1000X_FULL"), bit(14, "1000X_HALF"), bit(13, "1000T_FULL"), bit(12, "1000T_HALF"))
	}},
}

// Value is a register with its value.
type Value struct {
	Name    string
	Page    uint16 // 0 for the registers of clause 22
	Reg     int
	Value   uint16
	Decoded string
}

func (v Value) String() string { return fmt.Sprintf("%-8s 0x%04x  %s", v.Name, v.Value, v.Decoded) }

// Dump reads the registers that are known for this PHY, without those whose reading changes something but the link's latch,
// which is left for the [Monitor].
func (p *PHY) Dump() (list []Value, err error) {
	err = p.do(func(a Access) error {
		for _, r := range standard {
			v, err := a.Read(r.reg)
			if err != nil {
				return err
			}
			if r.reg == RegBMSR {
				p.note(BMSR(v))
			}
			list = append(list, r.value(v))
		}
		for _, r := range p.drv.extra {
			v, err := p.readPaged(r.page, r.reg)
			if err != nil {
				return err
			}
			list = append(list, r.value(v))
		}
		return nil
	})
	return list, err
}

func (r register) value(v uint16) Value {
	out := Value{Name: r.name, Page: r.page, Reg: r.reg, Value: v}
	if r.decode != nil {
		out.Decoded = r.decode(v)
	}
	return out
}
