package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readPcap returns the time of each frame of a capture since its start, and the frames.
func readPcap(t testing.TB, p []byte, start time.Time) (at []time.Duration, frames [][]byte) {
	t.Helper()
	if len(p) < 24 || binary.LittleEndian.Uint32(p) != pcapMagicNano || binary.LittleEndian.Uint32(p[20:]) != linkTypeEthernet {
		t.Fatalf("no pcap header: %x", p[:min(len(p), 24)])
	}
	for p = p[24:]; len(p) > 0; {
		n := int(binary.LittleEndian.Uint32(p[8:]))
		when := time.Unix(int64(binary.LittleEndian.Uint32(p)), int64(binary.LittleEndian.Uint32(p[4:])))
		at = append(at, when.Sub(start))
		frames = append(frames, p[16:16+n])
		p = p[16+n:]
	}
	return at, frames
}

// TestWireTime checks the end of each frame of a burst against the arithmetic of IEEE 802.3: preamble, FCS and gap.
func TestWireTime(t *testing.T) {
	for _, c := range []struct {
		speed, size int
		each        time.Duration // from frame to frame
	}{
		{1000, 1514, 12304},
		{1000, 60, 672},
		{100, 1514, 123040},
		{100, 60, 6720},
		{10, 1514, 1230400},
		{10, 60, 67200},
	} {
		t.Run(fmt.Sprint(c.speed, " ", c.size), func(t *testing.T) {
			var file bytes.Buffer
			x := newBench(t, Options{}, driverOptions{ring: 32}, CableOptions{SpeedMbps: c.speed, Capture: &file})
			start := x.clock.Now()
			const n = 10
			for range n {
				x.queue(makeFrame(hostMAC, x.mac(), c.size))
			}
			x.kick()
			x.clock.Advance(n * c.each * 2)
			if err := x.cable.Close(); err != nil {
				t.Fatal(err)
			}
			at, _ := readPcap(t, file.Bytes(), start)
			if len(at) != n {
				t.Fatalf("%d frames left", len(at))
			}
			own := c.each - time.Duration(gapBits*1000/c.speed)
			if lead := at[0] - own; lead < 0 || lead > 4*time.Microsecond {
				t.Errorf("the first frame began %v after the kick", lead)
			}
			for i := 1; i < n; i++ {
				if d := at[i] - at[i-1]; d != c.each {
					t.Errorf("frame %d ends %v after the one before, want %v", i, d, c.each)
				}
			}
			noViolations(t, x.b)
		})
	}
}

// TestSecondFrameWaitsWithoutOSF: without OSF the engine fetches a frame only when the one before has its status.
func TestSecondFrameWaitsWithoutOSF(t *testing.T) {
	var file bytes.Buffer
	x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: 1000, Capture: &file})
	x.r.Store32(regOpMode, x.opMode&^opOSF)
	for range 5 {
		x.queue(makeFrame(hostMAC, x.mac(), 1514))
	}
	x.kick()
	x.clock.Advance(time.Millisecond)
	x.cable.Close()
	at, _ := readPcap(t, file.Bytes(), x.clock.Now())
	for i := 1; i < len(at); i++ {
		if d := at[i] - at[i-1]; d < 14*time.Microsecond || d > 17*time.Microsecond {
			t.Errorf("frame %d ends %v after the one before; the fetch of some 2.7 µs is missing", i, d)
		}
	}
	noViolations(t, x.b)
}

func TestInterruptFrameSpacing(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.icEvery = 4
	x.r.Store32(regStatus, 0x1FFFF)
	for range 3 {
		x.queue(makeFrame(hostMAC, x.mac(), 60))
	}
	x.kick()
	x.clock.Advance(time.Millisecond)
	if st := x.status(); st&stTI != 0 || st&stTU == 0 {
		t.Errorf("status 0x%08x: TI without IC, or no TU", st)
	}
	x.send(makeFrame(hostMAC, x.mac(), 60))
	x.clock.Advance(time.Millisecond)
	if st := x.status(); st&stTI == 0 {
		t.Errorf("status 0x%08x: no TI", st)
	}
}

// txWords writes descriptors as given, the first one's OWN last, and kicks.
func (x *bench) txWords(descs ...[4]uint32) {
	for i := len(descs) - 1; i >= 0; i-- {
		at := i * x.stride()
		for w := 3; w >= 1; w-- {
			x.txRing.Store32(at+4*w, descs[i][w])
		}
		x.txRing.Barrier()
		x.txRing.Store32(at, descs[i][0])
	}
	x.kick()
	x.clock.Advance(time.Millisecond)
}

