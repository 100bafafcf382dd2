package fqcodel

import (
	"testing"
	"time"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
)

func mustNew[T any](t testing.TB, cfg Config) *Queue[T] {
	t.Helper()
	q, err := New[T](cfg, 0x1234_5678_9abc_def0)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// plain describes a packet of one frame.
func plain(hash uint32, bytes int) Packet { return Packet{Hash: hash, Bytes: bytes, Frames: 1} }

// large describes a packet of several frames of equal size.
func large(hash uint32, frames, frameBytes int) Packet {
	return Packet{Hash: hash, Bytes: frames * frameBytes, Frames: frames, FrameBytes: frameBytes}
}

// push queues an item that must find room without a drop.
func push[T any](t testing.TB, q *Queue[T], p Packet, item T, now int64) {
	t.Helper()
	if dropped, ok := q.Push(p, item, now, nil); !ok || len(dropped) > 0 {
		t.Fatalf("push of %+v dropped %v, ok %v", p, dropped, ok)
	}
}

// pump sends frames for as long as there are any, at one time, and gives each to sent.
func pump[T any](q *Queue[T], now int64, most int, sent func(h Head[T], last bool)) (n int) {
	h, ok := q.Step(Cut{}, now)
	for ok && n < most {
		last := h.Aborted || q.framesLeft(h.Flow) == 1
		c := Cut{Flow: h.Flow, Bytes: h.Bytes, Last: last, Sent: !h.Aborted && h.Action != Drop}
		if c.Sent {
			n++
		}
		if sent != nil {
			sent(h, last)
		}
		h, ok = q.Step(c, now)
	}
	return n
}

// waitingOf is the backlog of the flow with this hash.
func (q *Queue[T]) waitingOf(hash uint32) int {
	if f, ok := q.Find(hash); ok {
		return int(q.backlog[f])
	}
	return 0
}

// framesLeft is what a cutter would know: how many frames the packet at the head of a flow has left.
func (q *Queue[T]) framesLeft(f Flow) int {
	p := q.store.at(q.flows[f].head)
	return int(p.frames - p.done)
}

// check walks everything and compares it with what is counted.
func (q *Queue[T]) check(t testing.TB) {
	t.Helper()
	var bytes, packets, stored, controlLen int
	for fi := range q.flows {
		f := &q.flows[fi]
		var left int32
		last := none
		for pi := f.head; pi != none; pi = q.store.at(pi).next {
			p := q.store.at(pi)
			if last != none && (p.done > 0 || p.aborted || pi == q.held) {
				t.Fatalf("flow %d: a packet behind the head is started", fi)
			}
			left += p.left
			stored++
			if !p.aborted {
				packets++
			}
			if int32(fi) == q.control {
				controlLen++
			}
			last = pi
		}
		if f.head != none && f.tail != last {
			t.Fatalf("flow %d: tail is %d, not %d", fi, f.tail, last)
		}
		if left != q.backlog[fi] {
			t.Fatalf("flow %d: backlog %d, counted %d", fi, left, q.backlog[fi])
		}
		if int32(fi) != q.control && f.head != none && f.where == idle && !q.cfg.FIFO {
			t.Fatalf("flow %d has packets and is in no list", fi)
		}
		if int32(fi) != q.control && f.head == none && q.table.guest[fi] != 0 {
			t.Fatalf("flow %d is empty and has a guest", fi)
		}
		if int32(fi) != q.control && int32(fi) != q.fat && q.fat != none && q.backlog[fi] > q.rival {
			t.Fatalf("flow %d: backlog %d above the rival's %d", fi, q.backlog[fi], q.rival)
		}
		bytes += int(left)
	}
	if bytes != q.bytes || packets != q.packets || stored != q.stored || controlLen != q.controlLen {
		t.Fatalf("%d bytes, %d packets, %d stored, %d control; counted %d, %d, %d, %d",
			bytes, packets, stored, controlLen, q.bytes, q.packets, q.stored, q.controlLen)
	}
	if q.Waiting() != (stored > 0) {
		t.Fatalf("Waiting is %v with %d packets", q.Waiting(), stored)
	}
	listed := 0
	for _, l := range []struct {
		list
		where uint8
	}{{q.newList, inNew}, {q.oldList, inOld}} {
		for fi := l.head; fi != none; fi = q.flows[fi].next {
			if q.flows[fi].where != l.where {
				t.Fatalf("flow %d is in list %d and says %d", fi, l.where, q.flows[fi].where)
			}
			listed++
		}
	}
	for i, fi := range q.paced.heap {
		if i > 0 && q.paced.less(i, (i-1)/2) {
			t.Fatalf("paced flows out of order at %d", i)
		}
		if q.flows[fi].where != inPace {
			t.Fatalf("flow %d is in the heap and says %d", fi, q.flows[fi].where)
		}
		listed++
	}
	if listed != q.listed {
		t.Fatalf("%d flows in lists, counted %d", listed, q.listed)
	}
	for fi := range q.flows {
		if q.flows[fi].where != idle {
			listed--
		}
	}
	if listed != 0 {
		t.Fatalf("%d flows in lists too many", listed)
	}
	s := q.Stats()
	waiting := uint64(0)
	for fi := range q.flows {
		for pi := q.flows[fi].head; pi != none; pi = q.store.at(pi).next {
			waiting += uint64(max(q.store.at(pi).frames-q.store.at(pi).done, 0))
		}
	}
	if got := s.SentFrames + s.Drops + s.OverflowFrames + s.AbortedFrames + s.DiscardedFrames + waiting; got != s.QueuedFrames {
		t.Fatalf("%d frames are accounted for, of %d: %+v", got, s.QueuedFrames, s)
	}
}
