package mmio

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"dwnet/hw"
)

// allOnes is what a window reads when nothing answers, as on a bus.
const allOnes = 0xFFFFFFFF

// Window is a window of registers. It implements hw.Registers. A load that the bus does not answer, of an offset outside or
// not a multiple of four, or after Close reads all ones; such a store is lost. They are counted.
//
// On 32-bit ARM a refusal of the bus (external abort) ends the program all the same: Linux reports it in a way that the Go
// runtime takes for a signal from another process, and for a store late, too. Probe is safe there. So switch on the clock of
// a device before its first register is touched, and Probe if in doubt.
type Window struct {
	name    string
	address uint64
	m       *mapping
	closed  atomic.Bool
	faults  atomic.Uint64
}

var _ hw.Registers = (*Window)(nil)

// OpenWindow maps registers: of the MAC, or of the SoC around it (clocks, resets, pins). The kind is DevMem or UIO. The
// window outlives any drop of privileges.
func OpenWindow(sys System, src Source) (*Window, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if err := src.check(forRegisters); err != nil {
		return nil, configError("Source", err)
	}
	p, err := locate(sys, src)
	if err != nil {
		return nil, err
	}
	defer p.release()
	ranges, err := knownRAM(sys)
	if err != nil {
		return nil, err
	}
	if err := checkRegisters(p, 0, ranges); err != nil {
		return nil, err
	}
	return openWindow(sys, p)
}

func openWindow(sys System, p place) (*Window, error) {
	m, err := p.mapIn(sys)
	if err != nil {
		return nil, err
	}
	return &Window{name: p.name(), address: p.address, m: m}, nil
}

// Size is the length of the window in bytes.
func (w *Window) Size() int { return w.m.mem.n }

// Address is the physical address of the first register.
func (w *Window) Address() uint64 { return w.address }

func (w *Window) String() string { return w.name }

// Faults is how many accesses failed.
func (w *Window) Faults() uint64 { return w.faults.Load() }

func (w *Window) usable(off uint32) bool {
	ok := !w.closed.Load() && off&3 == 0 && int64(off) <= int64(w.m.mem.n)-4
	if !ok {
		w.faults.Add(1)
	}
	return ok
}

// Load32 implements hw.Registers.
func (w *Window) Load32(off uint32) (v uint32) {
	if !w.usable(off) {
		return allOnes
	}
	defer w.caught(&v, debug.SetPanicOnFault(true))
	v = w.m.mem.load32(int(off))
	if w.closed.Load() { // Close may have taken the device away in between
		return allOnes
	}
	return v
}

// Store32 implements hw.Registers.
func (w *Window) Store32(off uint32, v uint32) {
	if !w.usable(off) {
		return
	}
	defer w.caught(&v, debug.SetPanicOnFault(true))
	w.m.mem.store32(int(off), v)
}

// Probe loads one register in a child process, and reports whether the bus answered. A device without power or clock gives
// ErrGone, or ErrTimeout if it stalls the bus. Choose a register whose reading changes nothing.
func (w *Window) Probe(off uint32) error {
	if !w.usable(off) {
		return &Error{Op: "probe", Path: w.name, Detail: fmt.Sprintf("register 0x%x", off), Err: hw.ErrGone, Remedy: "no such register, or closed"}
	}
	if err := answers(w.m.mem, int(off)); err != nil {
		return &Error{Op: "probe", Path: w.name, Detail: fmt.Sprintf("register 0x%x", off), Err: err,
			Remedy: "no device at this address, or its clock or power is off"}
	}
	runtime.KeepAlive(w.m)
	return nil
}

// caught turns a bus fault into all ones.
func (w *Window) caught(v *uint32, old bool) {
	debug.SetPanicOnFault(old)
	if p := recover(); p != nil {
		if !isFault(p) {
			panic(p)
		}
		*v = allOnes
		w.faults.Add(1)
	}
	runtime.KeepAlive(w.m)
}

// Close unmaps the registers. They may still be read, as all ones.
func (w *Window) Close() error {
	w.closed.Store(true)
	if err := w.m.close(); err != nil {
		return &Error{Op: "unmap", Path: w.name, Err: err}
	}
	return nil
}
