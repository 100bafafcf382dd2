package iperf3

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

// packetConn adapts a net.PacketConn to udpSocket. It uses the methods of net.UDPConn that do not allocate where there
// are any.
type packetConn struct {
	net.PacketConn
}

type addrPortReader interface {
	ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error)
}

type addrPortWriter interface {
	WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error)
}

func (p packetConn) readFrom(b []byte) (int, netip.AddrPort, error) {
	if r, ok := p.PacketConn.(addrPortReader); ok {
		return r.ReadFromUDPAddrPort(b)
	}
	n, a, err := p.PacketConn.ReadFrom(b)
	if err != nil {
		return n, netip.AddrPort{}, err
	}
	ap, ok := addrPort(a)
	if !ok {
		return n, ap, fmt.Errorf("datagram from %v, which is no IP address and port", a)
	}
	return n, ap, nil
}

func (p packetConn) writeTo(b []byte, to netip.AddrPort) (int, error) {
	if w, ok := p.PacketConn.(addrPortWriter); ok {
		return w.WriteToUDPAddrPort(b, to)
	}
	return p.PacketConn.WriteTo(b, net.UDPAddrFromAddrPort(to))
}

func (p packetConn) SetWriteDeadline(t time.Time) error { return p.PacketConn.SetWriteDeadline(t) }

// addrPort is the address and port in a net.Addr.
func addrPort(a net.Addr) (netip.AddrPort, bool) {
	if u, ok := a.(interface{ AddrPort() netip.AddrPort }); ok {
		ap := u.AddrPort()
		return ap, ap.IsValid()
	}
	if a == nil {
		return netip.AddrPort{}, false
	}
	ap, err := netip.ParseAddrPort(a.String())
	return ap, err == nil
}

// sourceKey makes addresses comparable: a socket for both families shows IPv4 sources as IPv6.
func sourceKey(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
