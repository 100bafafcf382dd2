package link

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// maxHeaders is how much of a packet's front is copied to find its headers in: Ethernet with a tag, IPv4 with all options
// and TCP with all options are 138 bytes; the rest is room for IPv6 extension headers.
const maxHeaders = 256

// frameWriter is what a cutter needs of a transmit ring: room for one frame, filled piece by piece.
type frameWriter interface {
	Write(off int, p []byte)
}

// cutter turns one packet into frames, one at a time. A TCP packet larger than its MSS is segmented after the rules that
// receivers rely on (Linux: net/ipv4/tcp_offload.c, tcp_gso_segment): each frame gets a header made from the packet's own,
// with its length, sequence number, IPv4 identification and checksums set, FIN, PSH and RST on the last frame only and CWR
// on the first only. The payload is read in place: its memory is shared with TCP's retransmit queue and never written.
//
// It belongs to whoever holds txmu.
type cutter struct {
	pkt  *stack.PacketBuffer // the packet and its reference; nil: idle
	view *buffer.View        // where the next payload byte is: view and offset
	off  int
	left int // payload bytes not yet cut; for a plain packet all of its bytes

	plain bool // send the packet as it is, nothing to compute
	mss   int
	cut   int // frames cut so far

	hdr        [maxHeaders]byte
	hdrLen     int
	l3, l4     int // offsets of the IP and TCP headers in hdr
	v6         bool
	ident      uint16
	seq        uint32
	flags      header.TCPFlags
	pseudo     uint16 // sum of addresses and protocol
	payloadSum checksum.Checksumer
}

// needsCutting says whether gVisor left work to the endpoint: a checksum to complete, a packet to segment, or both. Under
// host GSO that is so for every segment of an established connection, pure ACKs included.
func needsCutting(pkt *stack.PacketBuffer) bool {
	switch pkt.GSOOptions.Type {
	case stack.GSOTCPv4, stack.GSOTCPv6:
		return pkt.GSOOptions.NeedsCsum || pkt.GSOOptions.MSS != 0 && pkt.Data().Size() > int(pkt.GSOOptions.MSS)
	}
	return false
}

// load takes over pkt and its reference. It returns false, leaving the reference to the caller, if the packet asks for
// segmentation but is not a TCP packet that can be segmented within mtu.
func (c *cutter) load(pkt *stack.PacketBuffer, mtu int) bool {
	views, skip := pkt.AsViewList()
	c.cut = 0
	c.view, c.off = seek(views.Front(), skip)
	size := pkt.Size()
	if !needsCutting(pkt) {
		c.plain, c.left, c.pkt = true, size, pkt
		return true
	}
	c.plain = false
	if !c.parse(min(size, maxHeaders)) {
		return false
	}
	c.left = size - c.hdrLen
	c.mss = int(pkt.GSOOptions.MSS)
	if c.mss < 8 && c.left > c.mss || c.hdrLen-c.l3+min(c.mss, c.left) > mtu {
		return false
	}
	c.mss = max(c.mss, 1) // without payload it does not matter
	c.view, c.off = seek(c.view, c.off+c.hdrLen)
	c.pkt = pkt
	return true
}

// seek moves n bytes forward from the start of v.
func seek(v *buffer.View, n int) (*buffer.View, int) {
	for v != nil && n >= v.Size() {
		n -= v.Size()
		v = v.Next()
	}
	return v, n
}

