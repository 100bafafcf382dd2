package fqcodel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// wire is a link in simulated time: each frame takes its size at a rate.
type wire struct {
	now  int64
	rate int64 // bits/s
}

func (w *wire) send(bytes int) { w.now += int64(bytes) * 8 * sec / w.rate }

// 32 bulk flows, some with single frames and some with packets of 46 segments, some with small frames: each gets its share
// of the bytes within 10 %, in every window of half a second.
func TestBulkFlowsShareWithinTenPercent(t *testing.T) {
	const flows, window = 32, sec / 2
	q := mustNew[int](t, Config{MemoryLimit: 64 << 20})
	rnd := rand.New(rand.NewPCG(1, 2))
	w := wire{rate: 100e6}
	packet := func(f int) Packet {
		switch f % 4 {
		case 0:
			return large(uint32(f), 46, 1498)
		case 1:
			return plain(uint32(f), 1538)
		case 2:
			return plain(uint32(f), 84+rnd.IntN(1455))
		default:
			return large(uint32(f), 200, 130)
		}
	}
	refill := func() {
		for f := range flows {
			for q.waitingOf(uint32(f)) < 20000 {
				push(t, q, packet(f), f, w.now)
			}
		}
	}
	refill()
	var sent [flows]int
	for end := window; end <= 4*window; end += window {
		for w.now < end {
			refill()
			pump(q, w.now, 1, func(h Head[int], _ bool) {
				if h.Action == Send {
					sent[h.Item] += h.Bytes
					w.send(h.Bytes)
				}
			})
		}
		total := 0
		for _, n := range sent {
			total += n
		}
		for f, n := range sent {
			if share := float64(n) * flows / float64(total); share < 0.9 || share > 1.1 {
				t.Errorf("until %d ms flow %d got %.2f of its share", end/ms, f, share)
			}
		}
		sent = [flows]int{}
	}
}

// Between two frames of one large packet there is room for another flow's.
func TestSmallFlowPassesBetweenTwoFramesOfAPacket(t *testing.T) {
	q := mustNew[string](t, Config{})
	push(t, q, large(1, 46, 1498), "bulk", 0)
	var order []string
	for i := range 10 {
		if i == 4 {
			push(t, q, plain(2, 122), "ping", 0)
		}
		pump(q, 0, 1, func(h Head[string], _ bool) { order = append(order, h.Item) })
	}
	want := []string{"bulk", "bulk", "bulk", "bulk", "ping", "bulk", "bulk", "bulk", "bulk", "bulk"}
	if !slices.Equal(order, want) {
		t.Errorf("order is %v, want %v", order, want)
	}
}

// 1000 sparse flows that use a tenth of the link together, beside 4 bulk flows: half of their frames wait for no more than
// the frame that is on the wire, and 99 of 100 for a few.
func TestSparseFlowsDoNotWaitForBulk(t *testing.T) {
	const sparse, bulk = 1000, 4
	q := mustNew[int](t, Config{})
	rnd := rand.New(rand.NewPCG(5, 6))
	w := wire{rate: 100e6}
	frame := 1538 * 8 * sec / w.rate
	var waits []int64
	born := map[int]int64{}
	due, n := 0.0, 0
	mean := float64(122*8*sec) / float64(w.rate) * 10 // between two sparse frames: a tenth of the link
	var dropped []int
	for w.now < 3*sec {
		for b := range bulk {
			for q.waitingOf(uint32(b)) < 200000 {
				push(t, q, large(uint32(b), 46, 1538), -1, w.now)
			}
		}
		for ; due < float64(w.now); due += rnd.ExpFloat64() * mean {
			n++
			born[n] = int64(due)
			dropped, _ = q.Push(plain(uint32(1000+rnd.IntN(sparse)), 122), n, int64(due), dropped)
		}
		pump(q, w.now, 1, func(h Head[int], _ bool) {
			if h.Action != Send {
				return
			}
			if h.Item > 0 {
				waits = append(waits, w.now-born[h.Item])
			}
			w.send(h.Bytes)
		})
	}
	if len(dropped) > 0 || len(waits) < 2000 {
		t.Fatalf("%d dropped, %d sent", len(dropped), len(waits))
	}
	slices.Sort(waits)
	p50, p99 := waits[len(waits)/2], waits[len(waits)*99/100]
	if p50 > frame {
		t.Errorf("p50 of the sparse flows is %d µs, want at most one frame, %d µs", p50/1000, frame/1000)
	}
	if p99 > 5*frame {
		t.Errorf("p99 of the sparse flows is %d µs, want at most five frames", p99/1000)
	}
	q.check(t)
}

