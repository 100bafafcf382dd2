// Package bql decides how many bytes may wait in a hardware transmit ring: byte queue limits.
//
// A ring deep enough for small frames holds far too much of large ones: 512 full frames are 62 ms at 100 Mbit/s and
// 620 ms at 10 Mbit/s, and every later frame waits behind them. A [Limiter] watches how many bytes the hardware completes
// between two looks and keeps the ring just full enough never to run dry. What does not fit stays in the scheduler above,
// which can still put a small frame in front of it.
//
// The algorithm is that of Linux, lib/dynamic_queue_limits.c (Tom Herbert, 2011): grow at once when the limit held back
// data while the hardware ran dry, shrink at most once per hold time by the smallest surplus seen. The limit is soft by
// one frame, because it is tested after a frame was added. The counters are 32 bits wide and may wrap.
//
// # Use
//
// There is one producer (the owner of the ring's head) and one completer (the owner of its tail); each is one goroutine
// at a time, and the two need no common lock. All other methods may be called from anywhere.
//
//	for lim.Open() && ring.Free() > 0 {      // producer
//		n := frame.Len()                     // the frame may be gone once the device has it
//		lim.Account(n)                       // before the device can see the frame
//		ring.Put(frame, n)
//	}
//	ring.Kick()
//
//	n := ring.Reclaim()                      // completer: once per pass, the sizes that were accounted
//	if resume, err := lim.Completed(gen, n); resume {
//		// let the producer run again
//	}
//
// Count bytes as they are on the wire, the same on both sides. Account before the kick: otherwise the completer may see a
// frame that was never sent. Complete once per pass: the limit follows the bytes per completion, so completing each frame
// on its own makes it too small, and seldom interrupts make it large.
//
// When the ring is flushed, [Limiter.Reset] forgets what was in it and begins a new [Generation]; completions that still
// arrive for the old one are refused.
//
// # Where it differs from Linux
//
// Misuse is an error and not a crash. The arithmetic between counters does not wrap. A completer always sees the size of
// the last frame that belongs to the count of queued bytes. A reset leaves no stale state and starts at the minimum.
//
// One comparison has three readings. A completion may end exactly where the previous completion saw the queue end while
// the queue was over its limit. Linux first let the limit shrink then, which was a bug (mended in 2012: "bql: Avoid unneeded
// limit decrement"); since then it lets the limit grow. Here it grows if more data was queued meanwhile, as in Linux, because the
// device may have been dry before that data came. If nothing was queued meanwhile it stays: the limit held nothing back.
package bql

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

const (
	// MaxFrame is the largest number of bytes that one call may account.
	MaxFrame = math.MaxUint32 / 16
	// MaxLimit is the largest limit, and the default of Options.Max. It leaves room for one more MaxFrame in a signed
	// 32-bit difference.
	MaxLimit = math.MaxUint32/2 - MaxFrame
	// MaxInFlight is the largest number of bytes that may be in flight: queued and not completed.
	MaxInFlight = math.MaxInt32

	// DefaultHold is how long Linux holds a limit before it shrinks.
	DefaultHold = time.Second
	// DefaultStallAfter is the default of Options.StallAfter.
	DefaultStallAfter = time.Second
)

