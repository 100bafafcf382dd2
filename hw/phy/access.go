package phy

import (
	"errors"
	"fmt"
	"sync"

	"dwnet/hw"
)

// Access is a PHY's registers for the length of one transaction, see [PHY.Do] and [PHY.Paged]. It must not be kept.
type Access struct {
	bus  Bus
	addr int
}

// Read reads a register, 0 to 31.
func (a Access) Read(reg int) (uint16, error) {
	if err := checkRegister(reg); err != nil {
		return 0, err
	}
	v, err := a.bus.ReadPHY(a.addr, reg)
	if err != nil {
		return 0, fmt.Errorf("phy %d: read register %d: %w", a.addr, reg, err)
	}
	return v, nil
}

// Write writes a register, 0 to 31.
func (a Access) Write(reg int, v uint16) error {
	if err := checkRegister(reg); err != nil {
		return err
	}
	if err := a.bus.WritePHY(a.addr, reg, v); err != nil {
		return fmt.Errorf("phy %d: write register %d: %w", a.addr, reg, err)
	}
	return nil
}

// Modify clears and then sets bits of a register, and returns what it held before. It writes only what changes something.
func (a Access) Modify(reg int, clear, set uint16) (old uint16, err error) {
	if old, err = a.Read(reg); err != nil {
		return 0, err
	}
	if v := old&^clear | set; v != old {
		err = a.Write(reg, v)
	}
	return old, err
}

func checkRegister(reg int) error {
	if reg < 0 || reg >= registers {
		return &hw.Error{Op: "PHY register", Err: hw.ErrConfig, Hint: fmt.Sprintf("register %d is not from 0 to 31", reg)}
	}
	return nil
}

// MMD access: the address goes into the data register, then the function is changed to data (802.3 table 22-9, 45.2).
const (
	mmdDeviceMask = 0x1f
	mmdAddress    = 0 << 14 // function: the data register holds an address
	mmdData       = 1 << 14 // function: data, no increment
)

// selectMMD makes the data register stand for register reg of device dev.
func (a Access) selectMMD(dev int, reg uint16) error {
	if dev < 0 || dev > mmdDeviceMask {
		return &hw.Error{Op: "MMD access", Err: hw.ErrConfig, Hint: fmt.Sprintf("device %d is not from 0 to 31", dev)}
	}
	if err := a.Write(RegMMDCtrl, mmdAddress|uint16(dev)); err != nil {
		return err
	}
	if err := a.Write(RegMMDData, reg); err != nil {
		return err
	}
	return a.Write(RegMMDCtrl, mmdData|uint16(dev))
}

// ReadMMD reads register reg of MDIO manageable device dev through registers 13 and 14. A PHY without the device gives zero
// or ones.
func (a Access) ReadMMD(dev int, reg uint16) (uint16, error) {
	if err := a.selectMMD(dev, reg); err != nil {
		return 0, err
	}
	return a.Read(RegMMDData)
}

// WriteMMD writes register reg of device dev. Setting bit 10 of 3.0, which lets the PHY stop its receive clock in LPI, makes
// an RTL8211E freeze until the next read on the bus, so such a write is followed by one (Linux netdev, 2021, "net: phy:
// realtek: Fix events detection failure in LPI mode").
func (a Access) WriteMMD(dev int, reg uint16, v uint16) error {
	if err := a.selectMMD(dev, reg); err != nil {
		return err
	}
	if err := a.Write(RegMMDData, v); err != nil {
		return err
	}
	if dev == mmdPCS && reg == pcsControl && v&pcsClockStop != 0 {
		_, err := a.Read(RegMMDData)
		return err
	}
	return nil
}

// access is the lock of a PHY and what it guards.
type access struct {
	mu   sync.Mutex
	raw  Access
	page pages
	// lost says that a page could not be restored, so that the registers are not known to be the standard ones.
	lost bool
}

// pages says how a PHY selects banks of registers. Without a select register it has none.
type pages struct {
	sel      int    // select register
	standard uint16 // page that holds the registers of clause 22
	highest  uint16
}

func (p pages) exist() bool { return p.sel != 0 }

// do runs f with the PHY to itself.
func (c *access) do(f func(Access) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		if err := c.raw.Write(c.page.sel, c.page.standard); err != nil {
			return err
		}
		c.lost = false
	}
	return f(c.raw)
}

// paged runs f on a page, inside do, and selects the page that was there before again, whatever f does.
func (c *access) paged(page uint16, f func(Access) error) (err error) {
	if !c.page.exist() {
		return &hw.Error{Op: fmt.Sprintf("PHY %d: page 0x%x", c.raw.addr, page), Err: hw.ErrUnsupported,
			Hint: "this PHY's pages are not known"}
	}
	before, err := c.raw.Read(c.page.sel)
	if err != nil {
		return err
	}
	if before == absent {
		return &hw.Error{Op: fmt.Sprintf("PHY %d: page 0x%x", c.raw.addr, page), Err: hw.ErrNoPHY, Hint: "page select reads 0xffff"}
	}
	c.lost = true // also if the write fails: it may have arrived all the same
	if err := c.raw.Write(c.page.sel, page); err != nil {
		return err
	}
	defer func() {
		back := c.raw.Write(c.page.sel, before)
		c.lost = back != nil && c.raw.Write(c.page.sel, before) != nil // twice, since much hangs on it
		err = errors.Join(err, back)
	}()
	return f(c.raw)
}

func (c *access) readPaged(page uint16, reg int) (v uint16, err error) {
	err = c.paged(page, func(a Access) (err error) {
		v, err = a.Read(reg)
		return err
	})
	return v, err
}

func (c *access) modifyPaged(page uint16, reg int, clear, set uint16) (old uint16, err error) {
	err = c.paged(page, func(a Access) (err error) {
		old, err = a.Modify(reg, clear, set)
		return err
	})
	return old, err
}

// Do runs f with the PHY to itself, so that its accesses stay together. f must not call methods of the PHY.
func (p *PHY) Do(f func(Access) error) error { return p.do(f) }

// Paged runs f with a page of the PHY's registers selected, and selects the page before again when f returns, fails or panics.
// Meanwhile nobody else gets at the PHY. f must not call methods of the PHY. A PHY whose pages are not known gives
// [hw.ErrUnsupported].
func (p *PHY) Paged(page uint16, f func(Access) error) error {
	return p.do(func(Access) error { return p.paged(page, f) })
}

// Read reads a register of clause 22. [PHY.Status] and the [Monitor] notice when this takes away the latched link bit.
func (p *PHY) Read(reg int) (v uint16, err error) {
	err = p.do(func(a Access) error {
		if v, err = a.Read(reg); err == nil && reg == RegBMSR {
			p.note(BMSR(v))
		}
		return err
	})
	return v, err
}

// Write writes a register of clause 22.
func (p *PHY) Write(reg int, v uint16) error {
	return p.do(func(a Access) error { return a.Write(reg, v) })
}

// ReadMMD reads register reg of MDIO manageable device dev.
func (p *PHY) ReadMMD(dev int, reg uint16) (v uint16, err error) {
	err = p.do(func(a Access) error {
		v, err = a.ReadMMD(dev, reg)
		return err
	})
	return v, err
}

// WriteMMD writes register reg of MDIO manageable device dev, see [Access.WriteMMD].
func (p *PHY) WriteMMD(dev int, reg, v uint16) error {
	return p.do(func(a Access) error { return a.WriteMMD(dev, reg, v) })
}
