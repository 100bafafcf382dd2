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

// lengthFrame is an IEEE 802.3 frame with a length field.
func lengthFrame(to [6]byte, length, n int) []byte {
	p := makeFrame(to, hostMAC, n)
	binary.BigEndian.PutUint16(p[12:], uint16(length))
	return p
}

func TestFrameLengthsAndErrors(t *testing.T) {
	const good = rxFS | rxLS | rxFT
	fl := func(n int) uint32 { return uint32(n) << rxFL }
	tagged := func(to [6]byte, n int) []byte {
		p := makeFrame(to, hostMAC, n)
		binary.BigEndian.PutUint16(p[12:], typeVLAN)
		return p
	}
	for _, c := range []struct {
		name   string
		config uint32
		op     uint32
		frame  func(to [6]byte) []byte
		bad    bool
		want   uint32 // status; 0: not in memory
		count  func(BoardStats) uint64
		mmc    uint32 // a counter that must be 1
	}{
		{name: "64 bytes", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 60) }, want: good | fl(64), mmc: mmcRX64},
		{name: "65 bytes", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 61) }, want: good | fl(65), mmc: mmcRX64 + 4},
		{name: "128 bytes", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 124) }, want: good | fl(128), mmc: mmcRX64 + 8},
		{name: "1518 bytes", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 1514) }, want: good | fl(1518), mmc: mmcRX64 + 20},
		{name: "runt", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 59) },
			count: func(s BoardStats) uint64 { return s.RXDropRunt }, mmc: mmcRXUndersize},
		{name: "runt with FUF", op: opFUF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 59) }, want: good | fl(63), mmc: mmcRXUndersize},
		{name: "runt with FEF", op: opFEF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 59) },
			count: func(s BoardStats) uint64 { return s.RXDropRunt }},
		{name: "bad runt with FUF", op: opFUF | opFEF, bad: true, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 59) },
			count: func(s BoardStats) uint64 { return s.RXDropRunt }, mmc: mmcRXRunt},
		{name: "fragment", frame: func(to [6]byte) []byte { return to[:] }, count: func(s BoardStats) uint64 { return s.RXDropRunt }, mmc: mmcRXRunt},
		{name: "bad FCS", bad: true, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 100) },
			count: func(s BoardStats) uint64 { return s.RXDropCRC }, mmc: mmcRXCRC},
		{name: "bad FCS with FEF", op: opFEF, bad: true, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 100) },
			want: good | rxCE | rxES | fl(104), mmc: mmcRXCRC},
		{name: "giant", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 1515) }, want: good | fl(1519), mmc: mmcRXOversize},
		{name: "giant with DGF", op: opDGF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 1515) },
			count: func(s BoardStats) uint64 { return s.RXDropGiant }},
		{name: "tagged 1522 is no giant", op: opDGF, frame: func(to [6]byte) []byte { return tagged(to, 1518) }, want: good | rxVLAN | fl(1522), mmc: mmcRXVLAN},
		{name: "tagged giant", op: opDGF, frame: func(to [6]byte) []byte { return tagged(to, 1519) }, count: func(s BoardStats) uint64 { return s.RXDropGiant }},
		{name: "2000 with 2KPE", config: cfg2KPE, op: opDGF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 1996) }, want: good | fl(2000)},
		{name: "2001 with 2KPE", config: cfg2KPE, op: opDGF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 1997) },
			count: func(s BoardStats) uint64 { return s.RXDropGiant }},
		{name: "2048 is not cut", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 2044) }, want: good | fl(2048), mmc: mmcRXOversize},
		{name: "2049 is cut and dropped", frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 2045) },
			count: func(s BoardStats) uint64 { return s.RXDropGiant }, mmc: mmcRXWatchdog},
		{name: "2049 with FEF", op: opFEF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 2045) },
			want: good | rxRWT | rxES | fl(2048), mmc: mmcRXWatchdog},
		{name: "3000 with WD", config: cfgWD, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 2996) }, want: good | fl(3000)},
		{name: "3000 with JE", config: cfgJE, op: opDGF, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 2996) }, want: good | fl(3000)},
		{name: "802.3", frame: func(to [6]byte) []byte { return lengthFrame(to, 86, 100) }, want: rxFS | rxLS | fl(104)},
		{name: "802.3 padded", frame: func(to [6]byte) []byte { return lengthFrame(to, 3, 60) }, want: rxFS | rxLS | fl(64)},
		{name: "802.3 lying", frame: func(to [6]byte) []byte { return lengthFrame(to, 87, 100) }, want: rxFS | rxLS | rxLE | fl(104), mmc: mmcRXLength},
		{name: "802.3 short", frame: func(to [6]byte) []byte { return lengthFrame(to, 47, 60) }, want: rxFS | rxLS | rxLE | fl(64)},
		{name: "802.3 with ACS", config: cfgACS, frame: func(to [6]byte) []byte { return lengthFrame(to, 3, 60) }, want: rxFS | rxLS | fl(17)},
		{name: "type frame with ACS", config: cfgACS, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 100) }, want: good | fl(104)},
		{name: "type frame with CST", config: cfgCST, frame: func(to [6]byte) []byte { return makeFrame(to, hostMAC, 100) }, want: good | fl(100)},
		{name: "802.3 with CST", config: cfgCST, frame: func(to [6]byte) []byte { return lengthFrame(to, 86, 100) }, want: rxFS | rxLS | fl(104)},
		{name: "powered down", frame: nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newBench(t, Options{}, driverOptions{config: c.config, opMode: c.op, buf: 2000, ring: 16}, gigabit())
			if c.frame == nil {
				x.r.Store32(regPMT, pmtPowerDown)
				x.hostSend(makeFrame(x.mac(), hostMAC, 100))
				if n, s := len(x.all()), x.b.Stats(); n != 0 || s.RXDropDisabled != 1 {
					t.Errorf("%d frames, %d dropped", n, s.RXDropDisabled)
				}
				return
			}
			p := c.frame(x.mac())
			send := x.host.Send
			if c.bad {
				send = x.host.SendBad
			}
			if err := send(p); err != nil {
				t.Fatal(err)
			}
			x.clock.Advance(time.Millisecond)
			var got uint32
			for i := 0; ; i++ { // a long frame takes more than one descriptor
				st := x.rxRing.Load32(i * 16)
				if st&descOWN != 0 {
					break
				}
				got |= st & (rxFS | rxLS)
				if st&rxLS != 0 {
					got |= st
					break
				}
			}
			if got != c.want {
				t.Errorf("status 0x%08x, want 0x%08x", got, c.want)
			}
			if c.count != nil && c.count(x.b.Stats()) != 1 {
				t.Errorf("not counted as told: %+v", x.b.Stats())
			}
			if c.mmc != 0 {
				if v, err := x.b.Counter(c.mmc); err != nil || v != 1 {
					t.Errorf("counter 0x%x is %d, %v", c.mmc, v, err)
				}
			}
			noViolations(t, x.b)
		})
	}
}

