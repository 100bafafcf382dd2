package mmio

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dwnet/hw"
)

// testMemory is memory as CPU and device see it: the CPU through a cache of its own, if it has one.
type testMemory struct {
	device []byte // what the device sees
	cache  []byte // what the CPU sees; the same slice if there is no cache
}

func (m *testMemory) Bus() uint32                 { return 0x5C000000 }
func (m *testMemory) Size() int                   { return len(m.device) }
func (m *testMemory) Load32(off int) uint32       { return word(m.cache[off:]) }
func (m *testMemory) Store32(off int, v uint32)   { putWord(m.cache[off:], v) }
func (m *testMemory) CopyIn(off int, src []byte)  { copy(m.cache[off:off+len(src)], src) }
func (m *testMemory) CopyOut(dst []byte, off int) { copy(dst, m.cache[off:off+len(dst)]) }
func (m *testMemory) Barrier()                    {}

// testPort gives such memory out.
type testPort struct {
	hw.Port
	cached bool
	given  []*testMemory
	freed  int
	full   error
}

func (p *testPort) Alloc(size, align int) (hw.Memory, error) {
	if p.full != nil {
		return nil, p.full
	}
	m := &testMemory{device: make([]byte, size)}
	m.cache = m.device
	if p.cached {
		m.cache = make([]byte, size)
	}
	p.given = append(p.given, m)
	return m, nil
}

func (p *testPort) Free(hw.Memory) error {
	p.freed++
	return nil
}

// loop is a device that does what it should: it reads and writes memory, never the CPU's cache.
func loop(_ context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
	copy(rx.(*testMemory).device[rxOff:rxOff+n], tx.(*testMemory).device[txOff:])
	copy(rx.(*testMemory).device[rxOff+n:rxOff+n+fcsBytes], []byte{1, 2, 3, 4})
	return n + fcsBytes, nil
}

// flush writes the CPU's cache to memory.
func flush(m hw.Memory) { t := m.(*testMemory); copy(t.device, t.cache) }

// invalidate makes the CPU see memory.
func invalidate(m hw.Memory) { t := m.(*testMemory); copy(t.cache, t.device) }

func TestSelfTestPasses(t *testing.T) {
	p := &testPort{}
	frames := map[int]int{}
	err := SelfTest(t.Context(), p, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
		frames[n]++
		if rxOff%beatBytes != 0 || room < n+fcsBytes || room%beatBytes != 0 {
			t.Errorf("receive buffer at %d with room for %d of %d bytes", rxOff, room, n)
		}
		if header := make([]byte, len(defaultHeader)); true {
			tx.CopyOut(header, txOff)
			if !bytes.Equal(header, defaultHeader) {
				t.Errorf("frame starts with % x", header)
			}
		}
		return loop(ctx, tx, txOff, n, rx, rxOff, room)
	}, SelfTestOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]int{}
	for _, n := range defaultLengths {
		want[n] = testRounds
	}
	if diff := cmp.Diff(want, frames); diff != "" {
		t.Errorf("frames by length (-want +got):\n%s", diff)
	}
	if p.freed != 2 {
		t.Errorf("%d blocks given back", p.freed)
	}
}

