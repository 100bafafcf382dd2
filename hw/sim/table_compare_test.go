package sim

import (
	"testing"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

// row is what both register tables say about a register.
type row struct {
	Name   string
	Access string
	Reset  uint32
	Acts   bool
}

// ourRow is a register of this package as the driver's table words it.
func ourRow(s RegisterSpec) row {
	r := row{Name: s.Name, Reset: s.Reset, Acts: s.ReadClear != 0}
	switch s.Access {
	case AccessRW, AccessRWSC:
		r.Access = hw.AccessRW.String()
	case AccessRO:
		r.Access = hw.AccessRO.String()
	case AccessW1C:
		r.Access = hw.AccessW1C.String()
	case AccessRC:
		r.Access = hw.AccessRC.String()
	case AccessWO:
		r.Access = hw.AccessTrigger.String()
	}
	switch {
	case s.Offset == regWakeFilter: // reading moves its pointer
		r.Acts = true
	case s.Offset == regRGMIIStatus: // reading acknowledges the link change
		r.Acts = true
	case s.Offset == regVersion || s.Offset == regFeature: // the driver's table leaves out what the configuration decides
		r.Reset = 0
	}
	return r
}

// TestRegisterTablesAgree holds this package's table against the driver's. The two were typed by different people from the
// same public documents, so that a typo does not pass on both sides.
func TestRegisterTablesAgree(t *testing.T) {
	theirs := map[uint32]row{}
	for _, r := range hw.RegisterTable() {
		theirs[r.Offset] = row{Name: r.Name, Access: r.Access.String(), Reset: r.Reset, Acts: r.ReadActs}
	}
	seen := 0
	for _, s := range Registers() {
		got, ok := theirs[s.Offset]
		if !ok {
			t.Errorf("the driver does not know 0x%04x %s", s.Offset, s.Name)
			continue
		}
		seen++
		want := ourRow(s)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("0x%04x: simulator (-) and driver (+) disagree:\n%s", s.Offset, d)
		}
		delete(theirs, s.Offset)
	}
	if seen < 150 {
		t.Errorf("only %d registers compared", seen)
	}
	for off, r := range theirs {
		if i, ok := slotOf(off); !ok || newRegisterFile(&Options{})[i] == nil {
			t.Errorf("the simulator does not know 0x%04x %s", off, r.Name)
		}
	}
}

// TestDescriptorsAgree: what the driver encodes, the simulator reads as the same, in both layouts.
func TestDescriptorsAgree(t *testing.T) {
	for _, l := range []struct {
		theirs hw.Layout
		ours   layout
	}{{hw.LayoutNormal, layout{}}, {hw.LayoutEnhanced, layout{enhanced: true}}} {
		for i := range 1 << 7 {
			bit := func(n int) bool { return i>>n&1 != 0 }
			in := hw.TXDesc{Own: bit(0), First: bit(1), Last: bit(2), Interrupt: bit(3), EndOfRing: bit(4),
				Checksum: hw.CIC(i >> 5 & 3), Bytes: 1 + i*16, Addr: 0x4C100000 + uint32(i)}
			w := l.theirs.EncodeTX(in)
			d := l.ours.decodeTX(w[0], w[1])
			got := hw.TXDesc{Own: w[0]&descOWN != 0, First: d.first, Last: d.last, Interrupt: d.ic, EndOfRing: d.end,
				Checksum: hw.CIC(d.cic), Bytes: d.n1, Addr: w[2]}
			if diff := cmp.Diff(in, got); diff != "" {
				t.Errorf("%v: transmit descriptor (-driver +simulator):\n%s", l.theirs, diff)
			}
			if d.stale != 0 || d.n2 != 0 || d.chained || d.noPad || d.noCRC {
				t.Errorf("%v: %+v of %+v", l.theirs, d, in)
			}
			rx := hw.RXDesc{Own: bit(0), EndOfRing: bit(1), NoInterrupt: bit(2), Bytes: i * 8, Addr: 0x4C200000 + uint32(i)}
			w = l.theirs.EncodeRX(rx)
			r := l.ours.decodeRX(w[1])
			gotRX := hw.RXDesc{Own: w[0]&descOWN != 0, EndOfRing: r.end, NoInterrupt: r.dic, Bytes: r.n1, Addr: w[2]}
			if diff := cmp.Diff(rx, gotRX); diff != "" {
				t.Errorf("%v: receive descriptor (-driver +simulator):\n%s", l.theirs, diff)
			}
		}
	}
}
