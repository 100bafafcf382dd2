package sim

import "fmt"

// Management counters (Linux drivers/net/ethernet/stmicro/stmmac/mmc_core.c, Intel socal/alt_emac.h). They are kept as
// one array: word n is the counter at regMMCTX + 4n.

// Indices of the counters that the engines use, as offsets.
const (
	mmcTXOctetsGB    = 0x114
	mmcTXFramesGB    = 0x118
	mmcTXBroadcast   = 0x11C
	mmcTXMulticast   = 0x120
	mmcTX64          = 0x124 // the first of six size classes
	mmcTXUnicastGB   = 0x13C
	mmcTXMulticastGB = 0x140
	mmcTXBroadcastGB = 0x144
	mmcTXUnderflow   = 0x148
	mmcTXOctets      = 0x164
	mmcTXFrames      = 0x168
	mmcTXPause       = 0x170
	mmcTXVLAN        = 0x174
	mmcTXOversize    = 0x178

	mmcRXFramesGB  = 0x180
	mmcRXOctetsGB  = 0x184
	mmcRXOctets    = 0x188
	mmcRXBroadcast = 0x18C
	mmcRXMulticast = 0x190
	mmcRXCRC       = 0x194
	mmcRXRunt      = 0x19C
	mmcRXJabber    = 0x1A0
	mmcRXUndersize = 0x1A4
	mmcRXOversize  = 0x1A8
	mmcRX64        = 0x1AC // the first of six size classes
	mmcRXUnicast   = 0x1C4
	mmcRXLength    = 0x1C8
	mmcRXRange     = 0x1CC
	mmcRXPause     = 0x1D0
	mmcRXOverflow  = 0x1D4
	mmcRXVLAN      = 0x1D8
	mmcRXWatchdog  = 0x1DC
	mmcRXReceive   = 0x1E0
	mmcRXControl   = 0x1E4

	ipcIPv4          = 0x210
	ipcIPv4Header    = 0x214
	ipcIPv4NoPayload = 0x218
	ipcIPv4Fragment  = 0x21C
	ipcIPv4UDPOff    = 0x220
	ipcIPv6          = 0x224
	ipcIPv6Header    = 0x228
	ipcIPv6NoPayload = 0x22C
	ipcUDP           = 0x230
	ipcUDPError      = 0x234
	ipcTCP           = 0x238
	ipcTCPError      = 0x23C
	ipcICMP          = 0x240
	ipcICMPError     = 0x244
	ipcToOctets      = regIPCOctets - regIPC
)

var mmcTXNames = [...]string{"octetcount_gb", "framecount_gb", "broadcastframes_g", "multicastframes_g", "64octets_gb",
	"65to127octets_gb", "128to255octets_gb", "256to511octets_gb", "512to1023octets_gb", "1024tomaxoctets_gb",
	"unicastframes_gb", "multicastframes_gb", "broadcastframes_gb", "underflowerror", "singlecol_g", "multicol_g",
	"deferred", "latecol", "exesscol", "carriererr", "octetcnt", "framecount_g", "excessdef", "pauseframes",
	"vlanframes_g", "oversize_g"}

var mmcRXNames = [...]string{"framecount_gb", "octetcount_gb", "octetcount_g", "broadcastframes_g", "multicastframes_g",
	"crcerror", "alignmenterror", "runterror", "jabbererror", "undersize_g", "oversize_g", "64octets_gb",
	"65to127octets_gb", "128to255octets_gb", "256to511octets_gb", "512to1023octets_gb", "1024tomaxoctets_gb",
	"unicastframes_g", "lengtherror", "outofrangetype", "pauseframes", "fifooverflow", "vlanframes_gb", "watchdogerror",
	"rcverror", "ctrlframes_g"}

var ipcNames = [...]string{"ipv4_gd", "ipv4_hdrerr", "ipv4_nopay", "ipv4_frag", "ipv4_udsbl", "ipv6_gd", "ipv6_hdrerr",
	"ipv6_nopay", "udp_gd", "udp_err", "tcp_gd", "tcp_err", "icmp_gd", "icmp_err"}

