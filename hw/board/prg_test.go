package board

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"dwnet/hw"
)

// The values that Linux comes to on these boards, bit for bit.
func TestPRGValues(t *testing.T) {
	for _, c := range []struct {
		name string
		c    PRGConfig
		want PRG
	}{
		{"C1 rgmii, TX 2 ns", PRGConfig{Mode: hw.ModeRGMII, TXDelay: 2000, Divider: 2}, 0x00001521},
		{"C1 rgmii, TX and RX 2 ns", PRGConfig{Mode: hw.ModeRGMII, TXDelay: 2000, RXDelay: 2000, Divider: 2}, 0x00007521},
		{"C1 rgmii-id", PRGConfig{Mode: hw.ModeRGMIIID, Divider: 2}, 0x00001501},
		{"C1 rgmii-txid, RX 2 ns", PRGConfig{Mode: hw.ModeRGMIITXID, RXDelay: 2000, Divider: 2}, 0x00007501},
		{"C1 rgmii-rxid, TX 2 ns", PRGConfig{Mode: hw.ModeRGMIIRXID, TXDelay: 2000, Divider: 2}, 0x00001521},
		{"C2 rgmii, TX 2 ns", PRGConfig{Mode: hw.ModeRGMII, TXDelay: 2000, Divider: 4}, 0x00001621},
		{"rmii", PRGConfig{Mode: hw.ModeRMII}, 0x00001800},
		{"TX 0", PRGConfig{Mode: hw.ModeRGMII, Divider: 2}, 0x00001501},
		{"TX 4 ns", PRGConfig{Mode: hw.ModeRGMII, TXDelay: 4000, Divider: 2}, 0x00001541},
		{"TX 6 ns", PRGConfig{Mode: hw.ModeRGMII, TXDelay: 6000, Divider: 2}, 0x00001561},
		{"clkin1", PRGConfig{Mode: hw.ModeRGMIIID, Divider: 2, Input: 1}, 0x00001511},
		{"largest divider", PRGConfig{Mode: hw.ModeRGMIIID, Divider: 7}, 0x00001781},
		{"AXG rgmii", PRGConfig{Layout: LayoutAXG, Mode: hw.ModeRGMII, TXDelay: 2000, RXDelay: 2000, Divider: 4}, 0x00007621},
		{"AXG rmii", PRGConfig{Layout: LayoutAXG, Mode: hw.ModeRMII}, 0x00001804},
		{"G12A delays RX elsewhere", PRGConfig{Layout: LayoutG12A, Mode: hw.ModeRGMIITXID, RXDelay: 1800, Divider: 4}, 0x00001601},
	} {
		got, mask, err := c.c.Encode()
		if err != nil || got != c.want {
			t.Errorf("%s: 0x%08x, %v; want 0x%08x", c.name, uint32(got), err, uint32(c.want))
		}
		if got&^mask != 0 {
			t.Errorf("%s: 0x%08x outside the mask 0x%08x", c.name, uint32(got), uint32(mask))
		}
	}
}

// What a mode has no say in must stay as it is.
func TestPRGMasks(t *testing.T) {
	for _, c := range []struct {
		layout Layout
		mode   hw.InterfaceMode
		want   PRG
	}{
		{LayoutMeson8b, hw.ModeRGMII, 0x01fffff1},
		{LayoutMeson8b, hw.ModeRMII, 0x01fff801}, // neither mux, divider, TX delay nor the gate of the TX clock
		{LayoutAXG, hw.ModeRGMIIID, 0x01fffff7},
		{LayoutAXG, hw.ModeRMII, 0x01fff807},
	} {
		_, mask, err := PRGConfig{Layout: c.layout, Mode: c.mode, Divider: 2}.Encode()
		if err != nil || mask != c.want {
			t.Errorf("%v %v: 0x%08x, %v; want 0x%08x", c.layout, c.mode, uint32(mask), err, uint32(c.want))
		}
	}
}

func TestPRG1(t *testing.T) {
	for _, c := range []struct {
		c           PRGConfig
		value, mask uint32
	}{
		{PRGConfig{Layout: LayoutG12A, Mode: hw.ModeRGMII, RXDelay: 3000}, 0xf0000, 0xf0000},
		{PRGConfig{Layout: LayoutG12A, Mode: hw.ModeRGMIIID}, 0, 0xf0000},
		{PRGConfig{Layout: LayoutG12A, Mode: hw.ModeRMII}, 0, 0},
		{PRGConfig{Layout: LayoutAXG, Mode: hw.ModeRGMII, RXDelay: 2000}, 0, 0},
	} {
		if v, m := c.c.EncodePRG1(); v != c.value || m != c.mask {
			t.Errorf("%+v: %#x %#x", c.c, v, m)
		}
	}
}

