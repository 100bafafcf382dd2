package board

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"dwnet/clk"
	"dwnet/hw/phy"
)

// State is what a board's registers say, as a boot loader, a kernel or Open left them.
type State struct {
	Board Board

	PRG  PRG    // PRG_ETH0
	PRG1 uint32 // PRG_ETH1, 0 before G12A

	// Known says that the fields up to CLK81Hz could be read: of some SoCs only the glue is known.
	Known      bool
	MACPowered bool // its memories have power
	MACGate    bool // its registers have a clock
	// PinsMissing are the pin multiplexers that do not, or not fully, give their pads to Ethernet.
	PinsMissing []string
	// PHYHeld: the PHY is held in reset.
	PHYHeld bool
	// MPLL2 and FCLKDiv2 are the possible sources of the transmit clock.
	MPLL2, FCLKDiv2 SourceState
	// CLK81Hz is the clock of the MAC's registers, 0 if it is not known.
	CLK81Hz uint32

	// InputHz is the rate at the divider, TXClockHz what comes out as the RGMII transmit clock, whether its gates are open or
	// not. They are 0 if the registers hold nonsense; ClockErr says what.
	InputHz, TXClockHz uint64
	ClockErr           error
	// Clocks is the tree of the transmit clock, from the gate to the source, for printing.
	Clocks []clk.Info

	// PHY is what the PHY says, if the caller has asked it; see phy.PHY.Report.
	PHY *phy.Report
}

// SourceState is a clock source.
type SourceState struct {
	On     bool
	RateHz uint64 // 0 if the registers hold nonsense
	Used   bool   // the glue's multiplexer or the retiming takes it
}

// Read reads a board's registers. Nothing is written. Registers that read all ones are an error that matches [hw.ErrGone].
//
// The MAC's registers are not touched, so this works on a board whose clocks are off.
func Read(b Board, m Mapper) (State, error) {
	if err := checkMode(b.Mode); err != nil {
		return State{}, err
	}
	regs, err := mapBlocks(m, b.SoC)
	if err != nil {
		return State{}, err
	}
	s, err := readState(b, regs)
	if err != nil {
		err = &StepError{"read", err}
	}
	return s, errors.Join(err, regs.close())
}

func readState(b Board, r *registers) (s State, err error) {
	s.Board = b
	soc := b.SoC
	v, err := r.reg("PRG_ETH0", soc.PRG, false).Load()
	if err != nil {
		return s, err
	}
	s.PRG = PRG(v)
	if soc.Layout == LayoutG12A {
		if s.PRG1, err = r.reg("PRG_ETH1", soc.PRG+4, false).Load(); err != nil {
			return s, err
		}
	}
	if s.Known = soc.complete(); !s.Known {
		return s, nil
	}
	pd, err := r.field(soc.MemPower).Get()
	if err != nil {
		return s, err
	}
	gate, err := r.field(soc.Gate).Get()
	if err != nil {
		return s, err
	}
	s.MACPowered, s.MACGate = pd == 0, gate == 1
	if b.PHYReset.exists() {
		if s.PHYHeld, err = b.PHYReset.held(r); err != nil {
			return s, err
		}
	}
	mux := soc.RMII
	if rgmii(b.Mode) {
		mux = soc.RGMII
	}
	for _, m := range mux {
		v, err := r.reg(m.Name, m.Addr, false).Load()
		if err != nil {
			return s, err
		}
		if v&m.Set != m.Set || v&m.Clear != 0 {
			s.PinsMissing = append(s.PinsMissing, m.Name)
		}
	}
	return s, s.readClocks(r)
}

func (s *State) readClocks(r *registers) error {
	soc := s.Board.SoC
	c, err := newClocks(soc, r)
	if err != nil {
		return err
	}
	input := soc.Inputs[s.PRG.Input()]
	for _, e := range []struct {
		to   *SourceState
		gate *clk.Gate
		used bool
	}{
		{&s.MPLL2, c.mpll2, input == SourceMPLL2},
		{&s.FCLKDiv2, c.fclkDiv2, input == SourceFCLKDiv2 || s.PRG&PRGAdjEnable != 0 && soc.Layout != LayoutG12A},
	} {
		if e.gate == nil {
			continue
		}
		if e.to.On, err = e.gate.Enabled(); err != nil {
			return err
		}
		e.to.Used = e.used
		e.to.RateHz = rate(e.gate)
	}
	if c.clk81 != nil {
		if hz := rate(c.clk81); hz <= math.MaxUint32 {
			s.CLK81Hz = uint32(hz)
		}
	}
	if c.tx == nil {
		return nil
	}
	s.Clocks = clk.Inspect(c.tx)
	if in := c.source(input); in != nil {
		s.InputHz = rate(in)
	}
	hz, err := c.tx.Rate()
	if errors.Is(err, clk.ErrGone) {
		return err
	}
	s.TXClockHz, s.ClockErr = uint64(hz), err
	return nil
}

// rate is a clock's rate, 0 if the registers hold nonsense.
func rate(c clk.Clock) uint64 {
	hz, err := c.Rate()
	if err != nil {
		return 0
	}
	return uint64(hz)
}

// RXDelay is what the MAC adds to the receive clock in picoseconds; known is false for manual retiming.
func (s State) RXDelay() (ps int, known bool) {
	if s.Board.SoC.Layout == LayoutG12A {
		return int(s.PRG1&prg1RXDelayMask>>prg1RXDelayShift) * prg1RXDelayUnit, true
	}
	return s.PRG.RXDelay()
}

// WithPHY is the state with what the PHY says.
func (s State) WithPHY(r phy.Report) State {
	s.PHY = &r
	return s
}

// String prints the state in lines: the glue decoded, what is on, and the tree of the transmit clock.
func (s State) String() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	onOff := map[bool]string{true: "on", false: "off"}
	line("board", "%s, %s, %v", s.Board.Name, s.Board.SoC.Name, s.Board.Mode)
	line("PRG_ETH0", "0x%08x: %s", uint32(s.PRG), s.PRG.Decode(s.Board.SoC.Layout))
	if s.Board.SoC.Layout == LayoutG12A {
		ps, _ := s.RXDelay()
		line("PRG_ETH1", "0x%08x: RX delay %s", s.PRG1, nanoseconds(ps))
	}
	if !s.Known {
		return b.String()
	}
	line("MAC", "memory power %s, clock %s", onOff[s.MACPowered], onOff[s.MACGate])
	if s.Board.PHYReset.exists() {
		line("PHY reset", "%s", map[bool]string{true: "held", false: "released"}[s.PHYHeld])
	}
	if len(s.PinsMissing) != 0 {
		line("pins", "not for Ethernet: %s", strings.Join(s.PinsMissing, ", "))
	}
	for _, e := range []struct {
		name string
		s    SourceState
	}{{"MPLL2", s.MPLL2}, {"FCLK_DIV2", s.FCLKDiv2}} {
		line(e.name, "%s, %s%s", hertz(e.s.RateHz), onOff[e.s.On], map[bool]string{true: ", in use"}[e.s.Used])
	}
	if rgmii(s.Board.Mode) {
		line("TX clock", "%s%s", hertz(s.TXClockHz), s.deviation())
	}
	if s.CLK81Hz != 0 {
		line("clk81", "%d Hz", s.CLK81Hz)
	}
	return b.String()
}

func (s State) deviation() string {
	if s.TXClockHz == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.1f ppm)", clk.Deviation(clk.Hz(s.TXClockHz), txClock))
}

func hertz(hz uint64) string {
	if hz == 0 {
		return "no valid rate"
	}
	return fmt.Sprintf("%d Hz", hz)
}
