package clk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Step is one clock to be programmed.
type Step struct {
	Clock   Clock
	Setting string // such as "m250_div /2"
	Out     Hz     // rate that Clock has afterwards

	apply func() (restore func() error, err error)
}

// Plan is how a clock gets a rate. It is what was true when it was made; [SetRate] makes its own.
type Plan struct {
	Clock Clock
	Want  Hz
	Rate  Hz     // what it gives
	Steps []Step // parents first
}

// String is one line with the settings and the result.
func (p *Plan) String() string {
	return fmt.Sprintf("%s: %s: %v (%s)", p.Clock.Name(), settingsOf(p.Steps), p.Rate, offBy(p.Rate, p.Want))
}

func settingsOf(steps []Step) string {
	if len(steps) == 0 {
		return "no setting"
	}
	var s []string
	for _, st := range steps {
		s = append(s, st.Setting)
	}
	return strings.Join(s, ", ")
}

// Solve finds settings of c and of the clocks that it is made from, so that c has the wanted rate. Nothing is written.
//
// Of all combinations the nearest rate is taken; of equally near ones the slower, then the first input of a mux, then the
// smallest divisor. Zero tolerance means DefaultTolerance.
//
// The error is a [*RateError], which lists what was tried, or errors.Is [ErrConfig].
func Solve(c Clock, want Hz, tol PPM) (*Plan, error) {
	s, err := newSolver(c, want, tol)
	if err != nil {
		return nil, err
	}
	return s.solve()
}

const (
	maxAttempts = 64      // kept for the error
	maxVisits   = 1 << 16 // of clocks; a real tree takes a few dozen
)

type solver struct {
	clock   Clock
	want    Hz
	tol     PPM
	pinned  map[string]Hz // clocks that turned out to have this rate whatever is asked
	visits  int
	tried   []Attempt
	dropped int
	causes  []error
}

func newSolver(c Clock, want Hz, tol PPM) (*solver, error) {
	if isNil(c) {
		return nil, configError("", "clock", "is nil")
	}
	if want == 0 || want > MaxRate {
		return nil, configError(c.Name(), "rate", "is %v, allowed are 1 to %d Hz", want, uint64(MaxRate))
	}
	if tol == 0 {
		tol = DefaultTolerance
	}
	if tol > maxTolerance {
		return nil, configError(c.Name(), "tolerance", "is %d ppm, at most %d make sense", tol, maxTolerance)
	}
	return &solver{clock: c, want: want, tol: tol, pinned: map[string]Hz{}}, nil
}

func (s *solver) solve() (*Plan, error) {
	s.visits = 0
	best, err := s.best(s.clock, s.want)
	if err != nil {
		return nil, s.fail(0, err)
	}
	if !within(best.rate, s.want, s.tol) {
		if len(s.tried) == 0 { // there was nothing to choose
			s.note(Attempt{Clock: s.clock.Name(), Setting: settingsOf(best.steps), Want: s.want, Out: best.rate, Reason: offBy(best.rate, s.want)})
		}
		return nil, s.fail(best.rate, nil)
	}
	return &Plan{Clock: s.clock, Want: s.want, Rate: best.rate, Steps: best.steps}, nil
}

func (s *solver) fail(best Hz, err error) error {
	causes := slices.Clone(s.causes)
	if err != nil && !errors.Is(err, errNoChoice) {
		causes = append(causes, err)
		if len(s.tried) == 0 {
			s.note(Attempt{Clock: s.clock.Name(), Setting: s.clock.Name(), Want: s.want, Reason: err.Error()})
		}
	}
	return &RateError{Clock: s.clock.Name(), Want: s.want, Tolerance: s.tol, Best: best,
		Tried: slices.Clone(s.tried), Dropped: s.dropped, causes: causes}
}

func (s *solver) note(a Attempt) {
	if len(s.tried) == maxAttempts {
		s.dropped++
		return
	}
	s.tried = append(s.tried, a)
}

// errNoChoice says that every setting of a part was refused; the reasons are in the attempts.
var errNoChoice = errors.New("no setting is possible")

// candidate is a rate and how to get it.
type candidate struct {
	rate  Hz
	steps []Step
}

// with adds a step without touching what other candidates share.
func (c candidate) with(st Step) candidate {
	return candidate{st.Out, append(slices.Clip(c.steps), st)}
}

