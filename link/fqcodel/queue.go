package fqcodel

import (
	"sync/atomic"
	"time"
)

const (
	// controlShare bounds control traffic when there is other traffic: one byte of it for so many others.
	controlShare = 8
	// controlBurst is how many quanta of control traffic may go ahead of everything else at once.
	controlBurst = 4
	// controlPackets is how many control packets are kept. Of more, the newest are worth most: ARP is asked again.
	controlPackets = 256
	// maxCharge bounds the size of one frame that flows and shaper are charged with.
	maxCharge = maxFrame
	// intervalPerTarget is the least that CoDel's interval is in targets: an interval that the target fills says nothing
	// (as in Linux: net/sched/sch_cake.c, cake_set_rate).
	intervalPerTarget = 2
	// scanShare: looking at fewer than this part of the flows one by one is faster than at all of them in order.
	scanShare = 8
	// spareShare: while dropping small packets does not make room for a large one, this part of the limit may be used on top.
	spareShare = 4
)

// Packet describes an item to Push.
type Packet struct {
	// Hash tells flows apart: a keyed hash of addresses, ports and protocol.
	Hash uint32

	// Bytes is the size of all its frames together, and Frames their number.
	Bytes, Frames int

	// FrameBytes is the size of each frame but the last. 0: Bytes/Frames, rounded up.
	FrameBytes int

	// ECT says that the packet may be marked instead of dropped: ECT(0) or ECT(1) in its IP header (RFC 3168). Only Step
	// looks at it.
	ECT bool

	// Control puts the packet into the class for control traffic, whatever its hash: ARP and neighbour discovery, without
	// which nobody else can send. The class is served before all flows, and CoDel and pacing leave it alone; but while
	// flows are waiting it gets no more than a ninth of the bytes and a burst of four quanta. It holds 256 packets; of more,
	// the oldest are dropped.
	Control bool
}

// Head is the frame whose turn it is.
type Head[T any] struct {
	Item    T
	Flow    Flow          // to be given back to Done
	Frame   int           // how many frames of the packet have been cut or skipped before; 0: it has not been started
	Bytes   int           // size of the frame, as Push was told
	ECT     bool          // as Push was told
	Aborted bool          // what is left of the packet is to be thrown away: Done with last, not sent
	Action  Action        // of Step: CoDel's verdict
	Sojourn time.Duration // since Push

	// Wait is set when there is no frame to send now but there will be without another Push: call again at this time. 0:
	// only Push brings something.
	Wait int64
}

// Cut tells Step what became of a frame. The zero value says nothing.
type Cut struct {
	Flow  Flow
	Bytes int  // size of the frame
	Last  bool // it was the packet's last one: the queue forgets the item
	Sent  bool // false: skipped, because of Drop or Aborted or by the caller's own decision
}

// Queue is the scheduler. Its methods are called with one lock of the caller's held, unless they say otherwise.
type Queue[T any] struct {
	cfg    Config
	params params
	rate   int64 // of the link, bits/s; 0: unknown

	table   table
	flows   []flow  // those of the table and the one for control traffic
	backlog []int32 // of each flow: bytes not yet cut, without those of aborted packets
	control int32   // index of the last
	newList list    // flows that have just begun to send
	oldList list
	paced   pacedFlows
	listed  int    // flows in one of these
	begun   uint32 // counts flows that became busy

	fat, rival int32 // see fattest
	pushing    int32 // flow of the packet that room is being made for: not empty, though it may look so

	store   store[T]
	bytes   int // sum of backlog
	packets int // queued and not aborted
	stored  int // queued, aborted ones included

	held    int32 // the packet that Next gave out; Push does not touch it
	heldFor int64 // its sojourn time

	controlLen int   // control packets
	credit     int32 // bytes of control traffic that may go first

	shaper pacer

	waiting atomic.Bool
	total   Stats
	perFlow []flowCounters
}

// New makes a queue. The seed keeps a peer from choosing flows that collide; it should come from a random source. An error
// matches ErrConfig and names the field.
func New[T any](cfg Config, seed uint64) (*Queue[T], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.FIFO {
		cfg.Flows, cfg.FlowRate = 1, 0
	}
	n := cfg.Flows + 1
	q := &Queue[T]{
		cfg: cfg,
		params: params{
			target: int64(cfg.Target), interval: int64(cfg.Interval), maxFrame: int32(cfg.MaxFrame), ecn: !cfg.NoECN,
		},
		table: newTable(cfg.Flows, seed),
		flows: make([]flow, n), backlog: make([]int32, n), perFlow: make([]flowCounters, n),
		control: int32(cfg.Flows),
		newList: list{none, none}, oldList: list{none, none},
		fat: none, pushing: none, held: none,
		store:  store[T]{free: none},
		credit: int32(controlBurst * cfg.Quantum),
	}
	for i := range q.flows {
		q.flows[i].head, q.flows[i].tail, q.flows[i].next = none, none, none
	}
	if cfg.FlowRate > 0 {
		q.paced.pacers = make([]pacer, n)
		q.paced.heap = make([]int32, 0, n)
	}
	q.retarget()
	return q, nil
}

