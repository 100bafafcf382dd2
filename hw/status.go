package hw

import mathbits "math/bits"

// TXStatus is TDES0 as the DMA wrote it back, the same in both layouts. It is valid in the last descriptor of a frame. Source:
// Linux drivers/net/ethernet/stmicro/stmmac/descs.h.
type TXStatus uint32

const (
	TXDeferred       TXStatus = 1 << 0  // DB, no error
	TXUnderflow      TXStatus = 1 << 1  // UF
	TXExcessDeferral TXStatus = 1 << 2  // ED
	TXExcessColl     TXStatus = 1 << 8  // EC
	TXLateColl       TXStatus = 1 << 9  // LCO
	TXNoCarrier      TXStatus = 1 << 10 // NC
	TXCarrierLost    TXStatus = 1 << 11 // LCA
	TXPayloadSum     TXStatus = 1 << 12 // PCE: payload checksum not inserted
	TXFlushed        TXStatus = 1 << 13 // FF
	TXJabber         TXStatus = 1 << 14 // JT
	TXErrorSummary   TXStatus = 1 << 15 // ES
	TXHeaderSum      TXStatus = 1 << 16 // IHE: IP header checksum not inserted
	txOwn            TXStatus = desOwn

	// txErrors are the bits with which a frame did not go out as it should have. ES is among them: it may come alone.
	txErrors = TXUnderflow | TXExcessDeferral | TXExcessColl | TXLateColl | TXNoCarrier | TXCarrierLost | TXPayloadSum |
		TXFlushed | TXJabber | TXErrorSummary | TXHeaderSum
)

var txStatusFields = []field{
	bit(0, "DB"), bit(1, "UF"), bit(2, "ED"), bits(6, 3, "CC"), bit(7, "VF"), bit(8, "EC"), bit(9, "LCO"), bit(10, "NC"),
	bit(11, "LCA"), bit(12, "PCE"), bit(13, "FF"), bit(14, "JT"), bit(15, "ES"), bit(16, "IHE"), bit(17, "TTSS"),
	bits(30, 18, "control"), bit(31, "OWN"),
}

func (s TXStatus) String() string { return decode(uint32(s), txStatusFields) }

// Own reports that the DMA has the descriptor.
func (s TXStatus) Own() bool { return s&txOwn != 0 }

// Errors are the bits for which the frame counts as lost; zero: it went out.
func (s TXStatus) Errors() TXStatus { return s & txErrors }

// Collisions is the number of collisions before the frame went out. With excessive collisions the field is not valid.
func (s TXStatus) Collisions() int {
	if s&TXExcessColl != 0 {
		return 0
	}
	return int(s >> 3 & 0xF)
}

// RXStatus is RDES0, the same in both layouts with 16-byte descriptors. Source: Linux
// drivers/net/ethernet/stmicro/stmmac/descs.h; for bits 0, 5 and 7 with a type 2 checksum engine, TI SLAU723A (EMAC), RDES0.
type RXStatus uint32

const (
	rxPayloadSum RXStatus = 1 << 0 // PCE, with the checksum engine on
	rxCRC        RXStatus = 1 << 1 // CE
	rxDribble    RXStatus = 1 << 2 // DBE
	rxReceive    RXStatus = 1 << 3 // RE
	rxWatchdog   RXStatus = 1 << 4 // RWT
	rxType       RXStatus = 1 << 5 // FT: EtherType rather than 802.3 length; see Verdict
	rxLateColl   RXStatus = 1 << 6 // LC
	rxHeaderSum  RXStatus = 1 << 7 // IPCE with the checksum engine on, giant frame with it off
	rxLast       RXStatus = 1 << 8
	rxFirst      RXStatus = 1 << 9
	rxVLAN       RXStatus = 1 << 10
	rxOverflow   RXStatus = 1 << 11 // OE
	rxLength     RXStatus = 1 << 12 // LE, for 802.3 length frames
	rxSAFail     RXStatus = 1 << 13
	rxDescriptor RXStatus = 1 << 14 // DE: truncated, the next descriptor was not there
	rxSummary    RXStatus = 1 << 15 // ES
	rxDAFail     RXStatus = 1 << 30
	rxOwn        RXStatus = desOwn

	// rxSuspect are the bits that can mean an error; the ordinary frame has none of them.
	rxSuspect = rxPayloadSum | rxCRC | rxReceive | rxWatchdog | rxLateColl | rxHeaderSum | rxOverflow | rxLength |
		rxDescriptor | rxSummary

	rxLengthShift = 16 // FL, 29:16
	rxLengthMask  = 1<<14 - 1
)

var rxStatusFields = []field{
	bit(0, "PCE"), bit(1, "CE"), bit(2, "DBE"), bit(3, "RE"), bit(4, "RWT"), bit(5, "FT"), bit(6, "LC"), bit(7, "IPCE"),
	bit(8, "LS"), bit(9, "FS"), bit(10, "VLAN"), bit(11, "OE"), bit(12, "LE"), bit(13, "SAF"), bit(14, "DE"), bit(15, "ES"),
	bits(29, 16, "FL"), bit(30, "AFM"), bit(31, "OWN"),
}

func (s RXStatus) String() string { return decode(uint32(s), rxStatusFields) }

// Own reports that the DMA has the descriptor.
func (s RXStatus) Own() bool { return s&rxOwn != 0 }

// First and Last report that the descriptor begins and ends a frame.
func (s RXStatus) First() bool { return s&rxFirst != 0 }
func (s RXStatus) Last() bool  { return s&rxLast != 0 }

