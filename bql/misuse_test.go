package bql

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// frozen is everything that a refused call must leave alone.
type frozen struct {
	Sent                                      uint64
	Completed, Limit, Adj                     uint32
	PrevQueued, PrevOver, PrevLast, Slack     uint32
	SlackStart                                time.Duration
	Stopped                                   bool
	Gen                                       Generation
	Completions, Bytes, Flushed, Grown, Reset uint64
}

func freeze(l *Limiter) frozen {
	return frozen{l.sent.Load(), l.completed.Load(), l.limit.Load(), l.adjLimit.Load(), l.prevQueued, l.prevOver, l.prevLast,
		l.lowestSlack, l.slackStart, l.stopped.Load(), l.Generation(), l.completions.Load(), l.bytesCompleted.Load(),
		l.bytesFlushed.Load(), l.grown.Load(), l.resets.Load()}
}

// Each misuse is refused with its own sentinel, is counted, and changes nothing.
func TestMisuseIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name    string
		do      func(l *Limiter) error
		want    error
		counted func(s Stats) uint64
	}{
		{"account nothing", func(l *Limiter) error { return l.Account(0) }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"account less than nothing", func(l *Limiter) error { return l.Account(-1) }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"account the least int", func(l *Limiter) error { return l.Account(math.MinInt) }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"account too much", func(l *Limiter) error { return l.Account(MaxFrame + 1) }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"account the largest int", func(l *Limiter) error { return l.Account(math.MaxInt) }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"complete less than nothing", func(l *Limiter) error { _, err := l.Completed(0, -1); return err }, ErrSize, func(s Stats) uint64 { return s.BadSize }},
		{"complete for a ring that is to come", func(l *Limiter) error { _, err := l.Completed(1, 100); return err }, ErrStale, func(s Stats) uint64 { return s.Stale }},
		{"complete for a ring long gone", func(l *Limiter) error { _, err := l.Completed(math.MaxUint32, 100); return err }, ErrStale, func(s Stats) uint64 { return s.Stale }},
		{"reset without a flush", func(l *Limiter) error { _, err := l.Reset(0); return err }, ErrInFlight, nil},
		{"reset with too much flushed", func(l *Limiter) error { _, err := l.Reset(math.MaxInt); return err }, ErrInFlight, nil},
		{"reset with a negative flush", func(l *Limiter) error { _, err := l.Reset(-3000); return err }, ErrInFlight, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := grownTo(t, newFakeClock().options(Options{}), 1514)
			mustQueue(t, l, 1500)
			mustQueue(t, l, 1500)
			before := freeze(l)
			err := tc.do(l)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error is %v, want %v", err, tc.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.InFlight != 3000 {
				t.Errorf("error %#v does not say that 3000 bytes are in flight", err)
			}
			if d := cmp.Diff(before, freeze(l)); d != "" {
				t.Errorf("state changed (-before +after):\n%s", d)
			}
			if tc.counted != nil && tc.counted(l.Stats()) != 1 {
				t.Errorf("not counted: %v", l.Stats())
			}
		})
	}
}

// A producer that does not heed Open is stopped before a count could wrap.
func TestInFlightIsBounded(t *testing.T) {
	l := mustNew(t, Options{})
	startAt(l, 0xFFFFFF00)
	var err error
	for range 20 {
		if err = l.Account(MaxFrame); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrOverflow) {
		t.Fatalf("error is %v, want %v", err, ErrOverflow)
	}
	if err := l.Account(MaxInFlight - l.InFlight()); err != nil {
		t.Errorf("exactly MaxInFlight: %v", err)
	}
	if err := l.Account(1); !errors.Is(err, ErrOverflow) {
		t.Errorf("one more: %v", err)
	}
	if l.InFlight() != MaxInFlight || l.Open() || l.Available() != -MaxInFlight {
		t.Errorf("%d in flight, open %v, %d available", l.InFlight(), l.Open(), l.Available())
	}
	if !mustComplete(t, l, MaxInFlight) {
		t.Error("no resume")
	}
	if s := l.Stats(); s.Overflows != 2 || s.MaxInFlight != MaxInFlight || s.Limit != MaxLimit {
		t.Errorf("statistics: %v", s)
	}
}

// Completing more than was sent takes what there is, says so, and leaves both sides in agreement.
func TestExcessIsClamped(t *testing.T) {
	l := mustNew(t, newFakeClock().options(Options{}))
	mustQueue(t, l, 1000)
	resume, err := l.Completed(0, 1500)
	if !errors.Is(err, ErrExcess) || !resume {
		t.Errorf("resume %v error %v, want true and %v", resume, err, ErrExcess)
	}
	if l.InFlight() != 0 || !l.Open() {
		t.Errorf("%d in flight, open %v", l.InFlight(), l.Open())
	}
	before := freeze(l)
	if resume, err := l.Completed(0, math.MaxInt); !errors.Is(err, ErrExcess) || resume {
		t.Errorf("with nothing in flight: resume %v error %v", resume, err)
	}
	if d := cmp.Diff(before, freeze(l)); d != "" {
		t.Errorf("a completion of nothing changed the state:\n%s", d)
	}
	if s := l.Stats(); s.Excess != 2 || s.BytesCompleted != 1000 {
		t.Errorf("statistics: %v", s)
	}
}

// Completing nothing does nothing at all: no error, no look at the generation, no movement of the limit.
func TestCompleteNothing(t *testing.T) {
	l := mustNew(t, newFakeClock().options(Options{}))
	mustQueue(t, l, 100)
	before := freeze(l)
	if resume, err := l.Completed(77, 0); resume || err != nil {
		t.Errorf("resume %v, error %v", resume, err)
	}
	if d := cmp.Diff(before, freeze(l)); d != "" {
		t.Errorf("state changed:\n%s", d)
	}
}

