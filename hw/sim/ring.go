package sim

import "sync/atomic"

// Kinds of descriptor lists.
const (
	ringTX = iota
	ringRX
)

// maxRing bounds how far a list is followed when its engine starts.
const maxRing = 1 << 16

// ringMap says which words of a block belong to which descriptor of a running list, so that the CPU's accesses can be
// checked. It does not change once it is published, but for the notes about stores.
type ringMap struct {
	b *Board
	l layout
	// word maps a word of the block to (DES0's word + 1) << 1 | kind, 0 if it is in no descriptor.
	word []uint32
	// stored notes for each descriptor (by DES0's word / 4) the barrier count + 1 when its other words were last stored.
	stored []atomic.Uint32
}

// watch marks the list that starts at base as the engine's. b.mu is held.
func (b *Board) watch(kind int, base uint32) (entries int) {
	l := b.layout()
	maps := map[*block]*ringMap{}
	mapOf := func(m *block) *ringMap {
		r := maps[m]
		if r == nil {
			r = &ringMap{b: b, l: l, word: make([]uint32, len(m.words)), stored: make([]atomic.Uint32, len(m.words)/4+1)}
			if old := m.ring.Load(); old != nil && old.b == b {
				for i, e := range old.word {
					if e != 0 && int(e&1) != kind {
						r.word[i] = e
					}
				}
			}
			maps[m] = r
		}
		return r
	}
	b.unwatch(kind)
	cur := base
	var hint *block
	for entries < maxRing {
		m := b.arena.lookup(cur, l.words*4, hint)
		if m == nil {
			break
		}
		hint = m
		r := mapOf(m)
		w := int(cur-m.bus) / 4
		for i := range l.words {
			r.word[w+i] = uint32(w+1)<<1 | uint32(kind)
		}
		entries++
		d0, d1, d3 := loadWord(m, w), loadWord(m, w+1), loadWord(m, w+3)
		var next uint32
		if kind == ringTX {
			d := l.decodeTX(d0, d1)
			next = l.follow(cur, base, d3, d.chained, d.end)
		} else {
			d := l.decodeRX(d1)
			next = l.follow(cur, base, d3, d.chained, d.end)
		}
		if next == base {
			break
		}
		if next == cur || r.word[w] == 0 {
			break
		}
		cur = next
	}
	for m, r := range maps {
		m.ring.Store(r)
		b.watched[kind] = append(b.watched[kind], m)
	}
	return entries
}

// unwatch forgets an engine's list. b.mu is held.
func (b *Board) unwatch(kind int) {
	for _, m := range b.watched[kind] {
		old := m.ring.Load()
		if old == nil {
			continue
		}
		other := false
		for _, x := range b.watched[1-kind] {
			other = other || x == m
		}
		if !other {
			m.ring.Store(nil)
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
	if r.word[w] != 0 {
		r.b.cnt.cpuReads.Add(1)
	}
}

// cpuCopy is told of a copy into the block by the CPU.
func (r *ringMap) cpuCopy(m *block, off, n int) {
	for w := off / 4; w*4 < off+n; w++ {
		if e := r.word[w]; e != 0 && r.running(int(e&1)) && loadWord(m, int(e>>1)-1)&descOWN != 0 {
			r.b.violate(RuleOwnedStore, "copy over the descriptor at bus 0x%08x", m.bus+(e>>1-1)*4)
			r.b.flush()
			return
		}
	}
}

// cpuStore is told of a store of a word by the CPU, before it.
func (r *ringMap) cpuStore(m *block, w int, v uint32) {
	e := r.word[w]
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
