package bql

// Queued accounts a frame of n bytes and reports whether another one may follow: Account and Open in one call.
func (l *Limiter) Queued(n int) (open bool, err error) {
	err = l.Account(n)
	return l.Open(), err
}

// Account counts a frame of n bytes as in flight, on-wire bytes without preamble. It is the producer's, and must come
// before the device can see the frame, that is before the OWN bit of the first descriptor and before the doorbell.
//
// It does not look at the limit; [Limiter.Open] does, so that a batch asks once per frame and kicks once.
//
// Errors: [ErrSize] for n outside 1..MaxFrame, [ErrOverflow] beyond MaxInFlight, [ErrConcurrent] if somebody else
// accounted meanwhile. Nothing is accounted then: the caller must not complete the frame.
func (l *Limiter) Account(n int) error {
	const op = "account"
	w := l.sent.Load()
	queued, _ := unpack(w)
	inFlight := queued - l.completed.Load()
	if n <= 0 || n > MaxFrame {
		l.badSize.Add(1)
		return &Error{Op: op, Bytes: n, InFlight: inFlight, Err: ErrSize}
	}
	if inFlight > MaxInFlight-uint32(n) {
		l.overflows.Add(1)
		return &Error{Op: op, Bytes: n, InFlight: inFlight, Err: ErrOverflow}
	}
	if inFlight == 0 {
		// Before the bytes are visible: who sees them must not take the age of an earlier burst for theirs.
		l.busySince.Store(int64(l.elapsed()))
	}
	// With one producer this never fails, and costs what a store costs.
	if !l.sent.CompareAndSwap(w, pack(queued+uint32(n), uint32(n))) {
		l.concurrent.Add(1)
		return &Error{Op: op, Bytes: n, InFlight: inFlight, Err: ErrConcurrent}
	}
	return nil
}

// Open reports whether the producer may send another frame. If not, it leaves word: the call of Completed that makes room
// returns resume. It is the producer's; others use [Limiter.Available].
//
// With nothing in flight the queue is always open.
func (l *Limiter) Open() bool { return l.Available() >= 0 || l.stop() }

// stop is for a producer that found the queue closed: it raises the flag and looks again.
func (l *Limiter) stop() (open bool) {
	first := !l.stopped.Swap(true)
	// The completer may have made room before it could see the flag. Then nobody else would call us again.
	if l.Available() >= 0 {
		l.stopped.CompareAndSwap(true, false)
		return true
	}
	if first {
		l.stops.Add(1)
	}
	return false
}

// Available is how many bytes may be sent before the queue closes. It is negative when the queue is closed, down to
// minus one frame for a producer that heeds [Limiter.Open].
func (l *Limiter) Available() int {
	queued, _ := unpack(l.sent.Load())
	return int(int32(l.adjLimit.Load() - queued))
}

// InFlight is the number of bytes queued and not completed.
func (l *Limiter) InFlight() int {
	// In this order completed is never ahead of queued.
	completed := l.completed.Load()
	queued, _ := unpack(l.sent.Load())
	return int(min(queued-completed, MaxInFlight))
}

// Limit is the present limit in bytes.
func (l *Limiter) Limit() int { return int(l.limit.Load()) }
