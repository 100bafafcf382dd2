package clk

import "fmt"

// Fixed is a source whose rate is known and cannot be read, such as a crystal.
type Fixed struct {
	name string
	rate Hz
}

// NewFixed returns a source. The error, if any, errors.Is [ErrConfig].
func NewFixed(name string, rate Hz) (*Fixed, error) {
	if err := checkName("fixed source", name); err != nil {
		return nil, err
	}
	if rate == 0 || rate > MaxRate {
		return nil, configError(name, "rate", "is %v, allowed are 1 to %d Hz", rate, uint64(MaxRate))
	}
	return &Fixed{name, rate}, nil
}

func (f *Fixed) Name() string      { return f.name }
func (f *Fixed) Rate() (Hz, error) { return f.rate, nil }

// PLLConfig describes a PLL: parent * (M + Frac/2^w) / N / 2^OD, w being the width of Frac.
type PLLConfig struct {
	Name   string
	Parent Clock
	M, N   Field
	// OD, Frac and Lock may be absent. OD is the exponent of the output divider. Lock is one bit: without it the PLL
	// has no rate.
	OD, Frac, Lock Field
}

// PLL is a PLL that is read and never programmed: many clocks of the system hang on it. Layout and rounding follow Linux,
// drivers/clk/meson/clk-pll.c.
type PLL struct{ c PLLConfig }

// NewPLL returns a PLL. The error, if any, errors.Is [ErrConfig].
func NewPLL(c PLLConfig) (*PLL, error) {
	if err := checkName("PLL", c.Name); err != nil {
		return nil, err
	}
	if err := checkParent(c.Name, c.Parent); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		what  string
		field Field
		must  bool
		width uint8 // at most: keeps products within 64 bits
	}{
		{"M", c.M, true, 12}, {"N", c.N, true, 12}, {"OD", c.OD, false, 3}, {"Frac", c.Frac, false, 20}, {"Lock", c.Lock, false, 1},
	} {
		if !f.must && !f.field.present() {
			continue
		}
		if err := f.field.check(c.Name, f.what); err != nil {
			return nil, err
		}
		if f.field.Width > f.width {
			return nil, configError(c.Name, f.what, "is %d bits wide, at most %d are supported", f.field.Width, f.width)
		}
	}
	return &PLL{c}, nil
}

func (p *PLL) Name() string           { return p.c.Name }
func (p *PLL) Parent() (Clock, error) { return p.c.Parent, nil }

// pllParams is what the registers hold.
type pllParams struct{ m, n, od, frac uint32 }

func (p *PLL) params() (v pllParams, err error) {
	const op = "read PLL"
	for _, f := range []struct {
		field Field
		to    *uint32
	}{{p.c.M, &v.m}, {p.c.N, &v.n}, {p.c.OD, &v.od}, {p.c.Frac, &v.frac}} {
		if f.field.present() {
			if *f.to, err = f.field.Get(); err != nil {
				return v, err
			}
		}
	}
	switch {
	case v.m == 0:
		return v, &Error{Clock: p.c.Name, Op: op, Reg: p.c.M.String(), Detail: "the multiplier is zero", Err: ErrInvalid}
	case v.n == 0:
		return v, &Error{Clock: p.c.Name, Op: op, Reg: p.c.N.String(), Detail: "the divider is zero", Err: ErrInvalid}
	}
	if p.c.Lock.present() {
		lock, err := p.c.Lock.Get()
		if err != nil {
			return v, err
		}
		if lock == 0 {
			return v, &Error{Clock: p.c.Name, Op: op, Reg: p.c.Lock.String(), Detail: "not locked", Err: ErrInvalid}
		}
	}
	return v, nil
}

// Rate reads M, N, Frac and OD and calculates the rate, each division rounded up.
func (p *PLL) Rate() (Hz, error) {
	in, err := rateOf(p.c.Parent)
	if err != nil {
		return 0, err
	}
	v, err := p.params()
	if err != nil {
		return 0, err
	}
	r := uint64(in) * uint64(v.m) // 40 + 12 bits
	r += ceilDiv(uint64(in)*uint64(v.frac), 1<<p.c.Frac.Width)
	r = ceilDiv(ceilDiv(r, uint64(v.n)), 1<<v.od)
	if Hz(r) > MaxRate {
		return 0, &Error{Clock: p.c.Name, Op: "read PLL", Reg: p.c.M.String(), Value: v.m, Detail: fmt.Sprintf("%v is no rate", Hz(r)), Err: ErrInvalid}
	}
	return Hz(r), nil
}
