package hw

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The register map: every name at its documented address (case RST-11).
func TestRST11_RegisterMap(t *testing.T) {
	want := map[string]uint32{
		"MAC_Configuration": 0x0000, "MAC_Frame_Filter": 0x0004, "Hash_Table_High": 0x0008, "Hash_Table_Low": 0x000C,
		"GMII_Address": 0x0010, "GMII_Data": 0x0014, "Flow_Control": 0x0018, "VLAN_Tag": 0x001C, "Version": 0x0020,
		"Debug": 0x0024, "Remote_Wake_Up_Frame_Filter": 0x0028, "PMT_Control_Status": 0x002C, "LPI_Control_Status": 0x0030,
		"LPI_Timers_Control": 0x0034, "Interrupt_Status": 0x0038, "Interrupt_Mask": 0x003C,
		"MAC_Address0_High": 0x0040, "MAC_Address0_Low": 0x0044, "MAC_Address15_High": 0x00B8, "MAC_Address15_Low": 0x00BC,
		"MAC_Address16_High": 0x0800, "MAC_Address31_Low": 0x087C, "AN_Control": 0x00C0, "AN_Status": 0x00C4,
		"SGMII_RGMII_SMII_Control_Status": 0x00D8, "WDog_Timeout": 0x00DC, "GenPIO": 0x00E0,
		"MMC_Control": 0x0100, "MMC_Receive_Interrupt": 0x0104, "MMC_Transmit_Interrupt": 0x0108,
		"MMC_Receive_Interrupt_Mask": 0x010C, "MMC_Transmit_Interrupt_Mask": 0x0110, "txoctetcount_gb": 0x0114,
		"txframecount_gb": 0x0118, "txunderflowerror": 0x0148, "txframecount_g": 0x0168, "txoversize_g": 0x0178,
		"rxframecount_gb": 0x0180, "rxcrcerror": 0x0194, "rxfifooverflow": 0x01D4, "rxctrlframes_g": 0x01E4,
		"MMC_IPC_Receive_Interrupt_Mask": 0x0200, "MMC_IPC_Receive_Interrupt": 0x0208, "rxipv4_gd_frms": 0x0210,
		"rxicmp_err_frms": 0x0244, "rxipv4_gd_octets": 0x0250, "rxicmp_err_octets": 0x0284,
		"Hash_Table_0": 0x0500, "Hash_Table_7": 0x051C, "VLAN_Tag_Inclusion_or_Replacement": 0x0584, "VLAN_Hash_Table": 0x0588,
		"Bus_Mode": 0x1000, "Transmit_Poll_Demand": 0x1004, "Receive_Poll_Demand": 0x1008,
		"Receive_Descriptor_List_Address": 0x100C, "Transmit_Descriptor_List_Address": 0x1010, "Status": 0x1014,
		"Operation_Mode": 0x1018, "Interrupt_Enable": 0x101C, "Missed_Frame_And_Buffer_Overflow_Counter": 0x1020,
		"Receive_Interrupt_Watchdog_Timer": 0x1024, "AXI_Bus_Mode": 0x1028, "AHB_or_AXI_Status": 0x102C,
		"Current_Host_Transmit_Descriptor": 0x1048, "Current_Host_Receive_Descriptor": 0x104C,
		"Current_Host_Transmit_Buffer_Address": 0x1050, "Current_Host_Receive_Buffer_Address": 0x1054, "HW_Feature": 0x1058,
	}
	have := map[string]uint32{}
	last := -4
	for _, r := range RegisterTable() {
		if r.Offset%4 != 0 || int(r.Offset) <= last {
			t.Errorf("%s at 0x%x: not aligned, or not above the one before", r.Name, r.Offset)
		}
		last = int(r.Offset)
		if _, twice := have[r.Name]; twice {
			t.Errorf("two registers are called %s", r.Name)
		}
		have[r.Name] = r.Offset
	}
	for name, off := range want {
		if have[name] != off {
			t.Errorf("%s is at 0x%x, want 0x%x", name, have[name], off)
		}
	}
	if n := len(RegisterTable()); n != 16+64+5+7+8+2+80+17 {
		t.Errorf("%d registers", n)
	}
}

