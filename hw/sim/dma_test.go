package sim

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

// bench is a board with its driver and a host at the other end of a gigabit cable, under a clock that the test moves.
type bench struct {
	*testDriver
	clock *SteppedClock
	host  *Host
	cable *Cable
	got   chan []byte
}

func newBench(t testing.TB, o Options, d driverOptions, c CableOptions) *bench {
	t.Helper()
	b, clock := stepped(t, o)
	x := &bench{clock: clock, got: make(chan []byte, 4096)}
	x.host = NewHost(func(p []byte) { x.got <- append([]byte(nil), p...) })
	x.cable = connect(t, b, x.host, c)
	d.speed = c.SpeedMbps
	x.testDriver = openDriver(t, b, d)
	x.linkUp()
	return x
}

func gigabit() CableOptions { return CableOptions{SpeedMbps: 1000} }

// arrived is what the host has got so far.
func (x *bench) arrived() [][]byte {
	var all [][]byte
	for {
		select {
		case p := <-x.got:
			all = append(all, p)
		default:
			return all
		}
	}
}

func (x *bench) mac() [6]byte { return x.port.Info().Address }

// hostSend sends frames from the host and lets them arrive.
func (x *bench) hostSend(frames ...[]byte) {
	x.t.Helper()
	for _, p := range frames {
		if err := x.host.Send(p); err != nil {
			x.t.Fatal(err)
		}
	}
	x.clock.Advance(time.Duration(len(frames)+1) * 20 * time.Microsecond)
}

// all takes every frame out of the receive ring.
func (x *bench) all() []received {
	var all []received
	for {
		r, ok := x.poll()
		if !ok {
			return all
		}
		all = append(all, r)
	}
}

func (x *bench) status() uint32 { return x.r.Load32(regStatus) }

var hostMAC = [6]byte{0x02, 0, 0, 0, 0, 0x99}

func TestSoftResetResetsAndTakesTime(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regBusMode, busSWR)
	if v := x.r.Load32(regBusMode); v&busSWR == 0 {
		t.Error("the reset was over at once")
	}
	x.clock.Advance(resetTime)
	got := map[string]uint32{
		"bus mode": x.r.Load32(regBusMode), "op mode": x.r.Load32(regOpMode), "status": x.status(), "config": x.r.Load32(regConfig),
		"ie": x.r.Load32(regIntEnable), "mask": x.r.Load32(regMMCMaskRX), "addr": x.r.Load32(regAddress0 + 4), "base": x.r.Load32(regTXBase),
	}
	want := map[string]uint32{"bus mode": 0x20100, "op mode": 0, "status": 0, "config": 0, "ie": 0, "mask": 0, "addr": all32, "base": 0}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	noViolations(t, x.b)
}

func TestSoftResetNeedsTheReceiveClock(t *testing.T) {
	const down = 0<<miiPA | miiBMCR<<miiGR | 4<<miiCR | miiGW | miiGB
	b, c := stepped(t, Options{PHYPoweredDown: true})
	r := b.Port().Registers()
	r.Store32(regBusMode, busSWR)
	c.Advance(time.Second)
	if r.Load32(regBusMode)&busSWR == 0 {
		t.Fatal("the reset ended although the PHY is powered down")
	}
	b.mu.Lock()
	b.phy.write(miiBMCR, bmcrAutoneg) // the MDIO registers are in reset: as a PHY reset pin would
	b.mu.Unlock()
	if r.Load32(regBusMode)&busSWR != 0 {
		t.Error("the reset did not end when the clock came")
	}
	r.Store32(regMIIData, bmcrDown)
	r.Store32(regMIIAddress, down)
	c.Advance(time.Millisecond)
	r.Store32(regBusMode, busSWR)
	c.Advance(time.Second)
	if r.Load32(regBusMode)&busSWR == 0 {
		t.Error("the reset ended although the driver has powered the PHY down")
	}
	noViolations(t, b)
}