func TestFrameOfManyBuffers(t *testing.T) {
	frame := makeFrame(hostMAC, hostMAC, 900)
	for _, c := range []struct {
		name  string
		words func(buf, ring uint32) [][4]uint32
	}{
		{"one", func(buf, ring uint32) [][4]uint32 {
			return [][4]uint32{{descOWN, ntFS | ntLS | ntIC | 900, buf, 0}}
		}},
		{"two buffers", func(buf, ring uint32) [][4]uint32 {
			return [][4]uint32{{descOWN, ntFS | ntLS | 333 | 567<<ntSize2, buf, buf + 333}}
		}},
		{"three descriptors", func(buf, ring uint32) [][4]uint32 {
			return [][4]uint32{{descOWN, ntFS | 14, buf, 0}, {descOWN, 400, buf + 14, 0}, {descOWN, ntLS | ntIC | 486, buf + 414, 0}}
		}},
		{"two descriptors of two buffers", func(buf, ring uint32) [][4]uint32 {
			return [][4]uint32{{descOWN, ntFS | 1 | 2<<ntSize2, buf, buf + 1}, {descOWN, ntLS | 3 | 894<<ntSize2, buf + 3, buf + 6}}
		}},
		{"chain", func(buf, ring uint32) [][4]uint32 {
			return [][4]uint32{{descOWN, ntFS | ntTCH | 100, buf, ring + 16}, {descOWN, ntLS | ntTCH | 800, buf + 100, ring}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newBench(t, Options{}, driverOptions{}, gigabit())
			x.txBuf.CopyIn(0, frame)
			words := c.words(x.txBuf.Bus(), x.txRing.Bus())
			x.txWords(words...)
			got := x.arrived()
			if len(got) != 1 {
				t.Fatalf("%d frames arrived", len(got))
			}
			equalFrame(t, got[0], frame)
			for i := range words {
				if w := x.txRing.Load32(i * 16); w != 0 {
					t.Errorf("DES0 of descriptor %d is 0x%08x", i, w)
				}
				if w := x.txRing.Load32(i*16 + 4); w != words[i][1] {
					t.Errorf("DES1 of descriptor %d became 0x%08x", i, w)
				}
			}
			noViolations(t, x.b)
		})
	}
}

// TestChainGoesRound: a chain may be a cycle of any addresses.
func TestChainGoesRound(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	ring := x.txRing.Bus()
	order := []uint32{0, 5, 2} // entries of the ring that the chain visits
	for round := range 4 {
		for i, e := range order {
			frame := makeFrame(hostMAC, x.mac(), 60+round*10+i)
			x.txBuf.CopyIn(int(e)*2048, frame)
			at := int(e) * 16
			x.txRing.Store32(at+8, x.txBuf.Bus()+e*2048)
			x.txRing.Store32(at+12, ring+order[(i+1)%3]*16)
			x.txRing.Store32(at+4, ntFS|ntLS|ntTCH|uint32(len(frame)))
			x.txRing.Barrier()
			x.txRing.Store32(at, descOWN)
			x.kick()
			x.clock.Advance(time.Millisecond)
			got := x.arrived()
			if len(got) != 1 {
				t.Fatalf("round %d entry %d: %d frames arrived", round, e, len(got))
			}
			equalFrame(t, got[0], frame)
		}
	}
	noViolations(t, x.b)
}

func TestDescriptorSkipLength(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	const skip = 2 // bus widths: one descriptor each 32 bytes
	x.r.Store32(regOpMode, x.opMode&^opST)
	x.r.Store32(regBusMode, busUSP|bus8xPBL|4<<busPBL|4<<busRPBL|skip<<busDSL)
	x.r.Store32(regTXBase, x.txRing.Bus())
	x.r.Store32(regOpMode, x.opMode)
	var want [][]byte
	for i := range 4 {
		p := makeFrame(hostMAC, x.mac(), 100+i)
		want = append(want, p)
		x.txBuf.CopyIn(i*2048, p)
		at := i * 32
		x.txRing.Store32(at+8, x.txBuf.Bus()+uint32(i*2048))
		x.txRing.Store32(at+4, ntFS|ntLS|uint32(len(p)))
		x.txRing.Barrier()
		x.txRing.Store32(at, descOWN)
	}
	x.kick()
	x.clock.Advance(time.Millisecond)
	if d := cmp.Diff(want, x.arrived()); d != "" {
		t.Error(d)
	}
	noViolations(t, x.b)
}

func TestRingWrapsAtItsEnd(t *testing.T) {
	for _, n := range []int{2, 3, 7} {
		x := newBench(t, Options{}, driverOptions{ring: n}, gigabit())
		for i := range 3 * n {
			p := makeFrame(hostMAC, x.mac(), 60+i)
			x.send(p)
			x.sent()
			got := x.arrived()
			if len(got) != 1 {
				t.Fatalf("ring of %d: frame %d did not arrive", n, i)
			}
			equalFrame(t, got[0], p)
		}
		noViolations(t, x.b)
	}
}

func TestPaddingAndFCS(t *testing.T) {
	short := makeFrame(hostMAC, hostMAC, 30)
	withFCS := func(p []byte, change byte) []byte {
		p = append([]byte(nil), p...)
		p = binary.LittleEndian.AppendUint32(p, crc32.ChecksumIEEE(p))
		p[20] ^= change
		return p
	}
	padded := append(append([]byte(nil), short...), make([]byte, 30)...)
	for _, c := range []struct {
		name  string
		data  []byte
		bits  uint32
		want  []byte
		wrong bool
	}{
		{"short is padded", short, 0, padded, false},
		{"DP leaves it short", short, ntDP, short, false},
		{"DC takes the frame's own FCS", withFCS(makeFrame(hostMAC, hostMAC, 100), 0), ntDC, makeFrame(hostMAC, hostMAC, 100), false},
		{"DC with a wrong FCS", withFCS(makeFrame(hostMAC, hostMAC, 100), 1), ntDC, nil, true},
		{"padding brings an FCS in spite of DC", short, ntDC, padded, false},
		{"DC and DP", withFCS(short, 0), ntDC | ntDP, short, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newBench(t, Options{}, driverOptions{}, gigabit())
			x.txBuf.CopyIn(0, c.data)
			x.txWords([4]uint32{descOWN, ntFS | ntLS | c.bits | uint32(len(c.data)), x.txBuf.Bus(), 0})
			var want [][]byte
			if !c.wrong {
				want = [][]byte{c.want}
			}
			if d := cmp.Diff(want, x.arrived()); d != "" {
				t.Error(d)
			}
			if got := x.host.Stats().Bad; got != 0 != c.wrong {
				t.Errorf("%d frames with a wrong FCS", got)
			}
			noViolations(t, x.b)
		})
	}
}

