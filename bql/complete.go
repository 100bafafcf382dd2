package bql

import (
	"sync/atomic"
	"time"
)

// Completed takes n bytes that the device is done with out of flight, and moves the limit. It is the completer's, once per
// reclaim pass with the sum of the sizes that were accounted; n = 0 does nothing at all. A frame that was accounted and
// then dropped is completed too.
//
// If resume is true, the producer was told to wait, there is room now, and nobody else will tell it so.
//
// Errors: [ErrSize] for negative n; [ErrStale] for a generation that is over, where nothing is taken; [ErrExcess] for more
// than was in flight, where all that was in flight is taken, so that accounts agree again once the ring is empty;
// [ErrConcurrent] if another call of Completed or Reset is at work.
func (l *Limiter) Completed(gen Generation, n int) (resume bool, err error) {
	const op = "completed"
	if n == 0 {
		return false, nil
	}
	if n < 0 {
		l.badSize.Add(1)
		return false, &Error{Op: op, Bytes: n, InFlight: uint32(l.InFlight()), Err: ErrSize}
	}
	if !l.completing.CompareAndSwap(false, true) {
		l.concurrent.Add(1)
		return false, &Error{Op: op, Bytes: n, InFlight: uint32(l.InFlight()), Err: ErrConcurrent}
	}
	if gen != Generation(l.gen.Load()) {
		l.completing.Store(false)
		l.stale.Add(1)
		return false, &Error{Op: op, Bytes: n, InFlight: uint32(l.InFlight()), Err: ErrStale}
	}

	// One load: the producer goes on meanwhile, and all decisions must rest on one count.
	queued, last := unpack(l.sent.Load())
	inFlight := queued - l.completed.Load()
	done := uint32(min(uint64(n), uint64(inFlight)))
	if done != 0 {
		now := l.elapsed()
		l.noteStall(now)
		l.adjust(queued, last, done, now)
		l.progress.Store(int64(now))
		l.completions.Add(1)
		l.bytesCompleted.Add(uint64(done))
		raise(&l.maxInFlight, inFlight)

		// The limit was stored before the flag is looked at; see Limiter. The count is looked at after the flag: it is
		// then the one that the producer stopped at, or a later one.
		if l.stopped.Load() && l.Available() >= 0 && l.stopped.CompareAndSwap(true, false) {
			l.resumes.Add(1)
			resume = true
		}
	}
	l.completing.Store(false)

	if uint64(n) > uint64(inFlight) {
		l.excess.Add(1)
		err = &Error{Op: op, Bytes: n, InFlight: inFlight, Err: ErrExcess}
	}
	return resume, err
}

// adjust is dql_completed of lib/dynamic_queue_limits.c in 64-bit arithmetic: done of the queued bytes are completed.
func (l *Limiter) adjust(queued, last, done uint32, now time.Duration) {
	before := l.completed.Load()
	oldLimit := l.limit.Load()
	var (
		limit    = int64(oldLimit)
		n        = int64(done)
		inFlight = int64(queued - before)       // until now
		left     = inFlight - n                 // from now on
		over     = max(inFlight-limit, 0)       // beyond the limit
		prevLeft = int64(l.prevQueued - before) // what the previous completion left
		prevOver = int64(l.prevOver)
		fresh    = n - prevLeft // completed, though queued after the previous completion; negative: some of the old is left
	)
	switch {
	case over > 0 && left == 0,
		prevOver > 0 && (fresh > 0 || fresh == 0 && left > 0):
		// Starved: the limit held data back while the device ran dry, or may have run dry before the producer could
		// follow. See the package comment for fresh == 0.
		limit += fresh + prevOver
		l.restartSlack(now)

	case left > 0 && prevLeft > 0 && fresh < 0:
		// Busy all the time since the previous completion. Twice the bytes of one interval are enough: one interval's
		// to be sent while the other's are replaced. The last frame's part within the limit was not needed either.
		slack := max(limit+prevOver-2*n, 0)
		if prevOver > 0 {
			slack = max(slack, int64(l.prevLast)-prevOver)
		}
		l.lowestSlack = uint32(min(int64(l.lowestSlack), slack))
		if now-l.slackStart > l.hold {
			limit = max(limit-int64(l.lowestSlack), 0)
			l.restartSlack(now)
		}
	}
	lo, hi := unpack(l.bounds.Load())
	limit = min(max(limit, int64(lo)), int64(hi))

	newLimit := uint32(limit)
	if newLimit != oldLimit {
		over = 0 // it was measured against a limit that is gone
		l.limit.Store(newLimit)
		if newLimit > oldLimit {
			l.grown.Add(1)
			raise(&l.maxLimit, newLimit)
		} else {
			l.shrunk.Add(1)
		}
	}
	l.prevOver = uint32(over)
	l.prevLast = last
	l.prevQueued = queued
	l.completed.Store(before + done)
	l.adjLimit.Store(newLimit + before + done)
}

func (l *Limiter) restartSlack(now time.Duration) {
	l.slackStart = now
	l.lowestSlack = noSlack
}

// Reset forgets what is in flight and all that was learnt, when and only when the ring is emptied: re-initialised after an
// error, or closed and opened. flushed is what the ring still held, in accounted bytes. The new generation goes to the
// ring; completions with an old one are refused from now on.
//
// The producer must not be at work: it loses the ring too. A completer may be.
//
// Errors: [ErrInFlight] if flushed is not what is in flight, which is in the error's InFlight; [ErrConcurrent] if a
// completer is at work: try again when it is done. Nothing is changed then.
func (l *Limiter) Reset(flushed int) (Generation, error) {
	const op = "reset"
	if !l.completing.CompareAndSwap(false, true) {
		l.concurrent.Add(1)
		return l.Generation(), &Error{Op: op, Bytes: flushed, InFlight: uint32(l.InFlight()), Err: ErrConcurrent}
	}
	defer l.completing.Store(false)
	queued, _ := unpack(l.sent.Load())
	inFlight := queued - l.completed.Load()
	if flushed < 0 || uint64(flushed) != uint64(inFlight) {
		return l.Generation(), &Error{Op: op, Bytes: flushed, InFlight: inFlight, Err: ErrInFlight}
	}
	now := l.elapsed()
	if inFlight != 0 {
		l.noteStall(now)
	}
	l.bytesFlushed.Add(uint64(inFlight))
	l.resets.Add(1)
	gen := l.gen.Add(1)
	l.restart(queued, now)
	l.stopped.Store(false)
	return Generation(gen), nil
}

// restart makes a fresh Limiter whose counters go on from queued. Setting them to zero instead would leave moments, and in
// Linux a cached adj_limit, in which one counter is of the old life and one of the new.
func (l *Limiter) restart(queued uint32, now time.Duration) {
	lo, _ := unpack(l.bounds.Load())
	l.prevQueued = queued
	l.prevOver, l.prevLast = 0, 0
	l.restartSlack(now)
	l.limit.Store(lo)
	l.completed.Store(queued)
	l.adjLimit.Store(lo + queued)
	raise(&l.maxLimit, lo)
}

// raise stores v if it is larger. The word has one writer.
func raise(w *atomic.Uint32, v uint32) {
	if v > w.Load() {
		w.Store(v)
	}
}
