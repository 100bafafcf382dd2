package fqcodel

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFattestFlowLosesItsOldestPackets(t *testing.T) {
	q := mustNew[string](t, Config{MemoryLimit: 10000})
	for _, name := range []string{"a1", "a2", "a3", "a4"} {
		push(t, q, plain(1, 1500), name, 0)
	}
	push(t, q, plain(2, 1500), "b1", 0)
	push(t, q, plain(3, 1500), "c1", 0)
	dropped, ok := q.Push(plain(2, 1500), "b2", 0, nil)
	if d := cmp.Diff([]string{"a1"}, dropped); d != "" || !ok {
		t.Errorf("ok %v, dropped (-want +got):\n%s", ok, d)
	}
	if dropped, ok = q.Push(plain(3, 3000), "c2", 0, dropped[:0]); !ok {
		t.Error("c2 refused")
	}
	// c holds 4500 bytes as much as a: the first of the two loses, then the other is the fattest.
	if len(dropped) != 2 || q.Bytes() > 10000 {
		t.Errorf("dropped %v, %d bytes left", dropped, q.Bytes())
	}
	s := q.Stats()
	if s.OverflowPackets != 3 || s.OverflowFrames != 3 {
		t.Errorf("%d packets, %d frames overflowed, want 3", s.OverflowPackets, s.OverflowFrames)
	}
	q.check(t)
}

// A packet that would be the next to go anyway is refused, and nobody else's.
func TestOwnPacketGoesWhenItsFlowHasNoOther(t *testing.T) {
	q := mustNew[string](t, Config{MemoryLimit: 10000})
	push(t, q, plain(1, 3000), "a", 0)
	push(t, q, plain(2, 3000), "b", 0)
	dropped, ok := q.Push(plain(3, 7000), "c", 0, nil)
	if ok || !slices.Equal(dropped, []string{"c"}) {
		t.Errorf("ok %v, dropped %v, want c itself", ok, dropped)
	}
	if q.Len() != 2 || q.Bytes() != 6000 {
		t.Errorf("%d packets of %d bytes left, want 2 of 6000", q.Len(), q.Bytes())
	}
	q.check(t)
}

// Bytes that have been cut count no more: the fattest is who has most to send.
func TestFattestIsCountedInBytesNotYetCut(t *testing.T) {
	q := mustNew[string](t, Config{MemoryLimit: 10000})
	push(t, q, large(1, 4, 1500), "a", 0)
	for range 3 {
		h, _ := q.Next(0)
		q.Done(h.Flow, 1500, false, true)
	}
	push(t, q, plain(1, 1500), "a2", 0) // a has 3000 left
	push(t, q, plain(2, 2000), "b1", 0)
	push(t, q, plain(2, 2000), "b2", 0)
	push(t, q, plain(3, 1000), "c1", 0)
	dropped, ok := q.Push(plain(4, 2500), "d", 0, nil)
	if !ok || !slices.Equal(dropped, []string{"b1"}) {
		t.Errorf("ok %v, dropped %v, want b1", ok, dropped)
	}
	q.check(t)
}

func TestStartedPacketStaysAndIsAbortedOnlyWhenAlone(t *testing.T) {
	for _, cut := range []int{0, 1, 10} { // 0: Next has given it out and no frame is finished
		q := mustNew[string](t, Config{MemoryLimit: 100000})
		push(t, q, large(1, 46, 1500), "started", 0)
		for range cut {
			h, _ := q.Next(0)
			q.Done(h.Flow, 1500, false, true)
		}
		h, _ := q.Next(0)
		push(t, q, large(1, 10, 1500), "behind", 0)
		dropped, ok := q.Push(large(2, 30, 1500), "b", 0, nil)
		if !ok || cut < 10 && !slices.Equal(dropped, []string{"behind"}) {
			t.Fatalf("cut %d: ok %v, dropped %v, want the packet behind the started one", cut, ok, dropped)
		}
		q.check(t)
		dropped, ok = q.Push(large(3, 20, 1500), "c", 0, nil)
		if !ok {
			t.Fatalf("cut %d: c refused", cut)
		}
		if slices.Contains(dropped, "started") {
			t.Fatalf("cut %d: the started packet was dropped under the pump's hands", cut)
		}
		q.check(t)
		q.Done(h.Flow, h.Bytes, false, true) // the frame in hand is finished, whatever happened meanwhile
		q.check(t)
	}

	q := mustNew[string](t, Config{MemoryLimit: 100000})
	push(t, q, large(1, 60, 1500), "alone", 0)
	h, _ := q.Next(0)
	if dropped, ok := q.Push(large(2, 20, 1500), "b", 0, nil); !ok || len(dropped) > 0 {
		t.Fatalf("ok %v, dropped %v: want b taken and nothing dropped", ok, dropped)
	}
	if q.Len() != 1 || q.Bytes() != 30000 {
		t.Errorf("%d packets, %d bytes; want the aborted one's memory to count as free", q.Len(), q.Bytes())
	}
	h, ok := q.Step(Cut{Flow: h.Flow, Bytes: 1500, Sent: true}, 0)
	if !ok || h.Item != "alone" || !h.Aborted || h.Bytes != 0 {
		for i := 0; i < 3 && !h.Aborted; i++ { // b may go first
			h, _ = q.Step(Cut{Flow: h.Flow, Bytes: 1500, Sent: true}, 0)
		}
	}
	if h.Item != "alone" || !h.Aborted {
		t.Fatalf("the pump does not find out: %+v", h)
	}
	q.check(t)
	h, _ = q.Step(Cut{Flow: h.Flow, Last: true}, 0)
	if s := q.Stats(); h.Item != "b" || s.AbortedPackets != 1 || s.AbortedFrames != 59 {
		t.Errorf("then %q; %d packets, %d frames aborted, want 1 and 59", h.Item, s.AbortedPackets, s.AbortedFrames)
	}
	q.check(t)
}

