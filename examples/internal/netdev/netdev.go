// Package netdev builds what the examples run on: a gVisor network stack on an Ethernet port, with addresses, routes and
// TCP options fit for a benchmark, and sockets on it that look like those of package net.
//
// An appliance of your own does not need it: the example of package link has all that is needed. What is here on top of
// that is both address families, larger buffers and the adapters for package iperf3.
package netdev

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"dwnet/hw"
	"dwnet/link"
)

// Buffers of sockets. gVisor's defaults are 1 MiB for TCP, which is kept, and 32 KiB for UDP, which a millisecond of
// gigabit Ethernet overflows.
const (
	minBuffer     = 4 << 10
	defaultBuffer = 1 << 20
	maxBuffer     = MaxBuffer
	// udpSendBuffer holds a sender back before the endpoint's own queue of 4 MiB is full and drops.
	udpSendBuffer = 1 << 20
)

// MaxBuffer is the largest buffer of a socket in bytes. Beyond it gVisor takes the wish for this much without a word.
const MaxBuffer = 4 << 20

// CongestionControls are the names of those that gVisor's TCP has.
func CongestionControls() []string { return []string{"reno", "cubic"} }

// nicID is the number of the stack's one interface.
const nicID tcpip.NICID = 1

// Options configure a [Device].
type Options struct {
	// Addresses are the addresses of the stack with the length of the prefix that is on the wire. At least one.
	Addresses []netip.Prefix
	Link      link.Options
}

// Device is a network stack on one Ethernet port.
type Device struct {
	Stack    *stack.Stack
	Endpoint *link.Endpoint
	clock    hw.Clock
	addrs    []netip.Prefix
}

// Open starts the MAC behind port and makes a stack on it. The device owns the port from then on. If Open fails the port
// is closed.
func Open(port hw.Port, o Options) (*Device, error) {
	if len(o.Addresses) == 0 {
		port.Close()
		return nil, errors.New("the stack has no address")
	}
	ep, err := link.New(port, o.Link)
	if err != nil {
		port.Close()
		return nil, err
	}
	s := stack.New(stack.Options{
		Clock:                    link.StackClock(port.Clock()),
		NetworkProtocols:         []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols:       []stack.TransportProtocolFactory{tcp.NewProtocolCUBIC, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
		AllowPacketEndpointWrite: false,
	})
	d := &Device{Stack: s, Endpoint: ep, clock: port.Clock(), addrs: o.Addresses}
	if err := s.CreateNIC(nicID, ep); err != nil {
		ep.Close()
		s.Destroy()
		return nil, fmt.Errorf("create NIC: %v", err)
	}
	if err := d.configure(o.Link.GSOMaxSize != link.GSOOff); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// configure sets addresses, routes and socket defaults. large says that TCP hands over packets of many segments.
func (d *Device) configure(large bool) error {
	var routes []tcpip.Route
	for _, p := range d.addrs {
		proto := ipv4.ProtocolNumber
		if p.Addr().Is6() {
			proto = ipv6.ProtocolNumber
		}
		a := tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(p.Addr().AsSlice()), PrefixLen: p.Bits()}
		err := d.Stack.AddProtocolAddress(nicID, tcpip.ProtocolAddress{Protocol: proto, AddressWithPrefix: a}, stack.AddressProperties{})
		if err != nil {
			return fmt.Errorf("address %v: %v", p, err)
		}
		routes = append(routes, tcpip.Route{Destination: a.Subnet(), NIC: nicID})
	}
	routes = append(routes, tcpip.Route{Destination: header.IPv6LinkLocalPrefix.Subnet(), NIC: nicID})
	d.Stack.SetRouteTable(routes)

	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	for _, o := range []tcpip.SettableTransportProtocolOption{
		&sack, &moderate,
		&tcpip.TCPSendBufferSizeRangeOption{Min: minBuffer, Default: defaultBuffer, Max: maxBuffer},
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: minBuffer, Default: defaultBuffer, Max: maxBuffer},
	} {
		if err := d.Stack.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("TCP option %T: %v", o, err)
		}
	}
	if large {
		// gVisor's tail loss probe fires after two smoothed round trips, which on a LAN is less than the jitter of the
		// machine. It sends one MSS of the last large packet again, and RACK then takes the rest of that packet for lost and
		// cuts the window (gVisor's transport/tcp/rack.go). On a busy machine a clean gigabit wire saw 76-177 retransmits
		// and 315-587 Mbit/s with it, 0-4 and 593-740 without. Where every frame is a packet of its own RACK stays on: on a
		// wire that loses 1 % it is three times faster, 93 against 27 Mbit/s.
		recovery := tcpip.TCPRecovery(0)
		if err := d.Stack.SetTransportProtocolOption(tcp.ProtocolNumber, &recovery); err != nil {
			return fmt.Errorf("TCP option %T: %v", &recovery, err)
		}
	}
	if err := d.Stack.SetOption(tcpip.SendBufferSizeOption{Min: minBuffer, Default: udpSendBuffer, Max: maxBuffer}); err != nil {
		return fmt.Errorf("send buffers: %v", err)
	}
	if err := d.Stack.SetOption(tcpip.ReceiveBufferSizeOption{Min: minBuffer, Default: maxBuffer, Max: maxBuffer}); err != nil {
		return fmt.Errorf("receive buffers: %v", err)
	}
	return nil
}

