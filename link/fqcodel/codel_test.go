package fqcodel

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rfcParams = params{target: 5 * ms, interval: 100 * ms, maxFrame: 1538, ecn: true}

// A standing queue of 20 ms, a frame every millisecond. By hand, after RFC 8289: the delay is above target at 0, so the
// first drop is due at 100; then drops follow 100/√n ms after each other, counted from when they were due:
//
//	due 200 | +70.711 = 270.711 | +57.735 = 328.446 | +50 = 378.446 | +44.721 = 423.167 | +40.825 = 463.992 | +37.796 = 501.788
//	    +35.355 = 537.143 | +33.333 = 570.477 | +31.623 = 602.100
//
// and happen with the next frame, a whole millisecond. At 610 the queue falls below target for 50 ms and stands again from
// 660: an interval later, at 760, drops resume at the rate they had. 602.1 was reached after count 10 → the last drop is
// number 11, so count is 11 − 1 = 10, and 760 + 31.623 = 791.623 | count 11: +30.151 = 821.774 | +28.868 = 850.641.
func TestControlLawKeepsTheGoldenTrace(t *testing.T) {
	want := []int64{100, 200, 271, 329, 379, 424, 464, 502, 538, 571, 603, 760, 792, 822, 851}
	var c codel
	var got []int64
	for now := int64(0); now <= 860; now++ {
		sojourn := 20 * ms
		if now >= 610 && now < 660 {
			sojourn = ms
		}
		if c.verdict(&rfcParams, now*ms, sojourn, 20000, false) == Drop {
			got = append(got, now)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("drops, in ms (-want +got):\n%s", d)
	}
}

func TestMarksFollowTheSameLawAsDrops(t *testing.T) {
	var c codel
	var got []int64
	for now := int64(0); now <= 340; now++ {
		if a := c.verdict(&rfcParams, now*ms, 20*ms, 20000, true); a == Mark {
			got = append(got, now)
		} else if a == Drop {
			t.Errorf("a frame that could be marked is dropped at %d ms", now)
		}
	}
	if d := cmp.Diff([]int64{100, 200, 271, 329}, got); d != "" {
		t.Errorf("marks, in ms (-want +got):\n%s", d)
	}
	off := rfcParams
	off.ecn = false
	c = codel{}
	for now := int64(0); now <= 340; now++ {
		if a := c.verdict(&off, now*ms, 20*ms, 20000, true); a == Mark {
			t.Errorf("marked at %d ms with ECN off", now)
		}
	}
}

func TestNothingIsDroppedWhen(t *testing.T) {
	for name, f := range map[string]func(now int64) (sojourn int64, rest int32){
		"the delay is just below target":               func(int64) (int64, int32) { return 5*ms - 1, 1 << 20 },
		"no more than a frame is left":                 func(int64) (int64, int32) { return sec, 1538 },
		"the delay dips below target once an interval": func(now int64) (int64, int32) { return (now / ms % 100) * ms, 1 << 20 },
	} {
		var c codel
		for now := int64(0); now < 5*sec; now += ms {
			sojourn, rest := f(now)
			if a := c.verdict(&rfcParams, now, sojourn, rest, false); a != Send {
				t.Errorf("%s: %v at %d ms", name, a, now/ms)
				break
			}
		}
	}
	var c codel
	c.verdict(&rfcParams, 0, 5*ms, 1539, false)
	if a := c.verdict(&rfcParams, 100*ms, 5*ms, 1539, false); a != Drop {
		t.Errorf("at target exactly, with a byte more than a frame left: %v, want drop", a)
	}
}

// rfcQueue is CoDel as RFC 8289 section 5 has it: whole frames in a list, and a dequeue that loops over drops.
type rfcQueue struct {
	p          params
	frames     []rfcFrame
	first      int64 // first_above_time, 0 if below
	next       int64
	count      uint32
	last       uint32
	dropping   bool
	dropped    []int // ids, in order
	marked     []int
	bytesInAll int32
}

type rfcFrame struct {
	id       int
	size     int32
	enqueued int64
	ect      bool
}

func (q *rfcQueue) doDequeue(now int64) (f *rfcFrame, ok bool) {
	if len(q.frames) == 0 {
		q.first = 0
		return nil, false
	}
	f = &q.frames[0]
	q.frames = q.frames[1:]
	q.bytesInAll -= f.size
	if now-f.enqueued < q.p.target || q.bytesInAll <= q.p.maxFrame {
		q.first = 0
	} else if q.first == 0 {
		q.first = now + q.p.interval
	} else if now >= q.first {
		ok = true
	}
	return f, ok
}

func (q *rfcQueue) law(t int64) int64 {
	return t + int64(float64(q.p.interval)/math.Sqrt(float64(q.count)))
}

// dequeue returns the frame to send, nil if none.
func (q *rfcQueue) dequeue(now int64) *rfcFrame {
	f, ok := q.doDequeue(now)
	if f == nil {
		q.dropping = false
		return nil
	}
	if q.dropping {
		if !ok {
			q.dropping = false
		}
		for q.dropping && now >= q.next {
			q.count++
			if f.ect && q.p.ecn {
				q.marked = append(q.marked, f.id)
				q.next = q.law(q.next)
				return f
			}
			q.dropped = append(q.dropped, f.id)
			if f, ok = q.doDequeue(now); !ok {
				q.dropping = false
			} else {
				q.next = q.law(q.next)
			}
		}
	} else if ok {
		if f.ect && q.p.ecn {
			q.marked = append(q.marked, f.id)
		} else {
			q.dropped = append(q.dropped, f.id)
			f, _ = q.doDequeue(now)
		}
		q.dropping = true
		delta := q.count - q.last
		q.count = 1
		if delta > 1 && now-q.next < 16*q.p.interval {
			q.count = delta
		}
		q.next = q.law(now)
		q.last = q.count
	}
	return f
}

// The verdict per frame and the RFC's loop must drop, mark and send the same frames, whatever comes.
func TestVerdictsEqualTheRFCsLoop(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		p := params{target: 5 * ms, interval: 100 * ms, maxFrame: 1538, ecn: seed%2 == 0}
		slow := &rfcQueue{p: p}
		var fast codel
		var frames []rfcFrame // what fast works on
		backlog := int32(0)
		var dropped, marked []int
		now, id := int64(1), 0
		arrival := 0.3 + 1.4*rnd.Float64() // frames in per frame out
		due := 0.0
		for range 4000 {
			now += int64(rnd.ExpFloat64() * float64(ms))
			for due += arrival * rnd.Float64() * 2; due >= 1; due-- {
				f := rfcFrame{id: id, size: int32(64 + rnd.IntN(1475)), enqueued: now, ect: rnd.IntN(4) == 0}
				id++
				slow.frames, frames = append(slow.frames, f), append(frames, f)
				slow.bytesInAll += f.size
				backlog += f.size
			}
			if rnd.IntN(500) == 0 {
				arrival = 0.3 + 1.4*rnd.Float64()
			}
			want, got := -1, -1
			if f := slow.dequeue(now); f != nil {
				want = f.id
			}
			for {
				if len(frames) == 0 {
					fast.empty()
					break
				}
				f := frames[0]
				frames = frames[1:]
				backlog -= f.size
				a := fast.verdict(&p, now, now-f.enqueued, backlog, f.ect)
				if a == Drop {
					dropped = append(dropped, f.id)
					continue
				}
				if a == Mark {
					marked = append(marked, f.id)
				}
				got = f.id
				break
			}
			if want != got {
				t.Fatalf("seed %d, at %d: sent frame %d, want %d", seed, now, got, want)
			}
		}
		if d := cmp.Diff(slow.dropped, dropped); d != "" {
			t.Fatalf("seed %d: dropped (-want +got):\n%s", seed, d)
		}
		if d := cmp.Diff(slow.marked, marked); d != "" {
			t.Fatalf("seed %d: marked (-want +got):\n%s", seed, d)
		}
		if seed == 0 && (len(dropped) == 0 || len(marked) == 0) {
			t.Fatal("the trace shows nothing: no drops or no marks")
		}
	}
}

