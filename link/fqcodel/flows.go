package fqcodel

// Flow is the handle of a flow queue, 0 .. Flows()-1. Callers may index arrays of their own with it. It stays the flow's as
// long as the flow has a packet queued.
type Flow int32

// where a flow is.
const (
	idle   = uint8(iota)
	inNew  // flows that have begun to send: they go first
	inOld  // flows that have used up their first quantum
	inPace // waiting for its pacer
)

// flow is one queue.
type flow struct {
	head, tail int32 // packets
	next       int32 // flow in the same list
	deficit    int32
	begun      uint32 // Queue.begun when it last became busy, or got its owner
	where      uint8
	codel      codel
}

// list is a first-in-first-out list of flows.
type list struct{ head, tail int32 }

// wait takes the first flow of a list until its pacer is ready.
func (q *Queue[T]) wait(l *list) {
	fi := l.head
	q.removeFirst(l)
	q.flows[fi].where = inPace
	q.paced.push(fi)
	q.listed++
}

// resume puts the flow whose pacer is ready first back among the old ones.
func (q *Queue[T]) resume() {
	q.listed--
	q.append(&q.oldList, inOld, q.paced.pop())
}

// table finds the queue of a flow.
type table struct {
	seed  uint64
	ways  int
	sets  uint32
	tags  []uint32 // per queue: the flow it belongs to; 0: never used
	guest []uint32 // per queue: a second flow that shares it until it runs empty; 0: none
}

func newTable(flows int, seed uint64) table {
	w := min(ways, flows)
	return table{
		seed: seed, ways: w, sets: uint32(flows / w),
		tags: make([]uint32, flows), guest: make([]uint32, flows),
	}
}

// Multipliers of the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
const (
	splitMix1 = 0xbf58476d1ce4e5b9
	splitMix2 = 0x94d049bb133111eb
)

// tag mixes the caller's hash with the seed. It is never 0.
func (t *table) tag(hash uint32) uint32 {
	x := uint64(hash) ^ t.seed
	x = (x ^ x>>30) * splitMix1
	x = (x ^ x>>27) * splitMix2
	x ^= x >> 31
	return max(uint32(x), 1)
}

// set returns the first queue of the set that a tag belongs to.
func (t *table) set(tag uint32) int { return int(tag&(t.sets-1)) * t.ways }

// find returns the queue that holds the flow of a tag; none if there is none.
func (t *table) find(tag uint32) int32 {
	base := t.set(tag)
	for i, have := range t.tags[base : base+t.ways] {
		if have == tag {
			return int32(base + i)
		}
	}
	for i, have := range t.guest[base : base+t.ways] {
		if have == tag {
			return int32(base + i)
		}
	}
	return none
}

// preferred is the way of its set that a flow tries first. Its bits are not those that chose the set.
func (t *table) preferred(tag uint32) int {
	return int(tag>>(32-3)) & (t.ways - 1)
}

// flowOf returns the queue for a packet, and gives one to a flow that has none.
func (q *Queue[T]) flowOf(hash uint32) int32 {
	t := &q.table
	tag := t.tag(hash)
	base := t.set(tag)
	for i, have := range t.tags[base : base+t.ways] {
		if have == tag {
			return int32(base + i)
		}
	}
	return q.place(tag)
}

// place gives a queue to a flow that owns none: the one of its set that has been idle longest, so that the others remember
// theirs; else one that is empty and only waits for its turn to say so; else the flow shares one. It stays there until that
// queue is empty, so its packets keep their order; only with more than two busy flows per queue of the set can a third guest
// push out the second, whose next packet may then overtake.
func (q *Queue[T]) place(tag uint32) int32 {
	t := &q.table
	if fi := t.find(tag); fi != none {
		return fi
	}
	base, first := t.set(tag), t.preferred(tag)
	unused, empty, shared := none, none, none
	var longest uint32
	for i := range t.ways {
		fi := int32(base + (first+i)&(t.ways-1))
		f := &q.flows[fi]
		switch {
		case f.where == idle:
			if age := q.begun - f.begun; unused == none || age > longest {
				unused, longest = fi, age
			}
		case f.head == none && f.where != inPace && empty == none:
			empty = fi
		case t.guest[fi] == 0 && shared == none:
			shared = fi
		}
	}
	if unused == none {
		unused = empty
	}
	if unused != none {
		q.assign(unused, tag)
		return unused
	}
	if shared == none { // all queues of the set have two flows already
		shared = int32(base + first)
	}
	t.guest[shared] = tag
	q.total.Collisions++
	return shared
}

// assign gives a queue to another flow.
func (q *Queue[T]) assign(fi int32, tag uint32) {
	q.table.tags[fi] = tag
	q.table.guest[fi] = 0
	q.flows[fi].codel, q.flows[fi].begun = codel{}, q.begun
	q.perFlow[fi] = flowCounters{}
	if q.paced.pacers != nil {
		q.paced.pacers[fi] = pacer{}
	}
}

func (q *Queue[T]) append(l *list, where uint8, fi int32) {
	f := &q.flows[fi]
	f.next, f.where = none, where
	q.listed++
	if l.head == none {
		l.head = fi
	} else {
		q.flows[l.tail].next = fi
	}
	l.tail = fi
}

func (q *Queue[T]) removeFirst(l *list) {
	f := &q.flows[l.head]
	l.head, f.next, f.where = f.next, none, idle
	q.listed--
}

// fattest returns the flow with the most bytes not yet cut, the first of them if several have; none if no flow has any.
// Control traffic does not count.
//
// own is the flow of a packet that is counted already; it need not be in a list yet. The last answer stays right while
// nobody can have caught up with it: rival is no less than the backlog of any other flow.
func (q *Queue[T]) fattest(own int32) int32 {
	if q.fat != none && q.backlog[q.fat] > q.rival {
		return q.fat
	}
	best, second := int32(0), int32(0)
	q.fat = none
	if q.listed >= q.cfg.Flows/scanShare {
		for fi, b := range q.backlog[:q.control] {
			if b > second {
				if b > best {
					best, second, q.fat = b, best, int32(fi)
				} else {
					second = b
				}
			}
		}
		q.rival = second
		return q.fat
	}
	see := func(fi int32) {
		switch b := q.backlog[fi]; {
		case b > best || b == best && b > 0 && fi < q.fat:
			best, second, q.fat = b, best, fi
		case b > second:
			second = b
		}
	}
	if own != q.control && q.flows[own].where == idle {
		see(own)
	}
	for _, l := range [...]list{q.newList, q.oldList} {
		for fi := l.head; fi != none; fi = q.flows[fi].next {
			see(fi)
		}
	}
	for _, fi := range q.paced.heap {
		see(fi)
	}
	q.rival = second
	return q.fat
}

// grown keeps rival true after a flow's backlog has grown.
func (q *Queue[T]) grown(fi int32) {
	if fi != q.fat && fi != q.control && q.backlog[fi] > q.rival {
		q.rival = q.backlog[fi]
	}
}