func TestRegisterResetValuesAndAccess(t *testing.T) {
	type line struct {
		Reset  uint32
		Access string
		Acts   bool
	}
	want := map[uint32]line{
		0x0000: {0, "RW", false}, 0x0024: {0, "RO", false}, 0x002C: {0, "RW", true}, 0x0034: {0x03E80000, "RW", false},
		0x0040: {0x8000FFFF, "RW", false}, 0x0044: {0xFFFFFFFF, "RW", false}, 0x0048: {0x0000FFFF, "RW", false},
		0x0104: {0, "RC", true}, 0x010C: {0, "RW", false}, 0x0114: {0, "RO", false}, 0x1000: {0x00020101, "RW", false},
		0x1004: {0, "WO", false}, 0x1014: {0, "W1C", false}, 0x1020: {0, "RC", true}, 0x1028: {0x00110001, "RW", false},
		0x1058: {0, "RO", false},
	}
	for off, w := range want {
		r, ok := LookupRegister(off)
		if got := (line{r.Reset, r.Access.String(), r.ReadActs}); !ok || got != w {
			t.Errorf("0x%04x %s: %+v, want %+v", off, r.Name, got, w)
		}
	}
	if _, ok := LookupRegister(0x0060 + 2); ok {
		t.Error("found a register between two registers")
	}
	table := RegisterTable()
	table[0].Name = "scribbled"
	if r, _ := LookupRegister(0); r.Name == "scribbled" {
		t.Error("callers share the table")
	}
}

