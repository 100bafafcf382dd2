package board

import (
	"encoding/binary"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"dwnet/hw"
	"dwnet/hw/phy"
	"github.com/google/go-cmp/cmp"
)

const (
	macNode = "soc/ethernet@c9410000/"
	phyNode = macNode + "mdio/ethernet-phy@0/"
)

func cells(n ...uint32) *fstest.MapFile {
	var b []byte
	for _, c := range n {
		b = binary.BigEndian.AppendUint32(b, c)
	}
	return &fstest.MapFile{Data: b}
}

func text(s ...string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(strings.Join(s, "\x00") + "\x00")}
}

// c1Tree is what Linux has in meson8b-odroidc1.dts.
func c1Tree() fstest.MapFS {
	return fstest.MapFS{
		"compatible":                  text("hardkernel,odroid-c1", "amlogic,meson8b"),
		"model":                       text("Hardkernel ODROID-C1"),
		"soc/gpio@80b0/phandle":       cells(7),
		macNode + "compatible":        text("amlogic,meson8b-dwmac", "snps,dwmac-3.70a", "snps,dwmac"),
		macNode + "status":            text("okay"),
		macNode + "phy-mode":          text("rgmii-id"),
		macNode + "phy-handle":        cells(9),
		macNode + "rx-fifo-depth":     cells(4096),
		macNode + "tx-fifo-depth":     cells(2048),
		phyNode + "phandle":           cells(9),
		phyNode + "reg":               cells(0),
		phyNode + "reset-assert-us":   cells(10000),
		phyNode + "reset-deassert-us": cells(80000),
	}
}

func with(t fstest.MapFS, change map[string]*fstest.MapFile) fstest.MapFS {
	t = maps.Clone(t)
	for k, v := range change {
		if v == nil {
			delete(t, k)
			continue
		}
		t[k] = v
	}
	return t
}

func TestDeviceTreeOfTheC1(t *testing.T) {
	got, err := FromDeviceTree(c1Tree())
	if err != nil {
		t.Fatal(err)
	}
	want := OdroidC1()
	want.PHYID = 0                                // the tree does not say what PHY there is
	want.TXDelay, want.RXDelay = NoDelay, NoDelay // which is what the mode comes to
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDeviceTrees(t *testing.T) {
	old := map[string]*fstest.MapFile{ // as before 2020
		macNode + "phy-mode":             text("rgmii"),
		macNode + "amlogic,tx-delay-ns":  cells(4),
		macNode + "snps,reset-delays-us": cells(0, 20000, 100000),
		macNode + "local-mac-address":    {Data: []byte{0, 0x1e, 6, 1, 2, 3}},
		phyNode + "reset-assert-us":      nil,
		phyNode + "reset-deassert-us":    nil,
		phyNode + "eee-broken-1000t":     {},
		phyNode + "eee-broken-100tx":     {},
		phyNode + "compatible":           text("ethernet-phy-id001c.c916", "ethernet-phy-ieee802.3-c22"),
	}
	b, err := FromDeviceTree(with(c1Tree(), old))
	if err != nil {
		t.Fatal(err)
	}
	if b.Mode != hw.ModeRGMII || b.TXDelay != Delay4ns || b.RXDelay != NoDelay || b.TraceRX != 0 ||
		b.ResetTiming != (phy.ResetTiming{Assert: 20 * ms, Settle: 100 * ms}) || b.PHYID != phy.RTL8211F ||
		b.EEEBroken != phy.EEE1000T|phy.EEE100TX || b.Info().Address != [6]byte{0, 0x1e, 6, 1, 2, 3} {
		t.Errorf("%+v", b)
	}

	for _, c := range []struct {
		name             string
		change           map[string]*fstest.MapFile
		tx, rx           Delay
		traceTX, traceRX int
		prg              PRG
	}{
		{"rgmii, nothing said", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii")}, Delay2ns, NoDelay, 0, 2000, 0x1521},
		{"rgmii, RX by the MAC", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "amlogic,rx-delay-ns": cells(2)},
			Delay2ns, Delay2ns, 0, 0, 0x7521},
		{"rgmii, RX in picoseconds", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"),
			macNode + "rx-internal-delay-ps": cells(2000), macNode + "amlogic,rx-delay-ns": cells(0)}, Delay2ns, Delay2ns, 0, 0, 0x7521},
		{"rgmii-txid ignores the MAC's", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii-txid"),
			macNode + "amlogic,tx-delay-ns": cells(2)}, NoDelay, NoDelay, 0, 2000, 0x1501},
		{"rgmii-rxid", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii-rxid")}, Delay2ns, NoDelay, 0, 0, 0x1521},
		{"traces alone", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "amlogic,tx-delay-ns": cells(0)},
			NoDelay, NoDelay, 2000, 2000, 0x1501},
		{"the property's other name", map[string]*fstest.MapFile{macNode + "phy-mode": nil, macNode + "phy-connection-type": text("rmii")},
			AutoDelay, AutoDelay, 0, 0, 0x1800},
	} {
		c.change["compatible"] = text("somebody,else", "amlogic,meson8b")
		b, err := FromDeviceTree(with(c1Tree(), c.change))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if b.TXDelay != c.tx || b.RXDelay != c.rx || b.TraceTX != c.traceTX || b.TraceRX != c.traceRX || b.PHYReset.exists() ||
			b.Name != "Hardkernel ODROID-C1" || b.EEEBroken != 0 {
			t.Errorf("%s: %+v", c.name, b)
		}
		g, err := b.glue()
		g.Divider = 2
		if v, _, err2 := g.Encode(); err != nil || err2 != nil || v != c.prg {
			t.Errorf("%s: 0x%08x, %v, %v", c.name, uint32(v), err, err2)
		}
	}
}

