package hw

import (
	"errors"
	"fmt"
)

// Clause 22 registers and bits (IEEE 802.3 22.2.4; Linux include/uapi/linux/mii.h).
const (
	miiBMCR      = 0
	miiBMSR      = 1
	miiID1       = 2
	miiID2       = 3
	miiAdvertise = 4
	miiPartner   = 5
	miiCtrl1000  = 9
	miiStat1000  = 10

	bmcrSpeed1000 = 1 << 6
	bmcrFull      = 1 << 8
	bmcrIsolate   = 1 << 10
	bmcrPowerDown = 1 << 11
	bmcrAutoneg   = 1 << 12
	bmcrSpeed100  = 1 << 13
	bmcrReset     = 1 << 15

	bmsrLink     = 1 << 2 // latched low: it says "down" once after a drop, however short
	bmsrANDone   = 1 << 5
	bmsrExtended = 1 << 8 // registers 9 and 10 are there

	an10Half    = 1 << 5
	an10Full    = 1 << 6
	an100Half   = 1 << 7
	an100Full   = 1 << 8
	anPause     = 1 << 10
	anAsym      = 1 << 11
	an1000Half  = 1 << 8 // register 9; register 10 has the partner's two bits higher
	an1000Full  = 1 << 9
	an1000Shift = 2
)

// phyState is what is known about the PHY.
type phyState struct {
	addr  int // -1: not found
	id    uint32
	bmcr  uint16
	awake bool // BMCR has neither power-down nor isolate
}

func (s phyState) String() string {
	if s.addr < 0 {
		return "no PHY answers"
	}
	state := "awake"
	switch {
	case s.bmcr&bmcrPowerDown != 0:
		state = "in power-down"
	case s.bmcr&bmcrIsolate != 0:
		state = "isolated"
	}
	return fmt.Sprintf("PHY at address %d, id 0x%08x, BMCR 0x%04x (%s)", s.addr, s.id, s.bmcr, state)
}

// phyID reads the identifier of the PHY at an address. It is false where nothing answers: the bus then reads as ones, and
// some wirings read as zeros.
func (m *MAC) phyID(addr int) (uint32, bool, error) {
	id1, err := m.ReadPHY(addr, miiID1)
	if err != nil {
		return 0, false, err
	}
	id2, err := m.ReadPHY(addr, miiID2)
	if err != nil {
		return 0, false, err
	}
	void := func(v uint16) bool { return v == 0 || v == 0xFFFF }
	return uint32(id1)<<16 | uint32(id2), !void(id1) || !void(id2), nil
}

// ScanPHY finds the MAC's PHY: the one Config.PHY names, or the one that answers at the lowest address. The error matches
// [ErrNoPHY] when there is none. It is what the bus says now, and does not change which PHY LinkStatus asks.
func (m *MAC) ScanPHY() (addr int, id uint32, err error) {
	from, to := 0, phyAddresses
	if m.cfg.PHY == NoPHY {
		to = 0
	} else if a, ok := m.cfg.PHY.fixed(); ok {
		from, to = a, a+1
	}
	for addr := from; addr < to; addr++ {
		id, ok, err := m.phyID(addr)
		if err != nil {
			return -1, 0, err
		}
		if ok {
			return addr, id, nil
		}
	}
	return -1, 0, &Error{Op: "scan for a PHY", Err: ErrNoPHY}
}

// wakePHY finds the PHY and brings it out of power-down and isolation, in which it gives no receive clock; without one a
// software reset of the MAC never ends. It touches a PHY that is awake in no way: the link stays up. A board without a PHY is
// no error.
func (m *MAC) wakePHY() error {
	m.phy = phyState{addr: -1}
	if m.cfg.PHY == NoPHY {
		return nil
	}
	addr, id, err := m.ScanPHY()
	if errors.Is(err, ErrNoPHY) {
		m.clock.Sleep(rescanDelay)
		addr, id, err = m.ScanPHY()
	}
	if errors.Is(err, ErrNoPHY) {
		return nil
	}
	if err != nil {
		return err
	}
	m.phy.addr, m.phy.id = addr, id
	if m.phy.bmcr, err = m.ReadPHY(addr, miiBMCR); err != nil {
		return err
	}
	const asleep = bmcrPowerDown | bmcrIsolate
	if m.phy.awake = m.phy.bmcr&asleep == 0; m.phy.awake {
		return nil
	}
	m.log.Info("waking PHY", "phy", m.phy)
	if err := m.WritePHY(addr, miiBMCR, m.phy.bmcr&^(asleep|bmcrReset)); err != nil {
		return err
	}
	_, err = wait(m.clock, wakeLimit, func() (bool, error) {
		m.phy.bmcr, err = m.ReadPHY(addr, miiBMCR)
		m.phy.awake = m.phy.bmcr&asleep == 0
		return m.phy.awake, err
	})
	if err != nil && !errors.Is(err, ErrTimeout) {
		return err
	}
	// A reset begun before the clock is there may hang for good on some parts, so it gets time to come up. If the PHY did
	// not wake, the reset will say so.
	m.clock.Sleep(wakeSettle)
	return nil
}

