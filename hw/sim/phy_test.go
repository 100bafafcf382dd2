package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mdio is one transaction on the management interface.
func (d *testDriver) mdio(pa, reg uint32, v *uint16) uint16 {
	d.t.Helper()
	cmd := pa<<miiPA | reg<<miiGR | 4<<miiCR | miiGB
	if v != nil {
		d.r.Store32(regMIIData, uint32(*v))
		cmd |= miiGW
	}
	d.r.Store32(regMIIAddress, cmd)
	for i := 0; d.r.Load32(regMIIAddress)&miiGB != 0; i++ {
		if i > 1000 {
			d.t.Fatal("MDIO stays busy")
		}
		d.pause(time.Microsecond)
	}
	return uint16(d.r.Load32(regMIIData))
}

func (d *testDriver) phyRead(reg uint32) uint16     { return d.mdio(0, reg, nil) }
func (d *testDriver) phyWrite(reg uint32, v uint16) { d.mdio(0, reg, &v) }

func TestPHYIdentity(t *testing.T) {
	for _, at := range []int{0, 1, 31} {
		b, _ := stepped(t, Options{PHYAddress: at})
		d := &testDriver{t: t, b: b, port: b.Port()}
		d.r = d.port.Registers()
		for pa := range uint32(32) {
			id := [2]uint16{d.mdio(pa, 2, nil), d.mdio(pa, 3, nil)}
			want := [2]uint16{0xFFFF, 0xFFFF}
			if int(pa) == at {
				want = [2]uint16{0x001C, 0xC916}
			}
			if id != want {
				t.Errorf("PHY at %d: address %d reads %04x, want %04x", at, pa, id, want)
			}
		}
		noViolations(t, b)
	}
}

func TestMDIOTakesItsTime(t *testing.T) {
	b, c := stepped(t, Options{})
	r := b.Port().Registers()
	r.Store32(regMIIAddress, 2<<miiGR|4<<miiCR|miiGB)
	took := time.Duration(0)
	for r.Load32(regMIIAddress)&miiGB != 0 {
		c.Advance(time.Microsecond)
		took += time.Microsecond
	}
	// 64 bits at 159.375 MHz / 102
	if took < 40*time.Microsecond || took > 42*time.Microsecond {
		t.Errorf("a transaction took %v", took)
	}
	if v := r.Load32(regMIIData); v != 0x1C {
		t.Errorf("data 0x%x", v)
	}
}

func TestPHYPages(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.phyWrite(0x1F, 0xD08)
	if tx, rx := x.phyRead(0x11)&rtlTXDelayBit, x.phyRead(0x15)&rtlRXDelayBit; tx == 0 || rx == 0 {
		t.Error("the strapped delays are off")
	}
	x.phyWrite(0x11, 0)
	if id := x.phyRead(2); id == 0x1C {
		t.Error("standard registers show on a vendor page")
	}
	if p := x.phyRead(0x1F); p != 0xD08 {
		t.Errorf("page register reads 0x%x", p)
	}
	x.phyWrite(0x1F, 0xA42)
	if id := x.phyRead(2); id != 0x1C {
		t.Errorf("ID 0x%x on page 0xA42", id)
	}
	x.phyWrite(0x1F, 0xA43)
	const want = physrLink | physrDuplex | 2<<physrSpeed | physrMaster
	if v := x.phyRead(0x1A); v != want {
		t.Errorf("PHYSR 0x%x, want 0x%x", v, want)
	}
	if v := x.phyRead(0x1D); v&rtlLinkChanged == 0 {
		t.Errorf("INSR 0x%x, want link change", v)
	}
	if v := x.phyRead(0x1D); v != 0 {
		t.Errorf("INSR 0x%x after it was read", v)
	}
	x.phyWrite(0x1F, 0)
	if v := x.phyRead(0x1A); v != want {
		t.Errorf("register 26 on the default page 0x%x, want 0x%x", v, want)
	}
	noViolations(t, x.b)
}

