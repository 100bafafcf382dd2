package phy

import (
	"fmt"
	"strings"
)

// Registers of clause 22. Source: IEEE 802.3-2018 table 22-6; Linux include/uapi/linux/mii.h.
const (
	RegBMCR    = 0  // control
	RegBMSR    = 1  // status
	RegID1     = 2  // identifier
	RegID2     = 3  //
	RegANAR    = 4  // autonegotiation advertisement
	RegANLPAR  = 5  // autonegotiation link partner ability
	RegANER    = 6  // autonegotiation expansion
	RegGBCR    = 9  // 1000BASE-T control
	RegGBSR    = 10 // 1000BASE-T status
	RegMMDCtrl = 13 // MMD access control
	RegMMDData = 14 // MMD access data
	RegESR     = 15 // extended status
)

// BMCR is the control register.
type BMCR uint16

const (
	BMCRSpeed1000  BMCR = 1 << 6 // speed selection, upper bit
	BMCRDuplex     BMCR = 1 << 8
	BMCRRestart    BMCR = 1 << 9 // restart autonegotiation, self-clearing
	BMCRIsolate    BMCR = 1 << 10
	BMCRPowerDown  BMCR = 1 << 11
	BMCRAutoneg    BMCR = 1 << 12
	BMCRSpeed100   BMCR = 1 << 13 // speed selection, lower bit
	BMCRLoopback   BMCR = 1 << 14
	BMCRReset      BMCR = 1 << 15 // self-clearing
	bmcrSpeedMask       = BMCRSpeed1000 | BMCRSpeed100
	bmcrForcedMask      = bmcrSpeedMask | BMCRDuplex | BMCRAutoneg
)

func (v BMCR) String() string {
	return decode(uint16(v), bit(15, "RESET"), bit(14, "LOOPBACK"), bit(13, "SPEED100"), bit(12, "ANENABLE"),
		bit(11, "PDOWN"), bit(10, "ISOLATE"), bit(9, "ANRESTART"), bit(8, "FULLDPLX"), bit(7, "CTST"), bit(6, "SPEED1000"))
}

// forced is the mode that the register makes without autonegotiation.
func (v BMCR) forced() Modes {
	full := v&BMCRDuplex != 0
	switch v & bmcrSpeedMask {
	case BMCRSpeed1000:
		return pick(full, Mode1000Full, Mode1000Half)
	case BMCRSpeed100:
		return pick(full, Mode100Full, Mode100Half)
	case 0:
		return pick(full, Mode10Full, Mode10Half)
	}
	return 0 // both speed bits: reserved
}

// BMSR is the status register. Its link bit latches low: a link that was lost since the last read reads as down once.
type BMSR uint16

const (
	BMSRExtCap   BMSR = 1 << 0
	BMSRLink     BMSR = 1 << 2
	BMSRAutoneg  BMSR = 1 << 3 // able to
	BMSRRemote   BMSR = 1 << 4 // remote fault
	BMSRComplete BMSR = 1 << 5 // autonegotiation complete
	BMSRExtStat  BMSR = 1 << 8 // register 15 exists
	BMSR10Half   BMSR = 1 << 11
	BMSR10Full   BMSR = 1 << 12
	BMSR100Half  BMSR = 1 << 13
	BMSR100Full  BMSR = 1 << 14
)

func (v BMSR) String() string {
	return decode(uint16(v), bit(15, "100BASE-T4"), bit(14, "100FULL"), bit(13, "100HALF"), bit(12, "10FULL"), bit(11, "10HALF"),
		bit(10, "100BASE-T2-FULL"), bit(9, "100BASE-T2-HALF"), bit(8, "ESTATEN"), bit(5, "ANEGCOMPLETE"), bit(4, "RFAULT"),
		bit(3, "ANEGCAPABLE"), bit(2, "LSTATUS"), bit(1, "JCD"), bit(0, "ERCAP"))
}

// dead reports a value that no PHY gives: nobody drives the bus, or the PHY has no supply.
func (v BMSR) dead() bool { return v == 0 || v == 0xffff }

// modes is what the two status registers say that the PHY can do.
func (v BMSR) modes(esr uint16) Modes {
	m := bmsrModes.modes(uint16(v))
	if v&BMSRExtStat != 0 {
		m |= esrModes.modes(esr)
	}
	return m
}

// Extended status.
const (
	esr1000Half = 1 << 12
	esr1000Full = 1 << 13
)

// A modeTable says which bit of a register stands for which mode.
type modeTable []struct {
	bit  uint16
	mode Modes
}

