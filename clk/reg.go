package clk

import (
	"errors"
	"fmt"
	"sync"
)

// Registers is a window of 32-bit device registers. Offsets are in bytes and multiples of four; accesses are single
// aligned loads and stores in program order. A window whose device is gone reads as all ones.
type Registers interface {
	Load32(off uint32) uint32
	Store32(off uint32, v uint32)
}

// Bank is a window with a lock, so that two users of one register do not undo each other's changes. All users of a
// window in one process share one Bank.
type Bank struct {
	mu   sync.Mutex
	regs Registers
}

// NewBank returns a Bank of a window.
func NewBank(regs Registers) *Bank { return &Bank{regs: regs} }

const allOnes = 0xFFFFFFFF

// Reg is one register.
type Reg struct {
	Bank *Bank
	Name string // the vendor's
	Off  uint32 // in bytes
	// MayBeOnes says that all ones is a legal value, as in a register full of gates. Otherwise it means that the device
	// is gone.
	MayBeOnes bool
}

// Load reads the register. The error, if any, errors.Is [ErrGone].
func (r Reg) Load() (uint32, error) {
	const op = "read"
	if err := r.check(op); err != nil {
		return 0, err
	}
	r.Bank.mu.Lock()
	defer r.Bank.mu.Unlock()
	return r.load(op)
}

func (r Reg) check(op string) error {
	switch {
	case r.Bank == nil || r.Bank.regs == nil:
		return &Error{Op: op, Reg: r.Name, Detail: "no Bank of registers", Err: ErrConfig}
	case r.Off%4 != 0:
		return &Error{Op: op, Reg: r.Name, Detail: fmt.Sprintf("offset %#x is not a multiple of four", r.Off), Err: ErrConfig}
	}
	return nil
}

func (r Reg) load(op string) (uint32, error) {
	v := r.Bank.regs.Load32(r.Off)
	if v == allOnes && !r.MayBeOnes {
		return v, &Error{Op: op, Reg: r.Name, Value: v, Err: ErrGone}
	}
	return v, nil
}

// Update sets the bits of mask to those of value, reads them back, and returns what was there before. Other bits are
// written as they were read. A register that holds the value already is not written.
//
// Errors: [ErrConfig] for bits outside the mask, [ErrGone] if the register reads all ones, both before anything is
// written; [ErrReadback] if the bits did not stay.
func (r Reg) Update(mask, value uint32) (old uint32, err error) {
	old, _, err = r.update(mask, value)
	return old, err
}

// update also says whether anything was written, which it may have been with an error.
func (r Reg) update(mask, value uint32) (old uint32, written bool, err error) {
	const op = "write"
	if err := r.check(op); err != nil {
		return 0, false, err
	}
	if value&^mask != 0 {
		return 0, false, &Error{Op: op, Reg: r.Name, Value: value, Detail: fmt.Sprintf("outside of mask %#08x", mask), Err: ErrConfig}
	}
	r.Bank.mu.Lock()
	defer r.Bank.mu.Unlock()
	was, err := r.load(op)
	if err != nil {
		return 0, false, err
	}
	old = was & mask
	if old == value {
		return old, false, nil
	}
	r.Bank.regs.Store32(r.Off, was&^mask|value)
	now, err := r.load("read back")
	if err != nil {
		return old, true, err
	}
	if now&mask != value {
		return old, true, &Error{Op: op, Reg: r.Name, Value: now,
			Detail: fmt.Sprintf("wrote %#x to bits %#08x", value, mask), Err: ErrReadback}
	}
	return old, true, nil
}

func (r Reg) same(o Reg) bool { return r.Bank == o.Bank && r.Off == o.Off }

// Field is some adjacent bits of a register.
type Field struct {
	Reg          Reg
	Shift, Width uint8
}

// present is false for the zero Field: a part that has no such field.
func (f Field) present() bool { return f.Reg.Bank != nil || f.Width != 0 }

// Max is the largest value of the field.
func (f Field) Max() uint32 { return uint32(1<<f.Width - 1) }

func (f Field) mask() uint32 { return f.Max() << f.Shift }

// String is the register with the bits, such as "PRG_ETH0[9:7]".
func (f Field) String() string {
	if f.Width == 1 {
		return fmt.Sprintf("%s[%d]", f.Reg.Name, f.Shift)
	}
	return fmt.Sprintf("%s[%d:%d]", f.Reg.Name, int(f.Shift)+int(f.Width)-1, f.Shift)
}

// Get reads the field.
func (f Field) Get() (uint32, error) {
	v, err := f.Reg.Load()
	return v & f.mask() >> f.Shift, err
}

// Set writes the field and returns what it held. See [Reg.Update] for errors.
func (f Field) Set(v uint32) (old uint32, err error) {
	if v > f.Max() {
		return 0, &Error{Op: "write", Reg: f.String(), Value: v, Detail: fmt.Sprintf("the largest value is %#x", f.Max()), Err: ErrConfig}
	}
	old, err = f.Reg.Update(f.mask(), v<<f.Shift)
	return old >> f.Shift, err
}

// check is for constructors; what names the field of the Config.
func (f Field) check(name, what string) error {
	var e *Error
	if err := f.Reg.check("configure"); errors.As(err, &e) {
		return configError(name, what, "has %s", e.Detail)
	}
	if f.Width == 0 || int(f.Shift)+int(f.Width) > 32 {
		return configError(name, what, "has shift %d and width %d", f.Shift, f.Width)
	}
	return nil
}

// setting is a field with the value it is to have.
type setting struct {
	field Field
	value uint32
}

// write gives several fields their values, with one write for each register, so that no register holds a mixture of old
// and new fields in between. The returned function restores exactly the bits that were written, also after an error.
func write(settings []setting) (restore func() error, err error) {
	type change struct {
		reg         Reg
		mask, value uint32
	}
	var changes []change
next:
	for _, s := range settings {
		for i := range changes {
			if c := &changes[i]; c.reg.same(s.field.Reg) {
				c.mask |= s.field.mask()
				c.value |= s.value << s.field.Shift
				continue next
			}
		}
		changes = append(changes, change{s.field.Reg, s.field.mask(), s.value << s.field.Shift})
	}
	var done undo
	for _, c := range changes {
		old, written, err := c.reg.update(c.mask, c.value)
		if written {
			done.push(func() error {
				_, err := c.reg.Update(c.mask, old)
				return err
			})
		}
		if err != nil {
			return done.run, err
		}
	}
	return done.run, nil
}
