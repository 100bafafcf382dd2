package fqcodel

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Fewer than 1 in 100 of up to 100 flows that are busy at once may have to share a queue. With 8 ways none does.
func TestBusyFlowsHaveQueuesOfTheirOwn(t *testing.T) {
	hashes := map[string]func(rnd *rand.Rand, i int) uint32{
		"keyed hashes":        func(rnd *rand.Rand, _ int) uint32 { return rnd.Uint32() },
		"consecutive numbers": func(_ *rand.Rand, i int) uint32 { return uint32(i) },
		"high bits only":      func(_ *rand.Rand, i int) uint32 { return uint32(i) << 22 },
	}
	for name, hash := range hashes {
		for _, flows := range []int{32, 64, 100} {
			shared, total := 0, 0
			for seed := range uint64(200) {
				q, err := New[int](Config{}, seed*0x9e3779b97f4a7c15)
				if err != nil {
					t.Fatal(err)
				}
				rnd := rand.New(rand.NewPCG(seed, 7))
				taken := map[Flow]bool{}
				for i := range flows {
					h := hash(rnd, i)
					push(t, q, plain(h, 100), i, 0)
					f, _ := q.Find(h)
					if taken[f] {
						shared++
					}
					taken[f] = true
					total++
				}
				if got := q.Stats(); int(got.NewFlows) != len(taken) {
					t.Fatalf("%d new flows in %d queues", got.NewFlows, len(taken))
				}
			}
			if shared*100 >= total {
				t.Errorf("%s: %d of %d flows share a queue (%d at once), want less than 1 %%", name, shared, total, flows)
			}
		}
	}
}

// Different seeds put the same hashes into different queues, so that a peer cannot choose who collides.
func TestSeedDecidesWhoCollides(t *testing.T) {
	place := func(seed uint64) (where []Flow) {
		q, err := New[int](Config{}, seed)
		if err != nil {
			t.Fatal(err)
		}
		for h := range uint32(32) {
			push(t, q, plain(h, 100), 0, 0)
			f, _ := q.Find(h)
			where = append(where, f)
		}
		return where
	}
	if cmp.Equal(place(1), place(2)) {
		t.Error("two seeds place 32 flows alike")
	}
	if d := cmp.Diff(place(1), place(1)); d != "" {
		t.Errorf("one seed places them differently:\n%s", d)
	}
}

// With more busy flows than queues some must share; each flow still keeps its own order and nothing is lost.
func TestFlowsKeepTheirOrderWhenTheyShare(t *testing.T) {
	type item struct{ flow, n int }
	const flows = 14 // fewer than two per queue of the one set
	q := mustNew[item](t, Config{Flows: 8})
	rnd := rand.New(rand.NewPCG(3, 3))
	var sent, seen [flows]int
	now := int64(0)
	for range 20000 {
		now += 1000
		f := rnd.IntN(flows)
		if rnd.IntN(2) == 0 || q.Len() > 50 {
			pump(q, now, 1, func(h Head[item], last bool) {
				if last {
					if h.Item.n != seen[h.Item.flow] {
						t.Fatalf("flow %d: packet %d sent, want %d", h.Item.flow, h.Item.n, seen[h.Item.flow])
					}
					seen[h.Item.flow]++
				}
			})
		} else {
			push(t, q, large(uint32(f), 1+rnd.IntN(3), 200), item{f, sent[f]}, now)
			sent[f]++
		}
		q.check(t)
	}
	if q.Stats().Collisions == 0 {
		t.Error("the test shows nothing: no collisions")
	}
}

