package board

import (
	"fmt"
	"slices"
	"strings"

	"dwnet/clk"
	"dwnet/hw"
	"dwnet/hw/phy"
)

// Severity says how bad a finding is.
type Severity uint8

const (
	Info    Severity = iota // worth knowing
	Warning                 // works, with losses or under conditions
	Error                   // does not work, or loses so much that it is of no use
)

func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Warning:
		return "warning"
	case Error:
		return "error"
	}
	return fmt.Sprintf("Severity(%d)", uint8(s))
}

// MarshalText gives the name.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Identifiers of findings. They do not change.
const (
	FindMACPower       = "mac-power"
	FindMACGate        = "mac-gate"
	FindPins           = "pins"
	FindInterface      = "interface-mode"
	FindDivider        = "tx-clock-divider"
	FindInput          = "tx-clock-input"
	FindClockInvalid   = "tx-clock-invalid"
	FindClockRate      = "tx-clock-rate"
	FindSourceOff      = "tx-clock-source"
	FindTXClockOff     = "tx-clock-gate"
	FindClocksOff      = "clocks-off"
	FindRMIIInvert     = "rmii-invert"
	FindTXDelayTwice   = "tx-delay-twice"
	FindTXDelayMissing = "tx-delay-missing"
	FindTXDelayWrong   = "tx-delay-wrong"
	FindRXDelayTwice   = "rx-delay-twice"
	FindRXDelayMissing = "rx-delay-missing"
	FindRXDelayWrong   = "rx-delay-wrong"
	FindRetimingManual = "rx-retiming-manual"
	FindRetimingClock  = "rx-retiming-clock"
	FindPHYHeld        = "phy-reset"
	FindPHYPowerDown   = "phy-power-down"
	FindPHYIsolated    = "phy-isolated"
	FindPHYALDPS       = "phy-aldps"
	FindPHYDelays      = "phy-delays"
	FindEEEActive      = "eee-active"
	FindEEEBroken      = "eee-broken"
	FindHalfDuplex     = "duplex-mismatch"
	FindDownshift      = "downshift"
	FindNegotiation    = "negotiation"
	FindPause          = "pause-recommended"
)

// Finding is one thing that is wrong or remarkable, in words.
type Finding struct {
	ID          string
	Severity    Severity
	What        string // what the registers say
	Consequence string // what comes of it
	Remedy      string // what to do, empty if nothing
}

