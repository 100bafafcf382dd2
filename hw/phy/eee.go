package phy

import (
	"fmt"
	"strings"
)

// EEEModes is a set of link modes with Energy-Efficient Ethernet, bits as in MMD register 7.60 (802.3 table 45-205).
type EEEModes uint16

const (
	EEE100TX EEEModes = 1 << 1
	EEE1000T EEEModes = 1 << 2

	allEEE = EEE100TX | EEE1000T
)

func (m EEEModes) String() string {
	var s []string
	if m&EEE1000T != 0 {
		s = append(s, "1000T")
	}
	if m&EEE100TX != 0 {
		s = append(s, "100TX")
	}
	if rest := m &^ allEEE; rest != 0 {
		s = append(s, fmt.Sprintf("0x%x", uint16(rest)))
	}
	if s == nil {
		return "none"
	}
	return strings.Join(s, " ")
}

// MMD registers (802.3 45.2.3, 45.2.7).
const (
	mmdPCS = 3
	mmdAN  = 7

	pcsControl     = 0
	pcsClockStop   = 1 << 10 // the PHY may stop its receive clock in LPI
	pcsEEEAbility  = 20
	anEEEAdvertise = 60
	anEEEPartner   = 61
)

// EEE is the state of Energy-Efficient Ethernet.
type EEE struct {
	Supported  EEEModes // by the PHY
	Advertised EEEModes
	Partner    EEEModes // advertised by the link partner
	Broken     EEEModes // never advertised, see Options.EEEBroken
	Active     bool     // in use on the present link
}

// EEE reads the state of Energy-Efficient Ethernet.
func (p *PHY) EEE() (e EEE, err error) {
	err = p.do(func(a Access) error {
		e = EEE{Supported: p.eeeAble, Broken: p.opt.EEEBroken}
		if e.Supported == 0 {
			return nil
		}
		if e.Advertised, err = readEEE(a, mmdAN, anEEEAdvertise); err != nil {
			return err
		}
		if e.Partner, err = readEEE(a, mmdAN, anEEEPartner); err != nil {
			return err
		}
		bmsr, _, err := p.link(a)
		if err != nil {
			return err
		}
		s, err := p.status(a, bmsr)
		if err != nil {
			return err
		}
		e.Active = s.Up && s.Complete && s.Link.FullDuplex && e.Advertised&e.Partner&eeeAt(s.Link.Speed) != 0
		return nil
	})
	return e, err
}

// SetEEE changes what is offered of Energy-Efficient Ethernet; 0 turns it off. If that changes the offer, autonegotiation is
// restarted once.
func (p *PHY) SetEEE(m EEEModes) (restarted bool, err error) {
	s := p.Settings()
	s.EEE = m
	return p.Apply(s)
}

// eeeAt is the EEE mode of a speed.
func eeeAt(speed int) EEEModes {
	switch speed {
	case 1000:
		return EEE1000T
	case 100:
		return EEE100TX
	}
	return 0
}

// readEEE reads one of the EEE registers. A PHY without them gives ones, which is none.
func readEEE(a Access, dev int, reg uint16) (EEEModes, error) {
	v, err := a.ReadMMD(dev, reg)
	if v == absent {
		v = 0
	}
	return EEEModes(v) & allEEE, err
}
