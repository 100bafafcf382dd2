package sim

import (
	"encoding/binary"
	"math/bits"
)

// IP protocol numbers and header offsets (RFC 791, 8200, 768, 9293, 792, 4443).
const (
	protoHop      = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoNone     = 59
	protoOptions  = 60
	protoICMPv6   = 58

	ipv4Min     = 20
	ipv6Header  = 40
	tcpMin      = 20
	udpHeader   = 8
	icmpMin     = 4
	icmp6Min    = 4
	fragmentLen = 8

	tcpSum   = 16
	udpSum   = 6
	icmpSum  = 2
	ipv4Sum  = 10
	ipv4Frag = 0x3FFF // more fragments, offset
)

// sumWords adds up p as big-endian 16-bit words, not folded, eight bytes at a time: the one's complement sum does not care
// about the grouping (RFC 1071).
func sumWords(p []byte) uint64 {
	var a, c uint64
	for len(p) >= 32 {
		a, c = bits.Add64(a, binary.BigEndian.Uint64(p), c)
		a, c = bits.Add64(a, binary.BigEndian.Uint64(p[8:]), c)
		a, c = bits.Add64(a, binary.BigEndian.Uint64(p[16:]), c)
		a, c = bits.Add64(a, binary.BigEndian.Uint64(p[24:]), c)
		p = p[32:]
	}
	for len(p) >= 8 {
		a, c = bits.Add64(a, binary.BigEndian.Uint64(p), c)
		p = p[8:]
	}
	s := a>>32 + a&all32 + c
	for len(p) >= 2 {
		s += uint64(binary.BigEndian.Uint16(p))
		p = p[2:]
	}
	if len(p) == 1 {
		s += uint64(p[0]) << 8
	}
	return s
}

// fold makes a 16-bit one's complement sum.
func fold(s uint64) uint16 {
	s = s>>32 + s&all32
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	s = s>>16 + s&0xFFFF
	return uint16(s)
}

// ipFrame is what the checksum engines find in a frame. They know IPv4 and IPv6, at most one VLAN tag, and TCP, UDP and
// ICMP behind them (Intel socal/alt_emac.h; TI SLAU723A, checksum offload engine).
type ipFrame struct {
	version   int // 4, 6; 0: neither
	header    int // offset of the IP header
	payload   int // offset of what is behind it
	end       int // where the IP packet ends
	proto     int
	headerBad bool // version, length or header checksum
	fragment  bool
	unknown   bool // the payload is of a kind that is not checked
	short     bool // the packet claims more bytes than there are, or fewer than its headers
	payBad    bool // payload checksum or length
	sumOff    bool // UDP without a checksum
}

// parseIP looks through the headers of a frame.
func parseIP(d []byte) ipFrame {
	var p ipFrame
	at := 12
	typ := binary.BigEndian.Uint16(d[at:])
	if typ == typeVLAN && len(d) >= headerBytes+vlanBytes {
		at += vlanBytes
		typ = binary.BigEndian.Uint16(d[at:])
	}
	p.header = at + 2
	switch typ {
	case typeIPv4:
		p.parse4(d)
	case typeIPv6:
		p.parse6(d)
	}
	return p
}

func (p *ipFrame) parse4(d []byte) {
	p.version = 4
	h := d[p.header:]
	if len(h) < ipv4Min || h[0]>>4 != 4 || h[0]&15 < 5 || len(h) < int(h[0]&15)*4 {
		p.headerBad = true
		return
	}
	size := int(h[0]&15) * 4
	total := int(binary.BigEndian.Uint16(h[2:]))
	p.payload, p.proto = p.header+size, int(h[9])
	p.end = p.header + total
	p.fragment = binary.BigEndian.Uint16(h[6:])&ipv4Frag != 0
	if total < size {
		p.headerBad = true
		return
	}
	p.short = total > len(h)
	p.classify()
}

