package fqcodel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsCoverAllTimes(t *testing.T) {
	for _, sub := range []uint{fineBits, coarseBits} {
		buckets := (topBits - int(sub) + 1) << sub
		for i := range buckets {
			lo, hi := bucketStart(i, sub), bucketStart(i+1, sub)
			if lo >= hi || bucketOf(lo, sub) != i || bucketOf(hi-1, sub) != i {
				t.Fatalf("bucket %d of %d: %d..%d; they go to %d and %d", i, buckets, lo, hi-1, bucketOf(lo, sub), bucketOf(hi-1, sub))
			}
			if i > 1<<sub && hi-lo > lo>>sub {
				t.Errorf("bucket %d is %d wide at %d", i, hi-lo, lo)
			}
		}
		if bucketOf(-5, sub) != 0 || bucketOf(1<<62, sub) != buckets-1 {
			t.Error("times out of range do not go to the end buckets")
		}
	}
}

func TestQuantilesAreRightToAnEighth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 9))
	var h Histogram
	if h.Quantile(0.5) != 0 || h.Max() != 0 || h.Count() != 0 {
		t.Error("an empty histogram is not empty")
	}
	var all []int64
	for range 20000 {
		v := int64(rnd.ExpFloat64() * 3e6)
		all = append(all, v)
		h.add(v)
	}
	slices.Sort(all)
	for _, p := range []float64{0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1} {
		want := float64(all[min(int(p*float64(len(all))), len(all)-1)])
		if got := float64(h.Quantile(p)); got < want*7/8-1024 || got > want*9/8+1024 {
			t.Errorf("p%v is %v, want %v", p*100, time.Duration(got), time.Duration(want))
		}
	}
	if h.Max() != time.Duration(all[len(all)-1]) || h.Quantile(2) != h.Max() || h.Count() != 20000 {
		t.Errorf("max %v, count %d", h.Max(), h.Count())
	}
	before := h
	for range 1000 {
		h.add(sec)
	}
	since := h.Since(&before)
	if since.Count() != 1000 || since.Quantile(0.5) < 7*time.Second/8 {
		t.Errorf("since then: %d, median %v", since.Count(), since.Quantile(0.5))
	}
}

func TestSojournIsTheTimeSincePush(t *testing.T) {
	q := mustNew[int](t, Config{})
	push(t, q, large(1, 3, 1000), 0, 1000*ms)
	for i, now := range []int64{1002 * ms, 1004 * ms, 999 * ms} { // the last one: the clock went back
		h, _ := q.Step(Cut{}, now)
		if want := time.Duration(max(now-1000*ms, 0)); h.Sojourn != want {
			t.Errorf("frame %d: sojourn %v, want %v", i, h.Sojourn, want)
		}
		q.Done(h.Flow, 1000, i == 2, true)
	}
	f, _ := q.Find(1)
	if s := q.FlowStats(f); s.MaxSojourn != 4*time.Millisecond || s.P99 < 3*time.Millisecond || s.P99 > 4*time.Millisecond ||
		s.P50 < time.Millisecond || s.P50 > 3*time.Millisecond {
		t.Errorf("%+v", s)
	}
}

func TestStatsTellWhatWaits(t *testing.T) {
	q := mustNew[int](t, Config{})
	if q.Waiting() {
		t.Error("an empty queue has something waiting")
	}
	for i := range 6 {
		push(t, q, large(uint32(i%3), 2, 1000), i, 0)
	}
	h, _ := q.Next(0)
	q.Done(h.Flow, 1000, false, true)
	s := q.Stats()
	if s.Packets != 6 || s.Bytes != 11000 || s.Backlogged != 3 || s.PeakBytes != 12000 || s.PeakPackets != 6 || s.NewFlows != 3 ||
		s.QueuedFrames != 12 || s.SentFrames != 1 || s.SentBytes != 1000 || s.SentPackets != 0 || !q.Waiting() {
		t.Errorf("%+v", s)
	}
	if q.Len() != s.Packets || q.Bytes() != s.Bytes {
		t.Errorf("Len %d, Bytes %d", q.Len(), q.Bytes())
	}
	if got := q.Drain(nil); len(got) != 6 || q.Len() != 0 || q.Bytes() != 0 || q.Waiting() {
		t.Errorf("drained %v; %d left", got, q.Len())
	}
	q.check(t)
	if _, ok := q.Next(0); ok {
		t.Error("a drained queue has a head")
	}
	push(t, q, plain(1, 100), 7, 0)
	if n := pump(q, 0, 10, nil); n != 1 {
		t.Error("a drained queue does not go on")
	}
}

// When the link comes up the down time is forgotten: nothing is dropped for it.
func TestRefreshForgetsTheDownTime(t *testing.T) {
	for _, refresh := range []bool{false, true} {
		q := mustNew[int](t, Config{})
		for i := range 20 {
			push(t, q, large(1, 46, 1000), i, 0)
		}
		pump(q, 90*ms, 1, nil)
		pump(q, 190*ms, 1, nil) // CoDel is dropping
		if q.Stats().Drops != 1 {
			t.Fatalf("%d drops before the link goes down", q.Stats().Drops)
		}
		// Down for less than CoDel's own memory.
		if refresh {
			q.Refresh(sec)
		}
		h, _ := q.Next(sec)
		if refresh != (h.Sojourn == 0) {
			t.Errorf("refresh %v: sojourn is %v", refresh, h.Sojourn)
		}
		for now := sec; now < sec+50*ms; now += ms {
			pump(q, now, 4, nil)
		}
		if drops := q.Stats().Drops - 1; refresh != (drops == 0) {
			t.Errorf("refresh %v: %d drops in the 50 ms after", refresh, drops)
		}
		q.check(t)
	}
}

// It holds whether or not verdicts are pending, and for the shaper.
func TestRefreshClearsPendingVerdicts(t *testing.T) {
	q := mustNew[int](t, Config{})
	push(t, q, large(1, 46, 1498), 0, 0)
	q.Step(Cut{}, 10*ms)
	if h, _ := q.Step(Cut{}, 110*ms); h.Action != Drop {
		t.Fatal("no drop pending")
	}
	q.Refresh(111 * ms)
	if h, _ := q.Step(Cut{}, 111*ms); h.Action != Send {
		t.Errorf("after Refresh: %v", h.Action)
	}
}

// What has been sent or dropped is not kept alive by the queue.
func TestQueueForgetsItems(t *testing.T) {
	q := mustNew[*int](t, Config{PacketLimit: 20})
	for i := range 1000 {
		q.Push(plain(uint32(i%3), 100), new(int), 0, nil)
	}
	pump(q, 0, 1000, nil)
	for _, c := range q.store.chunks {
		for i := range c {
			if c[i].item != nil {
				t.Fatal("an item is still referred to")
			}
		}
	}
}