// A register value prints as the bits that are set in it, by the vendor's names.
func TestRegisterStrings(t *testing.T) {
	for _, c := range []struct {
		off, v uint32
		want   string
	}{
		{RegMACConfig, 0x00610C0C, "RE TE IPC DM speed=1000 DCRS BE JD"},
		{RegMACConfig, 0x0061CC0C, "RE TE IPC DM speed=100 DCRS BE JD"},
		{RegMACConfig, 0x00618C0C, "RE TE IPC DM speed=10 DCRS BE JD"},
		{RegFrameFilter, 0x00000404, "HMC HPF"},
		{RegFrameFilter, 0x00000081, "PR PCF=2"},
		{RegFrameFilter, 0, "0"},
		{RegMIIAddress, 0x000007D3, "GB GW CR=4 GR=31"},
		{RegFlowControl, 0xFFFF0006, "TFE RFE PT=0xffff"},
		{RegVersion, 0x1037, "DWMAC 3.7 user 0x10"},
		{RegDebug, 0x01080000, "tx-paused tx-fifo"},
		{RegDebug, 0x00000310, "rx-write rx-fifo=full"},
		{RegBusMode, 0x01880400, "PBL=4 RPBL=4 USP 8xPBL"},
		{RegOperationMode, 0x02203306, "SR OSF EFC RFA=1 RFD=2 ST TSF RSF"},
		{RegInterruptEnable, 0x0001A1FB, "TIE TSE TJE OVE UNE RIE RUE RSE FBE AIE NIE"},
		{RegStatus, 0x00660044, "TU RI RS=waiting TS=suspended"},
		{RegStatus, 0x01802000, "FBI RS=stopped TS=stopped EB=3"},
		{RegMissedFrames, 0x10030005, "MISFRMCNT=0x5 MISCNTOVF OVFFRMCNT=0x1 OVFCNTOVF"},
		{RegAddressHigh, 0x80000100, "bytes5:4=0x100 AE"},
		{RegRGMIIStatus, 0xD, "LNKMOD LNKSPEED=1000 LNKSTS"},
		{RegInterruptMask, 0x60F, "RGMII PCSLCH PCSANC PMT TS LPI"},
		{RegFeature, 0x11050903, "MII GMII MDIO MMC TX-COE RX-COE2 enhanced phy=RGMII"},
		{RegLPITimers, 0x03E80000, "LST=0x3e8"},
		{RegAXIBusMode, 0x00110001, "UNDEF RD_OSR_LMT=1 WR_OSR_LMT=1"},
		{RegPMT, 0x80000001, "PWRDWN RWKFILTRST"},
		{RegLPIControl, 1<<16 | 1, "TLPIEN LPIEN"},
		{RegVLANTag, 1<<16 | 7, "VL=0x7 ETV"},
		{RegMMCControl, 9, "CNTRST CNTFREEZ"},
		{RegRXWatchdog, 0xA0, "RIWT=160"},
		{RegBusStatus, 2, "AXIRDSTS"},
		{RegHashLow, 0x10, "0x00000010"},
		{0x118, 12345, "12345"},
		{RegMACConfig, 1 << 31, "speed=1000 +0x80000000"},
	} {
		r, _ := LookupRegister(c.off)
		if got := r.Decode(c.v); got != c.want {
			t.Errorf("%s 0x%08x = %q, want %q", r.Name, c.v, got, c.want)
		}
	}
	for _, c := range []struct{ got, want string }{
		{Feature(0).String(), "absent"},
		{Cause(0xFFFFFFFF).String(), "gone"},
		{LayoutNormal.String() + LayoutEnhanced.String(), "normalenhanced"},
		{CICFull.String() + CIC(9).String(), "fullCIC(9)"},
		{TXSuspended.String() + RXMoving.String() + DMAState(99).String(), "suspendedmoving?"},
		{ChecksumL3Good.String() + Verdict(9).String(), "header good?"},
		{(RXCRC | RXRunt).String() + RXError(0).String(), "crc runtnone"},
		{TXStatus(0x8002).String(), "UF ES"},
		{RXStatus(0x05F20320).String(), "FT LS FS FL=0x5f2"},
		{Access(9).String(), "?"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Names of bits do not overlap, or a decoded word would lie.
func TestFieldsDoNotOverlap(t *testing.T) {
	for name, fields := range map[string][]field{
		"config": macConfigFields, "filter": frameFilterFields, "flow": flowControlFields, "vlan": vlanTagFields, "debug": debugFields,
		"pmt": pmtFields, "lpi": lpiControlFields, "mac interrupt": macInterruptFields, "rgmii": rgmiiStatusFields,
		"bus": busModeFields, "op": operationModeFields, "enable": interruptEnableFields, "axi": axiBusModeFields,
		"feature": featureFields, "cause": causeFields, "tx": txStatusFields, "rx": rxStatusFields, "mii": miiAddressFields,
		"rx error": rxErrorFields,
	} {
		var seen uint32
		for _, f := range fields {
			if f.hi < f.lo || f.hi > 31 || seen&f.mask() != 0 {
				t.Errorf("%s: %s overlaps or is upside down", name, f.name)
			}
			seen |= f.mask()
		}
	}
}

// Burst lengths as the bus mode register wants them; 0x01880400 is 32 beats both ways.
func TestBusMode(t *testing.T) {
	for _, c := range []struct {
		beats   int
		release uint8
		want    BusMode
		ok      bool
	}{
		{1, 0x37, 0x00820100, true}, {4, 0x37, 0x00880400, true}, {8, 0x37, 0x01820100, true}, {16, 0x37, 0x01840200, true},
		{32, 0x37, 0x01880400, true}, {64, 0x37, 0x01900800, true}, {128, 0x37, 0x01A01000, true}, {256, 0x37, 0x01C02000, true},
		{32, 0x34, 0x01900800, true}, {256, 0x34, 0, false},
		{0, 0x37, 0, false}, {3, 0x37, 0, false}, {24, 0x37, 0, false}, {512, 0x37, 0, false}, {12, 0x37, 0, false},
	} {
		if got, ok := busMode(c.beats, c.release); got != c.want || ok != c.ok {
			t.Errorf("busMode(%d, %x) = 0x%08x, %v, want 0x%08x, %v", c.beats, c.release, uint32(got), ok, uint32(c.want), c.ok)
		}
	}
}

// 00:1e:06:c1:00:01 is high 0x80000100 and low 0xC1061E00: the first byte on the wire is the lowest.
func TestAddressWords(t *testing.T) {
	a := [6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}
	high, low := AddressWords(a)
	if high != 0x80000100 || low != 0xC1061E00 {
		t.Errorf("0x%08x 0x%08x", high, low)
	}
	if AddressOf(high, low) != a {
		t.Errorf("back: %x", AddressOf(high, low))
	}
}

func TestMissedFramesOverflowBits(t *testing.T) {
	for _, c := range []struct {
		v                MissedFrames
		missed, overflow uint32
	}{
		{0, 0, 0}, {5, 5, 0}, {0x0001FFFF, 0x1FFFF, 0}, {7 << 17, 0, 7}, {0x1FFE0000, 0, 0xFFF}, {1 << 28, 0, 0x800},
	} {
		if c.v.Missed() != c.missed || c.v.Overflow() != c.overflow {
			t.Errorf("0x%08x: %d %d", uint32(c.v), c.v.Missed(), c.v.Overflow())
		}
	}
}

// The counters' table is complete, in order, and each ends in a field of its own.
func TestCountersTable(t *testing.T) {
	var offs []uint32
	for off := uint32(0x114); off <= 0x284; off += 4 {
		switch off {
		case 0x17C, 0x1E8, 0x1EC, 0x1F0, 0x1F4, 0x1F8, 0x1FC, 0x200, 0x204, 0x208, 0x20C, 0x248, 0x24C:
		default:
			offs = append(offs, off)
		}
	}
	var got []uint32
	fields := map[*uint64]bool{}
	var c Counters
	for _, e := range mmcCounters {
		got = append(got, e.offset)
		fields[e.field(&c)] = true
	}
	if d := cmp.Diff(offs, got); d != "" {
		t.Error(d)
	}
	if len(fields) != len(mmcCounters) {
		t.Errorf("%d counters share %d fields", len(mmcCounters), len(fields))
	}
	var names []string
	for name := range c.All() {
		names = append(names, name)
	}
	if len(names) != len(mmcCounters)+2 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
		t.Errorf("All yields %d names", len(names))
	}
	for range c.All() {
		break // stops when it is told to
	}
}