func TestFCSInMemory(t *testing.T) {
	x := newBench(t, Options{RealFCS: true}, driverOptions{opMode: opFEF}, gigabit())
	p := makeFrame(x.mac(), hostMAC, 100)
	x.hostSend(p)
	if err := x.host.SendBad(p); err != nil {
		t.Fatal(err)
	}
	x.clock.Advance(time.Millisecond)
	all := x.all()
	if len(all) != 2 {
		t.Fatalf("%d frames", len(all))
	}
	want := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(p))
	if got := all[0].data[100:]; !bytes.Equal(got, want) {
		t.Errorf("FCS %x, want %x", got, want)
	}
	if got := all[1].data[100:]; bytes.Equal(got, want) {
		t.Error("the damaged frame has the right FCS")
	}
}

// TestNoDescriptor: a full ring suspends the engine once, frames are counted as missed, and either a poll demand or the
// next frame resumes it.
func TestNoDescriptor(t *testing.T) {
	for _, kick := range []bool{false, true} {
		x := newBench(t, Options{}, driverOptions{ring: 4}, gigabit())
		x.r.Store32(regStatus, 0x1FFFF)
		for i := range 4 {
			x.hostSend(makeFrame(x.mac(), hostMAC, 100+i))
			if st, want := x.status()&stRU != 0, i == 3; st != want {
				t.Errorf("after %d frames RU is %v", i+1, st)
			}
		}
		if rs := x.status() >> stRS & 7; rs != rsSuspended {
			t.Errorf("RS %d, want suspended", rs)
		}
		x.r.Store32(regStatus, 0x1FFFF)
		x.r.Store32(regRXPoll, 1)
		x.hostSend(makeFrame(x.mac(), hostMAC, 200), makeFrame(x.mac(), hostMAC, 201))
		if st := x.status(); st&stRU != 0 {
			t.Error("a poll demand without a descriptor raised RU again")
		}
		if got := x.r.Load32(regMissed); got != 2 {
			t.Errorf("missed frame register 0x%x, want 2", got)
		}
		if got := x.r.Load32(regMissed); got != 0 {
			t.Errorf("it reads 0x%x after it was read", got)
		}
		if got := len(x.all()); got != 4 {
			t.Errorf("%d frames in memory", got)
		}
		if kick {
			x.r.Store32(regRXPoll, 1)
			if rs := x.status() >> stRS & 7; rs != rsWaiting {
				t.Errorf("RS %d after a poll demand", rs)
			}
		}
		x.hostSend(makeFrame(x.mac(), hostMAC, 300))
		all := x.all()
		if len(all) != 1 || len(all[0].frame()) != 300 {
			t.Errorf("kick %v: the frame after re-arming is not there", kick)
		}
		if s, c := x.b.Stats(), x.cable.Stats(); s.RXDropDescriptor != 2 || s.RXDrops() != 2 || c.BToA.Dropped != 2 {
			t.Errorf("stats %+v, cable %+v", s, c)
		}
		noViolations(t, x.b)
	}
}

