package hw

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
)

// fakeMemory is DMA memory on the heap. Words are atomic, as in a simulated board; events, if on, records the order of what
// the driver did.
type fakeMemory struct {
	t     testing.TB
	id    int
	bus   uint32
	words []uint32
	freed bool

	record bool
	events []string
	loads  int             // Load32 calls by the driver
	reads  map[int]int     // bytes read by CopyOut
	hook   func(op string) // before each access of the driver
	rings  int             // bytes of descriptors in front; 0: stores to owned ones are not trapped
}

func (m *fakeMemory) Bus() uint32 { return m.bus }
func (m *fakeMemory) Size() int   { return len(m.words) * 4 }

func (m *fakeMemory) note(op string, off, n int) {
	if m.freed {
		m.t.Errorf("%s of freed memory", op)
	}
	if m.record {
		m.events = append(m.events, fmt.Sprintf("%s %d %d", op, off, n))
	}
	if m.hook != nil {
		m.hook(op)
	}
}

func (m *fakeMemory) Load32(off int) uint32 {
	if off%4 != 0 {
		m.t.Errorf("unaligned load at %d", off)
	}
	m.note("load", off, 4)
	m.loads++
	return atomic.LoadUint32(&m.words[off/4])
}

func (m *fakeMemory) Store32(off int, v uint32) {
	if off%4 != 0 {
		m.t.Errorf("unaligned store at %d", off)
	}
	m.note("store", off, 4)
	if off < m.rings && atomic.LoadUint32(&m.words[off/16*4])>>31 != 0 {
		m.t.Errorf("store to descriptor %d, which the DMA owns", off/16)
	}
	atomic.StoreUint32(&m.words[off/4], v)
}

func (m *fakeMemory) CopyIn(off int, src []byte) {
	m.note("in", off, len(src))
	m.dmaWrite(off, src)
}

func (m *fakeMemory) CopyOut(dst []byte, off int) {
	m.note("out", off, len(dst))
	if m.reads != nil {
		for i := range dst {
			m.reads[off+i]++
		}
	}
	m.dmaRead(off, dst)
}

func (m *fakeMemory) Barrier() { m.note("barrier", 0, 0) }

// dmaRead and dmaWrite are the device's and the test's accesses.
func (m *fakeMemory) dmaRead(off int, dst []byte) {
	for i := range dst {
		dst[i] = byte(atomic.LoadUint32(&m.words[(off+i)/4]) >> ((off + i) % 4 * 8))
	}
}

func (m *fakeMemory) dmaWrite(off int, src []byte) {
	for i, b := range src {
		w, shift := &m.words[(off+i)/4], (off+i)%4*8
		atomic.StoreUint32(w, atomic.LoadUint32(w)&^(0xFF<<shift)|uint32(b)<<shift)
	}
}

// fakeDMA is the two DMA engines in ring mode. They read and write descriptors as the documents say, by their own code.
type fakeDMA struct {
	enhanced bool
	tx, rx   engine

	sent     [][]byte
	descs    []int    // numbers of the descriptors that the transmit engine has used
	txs      []uint32 // control word of the first descriptor of each frame sent
	txStatus func(frame int) uint32
	order    func(n int) []int // order in which the words of a descriptor are fetched
	scribble bool              // completed descriptors are overwritten
}

type engine struct {
	mem  *fakeMemory
	base uint32
	pos  int // descriptor that comes next
}

func (e *engine) off() int { return int(e.base-e.mem.bus) + e.pos*16 }

func (e *engine) word(i int) uint32 { return atomic.LoadUint32(&e.mem.words[e.off()/4+i]) }
func (e *engine) set(i int, v uint32) {
	atomic.StoreUint32(&e.mem.words[e.off()/4+i], v)
}

// attach points the engines at the rings of m, as starting them does.
func (d *fakeDMA) attach(p *fakePort, m *MAC) {
	d.enhanced = m.feature&(1<<24) != 0
	d.tx = engine{mem: m.tx.mem.(*fakeMemory), base: p.mac.get(0x1010)}
	d.rx = engine{mem: m.rx.mem.(*fakeMemory), base: p.mac.get(0x100C)}
}