// SetRate tells the rate of the link in bits/s, 0 if unknown. At low rates CoDel's target rises to 1.5 times the wire time
// of the largest frame, and its interval to twice the target; the shaper's rate counts if it is lower.
func (q *Queue[T]) SetRate(bitsPerSecond int64) {
	q.rate = max(bitsPerSecond, 0)
	q.retarget()
}

// SetShapeRate changes Config.ShapeRate, within the same bounds. 0 or less turns the shaper off.
func (q *Queue[T]) SetShapeRate(bitsPerSecond int64) {
	if bitsPerSecond > 0 {
		bitsPerSecond = min(max(bitsPerSecond, minRate), maxRate)
	}
	q.cfg.ShapeRate = max(bitsPerSecond, 0)
	q.shaper.carry = 0
	q.retarget()
}

// SetMaxFrame changes Config.MaxFrame, within the same bounds: the MTU has changed.
func (q *Queue[T]) SetMaxFrame(bytes int) {
	q.params.maxFrame = int32(min(max(bytes, minFrame), maxFrame))
	q.retarget()
}

func (q *Queue[T]) retarget() {
	rate := q.rate
	if s := q.cfg.ShapeRate; s > 0 && (rate == 0 || s < rate) {
		rate = s
	}
	q.params.target = targetAt(q.cfg.Target, rate, int(q.params.maxFrame))
	q.params.interval = max(int64(q.cfg.Interval), intervalPerTarget*q.params.target)
}

// Len returns the number of packets waiting, without aborted ones.
func (q *Queue[T]) Len() int { return q.packets }

// Bytes returns the bytes waiting that have not been cut.
func (q *Queue[T]) Bytes() int { return q.bytes }

// Waiting says whether the pump has something to do, be it to throw away, be it later because of a rate. It needs no lock;
// without, the answer may be old.
func (q *Queue[T]) Waiting() bool { return q.waiting.Load() }

// Refresh forgets how long everything has waited: enqueue times become now and CoDel, shaper and pacers start afresh. It is for
// the moment when a link comes up, whose down time says nothing about the senders. It takes time proportional to the longest
// queue that has been.
func (q *Queue[T]) Refresh(now int64) {
	for _, c := range q.store.chunks {
		for i := range c {
			c[i].queued, c[i].verdict = now, Send
		}
	}
	for i := range q.flows {
		q.flows[i].codel = codel{}
	}
	for len(q.paced.heap) > 0 {
		q.resume()
	}
	for i := range q.paced.pacers {
		q.paced.pacers[i] = pacer{at: now}
	}
	q.shaper = pacer{at: now}
	q.credit = int32(controlBurst * q.cfg.Quantum)
}

// Drain takes everything out and appends it to items: flow by flow, each in its order. It is for closing; the packet that the
// pump is cutting is among them, so the pump must have stopped.
func (q *Queue[T]) Drain(items []T) []T {
	for fi := range q.flows {
		f := &q.flows[fi]
		for f.head != none {
			p := q.store.at(f.head)
			items = append(items, p.item)
			q.total.DiscardedPackets++
			q.total.DiscardedFrames += uint64(max(p.frames-p.done, 0))
			q.unlink(int32(fi), none, f.head)
		}
		f.codel.empty()
	}
	q.held = none
	return items
}

// unlink removes packet pi, which comes after prev, from its flow and all counts.
func (q *Queue[T]) unlink(fi, prev, pi int32) {
	f, p := &q.flows[fi], q.store.at(pi)
	if prev == none {
		f.head = p.next
	} else {
		q.store.at(prev).next = p.next
	}
	if f.tail == pi {
		f.tail = prev
	}
	q.backlog[fi] -= p.left
	q.bytes -= int(p.left)
	if !p.aborted {
		q.packets--
	}
	q.store.put(pi)
	if fi == q.control {
		q.controlLen--
	} else if f.head == none && fi != q.pushing {
		q.table.guest[fi] = 0
	}
	if q.stored--; q.stored == 0 {
		q.waiting.Store(false)
	}
}
