package hw

import "fmt"

// Offsets of the MAC's registers from its base address. Sources for names, bits and reset values: the register
// documentation of Intel's SoC EMAC, which is the same 3.7 generation (intel-socfpga-hwlib, alt_emac.h, group gmacgrp), and
// Linux drivers/net/ethernet/stmicro/stmmac/dwmac1000.h.
const (
	RegMACConfig       = 0x0000
	RegFrameFilter     = 0x0004
	RegHashHigh        = 0x0008
	RegHashLow         = 0x000C
	RegMIIAddress      = 0x0010
	RegMIIData         = 0x0014
	RegFlowControl     = 0x0018
	RegVLANTag         = 0x001C
	RegVersion         = 0x0020
	RegDebug           = 0x0024
	RegWakeUpFilter    = 0x0028
	RegPMT             = 0x002C
	RegLPIControl      = 0x0030
	RegLPITimers       = 0x0034
	RegInterruptStatus = 0x0038
	RegInterruptMask   = 0x003C
	RegAddressHigh     = 0x0040 // entries 0 to 15, 8 apart, each followed by its low word
	RegAddressLow      = 0x0044
	RegPCSControl      = 0x00C0 // TBI and SGMII only
	RegPCSStatus       = 0x00C4
	RegRGMIIStatus     = 0x00D8
	RegWatchdogTimeout = 0x00DC
	RegGPIO            = 0x00E0
	RegExtendedHash    = 0x0500 // 8 words, only with the extended hash table
	RegVLANInclude     = 0x0584
	RegVLANHash        = 0x0588
	RegAddressHigh16   = 0x0800 // entries 16 to 31, where there are 32
)

// addressStride is the distance between two entries of the perfect filter.
const addressStride = 8

// MACConfig is the MAC configuration register, 0x0000.
type MACConfig uint32

const (
	ConfRE    MACConfig = 1 << 2  // receiver enable
	ConfTE    MACConfig = 1 << 3  // transmitter enable
	ConfDC    MACConfig = 1 << 4  // deferral check
	ConfACS   MACConfig = 1 << 7  // strip pad and FCS of 802.3 length frames; corrupts frames with switch tags, never set
	ConfLUD   MACConfig = 1 << 8  // link up in in-band signalling
	ConfDR    MACConfig = 1 << 9  // no retry after a collision
	ConfIPC   MACConfig = 1 << 10 // receive checksum engine
	ConfDM    MACConfig = 1 << 11 // full duplex
	ConfLM    MACConfig = 1 << 12 // loopback at the GMII
	ConfDO    MACConfig = 1 << 13 // do not receive own frames (half duplex)
	ConfFES   MACConfig = 1 << 14 // 100 rather than 10 Mbit/s, with PS
	ConfPS    MACConfig = 1 << 15 // MII (10/100) rather than GMII
	ConfDCRS  MACConfig = 1 << 16 // no carrier sense errors
	ConfJE    MACConfig = 1 << 20 // frames up to 9018 bytes are no giants
	ConfBE    MACConfig = 1 << 21 // frame bursting (1000 half duplex)
	ConfJD    MACConfig = 1 << 22 // no transmit jabber limit at 2048 bytes
	ConfWD    MACConfig = 1 << 23 // no receive limit at 2048 bytes
	ConfTC    MACConfig = 1 << 24 // transmit in-band configuration
	ConfCST   MACConfig = 1 << 25 // strip the FCS of type frames
	Conf2KPE  MACConfig = 1 << 27 // frames up to 2000 bytes are no giants
	confSpeed           = ConfPS | ConfFES
)

var macConfigFields = []field{
	bits(1, 0, "PRELEN"), bit(2, "RE"), bit(3, "TE"), bit(4, "DC"), bits(6, 5, "BL"), bit(7, "ACS"), bit(8, "LUD"),
	bit(9, "DR"), bit(10, "IPC"), bit(11, "DM"), bit(12, "LM"), bit(13, "DO"),
	bits(15, 14, "speed", "1000", "", "10", "100"), // FES and PS
	bit(16, "DCRS"), bits(19, 17, "IFG"), bit(20, "JE"), bit(21, "BE"), bit(22, "JD"), bit(23, "WD"), bit(24, "TC"),
	bit(25, "CST"), bit(26, "SFTERR"), bit(27, "2KPE"), bits(30, 28, "SARC"),
}

func (v MACConfig) String() string { return decode(uint32(v), macConfigFields) }

// FrameFilter is the frame filter register, 0x0004.
type FrameFilter uint32