func TestSoftResetOfMIINeedsPS(t *testing.T) {
	b, c := stepped(t, Options{PHYMode: "mii"})
	r := b.Port().Registers()
	r.Store32(regBusMode, busSWR)
	c.Advance(time.Second)
	if r.Load32(regBusMode)&busSWR == 0 {
		t.Fatal("the reset ended with PS clear")
	}
	r.Store32(regConfig, cfgPS)
	r.Store32(regBusMode, busSWR)
	c.Advance(time.Millisecond)
	if r.Load32(regBusMode)&busSWR != 0 {
		t.Error("the reset did not end with PS set")
	}
	if got := r.Load32(regConfig); got != 0 {
		t.Errorf("the reset left the configuration at 0x%x", got)
	}
	noViolations(t, b)
}

func TestStatusSummaries(t *testing.T) {
	b, _ := stepped(t, Options{})
	r := b.Port().Registers()
	read := func() uint32 { return r.Load32(regStatus) & 0x1FFFF }
	expect := func(what string, want uint32) {
		t.Helper()
		if got := read(); got != want {
			t.Errorf("%s: status 0x%05x, want 0x%05x", what, got, want)
		}
	}
	b.Faults().InjectStatus(stTU | stRU)
	expect("latched though masked, no summary", stTU|stRU)
	r.Store32(regIntEnable, stTU|stNIS)
	expect("enabled later", stTU|stRU|stNIS)
	r.Store32(regStatus, stTU)
	expect("the summary is sticky", stRU|stNIS)
	r.Store32(regStatus, stNIS)
	expect("until it is cleared", stRU)
	r.Store32(regIntEnable, stRU|stAIS)
	expect("abnormal", stRU|stAIS)
	r.Store32(regStatus, stAIS)
	expect("a summary whose source remains comes back", stRU|stAIS)
	r.Store32(regStatus, 0)
	expect("writing zeros clears nothing", stRU|stAIS)
	r.Store32(regStatus, 0x1FFFF)
	expect("all cleared", 0)
	b.Faults().InjectStatus(stERI)
	b.Faults().InjectStatus(stRI)
	expect("RI takes ERI away", stRI)
	noViolations(t, b)
}

func TestInterruptMasksItself(t *testing.T) {
	b, _ := stepped(t, Options{})
	p := b.Port()
	r, irq := p.Registers(), p.Interrupt()
	r.Store32(regIntEnable, stRI|stNIS)
	wait := func(want hw.Wakeup) {
		t.Helper()
		got, err := irq.Wait(0)
		if err != nil || got != want {
			t.Errorf("Wait: %v, %v; want %v", got, err, want)
		}
	}
	wait(hw.WakeTimeout)
	b.Faults().InjectStatus(stRI)
	wait(hw.WakeInterrupt)
	wait(hw.WakeTimeout) // masked
	if err := irq.Enable(); err != nil {
		t.Fatal(err)
	}
	wait(hw.WakeInterrupt) // the level is still up
	r.Store32(regStatus, 0x1FFFF)
	if err := irq.Enable(); err != nil {
		t.Fatal(err)
	}
	wait(hw.WakeTimeout)
	irq.Wake()
	irq.Wake()
	wait(hw.WakeCall)
	wait(hw.WakeTimeout)
	if got := b.Stats().Interrupts; got != 2 {
		t.Errorf("%d interrupts counted, want 2", got)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	irq.Wake()
	if _, err := irq.Wait(-1); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("Wait after Close: %v", err)
	}
	if err := irq.Enable(); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("Enable after Close: %v", err)
	}
	noViolations(t, b)
}

