package sim

import (
	"encoding/binary"
	"testing"
	"time"
)

func TestPauseStopsTheTransmitter(t *testing.T) {
	pauseFor := func(x *bench, to [6]byte, quanta uint16) []byte {
		p := pauseFrame(hostMAC, quanta)
		copy(p, to[:])
		return append(p, make([]byte, minFrame-len(p))...)
	}
	for _, c := range []struct {
		name string
		flow uint32
		to   func(x *bench) [6]byte
		obey bool
	}{
		{"RFE", flowRFE, func(*bench) [6]byte { return pauseAddress }, true},
		{"no RFE", 0, func(*bench) [6]byte { return pauseAddress }, false},
		{"unicast", flowRFE, func(x *bench) [6]byte { return x.mac() }, false},
		{"unicast with UP", flowRFE | flowUP, func(x *bench) [6]byte { return x.mac() }, true},
	} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.r.Store32(regFlowControl, c.flow)
		x.hostSend(pauseFor(x, c.to(x), 1000)) // 512 µs
		x.send(makeFrame(hostMAC, x.mac(), 100))
		if got := x.r.Load32(regDebug)&debugTXPaused != 0; got != c.obey {
			t.Errorf("%s: the debug register says paused %v", c.name, got)
		}
		x.clock.Advance(400 * time.Microsecond)
		if n := len(x.arrived()); n != 0 == c.obey {
			t.Errorf("%s: %d frames left during the pause", c.name, n)
		}
		x.clock.Advance(200 * time.Microsecond)
		x.sent()
		if n := len(x.all()); n != 0 {
			t.Errorf("%s: %d control frames in memory with PCF 0", c.name, n)
		}
		noViolations(t, x.b)
	}
}

func TestPassControlFrames(t *testing.T) {
	pause := append(pauseFrame(hostMAC, 0), make([]byte, 42)...)
	other := append([]byte(nil), pause...)
	other[15] = 9 // not PAUSE
	for pcf, want := range []struct{ pause, other bool }{{}, {false, true}, {true, true}, {true, true}} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.clock.Advance(time.Millisecond)
		x.r.Store32(regFlowControl, flowRFE)
		x.r.Store32(regFilter, filterPM|uint32(pcf)<<filterPCF)
		for i, p := range [][]byte{pause, other} {
			x.hostSend(p)
			if got := len(x.all()) == 1; got != []bool{want.pause, want.other}[i] {
				t.Errorf("PCF %d, opcode %d: passed %v", pcf, p[15], got)
			}
		}
	}
}

func TestSendPause(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.r.Store32(regFlowControl, 0x1234<<flowPT|flowTFE|flowFCB)
	x.clock.Advance(time.Millisecond)
	got := x.arrived()
	want := append(pauseFrame(x.mac(), 0x1234), make([]byte, 42)...)
	if len(got) != 1 {
		t.Fatalf("%d frames", len(got))
	}
	equalFrame(t, got[0], want)
	if v := x.r.Load32(regFlowControl); v&flowFCB != 0 {
		t.Error("FCB does not clear")
	}
	x.r.Store32(regFlowControl, 0x1234<<flowPT|flowFCB)
	x.clock.Advance(time.Millisecond)
	if n := len(x.arrived()); n != 0 {
		t.Errorf("%d frames without TFE", n)
	}
	noViolations(t, x.b)
}

// TestFIFOFlowControl: with EFC the sender is asked to wait before the FIFO overflows, and to go on afterwards.
func TestFIFOFlowControl(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{ring: 2, opMode: opDFF | opEFC | 1<<opRFA | 2<<opRFD}, gigabit())
	x.r.Store32(regFlowControl, 0xFFFF<<flowPT|flowTFE)
	x.hostSend(makeFrame(x.mac(), hostMAC, 100), makeFrame(x.mac(), hostMAC, 100)) // the ring is full
	x.hostSend(makeFrame(x.mac(), hostMAC, 1514))
	if n := len(x.arrived()); n != 0 {
		t.Errorf("%d frames: a pause below the threshold", n)
	}
	x.hostSend(makeFrame(x.mac(), hostMAC, 1514)) // 3036 bytes, more than 4096 - 2048
	x.clock.Advance(time.Millisecond)
	got := x.arrived()
	if len(got) != 1 || binary.BigEndian.Uint16(got[0][16:]) != 0xFFFF {
		t.Fatalf("frames from the board: %x", got)
	}
	x.all()
	x.r.Store32(regRXPoll, 1)
	x.clock.Advance(time.Millisecond)
	got = x.arrived()
	if len(got) != 1 || binary.BigEndian.Uint16(got[0][16:]) != 0 {
		t.Errorf("frames from the board after the ring was emptied: %x", got)
	}
	if v, _ := x.b.Counter(mmcTXPause); v != 2 {
		t.Errorf("%d pause frames counted", v)
	}
	noViolations(t, x.b)
}
