package phy

import (
	"errors"
	"testing"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

var _ Bus = (*hw.MAC)(nil)

// idBus is a bus where PHYs have nothing but identifiers.
type idBus map[int]ID

func (b idBus) ReadPHY(phy, reg int) (uint16, error) {
	id, ok := b[phy]
	switch {
	case !ok:
		return 0xffff, nil
	case reg == RegID1:
		return uint16(id >> 16), nil
	}
	return uint16(id), nil
}

func (b idBus) WritePHY(phy, reg int, v uint16) error { return errors.New("a scan writes nothing") }

func TestIdentifier(t *testing.T) {
	for _, c := range []struct {
		id    ID
		valid bool
		text  string
	}{
		{RTL8211F, true, "RTL8211F (0x001cc916)"},
		{RTL8211E, true, "RTL8211E (0x001cc915)"},
		{0x00008201, true, "0x00008201"}, // a PHY whose manufacturer has no bits in the first word
		{0x00010000, true, "0x00010000"},
		{0, false, "0x00000000"},
		{0xffffffff, false, "0xffffffff"},
		{0x0000ffff, false, "0x0000ffff"},
		{0xffff0000, false, "0xffff0000"},
		{0x001cffff, false, "0x001cffff"},
		{0xffffc916, false, "0xffffc916"},
	} {
		if c.id.Valid() != c.valid {
			t.Errorf("%v: valid %v", c.id, !c.valid)
		}
		if got := c.id.String(); got != c.text {
			t.Errorf("%q, want %q", got, c.text)
		}
	}
	if RTL8211F.Model() != 0x11 || RTL8211F.Revision() != 6 {
		t.Errorf("RTL8211F: model %#x revision %d", RTL8211F.Model(), RTL8211F.Revision())
	}
}

func TestScanFindsPHYsAtAllAddresses(t *testing.T) {
	for _, c := range []struct {
		name string
		bus  idBus
		want []Found
	}{
		{"none", idBus{}, nil},
		{"only at 0", idBus{0: RTL8211F}, []Found{{0, RTL8211F}}},
		{"only at 31", idBus{31: RTL8211E}, []Found{{31, RTL8211E}}},
		{"two, and ghosts", idBus{0: 0, 1: 0x0000ffff, 7: 0x12345678, 8: 0xffff0000, 30: RTL8211F},
			[]Found{{7, 0x12345678}, {30, RTL8211F}}},
	} {
		got, err := Scan(c.bus)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

func TestFindTakesAddressZeroForAnAddressAndTheZeroValueForAScan(t *testing.T) {
	bus := idBus{3: RTL8211E, 31: RTL8211F}
	for _, c := range []struct {
		addr hw.PHYAddr
		want Found
		err  error
	}{
		{hw.ScanPHY, Found{3, RTL8211E}, nil},
		{hw.PHYAt(31), Found{31, RTL8211F}, nil},
		{hw.PHYAt(0), Found{0, 0xffffffff}, hw.ErrNoPHY},
		{hw.PHYAt(32), Found{}, hw.ErrConfig},
		{hw.PHYAt(-1), Found{}, hw.ErrConfig},
		{hw.NoPHY, Found{}, hw.ErrNoPHY},
	} {
		got, err := Find(bus, c.addr)
		if !errors.Is(err, c.err) || got != c.want {
			t.Errorf("%d: %v, %v; want %v, %v", c.addr, got, err, c.want, c.err)
		}
	}
	if got, err := Find(idBus{0: RTL8211F}, hw.PHYAt(0)); err != nil || got.Addr != 0 {
		t.Errorf("explicit 0: %v, %v", got, err)
	}
	if _, err := Find(idBus{}, hw.ScanPHY); !errors.Is(err, hw.ErrNoPHY) {
		t.Errorf("empty bus: %v", err)
	}
	for _, addr := range []int{-1, 32} {
		if _, err := Identify(bus, addr); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("identify %d: %v", addr, err)
		}
	}
}

func TestScanStopsAtABrokenBus(t *testing.T) {
	m := newModel(t)
	broken := &hw.Error{Op: "read", Err: hw.ErrTimeout}
	m.fail = func(int) error { return broken }
	if _, err := Scan(m); !errors.Is(err, hw.ErrTimeout) {
		t.Error(err)
	}
	if m.accesses != 1 {
		t.Errorf("%d accesses, each of which waits for its time-out", m.accesses)
	}
}
