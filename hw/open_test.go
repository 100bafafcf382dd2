package hw

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func trace(as []access) []string {
	var out []string
	for _, a := range as {
		out = append(out, fmt.Sprintf("%04x=%08x", a.off, a.v))
	}
	return out
}

// RST-11: everything that Open writes on an S805 with a gigabit PHY, in order. The values are those worked out from the bit
// tables of the core's documentation.
func TestRST11_OpenWrites(t *testing.T) {
	p := newFakePort(t)
	m := p.open(Config{})
	rx, tx := m.rx.listBase(), m.tx.listBase()
	want := []string{
		"101c=00000000", // whatever a loader left enabled
		"1000=00020101", // reset, on top of what was there
		"1000=01880400",
		"101c=00000000",
		fmt.Sprintf("100c=%08x", rx),
		fmt.Sprintf("1010=%08x", tx),
		"0040=80000100", "0044=c1061e00",
		"0000=00610c00", // 1000 full duplex with IPC, neither RE nor TE
		"0008=00000000", "000c=00000000", "0004=00000410",
		"0018=00000000", "001c=00000000",
		"010c=ffffffff", "0110=ffffffff", "0200=ffffffff", "0100=00000001",
		"003c=0000060f",
		"1018=02201304",
	}
	if d := cmp.Diff(want, trace(p.mac.writes(0))); d != "" {
		t.Error(d)
	}
	p.checkRules()
	if m.Version().Synopsys() != 0x37 || m.Version().User() != 0x10 || m.Feature() != featureS805 || m.Port() != Port(p) {
		t.Errorf("%v %v", m.Version(), m.Feature())
	}
	if !m.RXChecksum() || m.TX().MaxChecksum() != 1767 || m.MaxMTU() != 1514 {
		t.Errorf("checksum %v, limit %d, MTU %d", m.RXChecksum(), m.TX().MaxChecksum(), m.MaxMTU())
	}
}

// RST-10: list bases, then causes acknowledged, then the operation mode with SR and ST, and RE|TE last in one write; nothing
// else, and no interrupt.
func TestRST10_StartOrder(t *testing.T) {
	for speed, config := range map[int]string{1000: "0000=00610c0c", 100: "0000=0061cc0c", 10: "0000=00618c0c"} {
		p := newFakePort(t)
		m := p.open(Config{})
		if err := m.SetLink(Link{Speed: speed, FullDuplex: true}); err != nil {
			t.Fatal(err)
		}
		mark := p.mac.mark()
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		want := []string{
			fmt.Sprintf("100c=%08x", m.rx.listBase()), fmt.Sprintf("1010=%08x", m.tx.listBase()),
			"1014=0001ffff", "1018=02203306", config,
		}
		if d := cmp.Diff(want, trace(p.mac.writes(mark))); d != "" {
			t.Errorf("%d: %s", speed, d)
		}
		mark = p.mac.mark()
		if err := m.Start(); err != nil || len(p.mac.writes(mark)) != 0 {
			t.Errorf("starting twice: %v, %v", err, trace(p.mac.writes(mark)))
		}
		m.EnableInterrupts()
		m.DisableInterrupts()
		if d := cmp.Diff([]string{"101c=0001a1fb", "101c=00000000"}, trace(p.mac.writes(mark))); d != "" {
			t.Error(d)
		}
		p.checkRules()
	}
}

// RST-01: with a MII or RMII PHY the reset completes only while PS is set, and clears PS itself.
func TestRST01_PortSelect(t *testing.T) {
	for _, mode := range []InterfaceMode{ModeMII, ModeRMII} {
		p := newFakePort(t)
		p.info.Mode = mode
		p.mac.needPS = 2
		m := p.open(Config{})
		if c := MACConfig(p.mac.get(0)); c&ConfPS == 0 || m.Link().Speed != 100 {
			t.Errorf("%v: configuration %v, link %v", mode, c, m.Link())
		}
		if err := m.SetLink(Link{Speed: 1000, FullDuplex: true}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: 1000 Mbit/s: %v", mode, err)
		}
		if err := m.SetLink(Link{Speed: 10}); err != nil {
			t.Error(err)
		}
		if err := m.Reset(); err != nil {
			t.Errorf("%v: second reset: %v", mode, err)
		}
		p.checkRules()
	}
	p := newFakePort(t)
	p.mac.needPS = 1
	p.mac.regs[0] = 1<<15 | 1<<14 // a loader's
	p.open(Config{})
	p.checkRules()
}