func TestJabberStopsTheTransmitter(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regConfig, x.config&^cfgJD)
	x.txBuf.CopyIn(0, makeFrame(hostMAC, x.mac(), 4000))
	x.txWords([4]uint32{descOWN, ntFS | ntLS | 2000 | 2000<<ntSize2, x.txBuf.Bus(), x.txBuf.Bus() + 2000})
	if w := x.txRing.Load32(0); w != txJT|txES {
		t.Errorf("status 0x%08x, want jabber", w)
	}
	if st := x.status(); st&stTJT == 0 {
		t.Errorf("DMA status 0x%08x lacks TJT", st)
	}
	if n := len(x.arrived()); n != 0 {
		t.Errorf("%d frames arrived whole", n)
	}
}

// TestUnderflowInThresholdMode: a bus slower than the wire starves the FIFO unless frames are stored first.
func TestUnderflowInThresholdMode(t *testing.T) {
	for _, store := range []bool{false, true} {
		o := driverOptions{}
		x := newBench(t, Options{DMABytesPerSecond: 50e6}, o, gigabit())
		if !store {
			x.r.Store32(regOpMode, x.opMode&^opST)
			x.r.Store32(regOpMode, x.opMode&^(opST|opTSF))
			x.r.Store32(regOpMode, x.opMode&^opTSF)
		}
		x.send(makeFrame(hostMAC, x.mac(), 1514))
		x.clock.Advance(time.Millisecond)
		st, dma := x.reclaim(), x.status()
		if store {
			if !cmp.Equal(st, []uint32{0}) || dma&stUNF != 0 {
				t.Errorf("store-and-forward: status %x, DMA 0x%08x", st, dma)
			}
			continue
		}
		if !cmp.Equal(st, []uint32{txUF | txES}) || dma&stUNF == 0 || dma>>stTS&7 != tsSuspended {
			t.Errorf("threshold: status %x, DMA 0x%08x, want an underflow and a suspended engine", st, dma)
		}
		x.send(makeFrame(hostMAC, x.mac(), 60)) // a poll demand resumes
		x.clock.Advance(time.Millisecond)
		if st := x.reclaim(); !cmp.Equal(st, []uint32{0}) {
			t.Errorf("after the underflow: %x", st)
		}
		noViolations(t, x.b)
	}
}

