package clk

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels that errors of this package match with errors.Is.
var (
	ErrConfig     = errors.New("invalid configuration")                      // an argument or a field of a Config is out of range
	ErrInvalid    = errors.New("registers hold no valid clock setting")      // such as a divider of zero
	ErrGone       = errors.New("registers read all ones")                    // the bus or the device is gone
	ErrReadback   = errors.New("register did not keep what was written")     // locked, or not there
	ErrNoRate     = errors.New("rate cannot be made")                        // see RateError
	ErrConstraint = errors.New("setting is outside the allowed range")       // a divider with a wrong input or ratio
	ErrUnstable   = errors.New("rates differ from what was just programmed") // somebody else programs the same clocks
)

// Error is a failed operation on one clock. Fields that do not apply are empty.
type Error struct {
	Clock  string // name
	Op     string // what was being done, such as "read divider"
	Reg    string // vendor's name of the register, with bits, such as "PRG_ETH0[9:7]"
	Value  uint32 // what it held, if Reg is set
	Detail string // what would have been right, or the field of a Config
	Err    error  // the sentinel
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("clk: ")
	if e.Clock != "" {
		b.WriteString(e.Clock + ": ")
	}
	fmt.Fprintf(&b, "%s: %v", e.Op, e.Err)
	if e.Reg != "" {
		fmt.Fprintf(&b, " (%s = %#x)", e.Reg, e.Value)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

func configError(name, field, format string, args ...any) error {
	return &Error{Clock: name, Op: "configure", Detail: field + " " + fmt.Sprintf(format, args...), Err: ErrConfig}
}

// Attempt is one setting that the solver looked at.
type Attempt struct {
	Clock   string // the clock whose setting it is
	Setting string // settings from the source down to Clock, such as "mpll2 at 750000000 Hz, m250_div /3"
	Want    Hz     // rate that Clock should give
	In, Out Hz     // rate that it would get and give; zero if unknown
	Reason  string // why it was not good enough
}

func (a Attempt) String() string {
	var b strings.Builder
	b.WriteString(a.Setting)
	if a.In != 0 {
		fmt.Fprintf(&b, " from %v", a.In)
	}
	if a.Out != 0 {
		fmt.Fprintf(&b, " gives %v instead of %v", a.Out, a.Want)
	}
	b.WriteString(": " + a.Reason)
	return b.String()
}

// RateError says that a clock cannot have a rate, and what was tried. It errors.Is [ErrNoRate], and whatever stopped the
// attempts: [ErrConstraint], [ErrInvalid], [ErrGone].
type RateError struct {
	Clock     string
	Want      Hz
	Tolerance PPM
	Best      Hz        // the nearest rate found, zero if none
	Tried     []Attempt // in order, at most maxAttempts
	Dropped   int       // attempts beyond those
	causes    []error
}

func (e *RateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "clk: %s: %v: %v within %d ppm", e.Clock, ErrNoRate, e.Want, e.Tolerance)
	if e.Best != 0 {
		fmt.Fprintf(&b, "; best is %v, %s", e.Best, offBy(e.Best, e.Want))
	}
	for i, a := range e.Tried {
		if i == 0 {
			b.WriteString("; tried ")
		} else {
			b.WriteString("; ")
		}
		b.WriteString(a.String())
	}
	if e.Dropped != 0 {
		fmt.Fprintf(&b, "; and %d more", e.Dropped)
	}
	return b.String()
}

func (e *RateError) Unwrap() []error { return append([]error{ErrNoRate}, e.causes...) }

// offBy prints a deviation with a unit that suits it.
func offBy(got, want Hz) string {
	d := Deviation(got, want)
	if d > -1000 && d < 1000 {
		return fmt.Sprintf("%+.1f ppm off", d)
	}
	return fmt.Sprintf("%+.2f %% off", d/1e4)
}