func TestLinkFailureIsLatched(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	link := func() bool { return x.phyRead(miiBMSR)&bmsrLink != 0 }
	if link(); !link() {
		t.Fatal("no link")
	}
	x.cable.Unplug()
	x.cable.Plug()
	x.clock.Advance(10 * time.Millisecond)
	if link() {
		t.Error("a short failure is not told")
	}
	if !link() {
		t.Error("the failure is told twice")
	}
	x.cable.Unplug()
	if link() || link() {
		t.Error("link without a cable")
	}
	noViolations(t, x.b)
}

func TestAutonegotiation(t *testing.T) {
	type end struct {
		bmcr, anar, c1000 uint16
	}
	all := end{bmcrAutoneg, anDefault, c1000F | c1000H}
	for _, c := range []struct {
		name  string
		cable int
		a, b  end
		speed int
		full  bool
	}{
		{"unlimited", 0, all, all, 1000, true},
		{"1000", 1000, all, all, 1000, true},
		{"100", 100, all, all, 100, true},
		{"10", 10, all, all, 10, true},
		{"one end without 1000", 1000, all, end{bmcrAutoneg, anDefault, 0}, 100, true},
		{"one end 10 half only", 1000, end{bmcrAutoneg, an10H | 1, 0}, all, 10, false},
		{"half 1000", 1000, all, end{bmcrAutoneg, anDefault, c1000H}, 1000, false},
		{"nothing in common", 1000, end{bmcrAutoneg, an10F | 1, 0}, end{bmcrAutoneg, an100F | 1, 0}, 0, false},
		{"forced 100 meets autonegotiation", 1000, end{bmcrSpeed0 | bmcrDuplex, anDefault, 0}, all, 100, true},
		{"both forced", 1000, end{bmcrDuplex, 0, 0}, end{bmcrDuplex, 0, 0}, 10, true},
		{"forced apart", 1000, end{bmcrDuplex, 0, 0}, end{bmcrSpeed0, 0, 0}, 0, false},
		{"powered down", 1000, all, end{bmcrAutoneg | bmcrDown, anDefault, c1000F}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := NewSteppedClock(time.Unix(0, 0))
			ba, bb := newBoard(t, Options{Clock: clock}), newBoard(t, Options{Clock: clock})
			connect(t, ba, bb, CableOptions{SpeedMbps: c.cable})
			var ds []*testDriver
			for i, b := range []*Board{ba, bb} {
				d := &testDriver{t: t, b: b, port: b.Port()}
				d.r = d.port.Registers()
				e := []end{c.a, c.b}[i]
				d.phyWrite(miiANAR, e.anar)
				d.phyWrite(mii1000C, e.c1000)
				d.phyWrite(miiBMCR, e.bmcr|bmcrRestart)
				ds = append(ds, d)
			}
			if ds[0].phyRead(0x1A)&physrLink != 0 {
				t.Error("link at once")
			}
			clock.Advance(10 * time.Millisecond)
			v := ds[0].phyRead(0x1A)
			speed := 0
			if v&physrLink != 0 {
				speed = []int{10, 100, 1000}[v>>physrSpeed&3]
			}
			if speed != c.speed || v&physrDuplex != 0 != c.full {
				t.Errorf("PHYSR 0x%x: %d Mbit/s full %v, want %d %v", v, speed, v&physrDuplex != 0, c.speed, c.full)
			}
			if v := ds[0].r.Load32(regRGMIIStatus); v&rgmiiUp != 0 != (c.speed != 0) {
				t.Errorf("in-band status 0x%x", v)
			}
			if c.speed != 0 && c.b.bmcr&bmcrAutoneg != 0 && c.a.bmcr&bmcrAutoneg != 0 {
				lpa, st := ds[0].phyRead(miiANLPAR), ds[0].phyRead(mii1000S)
				wantLPA := c.b.anar | anAck
				if c.cable == 10 {
					wantLPA &^= an100F | an100H
				}
				if lpa != wantLPA {
					t.Errorf("LPA 0x%x, want 0x%x", lpa, wantLPA)
				}
				if c.cable == 1000 && st>>2&(c1000F|c1000H) != c.b.c1000 {
					t.Errorf("1000BASE-T status 0x%x", st)
				}
			}
			noViolations(t, ba, bb)
		})
	}
}

