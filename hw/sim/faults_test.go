package sim

import (
	"testing"
	"time"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

func TestLostInterrupts(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regStatus, 0x1FFFF)
	woken := func() bool {
		t.Helper()
		w, err := x.irq.Wait(0)
		if err != nil {
			t.Fatal(err)
		}
		return w == hw.WakeInterrupt
	}
	x.b.Faults().LoseInterrupts(1)
	x.b.Faults().InjectStatus(stRI)
	if woken() || woken() {
		t.Error("the interrupt was not lost")
	}
	x.b.Faults().InjectStatus(stTI)
	if !woken() {
		t.Error("the next event was lost too")
	}
	x.r.Store32(regStatus, 0x1FFFF)
	x.irq.Enable()
	x.b.Faults().LoseInterrupts(1)
	x.b.Faults().InjectStatus(stRI)
	if woken() {
		t.Error("the interrupt was not lost")
	}
	x.irq.Enable()
	if !woken() {
		t.Error("enabling does not find the level")
	}
	x.r.Store32(regStatus, 0x1FFFF)
	x.irq.Enable()
	x.b.Faults().LoseEveryInterrupt(3)
	got := 0
	for range 9 {
		x.b.Faults().InjectStatus(stRI)
		if woken() {
			got++
		}
		x.r.Store32(regStatus, 0x1FFFF)
		x.irq.Enable()
	}
	if got != 6 {
		t.Errorf("%d interrupts of 9 with every third lost", got)
	}
	if n := x.b.Stats().InterruptsLost; n != 5 {
		t.Errorf("%d losses counted", n)
	}
}

func TestLostKicks(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().LoseKicks(1)
	x.send(makeFrame(hostMAC, x.mac(), 60))
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 0 {
		t.Error("the poll demand was not lost")
	}
	x.kick()
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 1 {
		t.Error("the next one was")
	}
}

func TestSlowRegisters(t *testing.T) {
	b := newBoard(t, Options{Clock: NewDilatedClock(1)})
	r := b.Port().Registers()
	b.Faults().SetRegisterDelay(300 * time.Microsecond)
	begin := b.Clock().Now()
	r.Load32(regVersion)
	r.Store32(regHashLow, 0)
	if d := b.Clock().Now().Sub(begin); d < 600*time.Microsecond {
		t.Errorf("two accesses took %v", d)
	}
}

func TestFrozenBits(t *testing.T) {
	for _, c := range []struct {
		name string
		bit  Bit
		do   func(x *bench) // starts what does not end
		busy func(x *bench) bool
	}{
		{"GB", BitGB, func(x *bench) { x.r.Store32(regMIIAddress, 4<<miiCR|miiGB) }, func(x *bench) bool { return x.r.Load32(regMIIAddress)&miiGB != 0 }},
		{"SWR", BitSWR, func(x *bench) { x.r.Store32(regBusMode, busSWR) }, func(x *bench) bool { return x.r.Load32(regBusMode)&busSWR != 0 }},
		{"FTF", BitFTF, func(x *bench) { x.r.Store32(regOpMode, x.opMode|opFTF) }, func(x *bench) bool { return x.r.Load32(regOpMode)&opFTF != 0 }},
		{"CNTRST", BitCNTRST, func(x *bench) { x.r.Store32(regMMCControl, mmcReset) }, func(x *bench) bool { return x.r.Load32(regMMCControl)&mmcReset != 0 }},
		{"FCB", BitFCB, func(x *bench) { x.r.Store32(regFlowControl, flowTFE|flowFCB) }, func(x *bench) bool { return x.r.Load32(regFlowControl)&flowFCB != 0 }},
		{"ST", BitST, func(x *bench) { x.r.Store32(regOpMode, x.opMode&^opST) }, func(x *bench) bool { return x.status()>>stTS&7 != tsStopped }},
		{"SR", BitSR, func(x *bench) { x.r.Store32(regOpMode, x.opMode&^opSR) }, func(x *bench) bool { return x.status()>>stRS&7 != rsStopped }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, frozen := range []bool{false, true} {
				x := newBench(t, Options{}, driverOptions{}, gigabit())
				x.clock.Advance(time.Millisecond)
				x.b.Faults().Freeze(c.bit, frozen)
				c.do(x)
				x.clock.Advance(time.Second)
				if got := c.busy(x); got != frozen {
					t.Errorf("frozen %v: busy %v", frozen, got)
				}
				noViolations(t, x.b)
			}
		})
	}
}

