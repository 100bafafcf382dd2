package sim

import "sync/atomic"

// Kinds of descriptor lists.
const (
	ringTX = iota
	ringRX
)

// maxRing bounds how far a list is followed when its engine starts.
const maxRing = 1 << 16

// ringMap says which words of a block belong to which descriptor of a list, so that the CPU's accesses can be checked.
type ringMap struct {
	b *Board
	l layout
	// word maps a word of the block to (DES0's word + 1) << 1 | kind, 0 if it is in no descriptor. Atomic.
	word []uint32
	// low and high are the first and the last word of any descriptor: most of a block may be buffers.
	low, high atomic.Uint32
	// stored notes for each descriptor (by DES0's word / 4) the barrier count + 1 when its other words were last stored.
	stored []atomic.Uint32
}

// watchRX marks the receive list that starts at base, as far as it can be seen, and returns how many descriptors it has; 0
// if it has no end yet. A receive list is complete when its engine starts; of a transmit list nothing need be written by
// then, so its descriptors are marked when the engine comes across them. b.mu is held.
func (b *Board) watchRX(base uint32) int {
	b.unwatch(ringRX)
	l := b.layout()
	m := b.arena.lookup(base, l.words*4, nil)
	if m == nil {
		return 0
	}
	var list []int
	for cur := base; len(list) < maxRing && m.holds(cur, l.words*4); {
		w := int(cur-m.bus) / 4
		list = append(list, w)
		d := l.decodeRX(loadWord(m, w+1))
		next := l.follow(cur, base, loadWord(m, w+3), d.chained, d.end)
		if next == base {
			for _, w := range list {
				b.mark(ringRX, l, m, w)
			}
			return len(list)
		}
		cur = next
	}
	return 0
}

// mark notes that a descriptor is part of an engine's list. b.mu is held.
func (b *Board) mark(kind int, l layout, m *block, w int) {
	r := m.ring.Load()
	e := uint32(w+1)<<1 | uint32(kind)
	if r != nil && r.l == l {
		if atomic.LoadUint32(&r.word[w]) == e {
			return
		}
	} else {
		r = &ringMap{b: b, l: l, word: make([]uint32, len(m.words)), stored: make([]atomic.Uint32, len(m.words)/4+1)}
		r.low.Store(all32)
		m.ring.Store(r)
	}
	for i := range l.words {
		atomic.StoreUint32(&r.word[w+i], e)
	}
	r.low.Store(min(r.low.Load(), uint32(w)))
	r.high.Store(max(r.high.Load(), uint32(w+l.words-1)))
	for _, x := range b.watched[kind] {
		if x == m {
			return
		}
	}
	b.watched[kind] = append(b.watched[kind], m)
}

// unwatch forgets an engine's list. b.mu is held.
func (b *Board) unwatch(kind int) {
	for _, m := range b.watched[kind] {
		r := m.ring.Load()
		other := false
		for _, x := range b.watched[1-kind] {
			other = other || x == m
		}
		if !other {
			m.ring.Store(nil)
			continue
		}
		for i := range r.word {
			if e := atomic.LoadUint32(&r.word[i]); e != 0 && int(e&1) == kind {
				atomic.StoreUint32(&r.word[i], 0)
			}
		}
	}
	b.watched[kind] = nil
}

// running reports whether the engine of a list may use it.
func (r *ringMap) running(kind int) bool {
	if kind == ringTX {
		return r.b.txState.Load() != tsStopped
	}
	return r.b.rxState.Load() != rsStopped
}

// cpuLoad is told of a load of a word by the CPU.
func (r *ringMap) cpuLoad(w int) {
	if atomic.LoadUint32(&r.word[w]) != 0 {
		r.b.cnt.cpuReads.Add(1)
	}
}

// cpuCopy is told of a copy into the block by the CPU.
func (r *ringMap) cpuCopy(m *block, off, n int) {
	from, to := max(off/4, int(r.low.Load())), min((off+n-1)/4, int(r.high.Load()))
	for w := from; w <= to; w++ {
		if e := atomic.LoadUint32(&r.word[w]); e != 0 && r.running(int(e&1)) && loadWord(m, int(e>>1)-1)&descOWN != 0 {
			r.b.violate(RuleOwnedStore, "copy over the descriptor at bus 0x%08x", m.bus+(e>>1-1)*4)
			r.b.flush()
			return
		}
	}
}

// cpuStore is told of a store of a word by the CPU, before it.
func (r *ringMap) cpuStore(m *block, w int, v uint32) {
	e := atomic.LoadUint32(&r.word[w])
	if e == 0 {
		return
	}
	b := r.b
	b.cnt.cpuWrites.Add(1)
	kind, start := int(e&1), int(e>>1)-1
	if !r.running(kind) {
		return
	}
	bus := m.bus + uint32(start)*4
	if loadWord(m, start)&descOWN != 0 {
		b.violate(RuleOwnedStore, "0x%08x to word %d of the descriptor at bus 0x%08x", v, w-start, bus)
		b.flush()
		return
	}
	note := &r.stored[start/4]
	if w != start {
		note.Store(m.epoch.Load() + 1)
		return
	}
	if v&descOWN == 0 {
		return
	}
	reachable := kind == ringRX
	if kind == ringTX {
		first := loadWord(m, start+1)&ntFS != 0
		if r.l.enhanced {
			first = v&etFS != 0
		}
		reachable = first
		if b.tx.suspendedAt.Load() == bus {
			b.watchKick()
		}
	}
	if reachable && note.Load() == m.epoch.Load()+1 {
		b.violate(RuleNoBarrier, "OWN of the descriptor at bus 0x%08x", bus)
		b.flush()
	}
}

// watchKick notes that the suspended transmit engine was given a descriptor: a poll demand must follow.
func (b *Board) watchKick() {
	b.tx.unkicked.CompareAndSwap(0, b.clock.nanos()+1)
	if b.tx.kickWatch.CompareAndSwap(false, true) {
		b.clock.AfterFunc(LostKickTime, b.checkKick)
	}
}

func (b *Board) checkKick() {
	b.tx.kickWatch.Store(false)
	since := b.tx.unkicked.Load()
	if since == 0 || b.txState.Load() != tsSuspended || b.irq.Load() == nil {
		return
	}
	if wait := int64(LostKickTime) - (b.clock.nanos() - (since - 1)); wait > 0 {
		if b.tx.kickWatch.CompareAndSwap(false, true) {
			b.clock.AfterFunc(duration(wait), b.checkKick)
		}
		return
	}
	if b.tx.unkicked.CompareAndSwap(since, 0) {
		b.violate(RuleLostKick, "the engine is suspended at bus 0x%08x, which has OWN set, and no poll demand came for %v",
			b.tx.suspendedAt.Load(), LostKickTime)
		b.flush()
	}
}
