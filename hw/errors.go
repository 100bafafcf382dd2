package hw

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Sentinels that errors of this package match with errors.Is.
var (
	ErrClosed      = errors.New("closed")                      // the port, the MAC or the board was closed
	ErrTimeout     = errors.New("timed out")                   // a bounded wait on hardware ended without success
	ErrNoClock     = errors.New("receive clock missing")       // the reset hangs because the PHY gives no clock
	ErrConfig      = errors.New("invalid configuration")       // an option or argument is out of range
	ErrNoPHY       = errors.New("no PHY answers")              // nothing on the MDIO bus
	ErrUnsupported = errors.New("not supported by the device") // the feature register or the platform says no
	ErrRingFull    = errors.New("ring full")                   // no free descriptor
	ErrGone        = errors.New("device does not answer")      // registers read all ones
)

// Error is a failed operation on the hardware. Fields that do not apply are zero.
type Error struct {
	Op   string        // what was being done, such as "software reset"
	Reg  string        // vendor's name of the register waited for or written
	Mask uint32        // the bits that mattered
	Last uint32        // the last value read
	Wait time.Duration // how long was waited
	Hint string        // what is known about the cause, such as the state of the PHY
	Err  error         // the sentinel
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hw: %s: %v", e.Op, e.Err)
	if e.Reg != "" {
		fmt.Fprintf(&b, " (%s=0x%08x mask 0x%08x", e.Reg, e.Last, e.Mask)
		if e.Wait != 0 {
			fmt.Fprintf(&b, " after %v", e.Wait)
		}
		b.WriteByte(')')
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }
