package sim

import (
	"sync"
	"testing"
	"time"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

func TestSteppedClockRunsTimersInOrder(t *testing.T) {
	start := time.Unix(100, 0)
	c := NewSteppedClock(start)
	var mu sync.Mutex
	type event struct {
		Name string
		At   time.Duration
	}
	var got []event
	note := func(name string) func() {
		return func() {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, event{name, c.Now().Sub(start)})
		}
	}
	c.AfterFunc(30, note("c"))
	c.AfterFunc(10, note("a"))
	c.AfterFunc(20, func() {
		note("b")()
		c.AfterFunc(5, note("b2"))
		c.AfterFunc(0, note("b1"))
	})
	stopped := c.AfterFunc(15, note("never"))
	moved := c.AfterFunc(12, note("moved"))
	late := c.AfterFunc(1000, note("late"))
	if !stopped.Stop() || stopped.Stop() {
		t.Error("Stop does not tell whether it stopped")
	}
	moved.Reset(40)
	if d, ok := c.Next(); !ok || d != 10 {
		t.Errorf("next in %v %v", d, ok)
	}
	c.Advance(100)
	want := []event{{"a", 10}, {"b", 20}, {"b1", 20}, {"b2", 25}, {"c", 30}, {"moved", 40}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if now := c.Now().Sub(start); now != 100 {
		t.Errorf("the clock is at %v", now)
	}
	late.Stop()
	if _, ok := c.Next(); ok {
		t.Error("something is still to come")
	}
}

func TestSteppedClockSleepers(t *testing.T) {
	c := NewSteppedClock(time.Unix(0, 0))
	done := make(chan time.Time)
	go func() {
		c.Sleep(-1)
		c.Sleep(50)
		done <- c.Now()
	}()
	for {
		if _, ok := c.Next(); ok {
			break
		}
		time.Sleep(time.Microsecond) // only makes the loop polite
	}
	c.Advance(49)
	select {
	case <-done:
		t.Fatal("woke too early")
	default:
	}
	c.Advance(1)
	if at := <-done; at.UnixNano() != 50 {
		t.Errorf("woke at %v", at)
	}
	// A timer's function that sleeps does not hang Advance.
	c.AfterFunc(1, func() { c.Sleep(10); close(done) })
	c.Advance(5)
	c.Advance(10)
	<-done
}

// TestClockTimers: timers come, not before their time, in every clock that runs by itself; Stop and Reset work for short
// and for long ones.
func TestClockTimers(t *testing.T) {
	for name, c := range map[string]hw.Clock{"real": RealClock(), "dilated": NewDilatedClock(3)} {
		for _, d := range []time.Duration{0, 10 * time.Microsecond, time.Millisecond, 8 * time.Millisecond} {
			at := make(chan time.Time, 10)
			begin := c.Now()
			c.AfterFunc(d, func() { at <- c.Now() })
			if got := (<-at).Sub(begin); got < d {
				t.Errorf("%s: a timer of %v came after %v", name, d, got)
			}
			begin = c.Now()
			c.Sleep(d)
			if got := c.Now().Sub(begin); got < d {
				t.Errorf("%s: Sleep(%v) took %v", name, d, got)
			}
		}
		for _, d := range []time.Duration{4 * time.Millisecond, time.Hour} {
			fired := make(chan bool, 1)
			timer := c.AfterFunc(d, func() { fired <- true })
			timer.Reset(time.Hour)
			if !timer.Stop() || timer.Stop() {
				t.Errorf("%s: Stop of a timer of %v", name, d)
			}
			timer.Reset(time.Microsecond)
			<-fired
			if timer.Stop() {
				t.Errorf("%s: Stop after the timer came", name)
			}
		}
	}
}

func TestDilatedClockIsSlow(t *testing.T) {
	const n = 50
	c := NewDilatedClock(n)
	realBegin, begin := time.Now(), c.Now()
	c.Sleep(200 * time.Microsecond)
	if real, got := time.Since(realBegin), c.Now().Sub(begin); real < n*200*time.Microsecond || got > real/n+time.Millisecond {
		t.Errorf("200 µs took %v, the clock says %v", real, got)
	}
	if NewDilatedClock(1) != RealClock() || NewDilatedClock(-3) != RealClock() {
		t.Error("a factor of one is not the real clock")
	}
}

// foreign is a clock that the simulator knows nothing about.
type foreign struct{ c hw.Clock }

func (f foreign) Now() time.Time                               { return f.c.Now() }
func (f foreign) Sleep(d time.Duration)                        { f.c.Sleep(d) }
func (f foreign) AfterFunc(d time.Duration, g func()) hw.Timer { return f.c.AfterFunc(d, g) }

func TestAnyClockWillDo(t *testing.T) {
	a, b, _ := pair(t, Options{Clock: foreign{RealClock()}}, driverOptions{}, CableOptions{SpeedMbps: 1000})
	p := makeFrame(b.port.Info().Address, a.port.Info().Address, 500)
	a.send(p)
	equalFrame(t, b.next().frame(), p)
	a.sent()
	noViolations(t, a.b, b.b)
}

func TestDilatedBoards(t *testing.T) {
	a, b, c := pair(t, Options{Clock: NewDilatedClock(5)}, driverOptions{ring: 64}, CableOptions{SpeedMbps: 1000, BackPressure: true})
	a.icEvery = 8
	if got := stream(t, c, a, b, makeFrame(b.port.Info().Address, a.port.Info().Address, 1514), 300); got != 300 {
		t.Errorf("%d frames", got)
	}
	noViolations(t, a.b, b.b)
}

// TestManyShortTimers: the clock's own goroutine ends when there is nothing to wait for.
func TestManyShortTimers(t *testing.T) {
	c := newRealClock(1)
	for round := range 20 {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Add(1)
			c.AfterFunc(time.Duration((i*37+round)%400)*time.Microsecond, wg.Done)
		}
		wg.Wait()
	}
	deadline := time.Now().Add(hangGuard)
	for {
		c.mu.Lock()
		running := c.running
		c.mu.Unlock()
		if !running {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the timer goroutine does not end")
		}
		c.Sleep(10 * time.Microsecond)
	}
}
