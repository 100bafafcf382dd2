package link

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
)

const (
	// rxBudget is how many frames one turn of the poll loop takes from the ring before it looks at anything else.
	rxBudget = 64
	// rxPerTX is how many frames are received between two turns of the transmitter, so that a flood of frames leaves it a
	// share, and ACKs made by this batch share a doorbell.
	rxPerTX = 16
)

// receive takes up to rxBudget frames from the ring and delivers them. It returns how many there were, good or bad.
//
// While it runs, writers only enqueue: acknowledgements and replies that the stack sends from within a delivery are pumped
// by this loop, together.
func (e *Endpoint) receive() int {
	rx := e.mac.RX()
	d := e.dispatcher()
	e.deferring.Store(true)
	n := 0
	for n < rxBudget {
		f, ok := rx.Next()
		if !ok {
			break
		}
		n++
		e.receiveFrame(rx, f, d)
		if n%rxPerTX == 0 {
			rx.Resume()
			e.turnTX()
		}
	}
	if n%rxPerTX != 0 {
		rx.Resume()
	}
	if n > 0 {
		e.gro.flush()
		e.stats.rxMerged.Add(e.gro.mergedSegments)
		e.stats.rxThinned.Add(e.gro.thinnedACKs)
		e.gro.mergedSegments, e.gro.thinnedACKs = 0, 0
	}
	e.deferring.Store(false)
	return n
}

// receiveFrame copies one frame out of its slot and gives the slot back before anything else happens with it.
func (e *Endpoint) receiveFrame(rx *hw.RXRing, f hw.RXFrame, d *dispatcher) {
	var v *buffer.View
	switch {
	case f.Err != 0: // counted by cause in the ring
	case f.Len < ethernetHeader:
		e.stats.rxShort.Add(1)
	case f.Len > int(e.mtu.Load())+ethernetHeader+vlanTag:
		e.stats.rxTooLong.Add(1)
	case d == nil:
		e.stats.rxDetached.Add(1)
	default:
		v = buffer.NewViewSize(f.Len)
		b := v.AsSlice()
		rx.CopyOut(b)
		if f.Len > int(e.mtu.Load())+ethernetHeader && binary.BigEndian.Uint16(b[12:]) != etherTypeVLAN {
			e.stats.rxTooLong.Add(1) // only a tag may make a frame longer
			v.Release()
			v = nil
		}
	}
	rx.Release()
	if v != nil {
		e.input(v, f.Verdict)
	}
}

// input sorts a frame and delivers it, drops it with a count, or hands it to GRO. It takes over v.
func (e *Endpoint) input(v *buffer.View, verdict hw.Verdict) {
	b := v.AsSlice()
	pktType := e.classify(b)
	if pktType == tcpip.PacketOtherHost && !e.promiscuous.Load() {
		e.stats.rxFiltered.Add(1)
		v.Release()
		return
	}
	e.stats.rxPackets.Add(1)
	e.stats.rxBytes.Add(uint64(len(b)))
	typ := binary.BigEndian.Uint16(b[12:])
	switch {
	case typ < minEtherType: // an 802.3 frame: LLC protocols, for which the stack has no users
		e.stats.rxLLC.Add(1)
		v.Release()
		return
	case typ == etherTypeVLAN, typ == etherTypeQinQ:
		e.stats.rxTagged.Add(1) // the stack has no VLANs; it counts the packet as of an unknown protocol
	}
	ip, ok := parseIP(typ, b[ethernetHeader:])
	sum := e.verify(b[ethernetHeader:], ip, ok, verdict)
	if sum == sumBad {
		e.stats.rxChecksum.Add(1)
		v.Release()
		return
	}
	var s segment
	if sum == sumGood && !e.opts.Forwarding && s.fill(v, typ, pktType, ip) {
		e.gro.add(&s)
		return
	}
	if ok && (ip.fragment || ip.proto == uint8(header.TCPProtocolNumber)) {
		e.gro.flush() // a segment that cannot be held must not overtake those of its flow that are
	}
	e.deliver(newPacket(v, typ, pktType), sum == sumGood)
}

// classify says for whom a frame is. Multicast that was not joined counts as for another host.
func (e *Endpoint) classify(b []byte) tcpip.PacketType {
	if b[0]&1 == 0 {
		if [6]byte(b) == e.Address() {
			return tcpip.PacketHost
		}
		return tcpip.PacketOtherHost
	}
	if [6]byte(b) == broadcast {
		return tcpip.PacketBroadcast
	}
	if groups := e.groups.Load(); groups != nil && !(*groups)[[6]byte(b)] {
		return tcpip.PacketOtherHost
	}
	return tcpip.PacketMulticast
}

// fill makes s from a verified frame, if it is a TCP segment that GRO may merge. Bytes behind the IP packet, which are
// Ethernet's padding, are cut off: they would be taken for payload.
func (s *segment) fill(v *buffer.View, typ uint16, pktType tcpip.PacketType, ip ipInfo) bool {
	b := v.AsSlice()
	fixed := header.IPv4MinimumSize
	if ip.v6 {
		fixed = header.IPv6MinimumSize
	}
	if ip.proto != uint8(header.TCPProtocolNumber) || ip.fragment || ip.hdrLen != fixed || ip.total > len(b)-ethernetHeader ||
		ip.total < fixed+header.TCPMinimumSize {
		return false
	}
	l4 := ethernetHeader + ip.hdrLen
	tcpLen := int(header.TCP(b[l4:]).DataOffset())
	if tcpLen < header.TCPMinimumSize || tcpLen > ip.total-ip.hdrLen {
		return false
	}
	v.CapLength(ethernetHeader + ip.total)
	*s = segment{
		typ: typ, pktType: pktType, view: v,
		ip:      b[ethernetHeader:l4],
		tcp:     b[l4 : l4+tcpLen],
		hdrLen:  l4 + tcpLen,
		payload: ip.total - ip.hdrLen - tcpLen,
	}
	if s.key.v6 = ip.v6; ip.v6 {
		copy(s.key.ips[:], s.ip[8:40])
	} else {
		copy(s.key.ips[:], s.ip[12:20])
	}
	copy(s.key.tcp[:], s.tcp)
	return true
}

// newPacket makes the packet of a frame and takes over v.
func newPacket(v *buffer.View, typ uint16, pktType tcpip.PacketType) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithView(v)})
	pkt.LinkHeader().Consume(ethernetHeader)
	pkt.NetworkProtocolNumber = tcpip.NetworkProtocolNumber(typ)
	pkt.PktType = pktType
	return pkt
}

// deliver hands pkt to the stack and drops its reference. No lock is held.
func (e *Endpoint) deliver(pkt *stack.PacketBuffer, verified bool) {
	if d := e.dispatcher(); d != nil {
		pkt.RXChecksumValidated = verified
		e.unverified.Store(!verified)
		d.DeliverNetworkPacket(pkt.NetworkProtocolNumber, pkt)
		e.unverified.Store(false)
	} else {
		e.stats.rxDetached.Add(1)
	}
	pkt.DecRef()
}
