package fqcodel

import "time"

// Next chooses the flow whose turn it is, by deficit round robin, and returns its next frame. false: there is nothing to send
// now; Head.Wait says until when if a rate is the reason. The packet is safe from overflow until Done, or the next Next; to
// call Next again without Done is allowed, and chooses anew.
func (q *Queue[T]) Next(now int64) (h Head[T], ok bool) {
	ok = q.next(&h, now) != nil
	return h, ok
}

// next fills in h and returns its packet, nil if there is none.
func (q *Queue[T]) next(h *Head[T], now int64) *packet[T] {
	q.held = none
	fi := q.choose(now)
	if fi == none {
		if len(q.paced.heap) > 0 {
			h.Wait = q.paced.pacers[q.paced.heap[0]].at
		}
		return nil
	}
	pi := q.flows[fi].head
	p := q.store.at(pi)
	if q.cfg.ShapeRate > 0 && !p.aborted && !q.shaper.ready(now, int64(q.cfg.CatchUp)) {
		h.Wait = q.shaper.at
		return nil
	}
	q.held = pi
	q.heldFor = max(now-p.queued, 0)
	h.Item, h.Flow, h.Frame = p.item, Flow(fi), int(p.done)
	if !p.aborted {
		h.Bytes = int(max(min(p.frame, p.left), 1))
	}
	h.ECT, h.Aborted, h.Sojourn = p.ect, p.aborted, time.Duration(q.heldFor)
	return p
}

// choose is the dequeue of RFC 8290 section 4.2, up to the choice of the flow.
func (q *Queue[T]) choose(now int64) int32 {
	if q.cfg.FIFO {
		if q.flows[0].head == none {
			return none
		}
		return 0
	}
	if q.flows[q.control].head != none && q.credit > 0 {
		return q.control
	}
	for len(q.paced.heap) > 0 && q.paced.pacers[q.paced.heap[0]].ready(now, int64(q.cfg.CatchUp)) {
		q.resume()
	}
	for {
		l := &q.newList
		if l.head == none {
			if l = &q.oldList; l.head == none {
				break
			}
		}
		fi := l.head
		f := &q.flows[fi]
		switch {
		case f.deficit <= 0:
			f.deficit += int32(q.cfg.Quantum)
			q.removeFirst(l)
			q.append(&q.oldList, inOld, fi)
		case f.head == none:
			f.codel.empty()
			q.removeFirst(l)
			if l == &q.newList && q.oldList.head != none {
				// Once through the old flows, or a flow could stay among the new ones by sending just enough (section 4.2).
				q.append(&q.oldList, inOld, fi)
			}
		case q.paced.pacers != nil && !q.paced.pacers[fi].ready(now, int64(q.cfg.CatchUp)) && !q.store.at(f.head).aborted:
			q.wait(l)
		default:
			return fi
		}
	}
	if q.flows[q.control].head != none {
		return q.control
	}
	return none
}

// Verdict runs CoDel for the next frame, of frameBytes, of the packet that Next gave out for flow f. ect: the packet may be
// marked. After Drop the frame is skipped: Done, not sent. A verdict other than Send that the caller does not follow now,
// because the ring is full, is given again when the frame's turn comes.
func (q *Queue[T]) Verdict(f Flow, now int64, frameBytes int, ect bool) Action {
	if f < 0 || int(f) >= len(q.flows) || q.flows[f].head == none {
		return Send
	}
	p := q.store.at(q.flows[f].head)
	return q.verdict(int32(f), p, now, max(now-p.queued, 0), min(max(frameBytes, 0), maxCharge), ect)
}

func (q *Queue[T]) verdict(fi int32, p *packet[T], now, sojourn int64, frameBytes int, ect bool) Action {
	if p.verdict == Send && fi != q.control && !q.cfg.FIFO {
		rest := q.backlog[fi] - int32(frameBytes)
		p.verdict = q.flows[fi].codel.verdict(&q.params, now, sojourn, rest, ect)
	}
	return p.verdict
}

// Done reports what became of the frame that Next gave out: cut and sent, or skipped. Sent frames are charged to the flow and
// the shaper. last: the packet is finished with, whatever was left of it, and the item is the caller's to release.
func (q *Queue[T]) Done(f Flow, frameBytes int, last, sent bool) {
	if f < 0 || int(f) >= len(q.flows) || q.flows[f].head == none {
		return
	}
	fi := int32(f)
	fl, pi := &q.flows[fi], q.flows[fi].head
	p := q.store.at(pi)
	size := min(max(frameBytes, 0), maxCharge)
	switch {
	case sent:
		q.charge(fi, fl, size)
		if p.verdict == Mark {
			q.total.Marks++
			q.perFlow[fi].marks++
		}
	case p.verdict == Drop:
		q.total.Drops++
		q.perFlow[fi].drops++
	}
	p.done++
	if last {
		q.finish(p, sent)
		q.unlink(fi, none, pi)
	} else {
		p.verdict = Send
		cut := min(int32(size), p.left)
		p.left -= cut
		q.backlog[fi] -= cut
		q.bytes -= int(cut)
	}
	q.held = none
}

// charge counts a frame that was sent.
func (q *Queue[T]) charge(fi int32, f *flow, size int) {
	c := &q.perFlow[fi]
	c.frames++
	c.bytes += uint64(size)
	c.sojourn[bucketOf(q.heldFor, coarseBits)]++
	c.longest = max(c.longest, q.heldFor)
	q.total.SentFrames++
	q.total.SentBytes += uint64(size)
	q.total.Sojourn.add(q.heldFor)
	if q.cfg.ShapeRate > 0 {
		q.shaper.sent(size+q.cfg.ShapeOverhead, q.cfg.ShapeRate)
	}
	if q.cfg.FIFO {
		return
	}
	if fi == q.control {
		q.total.ControlFrames++
		q.credit = max(q.credit-int32(size), -int32(q.cfg.Quantum))
		return
	}
	f.deficit -= int32(size)
	q.credit = min(q.credit+max(int32(size/controlShare), 1), int32(controlBurst*q.cfg.Quantum))
	if q.paced.pacers != nil {
		q.paced.pacers[fi].sent(size, q.cfg.FlowRate)
	}
}

// finish counts the end of a packet. Its last frame has been counted as done.
func (q *Queue[T]) finish(p *packet[T], sent bool) {
	left := uint64(max(p.frames-p.done, 0))
	if !sent && p.verdict != Drop {
		left++ // this one was neither sent nor dropped by CoDel
	}
	switch {
	case left == 0:
		q.total.SentPackets++
	case p.aborted:
		q.total.AbortedPackets++
		q.total.AbortedFrames += left
	default:
		q.total.DiscardedPackets++
		q.total.DiscardedFrames += left
	}
}

// Step reports what became of the last frame, chooses the next and runs CoDel for it: Done, Next and Verdict under one lock.
// The zero Cut begins.
func (q *Queue[T]) Step(c Cut, now int64) (h Head[T], ok bool) {
	if c.Last || c.Bytes > 0 {
		q.Done(c.Flow, c.Bytes, c.Last, c.Sent)
	}
	p := q.next(&h, now)
	if p == nil {
		return h, false
	}
	if !p.aborted {
		h.Action = q.verdict(int32(h.Flow), p, now, q.heldFor, h.Bytes, p.ect)
	}
	return h, true
}
