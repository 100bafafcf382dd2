package phy

import (
	"context"
	"errors"
	"testing"
	"time"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

// line is a reset line that remembers when it changed.
type line struct {
	c    *clock
	log  []edge
	fail bool // holding the PHY fails
}

type edge struct {
	At   time.Duration
	Held bool
}

func (l *line) SetReset(held bool) error {
	l.log = append(l.log, edge{l.c.slept, held})
	if held && l.fail {
		return errBus
	}
	return nil
}

const ms = time.Millisecond

func TestHardResetKeepsTheTimes(t *testing.T) {
	cancelable, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, c := range []struct {
		t              ResetTiming
		assert, settle time.Duration
	}{
		{ResetTiming{}, 10 * ms, 80 * ms},
		{ResetTiming{Assert: 1, Settle: 1}, 10 * ms, 30 * ms},
		{ResetTiming{Assert: 20 * ms, Settle: 200 * ms}, 20 * ms, 200 * ms},
		{ResetTiming{Assert: 10 * time.Second, Settle: 10 * time.Second}, 10 * time.Second, 10 * time.Second},
	} {
		for _, ctx := range []context.Context{context.Background(), cancelable} {
			clk := newClock()
			l := &line{c: clk}
			if err := HardReset(ctx, clk, l, c.t); err != nil {
				t.Errorf("%+v: %v", c.t, err)
			}
			if d := cmp.Diff([]edge{{0, true}, {c.assert, false}}, l.log); d != "" || clk.slept != c.assert+c.settle {
				t.Errorf("%+v: took %v, %s", c.t, clk.slept, d)
			}
		}
	}
}

func TestHardResetRefusesWrongTimes(t *testing.T) {
	for _, tm := range []ResetTiming{{Assert: -1}, {Settle: -1}, {Assert: 10*time.Second + 1}, {Settle: time.Hour}} {
		clk := newClock()
		l := &line{c: clk}
		if err := HardReset(context.Background(), clk, l, tm); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("%+v: %v", tm, err)
		}
		if l.log != nil || clk.slept != 0 {
			t.Errorf("%+v: %v, %v", tm, l.log, clk.slept)
		}
	}
}

// Whatever ends the reset early, the PHY is not left in it.
func TestHardResetLetsGo(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	clk := newClock()
	l := &line{c: clk}
	if err := HardReset(over, clk, l, ResetTiming{}); !errors.Is(err, context.Canceled) || l.log != nil {
		t.Errorf("ended before: %v, %v", err, l.log)
	}

	clk = newClock()
	clk.never = true
	l = &line{c: clk}
	ctx, cancel := context.WithCancel(context.Background())
	held := make(chan struct{})
	done := make(chan error)
	go func() {
		done <- HardReset(ctx, clk, lineFunc(func(on bool) error {
			err := l.SetReset(on)
			if on {
				close(held)
			}
			return err
		}), ResetTiming{})
	}()
	<-held
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended meanwhile: %v", err)
	}
	if d := cmp.Diff([]edge{{0, true}, {0, false}}, l.log); d != "" {
		t.Errorf("ended meanwhile: %s", d)
	}

	clk = newClock()
	l = &line{c: clk, fail: true}
	if err := HardReset(context.Background(), clk, l, ResetTiming{}); !errors.Is(err, errBus) || len(l.log) != 2 || l.log[1].Held {
		t.Errorf("line fails: %v, %v", err, l.log)
	}
}

type lineFunc func(bool) error

func (f lineFunc) SetReset(held bool) error { return f(held) }
