package fqcodel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// runShaped pumps whenever the queue says so, late by a given time, and returns when each frame left and how large it was.
func runShaped(t *testing.T, q *Queue[int], until, late int64, refill func(now int64)) (times []int64, bytes []int) {
	now := int64(0)
	for now < until {
		refill(now)
		h, ok := q.Step(Cut{}, now)
		for ok {
			if h.Action != Drop {
				times, bytes = append(times, now), append(bytes, h.Bytes)
			}
			h, ok = q.Step(Cut{Flow: h.Flow, Bytes: h.Bytes, Last: q.framesLeft(h.Flow) == 1, Sent: h.Action != Drop}, now)
			refill(now)
		}
		if h.Wait <= now {
			t.Fatalf("at %d: nothing to send, and to wait until %d", now, h.Wait)
		}
		now = h.Wait + late
	}
	return times, bytes
}

func fillTo(t *testing.T, q *Queue[int], flows, backlog int) func(int64) {
	return func(now int64) {
		for f := range flows {
			for q.waitingOf(uint32(f)) < backlog {
				push(t, q, large(uint32(f), 3, 700+f), f, now)
			}
		}
	}
}

// The shaper's rate is exact to the nanosecond, whatever the rate, and whether it is called in time or up to 1 ms late.
func TestShaperKeepsItsRateExactly(t *testing.T) {
	for _, rate := range []int64{1e6, 33_333_333, 90e6, 999_999_937} {
		for _, late := range []int64{0, 900 * int64(time.Microsecond)} {
			for _, overhead := range []int{0, 22, -38} {
				for _, fifo := range []bool{false, true} {
					q := mustNew[int](t, Config{ShapeRate: rate, ShapeOverhead: overhead, FIFO: fifo, NoECN: true})
					times, bytes := runShaped(t, q, min(2*sec, 4000*8000*sec/rate), late, fillTo(t, q, 3, 5000))
					sum := int64(0)
					for i, at := range times[:len(times)-1] {
						if due := sum * 8 * sec / rate; at < due || at > due+late {
							t.Fatalf("%d bits/s, %d ns late, overhead %d: frame %d left at %d, due %d", rate, late, overhead, i, at, due)
						}
						sum += int64(bytes[i] + overhead)
					}
				}
			}
		}
	}
}

// Catching up is bounded, and idle time earns nothing.
func TestShaperDoesNotBurst(t *testing.T) {
	q := mustNew[int](t, Config{ShapeRate: 8e6}) // a byte a microsecond
	fill := fillTo(t, q, 1, 50000)
	fill(0)
	if n := pump(q, 0, 100, nil); n != 1 {
		t.Errorf("%d frames at the start, want 1", n)
	}
	if n := pump(q, sec, 100, nil); n != 2 { // 1 ms is 1000 bytes: a frame on credit and the one that is due
		t.Errorf("%d frames after a second without a call, want 2", n)
	}
	for now := 2 * sec; q.Len() > 0; now += ms {
		pump(q, now, 1000, nil)
	}
	fill(1000 * sec)
	if n := pump(q, 1000*sec, 100, nil); n != 1 {
		t.Errorf("%d frames after a long idle time, want 1", n)
	}
}

func TestShaperSurvivesClockJumps(t *testing.T) {
	for _, flowRate := range []bool{false, true} {
		cfg := Config{ShapeRate: 8e6}
		if flowRate {
			cfg = Config{FlowRate: 8e6}
		}
		q := mustNew[int](t, cfg)
		fill := fillTo(t, q, 1, 30000)
		fill(1000 * sec)
		pump(q, 1000*sec, 100, nil)
		h, ok := q.Step(Cut{}, sec)
		if ok || h.Wait <= sec || h.Wait > sec+ms {
			t.Fatalf("flow rate %v: clock back by 999 s: ok %v, to wait until %d, want at most one frame's time from %d", flowRate, ok, h.Wait, sec)
		}
		if n := pump(q, h.Wait, 100, nil); n != 1 {
			t.Errorf("%d frames then, want 1", n)
		}
	}
}

// The rate can be changed while traffic runs.
func TestShaperRateCanChange(t *testing.T) {
	q := mustNew[int](t, Config{ShapeRate: 8e6})
	fill := fillTo(t, q, 2, 10000)
	runShaped(t, q, sec/10, 0, fill)
	before := q.Stats().SentBytes
	q.SetShapeRate(80e6)
	now := sec / 10
	for end := now + sec/10; now < end; now += ms / 100 {
		fill(now)
		pump(q, now, 1000, nil)
	}
	if got := q.Stats().SentBytes - before; got < 990_000 || got > 1_012_000 {
		t.Errorf("%d bytes in 100 ms at 80 Mbit/s, want about 1000000", got)
	}
	q.SetShapeRate(0)
	fill(now)
	if n := pump(q, now, 10, nil); n != 10 {
		t.Errorf("%d of 10 frames sent without a shaper", n)
	}
}

