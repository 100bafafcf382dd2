package sim

import (
	"math/rand/v2"
	"sync/atomic"
)

// wire is one direction of a cable: what happens to a frame between the two ends. It is used by the cable's runner alone,
// but for its atomics.
type wire struct {
	c    *Cable
	rand *rand.PCG

	damage, loss                          atomic.Uint64 // probabilities as thresholds
	frames, bytes, damaged, lost, dropped atomic.Uint64
}

// threshold turns a probability into what a random 64-bit number must stay below.
func threshold(p float64) uint64 {
	switch {
	case !(p > 0):
		return 0
	case p >= 1:
		return 1<<64 - 1
	}
	return uint64(p * (1 << 63) * 2)
}

// draw reports an event of the given probability.
func draw(r *rand.PCG, p *atomic.Uint64) bool {
	t := p.Load()
	return t != 0 && r.Uint64() <= t
}

// carry takes a frame across; false means that the sink has no room yet.
func (x *wire) carry(to sink, f *flight, at int64, m laneMode) bool {
	if !f.drawn {
		f.drawn = true
		x.frames.Add(1)
		x.bytes.Add(uint64(f.n))
		x.c.capture(f, at)
		f.lost = !x.c.plugged.Load() || draw(x.rand, &x.loss)
		if f.lost {
			x.lost.Add(1)
		} else if draw(x.rand, &x.damage) {
			x.damaged.Add(1)
			f.fcsBad = true
			flip(f, x.rand.Uint64())
		}
	}
	if f.lost || to == nil {
		return true
	}
	return to.arrive(f, at, m)
}

// flip damages a bit of the frame behind its header, so that it still passes the address filter.
func flip(f *flight, r uint64) {
	if n := uint64(max(f.n-headerBytes, 0)); n > 0 {
		f.buf[headerBytes+r>>3%n] ^= 1 << (r & 7)
	}
}
