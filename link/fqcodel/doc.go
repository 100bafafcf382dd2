// Package fqcodel is the transmit scheduler: flow queues served round robin with controlled delay, after RFC 8290
// (FlowQueue-CoDel) and RFC 8289 (CoDel), and a plain first-in-first-out queue as the alternative.
//
// # Packets and frames
//
// What is queued are packets; what leaves are frames. A packet that will be cut into 46 segments waits whole, at the head
// of its flow, and is cut one frame at a time. Deficit round robin and CoDel work as if it had been cut before it was
// queued: each frame is charged to the flow's deficit, a frame of another flow can leave between any two frames of one
// packet, a drop skips one frame and a mark is set in one frame. All frames of a packet share its time of queueing.
//
// # How it is used
//
// A [Queue] has no lock. The caller holds one short lock around each method, unless the method says otherwise. Any
// number of goroutines push; one at a time, the pump, takes frames:
//
//	mu.Lock()
//	h, ok := q.Step(fqcodel.Cut{}, now)
//	mu.Unlock()
//	for ok && roomInTheRing() {
//		cut := fqcodel.Cut{Flow: h.Flow, Bytes: h.Bytes}
//		switch {
//		case h.Aborted:
//			cut.Last = true // release the packet
//		case h.Action == fqcodel.Drop:
//			cut.Last = skipFrame(h.Item)
//		default:
//			cut.Sent = true
//			cut.Last = copyFrame(h.Item, h.Action == fqcodel.Mark)
//		}
//		mu.Lock()
//		h, ok = q.Step(cut, now)
//		mu.Unlock()
//	}
//
// The copying is done outside the lock. Meanwhile others push, and what overflows is dropped, but never the packet that is
// being cut: it is only marked, and the pump finds Head.Aborted at its next frame. [Queue.Step] is [Queue.Done],
// [Queue.Next] and [Queue.Verdict] in one call.
//
// No method calls back, blocks, or allocates, except that the store of packets grows to the longest queue seen. Items
// that overflow are returned to the caller of Push, who releases them after unlocking.
//
// # Time and size
//
// Times are nanoseconds of the caller's clock, from any origin. A clock that stands still stops the control law and nothing
// else; one that jumps back or ahead costs at most one interval of control, no burst of drops, and no stall of the
// shaper. Sizes are bytes on the wire, counted by the caller as it likes (with or without preamble, FCS and gap), the same
// way everywhere.
//
// # Differences from the RFCs
//
// The hash table is 8-way set associative with the tag of each flow (as in Linux: net/sched/sch_cake.c), so that flows
// share a queue only when nine are busy in one set, and even then keep their order (up to 16). Overflow takes from the fattest flow what is needed and not half of
// its packets, because a packet can be 46 segments. CoDel's drop state is given up when it has not been looked at for 16
// intervals, the horizon that RFC 8289 section 5.6 gives the count. Control traffic has a class of its own: see
// [Packet.Control].
package fqcodel