func TestPRGRefusesWhatItCannotDo(t *testing.T) {
	ok := PRGConfig{Mode: hw.ModeRGMII, TXDelay: 2000, Divider: 2}
	for _, c := range []struct {
		change func(*PRGConfig)
		names  string // what the message must name
	}{
		{func(c *PRGConfig) { c.Mode = hw.ModeMII }, "rgmii-id"},
		{func(c *PRGConfig) { c.Mode = 77 }, "rmii"},
		{func(c *PRGConfig) { c.TXDelay = 1000 }, "0, 2000, 4000 or 6000"},
		{func(c *PRGConfig) { c.TXDelay = 8000 }, "8000"},
		{func(c *PRGConfig) { c.TXDelay = -2000 }, "-2000"},
		{func(c *PRGConfig) { c.RXDelay = 4000 }, "0 or 2000"},
		{func(c *PRGConfig) { c.Layout, c.RXDelay = LayoutG12A, 3200 }, "0 to 3000"},
		{func(c *PRGConfig) { c.Layout, c.RXDelay = LayoutG12A, 100 }, "steps of 200"},
		{func(c *PRGConfig) { c.Input = 2 }, "clkin1"},
		{func(c *PRGConfig) { c.Input = -1 }, "clkin1"},
		{func(c *PRGConfig) { c.Divider = 0 }, "2 to 7"},
		{func(c *PRGConfig) { c.Divider = 1 }, "2 to 7"},
		{func(c *PRGConfig) { c.Divider = 8 }, "2 to 7"},
		{func(c *PRGConfig) { c.Mode = hw.ModeRMII }, "rmii"},
	} {
		bad := ok
		c.change(&bad)
		v, m, err := bad.Encode()
		if !errors.Is(err, hw.ErrConfig) || !strings.Contains(err.Error(), c.names) || v != 0 || m != 0 {
			t.Errorf("%+v: 0x%x 0x%x %v", bad, uint32(v), uint32(m), err)
		}
	}
}

// Each field is decoded from its own bits and no others: the mux bit next to the divider once went into it.
func TestPRGFieldsAreApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := PRG(r.Uint32())
		if got := (v ^ PRGM250Sel); got.Divider() != v.Divider() || got.TXDelay() != v.TXDelay() || got.Input() == v.Input() {
			t.Fatalf("0x%08x: bit 4 changes more than the input", uint32(v))
		}
		if got := (v ^ prgDividerMask); got.Divider() != 7-v.Divider() || got.Input() != v.Input() || got.TXDelay() != v.TXDelay() {
			t.Fatalf("0x%08x: bits 9:7 change more than the divider", uint32(v))
		}
		if got := (v ^ prgTXDelayMask); got.TXDelay() != 6000-v.TXDelay() || got.Divider() != v.Divider() || got.Input() != v.Input() {
			t.Fatalf("0x%08x: bits 6:5 change more than the delay", uint32(v))
		}
	}
	for _, c := range []struct {
		v     PRG
		ps    int
		known bool
	}{{0, 0, true}, {0x4000, 0, true}, {0x6000, 2000, true}, {0x2000, 0, false}, {0x26000, 0, false}, {0xc26000, 0, false}} {
		if ps, known := c.v.RXDelay(); ps != c.ps || known != c.known {
			t.Errorf("0x%08x: %d %v", uint32(c.v), ps, known)
		}
	}
}

func TestPRGDecodesInWords(t *testing.T) {
	for _, c := range []struct {
		v    PRG
		l    Layout
		want string
	}{
		{0x00001501, LayoutMeson8b, "RGMII, m250 from clkin0 / 2, TX delay 0 ns, TX clock on, clocks on, RX retiming off"},
		{0x00007d21, LayoutMeson8b, "RGMII, m250 from clkin0 / 2, TX delay 2 ns, TX clock on, RMII clock inverted, clocks on, RX retiming automatic"},
		{0x00001800, LayoutMeson8b, "RMII, m250 from clkin0 / 0, TX delay 0 ns, TX clock off, RMII clock inverted, clocks on, RX retiming off"},
		{0x00001804, LayoutAXG, "RMII, m250 from clkin0 / 0, TX delay 0 ns, TX clock off, RMII clock inverted, clocks on, RX retiming off"},
		{0x00000002, LayoutAXG, "interface 2, m250 from clkin0 / 0, TX delay 0 ns, TX clock off, clocks off, RX retiming off"},
		{0xc0c2209f, LayoutMeson8b, "RGMII, big endian data, big endian descriptors, RMII RX clock inverted, m250 from clkin1 / 1, " +
			"TX delay 0 ns, TX clock off, clocks off, RX retiming manual, ADJ_DELAY 4, ADJ_SKEW 0xc, RX reuse, urgent"},
		{0x3e004001, LayoutMeson8b, "RGMII, m250 from clkin0 / 0, TX delay 0 ns, TX clock off, clocks off, RX retiming off, ADJ_SETUP, " +
			"calibration, calibrate rising edge, CALI_SEL 7"},
	} {
		if got := c.v.Decode(c.l); got != c.want {
			t.Errorf("0x%08x:\n got %s\nwant %s", uint32(c.v), got, c.want)
		}
	}
	if got := PRG(0x1501).String(); got != PRG(0x1501).Decode(LayoutMeson8b) {
		t.Error(got)
	}
}

func TestDelays(t *testing.T) {
	for _, c := range []struct {
		asked      Delay
		phy, trace int
		want       int
		ok         bool
	}{
		{AutoDelay, 0, 0, 2000, true},
		{AutoDelay, 2000, 0, 0, true},
		{AutoDelay, 0, 2000, 0, true},
		{AutoDelay, 2000, 2000, 0, false},
		{NoDelay, 0, 0, 0, true},
		{NoDelay, 2000, 0, 0, true},
		{Delay2ns, 0, 0, 2000, true},
		{Delay4ns, 0, 0, 4000, true}, // on explicit request only
		{Delay2ns, 2000, 0, 0, false},
		{Delay2ns, 0, 2000, 0, false},
		{Delay6ns, 2000, 0, 0, false},
	} {
		got, err := macDelay("TXDelay", c.asked, c.phy, c.trace)
		if got != c.want || (err == nil) != c.ok || err != nil && !errors.Is(err, hw.ErrConfig) {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
	for d, want := range map[Delay]string{AutoDelay: "auto", NoDelay: "0 ns", Delay2ns: "2 ns", Picoseconds(1800): "1.8 ns"} {
		if d.String() != want {
			t.Errorf("%d prints as %q", int(d), d)
		}
	}
}
