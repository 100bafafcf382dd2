package bql

import (
	"testing"
	"time"
)

// A queue is stalled when it holds bytes and none were completed for too long; an idle or a slow one is not.
func TestStall(t *testing.T) {
	clock := newFakeClock()
	l := mustNew(t, clock.options(Options{StallAfter: 100 * time.Millisecond, Min: 100000}))
	want := func(what string, waited time.Duration, stalled bool) {
		t.Helper()
		if w, s := l.Stalled(); w != waited || s != stalled {
			t.Errorf("%s: waited %v, stalled %v; want %v, %v", what, w, s, waited, stalled)
		}
	}
	clock.advance(time.Hour)
	want("never used", 0, false)

	mustQueue(t, l, 1000)
	want("just sent after an idle hour", 0, false)
	clock.advance(100 * time.Millisecond)
	want("at the limit", 100*time.Millisecond, false)
	mustQueue(t, l, 1000)
	clock.advance(1)
	want("beyond; more frames do not help", 100*time.Millisecond+1, true)
	if s := l.Stats(); s.Stalls != 0 || !s.Stalled {
		t.Errorf("a stall that goes on: %v", s)
	}

	mustComplete(t, l, 1)
	want("one byte is progress", 0, false)
	if s := l.Stats(); s.Stalls != 1 || s.LongestStall != 100*time.Millisecond+1 {
		t.Errorf("a stall that ended: %v", s)
	}

	// Slow, deep, and never stalled.
	for range 50 {
		clock.advance(99 * time.Millisecond)
		mustQueue(t, l, 100)
		mustComplete(t, l, 20)
		want("slow wire", 0, false)
	}
	mustComplete(t, l, l.InFlight())
	clock.advance(time.Hour)
	want("idle", 0, false)
	mustQueue(t, l, 60)
	want("sent again", 0, false)
	mustComplete(t, l, 60)
	if s := l.Stats(); s.Stalls != 1 {
		t.Errorf("idle time counted as a stall: %v", s)
	}

	// A dead device, recovered by a flush.
	mustQueue(t, l, 60)
	clock.advance(5 * time.Second)
	want("dead", 5*time.Second, true)
	if _, err := l.Reset(60); err != nil {
		t.Fatal(err)
	}
	want("flushed", 0, false)
	if s := l.Stats(); s.Stalls != 2 || s.LongestStall != 5*time.Second {
		t.Errorf("after the flush: %v", s)
	}
}

// Times are durations from the start of the Limiter, so no counter of milliseconds can wrap: two months, and a wall clock
// that is far from any epoch.
func TestLongLife(t *testing.T) {
	clock := &fakeClock{t: time.Unix(0, 0).Add((1<<32 - 10) * time.Millisecond)}
	l := grownTo(t, clock.options(Options{}), 10000)
	mustQueue(t, l, 9000)
	mustComplete(t, l, 1000)
	for range 61 {
		clock.advance(24 * time.Hour)
		mustQueue(t, l, 2000)
		if w, _ := l.Stalled(); w != 24*time.Hour {
			t.Fatalf("waited %v, want a day", w)
		}
		mustComplete(t, l, 2000)
	}
	if l.Limit() >= 10000 {
		t.Errorf("limit is %d: it never shrank", l.Limit())
	}
}

// A clock that is set back makes nothing negative and nothing stalled.
func TestClockGoesBack(t *testing.T) {
	clock := newFakeClock()
	l := grownTo(t, clock.options(Options{}), 1000)
	mustQueue(t, l, 500)
	clock.advance(-time.Hour)
	if w, s := l.Stalled(); w != 0 || s {
		t.Errorf("waited %v, stalled %v", w, s)
	}
	mustComplete(t, l, 500)
	if s := l.Stats(); s.Stalls != 0 {
		t.Errorf("statistics: %v", s)
	}
}
