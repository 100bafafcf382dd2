package fqcodel

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFIFOKeepsTheOrderOfArrival(t *testing.T) {
	q := mustNew[int](t, Config{FIFO: true})
	rnd := rand.New(rand.NewPCG(1, 1))
	in, out := 0, 0
	now := int64(0)
	for range 5000 {
		now += 10 * ms
		if rnd.IntN(2) == 0 {
			p := large(rnd.Uint32(), 1+rnd.IntN(5), 1000)
			p.Control = rnd.IntN(4) == 0
			push(t, q, p, in, now)
			in++
		}
		pump(q, now, 1+rnd.IntN(3), func(h Head[int], last bool) {
			if h.Item != out || h.Action != Send {
				t.Fatalf("packet %d (%v), want %d", h.Item, h.Action, out)
			}
			if last {
				out++
			}
		})
		q.check(t)
	}
	if out < 1000 {
		t.Errorf("only %d packets came out", out)
	}
}

// A full FIFO refuses what comes, whoever it is from, and drops nothing else.
func TestFullFIFORefuses(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want []int // those taken
	}{
		{Config{FIFO: true, PacketLimit: 3}, []int{0, 1, 2}},
		{Config{FIFO: true, MemoryLimit: 3000}, []int{0, 1, 2}},
		{Config{FIFO: true, MemoryLimit: 3500}, []int{0, 1, 2, 6}}, // number 6 is smaller
	} {
		q := mustNew[int](t, tt.cfg)
		var taken, refused []int
		for i := range 8 {
			p := plain(uint32(i), 1000)
			if i == 6 {
				p = plain(6, 500)
			}
			dropped, ok := q.Push(p, i, 0, nil)
			if ok {
				taken = append(taken, i)
			} else if !slices.Equal(dropped, []int{i}) {
				t.Errorf("%+v: packet %d refused, dropped %v", tt.cfg, i, dropped)
			}
			refused = append(refused, dropped...)
			q.check(t)
		}
		if !slices.Equal(taken, tt.want) || len(taken)+len(refused) != 8 {
			t.Errorf("%+v: took %v, want %v", tt.cfg, taken, tt.want)
		}
		if s := q.Stats(); s.OverflowPackets != uint64(len(refused)) {
			t.Errorf("%d counted as overflow, of %d", s.OverflowPackets, len(refused))
		}
	}
}

// No CoDel, however long it takes.
func TestFIFONeverDropsWhatItTook(t *testing.T) {
	q := mustNew[int](t, Config{FIFO: true})
	for i := range 1000 {
		push(t, q, large(uint32(i), 2, 1000), i, 0)
	}
	for now := int64(0); q.Len() > 0; now += 10 * ms {
		pump(q, now, 1, func(h Head[int], _ bool) {
			if h.Action != Send {
				t.Fatal(h.Action)
			}
		})
	}
	s := q.Stats()
	if s.SentFrames != 2000 || s.SentPackets != 1000 || s.Sojourn.Max().Milliseconds() != 19990 {
		t.Errorf("%d frames, %d packets, longest sojourn %v", s.SentFrames, s.SentPackets, s.Sojourn.Max())
	}
	if f, ok := q.Find(12345); !ok || q.FlowStats(f).SentFrames != 2000 {
		t.Error("the one flow of a FIFO is not found")
	}
}
