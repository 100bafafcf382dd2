package board

import (
	"fmt"

	"dwnet/hw"
)

// Delay is a delay that the MAC adds to an RGMII clock. The zero value is what the interface mode and the board's traces leave
// to the MAC, so that each direction has 2 ns once.
type Delay int

const (
	AutoDelay Delay = 0
	NoDelay   Delay = 1
	Delay2ns  Delay = 2001
	Delay4ns  Delay = 4001 // half the clock's period: its edges fall on those of the data. For experiments only
	Delay6ns  Delay = 6001
)

// wantDelay is what a direction of RGMII needs in all, in picoseconds (Reduced Gigabit Media Independent Interface 2.0, 3.3:
// 1.2 ns at least at the receiver, and a PHY's internal delay is 2 ns).
const wantDelay = 2000

// Picoseconds is a delay of so much.
func Picoseconds(ps int) Delay { return Delay(ps + 1) }

// Picoseconds is the delay, with set false for AutoDelay.
func (d Delay) Picoseconds() (ps int, set bool) {
	if d == AutoDelay {
		return 0, false
	}
	return int(d) - 1, true
}

func (d Delay) String() string {
	ps, set := d.Picoseconds()
	if !set {
		return "auto"
	}
	return nanoseconds(ps)
}

// sides says where the delays of a direction come from, in picoseconds.
type sides struct{ mac, phy, trace int }

func (s sides) total() int { return s.mac + s.phy + s.trace }

// made names the sides that add something.
func (s sides) made() string {
	text := ""
	for _, e := range []struct {
		name string
		ps   int
	}{{"MAC", s.mac}, {"PHY", s.phy}, {"traces", s.trace}} {
		if e.ps == 0 {
			continue
		}
		if text != "" {
			text += " + "
		}
		text += fmt.Sprintf("%s by the %s", nanoseconds(e.ps), e.name)
	}
	if text == "" {
		return "none"
	}
	return text
}

// phyDelays is what the PHY adds in a mode, in picoseconds.
func phyDelays(m hw.InterfaceMode) (tx, rx int) {
	switch m {
	case hw.ModeRGMIIID:
		return wantDelay, wantDelay
	case hw.ModeRGMIITXID:
		return wantDelay, 0
	case hw.ModeRGMIIRXID:
		return 0, wantDelay
	}
	return 0, 0
}

// macDelay is what the MAC adds in a direction, from what is asked for and what the others add. A delay that is made twice is
// refused: the two add up to half a period.
func macDelay(name string, asked Delay, phy, trace int) (int, error) {
	ps, set := asked.Picoseconds()
	if !set {
		ps = max(wantDelay-phy-trace, 0)
	}
	if made := (sides{ps, phy, trace}); (ps != 0 && phy != 0) || (ps != 0 && trace != 0) || (phy != 0 && trace != 0) {
		return 0, configError(name, "%s: only one of them may delay, by %s", made.made(), nanoseconds(wantDelay))
	}
	return ps, nil
}