// best is the candidate of c that is nearest to want. Its rate may be far off.
func (s *solver) best(c Clock, want Hz) (candidate, error) {
	s.visits++
	if s.visits > maxVisits {
		return candidate{}, &Error{Clock: s.clock.Name(), Op: "solve", Detail: "the tree has too many combinations", Err: ErrConfig}
	}
	if r, ok := s.pinned[c.Name()]; ok {
		return candidate{rate: r}, nil
	}
	switch c := c.(type) {
	case *Divider:
		return s.divider(c, want)
	case *Mux:
		return s.mux(c, want)
	case *Factor:
		return s.factor(c, want)
	case *Gate:
		return s.from(c.c.Parent, want, c.c.KeepParent)
	case Tunable:
		r, err := c.Round(want)
		if err != nil {
			return candidate{}, err
		}
		if r == 0 || r > MaxRate {
			return candidate{}, &Error{Clock: c.Name(), Op: "round", Detail: fmt.Sprintf("%v is no rate", r), Err: ErrInvalid}
		}
		return candidate{}.with(Step{c, fmt.Sprintf("%s at %v", c.Name(), want), r, func() (func() error, error) { return tune(c, want) }}), nil
	}
	return s.present(c)
}

// present is the rate that c has now.
func (s *solver) present(c Clock) (candidate, error) {
	r, err := rateOf(c)
	return candidate{rate: r}, err
}

// from is the candidate of a parent.
func (s *solver) from(parent Clock, want Hz, keep bool) (candidate, error) {
	if keep {
		return s.present(parent)
	}
	return s.best(parent, want)
}

func (s *solver) divider(d *Divider, want Hz) (candidate, error) {
	var best candidate
	for _, e := range d.table {
		// A parent that is kept is the same for all divisors; it is read again for each, which keeps this simple.
		need, ok := scale(want, uint64(e.Div), 1)
		if !ok {
			need = MaxRate
		}
		setting := fmt.Sprintf("%s /%d", d.c.Name, e.Div)
		in, err := s.from(d.c.Parent, need, d.c.KeepParent)
		if err != nil {
			if errors.Is(err, ErrConfig) {
				return candidate{}, err
			}
			s.refuse(Attempt{Clock: d.c.Name, Setting: setting, Want: want, Reason: err.Error()}, err)
			continue
		}
		a := Attempt{Clock: d.c.Name, Setting: settingsOf(append(slices.Clip(in.steps), Step{Setting: setting})), Want: want, In: in.rate}
		if err := d.checkInput(in.rate, s.tol); err != nil {
			var e *Error
			errors.As(err, &e)
			a.Reason = "the input is " + e.Detail
			s.refuse(a, err)
			continue
		}
		a.Out = divide(in.rate, e.Div)
		a.Reason = offBy(a.Out, want)
		if d.c.Round == RoundDown && a.Out > want {
			a.Reason += ", and it rounds down"
			s.refuse(a, nil)
			continue
		}
		s.note(a)
		if best.rate == 0 || nearer(a.Out, best.rate, want) {
			best = in.with(Step{d, setting, a.Out, func() (func() error, error) { return d.set(e.Div) }})
		}
	}
	if best.rate == 0 {
		return candidate{}, errNoChoice
	}
	return best, nil
}

// refuse notes an attempt that cannot be used, whatever its rate.
func (s *solver) refuse(a Attempt, cause error) {
	s.note(a)
	if cause != nil && !errors.Is(cause, errNoChoice) && len(s.causes) < maxAttempts {
		s.causes = append(s.causes, cause)
	}
}

func (s *solver) mux(m *Mux, want Hz) (candidate, error) {
	now := -1
	if m.c.KeepInput {
		var err error
		if now, err = m.Input(); err != nil {
			return candidate{}, err
		}
	}
	var best candidate
	for i, in := range m.c.Inputs {
		if in == nil || now >= 0 && i != now {
			continue
		}
		setting := fmt.Sprintf("%s input %d", m.c.Name, i)
		c, err := s.from(in, want, m.c.KeepParent)
		if err != nil {
			if errors.Is(err, ErrConfig) {
				return candidate{}, err
			}
			s.refuse(Attempt{Clock: m.c.Name, Setting: setting, Want: want, Reason: err.Error()}, err)
			continue
		}
		if best.rate == 0 || nearer(c.rate, best.rate, want) {
			best = c
			if now < 0 {
				best = c.with(Step{m, setting, c.rate, func() (func() error, error) { return m.sel(i) }})
			}
		}
	}
	if best.rate == 0 {
		return candidate{}, errNoChoice
	}
	return best, nil
}

func (s *solver) factor(f *Factor, want Hz) (candidate, error) {
	need, ok := scale(want, uint64(f.c.Div), uint64(f.c.Mult))
	if !ok { // out of reach: let the parent come as near as it can
		need = 1
		if f.c.Div > f.c.Mult {
			need = MaxRate
		}
	}
	c, err := s.from(f.c.Parent, need, f.c.KeepParent)
	if err != nil {
		return candidate{}, err
	}
	in := c.rate
	if c.rate, ok = scale(in, uint64(f.c.Mult), uint64(f.c.Div)); !ok {
		return candidate{}, &Error{Clock: f.c.Name, Op: "solve", Detail: fmt.Sprintf("%v times %d/%d is no rate", in, f.c.Mult, f.c.Div), Err: ErrInvalid}
	}
	return c, nil
}