func (f Finding) String() string {
	s := fmt.Sprintf("%v: %s: %s", f.Severity, f.What, f.Consequence)
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// findings collects.
type findings []Finding

func (l *findings) add(id string, sev Severity, what, consequence, remedy string) {
	*l = append(*l, Finding{id, sev, what, consequence, remedy})
}

// Diagnose says what is wrong with a board, worst first, and nothing about one that is right. It compares what was read with
// the description in s.Board; with the PHY's report in it (WithPHY), it sees both ends of the delays.
func (s State) Diagnose() []Finding {
	var l findings
	s.diagnoseMAC(&l)
	if s.PRG.RGMII(s.Board.SoC.Layout) != rgmii(s.Board.Mode) {
		l.add(FindInterface, Error,
			fmt.Sprintf("PRG_ETH0 selects %s, the board is wired for %v", s.PRG.interfaceName(s.Board.SoC.Layout), s.Board.Mode),
			"the MAC gets no clock that fits, and its reset never ends",
			"set the interface bits and reset the MAC, which samples them")
	}
	if rgmii(s.Board.Mode) {
		s.diagnoseClock(&l)
		s.diagnoseDelays(&l)
	} else {
		s.diagnoseRMII(&l)
	}
	if s.PRG&PRGClockEnable == 0 {
		l.add(FindClocksOff, Error, "PRG_ETH0 bit 12 is clear: the glue makes no clocks",
			"nothing is sent, and the MAC's reset never ends", "set bit 12 last")
	}
	s.diagnosePHY(&l)
	slices.SortStableFunc(l, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return l
}

func (v PRG) interfaceName(l Layout) string {
	if v.RGMII(l) {
		return "RGMII"
	}
	return "RMII"
}

func (s State) diagnoseMAC(l *findings) {
	if !s.Known {
		return
	}
	soc := s.Board.SoC
	if !s.MACPowered {
		l.add(FindMACPower, Error, fmt.Sprintf("%s bits 3:2 are set: the MAC's memories have no power", soc.MemPower.Name),
			"frames are lost or damaged in the FIFOs", "clear the bits and wait 20 µs before the MAC is touched")
	}
	if !s.MACGate {
		l.add(FindMACGate, Error, fmt.Sprintf("%s bit %d is clear: the MAC's registers have no clock", soc.Gate.Name, soc.Gate.Shift),
			"an access to them may hang the bus", "open the gate; under Linux clk_ignore_unused keeps it open without a driver")
	}
	if len(s.PinsMissing) != 0 {
		l.add(FindPins, Error, fmt.Sprintf("pads are not, or not only, given to Ethernet: %s", strings.Join(s.PinsMissing, ", ")),
			"signals between MAC and PHY are missing or driven twice", "set the pin multiplexers for "+s.Board.Mode.String())
	}
	if s.PHYHeld {
		l.add(FindPHYHeld, Error, fmt.Sprintf("%s holds the PHY in reset", s.Board.PHYReset.Name),
			"the PHY does not answer on MDIO, and gives no receive clock, without which the MAC's reset never ends",
			"let go of the line and wait 80 ms")
	}
}

func (s State) diagnoseClock(l *findings) {
	switch d := s.PRG.Divider(); {
	case d == 0:
		l.add(FindDivider, Error, "m250_div is 0", "there is no transmit clock, or an undefined one: nothing is sent",
			fmt.Sprintf("needs %d to %d with an input of at least 500 MHz", minDivider, maxDivider))
	case d < minDivider:
		l.add(FindDivider, Error, fmt.Sprintf("m250_div is %d", d),
			"expect about 80 % loss of transmit rate at 1000 Mbit/s, while receiving is fine",
			"needs ≥ 2 with an input ≥ 500 MHz")
	}
	if !s.Known {
		return
	}
	source, name := s.inputSource()
	slow := s.InputHz != 0 && clk.Deviation(clk.Hz(s.InputHz), MinInput) < -float64(tolerance)
	if slow {
		l.add(FindInput, Error, fmt.Sprintf("the divider's input, %s, runs at %d Hz", name, s.InputHz),
			"the transmit delay cannot be formed: expect about 80 % loss of transmit rate at 1000 Mbit/s, while receiving is fine",
			"needs at least 4 × 125 MHz, with a divider ≥ 2")
	}
	if source != nil && !source.On {
		l.add(FindSourceOff, Error, fmt.Sprintf("%s, the source of the transmit clock, is off", name),
			"nothing is sent, and the MAC's reset never ends", "open its gate")
	}
	if s.PRG&PRGTXClockEnable == 0 {
		l.add(FindTXClockOff, Error, "PRG_ETH0 bit 10 is clear: the RGMII transmit clock is off",
			"nothing is sent", "set bit 10 once the divider is right")
	}
	switch {
	case s.ClockErr != nil && s.PRG.Divider() >= minDivider:
		l.add(FindClockInvalid, Error, fmt.Sprintf("the transmit clock cannot be told: %v", s.ClockErr),
			"nothing is known about what is sent", "program the source anew")
	case s.TXClockHz != 0:
		ppm := clk.Deviation(clk.Hz(s.TXClockHz), txClock)
		if ppm < -float64(tolerance) || ppm > float64(tolerance) {
			l.add(FindClockRate, Error, fmt.Sprintf("the RGMII transmit clock is %d Hz, %s off 125 MHz", s.TXClockHz, percent(ppm)),
				"at 1000 Mbit/s frames are lost or the link fails; at most 100 ppm are allowed",
				"program MPLL2 and the divider for 125 MHz")
		}
	}
}

// inputSource is the source that the multiplexer selects.
func (s State) inputSource() (*SourceState, string) {
	switch s.Board.SoC.Inputs[s.PRG.Input()] {
	case SourceMPLL2:
		return &s.MPLL2, "MPLL2"
	case SourceFCLKDiv2:
		return &s.FCLKDiv2, "FCLK_DIV2"
	}
	return nil, fmt.Sprintf("clkin%d", s.PRG.Input())
}

func percent(ppm float64) string {
	if ppm > -1000 && ppm < 1000 {
		return fmt.Sprintf("%+.0f ppm", ppm)
	}
	return fmt.Sprintf("%+.1f %%", ppm/1e4)
}

// direction is one of the two that RGMII delays.
type direction struct {
	name                  string
	twice, missing, wrong string // identifiers
	loses                 string
	sides                 sides
}

func (s State) diagnoseDelays(l *findings) {
	ptx, prx := phyDelays(s.Board.Mode)
	from := "which the mode leaves to the PHY"
	if s.PHY != nil && s.PHY.Delays.Known {
		from = "read from the PHY"
		side := map[bool]int{true: wantDelay}
		if want, ok := phy.DelaysFor(s.Board.Mode); ok && want != s.PHY.Delays {
			l.add(FindPHYDelays, Warning, fmt.Sprintf("the PHY's delays are %v, %v asks for %v", s.PHY.Delays, s.Board.Mode, want),
				"the straps or somebody else chose them", "open the PHY with this mode")
		}
		ptx, prx = side[s.PHY.Delays.TX], side[s.PHY.Delays.RX]
	}
	rx, known := s.RXDelay()
	dirs := []direction{{"transmit", FindTXDelayTwice, FindTXDelayMissing, FindTXDelayWrong, "transmitting",
		sides{s.PRG.TXDelay(), ptx, s.Board.TraceTX}}}
	if known {
		dirs = append(dirs, direction{"receive", FindRXDelayTwice, FindRXDelayMissing, FindRXDelayWrong, "receiving",
			sides{rx, prx, s.Board.TraceRX}})
	} else {
		l.add(FindRetimingManual, Warning,
			fmt.Sprintf("receive retiming is set by hand: ADJ_DELAY %d, ADJ_SKEW 0x%x", s.PRG.AdjDelay(), s.PRG.AdjSkew()),
			"the receive delay cannot be told, and depends on FCLK_DIV2", "use automatic retiming (bits 13 and 14), or none with a delay in the PHY")
	}
	for _, d := range dirs {
		d.judge(l, from)
	}
	if s.Known && s.PRG&PRGAdjEnable != 0 && s.Board.SoC.Layout != LayoutG12A && !s.FCLKDiv2.On {
		l.add(FindRetimingClock, Error, "receive retiming is on and its clock, FCLK_DIV2, is off", "nothing is received",
			"open the gate of FCLK_DIV2, or clear bit 13")
	}
	if s.PRG&PRGRMIIInvert != 0 {
		l.add(FindRMIIInvert, Info, "PRG_ETH0 bit 11, for RMII, is set in RGMII",
			"none is known; Hardkernel's boot loader leaves it so", "clear it")
	}
}

func (d direction) judge(l *findings, from string) {
	s := d.sides
	sum := fmt.Sprintf("%s in all (%s; the PHY's part is %s)", nanoseconds(s.total()), s.made(), from)
	only := fmt.Sprintf("let one side delay by %s", nanoseconds(wantDelay))
	loss := fmt.Sprintf("clock edges meet those of the data: heavy loss in %s at 1000 Mbit/s, none at 100", d.loses)
	switch n := s.total(); {
	case n == wantDelay:
	case s.mac != 0 && s.phy != 0:
		l.add(d.twice, Error, fmt.Sprintf("both MAC and PHY add a %s delay: %s", d.name, sum), loss, only)
	case n == 0:
		l.add(d.missing, Error, fmt.Sprintf("nobody adds a %s delay: %s", d.name, sum),
			fmt.Sprintf("clock and data change together: loss in %s at 1000 Mbit/s, up to all", d.loses), only)
	case n > wantDelay && (s.mac != 0 && s.trace != 0 || s.phy != 0 && s.trace != 0):
		l.add(d.twice, Error, fmt.Sprintf("the %s delay is made twice: %s", d.name, sum), loss, only)
	default:
		sev := Warning
		if n >= 2*wantDelay {
			sev = Error
		}
		l.add(d.wrong, sev, fmt.Sprintf("the %s delay is %s", d.name, sum), loss, only)
	}
}

func (s State) diagnoseRMII(l *findings) {
	if s.PRG&PRGRMIIInvert == 0 {
		l.add(FindRMIIInvert, Error, "PRG_ETH0 bit 11 is clear in RMII", "the 25 and 2.5 MHz clocks are not made from the reference clock",
			"set bit 11")
	}
	if s.PRG&PRGAdjEnable != 0 {
		l.add(FindRetimingManual, Warning, "receive retiming is on in RMII", "it is made for RGMII's clock", "clear bit 13")
	}
}

func (s State) diagnosePHY(l *findings) {
	r := s.PHY
	if r == nil {
		return
	}
	if r.Control&phy.BMCRPowerDown != 0 {
		l.add(FindPHYPowerDown, Error, "the PHY is in power-down", "there is no link and no receive clock, without which the MAC's reset never ends",
			"clear BMCR bit 11")
	}
	if r.Control&phy.BMCRIsolate != 0 {
		l.add(FindPHYIsolated, Error, "the PHY is isolated", "it has a link and passes nothing", "clear BMCR bit 10")
	}
	if r.ALDPS {
		l.add(FindPHYALDPS, Warning, "the PHY saves power without a link (ALDPS)",
			"its receive clock stops after the cable was pulled, and a reset of the MAC hangs then", "turn ALDPS off")
	}
	switch bad := r.EEE.Advertised & (r.EEE.Broken | s.Board.EEEBroken); {
	case bad != 0 && r.EEE.Active:
		l.add(FindEEEBroken, Error, fmt.Sprintf("Energy-Efficient Ethernet is in use, and broken on this board: %v", bad),
			"loss of packets and short outages", "do not advertise it")
	case bad != 0:
		l.add(FindEEEBroken, Warning, fmt.Sprintf("Energy-Efficient Ethernet is advertised, and broken on this board: %v", bad),
			"loss of packets with a partner that does it too", "do not advertise it")
	case r.EEE.Active:
		l.add(FindEEEActive, Info, "Energy-Efficient Ethernet is in use", "waking up the link adds some 17 µs to a frame after a pause", "")
	}
	st := r.Status
	if st.Fault != nil {
		l.add(FindNegotiation, Error, fmt.Sprintf("autonegotiation: %v", st.Fault), "the link's speed is not known", "restart autonegotiation")
	}
	if st.Downshifted {
		l.add(FindDownshift, Warning, fmt.Sprintf("the link runs at %d Mbit/s, slower than both ends can", st.Link.Speed),
			"the PHY found the cable unfit for more", "try another cable: 1000 Mbit/s needs all four pairs")
	}
	if st.Up && st.Complete && !st.Partner.Autoneg && !st.Link.FullDuplex {
		l.add(FindHalfDuplex, Warning, fmt.Sprintf("the partner does not autonegotiate; the link is taken for %d Mbit/s half duplex", st.Link.Speed),
			"if the partner is set to full duplex, both ends see late collisions and lose under load",
			"let the partner autonegotiate, or force full duplex here too")
	}
}

// DiagnoseTraffic says what the growth of a MAC's counters means: frames that the receive FIFO could not take ask for flow
// control, if the link is full duplex and has none.
func DiagnoseTraffic(before, after hw.Counters, link hw.Link) []Finding {
	missed := after.RXMissed - before.RXMissed
	// The DMA and the MMC count the same frames.
	overflow := max(after.RXOverflow-before.RXOverflow, after.RXFIFOOverflow-before.RXFIFOOverflow)
	if missed == 0 && overflow == 0 || !link.FullDuplex || link.TXPause {
		return nil
	}
	return []Finding{{FindPause, Warning,
		fmt.Sprintf("%d frames found no descriptor and %d overflowed the receive FIFO", missed, overflow),
		"they are lost, and the FIFO of 4 KiB holds 33 µs of 1000 Mbit/s",
		"advertise symmetric pause, so that the partner waits instead"}}
}
