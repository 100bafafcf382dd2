package mmio

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestClockIsReal(t *testing.T) {
	r, ok := Clock().(interface{ IsReal() bool })
	if !ok || !r.IsReal() {
		t.Error("the clock of hardware does not say that it is real")
	}
	a := Clock().Now()
	if b := Clock().Now(); b.Before(a) {
		t.Error("time goes back")
	}
	if d := time.Since(a); d < 0 {
		t.Errorf("the clock is %v ahead", -d)
	}
}

// Sleep never returns early, however short it is and whoever else sleeps.
func TestSleepIsLongEnough(t *testing.T) {
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, d := range []time.Duration{-1, 0, time.Microsecond, 100 * time.Microsecond, preciseBelow, preciseBelow + time.Millisecond} {
				start := time.Now()
				Clock().Sleep(d)
				if e := time.Since(start); e < d {
					t.Errorf("Sleep(%v) took %v", d, e)
				}
			}
		})
	}
	wg.Wait()
}

// Timers fire once, not early, in goroutines of their own, be they Go's or this package's.
func TestAfterFunc(t *testing.T) {
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, 2 * time.Millisecond, preciseBelow + time.Millisecond} {
		var calls atomic.Int32
		start := time.Now()
		fired := make(chan time.Time, 4)
		timer := Clock().AfterFunc(d, func() { calls.Add(1); fired <- time.Now() })
		var at time.Time
		within(t, "timer", func() { at = <-fired })
		if e := at.Sub(start); e < d {
			t.Errorf("timer of %v fired after %v", d, e)
		}
		if timer.Stop() {
			t.Errorf("Stop of a timer that fired (%v) says that it was in time", d)
		}
		timer.Reset(d)
		within(t, "timer after Reset", func() { <-fired })
		if n := calls.Load(); n != 2 {
			t.Errorf("timer of %v fired %d times", d, n)
		}
	}
}

// A timer that is stopped in time does not fire, and Stop says whether it was.
func TestTimerStop(t *testing.T) {
	for _, d := range []time.Duration{2 * time.Millisecond, time.Hour} {
		var fired atomic.Bool
		timer := Clock().AfterFunc(d, func() { fired.Store(true) })
		stopped := timer.Stop()
		if timer.Stop() {
			t.Error("second Stop says that it was in time")
		}
		after := make(chan struct{})
		Clock().AfterFunc(4*time.Millisecond, func() { close(after) })
		within(t, "later timer", func() {
			<-after
			for !stopped && !fired.Load() {
				runtime.Gosched()
			}
		})
		if fired.Load() && stopped {
			t.Errorf("timer of %v fired although it was stopped", d)
		}
		if d == time.Hour && !stopped {
			t.Error("Stop of a long timer says that it was too late")
		}
	}
}

// A timer that is reset fires at the new time only, from long to short and from short to long.
func TestTimerReset(t *testing.T) {
	const short = 4 * time.Millisecond
	within(t, "a round without a stall", func() {
		for clean := false; !clean; {
			fired := make(chan time.Time, 4)
			timer := Clock().AfterFunc(time.Hour, func() { fired <- time.Now() })
			start := time.Now()
			timer.Reset(short)
			timer.Reset(time.Hour)
			again := time.Now()
			clean = again.Sub(start) < short // otherwise it may have fired in between, rightly
			timer.Reset(short)
			if e := (<-fired).Sub(again); clean && e < short {
				t.Errorf("timer of %v fired %v after it was set", short, e)
			}
			if timer.Stop() && clean {
				t.Error("timer is still pending after it fired")
			}
		}
	})
}

// Many timers at once all fire, none before its time.
func TestManyTimers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	var wg sync.WaitGroup
	for range 300 {
		d := time.Duration(rnd.IntN(8000)) * time.Microsecond
		wg.Add(1)
		start := time.Now()
		Clock().AfterFunc(d, func() {
			if e := time.Since(start); e < d {
				t.Errorf("timer of %v fired after %v", d, e)
			}
			wg.Done()
		})
	}
	within(t, "timers", wg.Wait)
}

// Without timers there is no goroutine and no thread for them.
func TestTimersLeaveNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	done := make(chan struct{})
	Clock().AfterFunc(time.Millisecond, func() { close(done) })
	Clock().AfterFunc(2*time.Millisecond, func() {}).Stop()
	<-done
	within(t, "goroutine of the timers", func() {
		for runtime.NumGoroutine() > before+1 { // +1: within's own
			runtime.Gosched()
		}
	})
}

func BenchmarkClockSleep20us(b *testing.B) {
	for b.Loop() {
		Clock().Sleep(20 * time.Microsecond)
	}
}

func BenchmarkTimerReset(b *testing.B) {
	timer := Clock().AfterFunc(time.Millisecond, func() {})
	for b.Loop() {
		timer.Reset(time.Millisecond)
	}
	timer.Stop()
}
