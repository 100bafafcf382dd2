package sim

import "dwnet/hw"

// Clause 22 registers and bits (IEEE 802.3 clause 22; Linux include/uapi/linux/mii.h).
const (
	miiBMCR   = 0
	miiBMSR   = 1
	miiID1    = 2
	miiID2    = 3
	miiANAR   = 4
	miiANLPAR = 5
	miiANER   = 6
	mii1000C  = 9
	mii1000S  = 10
	miiMMDC   = 13
	miiMMDD   = 14
	miiESR    = 15

	bmcrReset    = 1 << 15
	bmcrSpeed0   = 1 << 13
	bmcrAutoneg  = 1 << 12
	bmcrDown     = 1 << 11
	bmcrIsolate  = 1 << 10
	bmcrRestart  = 1 << 9
	bmcrDuplex   = 1 << 8
	bmcrSpeed1   = 1 << 6
	bmcrWritable = bmcrAutoneg | bmcrDown | bmcrIsolate | bmcrDuplex | bmcrSpeed0 | bmcrSpeed1 | 1<<14

	bmsrAbility = 0x7949 // 10 and 100 half and full, extended status, preamble suppression, autoneg ability, extended capability
	bmsrLink    = 1 << 2
	bmsrDone    = 1 << 5

	an10H        = 1 << 5
	an10F        = 1 << 6
	an100H       = 1 << 7
	an100F       = 1 << 8
	anPause      = 1 << 10
	anAsymPause  = 1 << 11
	anSelector   = 1
	anAck        = 1 << 14
	anDefault    = an10H | an10F | an100H | an100F | anSelector
	c1000H       = 1 << 8
	c1000F       = 1 << 9
	s1000H       = 1 << 10
	s1000F       = 1 << 11
	s1000Local   = 1 << 13 // local receiver fine
	s1000Remote  = 1 << 12 // remote receiver fine
	esr1000      = 0x3000  // 1000BASE-T full and half
	anerDefault  = 0x0D    // partner can autonegotiate, next pages
	partnerAble  = 1
	mmdFunction  = 14 // shift of a 2-bit field
	mmdIncrement = 2
)

// RTL8211F (Linux drivers/net/phy/realtek/realtek_main.c).
const (
	rtlID1 = 0x001C
	rtlID2 = 0xC916

	rtlPageSelect  = 0x1F
	rtlStandard    = 0xA42
	rtlPage43      = 0xA43
	rtlPHYCR1      = rtlPage43<<8 | 0x18
	rtlPHYCR2      = rtlPage43<<8 | 0x19
	rtlPHYSR       = rtlPage43<<8 | 0x1A
	rtlINSR        = rtlPage43<<8 | 0x1D
	rtlTXDelay     = 0xD08<<8 | 0x11
	rtlRXDelay     = 0xD08<<8 | 0x15
	rtlTXDelayBit  = 1 << 8
	rtlRXDelayBit  = 1 << 3
	rtlALDPS       = 1 << 2
	rtlCLKOUT      = 1 << 0
	rtlLinkChanged = 1 << 4
	physrLink      = 1 << 2
	physrDuplex    = 1 << 3
	physrSpeed     = 4 // shift of a 2-bit field
	physrMaster    = 1 << 11
)

// Energy efficient Ethernet, clause 45 registers behind 13 and 14 (Linux include/uapi/linux/mdio.h).
const (
	mmdPCSEEECap  = 3<<16 | 20
	mmdEEEAdv     = 7<<16 | 60
	mmdEEEPartner = 7<<16 | 61
	eeeBoth       = 0x6
)

// phyResetTime is how long BMCR's reset bit stays set.
const phyResetTime = 100_000

// phy is an RTL8211F. It is guarded by the board's lock.
type phy struct {
	b       *Board
	std     [16]uint16
	page    uint16
	paged   map[uint32]uint16
	mmd     map[uint32]uint16
	mmdCtl  uint16
	mmdReg  uint16
	resetAt int64 // when BMCR's reset ends; never while none is under way

	speed   int   // Mbit/s, once up
	full    bool  // duplex
	upAt    int64 // when the link is or was up; never while there is none
	live    bool  // it was seen up, and nothing has happened to it since
	latched bool  // BMSR has a link failure to tell
	lpa     uint16
	gstat   uint16
	eeeLP   uint16
	changed bool // the in-band status has changed and was not read
	relink  bool // autonegotiation must be done, after the lock is released
	timer   hw.Timer
}

func (p *phy) init(b *Board) {
	p.b = b
	p.latched = true
	p.upAt = never
	p.reset()
	if b.opts.PHYPoweredDown {
		p.std[miiBMCR] |= bmcrDown
	}
}

// reset gives every register its value after a hardware reset.
func (p *phy) reset() {
	p.std = [16]uint16{miiBMCR: bmcrAutoneg | bmcrDuplex | bmcrSpeed1, miiID1: rtlID1, miiID2: rtlID2,
		miiANAR: anDefault, mii1000C: c1000F | c1000H, miiESR: esr1000}
	p.page = 0
	p.resetAt = never
	p.paged = map[uint32]uint16{
		rtlPHYCR1: 0, rtlPHYCR2: rtlCLKOUT,
		rtlTXDelay: rtlTXDelayBit, rtlRXDelay: rtlRXDelayBit, // straps
	}
	p.mmd = map[uint32]uint16{mmdPCSEEECap: eeeBoth, mmdEEEAdv: eeeBoth}
	p.mmdCtl, p.mmdReg = 0, 0
}

