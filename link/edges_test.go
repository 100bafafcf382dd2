package link

import (
	"sync/atomic"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
	"dwnet/hw/sim"
)

func writeOne(ep *Endpoint, p *stack.PacketBuffer) {
	var list stack.PacketBufferList
	list.PushBack(p)
	ep.WritePackets(list)
	list.Reset()
}

// lone is an endpoint on a board whose cable ends in a host.
func lone(t *testing.T, b sim.Options, c sim.CableOptions, o Options, rx func([]byte)) (*Endpoint, *sim.Board) {
	t.Helper()
	checkGoroutines(t)
	board := newBoard(t, b)
	h := sim.NewHost(rx)
	cable, err := sim.Connect(board, h, c)
	if err != nil {
		t.Fatal(err)
	}
	ep, err := New(board.Port(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ep.Close()
		cable.Close()
		h.Close()
	})
	eventually(t, "link", ep.linkUp.Load)
	return ep, board
}

// gVisor computes the payload of a packet as GSOMaxSize - 161, unsigned, and takes whatever an endpoint says: with no MTU may
// that come out below.
func TestGSOSizes(t *testing.T) {
	for mtu := uint32(minMTU); mtu <= maxMTU; mtu++ {
		for _, speed := range []int{10, 100, 1000} {
			if g := autoGSO(speed, mtu); g < tcpReserve+2*8 || g > 65536 {
				t.Fatalf("MTU %d at %d Mbit/s: automatic size %d", mtu, speed, g)
			}
		}
		if checkGSO(minGSO(mtu)-1, mtu) == nil || checkGSO(minGSO(mtu), mtu) != nil || checkGSO(65537, mtu) == nil {
			t.Fatalf("MTU %d: wrong bounds", mtu)
		}
	}
	if got := autoGSO(1000, 1500); got != 65481 {
		t.Errorf("automatic size at a gigabit is %d, want 65481: 46 whole segments", got)
	}
}

// The MTU is checked against the hardware before anything changes (case COE-03), and whatever it is, frames are sent.
func TestMTU(t *testing.T) {
	var frames atomic.Int64
	ep, _ := lone(t, sim.Options{}, sim.CableOptions{}, Options{MTU: 80, TXSlots: 2, Hardware: hw.Config{TXSlotBytes: 256}}, func([]byte) { frames.Add(1) })
	if err := ep.ChangeMTU(1500); err == nil {
		t.Error("a frame of 1514 bytes was promised by a ring of 512")
	}
	ep.SetMTU(67)
	if ep.MTU() != 80 {
		t.Errorf("MTU %d after two changes that were refused", ep.MTU())
	}
	writeOne(ep, rawPacket(60))
	if err := ep.ChangeMTU(400); err != nil {
		t.Error(err)
	}
	writeOne(ep, rawPacket(414))
	eventually(t, "both frames are sent", func() bool { return frames.Load() == 2 })

	board := newBoard(t, sim.Options{})
	if ep, err := New(board.Port(), Options{Hardware: hw.Config{RXSlotBytes: 1024}}); err == nil {
		t.Error("an MTU of 1500 was promised by receive slots of 1024")
		ep.Close()
	}
}

// A packet that was queued for a larger MTU is dropped as too long when its turn comes (case GSO-18).
func TestMTUShrinks(t *testing.T) {
	ep, _ := timeless(t, Options{}, nil)
	p := superPacket{payload: make([]byte, 5000)}
	flat, hdrLen := p.bytes()
	ep.pause(true)
	writeOne(ep, packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: 1420}, hdrLen, 900))
	writeOne(ep, rawPacket(1514))
	ep.SetMTU(1000)
	ep.pause(false)
	ep.pumpFromWriter()
	eventually(t, "the queue empties", func() bool { n, _ := ep.queue.length(); return n == 0 && ep.stats.txTooLong.Load() == 2 })
}

