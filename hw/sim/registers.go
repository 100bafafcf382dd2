package sim

import "fmt"

// AccessKind says how a register behaves as a whole; the masks of its [RegisterSpec] say it bit by bit.
type AccessKind uint8

const (
	AccessRW     AccessKind = iota // reads what was written
	AccessRO                       // writes are breaches of RuleReadOnlyWrite
	AccessW1C                      // writing a one clears a bit
	AccessRC                       // read-only, reading clears
	AccessRWSC                     // read-write with bits that clear themselves
	AccessWO                       // a doorbell: any write acts, reads as zero
	AccessAbsent                   // part of a block that this MAC was made without: reads zero, must not be written
)

func (a AccessKind) String() string {
	switch a {
	case AccessRW:
		return "RW"
	case AccessRO:
		return "RO"
	case AccessW1C:
		return "W1C"
	case AccessRC:
		return "RC"
	case AccessRWSC:
		return "RW/SC"
	case AccessWO:
		return "WO"
	case AccessAbsent:
		return "absent"
	}
	return fmt.Sprintf("AccessKind(%d)", uint8(a))
}

// RegisterSpec describes one register of the simulated MAC.
type RegisterSpec struct {
	Name      string
	Offset    uint32
	Reset     uint32 // value after a reset
	Access    AccessKind
	Writable  uint32 // bits that keep what is written
	SelfClear uint32 // bits that start something and clear themselves
	W1C       uint32 // bits that a written one clears
	ReadClear uint32 // bits that a read clears
	Reserved  uint32 // bits that must be written as zero
	Sync      bool   // crosses into the GMII clock: see RuleWriteTooFast
}

const all32 = 0xFFFFFFFF

// Registers is the register table of an S805's MAC, in the order of the offsets. Absent blocks are not listed.
//
// Sources: the GMAC register documentation in the Intel SoC FPGA hardware library (socal/alt_emac.h, a MAC with the same
// SNPSVER 0x37) and Linux drivers/net/ethernet/stmicro/stmmac/dwmac1000.h, dwmac_dma.h and mmc_core.c.
func Registers() []RegisterSpec {
	t := macRegisters()
	t = append(t, mmcRegisters()...)
	return append(t, dmaRegisters()...)
}

func macRegisters() []RegisterSpec {
	const (
		configBits = 0x0BFFFFFF // without SFTERR (SMII only) and SARC (source address feature)
		filterBits = 0x800107FF // without the layer 3 and 4 filters
	)
	t := []RegisterSpec{
		{Name: "MAC_Configuration", Offset: regConfig, Writable: configBits, Reserved: 1 << 31, Sync: true},
		{Name: "MAC_Frame_Filter", Offset: regFilter, Writable: filterBits, Reserved: 0x7FCEF800, Sync: true},
		{Name: "Hash_Table_High", Offset: regHashHigh, Writable: all32, Sync: true},
		{Name: "Hash_Table_Low", Offset: regHashLow, Writable: all32, Sync: true},
		{Name: "GMII_Address", Offset: regMIIAddress, Access: AccessRWSC, Writable: 0xFFFE, SelfClear: miiGB, Reserved: 0xFFFF0000},
		{Name: "GMII_Data", Offset: regMIIData, Writable: 0xFFFF, Reserved: 0xFFFF0000},
		{Name: "Flow_Control", Offset: regFlowControl, Access: AccessRWSC, Writable: 0xFFFF00BE, SelfClear: flowFCB, Reserved: 0x0000FF40, Sync: true},
		{Name: "VLAN_Tag", Offset: regVLANTag, Writable: 0x0007FFFF, Reserved: 0xFFF00000, Sync: true},
		{Name: "Version", Offset: regVersion, Reset: versionS805, Access: AccessRO},
		{Name: "Debug", Offset: regDebug, Access: AccessRO},
		{Name: "Remote_Wake_Up_Frame_Filter", Offset: regWakeFilter, Writable: all32},
		{Name: "PMT_Control_Status", Offset: regPMT, Access: AccessRWSC, Writable: 0x00000206, SelfClear: pmtPowerDown | pmtFilterReset, ReadClear: pmtMagic | pmtWakeFrame, Reserved: 0x78FFFD98},
		{Name: "LPI_Control_Status", Offset: regLPIControl, Writable: 0x000F0000, ReadClear: 0xF, Reserved: 0xFFF0FCF0},
		{Name: "LPI_Timers_Control", Offset: regLPITimers, Reset: 0x03E80000, Writable: 0x03FFFFFF, Reserved: 0xFC000000},
		{Name: "Interrupt_Status", Offset: regIntStatus, Access: AccessRO},
		{Name: "Interrupt_Mask", Offset: regIntMask, Writable: 0x0000060F, Reserved: 0xFFFFF9F0},
		{Name: "MAC_Address0_High", Offset: regAddress0, Reset: 0x8000FFFF, Writable: 0x0000FFFF, Reserved: 0x7FFF0000, Sync: true},
		{Name: "MAC_Address0_Low", Offset: regAddress0 + 4, Reset: all32, Writable: all32, Sync: true},
	}
	for n := uint32(1); n < maxAddresses; n++ {
		off := regAddress0 + n*addressStride
		t = append(t,
			RegisterSpec{Name: fmt.Sprintf("MAC_Address%d_High", n), Offset: off, Reset: 0x0000FFFF, Writable: 0xFF00FFFF, Reserved: 0x00FF0000, Sync: true},
			RegisterSpec{Name: fmt.Sprintf("MAC_Address%d_Low", n), Offset: off + 4, Reset: all32, Writable: all32, Sync: true})
	}
	return append(t,
		RegisterSpec{Name: "SGMII_RGMII_SMII_Control_Status", Offset: regRGMIIStatus, Access: AccessRO},
		RegisterSpec{Name: "WDog_Timeout", Offset: regWatchdog, Writable: 0x00013FFF, Reserved: 0xFFFEC000})
}