// TestDFFKeepsFramesInTheFIFO: then the FIFO fills and overflows.
func TestDFFKeepsFramesInTheFIFO(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{ring: 2, opMode: opDFF}, gigabit())
	x.hostSend(makeFrame(x.mac(), hostMAC, 100), makeFrame(x.mac(), hostMAC, 101))
	x.r.Store32(regStatus, 0x1FFFF)
	for i := range 4 { // two of these fill the FIFO of 4096 bytes
		x.hostSend(makeFrame(x.mac(), hostMAC, 1500+i))
	}
	if fill := x.r.Load32(regDebug) >> debugRXFill & 3; fill == 0 {
		t.Error("the debug register shows an empty FIFO")
	}
	if st := x.status(); st&stOVF == 0 {
		t.Errorf("status 0x%08x lacks OVF", st)
	}
	if got := x.r.Load32(regMissed); got != 2<<fifoShift {
		t.Errorf("missed frame register 0x%x, want two overflows", got)
	}
	if v, _ := x.b.Counter(mmcRXOverflow); v != 2 {
		t.Errorf("counter %d", v)
	}
	lens := func(all []received) (n []int) {
		for _, r := range all {
			n = append(n, len(r.frame()))
		}
		return n
	}
	if d := cmp.Diff([]int{100, 101}, lens(x.all())); d != "" {
		t.Error(d)
	}
	x.r.Store32(regRXPoll, 1)
	x.clock.Advance(time.Millisecond)
	if d := cmp.Diff([]int{1500, 1501}, lens(x.all())); d != "" {
		t.Error(d)
	}
	if fill := x.r.Load32(regDebug) >> debugRXFill & 3; fill != 0 {
		t.Error("the FIFO is not empty in the end")
	}
	noViolations(t, x.b)
}

// TestSlowBusOverflowsTheFIFO: occupancy follows simulated time, so how many frames survive is arithmetic.
func TestSlowBusOverflowsTheFIFO(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.b.Faults().SetDMABandwidth(62_500_000) // half of the wire
	const n = 40
	for range n {
		if err := x.host.Send(makeFrame(x.mac(), hostMAC, 1514)); err != nil {
			t.Fatal(err)
		}
	}
	x.clock.Advance(5 * time.Millisecond)
	got := len(x.all())
	// The bus moves a frame in 24.4 µs, the wire brings one each 12.3 µs: half of them, and what the FIFO holds.
	if got < n/2 || got > n/2+3 {
		t.Errorf("%d of %d frames arrived", got, n)
	}
	if s := x.b.Stats(); int(s.RXDropOverflow) != n-got {
		t.Errorf("%d overflows and %d frames of %d", s.RXDropOverflow, got, n)
	}
	noViolations(t, x.b)
}

