package phy

import (
	"context"
	"errors"
	"testing"
	"time"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var gigabit = hw.Link{Speed: 1000, FullDuplex: true}

// watch is a monitor on a model, with time of its own.
type watch struct {
	t   *testing.T
	m   *model
	mon *Monitor
	now time.Time
}

func newWatch(t *testing.T, m *model, o Options, mo MonitorOptions) *watch {
	t.Helper()
	p, c := m.open(o)
	return &watch{t, m, NewMonitor(p, mo), c.Now()}
}

// tick is one poll, an interval later. Since is left out of the state.
func (w *watch) tick() (State, bool, error) {
	w.now = w.now.Add(w.mon.opt.Interval)
	s, changed, err := w.mon.Poll(w.now)
	if changed != s.Since.Equal(w.now) && changed {
		w.t.Errorf("changed at %v, since %v", w.now, s.Since)
	}
	s.Since = time.Time{}
	return s, changed, err
}

// expect is one poll with what must come of it.
func (w *watch) expect(what string, want State, changed bool) {
	w.t.Helper()
	s, ch, err := w.tick()
	if d := cmp.Diff(want, s, cmpopts.EquateErrors()); d != "" || ch != changed {
		w.t.Errorf("%s: changed %v, %s", what, ch, d)
	}
	if !errors.Is(err, s.Err) || (err == nil) != (s.Err == nil) {
		w.t.Errorf("%s: error %v, state has %v", what, err, s.Err)
	}
}

func TestMonitorFollowsTheCable(t *testing.T) {
	w := newWatch(t, newModel(t), Options{}, MonitorOptions{})
	up := State{Present: true, Up: true, Link: gigabit}
	w.expect("first", up, true)
	w.expect("nothing new", up, false)
	w.m.pull()
	w.expect("pulled", State{Present: true, Link: gigabit, Losses: 1}, true)
	w.expect("still pulled", State{Present: true, Link: gigabit, Losses: 1}, false)
	w.m.partner = Mode100Full
	w.m.plug()
	slow := hw.Link{Speed: 100, FullDuplex: true}
	w.expect("another partner", State{Present: true, Up: true, Link: slow, Losses: 1}, true)
}

func TestMonitorStartsWithoutCable(t *testing.T) {
	m := newModel(t)
	m.pull()
	w := newWatch(t, m, Options{}, MonitorOptions{})
	w.expect("first", State{Present: true}, true)
	m.plug()
	w.expect("plugged", State{Present: true, Up: true, Link: gigabit}, true)
}

// The link bit latches low. A cable that was out and in again between two looks is one flap, told as down and then as up, and
// not as down for ever.
func TestMonitorTellsAShortDropOnce(t *testing.T) {
	for _, m := range []*model{newModel(t), newPlain(t, RTL8211E)} {
		w := newWatch(t, m, Options{}, MonitorOptions{})
		w.expect("first", State{Present: true, Up: true, Link: gigabit}, true)
		for i := range uint64(3) {
			m.pull()
			m.plug()
			m.pull()
			m.plug()
			w.expect("dropped", State{Present: true, Link: gigabit, Losses: i + 1, Flaps: i + 1}, true)
			if next := w.mon.Next(); next.After(w.now) {
				t.Errorf("next look at %v, now is %v", next, w.now)
			}
			w.expect("back", State{Present: true, Up: true, Link: gigabit, Losses: i + 1, Flaps: i + 1}, true)
			w.expect("quiet", State{Present: true, Up: true, Link: gigabit, Losses: i + 1, Flaps: i + 1}, false)
		}
	}
}

func TestMonitorLooksOnlyWhenItIsTime(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{}, MonitorOptions{Interval: 200 * time.Millisecond})
	w.tick()
	count := func(what string, d time.Duration, want int) {
		t.Helper()
		m.accesses = 0
		w.now = w.now.Add(d)
		if _, changed, err := w.mon.Poll(w.now); changed || err != nil {
			t.Errorf("%s: %v, %v", what, changed, err)
		}
		if m.accesses != want {
			t.Errorf("%s: %d accesses, want %d", what, m.accesses, want)
		}
	}
	count("too early", 199*time.Millisecond, 0)
	count("in time, link up", time.Millisecond, 1)
	w.mon.Hint()
	count("hint", 0, 1)
	count("hint used up", 0, 0)
	m.pull()
	w.tick()
	count("link down", 200*time.Millisecond, 2)
	if next := w.mon.Next().Sub(w.now); next != 200*time.Millisecond {
		t.Errorf("next in %v", next)
	}
}

