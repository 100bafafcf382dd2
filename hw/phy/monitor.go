package phy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// Defaults of MonitorOptions.
const (
	DefaultInterval          = 100 * time.Millisecond
	DefaultInterruptInterval = time.Second
	DefaultRestarts          = 6
)

const (
	// returnSettle is how long a PHY that has come back is left alone before it is set up: it may just have left its reset.
	returnSettle = DefaultSettle
	// patience is how many failures of the bus in a row are taken for the loss of the PHY.
	patience = 3
)

// MonitorOptions are how a link is watched.
type MonitorOptions struct {
	// Interval is the time between two looks at the PHY; 0: 100 ms, or 1 s with Interrupt.
	Interval time.Duration
	// Interrupt says that the PHY's interrupt line reaches somebody who calls Hint. The monitor enables and clears it.
	Interrupt bool
	// Restarts is how often autonegotiation is restarted in a row because its result makes no sense; 0: 6, negative: never.
	Restarts int
}

// State is what a Monitor knows about the link.
type State struct {
	Present bool    // the PHY answers
	Up      bool    // the link is up and Link is known
	Link    hw.Link // of the last link that was up: speed in Mbit/s, duplex, flow control
	// Downshifted: the cable carries less than both ends can.
	Downshifted bool
	Since       time.Time // when Present, Up or Link changed last
	Losses      uint64    // times the link went down, flaps included
	Flaps       uint64    // times it was down and up again between two looks
	Restarts    uint64    // times autonegotiation was restarted because its result made no sense
	Repairs     uint64    // times the PHY had lost its settings, as by a reset, and was set up again
	Err         error     // what is wrong now, nil if nothing
}

// same reports whether b is the same for a user of the link.
func (s State) same(b State) bool { return s.Present == b.Present && s.Up == b.Up && s.Link == b.Link }

// Monitor follows the link of one PHY. It has no goroutine: the owner calls Poll from its own loop, as often as it likes.
//
// When nothing has changed, a look at the PHY is one access to the bus with the link up and two with it down, and four more to
// clear an interrupt. A link that comes up takes some twenty, once: that is when a PHY that was reset behind the monitor's back
// is noticed and set up again.
type Monitor struct {
	phy  *PHY
	opt  MonitorOptions
	hint atomic.Bool

	mu       sync.Mutex
	state    State
	started  bool
	next     time.Time
	failures int       // of the bus in a row
	restarts int       // of autonegotiation in a row
	backAt   time.Time // when the PHY that has come back is set up; zero: it has not
	rewire   bool      // the interrupt is to be enabled
	repaired bool      // the PHY was set up again and the link has not been up since
}

// NewMonitor watches a PHY. The first Poll looks at once.
func NewMonitor(p *PHY, o MonitorOptions) *Monitor {
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
		if o.Interrupt {
			o.Interval = DefaultInterruptInterval
		}
	}
	switch {
	case o.Restarts == 0:
		o.Restarts = DefaultRestarts
	case o.Restarts < 0:
		o.Restarts = 0
	}
	return &Monitor{phy: p, opt: o, rewire: o.Interrupt, state: State{Present: true}}
}

// Hint makes the next Poll look at the PHY: for the handler of its interrupt, or when the MAC reports a change of the link. It
// never blocks and may be called from anywhere.
func (m *Monitor) Hint() { m.hint.Store(true) }

// State is what the last Poll found.
func (m *Monitor) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// Next is when Poll wants to be called again; a Hint makes it at once. It is the zero time before the first Poll.
func (m *Monitor) Next() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next
}

// Poll looks at the PHY if it is time to or there was a Hint, and reports the state of the link and whether Present, Up or Link
// differ from the last call. now is the time on the PHY's clock. It never waits.
//
// A link that was lost and came back since the last look is reported as down once, and the next call, which is due at once,
// reports it up. The error is State.Err: a PHY that is gone matches [hw.ErrNoPHY], and is set up again when it returns; a
// partner whose abilities still make no sense after all restarts matches [ErrPartner]. It is repeated until it is no longer
// true, so callers report it when it changes.
func (m *Monitor) Poll(now time.Time) (State, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.hint.Swap(false) && m.started && now.Before(m.next) {
		return m.state, false, m.state.Err
	}
	s := m.state
	m.next = now.Add(m.opt.Interval)
	if s.Present {
		m.look(&s, now)
	} else {
		m.seek(&s, now)
	}
	if m.state.Up && !s.Up {
		s.Losses++
	}
	changed := !m.started || !s.same(m.state)
	if changed {
		s.Since = now
	}
	m.started = true
	m.state = s
	return s, changed, s.Err
}

// look reads the link of a PHY that is there.
func (m *Monitor) look(s *State, now time.Time) {
	err := m.phy.do(func(a Access) error {
		if m.opt.Interrupt {
			// Cleared before the look, so that a change after it pulls the line again.
			if err := m.interrupt(); err != nil {
				return err
			}
		}
		bmsr, dropped, err := m.phy.link(a)
		if err != nil {
			return err
		}
		m.phy.dropped = false
		switch up := bmsr&BMSRLink != 0; {
		case !up:
			if errors.Is(s.Err, ErrPartner) {
				m.restarts = 0 // a cable was pulled; what comes next has its own chances
			}
			s.Up, s.Err = false, nil
			return nil
		case dropped && s.Up:
			s.Up, s.Err = false, nil
			s.Flaps++
			m.next = now
			return nil
		case s.Up:
			s.Err = nil
			return nil
		}
		return m.up(a, s, bmsr)
	})
	switch {
	case err == nil:
		m.failures = 0
	case errors.Is(err, hw.ErrNoPHY) || m.failures+1 >= patience:
		*s = m.lost(*s, err)
	default: // a single failed access is not the loss of a PHY
		m.failures++
		s.Err = err
	}
}

