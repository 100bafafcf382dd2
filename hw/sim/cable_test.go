package sim

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

func TestConnectRefuses(t *testing.T) {
	a, b := newBoard(t, Options{}), newBoard(t, Options{})
	h := NewHost(nil)
	closed := NewHost(nil)
	closed.Close()
	other := newBoard(t, Options{Clock: NewDilatedClock(2)})
	for _, c := range []struct {
		name string
		a, b End
		o    CableOptions
		err  error
		text string
	}{
		{"no end", nil, b, CableOptions{}, hw.ErrConfig, "two ends"},
		{"one end twice", a, a, CableOptions{}, hw.ErrConfig, "itself"},
		{"speed", a, b, CableOptions{SpeedMbps: 2500}, hw.ErrConfig, "SpeedMbps"},
		{"damage", a, b, CableOptions{DamageRate: 1.5}, hw.ErrConfig, "DamageRate"},
		{"loss", a, b, CableOptions{LossRate: -1}, hw.ErrConfig, "LossRate"},
		{"clocks", a, other, CableOptions{}, hw.ErrConfig, "clocks"},
		{"closed host", a, closed, CableOptions{}, hw.ErrClosed, "host"},
	} {
		_, err := Connect(c.a, c.b, c.o)
		if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	connect(t, a, h, CableOptions{})
	if _, err := Connect(a, b, CableOptions{}); err == nil || !strings.Contains(err.Error(), a.Name()) {
		t.Errorf("a second cable: %v", err)
	}
	if _, err := Connect(b, h, CableOptions{}); err == nil {
		t.Error("a second cable to a host")
	}
	connect(t, b, NewHost(nil), CableOptions{}) // the refused ones left nothing behind
}

func TestDamageAndLossAreRepeatable(t *testing.T) {
	run := func(seed uint64) (got []int, s CableStats, crc uint32) {
		x := newBench(t, Options{}, driverOptions{ring: 512}, CableOptions{SpeedMbps: 1000, DamageRate: 0.1, LossRate: 0.05, Seed: seed})
		for i := range 400 {
			x.hostSend(makeFrame(x.mac(), hostMAC, 60+i))
		}
		for _, r := range x.all() {
			got = append(got, len(r.frame()))
		}
		crc, _ = x.b.Counter(mmcRXCRC)
		noViolations(t, x.b)
		return got, x.cable.Stats(), crc
	}
	a, s, crc := run(7)
	b, _, _ := run(7)
	c, _, _ := run(8)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the same seed gives different frames: %s", d)
	}
	if cmp.Equal(a, c) {
		t.Error("another seed gives the same frames")
	}
	d := s.BToA
	if d.Frames != 400 || d.Damaged != uint64(crc) || d.Damaged < 20 || d.Damaged > 70 || d.Lost < 5 || d.Lost > 45 {
		t.Errorf("%+v with %d CRC errors", d, crc)
	}
	if uint64(len(a))+d.Damaged+d.Lost != 400 {
		t.Errorf("%d frames arrived of 400, %+v", len(a), d)
	}
}

func TestRatesCanBeChanged(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	send := func() int { x.hostSend(makeFrame(x.mac(), hostMAC, 100)); return len(x.all()) }
	x.cable.SetLossRate(1)
	if send() != 0 {
		t.Error("a frame got through a loss rate of 1")
	}
	x.cable.SetLossRate(0)
	x.cable.SetDamageRate(1)
	if send() != 0 {
		t.Error("a damaged frame got through")
	}
	x.cable.SetDamageRate(0)
	if send() != 1 {
		t.Error("no frame got through")
	}
	if v, _ := x.b.Counter(mmcRXCRC); v != 1 {
		t.Errorf("%d CRC errors", v)
	}
}