// A flushed ring begins anew, and completions of the old one are refused: they would be taken from frames of the new one.
func TestResetBeginsNewGeneration(t *testing.T) {
	for _, base := range []uint32{0, 0xFFFFFF00, 0x7FFFFFFF, 0x80000000} {
		clock := newFakeClock()
		l := mustNew(t, clock.options(Options{Min: 1000}))
		startAt(l, base)
		old := l.Generation()
		mustQueue(t, l, 1000)
		mustQueue(t, l, 2000) // closed
		gen, err := l.Reset(3000)
		if err != nil || gen == old || gen != l.Generation() {
			t.Fatalf("Reset: generation %d after %d, error %v", gen, old, err)
		}
		if l.InFlight() != 0 || l.Limit() != 1000 || l.Available() != 1000 || !l.Open() {
			t.Errorf("after Reset: %v", l.Stats())
		}
		fresh := freeze(l)
		if _, err := l.Completed(old, 3000); !errors.Is(err, ErrStale) {
			t.Errorf("late completion: %v", err)
		}
		if _, err := l.Completed(gen, 3000); !errors.Is(err, ErrExcess) {
			t.Errorf("late completion under the new number: %v", err)
		}
		if d := cmp.Diff(fresh, freeze(l)); d != "" {
			t.Errorf("late completions changed the state:\n%s", d)
		}
		// Frames of the new ring are safe from late completions of the old.
		mustQueue(t, l, 700)
		if _, err := l.Completed(old, 700); !errors.Is(err, ErrStale) || l.InFlight() != 700 {
			t.Errorf("late completion: error %v, %d in flight", err, l.InFlight())
		}
		if mustComplete(t, l, 700) {
			t.Error("a producer is told to go on that nobody had told to wait")
		}
		if s := l.Stats(); s.Stale != 2 || s.Excess != 1 || s.Resets != 1 || s.BytesFlushed != 3000 || s.BytesCompleted != 700 {
			t.Errorf("statistics: %v", s)
		}
	}
}

// After a reset the limiter does exactly what a new one does, whatever it had learnt: no stale limit, no stale snapshot.
func TestResetEqualsNew(t *testing.T) {
	clock := newFakeClock()
	used := grownTo(t, clock.options(Options{}), 200000)
	for i := range 100 {
		mustQueue(t, used, 1000+i)
		if i%3 == 2 {
			mustComplete(t, used, 1500)
		}
		clock.advance(50 * time.Millisecond)
	}
	if _, err := used.Reset(used.InFlight()); err != nil {
		t.Fatal(err)
	}
	fresh := mustNew(t, clock.options(Options{}))
	for i := range 200 {
		n := 60 + i*37%1455
		a, b := mustQueue(t, used, n), mustQueue(t, fresh, n)
		if i%4 == 3 {
			mustComplete(t, used, min(1000, used.InFlight()))
			mustComplete(t, fresh, min(1000, fresh.InFlight()))
		}
		if a != b || used.Available() != fresh.Available() || used.Limit() != fresh.Limit() {
			t.Fatalf("step %d: used %v\nfresh %v", i, used.Stats(), fresh.Stats())
		}
		clock.advance(20 * time.Millisecond)
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct {
		o     Options
		names string
	}{
		{Options{Min: -1}, "Min"},
		{Options{Min: MaxLimit + 1}, "Min"},
		{Options{Max: -1}, "Max"},
		{Options{Max: MaxLimit + 1}, "Max"},
		{Options{Min: 2000, Max: 1999}, "Max"},
		{Options{Hold: -1}, "Hold"},
		{Options{StallAfter: -1}, "StallAfter"},
	} {
		l, err := New(tc.o)
		if l != nil || !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tc.names) {
			t.Errorf("New(%+v) = %v, %v, want an error that names %s", tc.o, l, err, tc.names)
		}
	}
	l := mustNew(t, Options{Min: 500, Max: 600})
	for _, b := range [][2]int{{-1, 10}, {10, 9}, {0, -1}, {0, MaxLimit + 1}, {math.MaxInt, math.MaxInt}} {
		if err := l.SetBounds(b[0], b[1]); !errors.Is(err, ErrConfig) {
			t.Errorf("SetBounds(%d, %d): %v", b[0], b[1], err)
		}
	}
	if s := l.Stats(); s.Min != 500 || s.Max != 600 {
		t.Errorf("a refused SetBounds changed the bounds: %v", s)
	}
}

// Go's 64-bit atomics need eight-byte alignment on 32-bit machines.
func TestAlignment(t *testing.T) {
	typ := reflect.TypeFor[Limiter]()
	seen := 0
	for i := range typ.NumField() {
		f := typ.Field(i)
		if s := f.Type.String(); s == "atomic.Uint64" || s == "atomic.Int64" {
			seen++
			if f.Offset%8 != 0 {
				t.Errorf("%s is at offset %d", f.Name, f.Offset)
			}
		}
	}
	if seen == 0 {
		t.Error("no 64-bit field was looked at")
	}
}

func TestStrings(t *testing.T) {
	l := mustNew(t, newFakeClock().options(Options{}))
	if s := l.Stats().String(); strings.Contains(s, "stale") || !strings.Contains(s, "limit 0 [0..") {
		t.Errorf("fresh: %s", s)
	}
	l.Completed(9, 1)
	if s := l.Stats().String(); !strings.Contains(s, "stale 1") {
		t.Errorf("after a stale completion: %s", s)
	}
	err := l.Account(-7)
	if got, want := err.Error(), "bql: account: size out of range: -7 bytes with 0 in flight"; got != want {
		t.Errorf("error is %q, want %q", got, want)
	}
}