// up takes down what the link that has come up is made of.
func (m *Monitor) up(a Access, s *State, bmsr BMSR) error {
	if !m.repaired {
		ok, err := m.phy.intact(a)
		if err != nil {
			return err
		}
		if !ok {
			m.phy.log.Warn("PHY had lost its settings", "addr", a.addr)
			s.Repairs++
			m.repaired = true
			m.rewire = m.opt.Interrupt
			_, err := m.phy.setUp(a, true)
			return err
		}
	}
	st, err := m.phy.status(a, bmsr)
	if err != nil {
		return err
	}
	if st.Autoneg && !st.Complete {
		s.Err = nil // the link bit is early; the next look will tell
		return nil
	}
	if st.Fault == nil {
		s.Up, s.Link, s.Downshifted, s.Err = true, st.Link, st.Downshifted, nil
		m.restarts, m.repaired = 0, false
		return nil
	}
	if m.restarts < m.opt.Restarts {
		m.restarts++
		s.Restarts++
		s.Err = nil
		return m.phy.restart(a)
	}
	s.Err = fmt.Errorf("after %d restarts of autonegotiation: %w", m.restarts, st.Fault)
	return nil
}

// interrupt enables the PHY's interrupt the first time and after each return of the PHY, and clears it otherwise.
func (m *Monitor) interrupt() error {
	p := m.phy
	if p.drv.interrupt == nil {
		return p.unsupported("interrupt")
	}
	if !m.rewire {
		_, err := p.drv.acknowledge(p)
		return err
	}
	if err := p.drv.interrupt(p, true); err != nil {
		return err
	}
	p.interrupt = true
	m.rewire = false
	return nil
}

// lost is the state without the PHY.
func (m *Monitor) lost(s State, err error) State {
	m.failures, m.restarts, m.backAt = 0, 0, time.Time{}
	s.Present, s.Up, s.Err = false, false, err
	return s
}

// seek looks whether a PHY that was lost is back, and sets it up when it has had time to come to itself.
func (m *Monitor) seek(s *State, now time.Time) {
	var id ID
	err := m.phy.do(func(a Access) (err error) {
		id, err = Identify(a.bus, a.addr)
		return err
	})
	switch {
	case err != nil:
		m.backAt, s.Err = time.Time{}, err
		return
	case id != m.phy.id:
		m.backAt = time.Time{}
		s.Err = &hw.Error{Op: fmt.Sprintf("PHY %d", m.phy.raw.addr), Err: hw.ErrNoPHY,
			Hint: fmt.Sprintf("%v was there, %v is now", m.phy.id, id)}
		return
	case m.backAt.IsZero():
		m.backAt = now.Add(returnSettle)
		m.next = m.backAt
		return
	case now.Before(m.backAt):
		m.next = m.backAt
		return
	}
	if err := m.phy.back(); err != nil {
		s.Err = err
		return
	}
	m.rewire = m.opt.Interrupt
	m.backAt = time.Time{}
	s.Present, s.Err = true, nil
	m.next = now // for the link
}

// back sets a PHY up that was gone: it may have been reset, and then has none of its settings. Unlike wake it does not wait
// for anything; what is not ready yet is an error, and the next look tries again.
func (p *PHY) back() error {
	return p.do(func(a Access) error {
		v, err := a.Read(RegBMCR)
		if err != nil {
			return err
		}
		const asleep = BMCRPowerDown | BMCRIsolate
		notReady := &hw.Error{Op: fmt.Sprintf("PHY %d: set up again", a.addr), Reg: "BMCR", Last: uint32(v), Err: hw.ErrTimeout}
		switch {
		case v == absent:
			return p.gone("BMCR", v)
		case BMCR(v)&BMCRReset != 0:
			notReady.Mask, notReady.Hint = uint32(BMCRReset), "still in reset"
			return notReady
		case BMCR(v)&asleep == 0:
			_, err := p.setUp(a, false)
			return err
		}
		if err := a.Write(RegBMCR, v&^uint16(asleep)); err != nil {
			return err
		}
		notReady.Mask, notReady.Hint = uint32(asleep), "woken up now; "+noClockHint
		return notReady
	})
}

// WaitUp polls on the PHY's clock until the link is up, limit has passed or ctx ends. It returns the state and why the link is
// not up: [hw.ErrTimeout], or what Poll says at the end.
func (m *Monitor) WaitUp(ctx context.Context, limit time.Duration) (State, error) {
	c := m.phy.clock
	m.Hint() // what the last look found may be old
	for start := c.Now(); ; {
		now := c.Now()
		s, _, err := m.Poll(now)
		waited := now.Sub(start)
		switch {
		case s.Up:
			return s, nil
		case ctx.Err() != nil:
			return s, ctx.Err()
		case waited >= limit && err != nil:
			return s, err
		case waited >= limit:
			return s, &hw.Error{Op: fmt.Sprintf("PHY %d: wait for the link", m.phy.raw.addr), Wait: waited, Err: hw.ErrTimeout,
				Hint: "no cable, or the other end is off"}
		}
		if err := sleep(ctx, c, min(max(m.Next().Sub(now), pollPause), limit-waited)); err != nil {
			return s, err
		}
	}
}
