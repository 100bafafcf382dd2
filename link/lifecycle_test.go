package link

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw/sim"
)

// within fails the test if f does not return.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(hang):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s does not return\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// flood sends echo requests from a host as fast as it can until stop is closed.
func flood(h *host, to tcpip.Address, stop <-chan struct{}, done *sync.WaitGroup) {
	defer done.Done()
	ping := make([]byte, header.ICMPv4MinimumSize+56)
	header.ICMPv4(ping).SetType(header.ICMPv4Echo)
	for seq := uint16(0); ; seq++ {
		select {
		case <-stop:
			return
		default:
		}
		header.ICMPv4(ping).SetSequence(seq)
		header.ICMPv4(ping).SetChecksum(0)
		header.ICMPv4(ping).SetChecksum(^naiveSum(ping))
		r, err := h.stack.FindRoute(1, tcpip.Address{}, to, ipv4.ProtocolNumber, false)
		if err != nil {
			return // the NIC is gone
		}
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{
			ReserveHeaderBytes: int(r.MaxHeaderLength()),
			Payload:            buffer.MakeWithData(ping),
		})
		r.WritePacket(stack.NetworkHeaderParams{Protocol: header.ICMPv4ProtocolNumber, TTL: 64}, pkt)
		pkt.DecRef()
		r.Release()
	}
}