// FrameBytes is the length of the whole frame with its FCS, valid in the last descriptor. With ACS and CST off, as here, the
// MAC never strips the FCS.
func (s RXStatus) FrameBytes() int { return int(s >> rxLengthShift & rxLengthMask) }

// Verdict is what the receive checksum engine found out about a frame.
type Verdict uint8

const (
	// ChecksumUnknown: not IP, or the engine is off or did not look.
	ChecksumUnknown Verdict = iota
	// ChecksumGood: IP, no error found. The engine looks into TCP, UDP and ICMP behind at most one VLAN tag. It does not
	// check fragments, and a UDP datagram without a checksum is no error.
	ChecksumGood
	// ChecksumBadL3: IP header checksum, version or length wrong.
	ChecksumBadL3
	// ChecksumBadL4: checksum or length of TCP, UDP or ICMP wrong.
	ChecksumBadL4
	// ChecksumL3Good: the IP header is right, the payload was not looked at.
	ChecksumL3Good
)

func (v Verdict) String() string {
	switch v {
	case ChecksumUnknown:
		return "unknown"
	case ChecksumGood:
		return "good"
	case ChecksumBadL3:
		return "bad header"
	case ChecksumBadL4:
		return "bad payload"
	case ChecksumL3Good:
		return "header good"
	}
	return "?"
}

// rxVerdicts is the meaning of FT, IPCE and PCE, in this order from the high bit, with a type 2 engine and 16-byte
// descriptors (TI SLAU723A, EMAC, RDES0 checksum status). FT is not the frame's type here: clear means "bypassed".
var rxVerdicts = [8]Verdict{
	0b000: ChecksumUnknown, // 802.3 length frame
	0b001: ChecksumL3Good,  // IP, payload of an unsupported type
	0b010: ChecksumUnknown, // reserved
	0b011: ChecksumUnknown, // neither IPv4 nor IPv6
	0b100: ChecksumGood,
	0b101: ChecksumBadL4,
	0b110: ChecksumBadL3,
	0b111: ChecksumBadL3,
}

// Verdict decodes the checksum status; engine says whether a type 2 engine is on.
func (s RXStatus) Verdict(engine bool) Verdict {
	if !engine {
		return ChecksumUnknown
	}
	return rxVerdicts[when(s&rxType != 0, 0b100)|when(s&rxHeaderSum != 0, 0b010)|when(s&rxPayloadSum != 0, 0b001)]
}

// RXError is a set of reasons why a received frame must not be used; zero for a good frame.
type RXError uint32

const (
	RXTooLong     RXError = 1 << iota // larger than a slot; it lies in several
	RXBroken                          // slots without a first or a last one
	RXTruncated                       // DE: descriptors ran out in the middle of it
	RXFIFO                            // OE: damaged by a FIFO overflow
	RXCut                             // RWT: cut by the receive watchdog
	RXReceive                         // RE: the PHY signalled an error
	RXLateColl                        // LC: late collision
	RXCRC                             // CE: FCS wrong
	RXGiant                           // GF: longer than the standard allows; only told with the checksum engine off
	RXRunt                            // shorter than an Ethernet header
	RXBadLength                       // its length does not fit its slot: the descriptor lies
	RXLength                          // LE: 802.3 length field wrong
	RXHeaderSum                       // IP header checksum wrong
	RXPayloadSum                      // TCP, UDP or ICMP checksum wrong
	RXOther                           // error summary alone
	rxErrorsCount = iota
)

var rxErrorFields = []field{
	bit(0, "too-long"), bit(1, "broken"), bit(2, "truncated"), bit(3, "fifo-overflow"), bit(4, "watchdog"),
	bit(5, "receive-error"), bit(6, "late-collision"), bit(7, "crc"), bit(8, "giant"), bit(9, "runt"), bit(10, "bad-length"),
	bit(11, "802.3-length"), bit(12, "ip-header-checksum"), bit(13, "payload-checksum"), bit(14, "other"),
}

func (e RXError) String() string {
	if e == 0 {
		return "none"
	}
	return decode(uint32(e), rxErrorFields)
}

// first is the number of the lowest bit of e, its main reason; e is not zero.
func (e RXError) first() int { return mathbits.TrailingZeros32(uint32(e)) }

// Errors are the errors that the status of a frame's last descriptor shows by itself; what its length and its slots show is
// added by the ring. The engine's errors are taken from the verdict, as the error summary does not cover them everywhere.
func (s RXStatus) Errors(engine bool) RXError {
	if s&rxSuspect == 0 {
		return 0
	}
	var e RXError
	for _, m := range [...]struct {
		bit RXStatus
		err RXError
	}{
		{rxDescriptor, RXTruncated}, {rxOverflow, RXFIFO}, {rxWatchdog, RXCut}, {rxReceive, RXReceive},
		{rxLateColl, RXLateColl}, {rxCRC, RXCRC},
	} {
		if s&m.bit != 0 {
			e |= m.err
		}
	}
	if s&rxLength != 0 && s&rxType == 0 {
		e |= RXLength
	}
	if !engine {
		if s&rxHeaderSum != 0 {
			e |= RXGiant
		}
	} else if s&rxType != 0 {
		if s&rxHeaderSum != 0 {
			e |= RXHeaderSum
		}
		if s&rxPayloadSum != 0 {
			e |= RXPayloadSum
		}
	}
	if e == 0 && s&rxSummary != 0 {
		e = RXOther
	}
	return e
}
