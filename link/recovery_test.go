package link

import (
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw/sim"
)

// What breaks in the hardware is repaired, in stages, and connections live on (cases RXR-12, BQL-08, TXR-11, E-37, E-38).
func TestRecovery(t *testing.T) {
	for name, tc := range map[string]struct {
		fault func(f *sim.Faults)
		heal  bool // the fault stays until it is taken away
		sign  func(s Stats) bool
	}{
		"bus error on transmit data":       {fault: func(f *sim.Faults) { f.InjectBusError(sim.BusErrorTXData) }, sign: func(s Stats) bool { return s.FatalErrors > 0 && s.Resets > 0 }},
		"bus error on receive descriptors": {fault: func(f *sim.Faults) { f.InjectBusError(sim.BusErrorRXDescriptorRead) }, sign: func(s Stats) bool { return s.FatalErrors > 0 && s.Resets > 0 }},
		"transmit underflow":               {fault: func(f *sim.Faults) { f.InjectUNF() }, sign: func(s Stats) bool { return s.TXUnderflows > 0 }},
		"doorbells have no effect":         {fault: func(f *sim.Faults) { f.SetTXHang(sim.TXHangDeaf) }, heal: true, sign: func(s Stats) bool { return s.TXRekicks > 0 && s.TXRestarts+s.Resets > 0 }},
		"transmitter stops":                {fault: func(f *sim.Faults) { f.SetTXHang(sim.TXHangStopped) }, heal: true, sign: func(s Stats) bool { return s.TXRestarts+s.Resets > 0 }},
		"status is never written":          {fault: func(f *sim.Faults) { f.SetTXHang(sim.TXHangStatus) }, heal: true, sign: func(s Stats) bool { return s.TXRestarts+s.Resets > 0 }},
		"device gone for a while":          {fault: func(f *sim.Faults) { f.SetGone(true) }, heal: true, sign: func(s Stats) bool { return s.Gone > 0 }},
		"reset does not work for a while": {
			fault: func(f *sim.Faults) { f.SetStuckReset(true); f.InjectBusError(sim.BusErrorTXData) }, heal: true,
			sign: func(s Stats) bool { return s.ResetsFailed > 0 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pair(t, sim.CableOptions{SpeedMbps: 1000, BackPressure: true}, Options{HangTime: 20 * time.Millisecond})
			done := make(chan error, 1)
			go func() { done <- tryTransfer(a, b, false, size(16<<20)) }()
			eventually(t, "traffic", func() bool { return a.ep.stats.txFrames.Load() > 100 })
			tc.fault(a.board.Faults())
			eventually(t, "the fault is noticed", func() bool { return tc.sign(a.ep.Stats()) })
			if tc.heal {
				a.board.Faults().Clear()
				forgive(t, a.board, sim.RuleResetBusy)
			}
			if err := <-done; err != nil {
				t.Errorf("the connection did not survive: %v; %+v", err, a.ep.Stats())
			}
			transfer(t, b, a, false, 1<<20)
		})
	}
}

// A receive engine that an overflow has killed is found and the MAC reset; a healthy idle link is left alone (case RXR-12).
func TestDeadReceiver(t *testing.T) {
	a, b, _ := pair(t, sim.CableOptions{SpeedMbps: 1000}, Options{HangTime: 20 * time.Millisecond})
	transfer(t, b, a, false, 1<<20)
	a.board.Faults().KillRX()
	done := make(chan error, 1)
	go func() { done <- tryTransfer(b, a, false, 4<<20) }()
	eventually(t, "reset", func() bool { return a.ep.Stats().RXDead > 0 })
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := b.ep.Stats(); s.Resets != 0 {
		t.Errorf("the healthy side was reset: %+v", s)
	}
}

// Lost interrupts and lost doorbells cost time, not packets.
func TestLostInterrupts(t *testing.T) {
	a, b, _ := pair(t, sim.CableOptions{}, Options{})
	for _, h := range []*host{a, b} {
		h.board.Faults().LoseEveryInterrupt(3)
	}
	transfer(t, a, b, false, size(4<<20))
	for _, h := range []*host{a, b} {
		if s := h.ep.Stats(); s.Resets != 0 || s.TXRestarts != 0 {
			t.Errorf("recovery was not needed: %+v", s)
		}
	}
}

// WritePackets never waits for a reset that is under way: the packets are queued or counted (case IRQ-07).
func TestWriteDuringReset(t *testing.T) {
	checkGoroutines(t)
	board, h := newBoard(t, sim.Options{}), sim.NewHost(nil)
	cable, err := sim.Connect(board, h, sim.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cable.Close()
	defer h.Close()
	ep, err := New(board.Port(), Options{HangTime: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer ep.Close()
	eventually(t, "link", ep.linkUp.Load)
	board.Faults().SetStuckReset(true)
	board.Faults().InjectBusError(sim.BusErrorTXData)
	writes := 0
	eventually(t, "three failed resets", func() bool {
		pkt := rawPacket(60)
		var list stack.PacketBufferList
		list.PushBack(pkt)
		ep.WritePackets(list)
		list.Reset()
		writes++
		return ep.Stats().ResetsFailed >= 3
	})
	board.Faults().Clear()
	forgive(t, board, sim.RuleResetBusy)
	eventually(t, "each packet is sent or counted", func() bool {
		s := ep.Stats()
		return s.TXFrames+s.TXQueueFull+s.TXLinkDown == uint64(writes)
	})
}

// forgive strikes breaches of one rule off a board's list: a reset that never ends can only be tried again by writing to the
// registers, and the PHY, whose missing clock is the usual reason, can only be woken through them.
func forgive(t *testing.T, b *sim.Board, rule sim.Rule) {
	t.Helper()
	for _, v := range b.Violations() {
		if v.Rule != rule {
			t.Errorf("%s: the driver broke a rule: %v", b.Name(), v)
		}
	}
	b.ClearViolations()
}