func TestFlowComesBackToItsQueueAndCounters(t *testing.T) {
	q := mustNew[int](t, Config{})
	for i := range 5 {
		push(t, q, plain(7, 100), i, int64(i)*sec)
		pump(q, int64(i)*sec+ms, 10, nil)
	}
	f, ok := q.Find(7)
	if !ok {
		t.Fatal("flow not found after it went idle")
	}
	got := q.FlowStats(f)
	if got.QueuedPackets != 5 || got.SentFrames != 5 || got.SentBytes != 500 || got.MaxSojourn.Milliseconds() != 1 {
		t.Errorf("counters after five packets: %+v", got)
	}
	if _, ok := q.Find(8); ok {
		t.Error("a flow that never sent is found")
	}
	if d := cmp.Diff(FlowStats{}, q.FlowStats(-1)); d != "" {
		t.Errorf("no flow has counters:\n%s", d)
	}
	if d := cmp.Diff(FlowStats{}, q.FlowStats(Flow(q.Flows()))); d != "" {
		t.Errorf("no flow has counters:\n%s", d)
	}
}

// A queue that passes to another flow passes on neither counters nor CoDel's state.
func TestNextOwnerStartsAfresh(t *testing.T) {
	q := mustNew[int](t, Config{Flows: 1})
	for i := range 100 {
		push(t, q, plain(1, 1500), i, 0)
	}
	pump(q, sec, 1, nil)
	pump(q, sec+200*ms, 1000, nil)
	if s := q.FlowStats(0); s.Drops == 0 {
		t.Fatalf("no drops: %+v", s)
	}
	push(t, q, plain(2, 100), 0, 2*sec)
	if s := q.FlowStats(0); s.Drops != 0 || s.QueuedPackets != 1 || s.Backlog != 100 {
		t.Errorf("counters of the new flow: %+v", s)
	}
	if c := q.flows[0].codel; c != (codel{}) {
		t.Errorf("CoDel state of the new flow: %+v", c)
	}
}

// A guest whose older packets are all dropped to make room for its newest one is still at home where that one is.
func TestGuestStaysWhereItsNewestPacketIs(t *testing.T) {
	q := mustNew[string](t, Config{Flows: 1, MemoryLimit: 10000})
	push(t, q, plain(1, 1000), "owner", 0)
	push(t, q, plain(2, 3000), "guest 1", 0)
	dropped, ok := q.Push(plain(2, 9500), "guest 2", 0, nil)
	if _, found := q.Find(2); !ok || len(dropped) != 2 || !found {
		t.Errorf("ok %v, dropped %v; the guest is found: %v", ok, dropped, found)
	}
	q.check(t)
}

// While some queues of its set are free, a flow takes the one that has been idle longest: the others find theirs again.
func TestIdleQueuesAreReusedOldestFirst(t *testing.T) {
	q := mustNew[int](t, Config{Flows: 8})
	once := func(hash uint32) {
		push(t, q, plain(hash, 100), 0, 0)
		pump(q, 0, 10, nil)
	}
	known := func() (n []uint32) {
		for h := range uint32(20) {
			if _, ok := q.Find(h); ok {
				n = append(n, h)
			}
		}
		return n
	}
	for h := range uint32(8) {
		once(h)
	}
	once(1)
	once(0)
	if d := cmp.Diff([]uint32{0, 1, 2, 3, 4, 5, 6, 7}, known()); d != "" {
		t.Errorf("eight flows one after another:\n%s", d)
	}
	once(8)
	once(9)
	if d := cmp.Diff([]uint32{0, 1, 4, 5, 6, 7, 8, 9}, known()); d != "" {
		t.Errorf("after two more, without the two that were idle longest:\n%s", d)
	}
}

// A flow keeps its queue although its first packet found no room.
func TestRefusedFlowKeepsItsQueue(t *testing.T) {
	q := mustNew[int](t, Config{Flows: 8, MemoryLimit: 10000})
	push(t, q, plain(1, 6000), 0, 0)
	if _, ok := q.Push(plain(2, 9000), 0, 0, nil); ok {
		t.Fatal("there was room")
	}
	for h := range uint32(6) { // as many as there are queues left
		push(t, q, plain(10+h, 100), 0, 0)
	}
	for _, h := range []uint32{1, 2, 10, 11, 12, 13, 14, 15} {
		if _, ok := q.Find(h); !ok {
			t.Errorf("flow %d has lost its queue", h)
		}
	}
}
