package clk

import "fmt"

// Limits of Amlogic's MPLL: parent / (N2 + SDM/16384). Linux, drivers/clk/meson/clk-mpll.c.
const (
	sdmDen = 16384 // denominator of the fraction
	sdmMin = 1
	sdmMax = sdmDen - 1
	n2Min  = 4
	n2Max  = 127

	sdmWidth = 14
	n2Width  = 9
)

// MPLLRate is what an MPLL makes of its parent's rate: parent * 16384 / (16384*n2 + sdm), rounded up. The error, if any,
// errors.Is [ErrInvalid].
func MPLLRate(parent Hz, n2, sdm uint32) (Hz, error) {
	const op = "MPLL rate"
	switch {
	case parent == 0 || parent > MaxRate:
		return 0, &Error{Op: op, Detail: fmt.Sprintf("parent rate is %v", parent), Err: ErrInvalid}
	case n2 < n2Min || n2 > n2Max:
		return 0, &Error{Op: op, Detail: fmt.Sprintf("N2 is %d, allowed are %d to %d", n2, n2Min, n2Max), Err: ErrInvalid}
	case sdm < sdmMin || sdm > sdmMax:
		return 0, &Error{Op: op, Detail: fmt.Sprintf("SDM is %d, allowed are %d to %d", sdm, sdmMin, sdmMax), Err: ErrInvalid}
	}
	return Hz(ceilDiv(uint64(parent)*sdmDen, sdmDen*uint64(n2)+uint64(sdm))), nil
}

// MPLLParams is the setting that Linux uses for a wanted rate: the nearest one that is not faster, or the end of the range.
// The error, if any, errors.Is [ErrInvalid].
func MPLLParams(parent, want Hz) (n2, sdm uint32, err error) {
	if parent == 0 || parent > MaxRate || want == 0 || want > MaxRate {
		return 0, 0, &Error{Op: "MPLL parameters", Detail: fmt.Sprintf("%v from %v", want, parent), Err: ErrInvalid}
	}
	div, rem := parent/want, parent%want
	switch {
	case div < n2Min:
		return n2Min, sdmMin, nil
	case div > n2Max:
		return n2Max, sdmMax, nil
	}
	// In 32 bits this product wraps for nearly all remainders; Linux 4.x had that and was 2 % off.
	frac := ceilDiv(uint64(rem)*sdmDen, uint64(want))
	return uint32(div), uint32(min(max(frac, sdmMin), sdmMax)), nil
}

// MPLLConfig describes an MPLL. Its output gate, where there is one, is a [Gate] behind it.
type MPLLConfig struct {
	Name   string
	Parent Clock
	N2     Field // 9 bits
	SDM    Field // 14 bits
	// SDMEnable is one bit that switches the fraction on. It may be absent.
	SDMEnable Field
}

// MPLL is one output of Amlogic's multiphase PLL: a divider with a 14-bit fraction.
type MPLL struct{ c MPLLConfig }

var _ Tunable = (*MPLL)(nil)

// NewMPLL returns an MPLL. The error, if any, errors.Is [ErrConfig].
func NewMPLL(c MPLLConfig) (*MPLL, error) {
	if err := checkName("MPLL", c.Name); err != nil {
		return nil, err
	}
	if err := checkParent(c.Name, c.Parent); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		what  string
		field Field
		width uint8
	}{{"N2", c.N2, n2Width}, {"SDM", c.SDM, sdmWidth}, {"SDMEnable", c.SDMEnable, 1}} {
		if f.what == "SDMEnable" && !f.field.present() {
			continue
		}
		if err := f.field.check(c.Name, f.what); err != nil {
			return nil, err
		}
		if f.field.Width != f.width {
			return nil, configError(c.Name, f.what, "is %d bits wide, not %d", f.field.Width, f.width)
		}
	}
	return &MPLL{c}, nil
}

func (m *MPLL) Name() string           { return m.c.Name }
func (m *MPLL) Parent() (Clock, error) { return m.c.Parent, nil }

// Params reads the setting. The error, if any, errors.Is [ErrInvalid] or [ErrGone].
func (m *MPLL) Params() (n2, sdm uint32, err error) {
	const op = "read MPLL"
	if n2, err = m.c.N2.Get(); err != nil {
		return 0, 0, err
	}
	if sdm, err = m.c.SDM.Get(); err != nil {
		return 0, 0, err
	}
	if n2 < n2Min || n2 > n2Max {
		return n2, sdm, &Error{Clock: m.c.Name, Op: op, Reg: m.c.N2.String(), Value: n2,
			Detail: fmt.Sprintf("allowed are %d to %d", n2Min, n2Max), Err: ErrInvalid}
	}
	if sdm < sdmMin {
		return n2, sdm, &Error{Clock: m.c.Name, Op: op, Reg: m.c.SDM.String(), Value: sdm,
			Detail: fmt.Sprintf("allowed are %d to %d", sdmMin, sdmMax), Err: ErrInvalid}
	}
	if m.c.SDMEnable.present() {
		on, err := m.c.SDMEnable.Get()
		if err != nil {
			return n2, sdm, err
		}
		if on == 0 {
			return n2, sdm, &Error{Clock: m.c.Name, Op: op, Reg: m.c.SDMEnable.String(), Value: on,
				Detail: "the fraction is switched off, which is not documented to give a rate", Err: ErrInvalid}
		}
	}
	return n2, sdm, nil
}

// Rate reads the setting and calculates the rate.
func (m *MPLL) Rate() (Hz, error) {
	in, err := rateOf(m.c.Parent)
	if err != nil {
		return 0, err
	}
	n2, sdm, err := m.Params()
	if err != nil {
		return 0, err
	}
	return MPLLRate(in, n2, sdm)
}

// Round is the rate that SetRate would give.
func (m *MPLL) Round(want Hz) (Hz, error) {
	in, err := rateOf(m.c.Parent)
	if err != nil {
		return 0, err
	}
	n2, sdm, err := MPLLParams(in, want)
	if err != nil {
		return 0, err
	}
	return MPLLRate(in, n2, sdm)
}

// SetRate writes N2, SDM and the fraction's enable bit, all at once where they share a register, and no other bit. The
// boot loader only sets bits, so without clearing the fields the result would be the union of two settings.
func (m *MPLL) SetRate(want Hz) error {
	_, err := m.setRate(want)
	return err
}

func (m *MPLL) setRate(want Hz) (restore func() error, err error) {
	in, err := rateOf(m.c.Parent)
	if err != nil {
		return nil, err
	}
	n2, sdm, err := MPLLParams(in, want)
	if err != nil {
		return nil, err
	}
	settings := []setting{{m.c.N2, n2}, {m.c.SDM, sdm}}
	if m.c.SDMEnable.present() {
		settings = append(settings, setting{m.c.SDMEnable, 1})
	}
	return write(settings)
}
