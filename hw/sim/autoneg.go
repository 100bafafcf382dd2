package sim

// ability is what one end of a cable brings to autonegotiation.
type ability struct {
	on     bool // powered
	auto   bool
	adv    uint16 // ANAR
	adv1G  uint16 // register 9
	eee    uint16
	forced int // speed without autonegotiation
	full   bool
}

// anyAbility is a partner that can do everything but pause.
var anyAbility = ability{on: true, auto: true, adv: anDefault, adv1G: c1000F | c1000H}

// ability of the board's PHY. b.mu is held.
func (p *phy) ability() ability {
	bmcr := p.std[miiBMCR]
	a := ability{on: p.powered(), auto: bmcr&bmcrAutoneg != 0, adv: p.std[miiANAR], adv1G: p.std[mii1000C], eee: p.mmd[mmdEEEAdv]}
	if !a.auto {
		a.forced, a.full = 10, bmcr&bmcrDuplex != 0
		if bmcr&bmcrSpeed0 != 0 {
			a.forced = 100
		}
	}
	return a
}

// link is the result of autonegotiation for one end.
type link struct {
	speed int // 0: no link
	full  bool
	lpa   uint16
	gstat uint16
	eee   uint16
}

// limited is the ability as a cable lets it through.
func (a ability) limited(mbps int) ability {
	if mbps != 0 && mbps < 1000 {
		a.adv1G = 0
	}
	if mbps != 0 && mbps < 100 {
		a.adv &^= an100H | an100F
	}
	return a
}

// negotiate resolves what two ends agree on (IEEE 802.3 annex 28B.3), as each end sees it.
func negotiate(a, b ability, cable int) (la, lb link) {
	a, b = a.limited(cable), b.limited(cable)
	if !a.on || !b.on {
		return link{}, link{}
	}
	speed, full := 0, false
	switch {
	case a.auto && b.auto:
		common, common1G := a.adv&b.adv, a.adv1G&b.adv1G
		switch {
		case common1G&c1000F != 0:
			speed, full = 1000, true
		case common1G&c1000H != 0:
			speed = 1000
		case common&an100F != 0:
			speed, full = 100, true
		case common&an100H != 0:
			speed = 100
		case common&an10F != 0:
			speed, full = 10, true
		case common&an10H != 0:
			speed = 10
		}
		la, lb = link{speed: speed, full: full}, link{speed: speed, full: full}
	case !a.auto && !b.auto:
		if a.forced == b.forced {
			speed = a.forced
		}
		la, lb = link{speed: speed, full: a.full}, link{speed: speed, full: b.full}
	default: // parallel detection finds the speed and assumes half duplex
		speed = a.forced + b.forced
		la, lb = link{speed: speed, full: a.full}, link{speed: speed, full: b.full}
	}
	la.hear(b, speed)
	lb.hear(a, speed)
	return la, lb
}

// hear fills in what is learnt about the partner.
func (l *link) hear(partner ability, speed int) {
	if partner.auto {
		l.lpa = partner.adv | anAck
		l.gstat = partner.adv1G << 2 & (s1000F | s1000H)
		l.eee = partner.eee
	}
	if speed == 1000 {
		l.gstat |= s1000Local | s1000Remote
	}
}

// setLink takes over a result that comes true at a time.
func (b *Board) setLink(l link, at int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := &b.phy
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.up() {
		b.linkChanged()
	}
	p.latched, p.live = true, false
	p.speed, p.full, p.lpa, p.gstat, p.eeeLP = l.speed, l.full, l.lpa, l.gstat, l.eee
	p.upAt = never
	if l.speed == 0 {
		return
	}
	if take(&b.faults.badLPA) {
		p.lpa = anSelector
	}
	p.upAt = at
	p.timer = b.clock.AfterFunc(duration(at-b.clock.nanos()), b.linkUp)
}

// linkUp tells the MAC that the link has come up.
func (b *Board) linkUp() {
	b.mu.Lock()
	if !b.closed && b.phy.up() {
		b.linkChanged()
	}
	b.mu.Unlock()
	b.poke(b.clock.nanos())
}

// linkChanged raises what a change of the link raises. b.mu is held.
func (b *Board) linkChanged() {
	b.phy.changed = true
	b.phy.paged[rtlINSR] |= rtlLinkChanged
	b.updateMACInt()
}

// renegotiate lets the cable's ends agree anew.
func (b *Board) renegotiate() {
	b.mu.Lock()
	c := b.cable
	b.mu.Unlock()
	if c != nil {
		c.renegotiate()
		return
	}
	b.setLink(link{}, never)
}
