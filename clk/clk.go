// Package clk reads and programs the clock tree of a system on chip: fixed sources, PLLs, fractional dividers (Amlogic's
// MPLL), multiplexers, dividers, fixed factors and gates, composed into a tree, and a solver that finds the settings for a
// wanted rate or says why there are none.
//
// It was made for the 125 MHz RGMII transmit clock of Amlogic's Meson8b and GXBB, where a divider of one, or a parent left
// at the boot loader's rate, costs most of the transmit rate without any error message. Nothing in it knows that board.
//
// # Trees
//
// Every part is a [Clock] and is made from its parent, so a tree is built from the source to the consumer and cannot have
// a cycle. Parts hold no state: every rate is read from the registers when it is asked for. A part of your own takes part
// if it implements Clock, and is programmed by the solver if it implements [Tunable]. Within one tree each name stands
// for one clock.
//
// [Solve] only reads and returns a [Plan]. [SetRate] also programs it, parents first, reads back what each part made of
// it, and restores everything if the result is not the wanted rate. [Enable] opens the gates on the way. [Describe] and
// [Inspect] print a tree with its rates.
//
// # Rates
//
// Rates are whole [Hz] in 64 bits, on 32-bit machines too; nothing is calculated in MHz. Each part rounds as Linux does
// (drivers/clk/clk-divider.c, clk-fixed-factor.c, drivers/clk/meson/clk-mpll.c), so that registers and reported rates agree
// with a kernel's.
//
// Registers that hold nonsense, such as a divider of zero, give an error that errors.Is [ErrInvalid]. Rates are never made
// up.
package clk

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
)

// Hz is a rate in Hertz. Zero is no valid rate.
type Hz uint64

const (
	KHz Hz = 1000
	MHz    = 1000 * KHz
	GHz    = 1000 * MHz

	// MaxRate is the largest rate that parts accept. It keeps all products of this package within 64 bits.
	MaxRate Hz = 1 << 40
)

func (h Hz) String() string { return fmt.Sprintf("%d Hz", uint64(h)) }

// PPM is a tolerance in millionths of the wanted rate.
type PPM uint32

const (
	// DefaultTolerance is 0.1 %: far more than rounding in a tree costs, far less than any wrong setting. Ethernet itself
	// asks for 100 ppm (IEEE 802.3, 40.6.1.2.6).
	DefaultTolerance PPM = 1000
	maxTolerance     PPM = 1000000
)

// Clock is one part of a clock tree.
type Clock interface {
	// Name is the clock's name in messages, and which clock it is within its tree.
	Name() string
	// Rate reads the hardware. A gated clock has the rate that it would run at. The error, if any, errors.Is ErrInvalid
	// or ErrGone.
	Rate() (Hz, error)
}

// Tunable is a clock that can be programmed to a rate, within its limits.
type Tunable interface {
	Clock
	// Round is the rate that SetRate(want) would give. It writes nothing.
	Round(want Hz) (Hz, error)
	// SetRate programs the clock. What came of it is then seen by Rate.
	SetRate(want Hz) error
}

// Child is a clock that is made from another one. All parts of this package except [Fixed] are.
type Child interface {
	Clock
	// Parent is the clock that this one runs from now.
	Parent() (Clock, error)
}

// Deviation is how far got is from want, in ppm of want.
func Deviation(got, want Hz) float64 {
	if want == 0 {
		return 0
	}
	return (float64(got) - float64(want)) / float64(want) * 1e6
}

// within compares without rounding.
func within(got, want Hz, tol PPM) bool {
	hi, lo := bits.Mul64(uint64(distance(got, want)), uint64(maxTolerance))
	return hi == 0 && lo <= uint64(want)*uint64(tol) // MaxRate * maxTolerance < 2^60
}

func distance(a, b Hz) Hz {
	if a > b {
		return a - b
	}
	return b - a
}

// rateOf is c.Rate with the answer checked, for clocks of others too.
func rateOf(c Clock) (Hz, error) {
	r, err := c.Rate()
	if err != nil {
		return 0, err
	}
	if r == 0 || r > MaxRate {
		return 0, &Error{Clock: c.Name(), Op: "read rate", Detail: fmt.Sprintf("%v is no rate", r), Err: ErrInvalid}
	}
	return r, nil
}

// scale is floor(r * mult / div) in 128 bits; ok is false if that is zero or more than MaxRate. div is not zero.
func scale(r Hz, mult, div uint64) (_ Hz, ok bool) {
	hi, lo := bits.Mul64(uint64(r), mult)
	if hi >= div {
		return 0, false
	}
	q, _ := bits.Div64(hi, lo, div)
	return Hz(q), q != 0 && q <= uint64(MaxRate)
}

// ceilDiv is the quotient rounded up. d is not zero, and n+d does not overflow: n is a rate or a product made of one.
func ceilDiv(n, d uint64) uint64 { return (n + d - 1) / d }

// checkName and checkParent are shared by all constructors.
func checkName(kind, name string) error {
	if name == "" {
		return configError(kind, "Name", "is empty")
	}
	return nil
}

func checkParent(name string, parent Clock) error {
	if isNil(parent) {
		return configError(name, "Parent", "is nil")
	}
	return nil
}

// isNil also finds a nil pointer in a non-nil interface, the usual mistake with an error that was not looked at.
func isNil(c Clock) bool {
	if c == nil {
		return true
	}
	v := reflect.ValueOf(c)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// undo is what has to be done to leave no trace, in order of doing.
type undo []func() error

func (u *undo) push(f func() error) {
	if f != nil {
		*u = append(*u, f)
	}
}

// run undoes in reverse order, all of it whatever fails.
func (u undo) run() error {
	var errs []error
	for i := len(u) - 1; i >= 0; i-- {
		if err := u[i](); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