func TestPHYReset(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.phyWrite(miiANAR, 0x1E1)
	x.phyWrite(miiBMCR, bmcrReset)
	if v := x.phyRead(miiBMCR); v&bmcrReset == 0 {
		t.Error("the reset is over at once")
	}
	x.clock.Advance(time.Millisecond)
	got := map[string]uint16{"BMCR": x.phyRead(miiBMCR), "ANAR": x.phyRead(miiANAR)}
	want := map[string]uint16{"BMCR": bmcrAutoneg | bmcrDuplex | bmcrSpeed1, "ANAR": anDefault}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	x.clock.Advance(10 * time.Millisecond)
	x.phyRead(miiBMSR)
	if x.phyRead(miiBMSR)&(bmsrLink|bmsrDone) != bmsrLink|bmsrDone {
		t.Error("no link after the reset")
	}
	noViolations(t, x.b)
}

func TestMMDAccess(t *testing.T) {
	clock := NewSteppedClock(time.Unix(0, 0))
	ba, bb := newBoard(t, Options{Clock: clock}), newBoard(t, Options{Clock: clock})
	connect(t, ba, bb, gigabit())
	mmd := func(b *Board, dev, reg uint16, v *uint16) uint16 {
		d := &testDriver{t: t, b: b, port: b.Port()}
		d.r = d.port.Registers()
		d.phyWrite(13, dev)
		d.phyWrite(14, reg)
		d.phyWrite(13, 0x4000|dev)
		if v != nil {
			d.phyWrite(14, *v)
			return 0
		}
		return d.phyRead(14)
	}
	clock.Advance(10 * time.Millisecond)
	if v := mmd(ba, 7, 60, nil); v != eeeBoth {
		t.Errorf("EEE advertisement 0x%x", v)
	}
	if v := mmd(ba, 7, 61, nil); v != eeeBoth {
		t.Errorf("the partner's EEE ability 0x%x", v)
	}
	off := uint16(0)
	mmd(bb, 7, 60, &off)
	d := &testDriver{t: t, b: bb, port: bb.Port()}
	d.r = d.port.Registers()
	d.phyWrite(miiBMCR, bmcrAutoneg|bmcrRestart)
	clock.Advance(10 * time.Millisecond)
	if v := mmd(ba, 7, 61, nil); v != 0 {
		t.Errorf("the partner's EEE ability 0x%x after it was switched off", v)
	}
}

// TestALDPSStopsTheClock: a sleeping PHY without a link gives no receive clock, and a reset hangs.
func TestALDPSStopsTheClock(t *testing.T) {
	for _, aldps := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.phyWrite(0x1F, rtlPage43)
		if aldps {
			x.phyWrite(0x18, rtlALDPS)
		}
		x.phyWrite(0x1F, 0)
		x.cable.Unplug()
		x.r.Store32(regBusMode, busSWR)
		x.clock.Advance(time.Second)
		if v := x.r.Load32(regBusMode)&busSWR != 0; v != aldps {
			t.Errorf("ALDPS %v: the reset hangs: %v", aldps, v)
		}
	}
}

func TestLinkChangeInterrupt(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Load32(regRGMIIStatus)
	x.cable.Unplug()
	if x.status()&stGLI != 0 {
		t.Error("GLI although masked")
	}
	x.r.Store32(regIntMask, 0)
	if x.status()&stGLI == 0 || !x.b.line() {
		t.Error("no GLI")
	}
	x.r.Load32(regRGMIIStatus)
	if x.status()&stGLI != 0 {
		t.Error("GLI after the in-band status was read")
	}
	x.cable.Plug()
	x.clock.Advance(10 * time.Millisecond)
	if x.status()&stGLI == 0 {
		t.Error("no GLI when the link comes up")
	}
}

func TestPHYRegistersSurviveASoftReset(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.resetMAC()
	if v := x.phyRead(0x1A); v&physrLink == 0 {
		t.Error("the MAC's reset took the link down")
	}
}

func TestSpeedOfTheCableIsNegotiated(t *testing.T) {
	for _, speed := range []int{10, 100, 1000} {
		t.Run(fmt.Sprint(speed), func(t *testing.T) {
			x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: speed})
			if got := []int{10, 100, 1000}[x.r.Load32(regRGMIIStatus)>>rgmiiSpeed&3]; got != speed {
				t.Errorf("%d Mbit/s", got)
			}
		})
	}
}
