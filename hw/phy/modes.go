package phy

import (
	"fmt"
	"strings"
)

// Modes is a set of link modes.
type Modes uint8

const (
	Mode10Half Modes = 1 << iota
	Mode10Full
	Mode100Half
	Mode100Full
	Mode1000Half
	Mode1000Full

	AllModes = Mode10Half | Mode10Full | Mode100Half | Mode100Full | Mode1000Half | Mode1000Full

	modesFull = Mode10Full | Mode100Full | Mode1000Full
	modes1000 = Mode1000Half | Mode1000Full
	// forcible is what a PHY can be set to without autonegotiation. 1000BASE-T needs it to tell master from slave
	// (802.3 40.5.1).
	forcible = Mode10Half | Mode10Full | Mode100Half | Mode100Full
)

// modeNames lists the modes by priority, best first (802.3 28B.3).
var modeNames = []struct {
	mode  Modes
	name  string
	speed int
}{
	{Mode1000Full, "1000/full", 1000},
	{Mode1000Half, "1000/half", 1000},
	{Mode100Full, "100/full", 100},
	{Mode100Half, "100/half", 100},
	{Mode10Full, "10/full", 10},
	{Mode10Half, "10/half", 10},
}

func (m Modes) String() string {
	var s []string
	for _, e := range modeNames {
		if m&e.mode != 0 {
			s = append(s, e.name)
		}
	}
	if rest := m &^ AllModes; rest != 0 {
		s = append(s, fmt.Sprintf("0x%x", uint8(rest)))
	}
	if s == nil {
		return "none"
	}
	return strings.Join(s, " ")
}

// Best is the mode of m that autonegotiation prefers, 0 of none.
func (m Modes) Best() Modes {
	for _, e := range modeNames {
		if m&e.mode != 0 {
			return e.mode
		}
	}
	return 0
}

// Speed is the speed in Mbit/s of the best mode of m, 0 of none.
func (m Modes) Speed() int {
	for _, e := range modeNames {
		if m&e.mode != 0 {
			return e.speed
		}
	}
	return 0
}

// FullDuplex reports whether the best mode of m is full duplex.
func (m Modes) FullDuplex() bool { return m.Best()&modesFull != 0 }

// ModeOf is the mode with a speed in Mbit/s and a duplex, 0 if there is none.
func ModeOf(speed int, full bool) Modes {
	for _, e := range modeNames {
		if e.speed == speed && e.mode&modesFull != 0 == full {
			return e.mode
		}
	}
	return 0
}

// Pause is what a station says about PAUSE frames in autonegotiation, its bits PAUSE and ASM_DIR (802.3 table 28B-2).
type Pause uint8

const (
	PauseNone      Pause = 0                          // no flow control
	PauseSymmetric Pause = 1 << 0                     // both directions or none
	PauseSend      Pause = 1 << 1                     // wants to send PAUSE and not to obey it
	PauseReceive         = PauseSymmetric | PauseSend // symmetric, or obey PAUSE only
)

func (p Pause) String() string {
	switch p {
	case PauseNone:
		return "none"
	case PauseSymmetric:
		return "symmetric"
	case PauseSend:
		return "send-only"
	case PauseReceive:
		return "symmetric or receive-only"
	}
	return fmt.Sprintf("0x%x", uint8(p))
}

// PauseFor is what to advertise so that PAUSE frames are obeyed (rx) and sent (tx) as far as the partner agrees.
func PauseFor(rx, tx bool) Pause {
	switch {
	case rx && tx:
		return PauseSymmetric
	case rx:
		return PauseReceive
	case tx:
		return PauseSend
	}
	return PauseNone
}

// ResolvePause is what the two ends of a full duplex link have agreed on: whether this one sends PAUSE frames (tx) and whether
// it obeys them (rx). On a half duplex link there are none. Source: 802.3 table 28B-3.
func ResolvePause(local, partner Pause, fullDuplex bool) (tx, rx bool) {
	if !fullDuplex {
		return false, false
	}
	switch both := local & partner; {
	case both&PauseSymmetric != 0:
		return true, true
	case both&PauseSend == 0:
		return false, false
	case local&PauseSymmetric != 0:
		return false, true
	case partner&PauseSymmetric != 0:
		return true, false
	}
	return false, false
}
