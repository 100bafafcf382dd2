package bql

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// state is what a trace shows after each step.
type state struct {
	Limit, Adj, Avail, Over int
}

func stateOf(l *Limiter, base uint32) state {
	return state{Limit: l.Limit(), Adj: int(l.adjLimit.Load() - base), Avail: l.Available(), Over: int(l.prevOver)}
}

// A fresh queue learns the size of one frame, holds back two, and keeps its limit when these drain without new data. Four
// starting points show that the counters may wrap anywhere on the way.
func TestGoldenTrace(t *testing.T) {
	const frame = 1514
	steps := []struct {
		name  string
		queue bool // else complete
		want  state
	}{
		{"first frame overshoots limit 0", true, state{Limit: 0, Adj: 0, Avail: -1514}},
		{"its completion starves: the limit is its size", false, state{Limit: 1514, Adj: 3028, Avail: 1514}},
		{"exactly the limit", true, state{Limit: 1514, Adj: 3028, Avail: 0}},
		{"one beyond", true, state{Limit: 1514, Adj: 3028, Avail: -1514}},
		{"two beyond", true, state{Limit: 1514, Adj: 3028, Avail: -3028}},
		{"first done: still busy", false, state{Limit: 1514, Adj: 4542, Avail: -1514, Over: 3028}},
		{"second done: steady", false, state{Limit: 1514, Adj: 6056, Avail: 0, Over: 1514}},
		{"third done: drained, nothing had been held back", false, state{Limit: 1514, Adj: 7570, Avail: 1514}},
	}
	for _, base := range []uint32{0, 0xFFFFFF00, 0xFFFFFFFF, 0x7FFFFF00} {
		t.Run(fmt.Sprintf("from %#x", base), func(t *testing.T) {
			l := mustNew(t, newFakeClock().options(Options{}))
			startAt(l, base)
			for _, s := range steps {
				if s.queue {
					if open := mustQueue(t, l, frame); open != (s.want.Avail >= 0) {
						t.Errorf("%s: open = %v with %d available", s.name, open, s.want.Avail)
					}
				} else {
					mustComplete(t, l, frame)
				}
				if d := cmp.Diff(s.want, stateOf(l, base)); d != "" {
					t.Errorf("%s (-want +got):\n%s", s.name, d)
				}
			}
			// After the second completion of the burst a surplus of one frame was seen.
			if l.lowestSlack != frame {
				t.Errorf("lowest slack is %d, want %d", l.lowestSlack, frame)
			}
		})
	}
}

// The 2012 mistake of Linux: with X and Y queued beyond the limit, X completed, Z queued and Y completed, the queue may
// have run dry before Z came; the limit shrank all the same. It must not, whatever the sizes and however long it was held.
func TestPossiblyDryQueueDoesNotShrink(t *testing.T) {
	for _, x := range []int{60, 1514, 3000, 9000} {
		for _, y := range []int{60, 1514, 9000} {
			for _, z := range []int{1, 60, 1514, 40000} {
				clock := newFakeClock()
				limit := x + y/2 // X within, Y beyond
				l := grownTo(t, clock.options(Options{}), limit)
				clock.advance(time.Hour)
				mustQueue(t, l, x)
				mustQueue(t, l, y)
				mustComplete(t, l, x)
				clock.advance(time.Hour)
				mustQueue(t, l, z)
				mustComplete(t, l, y)
				if want := limit + x + y - limit; l.Limit() != want {
					t.Errorf("X=%d Y=%d Z=%d: limit went from %d to %d, want %d: grown by what had been held back",
						x, y, z, limit, l.Limit(), want)
				}
			}
		}
	}
}

// The other part of the same mistake: nothing had been held back, and the completion ends where the earlier one saw the
// queue end. That queue may have been idle, so its surplus says nothing.
func TestPossiblyIdleQueueDoesNotShrink(t *testing.T) {
	clock := newFakeClock()
	l := grownTo(t, clock.options(Options{}), 20000)
	for range 100 {
		mustQueue(t, l, 1000)
		mustQueue(t, l, 500)
		mustComplete(t, l, 1000) // 500 left
		clock.advance(2 * time.Second)
		mustQueue(t, l, 700)
		mustComplete(t, l, 500) // exactly the old ones
		mustComplete(t, l, 700)
		if l.Limit() != 20000 {
			t.Fatalf("limit is %d, want it kept at 20000", l.Limit())
		}
	}
}

// Growth is immediate and by what passed: bytes completed that were not there at the previous completion, and what had
// been held back then.
func TestGrowth(t *testing.T) {
	l := grownTo(t, newFakeClock().options(Options{}), 1000)
	mustQueue(t, l, 1000)
	mustQueue(t, l, 1500) // 1500 beyond
	mustComplete(t, l, 400)
	if l.Limit() != 1000 {
		t.Fatalf("limit is %d while the queue is busy, want 1000", l.Limit())
	}
	mustQueue(t, l, 300)
	mustComplete(t, l, 2400) // the 2100 left then, and all of the 300
	if want := 1000 + 300 + 1500; l.Limit() != want {
		t.Errorf("limit is %d, want %d", l.Limit(), want)
	}
	if s := l.Stats(); s.Grown != 2 || s.MaxLimit != 2800 || s.Shrunk != 0 {
		t.Errorf("statistics: %v", s)
	}
}