// RST-03: a PHY in power-down or isolated gives no receive clock, and a reset begun without one hangs for good here. Open
// wakes it and waits for the clock. A PHY that is awake is not written to (PHY-12).
func TestRST03_PHYIsWoken(t *testing.T) {
	for _, bmcr := range []uint16{0x1940, 0x1540, 0x1D40} {
		p := newFakePort(t)
		phy := p.mac.phys[0]
		phy.regs[0] = bmcr
		phy.slowWake = 60 * time.Millisecond
		p.open(Config{})
		if d := cmp.Diff([]uint16{0x1140}, phy.writes); d != "" {
			t.Errorf("BMCR 0x%04x: %s", bmcr, d)
		}
	}
	p := newFakePort(t)
	m := p.open(Config{})
	if err := m.Reset(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	p.open(Config{})
	if w := p.mac.phys[0].writes; len(w) != 0 {
		t.Errorf("BMCR of a PHY that is awake was written: %04x", w)
	}
	for _, a := range p.mac.log { // PHY-13: no MMD access, so nothing that stops the receive clock
		if a.write && a.off == 0x10 && a.v&2 != 0 {
			t.Errorf("MDIO write 0x%x", a.v)
		}
	}
}

// RST-03, RST-12: a PHY that refuses to wake is an error within a second of the port's time that says what is known.
func TestRST12_ResetErrorTellsTheCause(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(*fakePort)
		words []string
	}{
		{"refuses to wake", func(p *fakePort) {
			p.mac.phys[0].regs[0], p.mac.phys[0].wontWake = 0x1940, true
		}, []string{"PHY at address 0", "id 0x001cc916", "BMCR 0x1940", "in power-down", "rgmii-id"}},
		{"no PHY", func(p *fakePort) {
			p.mac.phys = map[int]*fakePHY{5: {}} // answers with zeros and gives no clock
			p.mac.phys[5].regs[0] = 1 << 10
		}, []string{"no PHY", "rgmii-id"}},
		{"other mode", func(p *fakePort) {
			p.mac.frozen[0x1000] = 1
			p.mac.phys = map[int]*fakePHY{31: newFakePHY()}
		}, []string{"PHY at address 31", "BMCR 0x1140", "awake"}},
	} {
		p := newFakePort(t)
		p.info.Mode = ModeRGMIIID
		p.clk.tick = time.Microsecond
		c.setup(p)
		start := p.clk.Now()
		_, err := Open(p, Config{})
		took := p.clk.Now().Sub(start)
		if !errors.Is(err, ErrNoClock) || !errors.Is(err, ErrTimeout) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var e *Error
		if !errors.As(err, &e) || e.Reg != "Bus_Mode" || e.Mask != 1 || e.Last&1 != 1 || e.Wait < 200*time.Millisecond {
			t.Errorf("%s: %+v", c.name, e)
		}
		for _, w := range append(c.words, "elapsed 300") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
		if took > time.Second {
			t.Errorf("%s: took %v", c.name, took)
		}
		if len(p.blocks) != 0 || p.mac.get(0x1018) != 0 || p.mac.get(0)&(3<<2) != 0 {
			t.Errorf("%s: %d blocks, operation mode 0x%x", c.name, len(p.blocks), p.mac.get(0x1018))
		}
	}
}