// dropsIn runs a standing queue, a frame a millisecond, and counts drops.
func (c *codel) dropsIn(from, to int64) (n int) {
	for now := from; now < to; now += ms {
		for c.verdict(&rfcParams, now, 20*ms, 20000, false) == Drop {
			n++
		}
	}
	return n
}

func TestClockJumpsCostAtMostAnInterval(t *testing.T) {
	var back codel
	if n := back.dropsIn(1000*sec, 1000*sec+500*ms); n != 7 {
		t.Fatalf("%d drops in 500 ms, want 7", n)
	}
	if n := back.dropsIn(sec, sec+100*ms); n > 4 {
		t.Errorf("clock back by 999 s while dropping: %d drops in the next 100 ms, want a few", n)
	}
	if n := back.dropsIn(sec+100*ms, sec+600*ms); n < 5 {
		t.Errorf("%d drops in the 500 ms after, want CoDel at work again", n)
	}

	var long codel
	long.dropsIn(0, 20*sec)
	if n := long.dropsIn(10*sec, 10*sec+110*ms); n == 0 {
		t.Error("clock back by 10 s, to where the queue stood already: no drop in 110 ms")
	}

	var measuring codel
	measuring.dropsIn(1000*sec, 1000*sec+50*ms)
	if n := measuring.dropsIn(sec, sec+200*ms); n == 0 {
		t.Error("clock back while measuring: no drop in 200 ms")
	}

	var ahead codel
	ahead.dropsIn(0, 500*ms)
	if n := ahead.dropsIn(3600*sec, 3600*sec+100*ms); n != 0 {
		t.Errorf("clock ahead by an hour: %d drops in the next 100 ms, want 0: the delay must be measured again", n)
	}
	if n := ahead.dropsIn(3600*sec+100*ms, 3600*sec+400*ms); n == 0 {
		t.Error("no drops in the 300 ms after that")
	}

	var still codel
	still.dropsIn(0, 100*ms)
	n := 0
	for range 10000 {
		if still.verdict(&rfcParams, 100*ms, 20*ms, 20000, false) == Drop {
			n++
		}
	}
	if n != 1 {
		t.Errorf("clock stands still: %d of 10000 frames dropped, want 1", n)
	}
}

