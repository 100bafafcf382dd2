package hw

import (
	"sync"
	"testing"
)

// Counters add up to 64 bits across wraps of the device's 32, through resets, and every register ends in its own field.
func TestCountersAccumulate(t *testing.T) {
	b := newBench(t, Config{})
	for i, c := range mmcCounters {
		b.mac.set(c.offset, uint32(i+1)*1000)
	}
	b.mac.set(0x1020, 3|5<<17)
	first := b.m.Counters()
	for i, c := range mmcCounters {
		if got := *c.field(&first); got != uint64(i+1)*1000 {
			t.Errorf("%s: %d", c.name, got)
		}
	}
	if first.RXMissed != 3 || first.RXOverflow != 5 {
		t.Errorf("missed %d, overflow %d", first.RXMissed, first.RXOverflow)
	}
	if again := b.m.Counters(); again != first {
		t.Error("reading twice counts twice")
	}

	// A wrap of 32 bits.
	b.mac.set(0x114, 0xFFFFFFF0)
	b.m.Counters()
	b.mac.set(0x114, 0x10)
	if got := b.m.Counters().TXOctetsGB; got != 1<<32+0x10 {
		t.Errorf("across a wrap: 0x%x", got)
	}

	// A reset of the device: it counts from zero, we go on.
	b.mac.set(0x118, 5000)
	if err := b.m.Reset(); err != nil {
		t.Fatal(err)
	}
	if got := b.m.Counters().TXFramesGB; got != 5000 {
		t.Errorf("after a reset: %d", got)
	}
	b.mac.set(0x118, 7)
	if got := b.m.Counters().TXFramesGB; got != 5007 {
		t.Errorf("after a reset and more: %d", got)
	}
	sum := uint64(0)
	for _, v := range b.m.Counters().All() {
		sum += v
	}
	if sum == 0 {
		t.Error("All yields nothing")
	}
}

// While a reset is under way, or when it failed, the counters are what they were.
func TestCountersDuringReset(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.set(0x118, 100)
	b.mac.onStore = func(off, v uint32) {
		if off == 0x1000 && v&1 != 0 { // in the middle of it
			if got := b.m.Counters().TXFramesGB; got != 100 {
				t.Errorf("in a reset: %d", got)
			}
		}
	}
	b.mac.frozen[0x1000] = 1
	if err := b.m.Reset(); err == nil {
		t.Fatal("the reset did not fail")
	}
	if got := b.m.Counters().TXFramesGB; got != 100 {
		t.Errorf("after a reset that failed: %d", got)
	}
	clear(b.mac.frozen)
	if err := b.m.Reset(); err != nil {
		t.Fatal(err)
	}
	b.mac.set(0x118, 1)
	if got := b.m.Counters().TXFramesGB; got != 101 {
		t.Errorf("after one that did not: %d", got)
	}
}

// Registers that the core does not have are not read, and a device that vanishes adds nothing.
func TestCountersOfLesserCores(t *testing.T) {
	p := newFakePort(t)
	p.mac.feature = 1 << 11 // counters, no checksum engine
	p.mac.resetRegs()
	m := p.open(Config{})
	mark := p.mac.mark()
	m.Counters()
	for _, a := range p.mac.log[mark:] {
		if a.off >= 0x200 && a.off < 0x300 {
			t.Errorf("0x%x read", a.off)
		}
	}
	p = newFakePort(t)
	p.mac.feature = 1 << 0
	p.mac.resetRegs()
	m = p.open(Config{})
	mark = p.mac.mark()
	p.mac.set(0x1020, 9)
	if m.Counters().RXMissed != 9 {
		t.Error("missed frames are the DMA's")
	}
	for _, a := range p.mac.log[mark:] {
		if a.off >= 0x100 && a.off < 0x300 {
			t.Errorf("0x%x read", a.off)
		}
	}
	b := newBench(t, Config{})
	n := 0
	b.mac.onLoad = func(off uint32) {
		if n++; n == 20 {
			b.mac.gone = true
		}
	}
	if c := b.m.Counters(); c != (Counters{}) {
		t.Errorf("%+v", c)
	}
}

// Concurrent callers count nothing twice. Run with -race.
func TestCountersConcurrent(t *testing.T) {
	b := newBench(t, Config{})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				if g == 0 {
					b.mac.set(0x118, uint32(i+1))
				}
				b.m.Counters()
			}
		})
	}
	wg.Wait()
	if got := b.m.Counters().TXFramesGB; got != 100 {
		t.Errorf("%d", got)
	}
}

// A dump has each register that the core has once, and changes nothing; what reading would change is in DumpAll only, and the
// missed frames that it finds are not lost.
func TestDump(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.set(0x104, 7)
	b.mac.set(0x1020, 4)
	b.mac.set(0x1014, 1)
	mark := b.mac.mark()
	seen := map[uint32]RegisterValue{}
	for _, v := range b.m.Dump() {
		if v.ReadActs {
			t.Errorf("%s is in the dump", v.Name)
		}
		seen[v.Offset] = v
	}
	if len(b.mac.writes(mark)) != 0 || b.mac.get(0x104) != 7 || b.mac.get(0x1020) != 4 || b.mac.get(0x1014) != 1 {
		t.Error("the dump changed something")
	}
	if _, ok := seen[0xC0]; ok {
		t.Error("a PCS register of a core without PCS")
	}
	if v := seen[0]; v.Value != 0x00610C0C || v.Decoded != "RE TE IPC DM speed=1000 DCRS BE JD" ||
		v.String() != "0000 MAC_Configuration                        00610c0c RE TE IPC DM speed=1000 DCRS BE JD" {
		t.Errorf("%v", v)
	}
	all := b.m.DumpAll()
	if len(all) <= len(seen) || b.mac.get(0x104) != 0 {
		t.Errorf("%d registers, %d without those that reading changes", len(all), len(seen))
	}
	if got := b.m.Counters().RXMissed; got != 4 {
		t.Errorf("%d missed frames", got)
	}
	b.checkRules()
}
