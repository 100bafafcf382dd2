package link

import (
	"bytes"
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// groFlows is how many flows a batch can merge at a time. A batch has at most rxBudget frames; with more flows than this
// in it, there is little to merge.
const groFlows = 32

// segment is a received TCP segment that may be merged: checksums verified, no fragment, IP header without options or
// extensions, so that the stack needs nothing from it that a merged packet would lose.
type segment struct {
	typ     uint16 // EtherType
	pktType tcpip.PacketType
	view    *buffer.View // the frame from its Ethernet header, cut to the length of the IP packet
	ip, tcp []byte       // the headers, within view
	hdrLen  int          // Ethernet, IP and TCP headers
	payload int
	key     flowKey
}

// flowKey is the addresses and ports of a TCP connection; IPv4 leaves the rest zero.
type flowKey struct {
	v6  bool
	ips [32]byte
	tcp [4]byte
}

// groFlow is a flow of the current batch and what is held back of it.
type groFlow struct {
	key     flowKey
	pkt     *stack.PacketBuffer // held packet; nil: nothing
	ip, tcp []byte              // its headers
	next    uint32              // sequence number that would continue it
	size    int                 // payload of its first segment
	payload int                 // payload so far
	merged  int                 // segments in it
	dup     bool                // a pure ACK that repeats the one before
}

// gro merges the TCP segments of a batch that continue one another into one packet each, as Linux does (net/core/gro.c),
// and drops the pure ACKs that a later one of the same flow supersedes: an ACK costs the stack as much as forty segments
// cost the driver. It keeps the order within each flow, and nothing beyond the end of the batch. It belongs to the poll
// loop.
type gro struct {
	flows   [groFlows]groFlow
	n       int
	deliver func(*stack.PacketBuffer)

	mergedSegments, thinnedACKs uint64 // taken by the poll loop into its counters
}

// add takes over s.view: it is merged, held or delivered.
func (g *gro) add(s *segment) {
	f := g.flow(s)
	tcp := header.TCP(s.tcp)
	flags := tcp.Flags()
	dup := false
	plain := flags&^header.TCPFlagPsh == header.TCPFlagAck // nothing but ACK and PSH
	switch {
	case f.pkt == nil:
	case plain && s.payload == 0 && f.payload == 0 && header.TCP(f.tcp).AckNumber() == tcp.AckNumber():
		dup = true
		g.release(f)
	case plain && s.payload > 0 && f.continuedBy(s):
		f.append(s)
		g.mergedSegments++
		// A short segment or a push is the end of what the sender has: the stack should not wait for more.
		if s.payload < f.size || flags&header.TCPFlagPsh != 0 {
			g.release(f)
		}
		return
	case plain && s.payload == 0 && f.supersededBy(s):
		f.pkt.DecRef()
		f.pkt = nil
		g.thinnedACKs++
	default:
		g.release(f)
	}
	pkt := newPacket(s.view, s.typ, s.pktType)
	if !plain || s.payload > 0 && flags&header.TCPFlagPsh != 0 {
		g.deliver(pkt)
		return
	}
	*f = groFlow{
		key: s.key, pkt: pkt, ip: s.ip, tcp: s.tcp,
		next: tcp.SequenceNumber() + uint32(s.payload), size: s.payload, payload: s.payload, merged: 1, dup: dup,
	}
}

// flow finds the entry of s's flow or makes one.
func (g *gro) flow(s *segment) *groFlow {
	for i := range g.flows[:g.n] {
		if f := &g.flows[i]; f.key == s.key {
			return f
		}
	}
	if g.n == groFlows {
		g.flush()
	}
	f := &g.flows[g.n]
	*f = groFlow{key: s.key}
	g.n++
	return f
}

// continuedBy says whether s can be merged into what is held: the next bytes of the same kind of segment, whose header
// differs in nothing that the stack would miss.
func (f *groFlow) continuedBy(s *segment) bool {
	a, b := header.TCP(f.tcp), header.TCP(s.tcp)
	return f.payload > 0 &&
		b.SequenceNumber() == f.next &&
		s.payload <= f.size &&
		f.payload+s.payload+len(f.ip)+len(f.tcp) <= 65535 &&
		b.AckNumber() == a.AckNumber() &&
		b.WindowSize() == a.WindowSize() &&
		len(a) == len(b) && bytes.Equal(a[header.TCPMinimumSize:], b[header.TCPMinimumSize:]) &&
		sameIPHeader(f.ip, s.ip)
}

// sameIPHeader compares all that tells two segments of a flow apart besides lengths, identification and checksum.
func sameIPHeader(a, b []byte) bool {
	if a[0]>>4 == 6 {
		return bytes.Equal(a[:4], b[:4]) && a[7] == b[7] // version, class, flow label; hop limit
	}
	return a[1] == b[1] && a[6] == b[6] && a[7] == b[7] && a[8] == b[8] // TOS; DF; TTL
}

// append merges s. The view is chained, not copied.
func (f *groFlow) append(s *segment) {
	s.view.TrimFront(s.hdrLen)
	b := buffer.MakeWithView(s.view)
	f.pkt.Data().MergeBuffer(&b)
	f.next += uint32(s.payload)
	f.payload += s.payload
	f.merged++
	tcp := header.TCP(f.tcp)
	tcp.SetFlags(uint8(tcp.Flags() | header.TCP(s.tcp).Flags()&header.TCPFlagPsh))
}

// supersededBy says whether a held pure ACK tells the sender nothing that s does not tell it as well. An equal
// acknowledgement number is a duplicate or a window update and is kept; so is an ACK with SACK blocks, and one whose
// window reaches further than that of s.
func (f *groFlow) supersededBy(s *segment) bool {
	if f.payload > 0 || f.dup {
		return false
	}
	a, b := header.TCP(f.tcp), header.TCP(s.tcp)
	if int32(b.AckNumber()-a.AckNumber()) <= 0 || b.SequenceNumber() != a.SequenceNumber() || len(a) != len(b) {
		return false
	}
	// The window field is scaled by a factor not known here; without it the right edge is compared in units of the field,
	// which is safe: the acknowledgement number has moved forward.
	return b.WindowSize() >= a.WindowSize() && onlyTimestamps(a) && onlyTimestamps(b) && sameIPHeader(f.ip, s.ip)
}

// onlyTimestamps says whether a TCP header has no options but padding and a timestamp (RFC 7323 section 3.2).
func onlyTimestamps(tcp header.TCP) bool {
	o := tcp[header.TCPMinimumSize:]
	for i := 0; i < len(o); {
		switch o[i] {
		case header.TCPOptionEOL:
			return true
		case header.TCPOptionNOP:
			i++
		case header.TCPOptionTS:
			i += header.TCPOptionTSLength
		default:
			return false
		}
	}
	return true
}

// release delivers what f holds.
func (g *gro) release(f *groFlow) {
	pkt := f.pkt
	if pkt == nil {
		return
	}
	f.pkt = nil
	if f.merged > 1 {
		setIPLength(f.ip, len(f.ip)+len(f.tcp)+f.payload)
	}
	g.deliver(pkt)
}

// setIPLength rewrites the length of an IP header without options or extensions.
func setIPLength(ip []byte, total int) {
	if ip[0]>>4 == 6 {
		header.IPv6(ip).SetPayloadLength(uint16(total - header.IPv6MinimumSize))
		return
	}
	binary.BigEndian.PutUint16(ip[2:], uint16(total))
	h := header.IPv4(ip)
	h.SetChecksum(0)
	h.SetChecksum(^checksum.Checksum(h, 0))
}

// flush delivers everything held, in the order in which the flows came, and ends the batch.
func (g *gro) flush() {
	for i := range g.flows[:g.n] {
		g.release(&g.flows[i])
		g.flows[i].ip, g.flows[i].tcp = nil, nil
	}
	g.n = 0
}
