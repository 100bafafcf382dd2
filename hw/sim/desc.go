package sim

// Descriptor layouts (Linux drivers/net/ethernet/stmicro/stmmac/descs.h, norm_desc.c, enh_desc.c). Every descriptor has
// four words that matter here, DES0 to DES3; with ATDS four more follow.

const descOWN = 1 << 31

// Transmit status, in both layouts.
const (
	txUF  = 1 << 1  // underflow
	txVF  = 1 << 7  // VLAN frame
	txPCE = 1 << 12 // payload checksum error
	txFF  = 1 << 13 // flushed
	txJT  = 1 << 14 // jabber time-out
	txES  = 1 << 15 // error summary
	txIHE = 1 << 16 // IP header error

	txStatusMask = 1<<18 - 1
)

// Normal transmit descriptor, TDES1.
const (
	ntSize  = 0x7FF
	ntSize2 = 11 // shift
	ntDP    = 1 << 23
	ntTCH   = 1 << 24
	ntTER   = 1 << 25
	ntDC    = 1 << 26
	ntCIC   = 27 // shift of a 2-bit field
	ntFS    = 1 << 29
	ntLS    = 1 << 30
	ntIC    = 1 << 31
)

// Enhanced transmit descriptor, TDES0.
const (
	etTCH = 1 << 20
	etTER = 1 << 21
	etCIC = 22 // shift of a 2-bit field
	etDP  = 1 << 26
	etDC  = 1 << 27
	etFS  = 1 << 28
	etLS  = 1 << 29
	etIC  = 1 << 30

	edSize  = 0x1FFF
	edSize2 = 16 // shift
)

// Receive descriptor, RDES1, normal and enhanced.
const (
	nrRCH = 1 << 24
	nrRER = 1 << 25
	rxDIC = 1 << 31
	erRCH = 1 << 14
	erRER = 1 << 15
)

// Receive status, RDES0.
const (
	rxPCE    = 1 << 0 // payload checksum error; "extended status valid" with ATDS
	rxCE     = 1 << 1
	rxRE     = 1 << 3
	rxRWT    = 1 << 4
	rxFT     = 1 << 5
	rxIPCE   = 1 << 7
	rxLS     = 1 << 8
	rxFS     = 1 << 9
	rxVLAN   = 1 << 10
	rxOE     = 1 << 11
	rxLE     = 1 << 12
	rxSAF    = 1 << 13
	rxDE     = 1 << 14
	rxES     = 1 << 15
	rxFL     = 16 // shift of a 14-bit field
	rxFLMask = 0x3FFF << rxFL
	rxAFM    = 1 << 30
)

// Extended receive status, RDES4 (ATDS).
const (
	extUDP      = 1
	extTCP      = 2
	extICMP     = 3
	extIPHE     = 1 << 3
	extIPPE     = 1 << 4
	extBypassed = 1 << 5
	extIPv4     = 1 << 6
	extIPv6     = 1 << 7
)

// layout says which descriptors the board uses.
type layout struct {
	enhanced bool
	words    int    // of one descriptor: 4, or 8 with ATDS
	stride   uint32 // bytes to the next one of a ring
}

// layout reads the descriptor format out of the bus mode register. b.mu is held.
func (b *Board) layout() layout {
	mode := b.reg[mustSlot(regBusMode)]
	l := layout{enhanced: b.opts.EnhancedDescriptors, words: 4}
	if mode&busATDS != 0 {
		l.words = 8
	}
	l.stride = uint32(l.words*4) + mode>>busDSL&31*uint32(b.opts.BusBytes)
	return l
}

// txDesc is a decoded transmit descriptor.
type txDesc struct {
	first, last, ic, chained, end bool
	noPad, noCRC                  bool
	cic                           uint32
	n1, n2                        int
	stale                         uint32 // bits that should be zero
}

func (l layout) decodeTX(d0, d1 uint32) txDesc {
	if l.enhanced {
		return txDesc{
			first: d0&etFS != 0, last: d0&etLS != 0, ic: d0&etIC != 0, chained: d0&etTCH != 0, end: d0&etTER != 0,
			noPad: d0&etDP != 0, noCRC: d0&etDC != 0, cic: d0 >> etCIC & 3,
			n1: int(d1 & edSize), n2: int(d1 >> edSize2 & edSize), stale: d0 & txStatusMask,
		}
	}
	return txDesc{
		first: d1&ntFS != 0, last: d1&ntLS != 0, ic: d1&ntIC != 0, chained: d1&ntTCH != 0, end: d1&ntTER != 0,
		noPad: d1&ntDP != 0, noCRC: d1&ntDC != 0, cic: d1 >> ntCIC & 3,
		n1: int(d1 & ntSize), n2: int(d1 >> ntSize2 & ntSize), stale: d0 &^ descOWN,
	}
}

// txDone is DES0 of a transmit descriptor that is given back.
func (l layout) txDone(d0, status uint32) uint32 {
	if l.enhanced {
		return d0&^(descOWN|txStatusMask) | status
	}
	return status
}

// rxDesc is a decoded receive descriptor.
type rxDesc struct {
	dic, chained, end bool
	n1, n2            int
}

func (l layout) decodeRX(d1 uint32) rxDesc {
	if l.enhanced {
		return rxDesc{dic: d1&rxDIC != 0, chained: d1&erRCH != 0, end: d1&erRER != 0, n1: int(d1 & edSize), n2: int(d1 >> edSize2 & edSize)}
	}
	return rxDesc{dic: d1&rxDIC != 0, chained: d1&nrRCH != 0, end: d1&nrRER != 0, n1: int(d1 & ntSize), n2: int(d1 >> ntSize2 & ntSize)}
}

// follow is the bus address of the descriptor after the one at cur.
func (l layout) follow(cur, base, d3 uint32, chained, end bool) uint32 {
	switch {
	case end: // takes precedence over chained
		return base
	case chained:
		return d3
	}
	return cur + l.stride
}
