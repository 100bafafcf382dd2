package bql

import (
	"fmt"
	"strings"
	"time"
)

// waited is how long bytes have been in flight without any being completed; zero if none are.
func (l *Limiter) waited(now time.Duration) time.Duration {
	since := max(l.progress.Load(), l.busySince.Load())
	return max(now-time.Duration(since), 0)
}

// noteStall counts a stall that just ended. It is the completer's.
func (l *Limiter) noteStall(now time.Duration) {
	if w := l.waited(now); w > l.stallAfter {
		l.stalls.Add(1)
		if int64(w) > l.longestStall.Load() {
			l.longestStall.Store(int64(w))
		}
	}
}

// Stalled is for a watchdog: how long bytes have been in flight without any being completed, and whether that is longer
// than Options.StallAfter. A slow wire that makes progress never stalls, whatever its queue; an idle one never does.
// Whether the device is dead or paused by its peer cannot be seen from here.
func (l *Limiter) Stalled() (waited time.Duration, stalled bool) {
	if l.InFlight() == 0 {
		return 0, false
	}
	// The time stamps of these bytes, or later ones: they were stored before the bytes could be seen in flight.
	waited = l.waited(l.elapsed())
	return waited, waited > l.stallAfter
}

// Stats is what a [Limiter] has seen since it was made; Reset does not clear it. Sizes are in bytes.
type Stats struct {
	Generation  Generation
	Limit       int // now
	Min, Max    int // bounds of the limit
	Available   int // negative: closed
	InFlight    int // now
	MaxInFlight int // largest seen by a completion
	MaxLimit    int // largest limit so far

	Completions    uint64 // calls of Completed that took something
	BytesCompleted uint64
	BytesFlushed   uint64 // by Reset
	Grown, Shrunk  uint64 // changes of the limit
	Stops, Resumes uint64 // producer told to wait; told to go on by a completion
	Resets         uint64

	Stalls       uint64        // completions and flushes that came after more than Options.StallAfter
	LongestStall time.Duration // the longest of them
	Waited       time.Duration // how long nothing was completed, now; zero if nothing is in flight
	Stalled      bool          // the same is longer than Options.StallAfter

	// Calls refused, by sentinel. None of these happens in a correct driver, except Stale when a ring is recovered.
	BadSize, Overflows, Excess, Stale, Concurrent uint64
}

// Stats returns the statistics. Each field is exact; together they are of about the same time.
func (l *Limiter) Stats() Stats {
	lo, hi := unpack(l.bounds.Load())
	waited, stalled := l.Stalled()
	return Stats{
		Generation:     l.Generation(),
		Limit:          l.Limit(),
		Min:            int(lo),
		Max:            int(hi),
		Available:      l.Available(),
		InFlight:       l.InFlight(),
		MaxInFlight:    int(l.maxInFlight.Load()),
		MaxLimit:       int(l.maxLimit.Load()),
		Completions:    l.completions.Load(),
		BytesCompleted: l.bytesCompleted.Load(),
		BytesFlushed:   l.bytesFlushed.Load(),
		Grown:          l.grown.Load(),
		Shrunk:         l.shrunk.Load(),
		Stops:          l.stops.Load(),
		Resumes:        l.resumes.Load(),
		Resets:         l.resets.Load(),
		Stalls:         l.stalls.Load(),
		LongestStall:   time.Duration(l.longestStall.Load()),
		Waited:         waited,
		Stalled:        stalled,
		BadSize:        l.badSize.Load(),
		Overflows:      l.overflows.Load(),
		Excess:         l.excess.Load(),
		Stale:          l.stale.Load(),
		Concurrent:     l.concurrent.Load(),
	}
}

// String prints the limit and what moves it, and misuse only if there was any.
func (s Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit %d [%d..%d] inflight %d (max %d) avail %d grown %d shrunk %d stops %d resumes %d completions %d bytes %d",
		s.Limit, s.Min, s.Max, s.InFlight, s.MaxInFlight, s.Available, s.Grown, s.Shrunk, s.Stops, s.Resumes,
		s.Completions, s.BytesCompleted)
	if s.Resets != 0 {
		fmt.Fprintf(&b, " resets %d flushed %d", s.Resets, s.BytesFlushed)
	}
	if s.Stalls != 0 {
		fmt.Fprintf(&b, " stalls %d longest %v", s.Stalls, s.LongestStall)
	}
	if s.Stalled {
		fmt.Fprintf(&b, " STALLED for %v", s.Waited)
	}
	for _, m := range []struct {
		name string
		n    uint64
	}{
		{"bad-size", s.BadSize}, {"overflow", s.Overflows}, {"excess", s.Excess}, {"stale", s.Stale}, {"concurrent", s.Concurrent},
	} {
		if m.n != 0 {
			fmt.Fprintf(&b, " %s %d", m.name, m.n)
		}
	}
	return b.String()
}