// Options are the parameters of a [Limiter]. The zero value is right for most devices.
type Options struct {
	// Min and Max bound the limit, in bytes. A zero Max means MaxLimit. A new or reset Limiter starts at Min; zero is
	// fine, as the first frame always goes. Min = Max fixes the limit, Min = MaxLimit switches it off.
	Min, Max int
	// Hold is the least time between two decreases of the limit. Zero means DefaultHold.
	Hold time.Duration
	// StallAfter is how long bytes may be in flight without any being completed until that counts as a stall. Zero
	// means DefaultStallAfter.
	StallAfter time.Duration
	// Now is the clock; it must not go back. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Max == 0 {
		o.Max = MaxLimit
	}
	if o.Hold == 0 {
		o.Hold = DefaultHold
	}
	if o.StallAfter == 0 {
		o.StallAfter = DefaultStallAfter
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// checkBounds is shared by New and SetBounds; op names the caller in the error.
func checkBounds(op string, lo, hi int) error {
	switch {
	case lo < 0 || lo > MaxLimit:
		return &Error{Op: op, Detail: fmt.Sprintf("Min is %d, allowed are 0 to %d", lo, MaxLimit), Err: ErrConfig}
	case hi <= 0 || hi > MaxLimit:
		return &Error{Op: op, Detail: fmt.Sprintf("Max is %d, allowed are 1 to %d", hi, MaxLimit), Err: ErrConfig}
	case hi < lo:
		return &Error{Op: op, Detail: fmt.Sprintf("Max is %d, less than Min %d", hi, lo), Err: ErrConfig}
	}
	return nil
}

// Generation numbers the lives of a ring: it changes with every [Limiter.Reset].
type Generation uint32

// Limiter is the byte queue limit of one transmit ring. Make one with [New].
//
// Every word is written by one side only, except where noted. Go's atomics are sequentially consistent, which gives the
// full barriers that the stop flag needs on both sides: the producer sets it and looks at the limit again, the completer
// moves the limit and looks at the flag again, so at least one of them sees the other.
type Limiter struct {
	now        func() time.Time
	epoch      time.Time
	hold       time.Duration
	stallAfter time.Duration
	bounds     atomic.Uint64 // minimum in the upper half, maximum in the lower

	_ [cacheLine]byte // the two sides run on two processors

	// The producer's.
	sent       atomic.Uint64 // bytes queued in the upper half, size of the last frame in the lower: one consistent pair
	busySince  atomic.Int64  // since epoch, when the queue last turned from empty to not empty
	stopped    atomic.Bool   // the producer waits for room; cleared by whoever finds room
	stops      atomic.Uint64
	badSize    atomic.Uint64
	concurrent atomic.Uint64 // both sides count here, never in good use
	overflows  atomic.Uint64

	_ [cacheLine]byte

	// The completer's.
	completing atomic.Bool   // a completer is at work; also taken by Reset
	completed  atomic.Uint32 // bytes completed
	limit      atomic.Uint32
	adjLimit   atomic.Uint32 // limit + completed: the producer needs one word and one subtraction
	gen        atomic.Uint32
	progress   atomic.Int64 // since epoch, when bytes were last completed or flushed

	// Known to the completer alone: the state at the previous completion.
	prevQueued  uint32 // bytes queued
	prevOver    uint32 // bytes beyond the limit
	prevLast    uint32 // size of the last frame
	lowestSlack uint32 // smallest surplus since slackStart
	slackStart  time.Duration

	// Statistics of the completer.
	completions    atomic.Uint64
	bytesCompleted atomic.Uint64
	bytesFlushed   atomic.Uint64
	maxInFlight    atomic.Uint32
	maxLimit       atomic.Uint32
	grown          atomic.Uint64
	shrunk         atomic.Uint64
	resumes        atomic.Uint64
	resets         atomic.Uint64
	stalls         atomic.Uint64
	longestStall   atomic.Int64
	excess         atomic.Uint64
	stale          atomic.Uint64
}

// cacheLine is the longest line of the processors this runs on; the Cortex-A5 has 32 bytes.
const cacheLine = 64

// noSlack stands for "no surplus seen yet".
const noSlack = math.MaxUint32

// New returns a Limiter with nothing in flight. The error, if any, errors.Is [ErrConfig] and names the field.
func New(o Options) (*Limiter, error) {
	const op = "new"
	o = o.withDefaults()
	if err := checkBounds(op, o.Min, o.Max); err != nil {
		return nil, err
	}
	if o.Hold < 0 {
		return nil, &Error{Op: op, Detail: fmt.Sprintf("Hold is %v, must not be negative", o.Hold), Err: ErrConfig}
	}
	if o.StallAfter < 0 {
		return nil, &Error{Op: op, Detail: fmt.Sprintf("StallAfter is %v, must not be negative", o.StallAfter), Err: ErrConfig}
	}
	l := &Limiter{now: o.Now, epoch: o.Now(), hold: o.Hold, stallAfter: o.StallAfter}
	l.bounds.Store(pack(uint32(o.Min), uint32(o.Max)))
	l.restart(0, 0)
	return l, nil
}

// SetBounds changes the bounds of the limit, in bytes, as Options.Min and Options.Max do. The limit follows at the next
// completion. The error, if any, errors.Is [ErrConfig].
func (l *Limiter) SetBounds(lo, hi int) error {
	if hi == 0 {
		hi = MaxLimit
	}
	if err := checkBounds("set bounds", lo, hi); err != nil {
		return err
	}
	l.bounds.Store(pack(uint32(lo), uint32(hi)))
	return nil
}

// Generation is the number of the ring's present life, to be kept beside the ring and given to Completed.
func (l *Limiter) Generation() Generation { return Generation(l.gen.Load()) }

// elapsed is the time since the Limiter was made. Durations keep the clock's monotonic reading, which a stored time in
// nanoseconds would lose, and do not wrap for 292 years.
func (l *Limiter) elapsed() time.Duration { return l.now().Sub(l.epoch) }

func pack(hi, lo uint32) uint64       { return uint64(hi)<<32 | uint64(lo) }
func unpack(w uint64) (hi, lo uint32) { return uint32(w >> 32), uint32(w) }
