package hw

import (
	"sync/atomic"
	"testing"
)

// benchMemory is DMA memory as plain as a real board's: words without atomics, no bookkeeping.
type benchMemory struct {
	words   []uint32
	bytes   []byte
	barrier atomic.Uint32
}

func (m *benchMemory) Bus() uint32                 { return 0x40000000 }
func (m *benchMemory) Size() int                   { return len(m.bytes) }
func (m *benchMemory) Load32(off int) uint32       { return m.words[off/4] }
func (m *benchMemory) Store32(off int, v uint32)   { m.words[off/4] = v }
func (m *benchMemory) CopyIn(off int, src []byte)  { copy(m.bytes[off:], src) }
func (m *benchMemory) CopyOut(dst []byte, off int) { copy(dst, m.bytes[off:]) }
func (m *benchMemory) Barrier()                    { m.barrier.Add(1) }

// benchRegs is a register window that does nothing.
type benchRegs struct{ status uint32 }

func (r *benchRegs) Load32(off uint32) uint32 { return r.status }
func (r *benchRegs) Store32(off, v uint32)    {}

func benchBlock(slots, slotBytes int) (block, *benchMemory) {
	size := roundUp(slots*descriptorBytes, cacheLine) + slots*roundUp(slotBytes, cacheLine)
	m := &benchMemory{words: make([]uint32, slots*4), bytes: make([]byte, size)}
	return block{
		mem: m, slots: slots, slotBytes: slotBytes, stride: roundUp(slotBytes, cacheLine),
		buffers: roundUp(slots*descriptorBytes, cacheLine),
	}, m
}

// txCycle sends a burst of n frames of the given length through the ring and takes it back.
func txCycle(r *TXRing, m *benchMemory, header, payload []byte, n int) {
	for i := range n {
		r.Write(0, header)
		r.Write(len(header), payload)
		_ = r.Commit(len(header)+len(payload), TXFlags{Interrupt: i == n-1})
	}
	r.Kick()
	for i := 0; i < len(m.words); i += 4 {
		m.words[i] &^= 1 << 31
	}
	r.Reclaim()
}

func rxCycle(r *RXRing, m *benchMemory, buf []byte, n int) {
	for i := range n {
		m.words[r.at(r.next, i)*4] = rdFS | rdLS | rdFT | uint32(len(buf)+4)<<16
	}
	for {
		f, ok := r.Next()
		if !ok {
			break
		}
		r.CopyOut(buf[:f.Len])
		r.Release()
	}
	r.Resume()
}

const burst = 16

func benchTX(length int) (*TXRing, *benchMemory, []byte, []byte) {
	b, m := benchBlock(256, DefaultSlotBytes)
	r := newTXRing(b, &benchRegs{}, func() {}, 1767)
	r.rebuild()
	return r, m, make([]byte, 54), make([]byte, length-54)
}

func benchRX(length int) (*RXRing, *benchMemory, []byte) {
	b, m := benchBlock(512, DefaultSlotBytes)
	r := newRXRing(b, &benchRegs{status: 4 << 17}, false)
	r.checksum = true
	r.rebuild()
	return r, m, make([]byte, length)
}

// The hot path allocates nothing: not for a frame, not for an error, not for a kick.
func TestRingsDoNotAllocate(t *testing.T) {
	tx, txm, header, payload := benchTX(1514)
	rx, rxm, buf := benchRX(1514)
	for name, f := range map[string]func(){
		"transmit": func() { txCycle(tx, txm, header, payload, burst) },
		"transmit, slots": func() {
			tx.Write(0, payload)
			tx.Write(1400, payload)
			_ = tx.Commit(2800, TXFlags{})
			txCycle(tx, txm, header, payload, 1)
		},
		"transmit errors": func() {
			_ = tx.Commit(1, TXFlags{})
			_ = tx.Commit(60, TXFlags{})
			tx.Write(0, header)
			_ = tx.Commit(1800, TXFlags{Checksum: CICFull})
			_, _ = tx.Stats(), tx.Pending()
		},
		"receive": func() { rxCycle(rx, rxm, buf, burst) },
		"receive errors": func() {
			rxm.words[rx.next*4] = rdFS | 1<<1
			rxm.words[rx.at(rx.next, 1)*4] = rdLS | 1<<15 | 1<<1
			rx.Next()
			rx.Release()
			_ = rx.Stats()
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if tx.Stats().Frames == 0 || rx.Stats().Frames == 0 || rx.Stats().CRC+rx.Stats().TooLong == 0 {
		t.Error("nothing went through")
	}
}

// The hot path's register accesses, per burst: one write to send, one read and one write to receive. Descriptors and payload
// are memory.
func TestRegisterAccessesPerBurst(t *testing.T) {
	b := newBench(t, Config{})
	mark := b.mac.mark()
	for i := range burst {
		b.send(frame(1514, i), TXFlags{Interrupt: i == burst-1})
	}
	b.m.TX().Kick()
	b.dma.sendAll()
	b.m.TX().Reclaim()
	for i := range burst {
		b.dma.receive(frame(1514, i), rdFT)
	}
	b.drain()
	b.mac.rxState = 4
	b.m.RX().Resume()
	if n := b.mac.mark() - mark; n != 3 {
		t.Errorf("%d register accesses: %v", n, trace(b.mac.writes(mark)))
	}
}

func BenchmarkTXRing(b *testing.B) {
	for _, n := range []int{64, 1514} {
		b.Run(map[int]string{64: "64", 1514: "1514"}[n], func(b *testing.B) {
			r, m, header, payload := benchTX(n)
			b.ReportAllocs()
			b.SetBytes(int64(n * burst))
			for b.Loop() {
				txCycle(r, m, header, payload, burst)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/burst, "ns/frame")
		})
	}
}

func BenchmarkRXRing(b *testing.B) {
	for _, n := range []int{64, 1514} {
		b.Run(map[int]string{64: "64", 1514: "1514"}[n], func(b *testing.B) {
			r, m, buf := benchRX(n)
			b.ReportAllocs()
			b.SetBytes(int64(n * burst))
			for b.Loop() {
				rxCycle(r, m, buf, burst)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/burst, "ns/frame")
		})
	}
}
