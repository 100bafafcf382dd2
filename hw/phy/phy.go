package phy

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dwnet/hw"
)

// Limits of the waits for a PHY.
const (
	// resetLimit for a reset by BMCR (802.3 22.2.4.1.1: half a second), wakeLimit for BMCR to take the end of power-down.
	resetLimit = 600 * time.Millisecond
	wakeLimit  = 50 * time.Millisecond
	// wakeSettle after power-down, until the PHY gives its clocks and takes writes (Linux rtl821x_resume: 20 ms).
	wakeSettle = 20 * time.Millisecond
	pollPause  = time.Millisecond
)

// Settings are what a user can choose about the link. The zero value autonegotiates everything that the PHY can do but
// 1000BASE-T half duplex, without flow control and without EEE.
type Settings struct {
	// Advertise is what autonegotiation offers; 0: all that the PHY can do but 1000/half, which no MAC here is good at.
	Advertise Modes
	// Forced is one mode to be in without autonegotiation, up to 100 Mbit/s; 0: autonegotiate. A partner that
	// autonegotiates will take such a link for half duplex.
	Forced Modes
	// Pause is what autonegotiation says about flow control.
	Pause Pause
	// EEE is what is offered of Energy-Efficient Ethernet, without what Options.EEEBroken names.
	EEE EEEModes
}

// Options are how a PHY is opened. Their zero value works for a PHY that is wired by RGMII without delays in the PHY.
type Options struct {
	// Addr is the PHY's address; the zero value takes the first that answers.
	Addr hw.PHYAddr
	// ID is what must be found there; 0: any.
	ID ID
	// Mode is the wiring, which says what delays the PHY makes.
	Mode hw.InterfaceMode
	// Settings are applied when the PHY is opened. A PHY that has them already goes on undisturbed.
	Settings Settings
	// EEEBroken is never advertised, whatever Settings say: modes in which this board loses packets with EEE. It does what
	// device trees call eee-broken-100tx and eee-broken-1000t.
	EEEBroken EEEModes
	// ForceRenegotiate restarts autonegotiation once when the PHY is opened, also if nothing has changed.
	ForceRenegotiate bool
	// Logger is told what was found and changed; nil: nobody is.
	Logger *slog.Logger
}

// PHY is one PHY, set up for its board. Its methods may be called from several goroutines.
type PHY struct {
	access
	clock hw.Clock
	id    ID
	drv   *driver
	opt   Options
	log   *slog.Logger

	// Guarded by access.mu.
	settings  Settings
	supported Modes
	extended  bool // registers 9, 10 and 15 exist
	eeeAble   EEEModes
	dropped   bool // a read found the link bit latched low
	interrupt bool // the link change interrupt is enabled
}

