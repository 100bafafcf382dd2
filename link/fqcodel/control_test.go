package fqcodel

import "testing"

func control(bytes int) Packet { return Packet{Bytes: bytes, Frames: 1, Control: true} }

// ARP goes first, whatever waits.
func TestControlTrafficGoesFirst(t *testing.T) {
	q := mustNew[string](t, Config{})
	for h := range uint32(50) {
		push(t, q, large(h, 46, 1498), "bulk", 0)
	}
	pump(q, 0, 50, nil)
	push(t, q, plain(1000, 100), "ping", 0)
	push(t, q, control(84), "arp", 0)
	var order []string
	pump(q, 0, 3, func(h Head[string], _ bool) {
		order = append(order, h.Item)
		if h.Item == "arp" && h.Flow != q.Control() {
			t.Errorf("control traffic has flow %d, want %d", h.Flow, q.Control())
		}
	})
	if order[0] != "arp" || q.Stats().ControlFrames != 1 {
		t.Errorf("order is %v, %d control frames counted", order, q.Stats().ControlFrames)
	}
}

// A flood of it does not starve the others: a ninth of the bytes and a burst. And the flood itself goes on.
func TestControlTrafficIsBounded(t *testing.T) {
	q := mustNew[int](t, Config{MemoryLimit: 64 << 20})
	var bytes [2]int
	for range 20000 {
		for q.controlLen < 10 {
			push(t, q, control(84), 1, 0)
		}
		for q.packets < 20 {
			push(t, q, plain(1, 1538), 0, 0)
		}
		pump(q, 0, 1, func(h Head[int], _ bool) { bytes[h.Item] += h.Bytes })
	}
	share := float64(bytes[1]) / float64(bytes[0]+bytes[1])
	if share < 0.10 || share > 0.12 {
		t.Errorf("control traffic got %.3f of the bytes, want a ninth", share)
	}
}

// Alone it has the whole link.
func TestControlTrafficAloneIsNotHeldBack(t *testing.T) {
	q := mustNew[int](t, Config{})
	for i := range 2000 {
		push(t, q, control(84), i, 0)
		if n := pump(q, 0, 10, nil); n != 1 {
			t.Fatalf("packet %d: %d frames sent", i, n)
		}
	}
}

// CoDel leaves it alone, and of too many the oldest go.
func TestControlQueueKeepsTheNewest(t *testing.T) {
	q := mustNew[int](t, Config{})
	var dropped []int
	ok := false
	for i := range 300 {
		if dropped, ok = q.Push(control(84), i, 0, dropped); !ok {
			t.Fatalf("packet %d refused", i)
		}
	}
	if len(dropped) != 300-controlPackets || dropped[0] != 0 || dropped[len(dropped)-1] != 300-controlPackets-1 {
		t.Errorf("dropped %v, want the 44 oldest", dropped)
	}
	if n := pump(q, 10*sec, 1000, nil); n != controlPackets || q.Stats().Drops != 0 {
		t.Errorf("%d sent after 10 s, %d dropped by CoDel", n, q.Stats().Drops)
	}
	q.check(t)
}

// It is not what makes room for others, even when its queue is the longest.
func TestControlTrafficIsNotDroppedForOthers(t *testing.T) {
	q := mustNew[string](t, Config{PacketLimit: 30})
	for range 20 {
		push(t, q, control(84), "arp", 0)
	}
	for h := range uint32(200) {
		dropped, _ := q.Push(plain(h, 64), "data", 0, nil)
		for _, d := range dropped {
			if d == "arp" {
				t.Fatal("control traffic dropped")
			}
		}
		q.check(t)
	}
	q = mustNew[string](t, Config{PacketLimit: 5})
	for i := range 10 {
		if _, ok := q.Push(control(84), "arp", 0, nil); ok != (i < 5) {
			t.Errorf("control packet %d of at most 5: taken %v", i, ok)
		}
		q.check(t)
	}
}