// stop ends the PHY's timer.
func (p *phy) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// powered reports whether the PHY's clocks run.
func (p *phy) powered() bool {
	f := &p.b.faults
	return !f.phyAbsent.Load() && !f.phyDown.Load() && !f.noRXClock.Load() && p.std[miiBMCR]&(bmcrDown|bmcrIsolate) == 0
}

// rxClock reports whether the MAC gets a receive clock. With ALDPS on, the PHY stops it while there is no link.
func (p *phy) rxClock() bool {
	return p.powered() && (p.up() || p.paged[rtlPHYCR1]&rtlALDPS == 0)
}

// up reports whether there is a link.
func (p *phy) up() bool {
	if !p.live {
		p.live = p.upAt != never && p.b.clock.nanos() >= p.upAt && p.powered()
	}
	return p.live
}

// inBand is the RGMII in-band status that the PHY sends between frames.
func (p *phy) inBand() uint32 {
	if !p.up() {
		return 0
	}
	v := uint32(rgmiiUp) | uint32(speedCode(p.speed))<<rgmiiSpeed
	if p.full {
		v |= rgmiiDuplex
	}
	return v
}

// speedCode is a speed as PHYSR and the in-band status have it.
func speedCode(mbps int) uint16 {
	switch mbps {
	case 1000:
		return 2
	case 100:
		return 1
	}
	return 0
}

// read is an MDIO read of this PHY.
func (p *phy) read(reg uint32) uint16 {
	p.settle()
	if reg == rtlPageSelect {
		return p.page
	}
	if reg < 16 && p.standardPage() {
		return p.readStandard(reg)
	}
	key := p.key(reg)
	switch key {
	case rtlPHYSR:
		return p.physr()
	case rtlINSR:
		v := p.paged[key]
		p.paged[key] = 0
		return v
	}
	return p.paged[key]
}

// standardPage reports whether registers 0 to 15 are the standard ones.
func (p *phy) standardPage() bool { return p.page == 0 || p.page == rtlStandard || p.page == rtlPage43 }

// key is page and register number of a vendor register. Page 0 shows the upper ones of 0xA42 and 0xA43.
func (p *phy) key(reg uint32) uint32 {
	page := uint32(p.page)
	if page == 0 {
		page = rtlStandard
	}
	if page == rtlStandard && reg >= 0x18 {
		page = rtlPage43
	}
	return page<<8 | reg
}

func (p *phy) readStandard(reg uint32) uint16 {
	up := p.up()
	switch reg {
	case miiBMSR:
		v := uint16(bmsrAbility)
		if up && !p.latched {
			v |= bmsrLink
		}
		if up && p.std[miiBMCR]&bmcrAutoneg != 0 {
			v |= bmsrDone
		}
		p.latched = !up
		return v
	case miiANLPAR:
		if !up {
			return 0
		}
		return p.lpa
	case miiANER:
		if !up || p.lpa == 0 {
			return anerDefault &^ partnerAble
		}
		return anerDefault
	case mii1000S:
		if !up {
			return 0
		}
		return p.gstat
	case miiBMCR:
		if p.b.faults.phyDown.Load() {
			return p.std[reg] | bmcrDown
		}
	case miiMMDC:
		return p.mmdCtl
	case miiMMDD:
		return p.mmdAccess(nil)
	}
	return p.std[reg]
}

func (p *phy) physr() uint16 {
	if !p.up() {
		return 0
	}
	v := uint16(physrLink|physrMaster) | speedCode(p.speed)<<physrSpeed
	if p.full {
		v |= physrDuplex
	}
	return v
}

// mmdAccess reads or, with a value, writes through register 14.
func (p *phy) mmdAccess(v *uint16) uint16 {
	if p.mmdCtl>>mmdFunction == 0 {
		if v != nil {
			p.mmdReg = *v
		}
		return p.mmdReg
	}
	key := uint32(p.mmdCtl&31)<<16 | uint32(p.mmdReg)
	if p.mmdCtl>>mmdFunction >= mmdIncrement {
		p.mmdReg++
	}
	if key == mmdEEEPartner {
		if !p.up() {
			return 0
		}
		return p.eeeLP
	}
	if v != nil {
		p.mmd[key] = *v
	}
	return p.mmd[key]
}

// write is an MDIO write of this PHY.
func (p *phy) write(reg uint32, v uint16) {
	p.settle()
	if reg == rtlPageSelect {
		p.page = v
		return
	}
	if reg >= 16 || !p.standardPage() {
		p.paged[p.key(reg)] = v
		return
	}
	switch reg {
	case miiBMCR:
		p.control(v)
	case miiANAR, mii1000C:
		p.std[reg] = v
	case miiMMDC:
		p.mmdCtl = v
	case miiMMDD:
		p.mmdAccess(&v)
	}
}

// control is a write of BMCR.
func (p *phy) control(v uint16) {
	if v&bmcrReset != 0 {
		p.reset()
		p.live = false
		p.resetAt = p.b.clock.nanos() + phyResetTime
		p.relink = true
		return
	}
	old := p.std[miiBMCR]
	p.live = false
	p.std[miiBMCR] = v & bmcrWritable
	if v&bmcrRestart != 0 || (old^v)&bmcrWritable != 0 {
		p.relink = true
	}
}

// settle ends a reset of the PHY.
func (p *phy) settle() {
	if p.resetAt != never && p.b.clock.nanos() >= p.resetAt {
		p.resetAt = never
	}
	p.std[miiBMCR] &^= bmcrReset
	if p.resetAt != never {
		p.std[miiBMCR] |= bmcrReset
	}
}
