package mmio

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dwnet/hw"
)

func openUIO(t *testing.T, f File) *UIOInterrupt {
	t.Helper()
	tr := newTree(t).device("/dev/uio0", func(int) (File, error) { return f, nil })
	u, err := OpenInterrupt(tr.sys(), Source{Kind: UIO, Path: "uio0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Close() })
	return u
}

// wait waits and checks why it ended.
func wait(t *testing.T, i hw.Interrupt, timeout time.Duration, want hw.Wakeup) {
	t.Helper()
	within(t, "Wait", func() {
		got, err := i.Wait(timeout)
		if err != nil || got != want {
			t.Errorf("Wait gives %v, %v, want %v", got, err, want)
		}
	})
}

// The order is read, device quieted, write: nothing else makes as many wake-ups as there are events.
func TestUIOWakeupsAreEvents(t *testing.T) {
	f := newFakeUIO(t)
	u := openUIO(t, f)
	if got := fmt.Sprint(f.events()); got != "[write 0]" {
		t.Errorf("opening does %v", got)
	}
	const events = 100
	for range events {
		if err := u.Enable(); err != nil {
			t.Fatal(err)
		}
		f.set(true)
		wait(t, u, -1, hw.WakeInterrupt)
		if got := fmt.Sprint(f.events()); got != "[write 1 fire read]" {
			t.Fatalf("one event does %v", got)
		}
		wait(t, u, 0, hw.WakeTimeout) // masked: nothing more comes
		f.set(false)                  // the driver clears the status
	}
	if u.Fired() != events {
		t.Errorf("%d wake-ups for %d events", u.Fired(), events)
	}
	// A driver that unmasks without clearing is told again at once.
	f.set(true)
	for range 3 {
		if err := u.Enable(); err != nil {
			t.Fatal(err)
		}
		wait(t, u, -1, hw.WakeInterrupt)
	}
}

// An interrupt before the first Enable is not reported, and not lost.
func TestUIOInterruptBeforeEnable(t *testing.T) {
	f := newFakeUIO(t)
	u := openUIO(t, f)
	f.set(true)
	wait(t, u, 0, hw.WakeTimeout)
	if err := u.Enable(); err != nil {
		t.Fatal(err)
	}
	wait(t, u, -1, hw.WakeInterrupt)
}

// Reads that are short or interrupted are gone on with: one event stays one.
func TestUIOShortAndInterruptedReads(t *testing.T) {
	for name, reads := range map[string][]any{
		"interrupted":           {unix.EINTR, unix.EINTR},
		"short":                 {1, 2, 1},
		"both":                  {3, unix.EINTR, 1},
		"short and not yet":     {2, unix.EAGAIN, 2},
		"interrupted very long": make64(unix.EINTR, 3*interruptedRetries),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeUIO(t)
			u := openUIO(t, &scripted{File: f, reads: reads})
			if err := u.Enable(); err != nil {
				t.Fatal(err)
			}
			f.set(true)
			wait(t, u, -1, hw.WakeInterrupt)
			f.set(false)
			wait(t, u, 0, hw.WakeTimeout)
			if u.Fired() != 1 {
				t.Errorf("%d wake-ups for one event", u.Fired())
			}
		})
	}
}

func make64(v any, n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = v
	}
	return all
}

// A write that is interrupted is made again; one that fails is an error that names the device.
func TestUIOEnableErrors(t *testing.T) {
	f := newFakeUIO(t)
	s := &scripted{File: f}
	u := openUIO(t, s)
	f.events()
	s.writes = []any{unix.EINTR, unix.EINTR}
	if err := u.Enable(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.events()); got != "[write 1]" {
		t.Errorf("Enable does %v", got)
	}
	s.writes = []any{2}
	wantError(t, u.Enable(), io.ErrShortWrite, "/dev/uio0")
	s.writes = []any{unix.EIO}
	wantError(t, u.Enable(), unix.EIO, "unmask", "/dev/uio0")
}

func TestOpenInterruptErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		src  Source
		open error
		fail error
		want error
		say  string
	}{
		{name: "no such device", open: unix.ENOENT, want: unix.ENOENT, say: "uio_pdrv_genirq"},
		{name: "no permission", open: unix.EACCES, want: unix.EACCES, say: "/dev/uio0"},
		{name: "no interrupt", fail: unix.EIO, want: ErrNoInterrupt, say: "or poll"},
		{name: "cannot be masked", fail: unix.ENOSYS, want: ErrNoInterrupt, say: "/dev/uio0"},
		{name: "other failure", fail: unix.EPERM, want: unix.EPERM, say: "mask"},
		{name: "not UIO", src: Source{Kind: Polling}, want: hw.ErrConfig, say: "poll"},
		{name: "no interrupt source", src: Source{Kind: DevMem}, want: hw.ErrConfig, say: "devmem"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeUIO(t)
			f.fail = c.fail
			tr := newTree(t).device("/dev/uio0", func(flags int) (File, error) {
				if flags&(unix.O_NONBLOCK|unix.O_CLOEXEC) != unix.O_NONBLOCK|unix.O_CLOEXEC {
					t.Errorf("opened with 0x%x", flags)
				}
				return f, c.open
			})
			src := c.src
			if src.Kind == None {
				src = Source{Kind: UIO, Path: "uio0"}
			}
			u, err := OpenInterrupt(tr.sys(), src)
			if u != nil {
				t.Error("there is an interrupt")
			}
			wantError(t, err, c.want, c.say)
			if opened := c.src.Kind == None && c.open == nil; opened && fmt.Sprint(f.events()) != "[close]" {
				t.Error("the device was not closed")
			}
		})
	}
}