func TestCaptureHasBothDirections(t *testing.T) {
	var file bytes.Buffer
	x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: 100, Capture: &file})
	begin := x.clock.Now()
	out, in := makeFrame(hostMAC, x.mac(), 60), makeFrame(x.mac(), hostMAC, 61)
	x.hostSend(in)
	x.send(out)
	x.clock.Advance(time.Millisecond)
	x.cable.Close()
	at, frames := readPcap(t, file.Bytes(), begin)
	if d := cmp.Diff([][]byte{in, out}, frames); d != "" {
		t.Error(d)
	}
	if len(at) == 2 && at[0] != 73*80 { // 8 + 61 + 4 bytes at 100 Mbit/s
		t.Errorf("the first frame ends after %v", at[0])
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestCaptureErrorComesWithClose(t *testing.T) {
	a, b := NewHost(nil), NewHost(nil)
	c, err := Connect(a, b, CableOptions{Capture: failingWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestUnplug(t *testing.T) {
	a, b, c := pair(t, Options{}, driverOptions{}, CableOptions{})
	up := func(d *testDriver) bool { return d.r.Load32(regRGMIIStatus)&rgmiiUp != 0 }
	c.Unplug()
	c.Unplug()
	if up(a) || up(b) {
		t.Error("link without a cable")
	}
	c.Plug()
	a.linkUp()
	b.linkUp()
	p := makeFrame(b.port.Info().Address, a.port.Info().Address, 100)
	a.send(p)
	equalFrame(t, b.next().frame(), p)
}

// TestNoGoroutineIsLeft opens, uses and closes in several orders, and counts goroutines.
func TestNoGoroutineIsLeft(t *testing.T) {
	settle := func() int {
		n := 0
		for range 200 {
			n = runtime.NumGoroutine()
			runtime.Gosched()
			RealClock().Sleep(50 * time.Microsecond)
			if m := runtime.NumGoroutine(); m >= n {
				n = m
			}
		}
		return n
	}
	before := settle()
	for i := range 12 {
		a, err := NewBoard(Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := NewBoard(Options{})
		h := NewHost(func([]byte) {})
		da := openDriver(t, a, driverOptions{})
		da.send(makeFrame(hostMAC, da.port.Info().Address, 60)) // on no cable: the board runs by itself
		da.sent()
		c, err := Connect(a, b, CableOptions{SpeedMbps: []int{0, 10, 1000}[i%3]})
		if err != nil {
			t.Fatal(err)
		}
		da.send(makeFrame(hostMAC, da.port.Info().Address, 60))
		switch i % 4 {
		case 0:
			c.Close()
			c.Close()
			c2, err := Connect(a, h, CableOptions{})
			if err != nil {
				t.Fatal(err)
			}
			h.Send(makeFrame(da.port.Info().Address, hostMAC, 60))
			h.Close()
			h.Close()
			c2.Close()
		case 1:
			a.Close()
		case 2:
			b.Close()
			da.port.Close()
			da.port.Close()
		}
		a.Close()
		a.Close()
		b.Close()
		c.Close()
		if err := h.Send(make([]byte, 60)); !errors.Is(err, hw.ErrClosed) {
			t.Errorf("Send of a closed host: %v", err)
		}
	}
	if after := settle(); after > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines before, %d after\n%s", before, after, buf[:runtime.Stack(buf, true)])
	}
}

// TestConcurrentUse shakes everything that may be used from several goroutines at once.
func TestConcurrentUse(t *testing.T) {
	a, b, c := pair(t, Options{}, driverOptions{ring: 32}, CableOptions{})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	shake := func(f func(i int)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
					runtime.Gosched()
				}
			}
		}()
	}
	shake(func(i int) { c.SetDamageRate(float64(i%2) / 100); c.SetLossRate(float64(i%3) / 100) })
	shake(func(int) { c.Stats(); a.b.Stats(); b.b.Stats(); a.b.Violations() })
	shake(func(i int) {
		if i%50 == 0 {
			c.Unplug()
			c.Plug()
		}
	})
	shake(func(int) {
		b.r.Load32(regDebug)
		b.r.Load32(regMissed)
		b.r.Load32(mmcRXFramesGB)
		b.r.Load32(regRXDesc)
	})
	shake(func(i int) {
		f := b.b.Faults()
		f.SetDMABandwidth(int64(i%3) * 1e8)
		f.LoseEveryInterrupt(i % 5)
	})
	frame := makeFrame(b.port.Info().Address, a.port.Info().Address, 200)
	sent := 0
	a.wait("work", func() bool {
		for a.queue(frame) {
			sent++
		}
		a.kick()
		for b.drop() {
		}
		b.r.Store32(regRXPoll, 1)
		return sent > 3000
	})
	close(stop)
	wg.Wait()
	noViolations(t, a.b, b.b)
}

// TestBackPressureLosesNothing: a receiver that takes one frame now and then gets every one of them.
func TestBackPressureLosesNothing(t *testing.T) {
	for _, o := range []CableOptions{{}, {SpeedMbps: 1000, BackPressure: true}} {
		a, b, _ := pair(t, Options{}, driverOptions{ring: 4}, o)
		const n = 200
		go func() {
			for i := 0; i < n; {
				if a.queue(makeFrame(b.port.Info().Address, a.port.Info().Address, 60+i)) {
					a.kick()
					i++
				} else {
					a.port.Clock().Sleep(20 * time.Microsecond)
				}
			}
		}()
		for i := range n {
			if i%10 == 0 {
				b.port.Clock().Sleep(200 * time.Microsecond)
			}
			if got := len(b.next().frame()); got != 60+i {
				t.Fatalf("%+v: frame %d has %d bytes", o, i, got)
			}
		}
		if s := b.b.Stats(); s.RXDrops() != 0 {
			t.Errorf("%+v: %d drops", o, s.RXDrops())
		}
		noViolations(t, a.b, b.b)
	}
}

// TestBackPressureWithoutPollDemand: a driver that only re-arms descriptors is noticed too.
func TestBackPressureWithoutPollDemand(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{ring: 2}, CableOptions{})
	for i := range 5 {
		x.host.Send(makeFrame(x.mac(), hostMAC, 60+i))
	}
	x.clock.Advance(time.Millisecond)
	if n := len(x.all()); n != 2 {
		t.Errorf("%d frames", n)
	}
	x.clock.Advance(10 * time.Millisecond)
	if n := len(x.all()); n != 2 {
		t.Errorf("%d frames", n)
	}
	x.clock.Advance(10 * time.Millisecond)
	if n := len(x.all()); n != 1 {
		t.Errorf("%d frames", n)
	}
	if s := x.b.Stats(); s.RXDrops() != 0 {
		t.Errorf("%d drops", s.RXDrops())
	}
}