func TestInterruptWaitEnds(t *testing.T) {
	for _, c := range []struct {
		what string
		end  func(*Board, hw.Port, *SteppedClock)
		want hw.Wakeup
		err  error
	}{
		{"by the line", func(b *Board, _ hw.Port, _ *SteppedClock) { b.Faults().InjectStatus(stRI) }, hw.WakeInterrupt, nil},
		{"by Wake", func(_ *Board, p hw.Port, _ *SteppedClock) { p.Interrupt().Wake() }, hw.WakeCall, nil},
		{"by the clock", func(_ *Board, _ hw.Port, c *SteppedClock) { c.Advance(time.Second) }, hw.WakeTimeout, nil},
		{"by Close of the port", func(_ *Board, p hw.Port, _ *SteppedClock) { p.Close() }, hw.WakeTimeout, hw.ErrClosed},
		{"by Close of the board", func(b *Board, _ hw.Port, _ *SteppedClock) { b.Close() }, hw.WakeTimeout, hw.ErrClosed},
		{"by a new port", func(b *Board, _ hw.Port, _ *SteppedClock) { b.Port() }, hw.WakeTimeout, hw.ErrClosed},
	} {
		t.Run(c.what, func(t *testing.T) {
			b, clock := stepped(t, Options{})
			p := b.Port()
			p.Registers().Store32(regIntEnable, stRI|stNIS)
			type result struct {
				w   hw.Wakeup
				err error
			}
			done := make(chan result)
			go func() {
				w, err := p.Interrupt().Wait(time.Second)
				done <- result{w, err}
			}()
			for { // until it waits, seen by its timer
				if _, ok := clock.Next(); ok {
					break
				}
				runtime.Gosched()
			}
			c.end(b, p, clock)
			select {
			case r := <-done:
				if r.w != c.want && c.err == nil || !errors.Is(r.err, c.err) {
					t.Errorf("Wait: %v, %v", r.w, r.err)
				}
			case <-time.After(hangGuard):
				t.Fatal("Wait did not end")
			}
		})
	}
}

func TestStartAndStopOfTheEngines(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	states := func() (rs, ts uint32) { st := x.status(); return st >> stRS & 7, st >> stTS & 7 }
	if rs, ts := states(); rs != rsWaiting || ts != tsSuspended {
		t.Errorf("running: RS %d TS %d, want 3 and 6", rs, ts)
	}
	x.r.Store32(regStatus, 0x1FFFF)
	x.r.Store32(regOpMode, x.opMode&^(opST|opSR))
	if rs, ts := states(); rs != rsStopped || ts != tsStopped {
		t.Errorf("stopped: RS %d TS %d", rs, ts)
	}
	if st := x.status(); st&(stTPS|stRPS) != stTPS|stRPS {
		t.Errorf("stopped: status 0x%08x lacks TPS or RPS", st)
	}
	x.r.Store32(regConfig, x.config&^(cfgRE|cfgTE))
	noViolations(t, x.b)
}

func TestStopWaitsForTheFrameOnTheWire(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.send(makeFrame(hostMAC, x.mac(), 1514))
	x.clock.Advance(5 * time.Microsecond)
	x.r.Store32(regOpMode, x.opMode&^opST)
	if ts := x.status() >> stTS & 7; ts == tsStopped {
		t.Error("the engine stopped within a frame")
	}
	x.clock.Advance(20 * time.Microsecond)
	if ts := x.status() >> stTS & 7; ts != tsStopped {
		t.Errorf("the engine did not stop: TS %d", ts)
	}
	if st := x.reclaim(); !cmp.Equal(st, []uint32{0}) {
		t.Errorf("status %x", st)
	}
	if n := len(x.arrived()); n != 1 {
		t.Errorf("%d frames arrived", n)
	}
	noViolations(t, x.b)
}

// TestEngineContinuesWhereItStopped: without a new list base a restarted engine goes on at its own position.
func TestEngineContinuesWhereItStopped(t *testing.T) {
	for _, rewrite := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{ring: 8}, gigabit())
		for range 3 {
			x.send(makeFrame(hostMAC, x.mac(), 60))
		}
		x.sent()
		x.r.Store32(regOpMode, x.opMode&^opST)
		want := x.txRing.Bus() + 3*16
		if rewrite {
			x.r.Store32(regTXBase, x.txRing.Bus())
			want = x.txRing.Bus()
		}
		x.r.Store32(regOpMode, x.opMode)
		x.clock.Advance(time.Microsecond)
		if got := x.r.Load32(regTXDesc); got != want {
			t.Errorf("base rewritten %v: the engine is at 0x%08x, want 0x%08x", rewrite, got, want)
		}
		noViolations(t, x.b)
	}
}