// LinkStatus asks the PHY for the state of the link, as clause 22 has it: autonegotiation, with 1000BASE-T, or a forced mode.
// It is false while the link is down, autonegotiation is under way or nothing in common was found. A drop between two calls,
// however short, is reported once, as a link that is down, since the link may have come back as another. With NoPHY it is
// always up, as SetLink set it.
//
// Pause is resolved by IEEE 802.3 table 28B-3 from what both sides advertise, less what the MAC cannot do. The error matches
// [ErrNoPHY], or [ErrTimeout] when the bus hangs.
func (m *MAC) LinkStatus() (Link, bool, error) {
	if m.cfg.PHY == NoPHY {
		return m.Link(), !m.closed.Load(), nil
	}
	m.phyMu.Lock()
	defer m.phyMu.Unlock()
	if m.phyAddr < 0 {
		addr, _, err := m.ScanPHY()
		if err != nil {
			return Link{}, false, err
		}
		m.phyAddr = addr
	}
	p := phyReader{m: m, addr: m.phyAddr}
	latched, now := p.read(miiBMSR), p.read(miiBMSR)
	if p.err != nil {
		return Link{}, false, p.err
	}
	if latched&now == 0xFFFF {
		m.phyAddr, m.phyUp = -1, false // pulled out; look for it anew next time
		return Link{}, false, &Error{Op: "link status", Err: ErrNoPHY}
	}
	up := now&bmsrLink != 0
	if m.phyUp && latched&now&bmsrLink == 0 {
		m.linkDrops.Add(1)
		up = false
	}
	var l Link
	if up {
		l, up = m.resolve(&p, now)
	}
	if p.err != nil {
		return Link{}, false, p.err
	}
	m.phyUp = up
	if !up {
		l = Link{}
	}
	return l, up, nil
}

// LinkDrops is how many times LinkStatus has seen an up link go down, since Open.
func (m *MAC) LinkDrops() uint64 { return m.linkDrops.Load() }

// phyReader reads registers of one PHY and keeps the first error.
type phyReader struct {
	m    *MAC
	addr int
	err  error
}

func (p *phyReader) read(reg int) uint16 {
	if p.err != nil {
		return 0
	}
	var v uint16
	v, p.err = p.m.ReadPHY(p.addr, reg)
	return v
}

// resolve works out the mode of a link that is up.
func (m *MAC) resolve(p *phyReader, bmsr uint16) (Link, bool) {
	bmcr := p.read(miiBMCR)
	if bmcr&bmcrAutoneg == 0 {
		return forcedLink(bmcr), p.err == nil
	}
	if bmsr&bmsrANDone == 0 {
		return Link{}, false
	}
	var gigabit uint16
	if bmsr&bmsrExtended != 0 && m.info.Mode.gigabit() {
		gigabit = p.read(miiCtrl1000) & (p.read(miiStat1000) >> an1000Shift)
	}
	local, partner := p.read(miiAdvertise), p.read(miiPartner)
	l, ok := negotiated(gigabit, local&partner)
	if l.FullDuplex {
		l.TXPause, l.RXPause = ResolvePause(local&anPause != 0, local&anAsym != 0, partner&anPause != 0, partner&anAsym != 0)
		l.TXPause = l.TXPause && m.canPause()
	}
	return l, ok && p.err == nil
}

// forcedLink is the mode that BMCR sets when there is no autonegotiation, and no pause.
func forcedLink(bmcr uint16) Link {
	l := Link{Speed: 10, FullDuplex: bmcr&bmcrFull != 0}
	switch {
	case bmcr&bmcrSpeed1000 != 0:
		l.Speed = 1000
	case bmcr&bmcrSpeed100 != 0:
		l.Speed = 100
	}
	return l
}

// negotiated is the best mode of those in common: gigabit as in register 9, common as in register 4 (IEEE 802.3 28B.3).
func negotiated(gigabit, common uint16) (Link, bool) {
	switch {
	case gigabit&an1000Full != 0:
		return Link{Speed: 1000, FullDuplex: true}, true
	case gigabit&an1000Half != 0:
		return Link{Speed: 1000}, true
	case common&an100Full != 0:
		return Link{Speed: 100, FullDuplex: true}, true
	case common&an100Half != 0:
		return Link{Speed: 100}, true
	case common&an10Full != 0:
		return Link{Speed: 10, FullDuplex: true}, true
	case common&an10Half != 0:
		return Link{Speed: 10}, true
	}
	return Link{}, false
}

// ResolvePause decides which way PAUSE frames are used on a full duplex link, from what this side and its partner advertise
// (IEEE 802.3 table 28B-3): tx is for sending them, rx for obeying them.
func ResolvePause(pause, asym, partnerPause, partnerAsym bool) (tx, rx bool) {
	switch {
	case pause && partnerPause:
		return true, true
	case pause && asym && partnerAsym:
		return false, true
	case asym && partnerPause && partnerAsym:
		return true, false
	}
	return false, false
}