const (
	FiltPR      FrameFilter = 1 << 0  // promiscuous
	FiltHUC     FrameFilter = 1 << 1  // unicast by hash
	FiltHMC     FrameFilter = 1 << 2  // multicast by hash
	FiltPM      FrameFilter = 1 << 4  // all multicast
	FiltDBF     FrameFilter = 1 << 5  // drop broadcast
	FiltPCFAll  FrameFilter = 2 << 6  // pass control frames even when they fail the filter
	FiltHPF     FrameFilter = 1 << 10 // hash or perfect match passes
	FiltRA      FrameFilter = 1 << 31 // receive all, the filter's result only reported
	filtPCFMask             = 3 << 6
)

var frameFilterFields = []field{
	bit(0, "PR"), bit(1, "HUC"), bit(2, "HMC"), bit(3, "DAIF"), bit(4, "PM"), bit(5, "DBF"), bits(7, 6, "PCF"),
	bit(8, "SAIF"), bit(9, "SAF"), bit(10, "HPF"), bit(16, "VTFE"), bit(20, "IPFE"), bit(21, "DNTU"), bit(31, "RA"),
}

func (v FrameFilter) String() string { return decode(uint32(v), frameFilterFields) }

// FlowControl is the flow control register, 0x0018.
type FlowControl uint32

const (
	FlowFCB     FlowControl = 1 << 0 // sending a PAUSE frame, self-clearing
	FlowTFE     FlowControl = 1 << 1 // send PAUSE frames
	FlowRFE     FlowControl = 1 << 2 // obey received PAUSE frames
	FlowUP      FlowControl = 1 << 3 // also unicast ones
	FlowDZPQ    FlowControl = 1 << 7 // no zero-quanta PAUSE when the FIFO drains
	flowPTShift             = 16     // pause time in slots of 512 bit times
)

var flowControlFields = []field{
	bit(0, "FCB"), bit(1, "TFE"), bit(2, "RFE"), bit(3, "UP"), bits(5, 4, "PLT"), bit(7, "DZPQ"), bits(31, 16, "PT"),
}

func (v FlowControl) String() string { return decode(uint32(v), flowControlFields) }

// VLANTag is the VLAN tag register, 0x001C.
type VLANTag uint32

var vlanTagFields = []field{bits(15, 0, "VL"), bit(16, "ETV"), bit(17, "VTIM"), bit(18, "ESVL"), bit(19, "VTHM")}

func (v VLANTag) String() string { return decode(uint32(v), vlanTagFields) }

// Version is the version register, 0x0020.
type Version uint32

// Synopsys is the release of the core in BCD: 0x37 is 3.7.
func (v Version) Synopsys() uint8 { return uint8(v) }

// User is the number the chip's maker chose: 0x10 on Meson8b, 0x11 on GXBB.
func (v Version) User() uint8 { return uint8(v >> 8) }

func (v Version) String() string {
	return fmt.Sprintf("DWMAC %d.%d user 0x%02x", v.Synopsys()>>4, v.Synopsys()&0xF, v.User())
}

// versionWatchdog is the first release with the receive interrupt watchdog and with a PBL multiplier of 8 rather than 4
// (Linux stmmac_main.c, DWMAC_CORE_3_50).
const versionWatchdog = 0x35

// Debug is the debug register, 0x0024: what the MAC's engines and FIFOs are doing. All zero is idle. It means something
// only while all clocks run.
type Debug uint32

const (
	DebugRXProtocol Debug = 1 << 0  // receive protocol engine active
	DebugTXProtocol Debug = 1 << 16 // transmit protocol engine active
	DebugTXPaused   Debug = 1 << 19 // held by a received PAUSE frame
	DebugTXWrite    Debug = 1 << 22 // TX FIFO being written
	DebugTXFIFO     Debug = 1 << 24 // TX FIFO not empty

	debugRXFIFO = 1<<4 | 3<<5 | 3<<8                                                         // write and read controller, fill level
	debugTX     = uint32(DebugTXProtocol) | 3<<17 | 3<<20 | uint32(DebugTXWrite|DebugTXFIFO) // transmitter not drained
)

var debugFields = []field{
	bit(0, "rx-protocol"), bits(2, 1, "rx-frame"), bit(4, "rx-write"),
	bits(6, 5, "rx-read", "", "data", "status", "flush"),
	bits(9, 8, "rx-fifo", "", "low", "high", "full"),
	bit(16, "tx-protocol"), bits(18, 17, "tx-frame", "", "wait", "pause", "transfer"), bit(19, "tx-paused"),
	bits(21, 20, "tx-read", "", "read", "wait", "write"), bit(22, "tx-write"), bit(24, "tx-fifo"), bit(25, "tx-status-full"),
}

func (v Debug) String() string { return decode(uint32(v), debugFields) }

// PausedByPeer reports that the transmitter obeys a PAUSE frame: it stands still and is not broken.
func (v Debug) PausedByPeer() bool { return v&DebugTXPaused != 0 && !v.gone() }

// TXIdle reports that nothing is left in the transmit FIFO nor on its way to the wire.
func (v Debug) TXIdle() bool { return uint32(v)&debugTX == 0 }