var (
	bmsrModes = modeTable{{uint16(BMSR10Half), Mode10Half}, {uint16(BMSR10Full), Mode10Full},
		{uint16(BMSR100Half), Mode100Half}, {uint16(BMSR100Full), Mode100Full}}
	esrModes = modeTable{{esr1000Half, Mode1000Half}, {esr1000Full, Mode1000Full}}
	advModes = modeTable{{uint16(Adv10Half), Mode10Half}, {uint16(Adv10Full), Mode10Full},
		{uint16(Adv100Half), Mode100Half}, {uint16(Adv100Full), Mode100Full}}
	gbcrModes = modeTable{{gbcr1000Half, Mode1000Half}, {gbcr1000Full, Mode1000Full}}
	gbsrModes = modeTable{{gbsr1000Half, Mode1000Half}, {gbsr1000Full, Mode1000Full}}
)

// modes is what a register's value says, bits the value for modes, mask all bits of the table.
func (t modeTable) modes(v uint16) Modes {
	var m Modes
	for _, e := range t {
		if v&e.bit != 0 {
			m |= e.mode
		}
	}
	return m
}

func (t modeTable) bits(m Modes) uint16 {
	var v uint16
	for _, e := range t {
		if m&e.mode != 0 {
			v |= e.bit
		}
	}
	return v
}

func (t modeTable) mask() uint16 { return t.bits(AllModes) }

// Advertisement is the base page, sent in ANAR and received in ANLPAR (802.3 28.2.4.1.3).
type Advertisement uint16

const (
	AdvSelector  Advertisement = 1 << 0 // IEEE 802.3, the only one there is
	Adv10Half    Advertisement = 1 << 5
	Adv10Full    Advertisement = 1 << 6
	Adv100Half   Advertisement = 1 << 7
	Adv100Full   Advertisement = 1 << 8
	AdvT4        Advertisement = 1 << 9
	AdvPause     Advertisement = 1 << 10
	AdvAsymPause Advertisement = 1 << 11
	AdvFault     Advertisement = 1 << 13
	AdvAck       Advertisement = 1 << 14 // received only
	AdvNextPage  Advertisement = 1 << 15

	advSelectorMask = 0x1f
	advPauseMask    = AdvPause | AdvAsymPause
	advPauseShift   = 10
)

func (v Advertisement) String() string {
	return decode(uint16(v), bit(15, "NPAGE"), bit(14, "LPACK"), bit(13, "RFAULT"), bit(11, "PAUSE_ASYM"), bit(10, "PAUSE_CAP"),
		bit(9, "100BASE-T4"), bit(8, "100FULL"), bit(7, "100HALF"), bit(6, "10FULL"), bit(5, "10HALF"))
}

func (v Advertisement) modes() Modes { return advModes.modes(uint16(v)) }
func (v Advertisement) pause() Pause { return Pause(v & advPauseMask >> advPauseShift) }

// advertise is the base page for m and p. What else the register holds, such as next page ability, stays.
func (v Advertisement) advertise(m Modes, p Pause) Advertisement {
	v &^= Advertisement(advModes.mask()) | AdvT4 | advPauseMask
	if v&advSelectorMask == 0 {
		v |= AdvSelector
	}
	return v | Advertisement(advModes.bits(m)) | Advertisement(p)<<advPauseShift
}

// Autonegotiation expansion.
const anerPartnerAble = 1 << 0 // the link partner autonegotiates

// 1000BASE-T control and status (802.3 40.5.1.1).
const (
	gbcr1000Half = 1 << 8
	gbcr1000Full = 1 << 9

	gbsr1000Half    = 1 << 10
	gbsr1000Full    = 1 << 11
	gbsrMaster      = 1 << 14
	gbsrMasterFault = 1 << 15
)

func gbcrString(v uint16) string {
	return decode(v, bit(12, "ENABLE_MASTER"), bit(11, "AS_MASTER"), bit(10, "MULTIPORT"), bit(9, "1000FULL"), bit(8, "1000HALF"))
}

func gbsrString(v uint16) string {
	return decode(v, bit(15, "1000MSFAIL"), bit(14, "1000MSRES"), bit(13, "1000LOCALRXOK"), bit(12, "1000REMRXOK"),
		bit(11, "1000FULL"), bit(10, "1000HALF"))
}

func pick(first bool, a, b Modes) Modes {
	if first {
		return a
	}
	return b
}

// A named bit of a register, for the String methods.
type named struct {
	n    uint8
	name string
}

func bit(n uint8, name string) named { return named{n, name} }

// decode prints v by the names of its bits, in the order given, and what has no name as a number.
func decode(v uint16, bits ...named) string {
	var s []string
	for _, b := range bits {
		if v&(1<<b.n) != 0 {
			s = append(s, b.name)
			v &^= 1 << b.n
		}
	}
	if v != 0 || s == nil {
		s = append(s, fmt.Sprintf("0x%x", v))
	}
	return strings.Join(s, " ")
}
