package fqcodel

import "time"

// pacer spaces frames so that they keep to a rate. It works out the exact time of each frame: what the division leaves over is
// carried on.
type pacer struct {
	at    int64 // when the next frame may leave
	carry int64 // bits·ns/s left over, below rate
	cost  int64 // time of the last frame
}

// ready says whether a frame may leave now; if not, at says when.
func (p *pacer) ready(now, catchUp int64) bool {
	if p.at > now {
		if p.at-now > p.cost { // further off than any frame has moved it: the clock went back
			p.at = now + p.cost
		}
		return p.at <= now
	}
	if now-p.at > catchUp {
		p.at, p.carry = now-catchUp, 0
	}
	return true
}

// begin tells that there is something to send again. Idle time earns nothing.
func (p *pacer) begin(now int64) {
	if p.at < now {
		p.at, p.carry = now, 0
	}
}

// sent charges a frame.
func (p *pacer) sent(bytes int, rate int64) {
	const bitsPerByte = 8
	p.carry += int64(max(bytes, 1)) * bitsPerByte * int64(time.Second)
	p.cost = p.carry / rate
	p.at += p.cost
	p.carry %= rate
}

// pacedFlows is the heap of flows that have something to send and must wait for their pacer, soonest first.
type pacedFlows struct {
	heap   []int32
	pacers []pacer // of all flows
}

func (h *pacedFlows) less(a, b int) bool { return h.pacers[h.heap[a]].at < h.pacers[h.heap[b]].at }

func (h *pacedFlows) push(fi int32) {
	h.heap = append(h.heap, fi)
	for i := len(h.heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			break
		}
		h.heap[i], h.heap[parent] = h.heap[parent], h.heap[i]
		i = parent
	}
}

func (h *pacedFlows) pop() int32 {
	top := h.heap[0]
	n := len(h.heap) - 1
	h.heap[0] = h.heap[n]
	h.heap = h.heap[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			break
		}
		h.heap[i], h.heap[child] = h.heap[child], h.heap[i]
		i = child
	}
	return top
}