// stream keeps a TCP connection busy until stop is closed.
func stream(t *testing.T, from, to *host, stop <-chan struct{}, done *sync.WaitGroup) {
	l, err := gonet.ListenTCP(to.stack, tcpip.FullAddress{Port: 9}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			c = nil
		}
		accepted <- c
	}()
	c, err := gonet.DialTCP(from.stack, tcpip.FullAddress{Addr: to.addr, Port: 9}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	peer := <-accepted
	l.Close()
	buf := make([]byte, 64<<10)
	done.Go(func() {
		for {
			if _, err := peer.Read(buf); err != nil {
				return
			}
		}
	})
	done.Go(func() {
		for {
			if _, err := c.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	done.Go(func() {
		<-stop
		past := time.Unix(1, 0) // wakes both, whatever has become of the stacks
		c.SetDeadline(past)
		peer.SetDeadline(past)
		c.Close()
		peer.Close()
	})
}

// RemoveNIC, Destroy and Close return under a ping flood and a running transfer, and leave neither goroutine nor packet
// behind (cases GV-01, GV-12, IRQ-06, LIFE-01).
func TestTeardownUnderLoad(t *testing.T) {
	teardown := map[string]func(h *host){
		"RemoveNIC": func(h *host) { h.stack.RemoveNIC(1) },
		"Destroy":   func(h *host) { h.destroy() },
		"Close":     func(h *host) { h.ep.Close() },
	}
	n := 100
	if testing.Short() {
		n = 5
	}
	for name, end := range teardown {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			x, y := newBoard(t, sim.Options{}), newBoard(t, sim.Options{})
			cable, err := sim.Connect(x, y, sim.CableOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer cable.Close()
			for range n {
				a, b := newHost(t, x, 1, Options{}), newHost(t, y, 2, Options{})
				stop := make(chan struct{})
				var load sync.WaitGroup
				stream(t, b, a, stop, &load)
				load.Add(2)
				go flood(b, a.addr, stop, &load)
				go flood(a, b.addr, stop, &load)
				eventually(t, "traffic", func() bool { return a.ep.stats.rxPackets.Load() > 200 })
				within(t, name, func() { end(a) })
				close(stop)
				load.Wait()
				within(t, "Destroy", a.destroy)
				within(t, "Destroy", b.destroy)
				if !a.ep.stopping.Load() {
					t.Fatal("the endpoint still runs")
				}
				<-a.ep.done
			}
		})
	}
}

// Close runs the action once, with no lock held, and may be called from it and again.
func TestCloseIsReentrant(t *testing.T) {
	checkGoroutines(t)
	b := newBoard(t, sim.Options{})
	ep, err := New(b.Port(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	ep.SetOnCloseAction(func() { // what CreateNIC's action does
		calls++
		ep.SetOnCloseAction(nil)
		ep.Attach(nil)
		ep.Wait()
		ep.Close()
	})
	within(t, "Close", ep.Close)
	within(t, "second Close", ep.Close)
	if calls != 1 {
		t.Errorf("action ran %d times", calls)
	}
}

// dispatch is a NetworkDispatcher made of a function.
type dispatch func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer)

func (d dispatch) DeliverNetworkPacket(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	d(p, pkt)
}
func (d dispatch) DeliverLinkPacket(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {}

// A handler that runs within a delivery may close the endpoint: it must not wait for itself. It may also call every other
// method.
func TestCloseFromDelivery(t *testing.T) {
	checkGoroutines(t)
	b, h := newBoard(t, sim.Options{}), sim.NewHost(nil)
	defer h.Close()
	cable, err := sim.Connect(b, h, sim.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cable.Close()
	ep, err := New(b.Port(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var deliveries atomic.Int32
	ep.Attach(dispatch(func(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
		deliveries.Add(1)
		var list stack.PacketBufferList
		list.PushBack(pkt.IncRef())
		ep.WritePackets(list)
		list.Reset()
		ep.SetMTU(1400)
		ep.JoinMulticast([6]byte{1, 0, 0x5e, 0, 0, 1})
		ep.Stats()
		ep.Attach(nil)
		ep.Wait()
		ep.Close()
	}))
	eventually(t, "link", ep.linkUp.Load)
	a := ep.Address()
	frame := append(append(a[:], 2, 0, 0, 0, 0, 9, 0x88, 0xb5), make([]byte, 50)...)
	if err := h.Send(frame); err != nil {
		t.Fatal(err)
	}
	within(t, "shutdown", func() { <-ep.done })
	within(t, "Close", ep.Close)
	if deliveries.Load() != 1 {
		t.Errorf("%d deliveries", deliveries.Load())
	}
}

// Writers and Close race: each packet is sent or counted, and afterwards the answer is ErrClosedForSend (cases GV-05, GV-06).
func TestWriteWhileClosing(t *testing.T) {
	n := 200
	if testing.Short() {
		n = 10
	}
	checkGoroutines(t)
	b := newBoard(t, sim.Options{})
	sink := sim.NewHost(nil)
	defer sink.Close()
	cable, err := sim.Connect(b, sink, sim.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cable.Close()
	for range n {
		ep, err := New(b.Port(), Options{TXSlots: 16})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "link", ep.linkUp.Load)
		var writers sync.WaitGroup
		var tried, accepted, refused atomic.Int64
		for range 4 {
			writers.Go(func() {
				for {
					pkt := rawPacket(60)
					var list stack.PacketBufferList
					list.PushBack(pkt)
					tried.Add(1)
					_, err := ep.WritePackets(list)
					list.Reset()
					switch err.(type) {
					case nil:
						accepted.Add(1)
					case *tcpip.ErrClosedForSend:
						refused.Add(1)
						return
					case *tcpip.ErrNoBufferSpace:
						refused.Add(1)
					default:
						t.Errorf("unexpected error %v", err)
						return
					}
				}
			})
		}
		eventually(t, "writes", func() bool { return accepted.Load() > 100 })
		within(t, "Close", ep.Close)
		writers.Wait()
		s := ep.Stats()
		dropped := int64(s.TXClosed + s.TXQueueFull + s.TXLinkDown)
		if got := int64(s.TXFrames) + dropped; got != tried.Load() {
			t.Errorf("%d packets: %d frames sent and %d counted as dropped", tried.Load(), s.TXFrames, dropped)
		}
	}
}

// rawPacket is a packet of n bytes with an Ethernet header and nothing that means anything to the stack.
func rawPacket(n int) *stack.PacketBuffer {
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: rawPayload(n)})
	pkt.LinkHeader().Consume(min(n, ethernetHeader))
	return pkt
}

func rawPayload(n int) buffer.Buffer {
	b := make([]byte, n)
	copy(b, []byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5})
	return buffer.MakeWithData(b)
}
