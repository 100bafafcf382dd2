package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dwnet/clk"
)

// sequence is the steps that make a board's MAC ready, on a board or on a copy of its registers.
type sequence struct {
	board Board
	regs  *registers
	done  *journal
	sleep func(time.Duration)
	log   *slog.Logger
	dry   bool // no pulses
}

// steps in their order. Sources: Linux dwmac-meson8b.c, meson8b_init_prg_eth, for the order within PRG_ETH0; Hardkernel's U-Boot,
// odroidc-eth.c, for what comes before it.
var steps = []struct {
	name string
	do   func(*sequence) error
}{
	{"pins", (*sequence).pins},
	{"memory power", (*sequence).memoryPower},
	{"MAC gate", (*sequence).gate},
	{"clock source", (*sequence).source},
	{"MAC reset", (*sequence).reset},
	{"interface mode", (*sequence).interfaceMode},
	{"delays", (*sequence).delays},
	{"RMII clock", (*sequence).inversion},
	{"TX clock rate", (*sequence).rate},
	{"TX clock gate", (*sequence).txGate},
	{"clocks on", (*sequence).clocksOn},
	{"check PRG_ETH0", (*sequence).check},
}

func (s *sequence) run(ctx context.Context) error {
	for _, st := range steps {
		if err := ctx.Err(); err != nil {
			return &StepError{st.name, err}
		}
		if err := st.do(s); err != nil {
			return &StepError{st.name, err}
		}
		s.log.Debug("board", "step", st.name)
	}
	return nil
}

// pins gives the pads to Ethernet: other functions off first, so that no two drive one pad.
func (s *sequence) pins() error {
	mux := s.board.SoC.RMII
	if rgmii(s.board.Mode) {
		mux = s.board.SoC.RGMII
	}
	for _, m := range mux {
		if m.Clear != 0 {
			if err := s.done.update(s.regs.reg(m.Name, m.Addr, false), m.Clear, 0); err != nil {
				return err
			}
		}
	}
	for _, m := range mux {
		if m.Set != 0 {
			if err := s.done.update(s.regs.reg(m.Name, m.Addr, false), m.Set, m.Set); err != nil {
				return err
			}
		}
	}
	return nil
}

// memoryPower switches the MAC's memories on. Before that, and before the gate is open, its registers may not be touched.
func (s *sequence) memoryPower() error {
	before := len(s.done.undo)
	if err := s.done.set(s.regs.field(s.board.SoC.MemPower), 0); err != nil {
		return err
	}
	if len(s.done.undo) != before {
		s.sleep(powerSettle)
	}
	return nil
}

func (s *sequence) gate() error { return s.done.set(s.regs.field(s.board.SoC.Gate), 1) }

// source makes the clock that the glue divides, MPLL2 at 500 MHz or FCLK_DIV2, and the one that retiming needs. RMII has its
// clock from outside, and MPLL2 may be somebody else's then.
func (s *sequence) source() error {
	if !rgmii(s.board.Mode) {
		return nil
	}
	c, err := newClocks(s.board.SoC, s.regs)
	if err != nil {
		return err
	}
	glue, err := s.board.glue()
	if err != nil {
		return err
	}
	if glue.retimes() {
		if c.fclkDiv2 == nil {
			return fmt.Errorf("retiming needs FCLK_DIV2, which is not known on %s", s.board.SoC.Name)
		}
		if err := s.enable(c.fclkDiv2); err != nil {
			return err
		}
	}
	if c.tx == nil {
		return fmt.Errorf("no source of the transmit clock is known on %s", s.board.SoC.Name)
	}
	plan, err := clk.Solve(c.tx, txClock, tolerance)
	if err != nil {
		return err
	}
	for _, st := range plan.Steps {
		// The multiplexer and the divider have their turn in PRG_ETH0.
		if st.Clock == clk.Clock(c.mpll2Div) {
			if err := s.setRate(c.mpll2Div, st.Out); err != nil {
				return err
			}
		}
	}
	return nil
}

// reset pulses the MAC's reset, which also stops a DMA that a boot loader has left running.
func (s *sequence) reset() error {
	if !s.dry {
		s.regs.pulse(s.board.SoC.ResetAddr, s.board.SoC.ResetBit)
		s.sleep(resetSettle)
	}
	return nil
}

// prg changes bits of PRG_ETH0.
func (s *sequence) prg(mask, value PRG) error {
	return s.done.update(s.regs.reg("PRG_ETH0", s.board.SoC.PRG, false), uint32(mask), uint32(value))
}

func (s *sequence) interfaceMode() error {
	l := s.board.SoC.Layout
	return s.prg(l.interfaceMask(), l.interfaceBits(s.board.Mode))
}

// delays writes all delays at once. RMII has none, and its transmit field is left alone.
func (s *sequence) delays() error {
	glue, err := s.board.glue()
	if err != nil {
		return err
	}
	glue.Divider = minDivider // any: these bits are not among those written here
	value, mask, err := glue.Encode()
	if err != nil {
		return err
	}
	mask &= prgDelayMask
	if err := s.prg(mask, value&mask); err != nil {
		return err
	}
	v1, m1 := glue.EncodePRG1()
	if m1 == 0 {
		return nil
	}
	return s.done.update(s.regs.reg("PRG_ETH1", s.board.SoC.PRG+4, false), m1, v1)
}

func (s *sequence) inversion() error {
	if rgmii(s.board.Mode) {
		return s.prg(PRGRMIIInvert, 0)
	}
	return s.prg(PRGRMIIInvert, PRGRMIIInvert)
}

func (s *sequence) rate() error {
	if !rgmii(s.board.Mode) {
		return nil
	}
	c, err := newClocks(s.board.SoC, s.regs)
	if err != nil {
		return err
	}
	return s.setRate(c.tx, txClock)
}

func (s *sequence) setRate(c clk.Clock, rate clk.Hz) error {
	change, err := clk.SetRate(c, rate, tolerance)
	if err != nil {
		return err
	}
	s.done.push(change.Restore)
	return nil
}

// txGate opens the gates from the source to the transmit clock.
func (s *sequence) txGate() error {
	if !rgmii(s.board.Mode) {
		return nil
	}
	c, err := newClocks(s.board.SoC, s.regs)
	if err != nil {
		return err
	}
	return s.enable(c.tx)
}

func (s *sequence) enable(c clk.Clock) error {
	restore, err := clk.Enable(c)
	if err != nil {
		return err
	}
	s.done.push(restore)
	return nil
}

func (s *sequence) clocksOn() error { return s.prg(PRGClockEnable, PRGClockEnable) }

// check compares the register with what the description says it is. A difference means that a step above is wrong, or that
// somebody else writes the register.
func (s *sequence) check() error {
	v, err := s.regs.reg("PRG_ETH0", s.board.SoC.PRG, false).Load()
	if err != nil {
		return err
	}
	glue, err := s.board.glue()
	if err != nil {
		return err
	}
	got := PRG(v)
	glue.Input, glue.Divider = got.Input(), got.Divider()
	want, mask, err := glue.Encode()
	if err != nil {
		return err
	}
	if got&mask != want {
		return errors.Join(clk.ErrReadback, fmt.Errorf("it is 0x%08x (%s), not 0x%08x (%s)",
			v, got.Decode(glue.Layout), uint32(want), want.Decode(glue.Layout)))
	}
	return nil
}
