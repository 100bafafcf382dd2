package phy

import (
	"testing"

	"dwnet/hw"
)

func TestModes(t *testing.T) {
	for _, c := range []struct {
		m     Modes
		text  string
		speed int
		full  bool
	}{
		{0, "none", 0, false},
		{AllModes, "1000/full 1000/half 100/full 100/half 10/full 10/half", 1000, true},
		{Mode1000Half | Mode100Full, "1000/half 100/full", 1000, false},
		{Mode100Half | Mode10Full, "100/half 10/full", 100, false},
		{Mode10Full | Mode10Half, "10/full 10/half", 10, true},
		{0x80, "0x80", 0, false},
	} {
		if c.m.String() != c.text || c.m.Speed() != c.speed || c.m.FullDuplex() != c.full {
			t.Errorf("%#x: %q %d %v, want %+v", uint8(c.m), c.m, c.m.Speed(), c.m.FullDuplex(), c)
		}
	}
	for _, e := range modeNames {
		if got := ModeOf(e.mode.Speed(), e.mode.FullDuplex()); got != e.mode {
			t.Errorf("ModeOf of %v is %v", e.mode, got)
		}
	}
	if m := ModeOf(2500, true); m != 0 {
		t.Errorf("2500: %v", m)
	}
}

// IEEE 802.3 table 28B-3, and nothing else, on a full duplex link; half duplex has no PAUSE.
func TestPauseResolution(t *testing.T) {
	const none, sym, send, recv = PauseNone, PauseSymmetric, PauseSend, PauseReceive
	for _, c := range []struct {
		local, partner Pause
		tx, rx         bool
	}{
		{none, none, false, false}, {none, sym, false, false}, {none, send, false, false}, {none, recv, false, false},
		{sym, none, false, false}, {sym, sym, true, true}, {sym, send, false, false}, {sym, recv, true, true},
		{send, none, false, false}, {send, sym, false, false}, {send, send, false, false}, {send, recv, true, false},
		{recv, none, false, false}, {recv, sym, true, true}, {recv, send, false, true}, {recv, recv, true, true},
	} {
		if tx, rx := ResolvePause(c.local, c.partner, true); tx != c.tx || rx != c.rx {
			t.Errorf("%v with %v: tx %v rx %v, want %v %v", c.local, c.partner, tx, rx, c.tx, c.rx)
		}
		if tx, rx := ResolvePause(c.local, c.partner, false); tx || rx {
			t.Errorf("%v with %v, half duplex: tx %v rx %v", c.local, c.partner, tx, rx)
		}
		// Both ends must come to the same end.
		tx, rx := ResolvePause(c.local, c.partner, true)
		if ptx, prx := ResolvePause(c.partner, c.local, true); ptx != rx || prx != tx {
			t.Errorf("%v with %v: one end tx %v rx %v, the other tx %v rx %v", c.local, c.partner, tx, rx, ptx, prx)
		}
		// The MAC's own resolution is another text of the same table.
		bits := func(p Pause) (bool, bool) { return p&PauseSymmetric != 0, p&PauseSend != 0 }
		lp, la := bits(c.local)
		pp, pa := bits(c.partner)
		if mtx, mrx := hw.ResolvePause(lp, la, pp, pa); mtx != tx || mrx != rx {
			t.Errorf("%v with %v: hw says tx %v rx %v", c.local, c.partner, mtx, mrx)
		}
	}
}

func TestPauseAdvertisement(t *testing.T) {
	for _, c := range []struct {
		rx, tx bool
		want   Pause
		anar   Advertisement
	}{
		{false, false, PauseNone, 0},
		{true, true, PauseSymmetric, AdvPause},
		{false, true, PauseSend, AdvAsymPause},
		{true, false, PauseReceive, AdvPause | AdvAsymPause},
	} {
		got := PauseFor(c.rx, c.tx)
		if got != c.want {
			t.Errorf("rx %v tx %v: %v", c.rx, c.tx, got)
		}
		// Whatever was advertised before must not stay.
		if v := Advertisement(0x0de1).advertise(AllModes, got); v&(AdvPause|AdvAsymPause) != c.anar {
			t.Errorf("%v: ANAR %v", got, v)
		}
	}
}

func TestAdvertisementKeepsWhatIsNotItsOwn(t *testing.T) {
	for _, c := range []struct {
		old, want Advertisement
		m         Modes
	}{
		{0x01e1, 0x01e1, AllModes},
		{0x8de1, 0x8101, Mode100Full | Mode1000Full},
		{0x0200, 0x0021, Mode10Half}, // 100BASE-T4 is never offered, and a selector of zero is no base page
		{0x2fe2, 0x2002, 0},
	} {
		if got := c.old.advertise(c.m, PauseNone); got != c.want {
			t.Errorf("%#04x for %v: %#04x, want %#04x", uint16(c.old), c.m, uint16(got), uint16(c.want))
		}
	}
}

func TestModeTables(t *testing.T) {
	for name, tab := range map[string]modeTable{"bmsr": bmsrModes, "esr": esrModes, "adv": advModes, "gbcr": gbcrModes, "gbsr": gbsrModes} {
		for _, e := range tab {
			if got := tab.modes(tab.bits(e.mode)); got != e.mode {
				t.Errorf("%s: %v becomes %v", name, e.mode, got)
			}
		}
	}
	// The bits of the standard, once as numbers.
	for _, c := range []struct {
		name      string
		got, want uint16
	}{
		{"BMSR", bmsrModes.mask(), 0x7800}, {"ESR", esrModes.mask(), 0x3000}, {"ANAR", advModes.mask(), 0x01e0},
		{"GBCR", gbcrModes.mask(), 0x0300}, {"GBSR", gbsrModes.mask(), 0x0c00},
	} {
		if c.got != c.want {
			t.Errorf("%s: modes in %#04x, want %#04x", c.name, c.got, c.want)
		}
	}
}

func TestRegistersPrintTheirBits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{BMCR(0x1140).String(), "ANENABLE FULLDPLX SPEED1000"},
		{BMCR(0x0800).String(), "PDOWN"},
		{BMCR(0).String(), "0x0"},
		{BMSR(0x796d).String(), "100FULL 100HALF 10FULL 10HALF ESTATEN ANEGCOMPLETE ANEGCAPABLE LSTATUS ERCAP 0x40"},
		{Advertisement(0xcde1).String(), "NPAGE LPACK PAUSE_ASYM PAUSE_CAP 100FULL 100HALF 10FULL 10HALF 0x1"},
		{gbcrString(0x0200), "1000FULL"},
		{gbsrString(0x7800), "1000MSRES 1000LOCALRXOK 1000REMRXOK 1000FULL"},
		{EEEModes(6).String(), "1000T 100TX"},
		{EEEModes(9).String(), "0x9"},
		{EEEModes(0).String(), "none"},
		{PauseReceive.String(), "symmetric or receive-only"},
		{Pause(4).String(), "0x4"},
		{rtlStatusString(0x2c), "up 1000/full"},
		{rtlStatusString(0x10), "down 100/half"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
