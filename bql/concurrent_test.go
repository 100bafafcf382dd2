package bql

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// ring hands frame sizes from one producer to one completer, as a descriptor ring does.
type ring struct {
	sizes      [64]atomic.Uint32
	head, tail atomic.Uint32
}

func (r *ring) put(n int) bool {
	h := r.head.Load()
	if h-r.tail.Load() == uint32(len(r.sizes)) {
		return false
	}
	r.sizes[h%uint32(len(r.sizes))].Store(uint32(n))
	r.head.Store(h + 1)
	return true
}

// take removes up to most frames and returns their bytes.
func (r *ring) take(most int) (n int) {
	t, h := r.tail.Load(), r.head.Load()
	for i := 0; i < most && t != h; i++ {
		n += int(r.sizes[t%uint32(len(r.sizes))].Load())
		t++
	}
	r.tail.Store(t)
	return n
}

// hangGuard ends a test that waits for something that never comes.
const hangGuard = 60 * time.Second

// One producer and one completer run freely, the producer sleeping whenever the queue is closed until a completion says
// resume. Nothing is lost, nothing hangs, no more is in flight than the limit and one frame, and the accounts agree.
func TestProducerAgainstCompleter(t *testing.T) {
	frames := 60000
	if testing.Short() {
		frames = 10000
	}
	for _, base := range []uint32{0, 0xFFFFFF00, 0x7FFFFF00} {
		const biggest = 1514
		l := mustNew(t, Options{Hold: time.Millisecond, Max: 40000})
		startAt(l, base)
		gen := l.Generation()
		var (
			r      ring
			wake   = make(chan struct{}, 1)
			sent   atomic.Int64
			done   = make(chan struct{})
			sleeps int
		)
		go func() { // producer
			defer close(done)
			rnd := rand.New(rand.NewPCG(uint64(base), 1))
			guard := time.NewTimer(hangGuard)
			defer guard.Stop()
			for range frames {
				for !l.Open() {
					sleeps++
					guard.Reset(hangGuard)
					select {
					case <-wake:
					case <-guard.C:
						t.Errorf("nobody woke the producer: %v", l.Stats())
						return
					}
				}
				n := 1 + rnd.IntN(biggest)
				if err := l.Account(n); err != nil {
					t.Error(err)
					return
				}
				if in := l.InFlight(); in > 40000+biggest {
					t.Errorf("%d bytes in flight", in)
					return
				}
				for !r.put(n) {
					runtime.Gosched() // the ring is full, which is not the limiter's business
				}
				sent.Add(int64(n))
			}
		}()
		completed := int64(0)
		rnd := rand.New(rand.NewPCG(uint64(base), 2))
		for finished := false; ; {
			n := r.take(1 + rnd.IntN(20))
			if n == 0 && finished {
				break
			}
			select {
			case <-done:
				finished = true
			default:
			}
			if n == 0 {
				runtime.Gosched()
				continue
			}
			resume, err := l.Completed(gen, n)
			if err != nil {
				t.Fatalf("Completed(%d): %v", n, err)
			}
			completed += int64(n)
			if resume {
				select {
				case wake <- struct{}{}:
				default:
				}
			}
		}
		s := l.Stats()
		if completed != sent.Load() || s.BytesCompleted != uint64(completed) || s.InFlight != 0 {
			t.Errorf("sent %d, completed %d; %v", sent.Load(), completed, s)
		}
		if s.BadSize+s.Overflows+s.Excess+s.Stale+s.Concurrent != 0 {
			t.Errorf("refused calls: %v", s)
		}
		t.Logf("producer slept %d times; %v", sleeps, s)
	}
}

// The one order of events in which the producer must help itself: it finds the queue closed, the completer makes room and
// sees no flag, and only then does the producer raise it.
func TestRoomBeforeFlag(t *testing.T) {
	l := mustNew(t, Options{})
	if err := l.Account(100); err != nil || l.Available() >= 0 {
		t.Fatalf("%d available, error %v", l.Available(), err)
	}
	if mustComplete(t, l, 100) {
		t.Error("resume though nobody waits")
	}
	if !l.stop() {
		t.Error("the producer would wait for a completion that has been")
	}
	if l.stopped.Load() || l.Stats().Stops != 0 {
		t.Error("the flag is left behind")
	}
}