// A device that goes away ends Wait with an error; it does not spin.
func TestUIODeviceGoes(t *testing.T) {
	t.Run("read fails", func(t *testing.T) {
		u := openUIO(t, &scripted{File: newFakeUIO(t), reads: []any{unix.EIO}})
		_, err := u.Wait(-1)
		wantError(t, err, hw.ErrGone, "/dev/uio0", "unbound")
		wantError(t, err, unix.EIO)
	})
	t.Run("end of file", func(t *testing.T) {
		u := openUIO(t, &scripted{File: newFakeUIO(t), reads: []any{""}})
		_, err := u.Wait(-1)
		wantError(t, err, hw.ErrGone)
	})
	t.Run("poll hangs up", func(t *testing.T) {
		f := newFakeUIO(t)
		u := openUIO(t, hungUp{f})
		unix.Close(f.w) // the reading end of the pipe now reports POLLHUP only
		f.w = -1
		within(t, "Wait", func() {
			_, err := u.Wait(-1)
			wantError(t, err, hw.ErrGone)
		})
	})
}

// hungUp never has data.
type hungUp struct{ *fakeUIO }

func (hungUp) Read([]byte) (int, error) { return -1, unix.EAGAIN }

// lines are the interrupts of this package, to test what they have in common. raise makes the line fire once it is enabled.
var lines = []struct {
	name string
	open func(t *testing.T) (i interrupt, raise func(up bool))
}{
	{"uio", func(t *testing.T) (interrupt, func(bool)) {
		f := newFakeUIO(t)
		return openUIO(t, f), f.set
	}},
	{"poll", func(t *testing.T) (interrupt, func(bool)) {
		var mu sync.Mutex
		level := false
		p, err := newPollInterrupt("test", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return level
		}, defaultPollMin, defaultPollMax)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		return p, func(up bool) {
			mu.Lock()
			defer mu.Unlock()
			level = up
		}
	}},
}

// waitsOf is what the interrupts have in common.
func waitsOf(i interrupt) *waits {
	if u, ok := i.(*UIOInterrupt); ok {
		return &u.waits
	}
	return &i.(*pollInterrupt).waits
}

func eachLine(t *testing.T, f func(t *testing.T, i interrupt, raise func(bool))) {
	for _, l := range lines {
		t.Run(l.name, func(t *testing.T) {
			i, raise := l.open(t)
			f(t, i, raise)
		})
	}
}

func TestWaitTimesOut(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, _ func(bool)) {
		for _, d := range []time.Duration{0, time.Microsecond, 300 * time.Microsecond, 7 * time.Millisecond} {
			start := time.Now()
			wait(t, i, d, hw.WakeTimeout)
			if e := time.Since(start); e < d {
				t.Errorf("Wait(%v) took %v only", d, e)
			}
		}
	})
}

// A line that is masked is silent; one that is up when it is enabled fires at once, and masks itself.
func TestLevelAndMask(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, raise func(bool)) {
		raise(true)
		wait(t, i, time.Millisecond, hw.WakeTimeout)
		for range 3 {
			if err := i.Enable(); err != nil {
				t.Fatal(err)
			}
			wait(t, i, -1, hw.WakeInterrupt)
			wait(t, i, time.Millisecond, hw.WakeTimeout)
		}
		raise(false)
		if err := i.Enable(); err != nil {
			t.Fatal(err)
		}
		wait(t, i, time.Millisecond, hw.WakeTimeout)
		raise(true)
		wait(t, i, -1, hw.WakeInterrupt)
	})
}

// Enable from another goroutine counts for a Wait that has begun.
func TestEnableDuringWait(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, raise func(bool)) {
		raise(true)
		for range 50 {
			var wg sync.WaitGroup
			wg.Go(func() { wait(t, i, -1, hw.WakeInterrupt) })
			within(t, "falling asleep", func() {
				for waitsOf(i).state.Load() != wakerAsleep {
					runtime.Gosched()
				}
			})
			if err := i.Enable(); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
		}
	})
}

// Wakes are kept for the next Wait, and merged.
func TestWakeIsKeptAndMerged(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, _ func(bool)) {
		for range 5 {
			i.Wake()
		}
		wait(t, i, -1, hw.WakeCall)
		wait(t, i, 0, hw.WakeTimeout)
		wait(t, i, time.Millisecond, hw.WakeTimeout)
		i.Wake()
		wait(t, i, 0, hw.WakeCall)
	})
}