// parse copies the first n bytes from the cursor to hdr and finds the headers there.
func (c *cutter) parse(n int) bool {
	got := 0
	for v, off := c.view, c.off; v != nil && got < n; v, off = v.Next(), 0 {
		got += copy(c.hdr[got:n], v.AsSlice()[off:])
	}
	h := c.hdr[:got]
	if len(h) < ethernetHeader {
		return false
	}
	typ, l3 := binary.BigEndian.Uint16(h[12:]), ethernetHeader
	if typ == etherTypeVLAN && len(h) >= ethernetHeader+vlanTag {
		typ, l3 = binary.BigEndian.Uint16(h[16:]), ethernetHeader+vlanTag
	}
	ip, ok := parseIP(typ, h[l3:])
	if !ok || ip.proto != uint8(header.TCPProtocolNumber) || ip.fragment || len(h) < l3+ip.hdrLen+header.TCPMinimumSize {
		return false
	}
	c.l3, c.l4, c.v6 = l3, l3+ip.hdrLen, ip.v6
	tcp := header.TCP(h[c.l4:])
	tcpLen := int(tcp.DataOffset())
	if tcpLen < header.TCPMinimumSize || len(tcp) < tcpLen {
		return false
	}
	c.hdrLen = c.l4 + tcpLen
	c.seq, c.flags = tcp.SequenceNumber(), tcp.Flags()
	c.pseudo = ip.pseudo
	if !c.v6 {
		c.ident = header.IPv4(h[l3:]).ID()
	}
	return true
}

// frameBytes is the length of the largest frame still to come.
func (c *cutter) frameBytes() int {
	if c.plain {
		return c.left
	}
	return c.hdrLen + min(c.mss, c.left)
}

// loaded says whether there is a packet to cut frames from.
func (c *cutter) loaded() bool { return c.pkt != nil }

// next writes the next frame to w and returns its length, and whether it was the last one of the packet. The caller takes
// the packet with finish after the last.
func (c *cutter) next(w frameWriter) (n int, last bool) {
	if c.plain {
		n = c.left
		c.payload(w, 0, n, false)
		return n, true
	}
	l := min(c.mss, c.left)
	last = l == c.left
	c.payloadSum = checksum.Checksumer{}
	c.payload(w, c.hdrLen, l, true)
	c.patch(l, last)
	w.Write(0, c.hdr[:c.hdrLen])
	c.seq += uint32(l)
	c.cut++
	return c.hdrLen + l, last
}

// payload copies n bytes from the cursor to w at off, and adds them to the sum if asked.
func (c *cutter) payload(w frameWriter, off, n int, sum bool) {
	c.left -= n
	for n > 0 && c.view != nil {
		p := c.view.AsSlice()[c.off:]
		if len(p) > n {
			p = p[:n]
		}
		w.Write(off, p)
		if sum {
			c.payloadSum.Add(p)
		}
		off += len(p)
		n -= len(p)
		if c.off += len(p); c.off == c.view.Size() {
			c.view, c.off = c.view.Next(), 0
		}
	}
}

// patch makes hdr the header of the frame that carries l bytes of payload.
func (c *cutter) patch(l int, last bool) {
	ipLen := c.hdrLen - c.l3 + l
	if c.v6 {
		header.IPv6(c.hdr[c.l3:]).SetPayloadLength(uint16(ipLen - header.IPv6MinimumSize))
	} else {
		ip := header.IPv4(c.hdr[c.l3:c.l4])
		ip.SetTotalLength(uint16(ipLen))
		ip.SetID(c.ident + uint16(c.cut))
		ip.SetChecksum(0)
		ip.SetChecksum(^checksum.Checksum(ip, 0))
	}
	flags := c.flags
	if !last {
		flags &^= header.TCPFlagFin | header.TCPFlagPsh | header.TCPFlagRst
	}
	if c.cut > 0 {
		flags &^= header.TCPFlagCwr
	}
	tcp := header.TCP(c.hdr[c.l4:c.hdrLen])
	tcp.SetSequenceNumber(c.seq)
	tcp.SetFlags(uint8(flags))
	tcp.SetChecksum(0)
	sum := checksum.Combine(c.pseudo, uint16(len(tcp)+l))
	sum = checksum.Checksum(tcp, sum)
	tcp.SetChecksum(^checksum.Combine(sum, c.payloadSum.Checksum()))
}

// finish gives up the packet; the caller drops its reference once no lock is held.
func (c *cutter) finish() *stack.PacketBuffer {
	pkt := c.pkt
	c.pkt, c.view = nil, nil
	return pkt
}
