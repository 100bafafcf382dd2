package link

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// queue is the bounded first-in-first-out queue of whole packets in front of the ring. It keeps a reference to each
// packet; whoever takes a packet out owns that reference.
type queue struct {
	mu     sync.Mutex // Endpoint's qmu
	ring   []queued   // power of two long
	head   uint32     // free running; next to take out
	tail   uint32     // free running; next free place
	bytes  int
	closed bool

	waiting atomic.Int32 // number of packets, for a look without the lock

	maxPackets, maxBytes int
}

type queued struct {
	pkt  *stack.PacketBuffer
	wire int // on-wire bytes as counted in bytes
}

func (q *queue) init(maxPackets, maxBytes int) {
	q.maxPackets, q.maxBytes = maxPackets, maxBytes
	q.ring = make([]queued, 64)
}

// push appends a packet with its reference. It says no if the queue is closed or would grow over a limit; a packet that
// is larger than the byte limit is still taken by an empty queue.
func (q *queue) push(pkt *stack.PacketBuffer, wire int) (ok, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := int(q.tail - q.head)
	switch {
	case q.closed:
		return false, true
	case n >= q.maxPackets, n > 0 && q.bytes+wire > q.maxBytes:
		return false, false
	case n == len(q.ring):
		q.grow()
	}
	q.ring[q.tail&uint32(len(q.ring)-1)] = queued{pkt, wire}
	q.tail++
	q.bytes += wire
	q.waiting.Add(1)
	return true, false
}

// grow doubles the ring. It happens while the queue grows to its usual length, then no more.
func (q *queue) grow() {
	bigger := make([]queued, 2*len(q.ring))
	for i := q.head; i != q.tail; i++ {
		bigger[i&uint32(len(bigger)-1)] = q.ring[i&uint32(len(q.ring)-1)]
	}
	q.ring = bigger
}

// pop takes the oldest packet out; nil if there is none. left says how many remain.
func (q *queue) pop() (pkt *stack.PacketBuffer, left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == q.tail {
		return nil, 0
	}
	e := &q.ring[q.head&uint32(len(q.ring)-1)]
	pkt = e.pkt
	q.bytes -= e.wire
	*e = queued{}
	q.head++
	q.waiting.Add(-1)
	return pkt, int(q.tail - q.head)
}

// length is the number of packets and bytes that wait.
func (q *queue) length() (packets, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int(q.tail - q.head), q.bytes
}

// close refuses all later packets. What waits stays and is taken out with pop.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
