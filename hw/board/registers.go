package board

import (
	"errors"
	"fmt"
	"io"

	"dwnet/clk"
	"dwnet/hw"
)

// Mapper makes windows of registers from physical addresses: of /dev/mem, or of a simulated board. A window that implements
// io.Closer is closed when it is no longer needed.
type Mapper interface {
	// Map gives the registers from a physical address on, size bytes of them. Offset 0 is that address.
	Map(phys, size uint32) (hw.Registers, error)
}

// MapFunc is a Mapper made of a function.
type MapFunc func(phys, size uint32) (hw.Registers, error)

func (f MapFunc) Map(phys, size uint32) (hw.Registers, error) { return f(phys, size) }

const allOnes = 0xffffffff

// window is one mapped block. Its registers are shared by all users of the block, by one lock.
type window struct {
	Block
	regs hw.Registers
	bank *clk.Bank
}

// registers is the mapped blocks of a SoC.
type registers struct{ windows []window }

// mapBlocks maps all blocks of a SoC or none.
func mapBlocks(m Mapper, s SoC) (*registers, error) {
	r := &registers{}
	for _, b := range s.Blocks {
		regs, err := m.Map(b.Base, b.Size)
		if err == nil && regs == nil {
			err = hw.ErrUnsupported
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("board: map %s at 0x%08x: %w", b.Name, b.Base, err), r.close())
		}
		r.windows = append(r.windows, window{b, regs, clk.NewBank(regs)})
	}
	return r, nil
}

func (r *registers) close() error {
	var errs []error
	for _, w := range r.windows {
		if c, ok := w.regs.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	r.windows = nil
	return errors.Join(errs...)
}

// reg is the register at an address. One outside all blocks is a mistake of the description, and every access to it fails.
func (r *registers) reg(name string, addr uint32, mayBeOnes bool) clk.Reg {
	for _, w := range r.windows {
		if addr >= w.Base && addr-w.Base < w.Size {
			return clk.Reg{Bank: w.bank, Name: name, Off: addr - w.Base, MayBeOnes: mayBeOnes}
		}
	}
	return clk.Reg{Bank: clk.NewBank(nowhere{}), Name: name}
}

// nowhere is a window without registers.
type nowhere struct{}

func (nowhere) Load32(uint32) uint32   { return allOnes }
func (nowhere) Store32(uint32, uint32) {}

// field is bits as a field of the clock package.
func (r *registers) field(b Bits) clk.Field {
	if b.Width == 0 {
		return clk.Field{}
	}
	return clk.Field{Reg: r.reg(b.Name, b.Addr, b.MayBeOnes), Shift: b.Shift, Width: b.Width}
}

// pulse writes one bit of a register whose zeroes do nothing and which does not read back.
func (r *registers) pulse(addr uint32, bit uint8) {
	for _, w := range r.windows {
		if addr >= w.Base && addr-w.Base < w.Size {
			w.regs.Store32(addr-w.Base, 1<<bit)
		}
	}
}

// shadow is the same blocks with all writes kept apart, to try a set-up without touching the board.
func (r *registers) shadow() (*registers, []*shadow) {
	s := &registers{}
	var all []*shadow
	for _, w := range r.windows {
		sh := &shadow{real: w.regs, base: w.Base, written: map[uint32]uint32{}}
		all = append(all, sh)
		s.windows = append(s.windows, window{w.Block, sh, clk.NewBank(sh)})
	}
	return s, all
}

// shadow is a window that keeps what is written to it.
type shadow struct {
	real    hw.Registers
	base    uint32
	written map[uint32]uint32
	order   []uint32 // offsets, in order of their first write
}

func (s *shadow) Load32(off uint32) uint32 {
	if v, ok := s.written[off]; ok {
		return v
	}
	return s.real.Load32(off)
}

func (s *shadow) Store32(off uint32, v uint32) {
	if _, ok := s.written[off]; !ok {
		s.order = append(s.order, off)
	}
	s.written[off] = v
}

// journal is how to undo what was done, in order of doing.
type journal struct{ undo []func() error }

func (j *journal) push(f func() error) {
	if f != nil {
		j.undo = append(j.undo, f)
	}
}

// update changes bits of a register and remembers what they were, also if they did not stay.
func (j *journal) update(r clk.Reg, mask, value uint32) error {
	old, err := r.Update(mask, value)
	if (err == nil && old != value) || errors.Is(err, clk.ErrReadback) {
		j.push(func() error {
			_, err := r.Update(mask, old)
			return err
		})
	}
	return err
}

// set changes a field.
func (j *journal) set(f clk.Field, value uint32) error {
	return j.update(f.Reg, f.Max()<<f.Shift, value<<f.Shift)
}

// back undoes everything, last first, whatever fails.
func (j *journal) back() error {
	var errs []error
	for i := len(j.undo) - 1; i >= 0; i-- {
		errs = append(errs, j.undo[i]())
	}
	j.undo = nil
	return errors.Join(errs...)
}