func (p *ipFrame) parse6(d []byte) {
	p.version = 6
	h := d[p.header:]
	if len(h) < ipv6Header || h[0]>>4 != 6 {
		p.headerBad = true
		return
	}
	total := ipv6Header + int(binary.BigEndian.Uint16(h[4:]))
	p.end = p.header + total
	p.short = total > len(h)
	p.proto = int(h[6])
	at := ipv6Header
	limit := min(total, len(h))
	for p.proto == protoHop || p.proto == protoOptions {
		if at+8 > limit {
			p.unknown = true
			break
		}
		p.proto = int(h[at])
		at += int(h[at+1])*8 + 8
	}
	if p.proto == protoFragment {
		p.fragment = true
	}
	p.payload = p.header + min(at, limit)
	p.classify()
}

// classify says whether the payload is one of those that are checked.
func (p *ipFrame) classify() {
	switch {
	case p.proto == protoTCP, p.proto == protoUDP:
	case p.proto == protoICMP && p.version == 4, p.proto == protoICMPv6 && p.version == 6:
	default:
		p.unknown = true
	}
}

// sumAt is the offset of the checksum field in the payload.
func (p *ipFrame) sumAt() (off, header int) {
	switch p.proto {
	case protoTCP:
		return tcpSum, tcpMin
	case protoUDP:
		return udpSum, udpHeader
	}
	return icmpSum, icmpMin
}

// pseudo is the sum of the pseudo header.
func (p *ipFrame) pseudo(d []byte) uint64 {
	if p.version == 4 && p.proto == protoICMP {
		return 0
	}
	n := p.end - p.payload
	s := uint64(p.proto) + uint64(n)
	if p.version == 4 {
		return s + sumWords(d[p.header+12:p.header+20])
	}
	return s + sumWords(d[p.header+8:p.header+40])
}

// inspect is the receive checksum engine, type 2.
func inspect(d []byte) ipFrame {
	p := parseIP(d)
	if p.version == 0 || p.headerBad {
		return p
	}
	if p.version == 4 && fold(sumWords(d[p.header:p.payload])) != 0xFFFF {
		p.headerBad = true
	}
	if p.fragment || p.unknown {
		return p
	}
	if p.short {
		p.payBad = true
		return p
	}
	off, header := p.sumAt()
	body := d[p.payload:p.end]
	if len(body) < header {
		p.payBad = true
		return p
	}
	if p.proto == protoUDP {
		if binary.BigEndian.Uint16(body[off:]) == 0 && p.version == 4 {
			p.sumOff = true
			return p
		}
		if n := int(binary.BigEndian.Uint16(body[4:])); n < udpHeader || n > len(body) {
			p.payBad = true
			return p
		}
	}
	p.payBad = fold(p.pseudo(d)+sumWords(body)) != 0xFFFF
	return p
}

// bad reports an error that the engine found.
func (p *ipFrame) bad() bool { return p.version != 0 && (p.headerBad || p.payBad) }

// bypassed reports that the engine did not look at the payload although the frame is a type frame: it then clears FT.
func (p *ipFrame) bypassed() bool { return p.version == 0 || p.unknown && !p.headerBad }

// status is what the engine puts into RDES0 (TI SLAU723A, receive descriptor 0, bits 0, 5 and 7).
func (p *ipFrame) status(extended bool) uint32 {
	if extended { // the verdict is in RDES4, which bit 0 says is there
		v := uint32(rxPCE)
		return v
	}
	switch {
	case p.version == 0:
		return rxPCE | rxIPCE
	case p.headerBad && p.payBad:
		return rxIPCE | rxPCE
	case p.headerBad:
		return rxIPCE
	case p.payBad:
		return rxPCE
	case p.unknown:
		return rxPCE
	}
	return 0
}

