package hw

import (
	"fmt"
	"slices"
)

// Access is how a register behaves.
type Access uint8

const (
	AccessRW      Access = iota // reads back what was written; self-clearing bits are said in the register's type
	AccessRO                    // writes have no effect
	AccessW1C                   // writing a one clears the bit
	AccessRC                    // reading clears it
	AccessTrigger               // a write acts, whatever its value; reads zero
)

func (a Access) String() string {
	switch a {
	case AccessRW:
		return "RW"
	case AccessRO:
		return "RO"
	case AccessW1C:
		return "W1C"
	case AccessRC:
		return "RC"
	case AccessTrigger:
		return "WO"
	}
	return "?"
}

// Register describes one register.
type Register struct {
	Name   string // vendor's
	Offset uint32 // from the MAC's base address
	Access Access
	Reset  uint32 // value after a software reset; zero where the configuration decides
	// ReadActs says that reading changes something: it clears bits, acknowledges an interrupt or moves a pointer.
	ReadActs bool
	// Needs are features of which at least one must be there for the register to exist; zero: always.
	Needs Feature

	decode func(uint32) string
}

// Decode prints a value of the register by its fields.
func (r Register) Decode(v uint32) string {
	if r.decode == nil {
		return fmt.Sprint(v)
	}
	return r.decode(v)
}

// present reports whether a core with the feature word f has the register.
func (r Register) present(f Feature) bool { return r.Needs == 0 || f == 0 || f&r.Needs != 0 }

// as makes a decoder of a register type.
func as[T interface {
	~uint32
	String() string
}](v uint32) string {
	return T(v).String()
}

func hex(v uint32) string { return fmt.Sprintf("0x%08x", v) }

// registerTable is every register of the core except IEEE 1588 and the layer 3 and 4 filters, by address. Names, access and
// reset values follow Intel's SoC EMAC documentation (alt_emac.h).
var registerTable = buildTable()

