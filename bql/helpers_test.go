package bql

import (
	"testing"
	"time"
)

// fakeClock is a clock that moves when the test says so.
type fakeClock struct{ t time.Time }

func newFakeClock() *fakeClock                 { return &fakeClock{t: time.Unix(1700000000, 0)} }
func (c *fakeClock) now() time.Time            { return c.t }
func (c *fakeClock) advance(d time.Duration)   { c.t = c.t.Add(d) }
func (c *fakeClock) options(o Options) Options { o.Now = c.now; return o }

func mustNew(t testing.TB, o Options) *Limiter {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustQueue(t testing.TB, l *Limiter, n int) bool {
	t.Helper()
	open, err := l.Queued(n)
	if err != nil {
		t.Fatalf("Queued(%d): %v", n, err)
	}
	return open
}

func mustComplete(t testing.TB, l *Limiter, n int) bool {
	t.Helper()
	resume, err := l.Completed(l.Generation(), n)
	if err != nil {
		t.Fatalf("Completed(%d): %v", n, err)
	}
	return resume
}

// startAt moves the counters of an idle Limiter, as if that many bytes had passed.
func startAt(l *Limiter, bytes uint32) {
	l.sent.Store(pack(bytes, 0))
	l.restart(bytes, 0)
}

// grownTo returns a Limiter, idle, whose limit became exactly limit by starvation alone: one frame, held back by limit 0.
func grownTo(t testing.TB, o Options, limit int) *Limiter {
	t.Helper()
	l := mustNew(t, o)
	mustQueue(t, l, limit)
	mustComplete(t, l, limit)
	if l.Limit() != limit {
		t.Fatalf("limit is %d after one starved frame of %d", l.Limit(), limit)
	}
	return l
}