func TestDeviceTreeOfTheC2(t *testing.T) {
	tree := with(c1Tree(), map[string]*fstest.MapFile{
		"compatible":                    text("hardkernel,odroid-c2", "amlogic,meson-gxbb"),
		macNode + "compatible":          text("amlogic,meson-gxbb-dwmac", "snps,dwmac"),
		macNode + "phy-mode":            text("rgmii"),
		macNode + "amlogic,tx-delay-ns": cells(2),
		phyNode + "reset-deassert-us":   cells(30000),
	})
	got, err := FromDeviceTree(tree)
	if err != nil {
		t.Fatal(err)
	}
	want := OdroidC2()
	want.PHYID, want.RXDelay = 0, NoDelay
	want.ResetTiming.Settle = 30 * time.Millisecond
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBadDeviceTrees(t *testing.T) {
	for _, c := range []struct {
		name   string
		change map[string]*fstest.MapFile
		is     error
		names  string
	}{
		{"no MAC", map[string]*fstest.MapFile{macNode + "compatible": text("snps,dwmac")}, hw.ErrUnsupported, "amlogic,meson8b-dwmac"},
		{"disabled", map[string]*fstest.MapFile{macNode + "status": text("disabled")}, hw.ErrUnsupported, "enabled"},
		{"no mode", map[string]*fstest.MapFile{macNode + "phy-mode": nil}, hw.ErrConfig, "phy-mode"},
		{"unknown mode", map[string]*fstest.MapFile{macNode + "phy-mode": text("sgmii")}, hw.ErrConfig, `"sgmii" is not rgmii, rgmii-id`},
		{"empty mode", map[string]*fstest.MapFile{macNode + "phy-mode": {}}, hw.ErrConfig, "rgmii-id"},
		{"3 ns", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "amlogic,tx-delay-ns": cells(3)}, hw.ErrConfig,
			"3000 ps is not 0, 2000, 4000 or 6000"},
		{"huge", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "amlogic,tx-delay-ns": cells(1<<32 - 1)}, hw.ErrConfig, "TXDelay"},
		{"RX 1 ns", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "amlogic,rx-delay-ns": cells(1)}, hw.ErrConfig,
			"1000 ps is not 0 or 2000"},
		{"RX huge", map[string]*fstest.MapFile{macNode + "phy-mode": text("rgmii"), macNode + "rx-internal-delay-ps": cells(1<<32 - 1)}, hw.ErrConfig, "RXDelay"},
		{"half a cell", map[string]*fstest.MapFile{macNode + "amlogic,tx-delay-ns": {Data: []byte{0, 2}}}, hw.ErrConfig, "amlogic,tx-delay-ns"},
		{"two cells of three", map[string]*fstest.MapFile{macNode + "snps,reset-delays-us": cells(1, 2)}, hw.ErrConfig, "snps,reset-delays-us"},
		{"reset of an hour", map[string]*fstest.MapFile{phyNode + "reset-assert-us": cells(3600e6)}, hw.ErrConfig, "10s"},
		{"dangling", map[string]*fstest.MapFile{macNode + "phy-handle": cells(99)}, hw.ErrConfig, "0x63"},
		{"address 32", map[string]*fstest.MapFile{phyNode + "reg": cells(32)}, hw.ErrConfig, "0 to 31"},
		{"identifier of ones", map[string]*fstest.MapFile{phyNode + "compatible": text("ethernet-phy-idffff.ffff")}, hw.ErrConfig, "ffff.ffff"},
		{"AXG", map[string]*fstest.MapFile{macNode + "compatible": text("amlogic,meson-axg-dwmac")}, hw.ErrUnsupported, "AXG"},
		{"too long", map[string]*fstest.MapFile{macNode + "compatible": {Data: make([]byte, 1<<17)}}, hw.ErrConfig, "compatible"},
	} {
		if _, err := FromDeviceTree(with(c1Tree(), c.change)); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := FromDeviceTree(fstest.MapFS{}); !errors.Is(err, hw.ErrUnsupported) {
		t.Errorf("empty: %v", err)
	}
}

func FuzzDeviceTree(f *testing.F) {
	f.Add("rgmii", []byte{0, 0, 0, 2}, []byte{0, 0, 7, 208}, []byte{0, 0, 0, 9}, "ethernet-phy-id001c.c916")
	f.Add("rgmii-id\x00", []byte{}, []byte{1}, []byte{0, 0, 0, 1}, "")
	f.Fuzz(func(t *testing.T, mode string, tx, rx, handle []byte, compat string) {
		b, err := FromDeviceTree(with(c1Tree(), map[string]*fstest.MapFile{
			macNode + "phy-mode": {Data: []byte(mode)}, macNode + "amlogic,tx-delay-ns": {Data: tx},
			macNode + "rx-internal-delay-ps": {Data: rx}, macNode + "phy-handle": {Data: handle},
			phyNode + "compatible": {Data: []byte(compat)}, phyNode + "reg": {Data: handle},
		}))
		if err != nil {
			return
		}
		if _, err := Open(bg(), b, newC1(), &clock{}, Options{}); err != nil {
			t.Errorf("%+v: %v", b, err)
		}
	})
}