// Clock is the time that the device lives in.
func (d *Device) Clock() hw.Clock { return d.clock }

// Addr is the device's first address of a family; the zero Addr if it has none.
func (d *Device) Addr(six bool) netip.Addr {
	for _, p := range d.addrs {
		if p.Addr().Is6() == six {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// flushTime is what the last segments of closed connections get to leave.
const flushTime = 20 * time.Millisecond

// Close destroys the stack, which stops the MAC and closes the port. It returns when no goroutine of either is left.
func (d *Device) Close() {
	d.clock.Sleep(flushTime)
	d.Stack.Destroy()
}

// TCPStats are counters of a stack that tell how a transfer went.
type TCPStats struct {
	Retransmits        uint64 `json:"retransmits"`         // segments sent again
	Timeouts           uint64 `json:"timeouts"`            // retransmission timeouts
	FastRetransmits    uint64 `json:"fast_retransmits"`    // segments sent again in recovery
	SACKRecoveries     uint64 `json:"sack_recoveries"`     // times that loss was recovered from
	SpuriousRecoveries uint64 `json:"spurious_recoveries"` // times that nothing was lost after all
	TLPRecoveries      uint64 `json:"tlp_recoveries"`      // losses repaired by a tail loss probe
	DSACKs             uint64 `json:"dsacks"`              // segments that had arrived twice
	SendErrors         uint64 `json:"send_errors"`         // segments refused by the endpoint
}

// TCPStats reads them.
func (d *Device) TCPStats() TCPStats {
	s := d.Stack.Stats().TCP
	return TCPStats{
		Retransmits: s.Retransmits.Value(), Timeouts: s.Timeouts.Value(), FastRetransmits: s.FastRetransmit.Value(),
		SACKRecoveries: s.SACKRecovery.Value(), SpuriousRecoveries: s.SpuriousRecovery.Value(),
		TLPRecoveries: s.TLPRecovery.Value(), DSACKs: s.SegmentsAckedWithDSACK.Value(),
		SendErrors: s.SegmentSendErrors.Value(),
	}
}

// Since is what happened after b.
func (s TCPStats) Since(b TCPStats) TCPStats {
	return TCPStats{
		Retransmits: s.Retransmits - b.Retransmits, Timeouts: s.Timeouts - b.Timeouts,
		FastRetransmits: s.FastRetransmits - b.FastRetransmits, SACKRecoveries: s.SACKRecoveries - b.SACKRecoveries,
		SpuriousRecoveries: s.SpuriousRecoveries - b.SpuriousRecoveries, TLPRecoveries: s.TLPRecoveries - b.TLPRecoveries,
		DSACKs: s.DSACKs - b.DSACKs, SendErrors: s.SendErrors - b.SendErrors,
	}
}
