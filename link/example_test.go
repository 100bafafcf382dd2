package link_test

import (
	"fmt"
	"io"
	"log"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"dwnet/hw"
	"dwnet/hw/sim"
	"dwnet/link"
)

// attach makes a network stack with one address on a board: all that an appliance needs.
func attach(port hw.Port, address tcpip.Address) (*stack.Stack, error) {
	ep, err := link.New(port, link.Options{}) // resets and starts the MAC
	if err != nil {
		return nil, err
	}
	s := stack.New(stack.Options{
		Clock:              link.StackClock(port.Clock()),
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	if err := s.CreateNIC(1, ep); err != nil {
		ep.Close()
		return nil, fmt.Errorf("create NIC: %v", err)
	}
	s.AddProtocolAddress(1, tcpip.ProtocolAddress{
		Protocol:          header.IPv4ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: address, PrefixLen: 24},
	}, stack.AddressProperties{})
	s.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})
	return s, nil
}

// Two simulated boards on a gigabit cable, a server on one and a client on the other.
func Example() {
	a, err := sim.NewBoard(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := sim.NewBoard(sim.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	cable, err := sim.Connect(a, b, sim.CableOptions{SpeedMbps: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer cable.Close()

	server, err := attach(a.Port(), tcpip.AddrFrom4([4]byte{192, 168, 77, 1}))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Destroy() // removes the NIC, which stops the MAC
	client, err := attach(b.Port(), tcpip.AddrFrom4([4]byte{192, 168, 77, 2}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Destroy()

	at := tcpip.FullAddress{Addr: tcpip.AddrFrom4([4]byte{192, 168, 77, 1}), Port: 7}
	listener, err := gonet.ListenTCP(server, at, ipv4.ProtocolNumber)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		if conn, err := listener.Accept(); err == nil {
			io.Copy(conn, conn)
			conn.Close()
		}
	}()
	conn, err := gonet.DialTCP(client, at, ipv4.ProtocolNumber)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(conn, "hello, board")
	conn.CloseWrite()
	answer, err := io.ReadAll(conn)
	conn.Close()
	fmt.Println(string(answer), err)
	// Output: hello, board <nil>
}
