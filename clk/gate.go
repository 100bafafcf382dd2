package clk

// GateConfig describes a gate.
type GateConfig struct {
	Name   string
	Parent Clock
	Field  Field // one bit
	// ActiveLow says that the clock runs while the bit is clear.
	ActiveLow bool
	// KeepParent forbids the solver to change the parent's rate.
	KeepParent bool
}

// Gate switches a clock on and off.
type Gate struct{ c GateConfig }

// NewGate returns a gate. The error, if any, errors.Is [ErrConfig].
func NewGate(c GateConfig) (*Gate, error) {
	if err := checkName("gate", c.Name); err != nil {
		return nil, err
	}
	if err := checkParent(c.Name, c.Parent); err != nil {
		return nil, err
	}
	if err := c.Field.check(c.Name, "Field"); err != nil {
		return nil, err
	}
	if c.Field.Width != 1 {
		return nil, configError(c.Name, "Field", "is %d bits wide, not 1", c.Field.Width)
	}
	return &Gate{c}, nil
}

func (g *Gate) Name() string           { return g.c.Name }
func (g *Gate) Parent() (Clock, error) { return g.c.Parent, nil }

// Rate is the parent's, whether the gate is open or not.
func (g *Gate) Rate() (Hz, error) { return rateOf(g.c.Parent) }

// Enabled reads whether the clock runs.
func (g *Gate) Enabled() (bool, error) {
	v, err := g.c.Field.Get()
	return (v != 0) != g.c.ActiveLow, err
}

// SetEnabled switches the clock on or off.
func (g *Gate) SetEnabled(on bool) error {
	_, err := g.set(on)
	return err
}

func (g *Gate) set(on bool) (restore func() error, err error) {
	v := uint32(0)
	if on != g.c.ActiveLow {
		v = 1
	}
	return write([]setting{{g.c.Field, v}})
}
