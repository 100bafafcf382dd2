package clk

import (
	"errors"
	"fmt"
)

// Change is what [SetRate] did.
type Change struct {
	Plan *Plan // the one that held in the end
	Rate Hz    // read back
	done undo
}

// Restore sets all fields that were changed to what they were before, in reverse order. Only those bits are written.
func (c *Change) Restore() error {
	err := c.done.run()
	c.done = nil
	return err
}

// SetRate programs c and the clocks that it is made from, parents first, so that c has the wanted rate, and reads back
// what each step made. A clock that answers another rate than it promised is taken at its word, and the settings are
// found anew around it. Gates are left alone, see [Enable]. Zero tolerance means DefaultTolerance.
//
// On an error everything is restored. It is a [*RateError] if there are no settings, or errors.Is [ErrUnstable] if rates
// do not stay, [ErrReadback], [ErrGone], [ErrInvalid] or [ErrConfig].
func SetRate(c Clock, want Hz, tol PPM) (*Change, error) {
	s, err := newSolver(c, want, tol)
	if err != nil {
		return nil, err
	}
	change := &Change{}
	if err := s.program(change); err != nil {
		if undoing := change.Restore(); undoing != nil {
			err = errors.Join(err, fmt.Errorf("and restoring failed: %w", undoing))
		}
		return nil, err
	}
	return change, nil
}

// maxRounds bounds how often settings are found anew: once for each clock that breaks its promise.
const maxRounds = 8

func (s *solver) program(change *Change) error {
	for range maxRounds {
		plan, err := s.solve()
		if err != nil {
			return err
		}
		broken, err := s.apply(plan, &change.done)
		if err != nil {
			return err
		}
		if broken {
			continue
		}
		got, err := rateOf(s.clock)
		if err != nil {
			return err
		}
		if within(got, s.want, s.tol) {
			change.Plan, change.Rate = plan, got
			return nil
		}
		s.note(Attempt{Clock: s.clock.Name(), Setting: settingsOf(plan.Steps), Want: s.want, Out: got, Reason: "planned otherwise"})
	}
	err := s.fail(0, nil).(*RateError)
	err.causes = append(err.causes, ErrUnstable)
	return err
}

// apply programs a plan as far as its promises hold.
func (s *solver) apply(plan *Plan, done *undo) (broken bool, err error) {
	for _, st := range plan.Steps {
		restore, err := st.apply()
		done.push(restore)
		if err != nil {
			return false, err
		}
		got, err := rateOf(st.Clock)
		if err != nil {
			return false, err
		}
		if got == st.Out {
			continue
		}
		s.note(Attempt{Clock: st.Clock.Name(), Setting: st.Setting, Want: st.Out, Out: got, Reason: "it had promised otherwise"})
		if _, ok := st.Clock.(Tunable); ok {
			s.pinned[st.Clock.Name()] = got
		}
		// A mux or divider keeps no promise if its input moved. Then the next plan starts from what is there now.
		return true, nil
	}
	return false, nil
}

// tune programs a clock that may be somebody else's.
func tune(t Tunable, want Hz) (restore func() error, err error) {
	if m, ok := t.(*MPLL); ok {
		return m.setRate(want) // restores bits, not a rate: what was there may have been nonsense
	}
	if before, err := rateOf(t); err == nil {
		restore = func() error { return t.SetRate(before) }
	}
	return restore, t.SetRate(want)
}

// Enable opens all gates between the source of c and c, the source's first. The returned function closes those that were
// closed, in reverse order. On an error that was done already.
func Enable(c Clock) (restore func() error, err error) {
	if isNil(c) {
		return nil, configError("", "clock", "is nil")
	}
	chain, err := chainOf(c)
	if err != nil {
		return nil, err
	}
	var done undo
	for i := len(chain) - 1; i >= 0; i-- {
		g, ok := chain[i].(*Gate)
		if !ok {
			continue
		}
		r, err := g.set(true)
		done.push(r)
		if err != nil {
			return nil, errors.Join(err, done.run())
		}
	}
	return done.run, nil
}

// maxDepth bounds a walk towards the source: clocks of others could lead in a circle.
const maxDepth = 64

// chainOf lists c, its parent, and so on to the source.
func chainOf(c Clock) (chain []Clock, err error) {
	for len(chain) < maxDepth {
		chain = append(chain, c)
		child, ok := c.(Child)
		if !ok {
			return chain, nil
		}
		if c, err = child.Parent(); err != nil {
			return chain, err
		}
		if isNil(c) {
			return chain, nil
		}
	}
	return chain, &Error{Clock: chain[0].Name(), Op: "find source", Detail: "the tree is too deep", Err: ErrConfig}
}