// RST-05: with each bit that the driver waits for frozen in turn, the call ends with an error that names the register, within
// its bound.
func TestRST05_EveryWaitIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		off   uint32
		bits  uint32
		call  func(*bench) error
		reg   string
		limit time.Duration
		op    bool // while Open runs
	}{
		{"reset", 0x1000, 1, nil, "Bus_Mode", time.Second, true},
		{"MDIO in Open", 0x10, 1, nil, "GMII_Address", time.Second, true},
		{"PAUSE in Open", 0x18, 1, nil, "Flow_Control", time.Second, true},
		{"MDIO", 0x10, 1, func(b *bench) error { _, err := b.m.ReadPHY(0, 1); return err }, "GMII_Address", 50 * time.Millisecond, false},
		{"MDIO write", 0x10, 1, func(b *bench) error { return b.m.WritePHY(0, 0, 0) }, "GMII_Address", 50 * time.Millisecond, false},
		{"PHY scan", 0x10, 1, func(b *bench) error { _, _, err := b.m.ScanPHY(); return err }, "GMII_Address", 50 * time.Millisecond, false},
		{"link status", 0x10, 1, func(b *bench) error { _, _, err := b.m.LinkStatus(); return err }, "GMII_Address", 50 * time.Millisecond, false},
		{"PAUSE", 0x18, 1, func(b *bench) error { return b.m.SetLink(Link{Speed: 100, FullDuplex: true}) }, "Flow_Control", 50 * time.Millisecond, false},
		{"reset again", 0x1000, 1, func(b *bench) error { return b.m.Reset() }, "Bus_Mode", time.Second, false},
		{"TX state on restart", 0x1014, 3 << 20, func(b *bench) error { return b.m.RestartTX() }, "Status", 200 * time.Millisecond, false},
		{"flush", 0x1018, 1 << 20, func(b *bench) error { b.mac.frozen[0x24] = 1 << 24; return b.m.RestartTX() }, "Operation_Mode", 200 * time.Millisecond, false},
		{"states and reset on stop", 0x1014, 7 << 17, func(b *bench) error { b.mac.frozen[0x1000] = 1; return b.m.Stop() }, "Bus_Mode", time.Second, false},
		{"states on start", 0x1014, 3 << 17, func(b *bench) error { _ = b.m.Stop(); return b.m.Start() }, "Status", time.Second, false},
		{"states and reset on close", 0x1014, 3 << 20, func(b *bench) error { b.mac.frozen[0x1000] = 1; return b.m.Close() }, "Bus_Mode", time.Second, false},
	} {
		p := newFakePort(t)
		p.clk.tick = time.Microsecond
		var err error
		var start time.Time
		if c.op {
			p.mac.frozen[c.off] = c.bits
			start = p.clk.Now()
			_, err = Open(p, Config{})
		} else {
			b := p.bench(Config{})
			p.mac.frozen[c.off] = c.bits
			start = p.clk.Now()
			err = c.call(b)
		}
		var e *Error
		if !errors.Is(err, ErrTimeout) || !errors.As(err, &e) || e.Reg != c.reg {
			t.Errorf("%s: %v", c.name, err)
		}
		if took := p.clk.Now().Sub(start); took > c.limit {
			t.Errorf("%s: took %v", c.name, took)
		}
		if c.op && len(p.blocks) != 0 {
			t.Errorf("%s: %d blocks left", c.name, len(p.blocks))
		}
	}
}

// RST-06: the reset is given time, not a number of reads: a bit that clears after 199 ms is fine although each read takes but
// a microsecond, and one that clears late is fine when the machine was held up meanwhile.
func TestRST06_ResetIsGivenTime(t *testing.T) {
	for _, d := range []time.Duration{99 * time.Millisecond, 199 * time.Millisecond} {
		p := newFakePort(t)
		p.clk.tick = time.Microsecond
		p.mac.swrTime = d
		p.open(Config{})
	}
	p := newFakePort(t)
	p.mac.swrTime = 10 * time.Millisecond
	stalled := false
	p.mac.afterLoad = func(off uint32) { // the machine stands still right after a read that says "not yet"
		if off == 0x1000 && !p.mac.swrUntil.IsZero() && !stalled {
			stalled = true
			p.clk.advance(5 * time.Second)
		}
	}
	p.open(Config{})
	if !stalled {
		t.Error("the test did not stall the driver")
	}
}