// No wake is lost, whatever the schedule.
func TestEveryWakeEndsAWait(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, _ func(bool)) {
		const rounds = 2000
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			for range rounds {
				if got, err := i.Wait(-1); err != nil || got != hw.WakeCall {
					t.Errorf("Wait gives %v, %v", got, err)
				}
				heard <- struct{}{}
			}
		}()
		within(t, "wake", func() {
			for range rounds {
				i.Wake()
				<-heard
			}
			<-heard
		})
	})
}

// When both come, both are told, one after the other.
func TestInterruptAndWakeTogether(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, raise func(bool)) {
		if err := i.Enable(); err != nil {
			t.Fatal(err)
		}
		raise(true)
		i.Wake()
		wait(t, i, -1, hw.WakeInterrupt)
		if err := i.Enable(); err != nil { // the line is still up: a wake must not starve
			t.Fatal(err)
		}
		wait(t, i, -1, hw.WakeCall)
		wait(t, i, -1, hw.WakeInterrupt)
		wait(t, i, 0, hw.WakeTimeout)
	})
}

// Close ends a Wait, and every later one, with ErrClosed; nothing panics afterwards, and no goroutine is left.
func TestCloseEndsWait(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Hour} {
		eachLine(t, func(t *testing.T, i interrupt, _ func(bool)) {
			before := runtime.NumGoroutine()
			if err := i.Enable(); err != nil {
				t.Fatal(err)
			}
			result := make(chan error)
			begun := make(chan struct{})
			go func() {
				close(begun)
				_, err := i.Wait(timeout)
				result <- err
			}()
			<-begun
			if err := i.Close(); err != nil {
				t.Fatal(err)
			}
			within(t, "Wait", func() { wantError(t, <-result, hw.ErrClosed) })
			_, err := i.Wait(0)
			wantError(t, err, hw.ErrClosed)
			wantError(t, i.Enable(), hw.ErrClosed)
			i.Wake()
			if err := i.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
			within(t, "goroutine", func() {
				for runtime.NumGoroutine() > before+1 { // +1: within's own
					runtime.Gosched()
				}
			})
		})
	}
}

// The wake with which Close ends a Wait is not mistaken for one of Wake, even if it comes in the middle of a look.
func TestCloseDuringALook(t *testing.T) {
	i, _ := lines[1].open(t)
	_, err := waitsOf(i).await(-1, line{
		look: func() (bool, error) {
			i.Close()
			return false, nil
		},
		wait: func(time.Duration) error {
			t.Error("waits after Close")
			return hw.ErrClosed
		},
	})
	wantError(t, err, hw.ErrClosed)
}

// Close at any moment of a busy life neither crashes nor leaves the waiter behind.
func TestCloseAtRandom(t *testing.T) {
	for _, l := range lines {
		t.Run(l.name, func(t *testing.T) {
			for n := range 100 {
				i, raise := l.open(t)
				raise(true)
				done := make(chan error)
				go func() {
					for {
						if _, err := i.Wait(-1); err != nil {
							done <- err
							return
						}
						if err := i.Enable(); err != nil && !errors.Is(err, hw.ErrClosed) {
							done <- err
							return
						}
					}
				}()
				for range n % 7 {
					i.Wake()
				}
				i.Close()
				i.Wake()
				within(t, "waiter", func() { wantError(t, <-done, hw.ErrClosed) })
			}
		})
	}
}

// The file of a UIO device is closed once, and not under a goroutine that waits on it.
func TestUIOFileIsClosedAfterTheLastWait(t *testing.T) {
	f := newFakeUIO(t)
	u := openUIO(t, f)
	f.events()
	if err := u.enter(); err != nil { // a goroutine is inside Wait
		t.Fatal(err)
	}
	u.Close()
	if got := f.events(); len(got) != 0 {
		t.Errorf("while somebody waits: %v", got)
	}
	u.leave()
	u.Close()
	if got := fmt.Sprint(f.events()); got != "[close]" {
		t.Errorf("afterwards: %v", got)
	}
}

func TestSecondWaiterIsRefused(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, _ func(bool)) {
		w := waitsOf(i)
		if err := w.enter(); err != nil {
			t.Fatal(err)
		}
		_, err := i.Wait(-1)
		wantError(t, err, hw.ErrConfig, "another goroutine")
		w.leave()
		wait(t, i, 0, hw.WakeTimeout)
	})
}

// The poll loop waits thousands of times a second: no garbage.
func TestWaitDoesNotAllocate(t *testing.T) {
	eachLine(t, func(t *testing.T, i interrupt, raise func(bool)) {
		raise(true)
		if n := testing.AllocsPerRun(100, func() {
			i.Enable()
			i.Wait(-1)
			i.Wait(20 * time.Microsecond)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkWaitUIO(b *testing.B) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK); err != nil {
		b.Fatal(err)
	}
	f := &fakeUIO{r: p[0], w: p[1], up: true}
	w, err := newWaker()
	if err != nil {
		b.Fatal(err)
	}
	u := &UIOInterrupt{f: f, waits: waits{waker: w, release: func() {}}}
	for b.Loop() {
		f.log = f.log[:0]
		u.Enable()
		u.Wait(-1)
	}
}