// What Next gave out and nobody began to cut is no longer protected once Next has chosen again.
func TestGivenUpHeadIsAnOrdinaryPacketAgain(t *testing.T) {
	q := mustNew[string](t, Config{MemoryLimit: 10000})
	push(t, q, plain(1, 6000), "a", 0)
	if h, _ := q.Next(0); h.Item != "a" {
		t.Fatal("a is not the head")
	}
	push(t, q, control(84), "arp", 0)
	if h, _ := q.Next(0); h.Item != "arp" {
		t.Fatal("arp is not the head")
	}
	dropped, ok := q.Push(plain(2, 5000), "b", 0, nil)
	if !ok || !slices.Equal(dropped, []string{"a"}) {
		t.Errorf("ok %v, dropped %v, want a", ok, dropped)
	}
	q.check(t)
}

func TestAtMostABatchIsDropped(t *testing.T) {
	q := mustNew[int](t, Config{MemoryLimit: 1 << 20, PacketLimit: 1 << 20})
	for i := range 10082 {
		push(t, q, plain(1, 104), i, 0)
	}
	// A large packet needs the room of 663 small ones. It gets in, on a part of the limit kept for this, and each later
	// packet drops another batch until the limit is kept again.
	dropped, ok := q.Push(large(2, 46, 1500), -1, 0, nil)
	if !ok || len(dropped) != 64 || dropped[0] != 0 || dropped[63] != 63 {
		t.Fatalf("ok %v, %d dropped: want the 64 oldest", ok, len(dropped))
	}
	for q.Bytes() > 1<<20 {
		before := q.Bytes()
		dropped, ok = q.Push(plain(1, 104), 0, 0, dropped[:0])
		if !ok || len(dropped) > 64 || q.Bytes() >= before {
			t.Fatalf("ok %v, %d dropped, %d bytes after %d", ok, len(dropped), q.Bytes(), before)
		}
	}
	// The part has an end.
	refused := false
	for i := 0; i < 100 && !refused; i++ {
		_, ok = q.Push(large(uint32(10+i), 46, 1500), -1, 0, dropped[:0])
		refused = !ok
		if q.Bytes() > 1<<20+1<<18 {
			t.Fatalf("%d bytes, over the limit by more than a quarter", q.Bytes())
		}
		q.check(t)
	}
	if !refused {
		t.Error("no large packet was refused")
	}
	if peak := q.Stats().PeakBytes; peak > 1<<20+1<<18 || peak < 1<<20 {
		t.Errorf("peak is %d bytes", peak)
	}
}

func TestPacketLimit(t *testing.T) {
	q := mustNew[int](t, Config{PacketLimit: 100})
	total := 0
	for i := range 1000 {
		dropped, _ := q.Push(plain(uint32(i%7), 200), i, 0, nil)
		total += len(dropped)
		if q.Len() > 100 {
			t.Fatalf("%d packets", q.Len())
		}
	}
	if total != 900 || q.Stats().PeakPackets != 100 {
		t.Errorf("%d dropped, peak %d", total, q.Stats().PeakPackets)
	}
	q.check(t)
}

// A packet larger than the limit is not stuck outside for ever: an empty queue takes it.
func TestOversizedPacketIsTakenWhenAlone(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		q := mustNew[int](t, Config{MemoryLimit: 10000, FIFO: fifo})
		push(t, q, large(1, 46, 1500), 1, 0)
		if dropped, ok := q.Push(large(1, 46, 1500), 2, 0, nil); ok == fifo || len(dropped) != 1 {
			t.Errorf("FIFO %v: a second one is taken: %v; dropped %v", fifo, ok, dropped)
		}
		if n := pump(q, 0, 100, nil); n != 46 {
			t.Errorf("%d frames sent", n)
		}
		q.check(t)
	}
}

