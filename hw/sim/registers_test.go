package sim

import (
	"math/bits"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stepped is a board under a clock that the test moves, with its registers.
func stepped(t testing.TB, o Options) (*Board, *SteppedClock) {
	t.Helper()
	c := NewSteppedClock(time.Unix(1_700_000_000, 0))
	o.Clock = c
	return newBoard(t, o), c
}

func rules(b *Board) []Rule {
	var r []Rule
	for _, v := range b.Violations() {
		r = append(r, v.Rule)
	}
	return r
}

func TestRegisterTableIsConsistent(t *testing.T) {
	last := int64(-1)
	names := map[string]bool{}
	for _, r := range Registers() {
		if int64(r.Offset) <= last || r.Offset%4 != 0 {
			t.Errorf("%s: offset 0x%04x after 0x%04x", r.Name, r.Offset, last)
		}
		last = int64(r.Offset)
		if names[r.Name] {
			t.Errorf("%s is there twice", r.Name)
		}
		names[r.Name] = true
		masks := []uint32{r.Writable, r.SelfClear, r.W1C, r.ReadClear, r.Reserved}
		for i, a := range masks {
			for _, b := range masks[i+1:] {
				if a&b != 0 {
					t.Errorf("%s: a bit 0x%08x is of two kinds", r.Name, a&b)
				}
			}
		}
		if r.Reset&r.Reserved != 0 {
			t.Errorf("%s: reserved bits in the reset value", r.Name)
		}
		if ro := r.Access == AccessRO || r.Access == AccessRC; ro != (r.Writable|r.SelfClear|r.W1C == 0 && r.Access != AccessWO) {
			t.Errorf("%s: access %v does not fit its masks", r.Name, r.Access)
		}
	}
	if len(names) != 154 {
		t.Errorf("%d registers; a new one needs a look at this test", len(names))
	}
}

func TestResetValues(t *testing.T) {
	b, _ := stepped(t, Options{})
	r := b.Port().Registers()
	for _, s := range Registers() {
		want := s.Reset
		if s.Offset == regBusMode {
			want &^= busSWR // power-on reset is over
		}
		if s.Offset == regPMT {
			want |= 1 << pmtPointer // the wake-up filter was read once
		}
		if got := r.Load32(s.Offset); got != want {
			t.Errorf("%s reads 0x%08x after power-on, want 0x%08x", s.Name, got, want)
		}
	}
	noViolations(t, b)
}

func TestDocumentedValues(t *testing.T) {
	b, _ := stepped(t, Options{})
	r := b.Port().Registers()
	got := map[string]uint32{
		"version":    r.Load32(0x20),
		"bus mode":   r.Load32(0x1000),
		"addr0 high": r.Load32(0x40),
		"addr0 low":  r.Load32(0x44),
		"addr1 high": r.Load32(0x48),
		"LPI timers": r.Load32(0x34),
		"feature":    r.Load32(0x1058),
	}
	want := map[string]uint32{
		"version": 0x1037, "bus mode": 0x00020100, "addr0 high": 0x8000FFFF, "addr0 low": 0xFFFFFFFF,
		"addr1 high": 0x0000FFFF, "LPI timers": 0x03E80000, "feature": 0x100D0F37,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestFeatureWordFollowsOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want uint32
	}{
		{Options{EnhancedDescriptors: true}, 0x110D0F37},
		{Options{RXFIFOBytes: 2048}, 0x10050F37},
		{Options{PHYMode: "rmii"}, 0x400D0F37},
		{Options{PHYMode: "mii"}, 0x000D0F37},
	} {
		b, _ := stepped(t, c.o)
		if got := b.Port().Registers().Load32(regFeature); got != c.want {
			t.Errorf("%+v: feature word 0x%08x, want 0x%08x", c.o, got, c.want)
		}
	}
}

// TestWritableBits writes each plain register bit by bit and expects exactly the writable ones to stick.
func TestWritableBits(t *testing.T) {
	for _, s := range Registers() {
		if s.Access != AccessRW && s.Access != AccessRWSC {
			continue
		}
		switch s.Offset {
		case regBusMode, regOpMode, regMIIAddress, regFlowControl, regMMCControl, regPMT, regConfig, regWakeFilter:
			continue // writes have effects, tested elsewhere
		}
		t.Run(s.Name, func(t *testing.T) {
			b, c := stepped(t, Options{})
			r := b.Port().Registers()
			c.Advance(time.Millisecond)
			want := s.Writable
			if s.Offset == regRXBase || s.Offset == regTXBase {
				want &^= 7 // the bus is eight bytes wide
			}
			r.Store32(s.Offset, ^s.Reserved)
			fixed := s.Reset &^ s.Writable
			if got := r.Load32(s.Offset); got != want|fixed {
				t.Errorf("reads 0x%08x after all ones, want 0x%08x", got, want|fixed)
			}
			c.Advance(time.Millisecond)
			r.Store32(s.Offset, 0)
			if got := r.Load32(s.Offset); got != fixed {
				t.Errorf("reads 0x%08x after zero, want 0x%08x", got, fixed)
			}
			r.Store32(regBusMode, busSWR)
			c.Advance(time.Millisecond)
			if got := r.Load32(s.Offset); got != s.Reset {
				t.Errorf("reads 0x%08x after a reset, want 0x%08x", got, s.Reset)
			}
		})
	}
}

func TestReservedBitsAreReported(t *testing.T) {
	for _, s := range Registers() {
		if s.Reserved == 0 || s.Offset == regStatus {
			continue
		}
		b, c := stepped(t, Options{})
		r := b.Port().Registers()
		c.Advance(time.Millisecond)
		bit := uint32(1) << bits.TrailingZeros32(s.Reserved)
		v := bit | s.Reset&s.Writable
		r.Store32(s.Offset, v)
		if got := rules(b); !cmp.Equal(got, []Rule{RuleReservedBits}) {
			t.Errorf("%s: writing 0x%08x is reported as %v", s.Name, v, got)
		}
	}
}

func TestOffsetsThatAreNoRegister(t *testing.T) {
	for _, c := range []struct {
		off   uint32
		write bool
		want  []Rule
	}{
		{0x1030, false, []Rule{RuleUnknownRegister}},
		{0x0E8, true, []Rule{RuleUnknownRegister}},
		{0x5000, false, []Rule{RuleUnknownRegister}},
		{0xC0, false, nil}, // PCS: documented, absent, a dump may read it
		{0xC0, true, []Rule{RuleUnknownRegister}},
		{0x700, true, []Rule{RuleUnknownRegister}},
		{0x1001, false, []Rule{RuleAccessMode}},
		{0x10000, true, []Rule{RuleAccessMode}},
		{regVersion, true, []Rule{RuleReadOnlyWrite}},
		{regFeature, true, []Rule{RuleReadOnlyWrite}},
		{mmcRXFramesGB, true, []Rule{RuleReadOnlyWrite}},
		{regMissed, true, []Rule{RuleReadOnlyWrite}},
	} {
		b, _ := stepped(t, Options{})
		r := b.Port().Registers()
		if c.write {
			r.Store32(c.off, 0)
		} else if v := r.Load32(c.off); v != 0 {
			t.Errorf("0x%04x reads 0x%08x", c.off, v)
		}
		if got := rules(b); !cmp.Equal(got, c.want) {
			t.Errorf("offset 0x%04x, write %v: %v, want %v", c.off, c.write, got, c.want)
		}
	}
}

func TestWakeFilterPointer(t *testing.T) {
	b, _ := stepped(t, Options{})
	r := b.Port().Registers()
	for i := range uint32(8) {
		r.Store32(regWakeFilter, 100+i)
	}
	for i := range uint32(3) {
		if got := r.Load32(regWakeFilter); got != 100+i {
			t.Errorf("word %d reads %d", i, got)
		}
	}
	if got := r.Load32(regPMT) >> pmtPointer; got != 3 {
		t.Errorf("pointer %d, want 3", got)
	}
	r.Store32(regPMT, pmtFilterReset)
	if got := r.Load32(regWakeFilter); got != 100 {
		t.Errorf("after a pointer reset word 0 reads %d", got)
	}
	noViolations(t, b)
}

func TestAccessesAreTraced(t *testing.T) {
	var log []Access
	c := NewSteppedClock(time.Unix(5, 0))
	b := newBoard(t, Options{Clock: c, OnAccess: func(a Access) { log = append(log, a) }})
	r := b.Port().Registers()
	r.Store32(regFilter, 1)
	r.Load32(regVersion)
	want := []Access{{Time: c.Now(), Off: regFilter, Value: 1, Write: true}, {Time: c.Now(), Off: regVersion, Value: 0x1037}}
	if d := cmp.Diff(want, log); d != "" {
		t.Error(d)
	}
}

func TestMACAddressIsTakenOverByItsLowHalf(t *testing.T) {
	b, c := stepped(t, Options{})
	r := b.Port().Registers()
	active := func() [6]byte {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.addr[0].bytes
	}
	r.Store32(regAddress0, 0x0100)
	if got := active(); got != [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF} {
		t.Errorf("the high half alone changed the address to %x", got)
	}
	r.Store32(regAddress0+4, 0xC1061E00)
	if got, want := active(), ([6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}); got != want {
		t.Errorf("address %x, want %x", got, want)
	}
	r.Store32(regBusMode, busSWR)
	c.Advance(time.Millisecond)
	if got := active(); got != [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF} {
		t.Errorf("after a reset the address is %x", got)
	}
	noViolations(t, b)
}
