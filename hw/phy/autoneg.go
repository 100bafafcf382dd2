package phy

import (
	"fmt"

	"dwnet/hw"
)

// Apply changes the settings. Registers that hold them already are not written, and autonegotiation is restarted at most once,
// only if what it offers has changed. Settings that this PHY cannot do match [hw.ErrConfig] and change nothing.
func (p *PHY) Apply(s Settings) (restarted bool, err error) {
	if err := s.validate(); err != nil {
		return false, err
	}
	err = p.do(func(a Access) error {
		restarted, err = p.apply(a, s, false)
		return err
	})
	return restarted, err
}

// Settings are those applied last.
func (p *PHY) Settings() Settings {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.settings
}

// Restart restarts autonegotiation. With a forced mode it does nothing.
func (p *PHY) Restart() error { return p.do(p.restart) }

func (p *PHY) restart(a Access) error {
	if p.settings.Forced != 0 {
		return nil
	}
	old, err := a.Read(RegBMCR)
	if err != nil {
		return err
	}
	return a.Write(RegBMCR, uint16(BMCR(old)&^(BMCRReset|BMCRLoopback)|BMCRAutoneg|BMCRRestart))
}

// offer is what s advertises on this PHY.
func (p *PHY) offer(s Settings) (Modes, EEEModes, error) {
	m := s.Advertise
	if m == 0 {
		m = p.supported &^ Mode1000Half
	}
	if bad := (m | s.Forced) &^ p.supported; bad != 0 {
		name := "Advertise"
		if s.Forced != 0 {
			name = "Forced"
		}
		return 0, 0, configError(name, "%v is not of what PHY %d can do here: %v", bad, p.raw.addr, p.supported)
	}
	if bad := s.EEE &^ p.opt.EEEBroken &^ p.eeeAble; bad != 0 {
		return 0, 0, configError("EEE", "%v is not of what PHY %d can do: %v", bad, p.raw.addr, p.eeeAble)
	}
	return m, s.EEE &^ p.opt.EEEBroken, nil
}

// apply writes the registers for s. The EEE advertisement comes before the restart that sends it.
func (p *PHY) apply(a Access, s Settings, force bool) (restarted bool, err error) {
	modes, eee, err := p.offer(s)
	if err != nil {
		return false, err
	}
	changed := force
	if p.eeeAble != 0 {
		old, err := readEEE(a, mmdAN, anEEEAdvertise)
		if err != nil {
			return false, err
		}
		// Written also when it is there already: after a reset the straps may have chosen it, and it costs little.
		if err := a.WriteMMD(mmdAN, anEEEAdvertise, uint16(eee)); err != nil {
			return false, err
		}
		changed = changed || old != eee
	}
	if s.Forced != 0 {
		if err := p.force(a, s.Forced); err != nil {
			return false, err
		}
		p.settings = s
		return false, nil
	}

	old, err := a.Read(RegANAR)
	if err != nil {
		return false, err
	}
	if v := Advertisement(old).advertise(modes, s.Pause); v != Advertisement(old) {
		if err := a.Write(RegANAR, uint16(v)); err != nil {
			return false, err
		}
		changed = true
	}
	if p.extended { // also if nothing of 1000BASE-T may be offered: it is by default
		old, err := a.Modify(RegGBCR, gbcrModes.mask(), gbcrModes.bits(modes))
		if err != nil {
			return false, err
		}
		changed = changed || gbcrModes.modes(old) != modes&modes1000
	}
	bmcr, err := a.Read(RegBMCR)
	if err != nil {
		return false, err
	}
	p.settings = s
	if changed || BMCR(bmcr)&BMCRAutoneg == 0 || BMCR(bmcr)&BMCRLoopback != 0 {
		return true, p.restart(a)
	}
	return false, nil
}

// force leaves autonegotiation for a mode.
func (p *PHY) force(a Access, m Modes) error {
	var v BMCR
	if m.Speed() == 100 {
		v |= BMCRSpeed100
	}
	if m.FullDuplex() {
		v |= BMCRDuplex
	}
	_, err := a.Modify(RegBMCR, uint16(bmcrForcedMask|BMCRLoopback), uint16(v))
	return err
}

// negotiation is the registers that tell what a link is made of.
type negotiation struct {
	bmcr       BMCR
	anar, lpa  Advertisement
	aner       uint16
	gbcr, gbsr uint16
	gigabit    bool // gbcr and gbsr exist
}

// partner is what the link partner has said.
func (n negotiation) partner() Partner {
	p := Partner{Autoneg: n.aner&anerPartnerAble != 0, Modes: n.lpa.modes(), Pause: n.lpa.pause()}
	if n.gigabit {
		p.Modes |= gbsrModes.modes(n.gbsr)
	}
	return p
}

// credible reports whether the partner's base page can be one. A PHY may say that autonegotiation is complete while that
// word is corrupt: neither an ability nor the acknowledge bit (Linux drivers/net/phy/meson-gxl.c, meson_gxl_read_status).
func (n negotiation) credible() bool {
	return n.lpa&(AdvAck|Advertisement(advModes.mask())) != 0
}