// extended is RDES4.
func (p *ipFrame) extended() uint32 {
	var v uint32
	switch p.version {
	case 4:
		v |= extIPv4
	case 6:
		v |= extIPv6
	default:
		return extBypassed
	}
	if p.headerBad {
		return v | extIPHE
	}
	if p.fragment || p.unknown {
		return v
	}
	switch p.proto {
	case protoTCP:
		v |= extTCP
	case protoUDP:
		v |= extUDP
	default:
		v |= extICMP
	}
	if p.payBad {
		v |= extIPPE
	}
	return v
}

// countIPC counts what the receive checksum engine found. b.mu is held.
func (b *Board) countIPC(p *ipFrame) {
	count := func(off uint32, octets int) {
		b.countMMC(off, 1)
		b.countMMC(off+ipcToOctets, uint32(max(octets, 0)))
	}
	body := p.end - p.payload
	switch {
	case p.version == 0:
		return
	case p.version == 4 && p.headerBad:
		count(ipcIPv4Header, body)
		return
	case p.version == 6 && p.headerBad:
		count(ipcIPv6Header, body)
		return
	case p.version == 4 && p.fragment:
		count(ipcIPv4Fragment, body)
		return
	case p.version == 4 && p.unknown:
		count(ipcIPv4NoPayload, body)
		return
	case p.version == 6 && (p.unknown || p.fragment):
		count(ipcIPv6NoPayload, body)
		return
	case p.version == 4:
		count(ipcIPv4, body)
	default:
		count(ipcIPv6, body)
	}
	if p.sumOff {
		count(ipcIPv4UDPOff, body)
		return
	}
	off := uint32(ipcICMP)
	switch p.proto {
	case protoTCP:
		off = ipcTCP
	case protoUDP:
		off = ipcUDP
	}
	if p.payBad {
		off += ipcUDPError - ipcUDP
	}
	count(off, body)
}

// insertChecksum is the transmit checksum engine (CIC in the descriptor).
func (s *txSource) insertChecksum(f *flight, op uint32) {
	b := s.b
	t := &b.tx
	if op&opTSF == 0 {
		return // not in threshold mode
	}
	wrong := uint16(0)
	if f.n >= b.checksumLimit() {
		b.violate(RuleChecksumTooBig, "frame of %d bytes, the limit is %d with this burst length", f.n, b.checksumLimit())
		wrong = 0x5555 // the FIFO is read before the sum is known
	}
	d := f.data()
	if len(d) < headerBytes {
		return
	}
	p := parseIP(d)
	if p.version == 0 {
		return
	}
	if p.headerBad {
		f.status |= txIHE
		return
	}
	if p.version == 4 {
		h := d[p.header:p.payload]
		binary.BigEndian.PutUint16(h[ipv4Sum:], 0)
		binary.BigEndian.PutUint16(h[ipv4Sum:], ^fold(sumWords(h))^wrong)
	}
	if t.cic < 2 || p.fragment || p.unknown {
		return
	}
	off, header := p.sumAt()
	if p.short || p.end-p.payload < header {
		f.status |= txPCE
		return
	}
	body := d[p.payload:p.end]
	sum := uint64(0)
	if t.cic == 3 {
		binary.BigEndian.PutUint16(body[off:], 0)
		sum = p.pseudo(d)
	}
	v := ^fold(sum + sumWords(body))
	if v == 0 && p.proto == protoUDP {
		v = 0xFFFF
	}
	binary.BigEndian.PutUint16(body[off:], v^wrong)
}

// checksumLimit is the frame length from which on the transmit FIFO cannot hold the frame until its sum is known: the
// FIFO less a burst and three words (TI SLAU723A, transmit checksum offload). b.mu is held.
func (b *Board) checksumLimit() int {
	mode := b.reg[mustSlot(regBusMode)]
	beats := int(mode >> busPBL & 63)
	if mode&bus8xPBL != 0 {
		beats *= 8
	}
	return b.opts.TXFIFOBytes - (beats+3)*b.opts.BusBytes
}
