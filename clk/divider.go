package clk

import (
	"fmt"
	"slices"
)

// Rounding says which of the possible rates a divider takes when none is exact.
type Rounding uint8

const (
	RoundClosest Rounding = iota // the nearest, of two equally near the slower
	RoundDown                    // the nearest that is not faster than wanted
)

// TableEntry is one value of a divider's field.
type TableEntry struct{ Value, Div uint32 }

// TableRange is the table of a divider whose field holds the divisor itself, for the divisors first to last.
func TableRange(first, last uint32) (t []TableEntry) {
	for d := uint64(first); d <= uint64(last) && len(t) < 1<<maxDividerWidth; d++ {
		t = append(t, TableEntry{uint32(d), uint32(d)})
	}
	return t
}

// maxDividerWidth bounds what the solver has to go through.
const maxDividerWidth = 12

// DividerConfig describes a divider. By default the field holds the divisor less one.
type DividerConfig struct {
	Name   string
	Parent Clock
	Field  Field
	// Table lists the allowed values of the field; all others are nonsense when read and never written.
	Table []TableEntry
	// OneBased says that the field holds the divisor itself. Zero is nonsense then, unless AllowZero says that the
	// hardware passes its input unchanged; it is never written. Neither goes with a Table.
	OneBased, AllowZero bool
	Round               Rounding
	// MinInput and MaxInput bound the parent's rate; zero means no bound. The request's tolerance applies to them. They
	// bind the solver and Check, not the reading of rates.
	MinInput, MaxInput Hz
	// KeepParent forbids the solver to change the parent's rate.
	KeepParent bool
}

// Divider divides a clock by a whole number.
type Divider struct {
	c     DividerConfig
	table []TableEntry // in order of divisors, whatever the kind
}

// NewDivider returns a divider. The error, if any, errors.Is [ErrConfig].
func NewDivider(c DividerConfig) (*Divider, error) {
	if err := checkName("divider", c.Name); err != nil {
		return nil, err
	}
	if err := checkParent(c.Name, c.Parent); err != nil {
		return nil, err
	}
	if err := c.Field.check(c.Name, "Field"); err != nil {
		return nil, err
	}
	switch {
	case c.Field.Width > maxDividerWidth:
		return nil, configError(c.Name, "Field", "is %d bits wide, at most %d are supported", c.Field.Width, maxDividerWidth)
	case c.Table != nil && (c.OneBased || c.AllowZero):
		return nil, configError(c.Name, "Table", "excludes OneBased and AllowZero")
	case c.AllowZero && !c.OneBased:
		return nil, configError(c.Name, "AllowZero", "goes with OneBased only")
	case c.Round > RoundDown:
		return nil, configError(c.Name, "Round", "is %d", c.Round)
	case c.MinInput > MaxRate || c.MaxInput > MaxRate || c.MaxInput != 0 && c.MaxInput < c.MinInput:
		return nil, configError(c.Name, "MinInput and MaxInput", "are %v and %v", c.MinInput, c.MaxInput)
	}
	d := &Divider{c: c}
	switch {
	case c.Table != nil:
		d.table = slices.Clone(c.Table)
	case c.OneBased:
		d.table = TableRange(1, c.Field.Max())
	default:
		for v := uint32(0); v <= c.Field.Max(); v++ {
			d.table = append(d.table, TableEntry{v, v + 1})
		}
	}
	if len(d.table) == 0 {
		return nil, configError(c.Name, "Table", "is empty")
	}
	for i, e := range d.table {
		if e.Value > c.Field.Max() {
			return nil, configError(c.Name, "Table", "has value %#x, more than %v can hold", e.Value, c.Field)
		}
		if e.Div == 0 {
			return nil, configError(c.Name, "Table", "has divisor 0 for value %#x", e.Value)
		}
		if c.Table != nil && slices.ContainsFunc(d.table[:i], func(o TableEntry) bool { return o.Value == e.Value }) {
			return nil, configError(c.Name, "Table", "has value %#x twice", e.Value)
		}
	}
	slices.SortStableFunc(d.table, func(a, b TableEntry) int { return int(int64(a.Div) - int64(b.Div)) })
	return d, nil
}

func (d *Divider) Name() string           { return d.c.Name }
func (d *Divider) Parent() (Clock, error) { return d.c.Parent, nil }