// resolve is the mode of a link that is up, with flow control, 0 if the registers do not tell.
func (n negotiation) resolve() hw.Link {
	if n.bmcr&BMCRAutoneg == 0 {
		m := n.bmcr.forced()
		return hw.Link{Speed: m.Speed(), FullDuplex: m.FullDuplex()}
	}
	common := n.anar.modes() & n.lpa.modes()
	if n.gigabit {
		common |= gbcrModes.modes(n.gbcr) & gbsrModes.modes(n.gbsr)
	}
	l := hw.Link{Speed: common.Speed(), FullDuplex: common.FullDuplex()}
	l.TXPause, l.RXPause = ResolvePause(n.anar.pause(), n.lpa.pause(), l.FullDuplex)
	return l
}

// Partner is what the other end of the cable has said in autonegotiation.
type Partner struct {
	Autoneg bool  // it autonegotiates; otherwise Modes is what its signal was taken for
	Modes   Modes // what it offers
	Pause   Pause
}

// Status is the state of a link at one moment.
type Status struct {
	Up       bool
	Autoneg  bool // autonegotiation is on
	Complete bool // and complete
	// Link is what was agreed on, if Up: speed in Mbit/s, duplex, flow control.
	Link    hw.Link
	Partner Partner
	// Downshifted says that the PHY runs slower than both ends can, because the cable does not carry more.
	Downshifted bool
	// Master says, at 1000 Mbit/s, that this end makes the clock of the link.
	Master bool
	// Fault is why a link that ought to be there is not, or cannot be told; nil if nothing is wrong.
	Fault error
}

// Status reads the state of the link as it is now. A drop that this read is the first to see is left for the [Monitor].
func (p *PHY) Status() (s Status, err error) {
	err = p.do(func(a Access) error {
		bmsr, _, err := p.link(a)
		if err != nil {
			return err
		}
		s, err = p.status(a, bmsr)
		return err
	})
	return s, err
}

// link reads BMSR for the link as it is now, and whether there was a drop that nobody has been told of. A first read without
// link bit may be the latch, so only a second one counts.
func (p *PHY) link(a Access) (now BMSR, dropped bool, err error) {
	for range 2 {
		v, err := a.Read(RegBMSR)
		if err != nil {
			return 0, false, err
		}
		now = BMSR(v)
		if now.dead() {
			continue // once more: a single bad frame is not the loss of the PHY
		}
		p.note(now)
		if now&BMSRLink != 0 {
			break
		}
	}
	if now.dead() {
		return now, false, p.gone("BMSR", uint16(now))
	}
	return now, p.dropped, nil
}

// status completes the state of the link.
func (p *PHY) status(a Access, bmsr BMSR) (s Status, err error) {
	n := negotiation{gigabit: p.extended}
	var bmcr, anar, lpa uint16
	for _, r := range []struct {
		reg int
		v   *uint16
		on  bool
	}{
		{RegBMCR, &bmcr, true}, {RegANAR, &anar, true}, {RegANLPAR, &lpa, true}, {RegANER, &n.aner, true},
		{RegGBCR, &n.gbcr, n.gigabit}, {RegGBSR, &n.gbsr, n.gigabit},
	} {
		if r.on {
			if *r.v, err = a.Read(r.reg); err != nil {
				return s, err
			}
		}
	}
	n.bmcr, n.anar, n.lpa = BMCR(bmcr), Advertisement(anar), Advertisement(lpa)
	s.Up = bmsr&BMSRLink != 0
	s.Autoneg = n.bmcr&BMCRAutoneg != 0
	s.Complete = s.Autoneg && bmsr&BMSRComplete != 0
	if s.Complete {
		s.Partner = n.partner()
	}
	if !s.Up {
		if s.Autoneg && n.gbsr&gbsrMasterFault != 0 {
			s.Fault = fmt.Errorf("phy %d: both ends insist on being master, or both on slave: %w", p.raw.addr, ErrPartner)
		}
		return s, nil
	}
	s.Link = n.resolve()
	s.Master = s.Link.Speed == 1000 && n.gbsr&gbsrMaster != 0
	if s.Autoneg && s.Complete && s.Partner.Autoneg && !n.credible() {
		s.Fault = p.partnerFault(n)
		return s, nil
	}
	if p.drv.resolved != nil {
		actual, ok, err := p.drv.resolved(p)
		if err != nil {
			return s, err
		}
		if ok && (actual.Speed != s.Link.Speed || actual.FullDuplex != s.Link.FullDuplex) {
			s.Downshifted = s.Autoneg && actual.Speed < s.Link.Speed
			s.Link.Speed, s.Link.FullDuplex = actual.Speed, actual.FullDuplex
			s.Link.TXPause, s.Link.RXPause = ResolvePause(n.anar.pause(), n.lpa.pause(), s.Autoneg && actual.FullDuplex)
			s.Master = s.Master && s.Link.Speed == 1000
		}
	}
	if s.Link.Speed == 0 {
		s.Fault = p.partnerFault(n)
	}
	return s, nil
}

func (p *PHY) partnerFault(n negotiation) error {
	return fmt.Errorf("phy %d: link is up, advertised 0x%04x, partner said 0x%04x (1000BASE-T 0x%04x): %w",
		p.raw.addr, uint16(n.anar), uint16(n.lpa), n.gbsr, ErrPartner)
}
