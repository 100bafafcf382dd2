package board

import (
	"fmt"

	"dwnet/hw/phy"
)

// registerLine is a PHY's reset line by the registers of its pin.
type registerLine struct {
	gpio GPIO
	regs *registers
	done *journal
}

var _ phy.ResetLine = (*registerLine)(nil)

// SetReset drives the pin. The level is set before the direction, so that a pin that was an input does not go the wrong way
// first.
func (l *registerLine) SetReset(held bool) error {
	level := uint32(0)
	if held != l.gpio.ActiveLow {
		level = 1
	}
	if err := l.done.set(l.regs.field(l.gpio.Out), level); err != nil {
		return fmt.Errorf("%s: %w", l.gpio.Name, err)
	}
	if err := l.done.set(l.regs.field(l.gpio.Dir), 0); err != nil {
		return fmt.Errorf("%s: %w", l.gpio.Name, err)
	}
	return nil
}

// held reports whether the pin holds the PHY in reset now: by its level where it can be read.
func (g GPIO) held(r *registers) (bool, error) {
	v, err := r.field(g.In).Get()
	return (v != 0) != g.ActiveLow, err
}

// lineError is the error of a GPIO character device.
func lineError(chip string, line int, op string, err error) error {
	return fmt.Errorf("board: %s line %d: %s: %w", chip, line, op, err)
}

// checkLine checks the arguments of OpenGPIOLine.
func checkLine(chip string, line int) error {
	if chip == "" {
		return configError("chip", "is empty; a path such as /dev/gpiochip0 is needed")
	}
	if line < 0 || line > maxLine {
		return configError("line", "%d is not from 0 to %d", line, maxLine)
	}
	return nil
}

// maxLine is more than any chip has.
const maxLine = 1<<16 - 1

// GPIOLine is a reset line by a GPIO character device of Linux, for systems where the kernel owns the pins. Use it as
// Options.PHYReset.
type GPIOLine struct {
	chip string
	line int
	file lineFile
}

// lineFile is what the operating system gives for a line.
type lineFile interface {
	set(active bool) error
	Close() error
}

var _ phy.ResetLine = (*GPIOLine)(nil)

// OpenGPIOLine takes a line of a GPIO chip, such as line 18 of /dev/gpiochip0, as an output that lets the PHY run. The kernel
// drives it until Close. Where there are no such devices the error matches [hw.ErrUnsupported].
func OpenGPIOLine(chip string, line int, activeLow bool) (*GPIOLine, error) {
	if err := checkLine(chip, line); err != nil {
		return nil, err
	}
	f, err := openLine(chip, line, activeLow)
	if err != nil {
		return nil, lineError(chip, line, "open", err)
	}
	return &GPIOLine{chip, line, f}, nil
}

// SetReset holds the PHY in reset or lets go of it.
func (l *GPIOLine) SetReset(held bool) error {
	if err := l.file.set(held); err != nil {
		return lineError(l.chip, l.line, "set", err)
	}
	return nil
}

// Close gives the line back. What level it has then is up to the kernel.
func (l *GPIOLine) Close() error { return l.file.Close() }
