package fqcodel

import (
	"math/bits"
	"time"
)

// Stats are the counters of a [Queue] since New, and its state.
type Stats struct {
	Packets, Bytes         int // waiting: packets, and bytes not yet cut
	PeakPackets, PeakBytes int
	Backlogged             int           // flows with bytes to send
	Target                 time.Duration // CoDel's, at the rate set

	QueuedPackets, QueuedFrames       uint64 // handed to Push, those that were dropped there included
	SentPackets, SentFrames           uint64 // SentPackets: whose last frame was sent
	SentBytes                         uint64
	Drops                             uint64 // frames dropped by CoDel
	Marks                             uint64 // frames marked by CoDel, sent
	OverflowPackets, OverflowFrames   uint64 // dropped whole for lack of room
	OverflowBytes                     uint64
	AbortedPackets, AbortedFrames     uint64 // remainders of packets given up for lack of room
	DiscardedPackets, DiscardedFrames uint64 // given up by the caller
	Invalid                           uint64 // packets of impossible size, refused
	NewFlows                          uint64 // times a flow began to send
	Collisions                        uint64 // times a flow had to share a queue
	ControlFrames                     uint64 // sent from the class for control traffic

	Sojourn Histogram // time from Push to the cutting of each frame sent
}

// FlowStats are the counters of one flow since it got its queue.
type FlowStats struct {
	Backlog         int // bytes not yet cut
	QueuedPackets   uint64
	SentFrames      uint64
	SentBytes       uint64
	Drops, Marks    uint64
	OverflowPackets uint64

	// P50, P99 are quantiles of the sojourn time, each to within a quarter of its value.
	P50, P99, MaxSojourn time.Duration
}

// The buckets of a histogram: each octave of the time is divided into equal parts, as in HdrHistogram.
const (
	unitBits = 10 // times are counted in units of 2^10 ns
	topBits  = 23 // up to 2^23 units, 8.6 s; longer times go to the last bucket

	fineBits      = 3 // 8 buckets an octave
	fineBuckets   = (topBits - fineBits + 1) << fineBits
	coarseBits    = 2 // 4 buckets an octave
	coarseBuckets = (topBits - coarseBits + 1) << coarseBits
)

// bucketOf returns the bucket of a time, with 1<<sub buckets an octave.
func bucketOf(ns int64, sub uint) int {
	units := uint64(max(ns, 0)) >> unitBits
	units = min(units, 1<<topBits-1)
	shift := uint(max(bits.Len64(units)-1-int(sub), 0))
	return int(uint64(shift)<<sub + units>>shift)
}

// bucketStart returns the shortest time of a bucket.
func bucketStart(i int, sub uint) int64 {
	shift := uint(max(i>>sub-1, 0))
	return int64(uint64(i)-uint64(shift)<<sub) << shift << unitBits
}

// quantile returns the time that p, 0..1, of the counted ones do not exceed, interpolated within its bucket.
func quantile[C uint32 | uint64](counts []C, sub uint, longest int64, p float64) time.Duration {
	var total uint64
	for _, n := range counts {
		total += uint64(n)
	}
	if total == 0 {
		return 0
	}
	want := min(max(p, 0), 1) * float64(total)
	var below uint64
	for i, n := range counts {
		if n == 0 {
			continue
		}
		if float64(below+uint64(n)) >= want {
			lo, hi := bucketStart(i, sub), min(bucketStart(i+1, sub), longest)
			if i == len(counts)-1 {
				hi = longest
			}
			return time.Duration(lo + int64(float64(max(hi-lo, 0))*(want-float64(below))/float64(n)))
		}
		below += uint64(n)
	}
	return time.Duration(longest)
}

// Histogram counts times, in buckets of at most an eighth of their value and at least about a microsecond.
type Histogram struct {
	counts  [fineBuckets]uint64
	longest int64
}

func (h *Histogram) add(ns int64) {
	h.counts[bucketOf(ns, fineBits)]++
	h.longest = max(h.longest, ns)
}

// Count returns how many times have been counted.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Max returns the longest time.
func (h *Histogram) Max() time.Duration { return time.Duration(h.longest) }

// Quantile returns the time that p, 0..1, of those counted do not exceed, to within an eighth of it. 0 if there are none.
func (h *Histogram) Quantile(p float64) time.Duration {
	return quantile(h.counts[:], fineBits, h.longest, p)
}

// Since returns what was counted after earlier, a copy of h made before. Its Max is that of h.
func (h *Histogram) Since(earlier *Histogram) Histogram {
	d := *h
	for i := range d.counts {
		d.counts[i] -= earlier.counts[i]
	}
	return d
}

// flowCounters is what is counted of each flow.
type flowCounters struct {
	queued, frames, bytes, drops, marks, overflow uint64

	longest int64
	sojourn [coarseBuckets]uint32
}

// Stats returns the totals.
func (q *Queue[T]) Stats() Stats {
	s := q.total
	s.Packets, s.Bytes = q.packets, q.bytes
	s.Target = time.Duration(q.params.target)
	for _, b := range q.backlog {
		if b > 0 {
			s.Backlogged++
		}
	}
	return s
}

// FlowStats returns the counters of a flow. They begin again when the queue is given to another flow.
func (q *Queue[T]) FlowStats(f Flow) FlowStats {
	if f < 0 || int(f) >= len(q.perFlow) {
		return FlowStats{}
	}
	c := &q.perFlow[f]
	return FlowStats{
		Backlog:       int(q.backlog[f]),
		QueuedPackets: c.queued, SentFrames: c.frames, SentBytes: c.bytes,
		Drops: c.drops, Marks: c.marks, OverflowPackets: c.overflow,
		P50:        quantile(c.sojourn[:], coarseBits, c.longest, 0.50),
		P99:        quantile(c.sojourn[:], coarseBits, c.longest, 0.99),
		MaxSojourn: time.Duration(c.longest),
	}
}

// Find returns the queue of the flow with this hash; false if it has none, or has lost it since it last sent.
func (q *Queue[T]) Find(hash uint32) (Flow, bool) {
	if q.cfg.FIFO {
		return 0, true
	}
	fi := q.table.find(q.table.tag(hash))
	return Flow(fi), fi != none
}

// Flows returns the number of flow handles: those of the flow table, and the last for control traffic.
func (q *Queue[T]) Flows() int { return len(q.flows) }

// Control returns the handle of the class for control traffic.
func (q *Queue[T]) Control() Flow { return Flow(q.control) }