// RST-08: the station address is in the registers after every reset, and where it comes from.
func TestRST08_StationAddress(t *testing.T) {
	fuse := [6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}
	own := [6]byte{0x02, 1, 2, 3, 4, 5}
	inRegs := [6]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55}
	check := func(p *fakePort, want [6]byte) {
		t.Helper()
		if got := AddressOf(p.mac.get(0x40), p.mac.get(0x44)); got != want || p.mac.get(0x40)>>31 != 1 {
			t.Errorf("registers hold %x, want %x", got, want)
		}
	}
	p := newFakePort(t)
	m := p.open(Config{Address: own})
	check(p, own)
	if err := m.Reset(); err != nil {
		t.Fatal(err)
	}
	check(p, own)
	if err := m.SetAddress(inRegs); err != nil || m.Address() != inRegs {
		t.Error(err)
	}
	check(p, inRegs)
	if err := m.Reset(); err != nil {
		t.Fatal(err)
	}
	check(p, inRegs)
	for _, bad := range [][6]byte{{}, {1, 2, 3, 4, 5, 6}, {255, 255, 255, 255, 255, 255}} {
		if err := m.SetAddress(bad); !errors.Is(err, ErrConfig) || m.Address() != inRegs {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	p.open(Config{})
	check(p, fuse)

	p = newFakePort(t)
	p.info.Address = [6]byte{}
	high, low := AddressWords(inRegs)
	p.mac.regs[0x40], p.mac.regs[0x44] = high, low
	p.open(Config{})
	check(p, inRegs)

	p = newFakePort(t)
	p.info.Address = [6]byte{}
	_, err := Open(p, Config{})
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "Address") {
		t.Errorf("no address anywhere: %v", err)
	}
	p.checkRules()
}

// LIFE-03, case of a boot loader: what it left running is stopped before anything else happens to memory or clocks.
func TestLIFE03_LoaderLeftTheDMARunning(t *testing.T) {
	p := newFakePort(t)
	p.mac.regs[0x1018], p.mac.regs[0], p.mac.regs[0x101C] = 1<<1|1<<13|1<<21, 0x61CC0C, 0x1A061
	p.mac.rxState, p.mac.txState = 3, 6
	p.mac.stopDelay = 100 * time.Microsecond
	p.open(Config{})
	got := trace(p.mac.writes(0))[:4]
	if d := cmp.Diff([]string{"101c=00000000", "1018=00200000", "0000=00000000", "1000=00020101"}, got); d != "" {
		t.Error(d)
	}

	// One that does not stop is stopped by the reset.
	p = newFakePort(t)
	p.mac.regs[0x1018], p.mac.rxState, p.mac.stopDelay = 1<<1, 7, time.Hour
	p.open(Config{})
	p.checkRules()
}

// LIFE-05, LIFE-06: Open that fails at any step gives back what it took, last first, leaves the DMA stopped, and a second Open
// works; a hundred times over.
func TestLIFE05_LIFE06_FailedOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(*fakePort)
		heal  func(*fakePort)
		want  error
		order []string
	}{
		{"clock range", func(p *fakePort) { p.info.CSRClockHz = 1 }, func(p *fakePort) { p.info.CSRClockHz = 0 }, ErrConfig, nil},
		{"gone", func(p *fakePort) { p.mac.gone = true }, func(p *fakePort) { p.mac.gone = false }, ErrGone, nil},
		{"address", func(p *fakePort) { p.info.Address = [6]byte{} }, func(p *fakePort) { p.info.Address = [6]byte{2} }, ErrConfig, nil},
		{"MDIO", func(p *fakePort) { p.mac.frozen[0x10] = 1 }, func(p *fakePort) { clear(p.mac.frozen) }, ErrTimeout, nil},
		{"reset", func(p *fakePort) { p.mac.frozen[0x1000] = 1 }, func(p *fakePort) { clear(p.mac.frozen) }, ErrNoClock, nil},
		{"burst for this FIFO", func(p *fakePort) { p.info.TXFIFOBytes = 256 }, func(p *fakePort) { p.info.TXFIFOBytes = 0 }, ErrConfig, nil},
		{"first memory", func(p *fakePort) { p.failAt = p.allocs + 1 }, func(p *fakePort) { p.failAt = 0 }, errNoMemory, nil},
		{"second memory", func(p *fakePort) { p.failAt = p.allocs + 2 }, func(p *fakePort) { p.failAt = 0 }, errNoMemory, []string{"alloc 1", "free 1"}},
		{"flow control", func(p *fakePort) { p.mac.frozen[0x18] = 1 }, func(p *fakePort) { clear(p.mac.frozen) }, ErrTimeout, []string{"alloc 1", "alloc 2", "free 2", "free 1"}},
	} {
		p := newFakePort(t)
		for range 100 {
			p.allocs, p.order, p.mac.log = 0, nil, nil
			c.setup(p)
			if m, err := Open(p, Config{}); !errors.Is(err, c.want) || m != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if len(p.blocks) != 0 || p.mac.get(0x1018)&(1<<1|1<<13) != 0 || p.mac.get(0)&(3<<2) != 0 {
				t.Fatalf("%s: %d blocks left, or running", c.name, len(p.blocks))
			}
			if d := cmp.Diff(c.order, p.order); d != "" {
				t.Fatalf("%s: %s", c.name, d)
			}
			c.heal(p)
		}
		m := p.open(Config{})
		if err := m.Start(); err != nil {
			t.Errorf("%s: then Start: %v", c.name, err)
		}
		if err := m.Close(); err != nil || len(p.blocks) != 0 {
			t.Errorf("%s: then Close: %v, %d blocks", c.name, err, len(p.blocks))
		}
	}
}

