package hw

// Offsets of the DMA's registers. Sources: Intel SoC EMAC, alt_emac.h, group dmagrp; Linux
// drivers/net/ethernet/stmicro/stmmac/dwmac_dma.h and dwmac1000.h.
const (
	RegBusMode         = 0x1000
	RegTXPollDemand    = 0x1004
	RegRXPollDemand    = 0x1008
	RegRXListBase      = 0x100C
	RegTXListBase      = 0x1010
	RegStatus          = 0x1014
	RegOperationMode   = 0x1018
	RegInterruptEnable = 0x101C
	RegMissedFrames    = 0x1020
	RegRXWatchdog      = 0x1024
	RegAXIBusMode      = 0x1028
	RegBusStatus       = 0x102C
	RegCurrentTXDesc   = 0x1048
	RegCurrentRXDesc   = 0x104C
	RegCurrentTXBuffer = 0x1050
	RegCurrentRXBuffer = 0x1054
	RegFeature         = 0x1058
)

// pollDemandValue is written to a poll demand register; the write counts, not the value.
const pollDemandValue = 1

// allOnes is what a window reads when its device is gone.
const allOnes = 0xFFFFFFFF

// BusMode is the DMA's bus mode register, 0x1000.
type BusMode uint32

const (
	BusSWR   BusMode = 1 << 0  // software reset, self-clearing when every clock domain has left reset
	BusDA    BusMode = 1 << 1  // fixed priority, receive first
	BusATDS  BusMode = 1 << 7  // 32-byte descriptors
	BusFB    BusMode = 1 << 16 // fixed bursts
	BusUSP   BusMode = 1 << 23 // RPBL differs from PBL
	Bus8xPBL BusMode = 1 << 24 // multiply PBL and RPBL by 8, by 4 before release 3.50
	BusAAL   BusMode = 1 << 25 // address-aligned bursts

	busPBLShift  = 8
	busRPBLShift = 17
)

var busModeFields = []field{
	bit(0, "SWR"), bit(1, "DA"), bits(6, 2, "DSL"), bit(7, "ATDS"), bits(13, 8, "PBL"), bits(15, 14, "PR"), bit(16, "FB"),
	bits(22, 17, "RPBL"), bit(23, "USP"), bit(24, "8xPBL"), bit(25, "AAL"), bit(26, "MB"), bit(27, "TXPR"),
	bits(29, 28, "PRWG"), bit(31, "RIB"),
}

func (v BusMode) String() string { return decode(uint32(v), busModeFields) }

// OperationMode is the DMA's operation mode register, 0x1018.
type OperationMode uint32

const (
	OpSR  OperationMode = 1 << 1  // start receive
	OpOSF OperationMode = 1 << 2  // fetch the second frame before the status of the first
	OpDGF OperationMode = 1 << 5  // drop giants
	OpFUF OperationMode = 1 << 6  // forward undersized good frames
	OpFEF OperationMode = 1 << 7  // forward frames with errors
	OpEFC OperationMode = 1 << 8  // flow control by FIFO level, receive FIFO of 4 KiB or more
	OpST  OperationMode = 1 << 13 // start transmit
	OpFTF OperationMode = 1 << 20 // flush the transmit FIFO, self-clearing
	OpTSF OperationMode = 1 << 21 // transmit store and forward
	OpDFF OperationMode = 1 << 24 // keep received frames when there is no descriptor
	OpRSF OperationMode = 1 << 25 // receive store and forward
	OpDT  OperationMode = 1 << 26 // do not drop frames with a bad TCP/IP checksum

	opRFAShift = 9  // pause when the FIFO is full but for n+1 KiB
	opRFDShift = 11 // resume when it is full but for n+1 KiB
)

var operationModeFields = []field{
	bit(1, "SR"), bit(2, "OSF"), bits(4, 3, "RTC"), bit(5, "DGF"), bit(6, "FUF"), bit(7, "FEF"), bit(8, "EFC"),
	bits(10, 9, "RFA"), bits(12, 11, "RFD"), bit(13, "ST"), bits(16, 14, "TTC"), bit(20, "FTF"), bit(21, "TSF"),
	bit(22, "RFD2"), bit(23, "RFA2"), bit(24, "DFF"), bit(25, "RSF"), bit(26, "DT"),
}

func (v OperationMode) String() string { return decode(uint32(v), operationModeFields) }

// InterruptEnable is the DMA's interrupt enable register, 0x101C. A source interrupts only when its own bit and the one of
// its summary (NIE or AIE) are set.
type InterruptEnable uint32

