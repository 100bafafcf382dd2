package link

import (
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw/sim"
)

// A stack that routes between two endpoints with Forwarding passes a TCP stream, whose packets must not be fragmented, frame
// for frame: nothing merged on the way in is too large on the way out.
//
// It runs without the race detector, which finds a race within gVisor, with gVisor's own pipe endpoints as well: its
// forwardPacketWithRoute (network/ipv4/ipv4.go) reads the TTL through a slice of a header whose memory a PullUp has released.
func TestRouterPassesStream(t *testing.T) {
	if raceDetector {
		t.Skip("gVisor's IPv4 forwarding has a race of its own")
	}
	checkGoroutines(t)
	a, r1, r2, b := newBoard(t, sim.Options{}), newBoard(t, sim.Options{}), newBoard(t, sim.Options{}), newBoard(t, sim.Options{})
	for _, ends := range [][2]*sim.Board{{a, r1}, {r2, b}} {
		c, err := sim.Connect(ends[0], ends[1], sim.CableOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	left, right := newHost(t, a, 1, Options{}), newHost(t, b, 2, Options{})
	right.addr = tcpip.AddrFrom4([4]byte{10, 0, 1, 2})
	right.stack.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol: header.IPv4ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: right.addr, PrefixLen: 24},
	}, stack.AddressProperties{})

	router := stack.New(stack.Options{NetworkProtocols: []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol}})
	defer router.Destroy()
	var eps [2]*Endpoint
	for i, board := range []*sim.Board{r1, r2} {
		ep, err := New(board.Port(), Options{Forwarding: true})
		if err != nil {
			t.Fatal(err)
		}
		eps[i] = ep
		id := tcpip.NICID(i + 1)
		if err := router.CreateNIC(id, ep); err != nil {
			t.Fatal(err)
		}
		gateway := tcpip.AddrFrom4([4]byte{10, 0, byte(i), 254})
		router.AddProtocolAddress(id, tcpip.ProtocolAddress{
			Protocol: header.IPv4ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: gateway, PrefixLen: 24},
		}, stack.AddressProperties{})
		h := []*host{left, right}[i]
		h.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, Gateway: gateway, NIC: 1}})
	}
	subnet := func(third byte) tcpip.Subnet {
		return tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{10, 0, third, 0}), PrefixLen: 24}.Subnet()
	}
	router.SetRouteTable([]tcpip.Route{{Destination: subnet(0), NIC: 1}, {Destination: subnet(1), NIC: 2}})
	router.SetForwardingDefaultAndAllNICs(ipv4.ProtocolNumber, true)

	// Only 10.0.1.2 is reachable through the router; right's first address would be taken for local.
	for _, dir := range [][2]*host{{left, right}} {
		transfer(t, dir[0], dir[1], false, size(16<<20))
	}
	in, out := eps[0].Stats(), eps[1].Stats()
	if in.RXMerged != 0 || in.RXThinned != 0 {
		t.Errorf("%d segments merged and %d ACKs thinned with Forwarding", in.RXMerged, in.RXThinned)
	}
	if d := int64(in.RXPackets) - int64(out.TXFrames); d < -10 || d > 10 { // ARP is not forwarded
		t.Errorf("%d frames came in and %d went out", in.RXPackets, out.TXFrames)
	}
	if n := in.Drops() + out.Drops(); n != 0 {
		t.Errorf("%d drops", n)
	}
}
