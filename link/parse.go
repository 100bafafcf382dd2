package link

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

const (
	etherTypeIPv4 = 0x0800
	etherTypeARP  = 0x0806
	etherTypeVLAN = 0x8100 // IEEE 802.1Q
	etherTypeQinQ = 0x88a8 // IEEE 802.1ad
	etherTypeIPv6 = 0x86dd

	// minEtherType is the smallest EtherType; smaller values are the length of an 802.3 frame (IEEE 802.3 clause 3.2.6).
	minEtherType = 0x0600
)

// ipInfo is what the header of an IP packet says, checked against the bytes that are there.
type ipInfo struct {
	v6       bool
	fragment bool
	direct   bool   // the transport header follows the fixed header and IPv4 options: no IPv6 extension headers
	proto    uint8  // transport protocol, after any extension headers
	hdrLen   int    // length of the IP header with options or extension headers
	total    int    // length of the packet as the header gives it
	pseudo   uint16 // sum of the addresses and the protocol, without the length
}

// parseIP reads the IP header at the start of p, which may be only the front of the packet. It reports false if the header
// is malformed or does not lie within p.
func parseIP(etherType uint16, p []byte) (ipInfo, bool) {
	switch etherType {
	case etherTypeIPv4:
		return parseIPv4(p)
	case etherTypeIPv6:
		return parseIPv6(p)
	}
	return ipInfo{}, false
}

func parseIPv4(p []byte) (ipInfo, bool) {
	if len(p) < header.IPv4MinimumSize || p[0]>>4 != 4 {
		return ipInfo{}, false
	}
	h := header.IPv4(p)
	i := ipInfo{
		direct: true,
		proto:  h.Protocol(),
		hdrLen: int(h.HeaderLength()),
		total:  int(h.TotalLength()),
	}
	i.fragment = binary.BigEndian.Uint16(p[6:])&0x3fff != 0 // more fragments, or an offset
	if i.hdrLen < header.IPv4MinimumSize || i.hdrLen > len(p) || i.total < i.hdrLen {
		return ipInfo{}, false
	}
	i.pseudo = checksum.Combine(checksum.Checksum(p[12:20], 0), uint16(i.proto))
	return i, true
}

// parseIPv6 walks the extension headers that may stand before a transport header (RFC 8200 section 4).
func parseIPv6(p []byte) (ipInfo, bool) {
	if len(p) < header.IPv6MinimumSize || p[0]>>4 != 6 {
		return ipInfo{}, false
	}
	i := ipInfo{
		v6:     true,
		direct: true,
		proto:  p[6],
		hdrLen: header.IPv6MinimumSize,
		total:  header.IPv6MinimumSize + int(binary.BigEndian.Uint16(p[4:])),
	}
	for {
		switch header.IPv6ExtensionHeaderIdentifier(i.proto) {
		case header.IPv6HopByHopOptionsExtHdrIdentifier, header.IPv6RoutingExtHdrIdentifier, header.IPv6DestinationOptionsExtHdrIdentifier:
			if len(p) < i.hdrLen+8 {
				return ipInfo{}, false
			}
			i.proto, i.hdrLen = p[i.hdrLen], i.hdrLen+8+8*int(p[i.hdrLen+1])
			i.direct = false
		case header.IPv6FragmentExtHdrIdentifier:
			i.fragment = true
			i.direct = false
			return i, i.hdrLen <= len(p)
		default:
			if i.hdrLen > len(p) || i.total < i.hdrLen {
				return ipInfo{}, false
			}
			i.pseudo = checksum.Combine(checksum.Checksum(p[8:40], 0), uint16(i.proto))
			return i, true
		}
	}
}
