package fqcodel

import (
	"math"
	"time"
)

// Action is what CoDel says about a frame.
type Action uint8

const (
	Send Action = iota // send it
	Mark               // send it with CE set in its IP header (RFC 3168)
	Drop               // skip it: the packet goes on with its next frame
)

// String names the action.
func (a Action) String() string {
	switch a {
	case Send:
		return "send"
	case Mark:
		return "mark"
	case Drop:
		return "drop"
	}
	return "unknown"
}

// horizon is for how many intervals the state of the last drop phase is worth something (RFC 8289 section 5.6).
const horizon = 16

// codel is CoDel's state for one flow: RFC 8289 section 5.3. The loop of the RFC's dequeue, which drops until a packet may
// go, is turned inside out here: one verdict a frame, and after a drop the next frame of the flow goes on with the loop.
type codel struct {
	firstAbove int64  // when the delay will have been above target for an interval; valid if above
	dropNext   int64  // when the next frame is to be dropped; valid since the first drop
	count      uint32 // drops in this drop phase
	lastCount  uint32 // count at the start of this drop phase
	above      bool   // the delay of the last frame was above target
	dropping   bool   // in a drop phase
	rearm      bool   // a frame was dropped: if the next is above target too, dropNext moves on
}

// params are what all flows' CoDel has in common.
type params struct {
	target, interval int64 // ns
	maxFrame         int32 // bytes
	ecn              bool
}

// verdict decides about a frame that has waited for sojourn, in a flow that has rest bytes left after it.
func (c *codel) verdict(p *params, now, sojourn int64, rest int32, ect bool) Action {
	drop := c.okToDrop(p, now, sojourn, rest)
	if !drop {
		c.dropping, c.rearm = false, false
		return Send
	}
	mark := ect && p.ecn
	if c.dropping {
		switch age := now - c.dropNext; {
		case age > horizon*p.interval:
			// Nobody has asked for long: the link was paused, or the clock jumped. The delay says nothing about the
			// sender, and catching up would drop in one go what should have been spread over that time. Measure again.
			*c = codel{firstAbove: now + p.interval, above: true}
			return Send
		case -age > p.interval: // the clock went back
			c.dropNext = now + p.interval
		}
		if c.rearm {
			c.rearm = false
			c.dropNext += c.spacing(p)
		}
		if now < c.dropNext {
			return Send
		}
		if c.count < math.MaxUint32 {
			c.count++
		}
		if mark {
			c.dropNext += c.spacing(p)
			return Mark
		}
		c.rearm = true
		return Drop
	}
	// A drop phase begins. If the last one ended a moment ago, its drop rate is a good first guess.
	c.dropping = true
	delta := c.count - c.lastCount
	if delta > 1 && now-c.dropNext < horizon*p.interval {
		c.count = delta
	} else {
		c.count = 1
	}
	c.lastCount = c.count
	c.dropNext = now + c.spacing(p)
	if mark {
		return Mark
	}
	return Drop
}

// okToDrop says whether the delay has been above target for an interval.
func (c *codel) okToDrop(p *params, now, sojourn int64, rest int32) bool {
	switch {
	case sojourn < p.target || rest <= p.maxFrame:
		c.above = false
		return false
	case !c.above:
		c.above = true
		c.firstAbove = now + p.interval
		return false
	case c.firstAbove-now > p.interval: // the clock went back
		c.firstAbove = now + p.interval
		return false
	}
	return now >= c.firstAbove
}

// spacing is the control law: the time to the next drop.
func (c *codel) spacing(p *params) int64 {
	return int64(float64(p.interval) / math.Sqrt(float64(c.count)))
}

// empty tells that the flow's turn came and it had nothing to send.
func (c *codel) empty() {
	c.above, c.dropping, c.rearm = false, false, false
}

// targetAt is the target in effect at a rate in bits/s, 0 for unknown: CoDel works on standing queues, and at a low rate
// one and a half frames take longer than the target all by themselves.
func targetAt(target time.Duration, rate int64, frame int) int64 {
	if rate <= 0 {
		return int64(target)
	}
	const bitsPerByte = 8
	return max(int64(target), int64(frame)*bitsPerByte*int64(time.Second)/rate*3/2)
}
