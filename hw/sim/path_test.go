package sim

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// pair is two boards with their drivers on a cable.
func pair(t testing.TB, o Options, d driverOptions, c CableOptions) (a, b *testDriver, cable *Cable) {
	t.Helper()
	ba, bb := newBoard(t, o), newBoard(t, o)
	cable = connect(t, ba, bb, c)
	d.speed = c.SpeedMbps
	a, b = openDriver(t, ba, d), openDriver(t, bb, d)
	a.linkUp()
	b.linkUp()
	return a, b, cable
}

func TestFramesCrossACable(t *testing.T) {
	for _, speed := range []int{0, 10, 100, 1000} {
		for _, enhanced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d enhanced=%v", speed, enhanced), func(t *testing.T) {
				a, b, _ := pair(t, Options{EnhancedDescriptors: enhanced}, driverOptions{}, CableOptions{SpeedMbps: speed})
				for _, n := range []int{60, 61, 100, 512, 1513, 1514} {
					p := makeFrame(b.port.Info().Address, a.port.Info().Address, n)
					a.send(p)
					equalFrame(t, b.next().frame(), p)
					q := makeFrame(a.port.Info().Address, b.port.Info().Address, n)
					b.send(q)
					equalFrame(t, a.next().frame(), q)
				}
				for _, st := range append(a.sent(), b.sent()...) {
					if st != 0 {
						t.Errorf("transmit status 0x%x", st)
					}
				}
				noViolations(t, a.b, b.b)
			})
		}
	}
}

func TestSteppedClock(t *testing.T) {
	clock := NewSteppedClock(time.Unix(1e9, 0))
	a, b, _ := pair(t, Options{Clock: clock}, driverOptions{}, CableOptions{SpeedMbps: 1000})
	for n := range 200 {
		p := makeFrame(b.port.Info().Address, a.port.Info().Address, 60+n)
		a.send(p)
		equalFrame(t, b.next().frame(), p)
	}
	a.sent()
	noViolations(t, a.b, b.b)
}

// stream sends n frames from a to b as fast as a's ring takes them, and returns how many b received.
func stream(t testing.TB, c *Cable, a, b *testDriver, frame []byte, n int) int {
	t.Helper()
	var sent atomic.Bool
	errs := make(chan error, 1)
	go func() {
		defer b.irq.Wake()
		defer sent.Store(true)
		queued := 0
		for queued < n {
			more := false
			for queued < n && a.queue(frame) {
				queued++
				more = true
			}
			if more {
				a.kick()
			}
			if queued < n {
				if _, err := a.irq.Wait(5 * time.Millisecond); err != nil {
					errs <- err
					return
				}
				a.r.Store32(regStatus, a.r.Load32(regStatus)&0x1FFFF)
				a.irq.Enable()
			}
		}
		errs <- nil
	}()
	got := 0
	b.wait("end of stream", func() bool {
		more := false
		for b.drop() {
			got++
			more = true
		}
		if more {
			b.progress()
			b.r.Store32(regRXPoll, 1)
		}
		return got == n || sent.Load() && uint64(got)+b.b.Stats().RXDrops() >= uint64(n)
	})
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	return got
}

// drop takes one frame out of the receive ring and looks only at its status.
func (d *testDriver) drop() bool {
	i := d.rxCons % d.n
	st := d.rxRing.Load32(i * d.stride())
	if st&descOWN != 0 {
		return false
	}
	if st&(rxES|rxFS|rxLS) != rxFS|rxLS {
		d.t.Errorf("receive status 0x%08x", st)
	}
	d.armRX(i)
	d.rxCons++
	return true
}

func TestStream(t *testing.T) {
	const frames = 5000
	for _, speed := range []int{0, 1000} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			a, b, c := pair(t, Options{}, driverOptions{ring: 256}, CableOptions{SpeedMbps: speed, BackPressure: true})
			a.icEvery = 32
			got := stream(t, c, a, b, makeFrame(b.port.Info().Address, a.port.Info().Address, 1514), frames)
			if got != frames {
				t.Errorf("%d frames of %d arrived", got, frames)
			}
			noViolations(t, a.b, b.b)
			t.Logf("%+v", c.Stats())
		})
	}
}

func BenchmarkUnlimited(b *testing.B)   { benchmarkStream(b, 0, 1514) }
func BenchmarkUnlimited64(b *testing.B) { benchmarkStream(b, 0, 60) }
func Benchmark1000(b *testing.B)        { benchmarkStream(b, 1000, 1514) }

func benchmarkStream(b *testing.B, speed, size int) {
	tx, rx, c := pair(b, Options{}, driverOptions{ring: 256}, CableOptions{SpeedMbps: speed})
	tx.icEvery = 32
	frame := makeFrame(rx.port.Info().Address, tx.port.Info().Address, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	stream(b, c, tx, rx, frame, b.N)
	b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
	b.StopTimer()
	s := c.Stats()
	c.r.mu.Lock()
	b.ReportMetric(float64(b.N)/float64(c.r.runs), "frames/run")
	c.r.mu.Unlock()
	b.ReportMetric(float64(b.N)/float64(rx.b.Stats().Interrupts+1), "frames/int")
	b.ReportMetric(float64(s.HostStall)/float64(max(s.Elapsed, 1))*100, "stall-%")
	b.ReportMetric(float64(rx.b.Stats().RXDrops()), "drops")
	noViolations(b, tx.b, rx.b)
}

// cpuTime is what the process has used of all CPUs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