func TestFlushThrowsFramesAway(t *testing.T) {
	for _, onTheWire := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: 10})
		x.send(makeFrame(hostMAC, x.mac(), 1514))
		x.clock.Advance(10 * time.Microsecond)
		if onTheWire { // the simulator looks again, and puts it there
			x.kick()
			x.clock.Advance(10 * time.Microsecond)
		}
		x.r.Store32(regOpMode, x.opMode&^opST)
		x.r.Store32(regOpMode, x.opMode&^opST|opFTF)
		if v := x.r.Load32(regOpMode); v&opFTF == 0 {
			t.Error("the flush was over at once")
		}
		x.clock.Advance(10 * time.Microsecond)
		if v := x.r.Load32(regOpMode); v&opFTF != 0 {
			t.Error("the flush does not end")
		}
		if st := x.reclaim(); !cmp.Equal(st, []uint32{txFF | txES}) {
			t.Errorf("status %x, want flushed", st)
		}
		x.clock.Advance(10 * time.Millisecond)
		if n := len(x.arrived()); n != 0 {
			t.Errorf("%d frames arrived", n)
		}
		if d := x.r.Load32(regDebug); d != 0 {
			t.Errorf("debug register 0x%08x, want idle", d)
		}
		noViolations(t, x.b)
	}
}

func TestDebugRegisterShowsATransmission(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: 10})
	if d := x.r.Load32(regDebug); d != 0 {
		t.Errorf("idle: 0x%08x", d)
	}
	x.send(makeFrame(hostMAC, x.mac(), 1514))
	x.clock.Advance(100 * time.Microsecond)
	if d := x.r.Load32(regDebug); d&(debugTXFIFO|debugTXActive) != debugTXFIFO|debugTXActive {
		t.Errorf("transmitting: 0x%08x", d)
	}
	x.clock.Advance(2 * time.Millisecond)
	if d := x.r.Load32(regDebug); d != 0 {
		t.Errorf("after the frame: 0x%08x", d)
	}
}

// TestFlushOfFramesThatWait: frames held back by a receiver without descriptors can be flushed.
func TestFlushOfFramesThatWait(t *testing.T) {
	for _, o := range []CableOptions{{}, {SpeedMbps: 1000, BackPressure: true}} {
		clock := NewSteppedClock(time.Unix(0, 0))
		ba, bb := newBoard(t, Options{Clock: clock}), newBoard(t, Options{Clock: clock, RXFIFOBytes: 256})
		connect(t, ba, bb, o)
		a, b := openDriver(t, ba, driverOptions{}), openDriver(t, bb, driverOptions{ring: 2})
		a.linkUp()
		for range 8 {
			a.queue(makeFrame(b.port.Info().Address, a.port.Info().Address, 200))
		}
		a.kick()
		clock.Advance(10 * time.Millisecond)
		done := len(a.reclaim())
		if done == 8 {
			t.Fatalf("%+v: nothing waits", o)
		}
		a.r.Store32(regOpMode, a.opMode&^opST)
		if ts := a.r.Load32(regStatus) >> stTS & 7; ts == tsStopped {
			t.Errorf("%+v: the engine stopped with frames in its FIFO", o)
		}
		a.r.Store32(regOpMode, a.opMode&^opST|opFTF)
		clock.Advance(10 * time.Millisecond)
		st := a.reclaim()
		flushed := 0
		for _, s := range st {
			if s == txFF|txES {
				flushed++
			} else if s != 0 {
				t.Errorf("%+v: status 0x%x", o, s)
			}
		}
		if flushed == 0 {
			t.Errorf("%+v: nothing was flushed: %x", o, st)
		}
		if v := a.r.Load32(regOpMode); v&opFTF != 0 {
			t.Errorf("%+v: the flush does not end", o)
		}
		if ts := a.r.Load32(regStatus) >> stTS & 7; ts != tsStopped {
			t.Errorf("%+v: TS %d after the flush", o, ts)
		}
		for b.drop() {
		}
		b.r.Store32(regRXPoll, 1)
		clock.Advance(10 * time.Millisecond)
		if got, want := int(bb.Stats().RXFrames), done+len(st)-flushed; got != want {
			t.Errorf("%+v: %d frames arrived, %d were sent", o, got, want)
		}
		noViolations(t, ba, bb)
	}
}