// Shrinking happens once per hold time, by the smallest surplus of that time, and not before.
func TestShrinkAfterHold(t *testing.T) {
	const hold = 300 * time.Millisecond
	clock := newFakeClock()
	l := grownTo(t, clock.options(Options{Hold: hold}), 10000)
	mustQueue(t, l, 6000)
	mustComplete(t, l, 1000) // 5000 left: from here on the queue is neither empty nor over its limit
	surplus := []int{3000, 1000, 2000}
	for i, n := range []int{3500, 4500, 4000} { // surplus: limit - 2n
		mustQueue(t, l, n)
		mustComplete(t, l, n)
		if l.Limit() != 10000 || int(l.lowestSlack) != min(surplus[0], surplus[min(i, 1)]) {
			t.Fatalf("step %d: limit %d lowest slack %d", i, l.Limit(), l.lowestSlack)
		}
		clock.advance(hold / 3)
	}
	// The hold time is over, but not exceeded.
	mustQueue(t, l, 3500)
	mustComplete(t, l, 3500)
	if l.Limit() != 10000 {
		t.Fatalf("limit fell to %d at the very end of the hold time", l.Limit())
	}
	clock.advance(1)
	mustQueue(t, l, 3500)
	mustComplete(t, l, 3500)
	if l.Limit() != 9000 {
		t.Fatalf("limit is %d, want 9000: less by the smallest surplus, 1000", l.Limit())
	}
	// The next time starts with no memory.
	if l.lowestSlack != noSlack {
		t.Errorf("lowest slack is %d after a decrease", l.lowestSlack)
	}
	if s := l.Stats(); s.Shrunk != 1 {
		t.Errorf("shrunk %d times, want 1", s.Shrunk)
	}
}

// A last frame that was only partly beyond the limit shows that the part within was not needed.
func TestShrinkByLastFrame(t *testing.T) {
	clock := newFakeClock()
	l := grownTo(t, clock.options(Options{}), 5000)
	mustQueue(t, l, 4000)
	mustQueue(t, l, 3000) // 2000 beyond, 1000 within
	mustComplete(t, l, 500)
	clock.advance(DefaultHold + 1)
	mustQueue(t, l, 3500)
	mustComplete(t, l, 3500) // 2n = 7000 leaves no surplus of the first kind: 5000 + 2000 - 7000
	if l.Limit() != 4000 {
		t.Errorf("limit is %d, want 4000", l.Limit())
	}
}

// An idle queue keeps its limit, however long.
func TestIdleKeepsLimit(t *testing.T) {
	clock := newFakeClock()
	l := grownTo(t, clock.options(Options{}), 8000)
	for range 50 {
		clock.advance(time.Minute)
		mustQueue(t, l, 100)
		mustComplete(t, l, 100)
	}
	if l.Limit() != 8000 {
		t.Errorf("limit is %d, want 8000", l.Limit())
	}
}

func TestBounds(t *testing.T) {
	clock := newFakeClock()
	l := mustNew(t, clock.options(Options{Min: 3000, Max: 5000}))
	if l.Limit() != 3000 || l.Available() != 3000 {
		t.Fatalf("a new queue has limit %d and %d available, want Min", l.Limit(), l.Available())
	}
	for range 10 { // starve it
		for l.Open() {
			mustQueue(t, l, 1500)
		}
		mustComplete(t, l, l.InFlight())
	}
	if l.Limit() != 5000 {
		t.Errorf("limit grew to %d, want Max 5000", l.Limit())
	}
	// New bounds count from the next completion on.
	if err := l.SetBounds(0, 2000); err != nil {
		t.Fatal(err)
	}
	if l.Limit() != 5000 {
		t.Errorf("limit is %d before the next completion", l.Limit())
	}
	mustQueue(t, l, 100)
	mustComplete(t, l, 100)
	if l.Limit() != 2000 {
		t.Errorf("limit is %d, want the new Max 2000", l.Limit())
	}
	if err := l.SetBounds(4000, 0); err != nil {
		t.Fatal(err)
	}
	mustQueue(t, l, 100)
	mustComplete(t, l, 100)
	if s := l.Stats(); s.Limit != 4000 || s.Min != 4000 || s.Max != MaxLimit {
		t.Errorf("after SetBounds(4000, 0): %v", s)
	}
}

// Min = MaxLimit is how to switch the limit off.
func TestUnlimited(t *testing.T) {
	l := mustNew(t, Options{Min: MaxLimit})
	for i := range 4096 {
		if !mustQueue(t, l, 65536) {
			t.Fatalf("closed after %d frames", i)
		}
	}
	mustComplete(t, l, 4096*65536)
	if l.Limit() != MaxLimit {
		t.Errorf("limit is %d", l.Limit())
	}
}

// Growth ends at MaxLimit, and no sum on the way there wraps.
func TestGrowthToTheEnd(t *testing.T) {
	l := mustNew(t, Options{})
	for range 40 {
		for l.Open() {
			mustQueue(t, l, MaxFrame)
		}
		if l.InFlight() > MaxInFlight {
			t.Fatalf("%d in flight", l.InFlight())
		}
		before := l.Limit()
		mustComplete(t, l, l.InFlight())
		if l.Limit() < before {
			t.Fatalf("starved at limit %d, went to %d", before, l.Limit())
		}
	}
	if l.Limit() != MaxLimit {
		t.Errorf("limit is %d, want MaxLimit %d", l.Limit(), MaxLimit)
	}
}
