package fqcodel

// Push queues an item in its flow. If that exceeds a limit, the fattest flow loses whole packets from its head, at most
// DropBatch of them: they are appended to dropped, and the caller releases them after unlocking. A packet of which a frame
// has been cut, or is being cut, stays; if its flow has no other it is aborted: the pump finds it marked. A FIFO refuses
// the item instead.
//
// false says that the item itself is among those dropped. now is the caller's clock in ns.
func (q *Queue[T]) Push(p Packet, item T, now int64, dropped []T) ([]T, bool) {
	if p.Bytes < 1 || p.Bytes > maxPacketBytes || p.Frames < 1 || p.Frames > p.Bytes || p.FrameBytes < 0 {
		q.total.Invalid++
		return append(dropped, item), false
	}
	if p.FrameBytes == 0 || p.FrameBytes > p.Bytes {
		p.FrameBytes = (p.Bytes + p.Frames - 1) / p.Frames
	}
	fi := int32(0)
	switch {
	case q.cfg.FIFO:
	case p.Control:
		fi = q.control
	default:
		fi = q.flowOf(p.Hash)
	}
	q.total.QueuedPackets++
	q.total.QueuedFrames += uint64(p.Frames)
	q.perFlow[fi].queued++

	// The packet is counted first, so that its own flow's share in an overflow is the true one, and linked if it may stay.
	q.backlog[fi] += int32(p.Bytes)
	q.bytes += p.Bytes
	q.packets++
	ok := true
	if q.full() || fi == q.control && q.controlLen >= controlPackets {
		q.pushing = fi
		dropped, ok = q.makeRoom(fi, dropped)
		q.pushing = none
	}
	if !ok {
		q.backlog[fi] -= int32(p.Bytes)
		q.bytes -= p.Bytes
		q.packets--
		q.overflowed(fi, p.Bytes, p.Frames)
		if fi != q.control && q.flows[fi].head == none {
			q.table.guest[fi] = 0
		}
		return append(dropped, item), false
	}
	q.grown(fi)
	q.link(fi, p, item, now)
	q.total.PeakBytes = max(q.total.PeakBytes, q.bytes)
	q.total.PeakPackets = max(q.total.PeakPackets, q.packets)
	return dropped, true
}

// link appends a packet to its flow and wakes the flow.
func (q *Queue[T]) link(fi int32, p Packet, item T, now int64) {
	if q.stored == 0 {
		q.shaper.begin(now)
		q.waiting.Store(true)
	}
	q.stored++
	if fi == q.control {
		q.controlLen++
	}
	pi := q.store.get()
	*q.store.at(pi) = packet[T]{
		item: item, queued: now, next: none,
		left: int32(p.Bytes), frame: int32(p.FrameBytes), frames: int32(p.Frames), ect: p.ECT,
	}
	f := &q.flows[fi]
	if f.head == none {
		f.head = pi
		if q.paced.pacers != nil && f.where != inPace {
			q.paced.pacers[fi].begin(now)
		}
	} else {
		q.store.at(f.tail).next = pi
	}
	f.tail = pi
	if f.where == idle && fi != q.control && !q.cfg.FIFO {
		q.append(&q.newList, inNew, fi)
		f.deficit = int32(q.cfg.Quantum)
		q.total.NewFlows++
		q.begun++
		f.begun = q.begun
	}
}

// full says that a limit is exceeded.
func (q *Queue[T]) full() bool {
	return q.bytes > q.cfg.MemoryLimit || q.packets > q.cfg.PacketLimit
}

// makeRoom drops packets until the limits are kept, or DropBatch is reached. The newcomer of flow own is counted and not
// yet linked. false says that it must go.
func (q *Queue[T]) makeRoom(own int32, dropped []T) ([]T, bool) {
	if q.cfg.FIFO {
		return dropped, q.packets == 1
	}
	n := 0
	if own == q.control && q.controlLen >= controlPackets {
		prev, pi := q.firstUnstarted(own)
		dropped = q.dropWhole(own, prev, pi, dropped)
		n++
	}
	spare := q.cfg.MemoryLimit + q.cfg.MemoryLimit/spareShare
	for ; n < q.cfg.DropBatch && q.full(); n++ {
		if q.packets == 1 {
			break // only the newcomer is left
		}
		if n == q.cfg.DropBatch-1 && q.bytes > spare {
			return dropped, false
		}
		q.grown(own)
		victim := q.fattest(own)
		if victim == none {
			return dropped, false // nothing but control traffic, to which the newcomer belongs
		}
		prev, pi := q.firstUnstarted(victim)
		switch {
		case pi != none:
			dropped = q.dropWhole(victim, prev, pi, dropped)
		case victim == own:
			return dropped, false
		default:
			q.abort(victim)
		}
	}
	return dropped, true
}

// firstUnstarted returns the first packet of a flow that nobody has begun to cut or given up, and the one before it.
func (q *Queue[T]) firstUnstarted(fi int32) (prev, pi int32) {
	pi = q.flows[fi].head
	if pi == none {
		return none, none
	}
	if p := q.store.at(pi); p.done > 0 || pi == q.held || p.aborted {
		return pi, p.next
	}
	return none, pi
}

func (q *Queue[T]) dropWhole(fi, prev, pi int32, dropped []T) []T {
	p := q.store.at(pi)
	dropped = append(dropped, p.item)
	q.overflowed(fi, int(p.left), int(p.frames))
	q.unlink(fi, prev, pi)
	return dropped
}

func (q *Queue[T]) overflowed(fi int32, bytes, frames int) {
	q.total.OverflowPackets++
	q.total.OverflowFrames += uint64(frames)
	q.total.OverflowBytes += uint64(bytes)
	q.perFlow[fi].overflow++
}

// abort gives up what is left of the packet at the head of a flow. Its memory counts as free from now on.
func (q *Queue[T]) abort(fi int32) {
	p := q.store.at(q.flows[fi].head)
	q.backlog[fi] -= p.left
	q.bytes -= int(p.left)
	p.left, p.aborted = 0, true
	q.packets--
	q.perFlow[fi].overflow++
}