// A flow that sends just a little more than its share of each round does not stay among the new flows.
func TestNewFlowsCannotStarveOldOnes(t *testing.T) {
	q := mustNew[int](t, Config{})
	for i := range 400 {
		push(t, q, plain(1, 1514), i, 0)
	}
	pump(q, 0, 2, nil) // now it is an old flow
	got := [3]int{}
	for range 200 {
		for _, hash := range []uint32{2, 3} {
			if q.waitingOf(hash) == 0 {
				push(t, q, plain(hash, 1514), 0, 0) // a whole quantum whenever it is empty
			}
		}
		pump(q, 0, 1, func(h Head[int], _ bool) {
			for i := range got {
				if f, _ := q.Find(uint32(1 + i)); f == h.Flow {
					got[i]++
				}
			}
		})
	}
	for i, n := range got {
		if n < 60 || n > 74 {
			t.Errorf("flow %d sent %d of 200 frames, want a third: %v", i, n, got)
		}
	}
}

// A frame dropped by CoDel costs its flow nothing of its share.
func TestSkippedFramesAreNotCharged(t *testing.T) {
	q := mustNew[int](t, Config{})
	push(t, q, large(1, 10, 1000), 0, 0)
	h, _ := q.Next(0)
	q.Done(h.Flow, 1000, false, false)
	if d := q.flows[h.Flow].deficit; d != DefaultQuantum {
		t.Errorf("deficit after a skipped frame is %d, want %d", d, DefaultQuantum)
	}
	if q.Bytes() != 9000 {
		t.Errorf("%d bytes left after a skipped frame, want 9000", q.Bytes())
	}
	h, _ = q.Next(0)
	if h.Frame != 1 {
		t.Errorf("next frame is number %d, want 1", h.Frame)
	}
}

// A drop takes one frame of a packet and the packet goes on.
func TestCoDelDropsFramesNotPackets(t *testing.T) {
	q := mustNew[int](t, Config{})
	for i := range 10 {
		push(t, q, large(1, 46, 1498), i, 0)
	}
	w := wire{rate: 10e6}
	frames, drops, finished := map[int]int{}, map[int]int{}, 0
	for q.Len() > 0 {
		pump(q, w.now, 1, func(h Head[int], last bool) {
			if h.Action == Drop {
				drops[h.Item]++
			} else {
				frames[h.Item]++
				w.send(h.Bytes)
			}
			if last {
				finished++
			}
		})
		q.check(t)
	}
	for i := range 10 {
		if frames[i]+drops[i] != 46 || drops[i] > 10 {
			t.Errorf("packet %d: %d frames sent and %d dropped, want 46 together and few dropped", i, frames[i], drops[i])
		}
	}
	s := q.Stats()
	if finished != 10 || s.SentPackets != 10 || s.Drops == 0 || s.SentFrames+s.Drops != 460 || s.DiscardedPackets != 0 {
		t.Errorf("%d packets finished; %+v", finished, s)
	}
}

func TestMarksAreSetInsteadOfDrops(t *testing.T) {
	q := mustNew[int](t, Config{})
	p := large(1, 46, 1498)
	p.ECT = true
	for i := range 10 {
		push(t, q, p, i, 0)
	}
	w := wire{rate: 10e6}
	marks := 0
	for q.Len() > 0 {
		pump(q, w.now, 1, func(h Head[int], _ bool) {
			if h.Action == Mark {
				marks++
			}
			w.send(h.Bytes)
		})
	}
	s := q.Stats()
	if s.SentFrames != 460 || s.Drops != 0 || marks == 0 || s.Marks != uint64(marks) {
		t.Errorf("%d marks seen; %+v", marks, s)
	}
}

// A verdict that the ring had no room for is given again, and counted when it is followed.
func TestVerdictWaitsForTheRing(t *testing.T) {
	for _, ect := range []bool{false, true} {
		q := mustNew[int](t, Config{})
		p := large(1, 46, 1498)
		p.ECT = ect
		push(t, q, p, 0, 0)
		q.Step(Cut{}, 10*ms)
		h, _ := q.Step(Cut{}, 110*ms)
		want := map[bool]Action{false: Drop, true: Mark}[ect]
		for i := range 5 {
			if h.Action != want {
				t.Fatalf("ect %v, look %d: %v, want %v", ect, i, h.Action, want)
			}
			if s := q.Stats(); s.Drops+s.Marks != 0 {
				t.Fatalf("counted before it happened: %+v", s)
			}
			h, _ = q.Step(Cut{}, 111*ms)
		}
		h, _ = q.Step(Cut{Flow: h.Flow, Bytes: h.Bytes, Sent: ect}, 111*ms)
		if s := q.Stats(); s.Drops+s.Marks != 1 || h.Action != Send || h.Frame != 1 {
			t.Errorf("ect %v: then %v for frame %d; %+v", ect, h.Action, h.Frame, s)
		}
	}
}
