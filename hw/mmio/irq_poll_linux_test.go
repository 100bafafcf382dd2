package mmio

import (
	"testing"
	"time"

	"dwnet/hw"
)

// The longer nothing happened, the rarer the looks, within bounds.
func TestPollDelay(t *testing.T) {
	const least, most = 50 * time.Microsecond, time.Millisecond
	for idle, want := range map[time.Duration]time.Duration{
		0:                      least,
		100 * time.Microsecond: least,
		800 * time.Microsecond: 100 * time.Microsecond,
		4 * time.Millisecond:   500 * time.Microsecond,
		time.Second:            most,
		1 << 62:                most,
		-time.Second:           least,
	} {
		if got := pollDelay(idle, least, most); got != want {
			t.Errorf("idle for %v: %v, want %v", idle, got, want)
		}
	}
}

// The registers are left alone while the line is masked.
func TestPollingLooksOnlyWhenUnmasked(t *testing.T) {
	looks := 0
	p, err := newPollInterrupt("test", func() bool { looks++; return false }, leastPoll, leastPoll)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wait(t, p, 2*time.Millisecond, hw.WakeTimeout)
	if looks != 0 {
		t.Errorf("%d looks while masked", looks)
	}
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}
	within(t, "polling", func() {
		for looks < 10 {
			if got, err := p.Wait(time.Millisecond); err != nil || got != hw.WakeTimeout {
				t.Errorf("Wait gives %v, %v", got, err)
			}
		}
	})
	if uint64(looks) != p.looks.Load() {
		t.Errorf("%d looks while unmasked, %d counted", looks, p.looks.Load())
	}
}

// registers is a window made of a map.
type registers map[uint32]uint32

func (r registers) Load32(off uint32) uint32     { return r[off] }
func (r registers) Store32(off uint32, v uint32) { r[off] = v }

func TestLineOfRegisters(t *testing.T) {
	const ti, ru, nie, aie = uint32(hw.CauseTI), uint32(hw.CauseRU), uint32(hw.CauseNIS), uint32(hw.CauseAIS)
	for _, c := range []struct {
		name           string
		status, enable uint32
		want           bool
	}{
		{"idle", 0, nie | ti, false},
		{"engine states only", 6 << 20, 0x1FFFF, false},
		{"normal, enabled", nie | ti, nie | ti, true},
		{"normal, disabled", nie | ti, aie | ti, false},
		{"abnormal, enabled", aie | ru, aie | ru, true},
		{"abnormal, only normal enabled", aie | ru, nie | ru, false},
		{"source without summary", ti, nie | ti, false},
		{"counter interrupt", uint32(hw.CauseGMI), 0, true},
		{"link interrupt", uint32(hw.CauseGLI), 0, true},
		{"device gone", allOnes, allOnes, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := registers{hw.RegStatus: c.status, hw.RegInterruptEnable: c.enable}
			if got := lineOf(r)(); got != c.want {
				t.Errorf("line is %v", got)
			}
		})
	}
}
