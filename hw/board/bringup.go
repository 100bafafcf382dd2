package board

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"dwnet/clk"
	"dwnet/hw"
	"dwnet/hw/phy"
)

// ResetPolicy says when the PHY's reset line is pulsed.
type ResetPolicy uint8

const (
	// ResetIfNeeded leaves a PHY alone on a board that is found as it is to be, so that its link stays up.
	ResetIfNeeded ResetPolicy = iota
	ResetAlways
	ResetNever
)

// Options are how a board is opened.
type Options struct {
	// ResetPHY says when the PHY is reset.
	ResetPHY ResetPolicy
	// PHYReset replaces the board's own reset line, for pins that belong to somebody else; see OpenGPIOLine.
	PHYReset phy.ResetLine
	// KeepOnClose leaves the board set up when it is closed. Otherwise all is put back as it was found.
	KeepOnClose bool
	// Logger is told about each step and about findings; nil: nobody is.
	Logger *slog.Logger
}

// Times between steps.
const (
	// powerSettle after the memory got its power; Linux waits 20 µs (meson-ee-pwrc.c).
	powerSettle = 100 * time.Microsecond
	// resetSettle after the pulse of the MAC's reset.
	resetSettle = 100 * time.Microsecond
)

// Glue is a board that has been brought up as far as its MAC can be opened.
type Glue struct {
	board Board
	opt   Options
	clock hw.Clock
	log   *slog.Logger

	mu   sync.Mutex
	regs *registers // nil after Close
	done journal
	warm bool
}

// StepError is a step of the bring-up that failed. It matches what it wraps, and [hw.ErrGone] if the registers read all ones.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("board: %s: %v", e.Step, e.Err) }

func (e *StepError) Unwrap() []error {
	if errors.Is(e.Err, clk.ErrGone) && !errors.Is(e.Err, hw.ErrGone) {
		return []error{e.Err, hw.ErrGone}
	}
	return []error{e.Err}
}

// Open brings a board up in this order: pins, memory power, the MAC's clock gate, MPLL2 or FCLK_DIV2, the MAC's reset, PRG_ETH0,
// the PHY's reset. After it the MAC's registers may be touched.
//
// Everything is tried on a copy of the registers first, so that a description that cannot work, a rate that cannot be made
// and a bus that is gone are errors before the first write. If a later step fails, or ctx ends, all is put back in reverse.
func Open(ctx context.Context, b Board, m Mapper, c hw.Clock, o Options) (*Glue, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	if o.ResetPHY > ResetNever {
		return nil, configError("ResetPHY", "%d is not 0 to 2", o.ResetPHY)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	regs, err := mapBlocks(m, b.SoC)
	if err != nil {
		return nil, err
	}
	g := &Glue{board: b, opt: o, clock: c, log: o.Logger, regs: regs}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	if err := g.open(ctx); err != nil {
		err = errors.Join(err, g.done.back(), regs.close())
		return nil, err
	}
	return g, nil
}

func (g *Glue) open(ctx context.Context) error {
	if _, err := g.regs.reg("PRG_ETH0", g.board.SoC.PRG, false).Load(); err != nil {
		return &StepError{"look at the board", err}
	}
	var err error
	if g.warm, err = g.rehearse(ctx); err != nil {
		return err
	}
	s := sequence{board: g.board, regs: g.regs, done: &g.done, sleep: g.clock.Sleep, log: g.log}
	if err := s.run(ctx); err != nil {
		return err
	}
	reset := g.opt.ResetPHY == ResetAlways || g.opt.ResetPHY == ResetIfNeeded && !g.warm
	if reset {
		if err := g.resetPHY(ctx, &g.done); err != nil {
			return &StepError{"PHY reset", err}
		}
	}
	g.log.Info("board is up", "board", g.board.Name, "mode", g.board.Mode, "found set up", g.warm, "PHY reset", reset)
	state, err := readState(g.board, g.regs)
	if err != nil {
		return &StepError{"read back", err}
	}
	for _, f := range state.Diagnose() {
		if f.Severity >= Warning {
			g.log.Warn(f.What, "finding", f.ID, "consequence", f.Consequence, "remedy", f.Remedy)
		}
	}
	return nil
}

// rehearse runs the steps on a copy of the registers, and reports whether the board has all that already, with the PHY running.
func (g *Glue) rehearse(ctx context.Context) (warm bool, err error) {
	regs, windows := g.regs.shadow()
	s := sequence{board: g.board, regs: regs, done: &journal{}, sleep: func(time.Duration) {}, log: slog.New(slog.DiscardHandler),
		dry: true}
	if err := s.run(ctx); err != nil {
		return false, err
	}
	for _, w := range windows {
		if len(w.order) != 0 {
			return false, nil
		}
	}
	if g.board.PHYReset.exists() {
		held, err := g.board.PHYReset.held(g.regs)
		if err != nil || held {
			return false, err
		}
	}
	return true, nil
}

// Board is the description that was brought up.
func (g *Glue) Board() Board { return g.board }

// Warm reports whether Open found the board as it is to be, and so left the PHY alone.
func (g *Glue) Warm() bool { return g.warm }

// State reads the board back.
func (g *Glue) State() (State, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.regs == nil {
		return State{}, errClosed("read")
	}
	return readState(g.board, g.regs)
}

// Info is what is known about the MAC, for a port: the description, and the clock of the MAC's registers if it can be read.
func (g *Glue) Info() hw.Info {
	i := g.board.Info()
	if s, err := g.State(); err == nil {
		i.CSRClockHz = s.CLK81Hz
	}
	return i
}

// ResetPHY pulses the PHY's reset line and waits until it may be spoken to. Its link goes down, and all that was written to it
// is gone.
func (g *Glue) ResetPHY(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.regs == nil {
		return errClosed("reset PHY")
	}
	return g.resetPHY(ctx, &journal{}) // the line ends as Open left it
}

func (g *Glue) resetPHY(ctx context.Context, done *journal) error {
	line := g.opt.PHYReset
	if line == nil {
		if !g.board.PHYReset.exists() {
			return nil
		}
		line = &registerLine{g.board.PHYReset, g.regs, done}
	}
	return phy.HardReset(ctx, g.clock, line, g.board.ResetTiming)
}

// Close puts everything back as Open found it, in reverse, unless Options.KeepOnClose. Close the MAC first: its registers may
// hang the bus afterwards. A second Close does nothing.
func (g *Glue) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.regs == nil {
		return nil
	}
	var err error
	if !g.opt.KeepOnClose {
		if err = g.done.back(); err != nil {
			err = &StepError{"put back", err}
		}
	}
	err = errors.Join(err, g.regs.close())
	g.regs = nil
	return err
}

func errClosed(op string) error { return &hw.Error{Op: "board: " + op, Err: hw.ErrClosed} }
