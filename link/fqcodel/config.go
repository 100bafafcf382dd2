package fqcodel

import (
	"errors"
	"fmt"
	"time"
)

// Defaults, from RFC 8290 section 5.2 and Linux's net/sched/sch_fq_codel.c.
const (
	DefaultFlows       = 1024
	DefaultQuantum     = 1514 // an Ethernet frame at MTU 1500 without its FCS
	DefaultTarget      = 5 * time.Millisecond
	DefaultInterval    = 100 * time.Millisecond
	DefaultMaxFrame    = 1538 // the same frame with FCS, preamble and inter-frame gap
	DefaultMemoryLimit = 4 << 20
	DefaultPacketLimit = 10240
	DefaultDropBatch   = 64
	DefaultCatchUp     = time.Millisecond
)

const (
	ways = 8 // of the flow table

	maxFlows       = 1 << 16
	minQuantum     = 64 // the smallest frame; less only makes more rounds of the same order
	maxQuantum     = 1 << 20
	minInterval    = time.Millisecond
	maxInterval    = time.Minute
	minFrame       = 60
	maxFrame       = 1 << 16
	maxMemory      = 1 << 30 // a quarter more still fits 31 bits
	maxPackets     = 1 << 24
	maxDropBatch   = 1 << 16
	minRate        = 1000 // bits/s
	maxRate        = 1e12
	minOverhead    = -38 // a caller that counts header, FCS, preamble and gap takes them off again
	maxOverhead    = 256
	maxPacketBytes = 1 << 24
	maxCatchUp     = time.Second
)

// ErrConfig is what errors about an invalid [Config] match with errors.Is.
var ErrConfig = errors.New("fqcodel: invalid configuration")

// Config configures a [Queue]. The zero value is fq_codel with the defaults of RFC 8290.
type Config struct {
	// FIFO makes a plain first-in-first-out queue: one queue for all, no CoDel, no class for control traffic. A packet
	// that does not fit is refused. Limits and shaper are the same.
	FIFO bool

	// Flows is the number of flow queues, a power of two up to 65536. 0: 1024.
	Flows int

	// Quantum is how many bytes a flow may send per round, 64 .. 1 MiB. 0: 1514, one frame.
	Quantum int

	// Target is the standing delay that CoDel allows, and Interval the time over which it must be seen to stand, 1 ms to
	// 1 min. The target in effect is at least 1.5 times the wire time of MaxFrame: see SetRate. 0: 5 ms and 100 ms.
	Target, Interval time.Duration

	// NoECN drops frames of packets that could be marked.
	NoECN bool

	// MaxFrame is the size in bytes of the largest frame, 60 .. 65536. CoDel leaves a flow alone that has no more than
	// this left to send. 0: 1538.
	MaxFrame int

	// MemoryLimit bounds the bytes not yet cut, up to 1 GiB, and PacketLimit the packets. If dropping DropBatch small
	// packets does not make room for a large one, memory use may exceed the limit by a quarter for a moment; and a packet
	// is always taken if there is no other. 0: 4 MiB, 10240.
	MemoryLimit, PacketLimit int

	// DropBatch is the largest number of packets that one Push drops. 0: 64.
	DropBatch int

	// ShapeRate limits all traffic to this many bits/s, 1000 .. 10^12, to keep the queue here and not in a slower device
	// behind. 0: off.
	ShapeRate int64

	// ShapeOverhead is added to the size of each frame for the shaper, -38 .. 256 bytes: what the link behind has more or
	// less than is counted here.
	ShapeOverhead int

	// FlowRate limits each flow to this many bits/s, 1000 .. 10^12 ("pacing"). The delay that comes of it counts as
	// sojourn time. 0: off.
	FlowRate int64

	// CatchUp is how far a shaper or pacer that is called late catches up, at most 1 s. It bounds the burst after a late
	// timer. An idle link or flow earns nothing. 0: 1 ms.
	CatchUp time.Duration
}

// withDefaults fills in what is zero, then checks.
func (c Config) withDefaults() (Config, error) {
	def(&c.Flows, DefaultFlows)
	def(&c.Quantum, DefaultQuantum)
	def(&c.Target, DefaultTarget)
	def(&c.Interval, DefaultInterval)
	def(&c.MaxFrame, DefaultMaxFrame)
	def(&c.MemoryLimit, DefaultMemoryLimit)
	def(&c.PacketLimit, DefaultPacketLimit)
	def(&c.DropBatch, DefaultDropBatch)
	def(&c.CatchUp, DefaultCatchUp)

	var err error
	switch {
	case c.Flows < 1 || c.Flows > maxFlows || c.Flows&(c.Flows-1) != 0:
		err = fmt.Errorf("%w: Flows: %d is not a power of two in 1..%d", ErrConfig, c.Flows, maxFlows)
	case c.Target >= c.Interval:
		err = fmt.Errorf("%w: Target: %v is not below Interval, %v", ErrConfig, c.Target, c.Interval)
	default:
		for _, f := range []struct {
			name          string
			value, lo, hi int64
		}{
			{"Quantum", int64(c.Quantum), minQuantum, maxQuantum},
			{"Target", int64(c.Target), 1, int64(maxInterval)},
			{"Interval", int64(c.Interval), int64(minInterval), int64(maxInterval)},
			{"MaxFrame", int64(c.MaxFrame), minFrame, maxFrame},
			{"MemoryLimit", int64(c.MemoryLimit), int64(c.MaxFrame), maxMemory},
			{"PacketLimit", int64(c.PacketLimit), 1, maxPackets},
			{"DropBatch", int64(c.DropBatch), 1, maxDropBatch},
			{"ShapeRate", c.ShapeRate, minRate, maxRate},
			{"ShapeOverhead", int64(c.ShapeOverhead), minOverhead, maxOverhead},
			{"FlowRate", c.FlowRate, minRate, maxRate},
			{"CatchUp", int64(c.CatchUp), 1, int64(maxCatchUp)},
		} {
			off := f.value == 0 && (f.name == "ShapeRate" || f.name == "FlowRate")
			if !off && (f.value < f.lo || f.value > f.hi) {
				err = fmt.Errorf("%w: %s: %d is not in %d..%d", ErrConfig, f.name, f.value, f.lo, f.hi)
				break
			}
		}
	}
	return c, err
}

func def[V int | time.Duration](v *V, d V) {
	if *v == 0 {
		*v = d
	}
}