// What can be wrong with DMA memory, and how the test tells.
func TestSelfTestFinds(t *testing.T) {
	for _, c := range []struct {
		name     string
		cached   bool
		exchange Exchange
		want     Symptom
	}{
		{"CPU reads its cache", true, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			flush(tx)
			flush(rx)
			return loop(ctx, tx, txOff, n, rx, rxOff, room)
		}, StaleReceive},
		{"CPU's stores stay in its cache", true, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			flush(rx)
			defer flush(tx)
			defer invalidate(rx)
			return loop(ctx, tx, txOff, n, rx, rxOff, room)
		}, StaleTransmit},
		{"half a frame is stale", true, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			flush(tx)
			flush(rx)
			wrote, err := loop(ctx, tx, txOff, n, rx, rxOff, room)
			m := rx.(*testMemory)
			copy(m.cache[:rxOff+32], m.device)
			return wrote, err
		}, StaleReceive},
		{"device does nothing", false, func(_ context.Context, _ hw.Memory, _, n int, _ hw.Memory, _, _ int) (int, error) {
			return n, nil
		}, StaleReceive},
		{"write before the buffer", false, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			rx.(*testMemory).device[rxOff-1] ^= 0x10
			return loop(ctx, tx, txOff, n, rx, rxOff, room)
		}, Overrun},
		{"write behind the buffer", false, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			rx.(*testMemory).device[rxOff+room] ^= 0x10
			return loop(ctx, tx, txOff, n, rx, rxOff, room)
		}, Overrun},
		{"transmit buffer changes", false, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			wrote, err := loop(ctx, tx, txOff, n, rx, rxOff, room)
			tx.(*testMemory).device[txOff+n] ^= 1
			return wrote, err
		}, Overrun},
		{"a bit is wrong", false, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			wrote, err := loop(ctx, tx, txOff, n, rx, rxOff, room)
			rx.(*testMemory).device[rxOff+n-1] ^= 0x80
			return wrote, err
		}, Corrupt},
		{"length is wrong", false, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
			_, err := loop(ctx, tx, txOff, n, rx, rxOff, room)
			return n - 1, err
		}, Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &testPort{cached: c.cached}
			err := SelfTest(t.Context(), p, c.exchange, SelfTestOptions{})
			wantError(t, err, ErrIncoherent, "self-test")
			var e *SelfTestError
			if !errors.As(err, &e) || e.Symptom != c.want {
				t.Errorf("found %v, want %v", err, c.want)
			}
			if p.freed != len(p.given) {
				t.Errorf("%d of %d blocks given back", p.freed, len(p.given))
			}
		})
	}
}

// evicting is memory whose dirty cache lines are written back at the third look.
type evicting struct {
	*testMemory
	looks int
}

func (m *evicting) CopyOut(dst []byte, off int) {
	if m.looks++; m.looks%3 == 0 { // before the exchange, after it, after the caches were filled
		m.cache[off+canaryBytes+5] ^= 0xFF
	}
	m.testMemory.CopyOut(dst, off)
}

type evictingPort struct{ testPort }

func (p *evictingPort) Alloc(size, align int) (hw.Memory, error) {
	m, err := p.testPort.Alloc(size, align)
	return &evicting{testMemory: m.(*testMemory)}, err
}

func TestSelfTestFindsLateEviction(t *testing.T) {
	err := SelfTest(t.Context(), &evictingPort{}, func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (int, error) {
		return loop(ctx, tx.(*evicting).testMemory, txOff, n, rx.(*evicting).testMemory, rxOff, room)
	}, SelfTestOptions{})
	var e *SelfTestError
	if !errors.As(err, &e) || e.Symptom != LateEviction || e.Offset != 5 {
		t.Errorf("got %v", err)
	}
}

func TestSelfTestErrors(t *testing.T) {
	broken := errors.New("no link")
	fails := func(context.Context, hw.Memory, int, int, hw.Memory, int, int) (int, error) { return 0, broken }
	wantError(t, SelfTest(t.Context(), &testPort{}, fails, SelfTestOptions{}), broken, "frame of 60 bytes")
	wantError(t, SelfTest(t.Context(), &testPort{full: ErrOutOfMemory}, loop, SelfTestOptions{}), ErrOutOfMemory)
	for _, n := range []int{13, maxFrame + 1, -1} {
		wantError(t, SelfTest(t.Context(), &testPort{}, loop, SelfTestOptions{Lengths: []int{n}}), hw.ErrConfig, "Lengths")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, SelfTest(ctx, &testPort{}, loop, SelfTestOptions{}), context.Canceled)
}
