package mmio

import (
	"bytes"
	"context"
	"fmt"

	"dwnet/hw"
)

// Exchange has the device read n bytes at offset txOff of tx and write them at offset rxOff of rx, where it has room bytes,
// and returns when it has. A MAC does it by sending a frame in loop-back. wrote is how many bytes it says it wrote: n, or
// more if it appended a checksum. Nothing may copy the bytes but the device.
type Exchange func(ctx context.Context, tx hw.Memory, txOff, n int, rx hw.Memory, rxOff, room int) (wrote int, err error)

// SelfTestOptions may be zero.
type SelfTestOptions struct {
	// Header begins every frame. Nil: broadcast, from a local address, of an EtherType for experiments (IEEE 802, 0x88B5).
	Header []byte
	// Lengths are the frames to exchange, in bytes. Nil: from 60 to 1514, with every remainder of four.
	Lengths []int
}

// Symptom is what a self-test found.
type Symptom uint8

const (
	// StaleReceive: the CPU reads what it wrote there itself. It reads its cache, or the device wrote elsewhere.
	StaleReceive Symptom = iota + 1
	// StaleTransmit: the device sent what was in the buffer before. The CPU's stores are still in its cache, or the barrier
	// does not reach as far as the device.
	StaleTransmit
	// LateEviction: the frame was right, and was overwritten when the cache was emptied.
	LateEviction
	// Overrun: bytes around a buffer changed.
	Overrun
	// Corrupt: something else differs.
	Corrupt
)

var symptoms = []string{
	StaleReceive:  "CPU does not see what the device wrote",
	StaleTransmit: "device does not see what the CPU wrote",
	LateEviction:  "received bytes were overwritten by the CPU's cache",
	Overrun:       "bytes around the buffer changed",
	Corrupt:       "received bytes differ from those sent",
}

func (s Symptom) String() string {
	if s > 0 && int(s) < len(symptoms) {
		return symptoms[s]
	}
	return fmt.Sprintf("Symptom(%d)", uint8(s))
}

// SelfTestError is a failed self-test. errors.Is sees ErrIncoherent.
type SelfTestError struct {
	Symptom Symptom
	Length  int    // of the frame, in bytes
	Where   string // "receive buffer" or "transmit buffer"
	Offset  int    // of the first wrong byte, from the start of the frame
	Want    byte
	Got     byte
}

func (e *SelfTestError) Error() string {
	return fmt.Sprintf("mmio: DMA self-test: %v: frame of %d bytes, %s, offset %d is 0x%02x, want 0x%02x; map the memory uncached: a region with no-map, or u-dma-buf with sync_mode 2",
		e.Symptom, e.Length, e.Where, e.Offset, e.Got, e.Want)
}

func (e *SelfTestError) Unwrap() error { return ErrIncoherent }

const (
	canaryBytes = 64       // around each buffer, a cache line at least
	fcsBytes    = 4        // what a MAC may append
	beatBytes   = 16       // the widest bus: a DMA may fill up its last beat
	cacheBytes  = 4 << 20  // more than any cache of a board that has this MAC
	lineBytes   = 32       // the smallest cache line, a Cortex-A5's
	testRounds  = 2        // of each frame: the second finds what the first left behind
	maxFrame    = 16 << 10 // the largest frame that a MAC with jumbo support takes
	canaryByte  = 0xC5
)

var (
	defaultHeader  = []byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, 0, 0, 0, 0, 1, 0x88, 0xB5}
	defaultLengths = []int{60, 61, 62, 63, 64, 65, 127, 128, 576, 1513, 1514}
)

// SelfTest finds out whether CPU and device see the same memory, before anything depends on it: frames whose every byte
// changes from round to round go through the device, between canaries. The receive buffer is read before (so that a cache
// would hold it) and again after the CPU's caches were filled with something else (so that a dirty line would be written
// back over what the device wrote).
func SelfTest(ctx context.Context, port hw.Port, exchange Exchange, opts SelfTestOptions) error {
	if opts.Header == nil {
		opts.Header = defaultHeader
	}
	if opts.Lengths == nil {
		opts.Lengths = defaultLengths
	}
	longest := 0
	for _, n := range opts.Lengths {
		if n < len(opts.Header) || n > maxFrame {
			return configError("SelfTestOptions.Lengths", fmt.Errorf("%d, want %d to %d", n, len(opts.Header), maxFrame))
		}
		longest = max(longest, n)
	}
	t := &selfTest{exchange: exchange, header: opts.Header, evict: make([]byte, cacheBytes)}
	size := 2*canaryBytes + roomFor(longest) + 4
	for _, m := range []*hw.Memory{&t.tx, &t.rx} {
		var err error
		if *m, err = port.Alloc(size, canaryBytes); err != nil {
			return fmt.Errorf("mmio: DMA self-test: %w", err)
		}
		defer port.Free(*m)
	}
	t.last = make([]byte, t.tx.Size())
	for i, n := range opts.Lengths {
		for range testRounds {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("mmio: DMA self-test: %w", context.Cause(ctx))
			}
			if err := t.round(ctx, n, i%4); err != nil {
				return err
			}
		}
	}
	return nil
}