// LIFE-09: time-outs work across 2^32 milliseconds.
func TestLIFE09_ClockWrap(t *testing.T) {
	p := newFakePort(t)
	p.clk.now = time.UnixMilli(1<<32 - 10)
	p.mac.swrTime = 50 * time.Millisecond
	b := p.bench(Config{})
	if err := b.m.Close(); err != nil {
		t.Error(err)
	}
	if p.clk.Now().UnixMilli() < 1<<32 {
		t.Error("the clock did not cross")
	}
	p = newFakePort(t)
	p.clk.now = time.Time{} // a simulated clock may begin at zero
	if err := p.bench(Config{}).m.Close(); err != nil {
		t.Error(err)
	}
	p.checkRules()
}

// What the core cannot do is found out: no checksum engine that stays on, no hash, one address only, an old core.
func TestOpenOnLesserCores(t *testing.T) {
	p := newFakePort(t)
	p.mac.noIPC = true
	m := p.open(Config{})
	if m.RXChecksum() || m.rx.checksum || p.mac.get(0) != 0x00610800 {
		t.Errorf("IPC does not stay: checksum %v, configuration 0x%x", m.RXChecksum(), p.mac.get(0))
	}
	p.checkRules()

	p = newFakePort(t)
	p.mac.feature, p.mac.version, p.mac.addresses = 0, 0x1034, 1 // before the feature register
	p.mac.resetRegs()
	m = p.open(Config{})
	if m.RXChecksum() || m.TX().MaxChecksum() != 0 || m.tx.layout != LayoutNormal || m.entries != 1 || m.bins != 0 {
		t.Errorf("old core: %+v", m.feature)
	}
	if v := p.mac.get(0x1000); v != 0x01900800 { // 8 times 4 beats
		t.Errorf("old core: bus mode 0x%x", v)
	}
	if p.mac.get(0x10C) != 0xFFFFFFFF || p.mac.get(0x200) != 0 {
		t.Error("old core: masks of the counters")
	}
	p.checkRules()

	p = enhancedPort(t)
	m = p.open(Config{TXSlotBytes: 8176, RXSlotBytes: 8176})
	if m.tx.layout != LayoutEnhanced || m.RX().SlotBytes() != 8176 {
		t.Errorf("enhanced: %v", m.tx.layout)
	}
	p.checkRules()

	p = newFakePort(t)
	p.info.RXFIFOBytes = 2048 // no flow control by level
	m = p.open(Config{BurstBeats: 16})
	if v := OperationMode(p.mac.get(0x1018)); v != 0x02200004 {
		t.Errorf("2 KiB FIFO: operation mode %v", v)
	}
}

// LNK-01: low power idle is never switched on, and none of its registers is written.
func TestLNK01_NoLPI(t *testing.T) {
	b := newBench(t, Config{})
	_ = b.m.SetLink(Link{Speed: 100, FullDuplex: true})
	_ = b.m.Reset()
	for _, a := range b.mac.writes(0) {
		if a.off == 0x30 || a.off == 0x34 || a.off == 0x2C {
			t.Errorf("0x%x written", a.off)
		}
	}
}
