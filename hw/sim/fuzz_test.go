package sim

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// FuzzReceive sends any bytes to a board under any configuration of the receiver: nothing panics or hangs, and each frame is
// in memory or counted.
func FuzzReceive(f *testing.F) {
	for _, k := range []packet{{proto: protoTCP, body: 10}, {proto: protoUDP, body: 3, v6: true, options: 8}, {proto: protoUDP, frag: 1}, {v6: true, frag6: true}} {
		p, _, _ := k.make(hostMAC, hostMAC)
		f.Add(p, uint32(cfgIPC), uint32(opFEF|opFUF|opDT), uint32(filterRA))
	}
	f.Add([]byte{1}, uint32(0), uint32(0), uint32(0))
	f.Add(append(pauseFrame(hostMAC, 100), make([]byte, 42)...), uint32(0), uint32(opEFC), uint32(3<<filterPCF))
	f.Add(make([]byte, 3000), uint32(cfgWD|cfgACS|cfgCST), uint32(opFEF), uint32(filterPR))
	f.Fuzz(func(t *testing.T, p []byte, cfg, op, filter uint32) {
		const configBits = cfgACS | cfgIPC | cfgJE | cfgWD | cfgCST | cfg2KPE
		const opBits = opDGF | opFUF | opFEF | opDT | 3<<opRTC
		if len(p) == 0 || len(p) > longestFrame {
			return
		}
		x := newBench(t, Options{}, driverOptions{config: cfg & configBits, opMode: op & opBits, ring: 32}, gigabit())
		x.clock.Advance(time.Millisecond)
		x.r.Store32(regFilter, filter&0x800107FF)
		if op&1 != 0 {
			x.r.Store32(regOpMode, x.opMode&^opRSF)
		}
		if err := x.host.Send(p); err != nil {
			t.Fatal(err)
		}
		x.clock.Advance(time.Millisecond)
		s := x.b.Stats()
		if s.RXFrames+s.RXDrops() != 1 {
			t.Errorf("%d frames and %d drops", s.RXFrames, s.RXDrops())
		}
		noViolations(t, x.b)
	})
}

// FuzzTransmit gives the transmit engine any descriptors: nothing panics or hangs.
func FuzzTransmit(f *testing.F) {
	f.Add(uint32(descOWN), uint32(ntFS|ntLS|60), uint32(0), uint32(0), uint32(0), uint32(0), false)
	f.Add(uint32(descOWN), uint32(ntFS|3<<ntCIC|60), uint32(0), uint32(0), uint32(descOWN), uint32(ntLS|100), false)
	f.Add(uint32(descOWN|etFS|etLS), uint32(60), uint32(0), uint32(0), uint32(0), uint32(0), true)
	f.Fuzz(func(t *testing.T, a0, a1, a2, a3, b0, b1 uint32, enhanced bool) {
		x := newBench(t, Options{EnhancedDescriptors: enhanced}, driverOptions{ring: 4}, gigabit())
		buf := x.txBuf.Bus() + a2%uint32(x.txBuf.Size())
		if a2 == all32 {
			buf = a2
		}
		x.txWords([4]uint32{a0, a1, buf, a3}, [4]uint32{b0, b1, buf, buf})
		x.clock.Advance(100 * time.Millisecond)
		x.arrived()
	})
}

// FuzzRegisters makes any accesses to the registers: nothing panics or hangs.
func FuzzRegisters(f *testing.F) {
	f.Add([]byte{0x00, 0x10, 1, 0, 0, 0, 1})
	f.Add([]byte{0x18, 0x10, 0xFF, 0xFF, 0xFF, 0xFF, 3, 0x04, 0x10, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		x := newBench(t, Options{}, driverOptions{ring: 4}, gigabit())
		for n := 0; len(script) >= 7 && n < 200; n++ {
			off := uint32(binary.LittleEndian.Uint16(script))
			if script[6]&1 != 0 {
				x.r.Store32(off, binary.LittleEndian.Uint32(script[2:]))
			} else {
				x.r.Load32(off)
			}
			x.clock.Advance(time.Duration(script[6]) * time.Microsecond)
			if script[6]&2 != 0 {
				x.host.Send(makeFrame(x.b.opts.Address, hostMAC, 60))
			}
			script = script[7:]
		}
		x.clock.Advance(100 * time.Millisecond)
	})
}

func TestSendRawTakesTheFCSAsGiven(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	p := makeFrame(x.mac(), hostMAC, 100)
	withFCS := binary.LittleEndian.AppendUint32(append([]byte(nil), p...), crc32.ChecksumIEEE(p))
	for i, c := range [][]byte{withFCS, append(append([]byte(nil), p...), 1, 2, 3, 4), {1, 2}} {
		if err := x.host.SendRaw(c); err != nil {
			t.Fatal(err)
		}
		x.clock.Advance(time.Millisecond)
		all := x.all()
		if len(all) == 1 != (i == 0) || i == 0 && !bytes.Equal(all[0].frame(), p) {
			t.Errorf("frame %d: %d in memory", i, len(all))
		}
	}
	if n, _ := x.b.Counter(mmcRXCRC); n != 1 {
		t.Errorf("%d CRC errors", n)
	}
}

func TestMissedFrameRegisterOverflows(t *testing.T) {
	b, _ := stepped(t, Options{})
	r := b.Port().Registers()
	b.mu.Lock()
	for range missedMax + 1 {
		b.missed()
	}
	for range fifoMax + 2 {
		b.countFIFO()
	}
	b.mu.Unlock()
	got := r.Load32(regMissed)
	want := uint32(missedOverflow | fifoOverflow | 1<<fifoShift)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestNames(t *testing.T) {
	for a, want := range map[AccessKind]string{AccessRW: "RW", AccessRO: "RO", AccessW1C: "W1C", AccessRC: "RC", AccessRWSC: "RW/SC",
		AccessWO: "WO", AccessAbsent: "absent", 99: "AccessKind(99)"} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Rule(200).String(); got != "rule 200" {
		t.Errorf("%q", got)
	}
	if got := NewHost(nil).Name(); got != "host" {
		t.Errorf("%q", got)
	}
}