// roomFor is how much of its buffer a device may fill for a frame of n bytes.
func roomFor(n int) int { return (n + fcsBytes + beatBytes - 1) &^ (beatBytes - 1) }

type selfTest struct {
	exchange Exchange
	header   []byte
	tx, rx   hw.Memory
	evict    []byte
	rounds   int
	last     []byte // the transmit block of the last round
}

// frame is n bytes of which all but the header differ from those of the round before.
func (t *selfTest) frame(n int) []byte {
	f := make([]byte, n)
	for i := range f {
		f[i] = byte(i*7+i>>8*13) ^ byte(t.rounds*0x5B)
	}
	copy(f, t.header)
	return f
}

// round sends one frame of n bytes from an offset that is skew more than a multiple of four.
func (t *selfTest) round(ctx context.Context, n, skew int) error {
	t.rounds++
	frame := t.frame(n)
	txOff, rxOff, room := canaryBytes+skew, canaryBytes, roomFor(n)
	canaries := bytes.Repeat([]byte{canaryByte ^ byte(t.rounds)}, t.rx.Size())
	sent := bytes.Clone(canaries[:t.tx.Size()])
	copy(sent[txOff:], frame)
	t.tx.CopyIn(0, sent)
	t.rx.CopyIn(0, canaries)
	got := make([]byte, t.rx.Size())
	t.rx.CopyOut(got, 0)
	t.rx.Barrier()
	wrote, err := t.exchange(ctx, t.tx, txOff, n, t.rx, rxOff, room)
	if err != nil {
		return fmt.Errorf("mmio: DMA self-test: frame of %d bytes: %w", n, err)
	}
	t.rx.Barrier()
	t.rx.CopyOut(got, 0)
	fail := func(s Symptom, where string, base int, want, got []byte) error {
		at := differ(want, got)
		return &SelfTestError{Symptom: s, Length: n, Where: where, Offset: base + at, Want: want[at], Got: got[at]}
	}
	after := rxOff + room
	received := got[rxOff : rxOff+n]
	switch {
	case wrote < n || wrote > room:
		return &SelfTestError{Symptom: Corrupt, Length: n, Where: fmt.Sprintf("receive buffer, %d bytes long", wrote)}
	case !bytes.Equal(got[:rxOff], canaries[:rxOff]):
		return fail(Overrun, "receive buffer", -rxOff, canaries[:rxOff], got[:rxOff])
	case !bytes.Equal(got[after:], canaries[after:]):
		return fail(Overrun, "receive buffer", room, canaries[after:], got[after:])
	case !bytes.Equal(received, frame):
		s := Corrupt
		switch {
		case explains(frame, received, canaries[rxOff:]):
			s = StaleReceive
		case explains(frame, received, t.last[txOff:]):
			s = StaleTransmit
		}
		return fail(s, "receive buffer", 0, frame, received)
	}
	for i := 0; i < len(t.evict); i += lineBytes {
		t.evict[i]++
	}
	t.rx.CopyOut(got, 0)
	if received := got[rxOff : rxOff+n]; !bytes.Equal(received, frame) {
		return fail(LateEviction, "receive buffer", 0, frame, received)
	}
	now := make([]byte, len(sent))
	t.tx.CopyOut(now, 0)
	if !bytes.Equal(now, sent) {
		return fail(Overrun, "transmit buffer", -txOff, sent, now)
	}
	t.last = sent
	return nil
}

// explains reports whether every byte of got that is wrong is what it was before.
func explains(want, got, before []byte) bool {
	for i := range want {
		if got[i] != want[i] && got[i] != before[i] {
			return false
		}
	}
	return true
}

// differ is the first index at which two slices of the same length differ; they do.
func differ(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return 0
}