func TestResetFaults(t *testing.T) {
	hangs := func(x *bench) bool {
		x.r.Store32(regBusMode, busSWR)
		x.clock.Advance(time.Second)
		return x.r.Load32(regBusMode)&busSWR != 0
	}
	for _, c := range []struct {
		name string
		set  func(f *Faults, on bool)
	}{
		{"stuck", (*Faults).SetStuckReset},
		{"no receive clock", (*Faults).SetNoRXClock},
		{"PHY absent", (*Faults).SetPHYAbsent},
		{"PHY down", (*Faults).SetPHYStuckDown},
	} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		c.set(x.b.Faults(), true)
		if !hangs(x) {
			t.Errorf("%s: the reset ends", c.name)
		}
		c.set(x.b.Faults(), false)
		if x.r.Load32(regBusMode)&busSWR != 0 {
			t.Errorf("%s: the reset does not end afterwards", c.name)
		}
		x.clock.Advance(10 * time.Millisecond)
		if x.r.Load32(regRGMIIStatus)&rgmiiUp == 0 {
			t.Errorf("%s: no link afterwards", c.name)
		}
	}
}

func TestPHYFaultsAsSeenOverMDIO(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().SetPHYAbsent(true)
	if v := x.phyRead(miiID1); v != 0xFFFF {
		t.Errorf("an absent PHY reads 0x%x", v)
	}
	x.b.Faults().SetPHYAbsent(false)
	x.b.Faults().SetPHYStuckDown(true)
	x.phyWrite(miiBMCR, bmcrAutoneg)
	if v := x.phyRead(miiBMCR); v&bmcrDown == 0 {
		t.Errorf("BMCR 0x%x of a PHY that does not wake", v)
	}
	x.b.Faults().Clear()
	if v := x.phyRead(miiBMCR); v&bmcrDown != 0 {
		t.Errorf("BMCR 0x%x after the fault", v)
	}
}

// TestDeadReceiver: the engine looks as if it ran, counts every frame as missed, and only a reset helps.
func TestDeadReceiver(t *testing.T) {
	for _, overflow := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		if overflow {
			x.b.Faults().SetDeadAfterOverflow(true)
			x.b.Faults().SetDMABandwidth(1e6)
			for range 5 {
				x.hostSend(makeFrame(x.mac(), hostMAC, 1514))
			}
			x.b.Faults().SetDMABandwidth(0)
			x.clock.Advance(10 * time.Millisecond)
			if x.status()&stOVF == 0 {
				t.Fatal("no overflow")
			}
			x.all()
			x.r.Load32(regMissed)
		} else {
			x.b.Faults().KillRX()
		}
		for range 3 {
			x.hostSend(makeFrame(x.mac(), hostMAC, 100))
		}
		if n, m := len(x.all()), x.r.Load32(regMissed)&missedMax; n != 0 || m != 3 {
			t.Errorf("overflow %v: %d frames, %d missed", overflow, n, m)
		}
		if rs := x.status() >> stRS & 7; rs != rsWaiting {
			t.Errorf("RS %d", rs)
		}
		x.b.Faults().Clear()
		x.resetMAC()
		x.rxCons = 0
		x.setUp(driverOptions{})
		x.hostSend(makeFrame(x.mac(), hostMAC, 100))
		if n := len(x.all()); n != 1 {
			t.Errorf("%d frames after a reset: %+v %v", n, x.b.Stats(), x.b.Violations())
		}
	}
}