func TestMonitorWithInterrupt(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{}, MonitorOptions{Interrupt: true})
	if w.mon.opt.Interval != DefaultInterruptInterval {
		t.Errorf("interval %v", w.mon.opt.Interval)
	}
	w.expect("first", State{Present: true, Up: true, Link: gigabit}, true)
	iner := [2]uint16{rtlPageINER, rtlINER}
	if m.banks[iner] != rtlINERLink || m.pending != 0 {
		t.Errorf("INER %#x, pending %#x", m.banks[iner], m.pending)
	}
	m.pull()
	w.mon.Hint()
	if s, changed, err := w.mon.Poll(w.now); !changed || s.Up || err != nil {
		t.Errorf("%+v, %v, %v", s, changed, err)
	}
	if m.pending != 0 {
		t.Error("the line is still pulled: a level interrupt would fire for ever")
	}
	// A reset behind our back forgets the mask; the next link brings it back.
	m.set(func() { m.reset(); m.latched = true })
	m.plug()
	w.tick()
	w.tick()
	w.tick()
	if s := w.mon.State(); !s.Up || s.Repairs != 1 || m.banks[iner] != rtlINERLink {
		t.Errorf("%+v, INER %#x", s, m.banks[iner])
	}

	plain := newWatch(t, newPlain(t, RTL8211E), Options{}, MonitorOptions{Interrupt: true})
	if _, _, err := plain.tick(); !errors.Is(err, hw.ErrUnsupported) {
		t.Errorf("generic PHY: %v", err)
	}
}

// About one in twelve negotiations of some PHYs ends with a partner word that is none. Then it is done again, a bounded number
// of times.
func TestMonitorRenegotiatesNonsense(t *testing.T) {
	for _, c := range []struct {
		corrupt  int
		limit    int // MonitorOptions.Restarts
		restarts uint64
		up       bool
	}{
		{0, 0, 0, true}, {1, 0, 1, true}, {6, 0, 6, true}, {7, 0, 6, false}, {100, 0, 6, false},
		{2, 2, 2, true}, {3, 2, 2, false}, {1, -1, 0, false},
	} {
		m := newModel(t)
		m.corrupt = c.corrupt
		w := newWatch(t, m, Options{}, MonitorOptions{Restarts: c.limit})
		m.restarts = 0
		var s State
		var err error
		for range 40 {
			s, _, err = w.tick()
		}
		if s.Up != c.up || s.Restarts != c.restarts || uint64(m.restarts) != c.restarts {
			t.Errorf("%+v: %+v, %d restarts seen", c, s, m.restarts)
		}
		if (err == nil) != c.up || !c.up && !errors.Is(err, ErrPartner) {
			t.Errorf("%+v: %v", c, err)
		}
		if !c.up {
			// Another cable has chances of its own.
			m.pull()
			w.tick()
			m.set(func() { m.corrupt = 0 })
			m.plug()
			if s, _, err := w.tick(); !s.Up || err != nil {
				t.Errorf("%+v: replugged: %+v, %v", c, s, err)
			}
		}
	}
}

func TestMonitorLosesThePHYAndSetsItUpAgain(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{Mode: hw.ModeRGMIIID}, MonitorOptions{Interrupt: true})
	w.expect("first", State{Present: true, Up: true, Link: gigabit}, true)
	m.set(func() { m.gone = true })
	gone := State{Link: gigabit, Losses: 1, Err: hw.ErrNoPHY}
	w.expect("gone", gone, true)
	w.expect("still gone", gone, false)
	m.set(func() { m.reset(); m.gone = false })
	m.writes()
	if s, _, _ := w.mon.Poll(w.mon.Next()); s.Present {
		t.Error("set up at once: it may have just left its reset")
	}
	if l := m.writes(); l != nil {
		t.Errorf("written too early: %v", l)
	}
	w.now = w.mon.Next()
	if s, changed, err := w.mon.Poll(w.now); !s.Present || !changed || err != nil {
		t.Errorf("back: %+v, %v, %v", s, changed, err)
	}
	w.expect("up", State{Present: true, Up: true, Link: gigabit, Losses: 1}, true)
	if d, err := w.mon.phy.Delays(); err != nil || !d.TX || !d.RX {
		t.Errorf("delays after the return: %v, %v", d, err)
	}
	if v := m.banks[[2]uint16{rtlPageINER, rtlINER}]; v != rtlINERLink {
		t.Errorf("INER %#x", v)
	}
}

