package phy

import (
	"fmt"

	"dwnet/hw"
)

// driver is what is known about a PHY beyond clause 22. Functions that are nil are not possible. They run inside access.do.
type driver struct {
	name  string
	pages pages
	// setUp makes an awake PHY the board's, without waiting.
	setUp func(*PHY) error
	// intact reports whether the PHY still has what setUp wrote.
	intact func(*PHY) (bool, error)
	// delays reads the RGMII delays, aldps whether the PHY saves power without link.
	delays func(*PHY) (Delays, error)
	aldps  func(*PHY) (bool, error)
	// resolved is the mode that the PHY is in, which is not always what was negotiated.
	resolved func(*PHY) (hw.Link, bool, error)
	// interrupt masks or unmasks the interrupt for link changes; acknowledge clears it and tells whether it was one.
	interrupt   func(p *PHY, on bool) error
	acknowledge func(*PHY) (bool, error)
	// extra are registers for the dump.
	extra []register
}

var generic = driver{name: "generic"}

// driverFor picks the driver of an identifier. The RTL8211E works as generic; its delays are where its straps put them.
func driverFor(id ID) *driver {
	if id == RTL8211F {
		return &rtl8211f
	}
	return &generic
}

// Delays are the delays of about 2 ns that a PHY adds to the RGMII clocks.
type Delays struct {
	Known  bool // the PHY's driver can read them
	TX, RX bool // of the clock from the MAC, and of the one to it
}

func (d Delays) String() string {
	if !d.Known {
		return "unknown, by the PHY's straps"
	}
	side := func(on bool) string {
		if on {
			return "2 ns"
		}
		return "0 ns"
	}
	return fmt.Sprintf("TX %s, RX %s", side(d.TX), side(d.RX))
}

// DelaysFor is what a PHY adds in an interface mode. The modes other than RGMII have no delays, and ok is false.
func DelaysFor(m hw.InterfaceMode) (d Delays, ok bool) {
	switch m {
	case hw.ModeRGMII:
		return Delays{Known: true}, true
	case hw.ModeRGMIIID:
		return Delays{Known: true, TX: true, RX: true}, true
	case hw.ModeRGMIIRXID:
		return Delays{Known: true, RX: true}, true
	case hw.ModeRGMIITXID:
		return Delays{Known: true, TX: true}, true
	}
	return Delays{}, false
}

// Delays reads the delays that the PHY adds. Of one that is driven as generic they are not known.
func (p *PHY) Delays() (d Delays, err error) {
	if p.drv.delays == nil {
		return Delays{}, nil
	}
	err = p.do(func(Access) error {
		d, err = p.drv.delays(p)
		return err
	})
	return d, err
}

// ALDPS reports whether the PHY saves power while there is no link, by stopping its receive clock among other things. Open
// turns it off.
func (p *PHY) ALDPS() (on bool, err error) {
	if p.drv.aldps == nil {
		return false, nil
	}
	err = p.do(func(Access) error {
		on, err = p.drv.aldps(p)
		return err
	})
	return on, err
}

// SetInterrupt makes the PHY pull its interrupt line at link changes, or never. What was pending is cleared. A PHY whose
// interrupts are not known gives [hw.ErrUnsupported].
func (p *PHY) SetInterrupt(on bool) error {
	if p.drv.interrupt == nil {
		return p.unsupported("interrupt")
	}
	return p.do(func(Access) error {
		if err := p.drv.interrupt(p, on); err != nil {
			return err
		}
		p.interrupt = on
		return nil
	})
}

// AcknowledgeInterrupt clears the PHY's interrupt, which lets go of the line, and reports whether the link had changed.
func (p *PHY) AcknowledgeInterrupt() (linkChange bool, err error) {
	if p.drv.acknowledge == nil {
		return false, p.unsupported("interrupt")
	}
	err = p.do(func(Access) error {
		linkChange, err = p.drv.acknowledge(p)
		return err
	})
	return linkChange, err
}

func (p *PHY) unsupported(what string) error {
	return &hw.Error{Op: fmt.Sprintf("PHY %d: %s", p.raw.addr, what), Err: hw.ErrUnsupported,
		Hint: fmt.Sprintf("not known for %v", p.id)}
}