func TestTargetCoversAFrameAndAHalf(t *testing.T) {
	for _, tt := range []struct {
		rate int64
		want time.Duration
	}{
		{0, 5 * time.Millisecond},
		{1e9, 5 * time.Millisecond},
		{10e6, 5 * time.Millisecond},
		{3_691_200, 5 * time.Millisecond},
		{1e6, 18456 * time.Microsecond}, // 1538·8 bits at 1 Mbit/s are 12.304 ms
		{64e3, 288375 * time.Microsecond},
	} {
		q := mustNew[int](t, Config{})
		q.SetRate(tt.rate)
		if got := q.Stats().Target; got != tt.want {
			t.Errorf("target at %d bits/s is %v, want %v", tt.rate, got, tt.want)
		}
	}
	slow := mustNew[int](t, Config{})
	slow.SetRate(64e3)
	if got := slow.params.interval; got != 576750*int64(time.Microsecond) {
		t.Errorf("interval at 64 kbit/s is %v, want twice the target", time.Duration(got))
	}
	q := mustNew[int](t, Config{ShapeRate: 1e6})
	q.SetRate(1e9)
	if got := q.Stats().Target; got != 18456*time.Microsecond {
		t.Errorf("target behind a shaper of 1 Mbit/s is %v, want 18.456ms", got)
	}
	q.SetMaxFrame(9038)
	if got := q.Stats().Target; got != 108456*time.Microsecond {
		t.Errorf("target with jumbo frames is %v, want 108.456ms", got)
	}
	q.SetShapeRate(0)
	if got := q.Stats().Target; got != 5*time.Millisecond {
		t.Errorf("target without the shaper is %v, want 5ms", got)
	}
}

func TestActionsHaveNames(t *testing.T) {
	got := []string{Send.String(), Mark.String(), Drop.String(), Action(9).String()}
	if d := cmp.Diff([]string{"send", "mark", "drop", "unknown"}, got); d != "" {
		t.Error(d)
	}
}
