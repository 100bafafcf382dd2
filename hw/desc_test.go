package hw

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whole words of both layouts, worked out by hand from the bit tables.
func TestEncodeTX(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout Layout
		d      TXDesc
		want   Descriptor
	}{
		{"normal idle", LayoutNormal, TXDesc{}, Descriptor{}},
		{"normal whole frame", LayoutNormal, TXDesc{Own: true, First: true, Last: true, Interrupt: true, Checksum: CICFull, Bytes: 1514, Addr: 0x40100000},
			Descriptor{0x80000000, 0xF80005EA, 0x40100000, 0}},
		{"normal first of two", LayoutNormal, TXDesc{Own: true, First: true, Checksum: CICHeader, Bytes: 1536, Addr: 0x1000}, Descriptor{0x80000000, 0x28000600, 0x1000, 0}},
		{"normal last of the ring", LayoutNormal, TXDesc{Own: true, Last: true, EndOfRing: true, Bytes: 2047}, Descriptor{0x80000000, 0x420007FF, 0, 0}},
		{"normal size does not bleed", LayoutNormal, TXDesc{Bytes: 0xFFFFF}, Descriptor{0, 0x7FF, 0, 0}},
		{"enhanced whole frame", LayoutEnhanced, TXDesc{Own: true, First: true, Last: true, Interrupt: true, Checksum: CICFull, Bytes: 1514, Addr: 0x40100000},
			Descriptor{0xF0C00000, 1514, 0x40100000, 0}},
		{"enhanced last of the ring", LayoutEnhanced, TXDesc{Own: true, Last: true, EndOfRing: true, Checksum: CICPayload, Bytes: 8191}, Descriptor{0xA0A00000, 0x1FFF, 0, 0}},
		{"enhanced size does not bleed", LayoutEnhanced, TXDesc{Bytes: 0xFFFFF}, Descriptor{0, 0x1FFF, 0, 0}},
	} {
		if d := cmp.Diff(c.want, c.layout.EncodeTX(c.d)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestEncodeRX(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout Layout
		d      RXDesc
		want   Descriptor
	}{
		{"normal armed", LayoutNormal, RXDesc{Own: true, Bytes: 1536, Addr: 0x40100000}, Descriptor{0x80000000, 0x600, 0x40100000, 0}},
		{"normal last, silent", LayoutNormal, RXDesc{Own: true, NoInterrupt: true, EndOfRing: true, Bytes: 2032}, Descriptor{0x80000000, 0x820007F0, 0, 0}},
		{"normal size does not bleed", LayoutNormal, RXDesc{Bytes: 0xFFFFF}, Descriptor{0, 0x7FF, 0, 0}},
		{"enhanced armed", LayoutEnhanced, RXDesc{Own: true, Bytes: 1536, Addr: 0x40100000}, Descriptor{0x80000000, 0x600, 0x40100000, 0}},
		{"enhanced last, silent", LayoutEnhanced, RXDesc{Own: true, NoInterrupt: true, EndOfRing: true, Bytes: 8176}, Descriptor{0x80000000, 0x80009FF0, 0, 0}},
		{"enhanced size does not bleed", LayoutEnhanced, RXDesc{Bytes: 0xFFFFF}, Descriptor{0, 0x1FFF, 0, 0}},
	} {
		if d := cmp.Diff(c.want, c.layout.EncodeRX(c.d)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// RXF-05: no buffer size that the field cannot hold, or that is not a multiple of the widest bus, is ever offered; 2048 and
// 8192 would read as 0.
func TestRXF05_MaxBuffer(t *testing.T) {
	for l, field := range map[Layout]int{LayoutNormal: 2047, LayoutEnhanced: 8191} {
		n := l.MaxBuffer()
		if n > field || n%16 != 0 || n+16 <= field {
			t.Errorf("%v: %d", l, n)
		}
		if got := l.DecodeRX(l.EncodeRX(RXDesc{Bytes: n})).Bytes; got != n {
			t.Errorf("%v: %d is encoded as %d", l, n, got)
		}
	}
}

// Decoding is the inverse of encoding, for every field at once.
func TestDescriptorRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	flip := func() bool { return rnd.IntN(2) == 1 }
	for range 2000 {
		for l, size := range map[Layout]int{LayoutNormal: 2048, LayoutEnhanced: 8192} {
			tx := TXDesc{flip(), flip(), flip(), flip(), CIC(rnd.IntN(4)), flip(), rnd.IntN(size), rnd.Uint32()}
			if d := cmp.Diff(tx, l.DecodeTX(l.EncodeTX(tx))); d != "" {
				t.Fatalf("%v TX: %s", l, d)
			}
			rx := RXDesc{flip(), flip(), flip(), rnd.IntN(size), rnd.Uint32()}
			if d := cmp.Diff(rx, l.DecodeRX(l.EncodeRX(rx))); d != "" {
				t.Fatalf("%v RX: %s", l, d)
			}
		}
	}
}

// The two layouts' control words have no bit in common with the status that the DMA writes, nor with OWN.
func TestControlAndStatusAreDisjoint(t *testing.T) {
	all := TXDesc{First: true, Last: true, Interrupt: true, Checksum: CICFull, EndOfRing: true, Bytes: 1}
	for _, l := range []Layout{LayoutNormal, LayoutEnhanced} {
		if w := l.EncodeTX(all); w[0]&(statusTXMask|desOwn) != 0 {
			t.Errorf("%v: control word 0x%08x", l, w[0])
		}
	}
}

// FuzzDescriptors: any four words decode without a panic; what is decoded encodes to words that decode to the same.
func FuzzDescriptors(f *testing.F) {
	f.Add(uint32(0x80000000), uint32(0x600), uint32(0x40100000), uint32(0), false)
	f.Add(uint32(0x05F20320), uint32(0xFFFFFFFF), uint32(0), uint32(1), true)
	f.Fuzz(func(t *testing.T, a, b, c, d uint32, enhanced bool) {
		l := LayoutNormal
		if enhanced {
			l = LayoutEnhanced
		}
		w := Descriptor{a, b, c, d}
		if tx := l.DecodeTX(w); l.DecodeTX(l.EncodeTX(tx)) != tx {
			t.Errorf("TX %+v", tx)
		}
		if rx := l.DecodeRX(w); l.DecodeRX(l.EncodeRX(rx)) != rx {
			t.Errorf("RX %+v", rx)
		}
		s := RXStatus(a)
		for _, engine := range []bool{false, true} {
			v, e := s.Verdict(engine), s.Errors(engine)
			if v.String() == "?" || e >= 1<<rxErrorsCount {
				t.Errorf("0x%08x: %v %v", a, v, e)
			}
			if (v == ChecksumBadL3 || v == ChecksumBadL4) && e == 0 {
				t.Errorf("0x%08x: verdict %v and no error", a, v)
			}
			if v == ChecksumGood && e&(RXHeaderSum|RXPayloadSum) != 0 {
				t.Errorf("0x%08x: good and %v", a, e)
			}
		}
		if n := s.FrameBytes(); n < 0 || n > 16383 {
			t.Errorf("length %d", n)
		}
		if n := TXStatus(a).Collisions(); n < 0 || n > 15 {
			t.Errorf("%d collisions", n)
		}
		_, _ = s.String(), TXStatus(a).String()
	})
}