func mmcRegisters() []RegisterSpec {
	t := []RegisterSpec{
		{Name: "MMC_Control", Offset: regMMCControl, Access: AccessRWSC, Writable: 0x12E, SelfClear: mmcReset | mmcPreset, Reserved: 0xFFFFFEC0},
		{Name: "MMC_Receive_Interrupt", Offset: regMMCIntRX, Access: AccessRC, ReadClear: mmcIntBits},
		{Name: "MMC_Transmit_Interrupt", Offset: regMMCIntTX, Access: AccessRC, ReadClear: mmcIntBits},
		{Name: "MMC_Receive_Interrupt_Mask", Offset: regMMCMaskRX, Writable: mmcIntBits},
		{Name: "MMC_Transmit_Interrupt_Mask", Offset: regMMCMaskTX, Writable: mmcIntBits},
	}
	for i, n := range mmcTXNames {
		t = append(t, RegisterSpec{Name: "tx" + n, Offset: regMMCTX + uint32(i)*4, Access: AccessRO})
	}
	for i, n := range mmcRXNames {
		t = append(t, RegisterSpec{Name: "rx" + n, Offset: regMMCRX + uint32(i)*4, Access: AccessRO})
	}
	t = append(t,
		RegisterSpec{Name: "MMC_IPC_Receive_Interrupt_Mask", Offset: regIPCMask, Writable: ipcIntBits},
		RegisterSpec{Name: "MMC_IPC_Receive_Interrupt", Offset: regIPCInt, Access: AccessRC, ReadClear: ipcIntBits})
	for i, n := range ipcNames {
		t = append(t, RegisterSpec{Name: "rx" + n + "_frms", Offset: regIPC + uint32(i)*4, Access: AccessRO})
	}
	for i, n := range ipcNames {
		t = append(t, RegisterSpec{Name: "rx" + n + "_octets", Offset: regIPCOctets + uint32(i)*4, Access: AccessRO})
	}
	return t
}

// Groups of counters with an interrupt register each.
const (
	mmcGroupTX = iota
	mmcGroupRX
	mmcGroupIPC
	mmcGroups
)

// mmc is the counter block. All of it is guarded by the board's lock.
type mmc struct {
	control uint32
	count   [(regIPCOctEnd-regMMCTX)/4 + 1]uint32
	pending [mmcGroups]uint32
	mask    [mmcGroups]uint32
}

// mmcHalf is where a counter raises its interrupt for the first time; it does so again when it wraps.
const mmcHalf = 1 << 31

// mmcBit is the group of a counter and its bit there.
func mmcBit(off uint32) (group int, bit uint32) {
	switch {
	case off <= regMMCTXLast:
		return mmcGroupTX, 1 << ((off - regMMCTX) / 4)
	case off <= regMMCRXLast:
		return mmcGroupRX, 1 << ((off - regMMCRX) / 4)
	case off <= regIPCLast:
		return mmcGroupIPC, 1 << ((off - regIPC) / 4)
	}
	return mmcGroupIPC, 1 << (16 + (off-regIPCOctets)/4)
}

func isCounter(off uint32) bool {
	return off >= regMMCTX && off <= regMMCTXLast || off >= regMMCRX && off <= regMMCRXLast ||
		off >= regIPC && off <= regIPCLast || off >= regIPCOctets && off <= regIPCOctEnd
}

// add counts n more and reports whether an interrupt became pending.
func (m *mmc) add(off, n uint32) bool {
	if m.control&mmcFreeze != 0 {
		return false
	}
	p := &m.count[(off-regMMCTX)/4]
	old := *p
	v := old + n
	if v < old && m.control&mmcStop != 0 {
		v = all32
	}
	*p = v
	if (old^v)&mmcHalf == 0 {
		return false
	}
	group, bit := mmcBit(off)
	m.pending[group] |= bit
	return m.pending[group]&^m.mask[group] != 0
}

// sizeClass is the counter of a frame's length class, given the first of the six; n includes the FCS.
func sizeClass(first uint32, n int) uint32 {
	switch {
	case n <= 64:
		return first
	case n <= 127:
		return first + 4
	case n <= 255:
		return first + 8
	case n <= 511:
		return first + 12
	case n <= 1023:
		return first + 16
	}
	return first + 20
}

// read returns a counter as the CPU sees it: reading takes its interrupt away.
func (m *mmc) read(off uint32) uint32 {
	p := &m.count[(off-regMMCTX)/4]
	v := *p
	if m.control&mmcResetOnRead != 0 {
		*p = 0
	}
	group, bit := mmcBit(off)
	m.pending[group] &^= bit
	return v
}

// setControl handles a write of the control register; frozen keeps the reset bit from clearing itself.
func (m *mmc) setControl(v uint32, frozen bool) {
	m.control = v &^ (mmcReset | mmcPreset)
	switch {
	case v&mmcReset != 0:
		clear(m.count[:])
	case v&mmcPreset != 0:
		// Half or full, less 16 frames or 2048 octets.
		var base uint32 = 0x7FFFFFFF
		if v&mmcPresetLevel != 0 {
			base = all32
		}
		for i := range m.count {
			off := regMMCTX + uint32(i)*4
			switch {
			case !isCounter(off):
			case isOctets(off):
				m.count[i] = base &^ 0x7FF
			default:
				m.count[i] = base &^ 0xF
			}
		}
	}
	if frozen {
		m.control |= v & mmcReset
	}
}

func isOctets(off uint32) bool {
	switch off {
	case mmcTXOctetsGB, mmcTXOctets, mmcRXOctetsGB, mmcRXOctets:
		return true
	}
	return off >= regIPCOctets
}

// Counter returns a management counter by its register offset, without the side effects of a read by the driver, or an
// error if there is none.
func (b *Board) Counter(off uint32) (uint32, error) {
	if off%4 != 0 || !isCounter(off) {
		return 0, fmt.Errorf("sim: no counter at offset 0x%04x", off)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mmc.count[(off-regMMCTX)/4], nil
}
