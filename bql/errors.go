package bql

import (
	"errors"
	"fmt"
)

// Sentinels that errors of this package match with errors.Is. All but ErrConfig say that the caller has a bug, which the
// Limiter has survived.
var (
	ErrConfig     = errors.New("invalid configuration")                 // an option is out of range
	ErrSize       = errors.New("size out of range")                     // zero, negative or more than MaxFrame bytes
	ErrOverflow   = errors.New("too many bytes in flight")              // the producer went on although the queue was closed
	ErrExcess     = errors.New("more completed than sent")              // what was in flight counts as completed, the rest not at all
	ErrStale      = errors.New("completion of an earlier ring")         // the generation is not the present one
	ErrInFlight   = errors.New("flushed bytes are not those in flight") // Reset without a flush, or with another count
	ErrConcurrent = errors.New("two callers on one side at a time")     // nothing was changed; the caller lacks a lock
)

// Error is a refused call. Nothing was changed unless the sentinel says so.
type Error struct {
	Op       string // what was being done, such as "completed"
	Bytes    int    // the caller's number
	InFlight uint32 // bytes in flight at that time
	Detail   string // what else is known, such as the field of Options
	Err      error  // the sentinel
}

func (e *Error) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("bql: %s: %v: %s", e.Op, e.Err, e.Detail)
	}
	return fmt.Sprintf("bql: %s: %v: %d bytes with %d in flight", e.Op, e.Err, e.Bytes, e.InFlight)
}

func (e *Error) Unwrap() error { return e.Err }