func TestMonitorWakesAPHYThatComesBackAsleep(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{}, MonitorOptions{})
	w.tick()
	m.set(func() { m.gone = true })
	w.tick()
	m.set(func() { m.reset(); m.gone = false; m.std[RegBMCR] |= uint16(BMCRPowerDown); m.negotiate() })
	for range 5 {
		w.tick()
	}
	if s := w.mon.State(); !s.Up || s.Err != nil {
		t.Errorf("%+v", s)
	}
}

func TestMonitorRefusesAnotherPHY(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{}, MonitorOptions{})
	w.tick()
	m.set(func() { m.gone = true })
	w.tick()
	m.set(func() { m.gone = false; m.std[RegID2] = 0xc915 })
	m.writes()
	for range 3 {
		if s, _, err := w.tick(); s.Present || !errors.Is(err, hw.ErrNoPHY) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if l := m.writes(); l != nil {
		t.Errorf("wrote %v to a stranger", l)
	}
}

func TestMonitorForgivesAFewBusFaults(t *testing.T) {
	m := newModel(t)
	w := newWatch(t, m, Options{}, MonitorOptions{})
	up := State{Present: true, Up: true, Link: gigabit}
	w.expect("first", up, true)
	faults := 2
	m.set(func() {
		m.fail = func(int) error {
			if faults > 0 {
				faults--
				return errBus
			}
			return nil
		}
	})
	bad := up
	bad.Err = errBus
	w.expect("one", bad, false)
	w.expect("two", bad, false)
	w.expect("recovered", up, false)
	faults = 3
	w.expect("one", bad, false)
	w.expect("two", bad, false)
	w.expect("three", State{Link: gigabit, Losses: 1, Err: errBus}, true)
	for range 3 {
		w.tick()
	}
	if s := w.mon.State(); !s.Up || s.Err != nil {
		t.Errorf("after the fault: %+v", s)
	}
}

// A PHY that was reset without anybody being told, by a glitch of its supply, has the straps' delays and advertisement again.
func TestMonitorRepairsAPHYThatWasReset(t *testing.T) {
	for _, o := range []Options{
		{Mode: hw.ModeRGMIIID},
		{Mode: hw.ModeRGMIIID, Settings: Settings{Advertise: Mode100Full | Mode10Half}},
		{Mode: hw.ModeRMII, Settings: Settings{Forced: Mode100Full}},
	} {
		m := newModel(t)
		w := newWatch(t, m, o, MonitorOptions{})
		s0, _, _ := w.tick()
		m.set(func() { m.reset(); m.latched = true })
		for range 4 {
			w.tick()
		}
		s := w.mon.State()
		if !s.Up || s.Repairs != 1 || s.Link != s0.Link {
			t.Errorf("%+v: %+v", o, s)
		}
		if want, ok := DelaysFor(o.Mode); ok {
			if d, _ := w.mon.phy.Delays(); d != want {
				t.Errorf("%+v: delays %v", o, d)
			}
		}
	}
}

func TestMonitorWaitUp(t *testing.T) {
	m := newModel(t)
	m.pull()
	p, c := m.open(Options{})
	mon := NewMonitor(p, MonitorOptions{})
	start := c.Now()
	_, err := mon.WaitUp(context.Background(), 3*time.Second)
	if waited := c.Now().Sub(start); !errors.Is(err, hw.ErrTimeout) || waited < 3*time.Second || waited > 4*time.Second {
		t.Errorf("after %v: %v", waited, err)
	}
	m.plug()
	if s, err := mon.WaitUp(context.Background(), time.Second); err != nil || s.Link != gigabit {
		t.Errorf("%+v, %v", s, err)
	}
	m.pull()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := mon.WaitUp(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.set(func() { m.gone = true })
	if _, err := mon.WaitUp(context.Background(), time.Second); !errors.Is(err, hw.ErrNoPHY) {
		t.Error(err)
	}
}