// The stop flag in a crowd: with a limit of one byte each frame closes the queue while the completer, spinning on another
// processor, opens it again. If "closed, tell me" and "done" could miss each other, this would hang.
func TestNoLostWakeup(t *testing.T) {
	rounds := 60000
	if testing.Short() {
		rounds = 15000
	}
	l := mustNew(t, Options{Max: 1})
	wake, stop := make(chan struct{}, 1), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 100 {
				resume, err := l.Completed(0, l.InFlight())
				if err != nil {
					t.Error(err)
				}
				if resume {
					select {
					case wake <- struct{}{}:
					default:
					}
				}
			}
			runtime.Gosched()
		}
	})
	defer wg.Wait()
	defer close(stop)
	guard := time.NewTimer(hangGuard)
	defer guard.Stop()
	spin := 0
	for i := range rounds {
		if err := l.Account(100); err != nil {
			t.Fatal(err)
		}
		for range i % 512 { // let the completer come at every moment of Open
			spin++
		}
		for !l.Open() {
			guard.Reset(hangGuard)
			select {
			case <-wake:
			case <-guard.C:
				t.Fatalf("lost wake-up: %v", l.Stats())
			}
		}
	}
}

// Two producers or two completers at once are a bug of the caller: whatever they do to each other, the counts stay whole.
func TestIntrudersDoNotCorrupt(t *testing.T) {
	l := mustNew(t, Options{})
	var wg sync.WaitGroup
	var accounted, taken atomic.Int64
	each := 5000
	if testing.Short() {
		each = 1000
	}
	for range 3 {
		wg.Go(func() {
			for range each {
				switch err := l.Account(10); {
				case err == nil:
					accounted.Add(10)
				case !errors.Is(err, ErrConcurrent) && !errors.Is(err, ErrOverflow):
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range each {
				_, err := l.Completed(0, 10)
				switch {
				case err == nil:
					taken.Add(10)
				case !errors.Is(err, ErrConcurrent) && !errors.Is(err, ErrExcess):
					t.Error(err)
				}
				l.Open()
			}
		})
	}
	wg.Wait()
	if got, want := int64(l.InFlight()), accounted.Load()-taken.Load(); got != want {
		t.Errorf("%d in flight, want %d", got, want)
	}
	if s := l.Stats(); s.BytesCompleted != uint64(taken.Load()) {
		t.Errorf("taken %d; %v", taken.Load(), s)
	}
}

// While a ring is recovered over and over, a completer that has not heard of it keeps completing for rings that are gone.
// Nothing of that is taken from the frames of the new ring.
func TestLateCompletionsDuringReset(t *testing.T) {
	resets := 3000
	if testing.Short() {
		resets = 500
	}
	l := mustNew(t, Options{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var gone atomic.Uint32 // a generation that is over
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if g := gone.Load(); g != 0 {
				if _, err := l.Completed(Generation(g-1), 500); !errors.Is(err, ErrStale) && !errors.Is(err, ErrConcurrent) {
					t.Errorf("late completion: %v", err)
					return
				}
			}
			l.Stats()
		}
	})
	for i := range resets {
		for range 3 {
			if err := l.Account(500); err != nil {
				t.Fatal(err)
			}
		}
		for deadline := time.Now().Add(hangGuard); ; runtime.Gosched() {
			gen, err := l.Reset(1500)
			if err == nil {
				gone.Store(uint32(gen))
				break
			}
			if !errors.Is(err, ErrConcurrent) || time.Now().After(deadline) {
				t.Fatalf("reset %d: %v", i, err)
			}
		}
	}
	close(stop)
	wg.Wait()
	if s := l.Stats(); s.InFlight != 0 || s.BytesCompleted != 0 || s.BytesFlushed != uint64(resets*1500) {
		t.Errorf("statistics: %v", s)
	}
}