// A transmitter that is dead and has little to send is reset in the end: that a restart has emptied the ring proves nothing.
func TestRecoveryEscalates(t *testing.T) {
	ep, board := lone(t, sim.Options{}, sim.CableOptions{}, Options{HangTime: 20 * time.Millisecond}, nil)
	board.Faults().SetTXHang(sim.TXHangStatus)
	eventually(t, "reset", func() bool {
		if ep.mac.TX().Pending() == 0 {
			writeOne(ep, rawPacket(60))
		}
		return ep.Stats().Resets > 0
	})
	board.Faults().Clear()
}

// A backlog larger than what the loop does between two looks at its timers is worked off without waiting for one.
func TestBacklogAtTick(t *testing.T) {
	clock := sim.NewSteppedClock(time.Unix(1e9, 0))
	ep, h := timelessOn(t, clock, Options{RXSlots: 4096}, nil)
	var delivered, arrived atomic.Int64
	gate := make(chan struct{})
	ep.Attach(dispatch(func(tcpip.NetworkProtocolNumber, *stack.PacketBuffer) {
		if delivered.Add(1) == 1 {
			<-gate
		}
	}))
	const n = 3000
	for range n {
		eventually(t, "the host takes a frame", func() bool { return h.Send(ethernet(ep.Address(), 0x88b5, 46)) == nil })
		arrived.Add(1)
	}
	eventually(t, "all frames are in the ring", func() bool { return h.Queued() == 0 })
	clock.Advance(3 * tick) // the tick is due, and then the clock stands still
	close(gate)
	eventually(t, "all frames are delivered", func() bool { return delivered.Load() == n })
}

// Close accounts for every packet: on the wire, or counted as dropped (cases GV-05, GV-06).
func TestCloseAccountsForPackets(t *testing.T) {
	var wire atomic.Int64
	ep, _ := lone(t, sim.Options{}, sim.CableOptions{SpeedMbps: 100}, Options{}, func([]byte) { wire.Add(1) })
	const n = 200
	for range n {
		writeOne(ep, rawPacket(1514))
	}
	within(t, "Close", ep.Close)
	s := ep.Stats()
	if s.TXClosed+s.TXFlushed == 0 {
		t.Error("a second of wire was sent in no time")
	}
	eventually(t, "every packet is on the wire or counted", func() bool { return uint64(wire.Load())+s.TXClosed+s.TXFlushed == n })
}

// When the DMA cannot be stopped, that is counted, and the port is not closed: its memory is still written to (case LIFE-03).
func TestCloseOfRunningDMA(t *testing.T) {
	checkGoroutines(t)
	board, err := sim.NewBoard(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer board.Close()
	port := board.Port()
	ep, err := New(port, Options{})
	if err != nil {
		t.Fatal(err)
	}
	board.Faults().Freeze(sim.BitSR, true)
	board.Faults().SetStuckReset(true)
	within(t, "Close", ep.Close)
	if ep.Stats().HardwareErrors == 0 {
		t.Error("nothing was counted")
	}
	if m, err := port.Alloc(64, 64); err != nil {
		t.Errorf("the port is closed: %v", err)
	} else {
		port.Free(m)
	}
	port.Close()
}

// Without a PHY the link is what the wiring is for.
func TestLinkWithoutPHY(t *testing.T) {
	checkGoroutines(t)
	board := newBoard(t, sim.Options{PHYMode: "rmii"})
	ep, err := New(board.Port(), Options{Hardware: hw.Config{PHY: hw.PHYAt(5)}})
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	if l, up := ep.LinkState(); !up || l.Speed != 100 {
		t.Errorf("RMII without PHY: %+v, up %t", l, up)
	}
}

// A PHY that stops to answer leaves the link as it was.
func TestPHYVanishes(t *testing.T) {
	ep, board := lone(t, sim.Options{}, sim.CableOptions{SpeedMbps: 100}, Options{}, nil)
	before := ep.stats.hardwareErrors.Load()
	board.Faults().SetPHYAbsent(true)
	eventually(t, "the PHY is missed", func() bool { return ep.stats.hardwareErrors.Load() > before })
	if l, up := ep.LinkState(); !up || l.Speed != 100 {
		t.Errorf("after the PHY has gone: %+v, up %t", l, up)
	}
	board.Faults().Clear()
}
