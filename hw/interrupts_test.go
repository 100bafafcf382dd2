package hw

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// IRQ-01 and RST-11: Interrupts reads once and clears exactly what it read, at one address; what comes later stays.
func TestIRQ01_AcknowledgesWhatItRead(t *testing.T) {
	for _, v := range []uint32{0, 1, 1<<6 | 1<<16, 1<<7 | 1<<15, 0x1E7FF} {
		b := newBench(t, Config{})
		b.mac.set(0x1014, v)
		mark := b.mac.mark()
		late := uint32(1 << 14)
		b.mac.onLoad = func(off uint32) {
			if off != 0x1014 {
				t.Errorf("0x%x read", off)
			}
		}
		c := b.m.Interrupts()
		b.mac.onLoad = nil
		if uint32(c)&0x1FFFF != v {
			t.Errorf("cause 0x%x, want 0x%x", uint32(c), v)
		}
		b.mac.set(0x1014, b.mac.get(0x1014)|late)
		w := b.mac.writes(mark)
		if v == 0 && len(w) != 0 || v != 0 && (len(w) != 1 || w[0].off != 0x1014 || w[0].v != v) {
			t.Errorf("0x%x: wrote %v", v, trace(w))
		}
		if got := b.mac.get(0x1014); got != late {
			t.Errorf("0x%x: 0x%x left", v, got)
		}
	}
}

// A frame that arrives right before the acknowledgement is found by the look after it: the loop acknowledges first.
func TestIRQ01_FrameAtAnyMoment(t *testing.T) {
	for moment := range 4 {
		b := newBench(t, Config{})
		step := func(n int) {
			if n == moment {
				b.dma.receive(frame(60, 1), rdFT)
				b.mac.set(0x1014, b.mac.get(0x1014)|1<<6|1<<16)
			}
		}
		found := 0
		loop := func() {
			c := b.m.Interrupts()
			if c.RX() {
				found += len(b.drain())
			}
		}
		b.mac.set(0x1014, 1<<6|1<<16) // of an earlier frame that is drained already
		step(0)
		b.mac.onLoad = func(uint32) { b.mac.onLoad = nil; step(1) }
		loaded := false
		b.mac.onStore = func(off, v uint32) {
			if off == 0x1014 && !loaded {
				loaded = true
				step(2)
			}
		}
		loop()
		step(3)
		for b.mac.get(0x1014)&(1<<6) != 0 { // the line is still raised
			loop()
		}
		if found != 1 {
			t.Errorf("moment %d: %d frames", moment, found)
		}
	}
}

// IRQ-03: the counters' interrupts are masked before anything is enabled, in Open and after every reset; should one be raised
// all the same it is quenched at its source, and so are the others outside the DMA.
func TestIRQ03_SecondarySources(t *testing.T) {
	b := newBench(t, Config{})
	_ = b.m.Reset()
	_ = b.m.Start()
	b.m.EnableInterrupts()
	masked := map[uint32]bool{}
	for _, a := range b.mac.writes(0) {
		switch {
		case a.off == 0x1000 && a.v&1 != 0:
			clear(masked)
		case a.off == 0x10C || a.off == 0x110 || a.off == 0x200:
			masked[a.off] = a.v == 0xFFFFFFFF
		case a.off == 0x101C && a.v != 0:
			if !masked[0x10C] || !masked[0x110] || !masked[0x200] {
				t.Error("interrupts enabled before the counters' were masked")
			}
		}
	}
	for bit, reads := range map[int][]uint32{26: {0xD8}, 27: {0x104, 0x108, 0x208}, 28: {0x2C}, 30: {0x30}, 29: nil} {
		b.mac.set(0x1014, 1<<bit)
		mark := b.mac.mark()
		b.m.Interrupts()
		b.mac.set(0x1014, 0)
		var got []uint32
		for _, a := range b.mac.log[mark:] {
			if !a.write && a.off != 0x1014 {
				got = append(got, a.off)
			}
		}
		if d := cmp.Diff(reads, got); d != "" {
			t.Errorf("bit %d: %s", bit, d)
		}
	}
}

// What a cause answers.
func TestCause(t *testing.T) {
	type answers struct {
		TX, RX, RXUnavailable, TXUnderflow, RXOverflow, TXStopped, RXStopped, Fatal, Gone bool
		BusError                                                                          string
	}
	for v, want := range map[Cause]answers{
		0:                {},
		1:                {TX: true},
		1 << 6:           {RX: true},
		1<<7 | 1<<15:     {RXUnavailable: true},
		1 << 5:           {TXUnderflow: true},
		1 << 4:           {RXOverflow: true},
		1 << 3:           {TXStopped: true},
		1 << 1:           {TXStopped: true},
		1 << 8:           {RXStopped: true},
		1<<13 | 0<<23:    {Fatal: true, BusError: "RX data write"},
		1<<13 | 3<<23:    {Fatal: true, BusError: "TX data read"},
		1<<13 | 4<<23:    {Fatal: true, BusError: "RX descriptor write"},
		1<<13 | 5<<23:    {Fatal: true, BusError: "TX descriptor write"},
		1<<13 | 6<<23:    {Fatal: true, BusError: "RX descriptor read"},
		1<<13 | 7<<23:    {Fatal: true, BusError: "TX descriptor read"},
		1<<13 | 1<<23:    {Fatal: true, BusError: "unknown access"},
		7 << 23:          {},
		4<<17 | 6<<20:    {},
		1 << 31:          {},
		1<<2 | 1<<16 | 1: {TX: true},
	} {
		got := answers{v.TX(), v.RX(), v.RXUnavailable(), v.TXUnderflow(), v.RXOverflow(), v.TXStopped(), v.RXStopped(), v.Fatal(), v.Gone(), v.BusError()}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("0x%x: %s", uint32(v), d)
		}
	}
}

// States of the engines and of the MAC, without acknowledging anything.
func TestStates(t *testing.T) {
	b := newBench(t, Config{})
	mark := b.mac.mark()
	for rx := range uint32(8) {
		for tx := range uint32(8) {
			b.mac.rxState, b.mac.txState = rx, tx
			r, x := b.m.RXState(), b.m.TXState()
			if r.Stopped() != (rx == 0) || r.Suspended() != (rx == 4) || x.Stopped() != (tx == 0) || x.Suspended() != (tx == 6) {
				t.Errorf("%d: %v, %d: %v", rx, r, tx, x)
			}
		}
	}
	b.mac.rxState, b.mac.txState = 0, 0
	for v, want := range map[uint32][3]bool{ // paused, TX idle, RX empty
		0: {false, true, true}, 1 << 19: {true, true, true}, 1 << 24: {false, false, true}, 1 << 22: {false, false, true},
		1 << 20: {false, false, true}, 1 << 17: {false, false, true}, 1 << 16: {false, false, true},
		1 << 4: {false, true, false}, 2 << 5: {false, true, false}, 1 << 8: {false, true, false}, 3: {false, true, true},
		0xFFFFFFFF: {false, false, false},
	} {
		b.mac.set(0x24, v)
		d := b.m.Debug()
		if got := [3]bool{d.PausedByPeer(), d.TXIdle(), d.RXEmpty()}; got != want {
			t.Errorf("debug 0x%x (%v): %v, want %v", v, d, got, want)
		}
	}
	if w := b.mac.writes(mark); len(w) != 0 {
		t.Errorf("looking wrote %v", trace(w))
	}
}
