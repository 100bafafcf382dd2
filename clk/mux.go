package clk

import (
	"fmt"
	"slices"
)

// MuxConfig describes a multiplexer.
type MuxConfig struct {
	Name string
	// Inputs are the clocks to choose from, in order of preference where several do equally well. A nil input is
	// one that the hardware has but nobody knows: it is never chosen, and reading it is an error. The same clock
	// may be at several inputs.
	Inputs []Clock
	Field  Field
	// Values are the field's values of the inputs. Without them the values are 0, 1, 2, …
	Values []uint32
	// KeepInput forbids the solver to choose: another input may belong to somebody who changes its rate.
	KeepInput bool
	// KeepParent forbids the solver to change the rate of an input.
	KeepParent bool
}

// Mux passes one of several clocks.
type Mux struct{ c MuxConfig }

// NewMux returns a multiplexer. The error, if any, errors.Is [ErrConfig].
func NewMux(c MuxConfig) (*Mux, error) {
	if err := checkName("mux", c.Name); err != nil {
		return nil, err
	}
	if err := c.Field.check(c.Name, "Field"); err != nil {
		return nil, err
	}
	c.Inputs, c.Values = slices.Clone(c.Inputs), slices.Clone(c.Values)
	known := 0
	for i, in := range c.Inputs {
		if isNil(in) {
			c.Inputs[i] = nil
		} else {
			known++
		}
	}
	if known == 0 {
		return nil, configError(c.Name, "Inputs", "has no clock")
	}
	if c.Values == nil {
		for i := range c.Inputs {
			c.Values = append(c.Values, uint32(i))
		}
	}
	if len(c.Values) != len(c.Inputs) {
		return nil, configError(c.Name, "Values", "has %d entries for %d inputs", len(c.Values), len(c.Inputs))
	}
	for i, v := range c.Values {
		if v > c.Field.Max() {
			return nil, configError(c.Name, "Values", "has %#x, more than %v can hold", v, c.Field)
		}
		if slices.Contains(c.Values[:i], v) {
			return nil, configError(c.Name, "Values", "has %#x twice", v)
		}
	}
	return &Mux{c}, nil
}

func (m *Mux) Name() string { return m.c.Name }

// Input reads which input is selected. The error, if any, errors.Is [ErrInvalid] or [ErrGone].
func (m *Mux) Input() (int, error) {
	v, err := m.c.Field.Get()
	if err != nil {
		return 0, err
	}
	i := slices.Index(m.c.Values, v)
	if i < 0 || m.c.Inputs[i] == nil {
		return 0, &Error{Clock: m.c.Name, Op: "read mux", Reg: m.c.Field.String(), Value: v, Detail: "no known clock is there", Err: ErrInvalid}
	}
	return i, nil
}

// Select switches to an input. The error, if any, errors.Is [ErrConfig] for an input that does not exist, or is one of
// [Reg.Update].
func (m *Mux) Select(input int) error {
	_, err := m.sel(input)
	return err
}

func (m *Mux) sel(input int) (restore func() error, err error) {
	if input < 0 || input >= len(m.c.Inputs) || m.c.Inputs[input] == nil {
		return nil, &Error{Clock: m.c.Name, Op: "select", Detail: fmt.Sprintf("there is no input %d", input), Err: ErrConfig}
	}
	return write([]setting{{m.c.Field, m.c.Values[input]}})
}

// Parent is the selected input.
func (m *Mux) Parent() (Clock, error) {
	i, err := m.Input()
	if err != nil {
		return nil, err
	}
	return m.c.Inputs[i], nil
}

// Rate is the rate of the selected input.
func (m *Mux) Rate() (Hz, error) {
	p, err := m.Parent()
	if err != nil {
		return 0, err
	}
	return rateOf(p)
}