func TestNothingLeavesWithoutTE(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regConfig, x.config&^cfgTE)
	x.send(makeFrame(hostMAC, x.mac(), 100))
	x.clock.Advance(time.Second)
	if n := len(x.arrived()); n != 0 {
		t.Fatalf("%d frames left", n)
	}
	x.r.Store32(regConfig, x.config)
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 1 {
		t.Errorf("%d frames left after TE", n)
	}
	if s := x.cable.Stats(); s.HostStall != 0 {
		t.Errorf("the wait counts as a stall of the machine: %v", s.HostStall)
	}
}

func TestFramesWithoutALinkAreGone(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.cable.Unplug()
	x.send(makeFrame(hostMAC, x.mac(), 100))
	x.clock.Advance(time.Millisecond)
	if st := x.reclaim(); !cmp.Equal(st, []uint32{0}) {
		t.Errorf("status %x: an RGMII MAC does not know", st)
	}
	x.cable.Plug()
	x.linkUp()
	x.send(makeFrame(hostMAC, x.mac(), 101))
	x.clock.Advance(time.Millisecond)
	got := x.arrived()
	if len(got) != 1 || len(got[0]) != 101 {
		t.Errorf("arrived: %d frames", len(got))
	}
	if s := x.b.Stats(); s.TXNoLink != 1 || s.TXFrames != 1 {
		t.Errorf("stats %+v", s)
	}
	noViolations(t, x.b)
}

func TestSpeedMismatchLosesFrames(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regConfig, x.config|cfgPS|cfgFES)
	x.send(makeFrame(hostMAC, x.mac(), 100))
	x.hostSend(makeFrame(x.mac(), hostMAC, 100))
	x.clock.Advance(time.Millisecond)
	if n, m := len(x.arrived()), len(x.all()); n != 0 || m != 0 {
		t.Errorf("%d frames out and %d in with the MAC at 100 and the PHY at 1000", n, m)
	}
	if s := x.b.Stats(); s.TXSpeed != 1 || s.RXDropSpeed != 1 {
		t.Errorf("stats %+v", s)
	}
	noViolations(t, x.b)
}

func TestMACLoopback(t *testing.T) {
	for _, speed := range []int{0, 1000} {
		x := newBench(t, Options{}, driverOptions{config: cfgLM}, CableOptions{SpeedMbps: speed})
		p := makeFrame(x.mac(), x.mac(), 200)
		x.send(p)
		x.clock.Advance(time.Millisecond)
		got := x.all()
		if len(got) != 1 {
			t.Fatalf("speed %d: %d frames came back", speed, len(got))
		}
		equalFrame(t, got[0].frame(), p)
		if n := len(x.arrived()); n != 0 {
			t.Errorf("%d frames went out on the cable", n)
		}
		noViolations(t, x.b)
	}
}

// TestKickInTheDark: a frame queued after the wire fell idle does not leave before it was queued, however late the
// simulator looks.
func TestKickInTheDark(t *testing.T) {
	var file bytes.Buffer
	x := newBench(t, Options{}, driverOptions{}, CableOptions{SpeedMbps: 1000, Capture: &file})
	start := x.clock.Now()
	for i := range 5 {
		x.clock.Advance(time.Duration(7+13*i) * time.Microsecond)
		x.send(makeFrame(hostMAC, x.mac(), 60))
		x.clock.Advance(200 * time.Microsecond)
		if len(x.arrived()) != 1 {
			t.Fatal("frame lost")
		}
	}
	x.cable.Close()
	at, _ := readPcap(t, file.Bytes(), start)
	kicks := []time.Duration{7, 227, 460, 706, 965}
	for i := range at {
		k := kicks[i] * time.Microsecond
		if d := at[i] - k; d < 576 || d > 2*time.Microsecond {
			t.Errorf("frame %d ends %v after its kick at %v", i, d, k)
		}
	}
}
