package fqcodel

import (
	"fmt"
	"sync"
	"testing"
)

// steady is a queue that stays as full as it is: each packet that leaves is queued again.
type steady struct {
	q      *Queue[*int]
	packet []Packet
	now    int64
	gap    int64
	drops  []*int
	items  []int
}

func newSteady(tb testing.TB, cfg Config, flows, frames, depth int) *steady {
	s := &steady{q: mustNew[*int](tb, cfg), gap: 12304, drops: make([]*int, 0, DefaultDropBatch), items: make([]int, flows)}
	for f := range flows {
		s.items[f] = f
		s.packet = append(s.packet, large(uint32(f), frames, 1538))
		for range depth {
			s.push(f)
		}
	}
	return s
}

func (s *steady) push(f int) {
	s.drops, _ = s.q.Push(s.packet[f], &s.items[f], s.now, s.drops[:0])
}

// frame is what a pump does a frame, without the copying.
func (s *steady) frame(h *Head[*int]) {
	f := *h.Item
	c := Cut{Flow: h.Flow, Bytes: h.Bytes, Last: h.Aborted || h.Frame == s.packet[f].Frames-1, Sent: h.Action != Drop}
	if c.Last {
		s.push(f)
	}
	s.now += s.gap
	*h, _ = s.q.Step(c, s.now)
}

// BenchmarkStep is the combined call, one a frame: packets of 46 frames, so that there is little else in it.
func BenchmarkStep(b *testing.B) {
	for _, flows := range []int{1, 4, 32, 500} {
		b.Run(fmt.Sprint("flows=", flows), func(b *testing.B) {
			s := newSteady(b, Config{MemoryLimit: 1 << 30}, flows, 46, 2)
			h, _ := s.q.Step(Cut{}, s.now)
			b.ReportAllocs()
			for b.Loop() {
				s.frame(&h)
			}
		})
	}
	b.Run("fifo", func(b *testing.B) {
		s := newSteady(b, Config{FIFO: true}, 4, 46, 10)
		h, _ := s.q.Step(Cut{}, s.now)
		b.ReportAllocs()
		for b.Loop() {
			s.frame(&h)
		}
	})
	b.Run("shaped", func(b *testing.B) {
		s := newSteady(b, Config{ShapeRate: 1e9}, 4, 46, 10)
		h, _ := s.q.Step(Cut{}, s.now)
		b.ReportAllocs()
		for b.Loop() {
			s.frame(&h)
		}
	})
}

// BenchmarkPacket is Push and Step together, for packets of one frame.
func BenchmarkPacket(b *testing.B) {
	for _, flows := range []int{1, 32, 500} {
		b.Run(fmt.Sprint("flows=", flows), func(b *testing.B) {
			s := newSteady(b, Config{}, flows, 1, 4)
			h, _ := s.q.Step(Cut{}, s.now)
			b.ReportAllocs()
			for b.Loop() {
				s.frame(&h)
			}
		})
	}
}

// BenchmarkLocked is a frame with the lock around it that it needs.
func BenchmarkLocked(b *testing.B) {
	s := newSteady(b, Config{}, 4, 46, 2)
	var mu sync.Mutex
	h, _ := s.q.Step(Cut{}, s.now)
	b.ReportAllocs()
	for b.Loop() {
		mu.Lock()
		s.frame(&h)
		mu.Unlock()
	}
}

// BenchmarkOverflow is a push into a full queue, with others almost as fat as the fattest.
func BenchmarkOverflow(b *testing.B) {
	for _, flows := range []int{1, 32, 500} {
		b.Run(fmt.Sprint("flows=", flows), func(b *testing.B) {
			s := newSteady(b, Config{PacketLimit: 5000}, flows, 1, 5000/flows)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				s.push(i)
				if i++; i == flows {
					i = 0
				}
			}
		})
	}
}

// Nothing is allocated a frame, a packet or a drop once the queue has been as long as it gets.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for name, s := range map[string]*steady{
		"fair":   newSteady(t, Config{}, 32, 46, 1),
		"single": newSteady(t, Config{}, 32, 1, 10),
		"full":   newSteady(t, Config{PacketLimit: 100}, 20, 1, 10),
		"fifo":   newSteady(t, Config{FIFO: true}, 4, 46, 5),
		"shaped": newSteady(t, Config{ShapeRate: 10e9, FlowRate: 5e9}, 8, 46, 2),
	} {
		h, _ := s.q.Step(Cut{}, s.now)
		i := 0
		n := testing.AllocsPerRun(20000, func() {
			if name == "full" {
				s.push(i % 20)
			}
			i++
			s.frame(&h)
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a frame", name, n)
		}
	}
}