func TestBusErrors(t *testing.T) {
	for _, e := range []BusError{BusErrorRXData, BusErrorTXData, BusErrorRXDescriptorWrite, BusErrorTXDescriptorWrite,
		BusErrorRXDescriptorRead, BusErrorTXDescriptorRead} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.b.Faults().InjectBusError(e)
		st := x.status()
		if st&stFBI == 0 || st&stAIS == 0 || BusError(st>>stEB&7) != e {
			t.Errorf("%d: status 0x%08x", e, st)
		}
		x.send(makeFrame(hostMAC, x.mac(), 60))
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
		out, in := len(x.arrived()), len(x.all())
		tx := e == BusErrorTXData || e == BusErrorTXDescriptorRead || e == BusErrorTXDescriptorWrite
		if out == 1 == tx || in == 1 != tx {
			t.Errorf("%d: %d frames out, %d in", e, out, in)
		}
	}
}

func TestInjectedEvents(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regStatus, 0x1FFFF)
	x.b.Faults().InjectRU()
	x.b.Faults().InjectTU()
	if st := x.status(); st&(stRU|stTU|stAIS) != stRU|stTU|stAIS {
		t.Errorf("status 0x%08x", st)
	}
	x.b.Faults().InjectUNF()
	x.send(makeFrame(hostMAC, x.mac(), 60))
	x.clock.Advance(time.Millisecond)
	if st := x.reclaim(); !cmp.Equal(st, []uint32{txUF | txES}) {
		t.Errorf("status %x", st)
	}
	if n := x.host.Stats().Bad; n != 1 {
		t.Errorf("%d damaged frames at the host", n)
	}
	x.send(makeFrame(hostMAC, x.mac(), 60))
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 1 {
		t.Error("a poll demand does not resume the engine")
	}
	noViolations(t, x.b)
}

func TestTransmitHangs(t *testing.T) {
	for _, c := range []struct {
		hang   TXHang
		out    int
		status int
	}{
		{TXHangNone, 3, 3},
		{TXHangDeaf, 0, 0},
		{TXHangStatus, 3, 0},
		{TXHangStopped, 0, 0},
	} {
		for _, speed := range []int{0, 1000} {
			x := newBench(t, Options{}, driverOptions{ring: 3}, CableOptions{SpeedMbps: speed})
			x.b.Faults().SetTXHang(c.hang)
			for range 3 {
				x.queue(makeFrame(hostMAC, x.mac(), 60))
			}
			x.kick()
			x.clock.Advance(time.Second)
			if out, st := len(x.arrived()), len(x.reclaim()); out != c.out || st != c.status {
				t.Errorf("hang %d at %d: %d frames out, %d completed; want %d, %d", c.hang, speed, out, st, c.out, c.status)
			}
			x.b.Faults().SetTXHang(TXHangNone)
			x.kick()
			x.clock.Advance(time.Second)
			if c.hang != TXHangStatus {
				if n := len(x.reclaim()) + c.status; n != 3 {
					t.Errorf("hang %d at %d: %d frames complete afterwards", c.hang, speed, n)
				}
			}
			if s := x.cable.Stats(); s.HostStall != 0 {
				t.Errorf("hang %d: HostStall %v", c.hang, s.HostStall)
			}
		}
	}
}

func TestGone(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().SetGone(true)
	for _, off := range []uint32{regVersion, regStatus, regBusMode, regMIIAddress, regDebug} {
		if v := x.r.Load32(off); v != all32 {
			t.Errorf("0x%04x reads 0x%08x", off, v)
		}
	}
	x.r.Store32(regHashLow, 5)
	x.b.Faults().SetGone(false)
	if v := x.r.Load32(regHashLow); v != 0 {
		t.Error("a write got through")
	}
}

func TestScribble(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().SetScribble(true)
	x.hostSend(makeFrame(x.mac(), hostMAC, 60))
	x.send(makeFrame(hostMAC, x.mac(), 60))
	x.sent()
	for i := 1; i < 4; i++ {
		if a, b := x.rxRing.Load32(4*i), x.txRing.Load32(4*i); a != scribbled || b != scribbled {
			t.Errorf("word %d: 0x%08x, 0x%08x", i, a, b)
		}
	}
	if w := x.rxRing.Load32(16 + 4); w == scribbled {
		t.Error("a descriptor of the engine's was scribbled on")
	}
	noViolations(t, x.b)
}

