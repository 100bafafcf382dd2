package link

import (
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"dwnet/hw"
)

// sumState is what is known of a packet's checksums before it is delivered.
type sumState uint8

const (
	sumUnknown sumState = iota // not looked at: the stack must verify
	sumGood
	sumBad
)

// verify combines the MAC's verdict with what the MAC can know: its engine looks into unfragmented TCP, UDP and ICMP
// directly behind an IPv4 or IPv6 header, and says "no error" also for packets that it did not look into (Intel SoC FPGA
// documentation, alt_emac.h, receive descriptor word 0; Linux, norm_desc.c). What it did not verify is verified here if it is
// TCP, so that GRO can have it; everything else, fragments above all, goes to the stack marked unverified: a reassembled
// packet can only be verified there.
func (e *Endpoint) verify(p []byte, ip ipInfo, isIP bool, v hw.Verdict) sumState {
	if !isIP {
		return sumUnknown
	}
	if !e.opts.SoftwareRXChecksum {
		switch v {
		case hw.ChecksumGood:
			if ip.direct && !ip.fragment && verifiable(ip) {
				return sumGood
			}
		case hw.ChecksumBadL3, hw.ChecksumBadL4:
			return sumBad
		}
	}
	if ip.proto != uint8(header.TCPProtocolNumber) || ip.fragment || ip.total > len(p) || ip.total < ip.hdrLen+header.TCPMinimumSize {
		return sumUnknown
	}
	if !ip.v6 && checksum.Checksum(p[:ip.hdrLen], 0) != 0xffff {
		return sumBad
	}
	sum := checksum.Combine(ip.pseudo, uint16(ip.total-ip.hdrLen))
	if checksum.Checksum(p[ip.hdrLen:ip.total], sum) != 0xffff {
		return sumBad
	}
	return sumGood
}

// verifiable says whether the MAC's checksum engine knows the transport protocol.
func verifiable(ip ipInfo) bool {
	switch ip.proto {
	case uint8(header.TCPProtocolNumber), uint8(header.UDPProtocolNumber):
		return true
	case uint8(header.ICMPv4ProtocolNumber):
		return !ip.v6
	case uint8(header.ICMPv6ProtocolNumber):
		return ip.v6
	}
	return false
}