// With pacing each flow keeps to the rate on its own, and others need not wait for it.
func TestPacingIsPerFlow(t *testing.T) {
	const flows, rate = 5, 1_000_003
	q := mustNew[int](t, Config{FlowRate: rate})
	var sent [flows]int64
	var off bool
	fill := fillTo(t, q, flows, 3000)
	fill(0)
	now := int64(0)
	for now < 5*sec {
		h, ok := q.Step(Cut{}, now)
		for ok {
			f := h.Item
			// Each frame is due when those before it have had their time; a nanosecond for what is carried over.
			if due := sent[f] * 8 * sec / rate; now < due-1 || now > due+int64(time.Microsecond) {
				if !off {
					t.Errorf("flow %d: frame at %d, due %d", f, now, due)
				}
				off = true
			}
			if h.Action != Drop {
				sent[f] += int64(h.Bytes)
			}
			h, ok = q.Step(Cut{Flow: h.Flow, Bytes: h.Bytes, Last: q.framesLeft(h.Flow) == 1, Sent: h.Action != Drop}, now)
			fill(now)
		}
		q.check(t)
		if h.Wait <= now {
			t.Fatalf("wait until %d at %d", h.Wait, now)
		}
		now = h.Wait
	}
	push(t, q, plain(100, 500), 0, now)
	if h, ok := q.Next(now); !ok || h.Bytes != 500 {
		t.Error("a flow that has its rate free must not wait for the others")
	}
	q.Refresh(now)
	if n := pump(q, now, 100, nil); n != flows+1 {
		t.Errorf("%d frames right after Refresh, want one a flow", n)
	}
	q.check(t)
}

func TestPacedFlowsWakeInOrder(t *testing.T) {
	h := pacedFlows{pacers: make([]pacer, 50)}
	for i := range h.pacers {
		h.pacers[i].at = int64(i * 37 % 50)
		h.push(int32(i))
	}
	var got []int64
	for len(h.heap) > 0 {
		got = append(got, h.pacers[h.pop()].at)
	}
	if len(got) != 50 || !slices.IsSorted(got) {
		t.Errorf("woken at %v", got)
	}
}

// A packet that has been given up does not wait for a rate.
func TestAbortedPacketsDoNotWait(t *testing.T) {
	for _, cfg := range []Config{{ShapeRate: 8e6}, {FlowRate: 8e6}} {
		cfg.MemoryLimit = 10000
		q := mustNew[string](t, cfg)
		push(t, q, large(1, 9, 1000), "given up", 0)
		h, _ := q.Step(Cut{}, 0)
		if _, ok := q.Push(large(2, 5, 1000), "other", 0, nil); !ok {
			t.Fatal("no room")
		}
		h, ok := q.Step(Cut{Flow: h.Flow, Bytes: 1000, Sent: true}, 0)
		if ok && h.Item == "other" { // it has a rate of its own
			h, ok = q.Step(Cut{Flow: h.Flow, Bytes: 1000, Sent: true}, 0)
		}
		if !ok || !h.Aborted {
			t.Errorf("%+v: next is %+v, %v", cfg, h, ok)
		}
		q.check(t)
	}
}

// A flow that has been idle for less than CatchUp has no credit either.
func TestIdleFlowEarnsNothing(t *testing.T) {
	q := mustNew[int](t, Config{FlowRate: 8e6})
	push(t, q, plain(1, 1000), 0, 0)
	pump(q, 0, 10, nil) // the next may go at 1000 µs
	for range 3 {
		push(t, q, plain(1, 500), 0, 1900_000)
	}
	if n := pump(q, 1900_000, 10, nil); n != 1 {
		t.Errorf("%d frames at once after 0.9 ms of idleness, want 1", n)
	}
}

func TestQueuePassesOnWithoutItsPacer(t *testing.T) {
	q := mustNew[int](t, Config{FlowRate: 8000, Flows: 1})
	push(t, q, plain(1, 1000), 0, 0)
	if n := pump(q, 0, 10, nil); n != 1 {
		t.Fatal(n)
	}
	push(t, q, plain(2, 1000), 0, 0)
	if n := pump(q, 0, 10, nil); n != 1 {
		t.Error("the next owner of a queue waits for what the last one sent")
	}
}

func TestRefreshFreesTheShaper(t *testing.T) {
	q := mustNew[int](t, Config{ShapeRate: 1000})
	push(t, q, large(1, 5, 1000), 0, 0)
	pump(q, 0, 10, nil) // the next is due at 8 s
	if h, ok := q.Next(sec); ok || h.Wait != 8*sec {
		t.Fatalf("ok %v, wait until %d", ok, h.Wait)
	}
	q.Refresh(sec)
	if n := pump(q, sec, 10, nil); n != 1 {
		t.Errorf("%d frames after Refresh, want 1", n)
	}
}

// Flows that wait for their pacers lose packets to overflow, share queues and come back; their order stays right.
func TestPacedFlowsUnderPressure(t *testing.T) {
	q := mustNew[int](t, Config{FlowRate: 1e6, Flows: 8, MemoryLimit: 20000})
	rnd := rand.New(rand.NewPCG(4, 2))
	now := int64(0)
	for i := range 8000 {
		now += int64(rnd.IntN(200)) * 1000
		if rnd.IntN(3) > 0 {
			q.Push(large(uint32(rnd.IntN(12)), 1+rnd.IntN(6), 300+rnd.IntN(1000)), i, now, nil)
		} else {
			pump(q, now, rnd.IntN(4), nil)
		}
		q.check(t)
	}
	if s := q.Stats(); s.OverflowPackets == 0 || s.Collisions == 0 || s.SentFrames < 1000 {
		t.Errorf("the test shows nothing: %+v", s)
	}
}