// txFields are what the engine wants to know of a transmit descriptor.
func (d *fakeDMA) txFields() (own, first, last, end bool, n int, addr, control uint32) {
	w0, w1, addr := d.tx.word(0), d.tx.word(1), d.tx.word(2)
	own = w0>>31 != 0
	if d.enhanced {
		return own, w0>>28&1 != 0, w0>>29&1 != 0, w0>>21&1 != 0, int(w1 & 0x1FFF), addr, w0
	}
	return own, w1>>29&1 != 0, w1>>30&1 != 0, w1>>25&1 != 0, int(w1 & 0x7FF), addr, w1
}

// sendOne sends the next frame, if there is one, and closes its descriptors.
func (d *fakeDMA) sendOne() bool {
	var frame []byte
	start := len(d.descs)
	for {
		own, first, last, end, n, addr, control := d.txFields()
		if !own {
			if frame != nil {
				panic("transmit DMA ran out of descriptors within a frame")
			}
			return false
		}
		if first != (len(d.descs) == start) {
			panic("FS in the wrong descriptor")
		}
		if first {
			d.txs = append(d.txs, control)
		}
		if n == 0 {
			panic("descriptor with an empty buffer")
		}
		buf := make([]byte, n)
		d.tx.mem.dmaRead(int(addr-d.tx.mem.bus), buf)
		frame = append(frame, buf...)
		status := d.tx.word(0) &^ (1<<31 | 0x3FFFF)
		if last && d.txStatus != nil {
			status |= d.txStatus(len(d.sent))
		}
		d.descs = append(d.descs, d.tx.pos)
		if d.scribble {
			for i := 1; i < 4; i++ {
				d.tx.set(i, 0xDEADBEEF)
			}
		}
		d.tx.set(0, status)
		d.tx.pos++
		if end {
			d.tx.pos = 0
		}
		if last {
			d.sent = append(d.sent, frame)
			return true
		}
	}
}

func (d *fakeDMA) sendAll() {
	for d.sendOne() {
	}
}

// put writes data into the next receive descriptor and closes it with the status. It is false when the CPU owns it.
func (d *fakeDMA) put(data []byte, status uint32) bool {
	if d.rx.word(0)>>31 == 0 {
		return false
	}
	w1, addr := d.rx.word(1), d.rx.word(2)
	size, end := int(w1&0x7FF), w1>>25&1 != 0
	if d.enhanced {
		size, end = int(w1&0x1FFF), w1>>15&1 != 0
	}
	if len(data) > size {
		panic("frame beyond the advertised size")
	}
	d.rx.mem.dmaWrite(int(addr-d.rx.mem.bus), data)
	if d.scribble {
		for i := 1; i < 4; i++ {
			d.rx.set(i, 0xDEADBEEF)
		}
	}
	d.rx.set(0, status)
	d.rx.pos++
	if end {
		d.rx.pos = 0
	}
	return true
}

// size is what the next receive descriptor advertises.
func (d *fakeDMA) size() int {
	if d.enhanced {
		return int(d.rx.word(1) & 0x1FFF)
	}
	return int(d.rx.word(1) & 0x7FF)
}

const (
	rdFS = 1 << 9
	rdLS = 1 << 8
	rdFT = 1 << 5
)

// receive puts a frame without FCS into the ring, over as many descriptors as it takes. flags are more status bits of the
// last one.
func (d *fakeDMA) receive(frame []byte, flags uint32) bool {
	wire := append(slices.Clone(frame), 0xAA, 0xBB, 0xCC, 0xDD)
	total := len(wire)
	status := uint32(rdFS)
	for done := 0; ; {
		n := min(d.size(), len(wire))
		done += n
		if n == len(wire) {
			status |= rdLS | flags
		}
		if !d.put(wire[:n], status|uint32(min(done, total))<<16) {
			return false
		}
		if wire = wire[n:]; len(wire) == 0 {
			return true
		}
		status = 0
	}
}

// frame makes a frame of n bytes that differs by seed.
func frame(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + seed*31 + i>>8)
	}
	return b
}