// Open finds a PHY, ends power-down and isolation, sets it up for the board's wiring and applies the settings. A PHY that has
// them all already, with its link up, keeps its link: nothing is reset or restarted then.
//
// Errors match [hw.ErrConfig] before anything is written if o is wrong in itself, [hw.ErrNoPHY] if nobody answers,
// [hw.ErrTimeout] if the PHY does not wake up, and [ErrReadBack] if it does not take the delays.
func Open(b Bus, c hw.Clock, o Options) (*PHY, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	found, err := Find(b, o.Addr)
	if err != nil {
		return nil, err
	}
	if o.ID != 0 && found.ID != o.ID {
		if found.ID, err = unpage(b, found, driverFor(o.ID).pages); err != nil {
			return nil, err
		}
	}
	if o.ID != 0 && found.ID != o.ID {
		return nil, &hw.Error{Op: fmt.Sprintf("open PHY %d", found.Addr), Err: hw.ErrConfig,
			Hint: fmt.Sprintf("it is %v, not %v", found.ID, o.ID)}
	}
	p := &PHY{clock: c, id: found.ID, drv: driverFor(found.ID), opt: o, log: o.Logger, settings: o.Settings}
	p.raw = Access{bus: b, addr: found.Addr}
	p.page = p.drv.pages
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	var restarted bool
	err = p.do(func(a Access) error {
		if err := p.wake(a); err != nil {
			return err
		}
		restarted, err = p.setUp(a, o.ForceRenegotiate)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.log.Info("PHY", "addr", found.Addr, "id", found.ID, "driver", p.drv.name, "mode", o.Mode, "renegotiates", restarted)
	return p, nil
}

// unpage looks for the identifier again behind a page that a user who was killed has left. A PHY whose register does not hold
// the number of a page is another one and is not written to.
func unpage(b Bus, f Found, pg pages) (ID, error) {
	if !pg.exist() {
		return f.ID, nil
	}
	left, err := b.ReadPHY(f.Addr, pg.sel)
	if err != nil || left == 0 || left == pg.standard || left > pg.highest {
		return f.ID, err
	}
	if err := b.WritePHY(f.Addr, pg.sel, pg.standard); err != nil {
		return f.ID, err
	}
	return Identify(b, f.Addr)
}

// Addr is the PHY's address on the bus.
func (p *PHY) Addr() int { return p.raw.addr }

// ID is the PHY's identifier.
func (p *PHY) ID() ID { return p.id }

// Driver names the code that drives the PHY: "RTL8211F", or "generic" for clause 22 alone.
func (p *PHY) Driver() string { return p.drv.name }

// Supported is what the PHY can do.
func (p *PHY) Supported() Modes {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.supported
}

// Close masks the PHY's interrupt. The link stays as it is, so that the next user finds it up.
func (p *PHY) Close() error {
	p.mu.Lock()
	on := p.interrupt
	p.mu.Unlock()
	if !on {
		return nil
	}
	return p.SetInterrupt(false)
}

// Reset resets the PHY by BMCR, waits for the end of it, at most 0.6 s, and sets it up again. The link renegotiates.
func (p *PHY) Reset() error {
	return p.do(func(a Access) error {
		if err := a.Write(RegBMCR, uint16(BMCRReset)); err != nil {
			return err
		}
		if err := p.wake(a); err != nil {
			return err
		}
		_, err := p.setUp(a, false)
		return err
	})
}

// SetPowerDown puts the PHY into power-down or ends it. In power-down there is no link and no receive clock, without which a
// reset of the MAC does not end.
func (p *PHY) SetPowerDown(on bool) error {
	return p.do(func(a Access) error {
		if on {
			_, err := a.Modify(RegBMCR, 0, uint16(BMCRPowerDown))
			return err
		}
		return p.wake(a)
	})
}

// SetIsolate cuts the PHY off the MAC or connects it. An isolated PHY keeps its link and answers on MDIO.
func (p *PHY) SetIsolate(on bool) error {
	return p.do(func(a Access) error {
		set := uint16(0)
		if on {
			set = uint16(BMCRIsolate)
		}
		_, err := a.Modify(RegBMCR, uint16(BMCRIsolate), set)
		return err
	})
}

// until reads BMCR until the bits are clear. A PHY that went away matches hw.ErrNoPHY.
func (p *PHY) until(a Access, op string, mask BMCR, limit time.Duration, hint string) error {
	for start := p.clock.Now(); ; {
		waited := p.clock.Now().Sub(start)
		v, err := a.Read(RegBMCR)
		if err != nil {
			return err
		}
		e := &hw.Error{Op: fmt.Sprintf("PHY %d: %s", a.addr, op), Reg: "BMCR", Mask: uint32(mask), Last: uint32(v), Wait: waited}
		switch {
		case v == absent:
			e.Err = hw.ErrNoPHY
			return e
		case BMCR(v)&mask == 0:
			return nil
		case waited >= limit:
			e.Err, e.Hint = hw.ErrTimeout, hint
			return e
		}
		p.clock.Sleep(min(pollPause, limit-waited))
	}
}

const noClockHint = "in power-down the PHY gives no receive clock, and no reset of the MAC ends"

// wake waits for the end of a reset and ends power-down and isolation.
func (p *PHY) wake(a Access) error {
	if err := p.until(a, "reset", BMCRReset, resetLimit, "the PHY stays in reset"); err != nil {
		return err
	}
	const asleep = BMCRPowerDown | BMCRIsolate
	old, err := a.Modify(RegBMCR, uint16(asleep), 0)
	if err != nil || BMCR(old)&asleep == 0 {
		return err
	}
	p.log.Info("PHY was asleep", "addr", a.addr, "BMCR", BMCR(old))
	if err := p.until(a, "wake", asleep, wakeLimit, noClockHint); err != nil {
		return err
	}
	if BMCR(old)&BMCRPowerDown != 0 {
		p.clock.Sleep(wakeSettle)
	}
	return nil
}

// setUp makes an awake PHY the board's: page, delays, power saving, and settings. It does not wait for anything.
func (p *PHY) setUp(a Access, force bool) (restarted bool, err error) {
	if p.page.exist() {
		// A user that died may have left any page; zero is the standard one as well.
		v, err := a.Read(p.page.sel)
		if err != nil {
			return false, err
		}
		if v != 0 && v != p.page.standard {
			if err := a.Write(p.page.sel, p.page.standard); err != nil {
				return false, err
			}
		}
	}
	if p.drv.setUp != nil {
		if err := p.drv.setUp(p); err != nil {
			return false, err
		}
	}
	if err := p.readAbilities(a); err != nil {
		return false, err
	}
	return p.apply(a, p.settings, force)
}

// intact reports whether the PHY still has what setUp gave it. One that was reset behind our back has not.
func (p *PHY) intact(a Access) (bool, error) {
	modes, _, err := p.offer(p.settings)
	if err != nil {
		return false, err
	}
	v, err := a.Read(RegBMCR)
	if err != nil {
		return false, err
	}
	if f := p.settings.Forced; f != 0 {
		if BMCR(v)&BMCRAutoneg != 0 || BMCR(v).forced() != f {
			return false, nil
		}
	} else {
		v, err := a.Read(RegANAR)
		if adv := Advertisement(v); err != nil || adv != adv.advertise(modes, p.settings.Pause) {
			return false, err
		}
	}
	if p.drv.intact == nil {
		return true, nil
	}
	return p.drv.intact(p)
}

func (p *PHY) readAbilities(a Access) error {
	v, err := a.Read(RegBMSR)
	if err != nil {
		return err
	}
	bmsr := BMSR(v)
	if bmsr.dead() {
		return p.gone("BMSR", v)
	}
	p.note(bmsr)
	var esr uint16
	if bmsr&BMSRExtStat != 0 {
		if esr, err = a.Read(RegESR); err != nil {
			return err
		}
	}
	p.extended = bmsr&BMSRExtStat != 0
	p.supported = bmsr.modes(esr)
	if !p.opt.gigabit() {
		p.supported &^= modes1000
	}
	p.eeeAble, err = readEEE(a, mmdPCS, pcsEEEAbility)
	return err
}

// gone is the error for a register that reads as none can.
func (p *PHY) gone(reg string, v uint16) error {
	return &hw.Error{Op: fmt.Sprintf("PHY %d", p.raw.addr), Reg: reg, Mask: absent, Last: uint32(v), Err: hw.ErrNoPHY,
		Hint: "it has answered before: no supply, in reset, or MDIO broken"}
}

// note remembers that a read has found the link bit latched low, since the next read will not.
func (p *PHY) note(v BMSR) {
	if v&BMSRLink == 0 && !v.dead() {
		p.dropped = true
	}
}

func (o Options) gigabit() bool { return o.Mode != hw.ModeMII && o.Mode != hw.ModeRMII }

func (o Options) validate() error {
	var errs []error
	if o.Mode > hw.ModeMII {
		errs = append(errs, configError("Mode", "%d is not rgmii, rgmii-id, rgmii-rxid, rgmii-txid, rmii or mii", o.Mode))
	}
	if o.ID != 0 && !o.ID.Valid() {
		errs = append(errs, configError("ID", "%v is not an identifier: neither word may be 0xffff, nor both 0", o.ID))
	}
	if o.EEEBroken&^allEEE != 0 {
		errs = append(errs, configError("EEEBroken", "%v is not of %v", o.EEEBroken, allEEE))
	}
	errs = append(errs, o.Settings.validate())
	return errors.Join(errs...)
}

// validate checks what can be told without the PHY.
func (s Settings) validate() error {
	switch {
	case s.Advertise&^AllModes != 0:
		return configError("Advertise", "%v is not of %v", s.Advertise, AllModes)
	case s.Forced != 0 && s.Advertise != 0:
		return configError("Forced", "%v with autonegotiation of %v: only one of them", s.Forced, s.Advertise)
	case s.Forced != 0 && (s.Forced&^forcible != 0 || s.Forced != s.Forced.Best()):
		return configError("Forced", "%v is not one of %v; 1000BASE-T needs autonegotiation", s.Forced, forcible)
	case s.Pause > PauseReceive:
		return configError("Pause", "%v is not 0 to 3", s.Pause)
	case s.EEE&^allEEE != 0:
		return configError("EEE", "%v is not of %v", s.EEE, allEEE)
	}
	return nil
}

func configError(name, format string, args ...any) error {
	return &hw.Error{Op: "configure PHY", Err: hw.ErrConfig, Hint: name + ": " + fmt.Sprintf(format, args...)}
}