// Div reads the divisor. The error, if any, errors.Is [ErrInvalid] for a value that means none, or [ErrGone].
func (d *Divider) Div() (uint32, error) {
	v, err := d.c.Field.Get()
	if err != nil {
		return 0, err
	}
	if v == 0 && d.c.AllowZero {
		return 1, nil
	}
	for _, e := range d.table {
		if e.Value == v {
			return e.Div, nil
		}
	}
	return 0, &Error{Clock: d.c.Name, Op: "read divider", Reg: d.c.Field.String(), Value: v, Detail: d.allowed(), Err: ErrInvalid}
}

// allowed prints the allowed divisors: "allowed are 2 to 7".
func (d *Divider) allowed() string {
	first, last := d.table[0].Div, d.table[len(d.table)-1].Div
	if uint64(last)-uint64(first)+1 == uint64(len(d.table)) && len(d.table) > 1 {
		return fmt.Sprintf("allowed are %d to %d", first, last)
	}
	s := "allowed are"
	for _, e := range d.table {
		s += fmt.Sprintf(" %d", e.Div)
	}
	return s
}

// Rate is the parent's rate divided, rounded up as Linux does.
func (d *Divider) Rate() (Hz, error) {
	in, err := rateOf(d.c.Parent)
	if err != nil {
		return 0, err
	}
	div, err := d.Div()
	if err != nil {
		return 0, err
	}
	return divide(in, div), nil
}

func divide(in Hz, div uint32) Hz { return Hz(ceilDiv(uint64(in), uint64(div))) }

// SetDiv writes a divisor. The error, if any, errors.Is [ErrConfig] for one that is not allowed, or is one of [Reg.Update].
func (d *Divider) SetDiv(div uint32) error {
	_, err := d.set(div)
	return err
}

func (d *Divider) set(div uint32) (restore func() error, err error) {
	for _, e := range d.table {
		if e.Div == div {
			return write([]setting{{d.c.Field, e.Value}})
		}
	}
	return nil, &Error{Clock: d.c.Name, Op: "set divider", Detail: fmt.Sprintf("%d is not possible, %s", div, d.allowed()), Err: ErrConfig}
}

// Best is the divisor for a wanted rate from a given input, after Round, and the rate it gives. The error, if any,
// errors.Is [ErrNoRate] (rounding down, even the largest divisor is too fast) or [ErrConfig].
func (d *Divider) Best(in, want Hz) (div uint32, out Hz, err error) {
	if in == 0 || in > MaxRate || want == 0 || want > MaxRate {
		return 0, 0, &Error{Clock: d.c.Name, Op: "choose divider", Detail: fmt.Sprintf("%v from %v", want, in), Err: ErrConfig}
	}
	for _, e := range d.table {
		r := divide(in, e.Div)
		if d.c.Round == RoundDown && r > want {
			continue
		}
		if out == 0 || nearer(r, out, want) {
			div, out = e.Div, r
		}
	}
	if out == 0 {
		return 0, 0, &Error{Clock: d.c.Name, Op: "choose divider", Detail: fmt.Sprintf("%v from %v, %s", want, in, d.allowed()), Err: ErrNoRate}
	}
	return div, out, nil
}

// nearer prefers the slower of two rates that are equally far from want.
func nearer(a, b, want Hz) bool {
	da, db := distance(a, want), distance(b, want)
	return da < db || da == db && a < b
}

// Check reads the divider and its input and reports whether they keep within what was configured. The error, if any,
// errors.Is [ErrConstraint], [ErrInvalid] or [ErrGone]. Zero tolerance means DefaultTolerance.
func (d *Divider) Check(tol PPM) error {
	if _, err := d.Div(); err != nil {
		return err
	}
	in, err := rateOf(d.c.Parent)
	if err != nil {
		return err
	}
	if tol == 0 {
		tol = DefaultTolerance
	}
	return d.checkInput(in, tol)
}

func (d *Divider) checkInput(in Hz, tol PPM) error {
	lo, hi := d.c.MinInput, d.c.MaxInput
	switch {
	case in < lo && !within(in, lo, tol):
		return &Error{Clock: d.c.Name, Op: "check input", Detail: fmt.Sprintf("%v, needs at least %v", in, lo), Err: ErrConstraint}
	case hi != 0 && in > hi && !within(in, hi, tol):
		return &Error{Clock: d.c.Name, Op: "check input", Detail: fmt.Sprintf("%v, takes at most %v", in, hi), Err: ErrConstraint}
	}
	return nil
}