func dmaRegisters() []RegisterSpec {
	const (
		busBits = 0x8FFFFF7E // without ATDS (enhanced descriptors only) and PRWG (AV only)
		opBits  = 0x0721FFFE
	)
	return []RegisterSpec{
		{Name: "Bus_Mode", Offset: regBusMode, Reset: 0x00020101, Access: AccessRWSC, Writable: busBits, SelfClear: busSWR, Reserved: 0x40000080},
		{Name: "Transmit_Poll_Demand", Offset: regTXPoll, Access: AccessWO},
		{Name: "Receive_Poll_Demand", Offset: regRXPoll, Access: AccessWO},
		{Name: "Receive_Descriptor_List_Address", Offset: regRXBase, Writable: all32},
		{Name: "Transmit_Descriptor_List_Address", Offset: regTXBase, Writable: all32},
		{Name: "Status", Offset: regStatus, Access: AccessW1C, W1C: stLatched},
		{Name: "Operation_Mode", Offset: regOpMode, Access: AccessRWSC, Writable: opBits, SelfClear: opFTF, Reserved: 0xF80E0001},
		{Name: "Interrupt_Enable", Offset: regIntEnable, Writable: stLatched, Reserved: 0xFFFE1800},
		{Name: "Missed_Frame_And_Buffer_Overflow_Counter", Offset: regMissed, Access: AccessRC, ReadClear: 0x1FFFFFFF},
		{Name: "Receive_Interrupt_Watchdog_Timer", Offset: regRXWatchdog, Writable: 0xFF, Reserved: 0xFFFFFF00},
		{Name: "AXI_Bus_Mode", Offset: regAXIBusMode, Reset: 0x00110001, Writable: 0xC0FF20FF},
		{Name: "AHB_or_AXI_Status", Offset: regBusStatus, Access: AccessRO},
		{Name: "Current_Host_Transmit_Descriptor", Offset: regTXDesc, Access: AccessRO},
		{Name: "Current_Host_Receive_Descriptor", Offset: regRXDesc, Access: AccessRO},
		{Name: "Current_Host_Transmit_Buffer_Address", Offset: regTXBuffer, Access: AccessRO},
		{Name: "Current_Host_Receive_Buffer_Address", Offset: regRXBuffer, Access: AccessRO},
		{Name: "HW_Feature", Offset: regFeature, Reset: featureS805, Access: AccessRO},
	}
}

// featureS805 is the feature word of the default board. Wake-on-LAN, both checksum engines, MMC and normal descriptors
// are what Odroid-C1 boot logs show; the rest of the word was never published.
const featureS805 = featMII | featGMII | featHalf | featHash | featAddresses | featMDIO | featRemote | featMagic | featMMC |
	featTXCOE | featRXCOE2 | featRXFIFO2K | phyRGMII<<featPHY

// The register file keeps MAC and DMA registers in one slice: word n of the MAC's first 0x900 bytes, then the DMA's.
const (
	macWindow   = 0x0900
	dmaStart    = 0x1000
	dmaEnd      = 0x1060
	windowBytes = 0x10000
	slots       = (macWindow + dmaEnd - dmaStart) / 4
)

// slotOf is the place of a register in the register file.
func slotOf(off uint32) (int, bool) {
	switch {
	case off < macWindow:
		return int(off / 4), true
	case off >= dmaStart && off < dmaEnd:
		return int((macWindow + off - dmaStart) / 4), true
	}
	return 0, false
}

// absentBlocks are documented registers that the S805's MAC was made without, as far as is known: PCS, GPIO, layer 3/4
// filters, extended hash, VLAN insertion, IEEE 1588, addresses 16 to 31.
var absentBlocks = [][2]uint32{{0x00C0, 0x00D4}, {0x00E0, 0x00E0}, {0x0400, 0x04AC}, {0x0500, 0x051C}, {0x0584, 0x0588}, {0x0700, 0x07FC}, {0x0800, 0x087C}}

// registerFile is the table in the form that an access needs.
type registerFile [slots]*RegisterSpec

// newRegisterFile specialises the table for a board.
func newRegisterFile(o *Options) *registerFile {
	f := new(registerFile)
	for _, block := range absentBlocks {
		for off := block[0]; off <= block[1]; off += 4 {
			i, _ := slotOf(off)
			f[i] = &RegisterSpec{Name: fmt.Sprintf("register 0x%04x", off), Offset: off, Access: AccessAbsent}
		}
	}
	for _, r := range Registers() {
		switch r.Offset {
		case regBusMode:
			if o.EnhancedDescriptors {
				r.Writable |= busATDS
				r.Reserved &^= busATDS
			}
		case regOpMode:
			if o.RXFIFOBytes < 4096 {
				r.Writable &^= opEFC | 3<<opRFA | 3<<opRFD
			}
			if o.RXFIFOBytes >= 8192 {
				r.Writable |= opRFD2 | opRFA2
			}
		case regFeature:
			r.Reset = o.feature()
		}
		i, _ := slotOf(r.Offset)
		f[i] = &r
	}
	return f
}
