package sim

import (
	"sync/atomic"
	"testing"
	"time"

	"dwnet/hw"
)

// jumpClock is a clock that only the test moves, with a simulator that only runs when the test says so: a machine that is
// late on purpose.
type jumpClock struct {
	now     atomic.Int64
	step    chan struct{}
	idle    chan struct{}
	closing chan struct{}
}

func newJumpClock() *jumpClock {
	return &jumpClock{step: make(chan struct{}), idle: make(chan struct{}), closing: make(chan struct{})}
}

func (c *jumpClock) Now() time.Time                           { return c.wall(c.now.Load()) }
func (c *jumpClock) Sleep(d time.Duration)                    { c.now.Add(int64(d)) }
func (c *jumpClock) AfterFunc(time.Duration, func()) hw.Timer { return jumpTimer{} }
func (c *jumpClock) nanos() int64                             { return c.now.Load() }
func (c *jumpClock) wall(n int64) time.Time                   { return time.Unix(0, n) }
func (c *jumpClock) newWaiter(bool) waiter                    { return c }
func (c *jumpClock) enter()                                   {}
func (c *jumpClock) leave()                                   {}
func (c *jumpClock) poke()                                    {}

// wait blocks until the test lets the simulator run.
func (c *jumpClock) wait(int64) {
	select {
	case c.idle <- struct{}{}:
	case <-c.closing:
		return
	}
	select {
	case <-c.step:
	case <-c.closing:
	}
}

// run lets the simulator run once.
func (c *jumpClock) run() {
	c.step <- struct{}{}
	<-c.idle
}

type jumpTimer struct{}

func (jumpTimer) Stop() bool          { return true }
func (jumpTimer) Reset(time.Duration) {}

// TestLateMachineShiftsTheSchedule: a run that comes late catches up at most a millisecond, or a quarter of the receive ring;
// the rest is a stall, and what comes afterwards keeps its spacing.
func TestLateMachineShiftsTheSchedule(t *testing.T) {
	const frame = 12304 // ns for each of 1514 bytes
	for _, c := range []struct {
		name   string
		ring   int // of the receiver
		size   int
		late   time.Duration
		frames int // that the late run delivers
		stall  time.Duration
	}{
		{"in time", 256, 1514, 100 * time.Microsecond, 8, 0},
		{"a little late", 256, 1514, 700 * time.Microsecond, 56, 0},
		{"ring of 256", 256, 1514, 20 * time.Millisecond, 64, 19_200 * time.Microsecond},
		{"ring of 512", 512, 1514, 20 * time.Millisecond, 81, 19 * time.Millisecond},
		{"ring of 16", 16, 1514, 20 * time.Millisecond, 4, 19_950 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := newJumpClock()
			a, b := newBoard(t, Options{Clock: clock}), newBoard(t, Options{Clock: clock})
			cable := connect(t, a, b, CableOptions{SpeedMbps: 1000})
			t.Cleanup(func() { close(clock.closing) }) // before the cable is closed
			<-clock.idle
			da := openDriver(t, a, driverOptions{ring: 512})
			db := openDriver(t, b, driverOptions{ring: c.ring})
			clock.Sleep(10 * time.Millisecond)
			clock.run()
			for range 200 {
				da.queue(makeFrame(db.port.Info().Address, da.port.Info().Address, c.size))
			}
			da.kick()
			clock.run()
			before := cable.Stats().HostStall
			clock.Sleep(c.late)
			clock.run()
			got := 0
			for db.drop() {
				got++
			}
			if got < c.frames-1 || got > c.frames+1 {
				t.Errorf("%d frames arrived, want %d", got, c.frames)
			}
			stall := cable.Stats().HostStall - before
			if d := stall - c.stall; d < -100*time.Microsecond || d > 100*time.Microsecond {
				t.Errorf("stalled for %v, want about %v", stall, c.stall)
			}
			if s := b.Stats(); s.RXDrops() != 0 {
				t.Errorf("%d frames were lost", s.RXDrops())
			}
			for range 3 { // afterwards it is in time again
				clock.Sleep(2 * frame)
				clock.run()
				n := 0
				for db.drop() {
					n++
				}
				if n < 1 || n > 3 {
					t.Errorf("%d frames in the time of two", n)
				}
			}
			if d := cable.Stats().HostStall - before - stall; d != 0 {
				t.Errorf("stalled for %v more", d)
			}
			noViolations(t, a, b)
		})
	}
}

// TestIdleTimeIsNoStall: a wire on which nothing was to be done is not late.
func TestIdleTimeIsNoStall(t *testing.T) {
	clock := newJumpClock()
	a, b := newBoard(t, Options{Clock: clock}), newBoard(t, Options{Clock: clock})
	cable := connect(t, a, b, CableOptions{SpeedMbps: 1000})
	t.Cleanup(func() { close(clock.closing) })
	<-clock.idle
	da, db := openDriver(t, a, driverOptions{}), openDriver(t, b, driverOptions{})
	clock.run()
	before := cable.Stats().HostStall
	for range 10 {
		clock.Sleep(time.Second)
		clock.run()
		da.send(makeFrame(db.port.Info().Address, da.port.Info().Address, 60))
		clock.run()
		clock.Sleep(5 * time.Microsecond)
		clock.run()
		if !db.drop() {
			t.Error("frame lost")
		}
	}
	if s := cable.Stats().HostStall - before; s != 0 {
		t.Errorf("stalled for %v", s)
	}
}