// TestOverflowInThresholdMode: the beginning of the frame that overflows is in memory, closed with OE and a length of 0.
func TestOverflowInThresholdMode(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regOpMode, x.opMode&^opRSF)
	x.b.Faults().SetDMABandwidth(10_000_000)
	for range 3 {
		x.host.Send(makeFrame(x.mac(), hostMAC, 1514))
	}
	x.clock.Advance(10 * time.Millisecond)
	var got []uint32
	for i := range 4 {
		got = append(got, x.rxRing.Load32(i*16))
	}
	const good = rxFS | rxLS | rxFT | 1518<<rxFL
	if d := cmp.Diff([]uint32{good, good, rxFS | rxLS | rxOE | rxES, descOWN}, got); d != "" {
		t.Error(d)
	}
	if s := x.b.Stats(); s.RXDropOverflow != 1 || s.RXFrames != 2 {
		t.Errorf("stats %+v", s)
	}
}

func TestFrameLargerThanItsBuffers(t *testing.T) {
	frame := func(x *bench, n int) []byte { return makeFrame(x.mac(), hostMAC, n) }
	words := func(x *bench, n int) (w []uint32) {
		for i := range n {
			w = append(w, x.rxRing.Load32(i*16)&^rxFT)
		}
		return w
	}
	t.Run("three descriptors", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{ring: 8, buf: 400}, gigabit())
		p := frame(x, 1000)
		x.hostSend(p)
		want := []uint32{rxFS | 400<<rxFL, 800 << rxFL, rxLS | 1004<<rxFL, descOWN}
		if d := cmp.Diff(want, words(x, 4)); d != "" {
			t.Error(d)
		}
		var all []byte
		for i := range 3 {
			buf := make([]byte, 400)
			x.rxBuf.CopyOut(buf, i*x.rxStride())
			all = append(all, buf...)
		}
		equalFrame(t, all[:1000], p)
		noViolations(t, x.b)
	})
	t.Run("second buffers", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{ring: 8}, gigabit())
		x.r.Store32(regOpMode, x.opMode&^opSR)
		x.rxRing.Store32(4, 256|512<<ntSize2)
		x.rxRing.Store32(12, x.rxBuf.Bus()+1024)
		x.r.Store32(regRXBase, x.rxRing.Bus())
		x.r.Store32(regOpMode, x.opMode)
		p := frame(x, 700)
		x.hostSend(p)
		if d := cmp.Diff([]uint32{rxFS | rxLS | 704<<rxFL, descOWN}, words(x, 2)); d != "" {
			t.Error(d)
		}
		buf := make([]byte, 2048)
		x.rxBuf.CopyOut(buf, 0)
		equalFrame(t, append(append([]byte(nil), buf[:256]...), buf[1024:1024+444]...), p)
		noViolations(t, x.b)
	})
	t.Run("descriptors end within the frame", func(t *testing.T) {
		x := newBench(t, Options{}, driverOptions{ring: 2, buf: 400}, gigabit())
		x.hostSend(frame(x, 1000))
		want := []uint32{rxFS | 400<<rxFL, rxLS | rxDE | rxES | 800<<rxFL}
		if d := cmp.Diff(want, words(x, 2)); d != "" {
			t.Error(d)
		}
		if s := x.b.Stats(); s.RXTruncated != 1 || s.RXFrames != 0 {
			t.Errorf("stats %+v", s)
		}
		if st := x.status(); st&stRU == 0 {
			t.Error("no RU")
		}
	})
}

