package clk

import (
	"fmt"
	"math"
)

// FactorConfig describes a fixed factor.
type FactorConfig struct {
	Name      string
	Parent    Clock
	Mult, Div uint32 // rate = parent * Mult / Div
	// KeepParent forbids the solver to change the parent's rate.
	KeepParent bool
}

// Factor multiplies and divides by fixed numbers.
type Factor struct{ c FactorConfig }

// NewFactor returns a fixed factor. The error, if any, errors.Is [ErrConfig].
func NewFactor(c FactorConfig) (*Factor, error) {
	if err := checkName("fixed factor", c.Name); err != nil {
		return nil, err
	}
	if err := checkParent(c.Name, c.Parent); err != nil {
		return nil, err
	}
	if c.Mult == 0 || c.Div == 0 || c.Mult > math.MaxInt32 || c.Div > math.MaxInt32 {
		return nil, configError(c.Name, "Mult and Div", "are %d and %d", c.Mult, c.Div)
	}
	return &Factor{c}, nil
}

func (f *Factor) Name() string           { return f.c.Name }
func (f *Factor) Parent() (Clock, error) { return f.c.Parent, nil }

// Rate is the parent's rate times the factor, rounded down as Linux does.
func (f *Factor) Rate() (Hz, error) {
	in, err := rateOf(f.c.Parent)
	if err != nil {
		return 0, err
	}
	out, ok := scale(in, uint64(f.c.Mult), uint64(f.c.Div))
	if !ok {
		return 0, &Error{Clock: f.c.Name, Op: "read rate", Detail: fmt.Sprintf("%v times %d/%d is no rate", in, f.c.Mult, f.c.Div), Err: ErrInvalid}
	}
	return out, nil
}