func buildTable() []Register {
	t := []Register{
		{Name: "MAC_Configuration", Offset: RegMACConfig, decode: as[MACConfig]},
		{Name: "MAC_Frame_Filter", Offset: RegFrameFilter, decode: as[FrameFilter]},
		{Name: "Hash_Table_High", Offset: RegHashHigh, Needs: FeatHash, decode: hex},
		{Name: "Hash_Table_Low", Offset: RegHashLow, Needs: FeatHash, decode: hex},
		{Name: "GMII_Address", Offset: RegMIIAddress, decode: as[MIIAddress]},
		{Name: "GMII_Data", Offset: RegMIIData, decode: hex},
		{Name: "Flow_Control", Offset: RegFlowControl, decode: as[FlowControl]},
		{Name: "VLAN_Tag", Offset: RegVLANTag, decode: as[VLANTag]},
		{Name: "Version", Offset: RegVersion, Access: AccessRO, decode: as[Version]},
		{Name: "Debug", Offset: RegDebug, Access: AccessRO, decode: as[Debug]},
		{Name: "Remote_Wake_Up_Frame_Filter", Offset: RegWakeUpFilter, ReadActs: true, Needs: FeatWakeUp, decode: hex},
		{Name: "PMT_Control_Status", Offset: RegPMT, ReadActs: true, Needs: FeatWakeUp | FeatMagic, decode: as[PMTControl]},
		{Name: "LPI_Control_Status", Offset: RegLPIControl, ReadActs: true, Needs: FeatEEE, decode: as[LPIControl]},
		{Name: "LPI_Timers_Control", Offset: RegLPITimers, Reset: 0x03E80000, Needs: FeatEEE, decode: as[LPITimers]},
		{Name: "Interrupt_Status", Offset: RegInterruptStatus, Access: AccessRO, decode: as[MACInterrupt]},
		{Name: "Interrupt_Mask", Offset: RegInterruptMask, decode: as[MACInterrupt]},

		{Name: "AN_Control", Offset: RegPCSControl, Needs: FeatPCS, decode: hex},
		{Name: "AN_Status", Offset: RegPCSStatus, Access: AccessRO, ReadActs: true, Needs: FeatPCS, decode: hex},
		{Name: "SGMII_RGMII_SMII_Control_Status", Offset: RegRGMIIStatus, Access: AccessRO, ReadActs: true, decode: as[RGMIIStatus]},
		{Name: "WDog_Timeout", Offset: RegWatchdogTimeout, decode: hex},
		{Name: "GenPIO", Offset: RegGPIO, ReadActs: true, decode: hex},

		{Name: "MMC_Control", Offset: RegMMCControl, Needs: FeatMMC, decode: as[MMCControl]},
		{Name: "MMC_Receive_Interrupt", Offset: RegMMCRX, Access: AccessRC, ReadActs: true, Needs: FeatMMC, decode: hex},
		{Name: "MMC_Transmit_Interrupt", Offset: RegMMCTX, Access: AccessRC, ReadActs: true, Needs: FeatMMC, decode: hex},
		{Name: "MMC_Receive_Interrupt_Mask", Offset: RegMMCRXMask, Needs: FeatMMC, decode: hex},
		{Name: "MMC_Transmit_Interrupt_Mask", Offset: RegMMCTXMask, Needs: FeatMMC, decode: hex},
		{Name: "MMC_IPC_Receive_Interrupt_Mask", Offset: RegMMCIPCMask, Needs: FeatRXChecksum2, decode: hex},
		{Name: "MMC_IPC_Receive_Interrupt", Offset: RegMMCIPC, Access: AccessRC, ReadActs: true, Needs: FeatRXChecksum2, decode: hex},

		{Name: "VLAN_Tag_Inclusion_or_Replacement", Offset: RegVLANInclude, Needs: FeatVLAN, decode: hex},
		{Name: "VLAN_Hash_Table", Offset: RegVLANHash, Needs: FeatVLAN, decode: hex},

		{Name: "Bus_Mode", Offset: RegBusMode, Reset: 0x00020101, decode: as[BusMode]},
		{Name: "Transmit_Poll_Demand", Offset: RegTXPollDemand, Access: AccessTrigger},
		{Name: "Receive_Poll_Demand", Offset: RegRXPollDemand, Access: AccessTrigger},
		{Name: "Receive_Descriptor_List_Address", Offset: RegRXListBase, decode: hex},
		{Name: "Transmit_Descriptor_List_Address", Offset: RegTXListBase, decode: hex},
		{Name: "Status", Offset: RegStatus, Access: AccessW1C, decode: as[Cause]},
		{Name: "Operation_Mode", Offset: RegOperationMode, decode: as[OperationMode]},
		{Name: "Interrupt_Enable", Offset: RegInterruptEnable, decode: as[InterruptEnable]},
		{Name: "Missed_Frame_And_Buffer_Overflow_Counter", Offset: RegMissedFrames, Access: AccessRC, ReadActs: true, decode: as[MissedFrames]},
		{Name: "Receive_Interrupt_Watchdog_Timer", Offset: RegRXWatchdog, decode: as[RXWatchdogTimer]},
		{Name: "AXI_Bus_Mode", Offset: RegAXIBusMode, Reset: 0x00110001, decode: as[AXIBusMode]},
		{Name: "AHB_or_AXI_Status", Offset: RegBusStatus, Access: AccessRO, decode: as[BusStatus]},
		{Name: "Current_Host_Transmit_Descriptor", Offset: RegCurrentTXDesc, Access: AccessRO, decode: hex},
		{Name: "Current_Host_Receive_Descriptor", Offset: RegCurrentRXDesc, Access: AccessRO, decode: hex},
		{Name: "Current_Host_Transmit_Buffer_Address", Offset: RegCurrentTXBuffer, Access: AccessRO, decode: hex},
		{Name: "Current_Host_Receive_Buffer_Address", Offset: RegCurrentRXBuffer, Access: AccessRO, decode: hex},
		{Name: "HW_Feature", Offset: RegFeature, Access: AccessRO, decode: as[Feature]},
	}
	for n := range maxAddresses {
		high := Register{
			Name: fmt.Sprintf("MAC_Address%d_High", n), Offset: addressOffset(n), Reset: addrHighUnused, decode: as[AddressHigh],
		}
		if n == 0 {
			high.Reset |= uint32(AddrAE)
		} else {
			high.Needs = FeatAddresses
		}
		low := Register{
			Name: fmt.Sprintf("MAC_Address%d_Low", n), Offset: high.Offset + 4, Reset: addrLowUnused, Needs: high.Needs, decode: hex,
		}
		t = append(t, high, low)
	}
	for n := range uint32(hashWords) {
		t = append(t, Register{
			Name: fmt.Sprintf("Hash_Table_%d", n), Offset: RegExtendedHash + 4*n, Needs: FeatExtendedHash, decode: hex,
		})
	}
	for _, c := range mmcCounters {
		r := Register{Name: c.name, Offset: c.offset, Access: AccessRO, Needs: FeatMMC}
		if c.checksumEngine() {
			r.Needs = FeatRXChecksum2
		}
		t = append(t, r)
	}
	slices.SortFunc(t, func(a, b Register) int { return int(a.Offset) - int(b.Offset) })
	return t
}

// maxAddresses is the largest perfect filter there is; hashWords the size of the largest hash table.
const (
	maxAddresses = 32
	hashWords    = 8
)

// addressOffset is the offset of the high word of entry n of the perfect filter.
func addressOffset(n int) uint32 {
	if n < 16 {
		return RegAddressHigh + uint32(n)*addressStride
	}
	return RegAddressHigh16 + uint32(n-16)*addressStride
}

// RegisterTable returns every register that this package knows, by ascending offset.
func RegisterTable() []Register { return slices.Clone(registerTable) }

// LookupRegister finds a register by its offset.
func LookupRegister(offset uint32) (Register, bool) {
	i, ok := slices.BinarySearchFunc(registerTable, offset, func(r Register, o uint32) int { return int(r.Offset) - int(o) })
	if !ok {
		return Register{}, false
	}
	return registerTable[i], true
}

// registerName is the vendor's name of a register, for errors.
func registerName(offset uint32) string {
	if r, ok := LookupRegister(offset); ok {
		return r.Name
	}
	return hex(offset)
}
