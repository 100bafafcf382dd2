package sim

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counters returns the management counters that are not zero, by name.
func (x *bench) counters() map[string]uint32 {
	got := map[string]uint32{}
	for _, s := range Registers() {
		if isCounter(s.Offset) {
			if v := x.r.Load32(s.Offset); v != 0 {
				got[s.Name] = v
			}
		}
	}
	return got
}

func TestCountersOfTraffic(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{config: cfgIPC}, gigabit())
	bcast := [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	tcp, _, _ := packet{proto: protoTCP, body: 100}.make(x.mac(), hostMAC)
	udp, _, _ := packet{proto: protoUDP, body: 100, v6: true}.make(x.mac(), hostMAC)
	bad, _, at := packet{proto: protoICMP, body: 100}.make(x.mac(), hostMAC)
	bad[at+1] ^= 1
	frag, _, _ := packet{proto: protoUDP, body: 100, frag: 1}.make(x.mac(), hostMAC)
	x.hostSend(makeFrame(bcast, hostMAC, 60), makeFrame([6]byte{1}, hostMAC, 200), tcp, udp, bad, frag)
	want := map[string]uint32{
		"rxframecount_gb": 6, "rxoctetcount_gb": 64 + 204 + 158 + 166 + 146 + 146, "rxoctetcount_g": 64 + 204 + 158 + 166 + 146 + 146,
		"rxbroadcastframes_g": 1, "rxmulticastframes_g": 1, "rxunicastframes_g": 4, "rx64octets_gb": 1, "rx128to255octets_gb": 5,
		"rxipv4_gd_frms": 2, "rxipv6_gd_frms": 1, "rxipv4_frag_frms": 1, "rxtcp_gd_frms": 1, "rxudp_gd_frms": 1, "rxicmp_err_frms": 1,
		"rxipv4_gd_octets": 120 + 108, "rxipv6_gd_octets": 108, "rxipv4_frag_octets": 108, "rxtcp_gd_octets": 120,
		"rxudp_gd_octets": 108, "rxicmp_err_octets": 108,
	}
	if d := cmp.Diff(want, x.counters()); d != "" {
		t.Error(d)
	}
	x.r.Store32(regMMCControl, mmcReset)
	if v := x.r.Load32(regMMCControl); v != 0 {
		t.Errorf("control reads 0x%x after a reset of the counters", v)
	}
	for _, p := range [][]byte{makeFrame(bcast, x.mac(), 60), makeFrame([6]byte{1}, x.mac(), 300), makeFrame(hostMAC, x.mac(), 1514)} {
		x.send(p)
	}
	x.clock.Advance(time.Millisecond)
	want = map[string]uint32{
		"txframecount_gb": 3, "txframecount_g": 3, "txoctetcount_gb": 64 + 304 + 1518, "txoctetcnt": 64 + 304 + 1518,
		"txbroadcastframes_g": 1, "txbroadcastframes_gb": 1, "txmulticastframes_g": 1, "txmulticastframes_gb": 1,
		"txunicastframes_gb": 1, "tx64octets_gb": 1, "tx256to511octets_gb": 1, "tx1024tomaxoctets_gb": 1,
	}
	if d := cmp.Diff(want, x.counters()); d != "" {
		t.Error(d)
	}
	noViolations(t, x.b)
}

// TestHalfFullCountersInterrupt: the masks reset to "enabled", so a counter that reaches half its range raises the line and
// keeps it up until the driver reads it or masks it.
func TestHalfFullCountersInterrupt(t *testing.T) {
	for _, masked := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		if !masked {
			x.r.Store32(regMMCMaskRX, 0)
		}
		x.r.Store32(regMMCControl, mmcPreset)
		if v := x.r.Load32(mmcRXFramesGB); v != 0x7FFFFFF0 {
			t.Errorf("preset to 0x%x", v)
		}
		if v := x.r.Load32(mmcRXOctetsGB); v != 0x7FFFF800 {
			t.Errorf("octets preset to 0x%x", v)
		}
		for range 16 {
			x.hostSend(makeFrame(x.mac(), hostMAC, 60))
			x.all()
		}
		x.r.Store32(regStatus, 0x1FFFF)
		up := x.status()&stGMI != 0
		if up == masked {
			t.Errorf("masked %v: GMI is %v", masked, up)
		}
		if x.b.line() == masked {
			t.Errorf("masked %v: the line is %v", masked, x.b.line())
		}
		if v := x.r.Load32(regIntStatus) & (macIntMMC | macIntMMCRX); v != 0 == masked {
			t.Errorf("masked %v: MAC interrupt status 0x%x", masked, v)
		}
		const frames = 1 << 0 // bit of rxframecount_gb
		if v := x.r.Load32(regMMCIntRX); v&frames == 0 {
			t.Errorf("masked %v: MMC receive interrupt 0x%x", masked, v)
		}
		if v := x.r.Load32(regMMCIntRX); v != 0 {
			t.Errorf("it reads 0x%x after it was read", v)
		}
		if x.status()&stGMI != 0 {
			t.Error("GMI stays after the MMC interrupt register was read")
		}
	}
}

func TestReadingACounterClearsItsInterrupt(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regMMCMaskRX, ^uint32(1)&mmcIntBits) // only rxframecount_gb
	x.r.Store32(regMMCControl, mmcPreset|mmcPresetLevel)
	for range 16 {
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
		x.all()
	}
	if x.status()&stGMI == 0 {
		t.Fatal("no interrupt at the wrap")
	}
	if v := x.r.Load32(mmcRXFramesGB); v != 0 {
		t.Errorf("the counter is 0x%x after its wrap", v)
	}
	if x.status()&stGMI != 0 {
		t.Error("the interrupt stays after its counter was read")
	}
}

func TestCounterControl(t *testing.T) {
	frame := func(x *bench) { x.hostSend(makeFrame(x.mac(), hostMAC, 60)); x.all() }
	t.Run("freeze", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.r.Store32(regMMCControl, mmcFreeze)
		frame(x)
		if v := x.r.Load32(mmcRXFramesGB); v != 0 {
			t.Errorf("counts %d", v)
		}
	})
	t.Run("reset on read", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.r.Store32(regMMCControl, mmcResetOnRead)
		frame(x)
		if a, b := x.r.Load32(mmcRXFramesGB), x.r.Load32(mmcRXFramesGB); a != 1 || b != 0 {
			t.Errorf("reads %d, then %d", a, b)
		}
	})
	t.Run("stop at the top", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.r.Store32(regMMCControl, mmcStop|mmcPreset|mmcPresetLevel)
		for range 20 {
			frame(x)
		}
		if v := x.r.Load32(mmcRXFramesGB); v != all32 {
			t.Errorf("counts 0x%x", v)
		}
	})
	t.Run("dropped broadcasts", func(t *testing.T) {
		for _, on := range []bool{false, true} {
			x := newBench(t, Options{}, driverOptions{}, gigabit())
			x.clock.Advance(time.Millisecond)
			x.r.Store32(regFilter, filterDBF)
			if on {
				x.r.Store32(regMMCControl, mmcDroppedBC)
			}
			x.hostSend(makeFrame([6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, hostMAC, 60))
			if v := x.r.Load32(mmcRXBroadcast); v != 0 != on {
				t.Errorf("on %v: counts %d", on, v)
			}
		}
	})
}

func TestCounterByOffset(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	if _, err := x.b.Counter(regVersion); err == nil {
		t.Error("the version register is a counter")
	}
	if _, err := x.b.Counter(mmcRXFramesGB + 1); err == nil {
		t.Error("an odd offset is a counter")
	}
}