func TestImpossibleSizesAreRefused(t *testing.T) {
	q := mustNew[int](t, Config{})
	for i, p := range []Packet{
		{}, {Bytes: 100}, {Bytes: -1, Frames: 1}, {Bytes: 100, Frames: -1}, {Bytes: 10, Frames: 11},
		{Bytes: 1<<24 + 1, Frames: 1}, {Bytes: 100, Frames: 1, FrameBytes: -1},
	} {
		if dropped, ok := q.Push(p, i, 0, nil); ok || !slices.Equal(dropped, []int{i}) {
			t.Errorf("%+v: ok %v, dropped %v", p, ok, dropped)
		}
	}
	if s := q.Stats(); s.Invalid != 7 || s.QueuedPackets != 0 || q.Len() != 0 {
		t.Errorf("%+v", s)
	}
	// What does not quite fit together is put right, and the queue goes on.
	push(t, q, Packet{Bytes: 3000, Frames: 2, FrameBytes: 5000}, 1, 0)
	push(t, q, Packet{Bytes: 3000, Frames: 3, FrameBytes: 2999}, 2, 0)
	if n := pump(q, 0, 10, nil); n != 5 || q.Bytes() != 0 {
		t.Errorf("%d frames sent, %d bytes left", n, q.Bytes())
	}
	q.Done(5, 100, true, true) // an empty flow
	q.Done(-1, 100, true, true)
	q.Done(1<<20, 100, true, true)
	if a := q.Verdict(-1, 0, 100, false); a != Send {
		t.Error(a)
	}
	q.check(t)
}

// The caller may give up a packet, or find that it has more or fewer bytes than it said.
func TestCallerMayEndAPacketEarlyOrLate(t *testing.T) {
	q := mustNew[int](t, Config{})
	push(t, q, large(1, 10, 1000), 1, 0)
	h, _ := q.Next(0)
	q.Done(h.Flow, 1000, false, true)
	q.Done(h.Flow, 0, true, false)
	if s := q.Stats(); s.DiscardedPackets != 1 || s.DiscardedFrames != 9 || q.Bytes() != 0 || q.Len() != 0 {
		t.Errorf("given up after one frame: %+v", s)
	}
	push(t, q, large(1, 2, 1000), 2, 0)
	for range 5 {
		q.Next(0)
		q.Done(h.Flow, 1500, false, true)
		if q.Bytes() < 0 {
			t.Fatalf("%d bytes", q.Bytes())
		}
	}
	q.Next(0)
	q.Done(h.Flow, 1500, true, true)
	if q.Bytes() != 0 || q.Len() != 0 || q.Waiting() {
		t.Errorf("%d bytes, %d packets left", q.Bytes(), q.Len())
	}
}

// One goroutine pumps, copying outside the lock; others push through a queue that overflows all the time. No item is given
// back twice, none is lost, and none is dropped while the pump holds it.
func TestPumpAndPushersAtOnce(t *testing.T) {
	const pushers, each = 4, 5000
	type item struct {
		frames       int
		inHand, gone bool // guarded by the ownership that the queue promises, and by -race
	}
	q := mustNew[*item](t, Config{MemoryLimit: 300000, PacketLimit: 200})
	var mu sync.Mutex
	var wg sync.WaitGroup
	release := func(it *item, why string) {
		if it.inHand || it.gone {
			t.Errorf("%s: item in hand %v, gone %v", why, it.inHand, it.gone)
		}
		it.gone = true
	}
	released := make([]int, pushers+1)
	for p := range pushers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var dropped []*item
			for i := range each {
				mu.Lock()
				frames := 1 + i%40
				dropped, _ = q.Push(large(uint32(i%5+p*2), frames, 1400), &item{frames: frames}, int64(i)*ms, dropped[:0])
				mu.Unlock()
				runtime.Gosched()
				for _, it := range dropped {
					release(it, "dropped")
					released[p]++
				}
			}
		}()
	}
	stop := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		now := int64(0)
		step := func(c Cut) (Head[*item], bool) {
			now += ms / 10
			mu.Lock()
			defer mu.Unlock()
			return q.Step(c, now)
		}
		for {
			h, ok := step(Cut{})
			for ok {
				h.Item.inHand = true
				c := Cut{Flow: h.Flow, Bytes: 1400, Last: h.Aborted || h.Frame == h.Item.frames-1, Sent: h.Action != Drop && !h.Aborted}
				h.Item.inHand = false
				if c.Last {
					release(h.Item, "sent")
					released[pushers]++
				}
				h, ok = step(c)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	wg.Wait()
	close(stop)
	<-finished
	mu.Lock()
	defer mu.Unlock()
	q.check(t)
	total := len(q.Drain(nil))
	for _, n := range released {
		total += n
	}
	if total != pushers*each {
		t.Errorf("%d items came back, of %d", total, pushers*each)
	}
	if s := q.Stats(); s.OverflowPackets == 0 || s.SentFrames == 0 {
		t.Errorf("the test shows nothing: %+v", s)
	}
}
