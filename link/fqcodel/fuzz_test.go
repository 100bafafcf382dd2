package fqcodel

import (
	"encoding/binary"
	"testing"
)

// FuzzModel runs the queue beside the naive model.
func FuzzModel(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 1, 0, 0, 5, 0, 3, 40, 200, 9, 4, 0, 0, 1, 49, 255, 255, 4, 2, 14, 200, 4, 1, 15, 4, 0})
	f.Add([]byte{3, 3, 3, 3, 1, 100, 0, 19, 1, 1, 1, 0, 2, 2, 2, 2, 15, 5, 3, 0, 0, 0, 0, 14, 255, 6, 7, 8})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4000 {
			data = data[:4000]
		}
		runScript(t, data, true)
	})
}

// FuzzAnything calls everything with anything: times that jump, sizes that do not fit, handles that are nobody's. Nothing may
// panic, hang or lose an item, and the limits hold.
func FuzzAnything(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27})
	f.Add([]byte{7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0x80, 3, 3, 3, 9, 9, 9})
	f.Fuzz(func(t *testing.T, data []byte) {
		take := func(n int) int64 {
			var b [8]byte
			data = data[copy(b[:n], data):]
			return int64(binary.LittleEndian.Uint64(b[:]))
		}
		cfg := Config{Flows: 1 << (take(1) & 7), MemoryLimit: 5000 + int(take(2)), PacketLimit: 1 + int(take(1)), DropBatch: 1 + int(take(1))}
		kind := take(1)
		cfg.FIFO = kind&1 != 0
		if kind&2 != 0 {
			cfg.ShapeRate, cfg.ShapeOverhead = 1000+take(4), int(kind&31)-16
		}
		if kind&4 != 0 {
			cfg.FlowRate = 1000 + take(4)
		}
		q, err := New[int](cfg, uint64(kind))
		if err != nil {
			t.Fatal(err)
		}
		in, out := 0, 0
		for len(data) > 0 {
			now := take(1) * ms
			op := take(1)
			if op&0x80 != 0 {
				now = take(8)
			}
			switch op & 15 {
			case 0, 1, 2, 3, 4:
				p := Packet{Hash: uint32(take(1)), Bytes: int(take(2)), Frames: int(take(1)), FrameBytes: int(take(2)), ECT: op&16 != 0, Control: op&32 != 0}
				dropped, _ := q.Push(p, in, now, nil)
				in++
				out += len(dropped)
				if len(dropped) > cfg.DropBatch+1 {
					t.Fatalf("%d dropped", len(dropped))
				}
				if q.Bytes() > cfg.MemoryLimit*5/4 && q.Len() > 1 || q.Len() > cfg.PacketLimit && q.Len() > 1 {
					t.Fatalf("%d bytes, %d packets; limits %d, %d", q.Bytes(), q.Len(), cfg.MemoryLimit, cfg.PacketLimit)
				}
			case 5, 6, 7, 8, 9:
				before := q.stored
				h, ok := q.Step(Cut{Flow: Flow(take(1)), Bytes: int(int32(take(4))), Last: op&16 != 0, Sent: op&32 != 0}, now)
				out += before - q.stored
				if ok && h.Item >= in {
					t.Fatalf("item %d was never pushed", h.Item)
				}
			case 10, 11:
				if h, ok := q.Next(now); ok && !h.Aborted {
					q.Verdict(h.Flow, now, h.Bytes, h.ECT)
					before := q.stored
					q.Done(h.Flow, h.Bytes, q.framesLeft(h.Flow) <= 1, true)
					out += before - q.stored
				}
			case 12:
				q.Verdict(Flow(take(1)), now, int(int32(take(4))), true)
			case 13:
				q.SetRate(take(8))
				q.SetMaxFrame(int(int32(take(4))))
			case 14:
				q.SetShapeRate(take(8))
			case 15:
				q.Refresh(now)
			}
			if q.Bytes() < 0 || q.Len() < 0 || q.stored != in-out {
				t.Fatalf("%d bytes, %d packets, %d stored of %d in, %d out", q.Bytes(), q.Len(), q.stored, in, out)
			}
		}
		if n := len(q.Drain(nil)); n != in-out || q.Bytes() != 0 || q.Len() != 0 || q.Waiting() {
			t.Fatalf("%d drained, %d expected; %d bytes, %d packets left", n, in-out, q.Bytes(), q.Len())
		}
	})
}
