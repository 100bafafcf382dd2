package link

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/refs"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"dwnet/hw/sim"
)

// hang is how long a test waits for something that must happen. It is a guard, not an expectation.
const hang = 60 * time.Second

// All tests run with gVisor's leak checker: every packet buffer made is released in the end.
func TestMain(m *testing.M) {
	refs.SetLeakMode(refs.LeaksPanic)
	code := m.Run()
	if code == 0 {
		refs.DoLeakCheck()
	}
	os.Exit(code)
}

// host is a simulated board with an endpoint and a stack on it.
type host struct {
	board *sim.Board
	ep    *Endpoint
	stack *stack.Stack
	addr  tcpip.Address
	addr6 tcpip.Address
	gone  sync.Once
}

// newBoard makes a board that fails the test when the driver breaks a rule.
func newBoard(t testing.TB, o sim.Options) *sim.Board {
	t.Helper()
	b, err := sim.NewBoard(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		for _, v := range b.Violations() {
			t.Errorf("%s: the driver broke a rule: %v", b.Name(), v)
		}
	})
	return b
}

// newHost puts a stack with addresses 10.0.0.n and fd00::n on a board.
func newHost(t testing.TB, b *sim.Board, n byte, o Options) *host {
	t.Helper()
	port := b.Port()
	ep, err := New(port, o)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{board: b, ep: ep, addr: tcpip.AddrFrom4([4]byte{10, 0, 0, n}), addr6: tcpip.AddrFrom16([16]byte{0: 0xfd, 15: n})}
	h.stack = stack.New(stack.Options{
		Clock:              StackClock(port.Clock()),
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6},
	})
	if err := h.stack.CreateNIC(1, ep); err != nil {
		t.Fatal(err)
	}
	for _, p := range []tcpip.ProtocolAddress{
		{Protocol: header.IPv4ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: h.addr, PrefixLen: 24}},
		{Protocol: header.IPv6ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: h.addr6, PrefixLen: 64}},
	} {
		if err := h.stack.AddProtocolAddress(1, p, stack.AddressProperties{}); err != nil {
			t.Fatal(err)
		}
	}
	h.stack.SetRouteTable([]tcpip.Route{
		{Destination: header.IPv4EmptySubnet, NIC: 1},
		{Destination: header.IPv6EmptySubnet, NIC: 1},
	})
	t.Cleanup(h.destroy)
	return h
}

func (h *host) destroy() { h.gone.Do(h.stack.Destroy) }

// pair is two hosts on a cable.
func pair(t testing.TB, cable sim.CableOptions, o Options) (a, b *host, c *sim.Cable) {
	t.Helper()
	checkGoroutines(t)
	x, y := newBoard(t, sim.Options{}), newBoard(t, sim.Options{})
	c, err := sim.Connect(x, y, cable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return newHost(t, x, 1, o), newHost(t, y, 2, o), c
}

// checkGoroutines fails the test if goroutines of this project are left at its end (case GV-12).
func checkGoroutines(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		var left string
		for deadline := time.Now().Add(hang); time.Now().Before(deadline); {
			buf := make([]byte, 1<<20)
			left = ""
			for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
				if strings.Contains(g, "dwnet/") && !strings.Contains(g, "checkGoroutines") && !strings.Contains(g, "testing.tRunner(") &&
					!strings.Contains(g, "TestMain") {
					left += g + "\n\n"
				}
			}
			if left == "" {
				return
			}
			runtime.Gosched()
		}
		t.Errorf("goroutines are left:\n%s", left)
	})
}

// transfer sends n random bytes over TCP from one host to another and compares the digests of both ends.
func transfer(t testing.TB, from, to *host, v6 bool, n int64) {
	t.Helper()
	if err := tryTransfer(from, to, v6, n); err != nil {
		t.Fatal(err)
	}
}

// nextPort makes each transfer use a port of its own: a listener lives on for a while after its Close.
var nextPort atomic.Uint32

func tryTransfer(from, to *host, v6 bool, n int64) error {
	network, addr := ipv4.ProtocolNumber, to.addr
	if v6 {
		network, addr = ipv6.ProtocolNumber, to.addr6
	}
	port := uint16(10000 + nextPort.Add(1)%50000)
	l, err := gonet.ListenTCP(to.stack, tcpip.FullAddress{Port: port}, network)
	if err != nil {
		return err
	}
	defer l.Close()
	type result struct {
		sum [32]byte
		n   int64
		err error
	}
	received := make(chan result, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			received <- result{err: err}
			return
		}
		defer c.Close()
		h := sha256.New()
		n, err := io.Copy(h, c)
		received <- result{[32]byte(h.Sum(nil)), n, err}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, from.stack, tcpip.FullAddress{Addr: addr, Port: port}, network)
	if err != nil {
		return fmt.Errorf("dial: %w", err)
	}
	defer c.Close()
	h := sha256.New()
	src := rand.NewChaCha8([32]byte{1})
	if _, err := io.CopyN(io.MultiWriter(c, h), src, n); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := c.CloseWrite(); err != nil {
		return err
	}
	select {
	case r := <-received:
		if r.err != nil {
			return fmt.Errorf("receive: %w", r.err)
		}
		if r.n != n || r.sum != [32]byte(h.Sum(nil)) {
			return fmt.Errorf("received %d of %d bytes, digests equal: %t", r.n, n, r.sum == [32]byte(h.Sum(nil)))
		}
	case <-time.After(4*hang + time.Duration(n)*10*time.Microsecond): // 100 KB/s
		return errors.New("hangs")
	}
	return nil
}

// eventually waits until f returns true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hang); !f(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// size is n, or less where tests are slow.
func size(n int64) int64 {
	if testing.Short() {
		return n / 16
	}
	return n
}