const (
	IntTIE InterruptEnable = 1 << 0  // frame with IC sent
	IntTSE InterruptEnable = 1 << 1  // transmit stopped
	IntTJE InterruptEnable = 1 << 3  // jabber
	IntOVE InterruptEnable = 1 << 4  // receive FIFO overflow
	IntUNE InterruptEnable = 1 << 5  // transmit underflow
	IntRIE InterruptEnable = 1 << 6  // frame received
	IntRUE InterruptEnable = 1 << 7  // no receive descriptor
	IntRSE InterruptEnable = 1 << 8  // receive stopped
	IntFBE InterruptEnable = 1 << 13 // fatal bus error
	IntAIE InterruptEnable = 1 << 15 // abnormal summary
	IntNIE InterruptEnable = 1 << 16 // normal summary

	// interruptsOn is what a driver wants to be woken for. TUE is not in it: an idle transmitter is suspended.
	interruptsOn = IntNIE | IntAIE | IntFBE | IntRSE | IntRUE | IntRIE | IntUNE | IntOVE | IntTJE | IntTSE | IntTIE
)

var interruptEnableFields = []field{
	bit(0, "TIE"), bit(1, "TSE"), bit(2, "TUE"), bit(3, "TJE"), bit(4, "OVE"), bit(5, "UNE"), bit(6, "RIE"), bit(7, "RUE"),
	bit(8, "RSE"), bit(9, "RWE"), bit(10, "ETE"), bit(13, "FBE"), bit(14, "ERE"), bit(15, "AIE"), bit(16, "NIE"),
}

func (v InterruptEnable) String() string { return decode(uint32(v), interruptEnableFields) }

// MissedFrames is the missed frame and buffer overflow counter, 0x1020. Reading it clears it.
type MissedFrames uint32

// Missed is the number of frames lost for lack of a descriptor. A counter that overflowed counts as one full turn more.
func (v MissedFrames) Missed() uint32 { return uint32(v)&0xFFFF | uint32(v)>>16&1<<16 }

// Overflow is the number of frames lost in the receive FIFO, runts dropped there included.
func (v MissedFrames) Overflow() uint32 { return uint32(v)>>17&0x7FF | uint32(v)>>28&1<<11 }

func (v MissedFrames) String() string {
	return decode(uint32(v), []field{bits(15, 0, "MISFRMCNT"), bit(16, "MISCNTOVF"), bits(27, 17, "OVFFRMCNT"), bit(28, "OVFCNTOVF")})
}

// AXIBusMode is the AXI bus mode register, 0x1028, of cores with an AXI bus.
type AXIBusMode uint32

var axiBusModeFields = []field{
	bit(0, "UNDEF"), bit(1, "BLEN4"), bit(2, "BLEN8"), bit(3, "BLEN16"), bit(4, "BLEN32"), bit(5, "BLEN64"), bit(6, "BLEN128"),
	bit(7, "BLEN256"), bit(12, "AAL"), bit(13, "ONEKBBE"), bits(19, 16, "RD_OSR_LMT"), bits(23, 20, "WR_OSR_LMT"),
	bit(30, "LPI_XIT_FRM"), bit(31, "EN_LPI"),
}

func (v AXIBusMode) String() string { return decode(uint32(v), axiBusModeFields) }

// BusStatus is the AHB or AXI status register, 0x102C.
type BusStatus uint32

func (v BusStatus) String() string {
	return decode(uint32(v), []field{bit(0, "AXWHSTS"), bit(1, "AXIRDSTS")})
}

// RXWatchdogTimer is the receive interrupt watchdog, 0x1024, in units of 256 cycles of the bus clock.
type RXWatchdogTimer uint32

func (v RXWatchdogTimer) String() string { return decode(uint32(v), []field{bits(7, 0, "RIWT")}) }

// busMode composes the bus mode for bursts of beats bus words, both ways. Release is Version.Synopsys. It is false when
// there is no such burst. Up to 32 beats, and from 8 on, the form with the multiplier is used, as Linux does on this family.
func busMode(beats int, release uint8) (BusMode, bool) {
	mult := 8
	if release < versionWatchdog {
		mult = 4
	}
	pbl, v := beats, BusUSP
	if beats >= 8 {
		pbl, v = beats/mult, v|Bus8xPBL
		if pbl*mult != beats {
			return 0, false
		}
	}
	switch pbl {
	case 1, 2, 4, 8, 16, 32:
	default:
		return 0, false
	}
	return v | BusMode(pbl)<<busPBLShift | BusMode(pbl)<<busRPBLShift, true
}