// TestIdleCableDoesNothing: no run of the simulator while nothing is to be done, with a full ring or without frames.
func TestIdleCableDoesNothing(t *testing.T) {
	for _, o := range []CableOptions{{}, {SpeedMbps: 1000}} {
		x := newBench(t, Options{}, driverOptions{ring: 2}, o)
		runs := func() uint64 {
			x.cable.r.mu.Lock()
			defer x.cable.r.mu.Unlock()
			return x.cable.r.runs
		}
		before := runs()
		x.clock.Advance(time.Hour)
		if n := runs() - before; n != 0 {
			t.Errorf("%+v: %d runs in an idle hour", o, n)
		}
		for range 10 { // the ring is full and the rest waits
			x.host.Send(makeFrame(x.mac(), hostMAC, 60))
		}
		x.clock.Advance(time.Second)
		before = runs()
		x.clock.Advance(time.Second)
		if n := runs() - before; n > 201 {
			t.Errorf("%+v: %d runs in a blocked second", o, n)
		}
	}
}

// TestCloseFromTheHostsFunction: a host's function may take the cable away that it is called for.
func TestCloseFromTheHostsFunction(t *testing.T) {
	var c *Cable
	closed := make(chan error, 1)
	a := NewHost(func([]byte) { closed <- c.Close() })
	b := NewHost(nil)
	c, err := Connect(a, b, CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Send(make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(hangGuard):
		t.Fatal("Close does not return")
	}
}