// TestGuardZones: no frame of any length touches memory outside the buffer's advertised size.
func TestGuardZones(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{config: cfgWD, opMode: opFEF | opFUF, ring: 8, buf: 1528}, gigabit())
	guard := bytes.Repeat([]byte{0x5A}, x.rxStride()-1528)
	for i := range x.n {
		x.rxBuf.CopyIn(i*x.rxStride()+1528, guard)
	}
	for _, n := range []int{1, 14, 60, 1524, 1525, 1528, 1529, 3052, 4000, 9000, 16380} {
		x.hostSend(makeFrame(x.mac(), hostMAC, max(n, 14))[:n])
		x.clock.Advance(time.Millisecond)
		x.all()
		for i := range x.n {
			got := make([]byte, len(guard))
			x.rxBuf.CopyOut(got, i*x.rxStride()+1528)
			if !bytes.Equal(got, guard) {
				t.Fatalf("a frame of %d bytes wrote behind buffer %d", n, i)
			}
		}
	}
}

func TestReceiveInterruptWatchdog(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regOpMode, x.opMode&^opSR)
	for i := range x.n { // DIC in all
		x.rxRing.Store32(i*16+4, x.rxRing.Load32(i*16+4)|rxDIC)
	}
	x.r.Store32(regOpMode, x.opMode)
	x.r.Store32(regRXWatchdog, 0x40) // 0x40 * 256 / 159.375 MHz = 102.8 µs
	x.r.Store32(regStatus, 0x1FFFF)
	x.hostSend(makeFrame(x.mac(), hostMAC, 100)) // 40 µs
	if x.status()&stRI != 0 {
		t.Error("RI before its time")
	}
	x.clock.Advance(50 * time.Microsecond)
	if x.status()&stRI != 0 {
		t.Error("RI before its time")
	}
	x.clock.Advance(20 * time.Microsecond)
	if x.status()&stRI == 0 {
		t.Error("no RI")
	}
	noViolations(t, x.b)
}

func TestReceiveChain(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{ring: 4}, gigabit())
	x.r.Store32(regOpMode, x.opMode&^opSR)
	for i := range 4 {
		x.rxRing.Store32(i*16+4, 1536|nrRCH)
		x.rxRing.Store32(i*16+12, x.rxRing.Bus()+uint32((i+3)%4*16)) // backwards
	}
	x.r.Store32(regRXBase, x.rxRing.Bus())
	x.r.Store32(regOpMode, x.opMode)
	for i := range 3 {
		x.hostSend(makeFrame(x.mac(), hostMAC, 100+i))
	}
	var got []uint32
	for _, e := range []int{0, 3, 2, 1} {
		got = append(got, x.rxRing.Load32(e*16)>>rxFL&0x3FFF)
	}
	if d := cmp.Diff([]uint32{104, 105, 106, 0}, got); d != "" {
		t.Error(d)
	}
	noViolations(t, x.b)
}

func TestReceiverOffDropsSilently(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regConfig, x.config&^cfgRE)
	x.hostSend(makeFrame(x.mac(), hostMAC, 100))
	if n, m := len(x.all()), x.r.Load32(regMissed); n != 0 || m != 0 {
		t.Errorf("%d frames, missed 0x%x", n, m)
	}
	x.r.Store32(regConfig, x.config)
	x.hostSend(makeFrame(x.mac(), hostMAC, 101))
	if all := x.all(); len(all) != 1 || len(all[0].frame()) != 101 {
		t.Errorf("%d frames after RE", len(all))
	}
	noViolations(t, x.b)
}

func TestStoppedEngineLeavesFramesInTheFIFO(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regOpMode, x.opMode&^opSR)
	x.hostSend(makeFrame(x.mac(), hostMAC, 100))
	if n := len(x.all()); n != 0 {
		t.Errorf("%d frames in memory", n)
	}
	x.r.Store32(regOpMode, x.opMode)
	x.clock.Advance(time.Millisecond)
	if n := len(x.all()); n != 1 {
		t.Errorf("%d frames in memory after SR", n)
	}
	noViolations(t, x.b)
}

func ExampleHost() {
	got := make(chan string, 1)
	a := NewHost(func(p []byte) { got <- string(p[14:]) })
	b := NewHost(nil)
	c, err := Connect(a, b, CableOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	b.Send(append(make([]byte, 14), "hello"...))
	fmt.Println(<-got)
	// Output: hello
}