// TestSynchronousDoorbell: the frame is complete when the poll demand returns.
func TestSynchronousDoorbell(t *testing.T) {
	b := newBoard(t, Options{})
	connect(t, b, NewHost(nil), CableOptions{})
	d := openDriver(t, b, driverOptions{})
	d.linkUp()
	b.Faults().SetSyncDoorbell(true)
	for range 50 {
		d.send(makeFrame(hostMAC, hostMAC, 60))
		if st := d.reclaim(); len(st) != 1 {
			t.Fatalf("%d frames complete after the poll demand", len(st))
		}
	}
	noViolations(t, b)
}

func TestFastWritesMayBeLost(t *testing.T) {
	for _, lost := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.clock.Advance(time.Millisecond)
		x.b.Faults().SetDropFastWrites(lost)
		x.r.Store32(regFilter, 1)
		x.r.Store32(regFilter, 2)
		want := uint32(2)
		if lost {
			want = 1
		}
		if v := x.r.Load32(regFilter); v != want {
			t.Errorf("lost %v: 0x%x", lost, v)
		}
	}
}

func TestAllocationFails(t *testing.T) {
	b, _ := stepped(t, Options{})
	p := b.Port()
	b.Faults().FailAlloc(2)
	for i, want := range []bool{true, false, true} {
		m, err := p.Alloc(64, 64)
		if (err == nil) != want || (m != nil) != want {
			t.Errorf("allocation %d: %v, %v", i, m, err)
		}
	}
}

func TestDamageAtTheReceiver(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{ring: 256}, gigabit())
	x.b.Faults().SetRXDamageRate(0.2)
	for range 200 {
		x.hostSend(makeFrame(x.mac(), hostMAC, 100))
	}
	got := len(x.all())
	crc, _ := x.b.Counter(mmcRXCRC)
	if crc < 20 || crc > 60 || got+int(crc) != 200 {
		t.Errorf("%d frames, %d CRC errors", got, crc)
	}
}

func TestCorruptPartnerWord(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().CorruptLPA(2)
	for i, want := range []uint16{1, 1, anDefault | anAck} {
		x.phyWrite(miiBMCR, bmcrAutoneg|bmcrRestart)
		x.clock.Advance(10 * time.Millisecond)
		if v := x.phyRead(miiANLPAR); v != want {
			t.Errorf("negotiation %d: LPA 0x%x, want 0x%x", i, v, want)
		}
	}
}

// TestStoreBuffer: without a barrier the device does not see a store, but the CPU does.
func TestStoreBuffer(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().SetStoreBuffer(true)
	frame := makeFrame(hostMAC, x.mac(), 100)
	x.queue(frame)
	x.r.Store32(regTXPoll, 1) // no barrier since OWN
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 0 {
		t.Error("the device saw a store without a barrier")
	}
	if w := x.txRing.Load32(0); w != descOWN {
		t.Errorf("the CPU reads 0x%08x", w)
	}
	buf := make([]byte, 100)
	x.txBuf.CopyOut(buf, 0)
	equalFrame(t, buf, frame)
	x.kick()
	x.clock.Advance(time.Millisecond)
	got := x.arrived()
	if len(got) != 1 {
		t.Fatalf("%d frames after a barrier", len(got))
	}
	equalFrame(t, got[0], frame)
	x.sent()
	x.txBuf.CopyIn(0, []byte{1, 2, 3})
	x.txBuf.CopyIn(1, []byte{9})
	x.txBuf.CopyOut(buf[:4], 0)
	if d := cmp.Diff([]byte{1, 9, 3, frame[3]}, buf[:4]); d != "" {
		t.Error(d)
	}
	x.b.Faults().SetStoreBuffer(false)
	x.txBuf.CopyOut(buf[:4], 0)
	if d := cmp.Diff([]byte{1, 9, 3, frame[3]}, buf[:4]); d != "" {
		t.Errorf("switching it off lost stores: %s", d)
	}
	noViolations(t, x.b)
}