// RXEmpty reports that nothing is left in the receive FIFO.
func (v Debug) RXEmpty() bool { return uint32(v)&debugRXFIFO == 0 }

func (v Debug) gone() bool { return uint32(v) == allOnes }

// PMTControl is the power management register, 0x002C. Reading it clears what it received.
type PMTControl uint32

var pmtFields = []field{
	bit(0, "PWRDWN"), bit(1, "MGKPKTEN"), bit(2, "RWKPKTEN"), bit(5, "MGKPRCVD"), bit(6, "RWKPRCVD"), bit(9, "GLBLUCAST"),
	bits(26, 24, "RWKPTR"), bit(31, "RWKFILTRST"),
}

func (v PMTControl) String() string { return decode(uint32(v), pmtFields) }

// LPIControl is the low power idle register, 0x0030. Reading it clears its events.
type LPIControl uint32

var lpiControlFields = []field{
	bit(0, "TLPIEN"), bit(1, "TLPIEX"), bit(2, "RLPIEN"), bit(3, "RLPIEX"), bit(8, "TLPIST"), bit(9, "RLPIST"),
	bit(16, "LPIEN"), bit(17, "PLS"), bit(18, "PLSEN"), bit(19, "LPITXA"),
}

func (v LPIControl) String() string { return decode(uint32(v), lpiControlFields) }

// LPITimers is the timer register of low power idle, 0x0034: LST in milliseconds, TWT in microseconds.
type LPITimers uint32

func (v LPITimers) String() string {
	return decode(uint32(v), []field{bits(15, 0, "TWT"), bits(25, 16, "LST")})
}

// MACInterrupt is the MAC's interrupt status, 0x0038, and, with a set bit meaning masked, its mask, 0x003C.
type MACInterrupt uint32

const (
	MACIntRGMII MACInterrupt = 1 << 0
	MACIntLink  MACInterrupt = 1 << 1 // PCS link
	MACIntAN    MACInterrupt = 1 << 2 // PCS autonegotiation
	MACIntPMT   MACInterrupt = 1 << 3
	MACIntTS    MACInterrupt = 1 << 9
	MACIntLPI   MACInterrupt = 1 << 10

	// macIntMaskAll masks every source that can be masked here; those of the MMC have registers of their own.
	macIntMaskAll = MACIntRGMII | MACIntLink | MACIntAN | MACIntPMT | MACIntTS | MACIntLPI
)

var macInterruptFields = []field{
	bit(0, "RGMII"), bit(1, "PCSLCH"), bit(2, "PCSANC"), bit(3, "PMT"), bit(4, "MMC"), bit(5, "MMCRX"), bit(6, "MMCTX"),
	bit(7, "MMCRXIPC"), bit(9, "TS"), bit(10, "LPI"), bit(11, "GPI"),
}

func (v MACInterrupt) String() string { return decode(uint32(v), macInterruptFields) }

// AddressHigh is the upper word of an entry of the perfect filter, 0x0040 + 8n.
type AddressHigh uint32

const (
	AddrAE AddressHigh = 1 << 31 // entry in use; always set in entry 0
	AddrSA AddressHigh = 1 << 30 // compare with the source address

	addrHighUnused = 0x0000FFFF // reset values of entries 1 and up
	addrLowUnused  = 0xFFFFFFFF
)

func (v AddressHigh) String() string {
	return decode(uint32(v), []field{bits(15, 0, "bytes5:4"), bits(29, 24, "MBC"), bit(30, "SA"), bit(31, "AE")})
}

// AddressWords is the station address a as the two words of a filter entry, in use: the first byte on the wire is the
// lowest of the low word (Linux dwmac_lib.c, stmmac_set_mac_addr).
func AddressWords(a [6]byte) (high, low uint32) {
	high = uint32(AddrAE) | uint32(a[5])<<8 | uint32(a[4])
	low = uint32(a[3])<<24 | uint32(a[2])<<16 | uint32(a[1])<<8 | uint32(a[0])
	return high, low
}

// AddressOf is the address in the two words of a filter entry, the inverse of [AddressWords].
func AddressOf(high, low uint32) [6]byte {
	return [6]byte{byte(low), byte(low >> 8), byte(low >> 16), byte(low >> 24), byte(high), byte(high >> 8)}
}

// RGMIIStatus is what the PHY says in-band over RGMII, 0x00D8. Reading it acknowledges the link change interrupt.
type RGMIIStatus uint32

var rgmiiStatusFields = []field{
	bit(0, "LNKMOD"), bits(2, 1, "LNKSPEED", "10", "100", "1000"), bit(3, "LNKSTS"), bit(4, "JABTO"), bit(5, "FALSECARDET"),
	bit(16, "SMIDRXS"),
}

func (v RGMIIStatus) String() string { return decode(uint32(v), rgmiiStatusFields) }
