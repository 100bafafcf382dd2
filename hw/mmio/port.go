package mmio

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"

	"dwnet/hw"
)

// leastRegisters is the smallest window that holds the registers that a driver uses: up to the feature register of the DMA.
const leastRegisters = hw.RegFeature + 4

// interrupt is what a port needs of its interrupt.
type interrupt interface {
	hw.Interrupt
	io.Closer
	fmt.Stringer
}

// Port is a MAC on this machine. It implements hw.Port.
type Port struct {
	info   hw.Info
	regs   *Window
	irq    interrupt
	pool   *pool
	outer  *Window // nil: none
	copies copyChoice
	typ    MemoryType
	advice string
	once   sync.Once
	err    error // of Close
}

var _ hw.Port = (*Port)(nil)

// Open finds, checks, opens and maps everything that a port needs, in this order: nothing is written to the device, and no
// memory is touched, before every check has passed. Afterwards the process needs no privileges for the port any more. The
// device itself is left as it is.
func Open(opts Options) (*Port, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	if !barrierCompletes {
		return nil, &Error{Op: "open port on " + runtime.GOARCH, Err: hw.ErrUnsupported,
			Remedy: "there is no barrier that a device sees (" + barrierName + "): on ARM build with GOARM=7"}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	p := &Port{info: opts.Info}
	if err := p.open(opts); err != nil {
		p.Close()
		return nil, err
	}
	opts.Log.Info("port opened", "port", p.info.Name, "setup", p.String())
	return p, nil
}

func (p *Port) open(opts Options) error {
	sys := opts.System
	// Find.
	regs, err := locate(sys, opts.Registers)
	if err != nil {
		return err
	}
	defer regs.release()
	memory, err := locate(sys, opts.Memory)
	if err != nil {
		return err
	}
	defer memory.release()
	var outer place
	if opts.OuterCache.Kind != None {
		if outer, err = locate(sys, opts.OuterCache); err != nil {
			return err
		}
		defer outer.release()
	}
	// Check.
	ranges, err := knownRAM(sys)
	if err != nil {
		return err
	}
	if ranges == nil {
		opts.Log.Warn("/proc/iomem cannot be read: not checked whether addresses belong to the kernel")
	}
	if err := checkRegisters(regs, leastRegisters, ranges); err != nil {
		return err
	}
	align := opts.align()
	if err := checkMemory(memory, align, regs, ranges); err != nil {
		return err
	}
	if outer.kind != None {
		if err := checkRegisters(outer, outerCacheBytes, ranges); err != nil {
			return err
		}
	}
	if memory.typ == Device && deviceIsPicky && opts.Copy == CopyFast {
		return configError("Options.Copy", fmt.Errorf("%v is not safe for %v memory on %s", opts.Copy, memory.typ, runtime.GOARCH))
	}
	// Open and map.
	if p.info.Name == "" {
		p.info.Name = regs.name()
	}
	if p.regs, err = openWindow(sys, regs); err != nil {
		return err
	}
	if err := p.regs.Probe(hw.RegVersion); err != nil {
		return err
	}
	if outer.kind != None {
		if p.outer, err = openWindow(sys, outer); err != nil {
			return err
		}
	}
	if p.irq, err = openLine(sys, opts, p.regs); err != nil {
		return err
	}
	m, err := memory.mapIn(sys)
	if err != nil {
		return err
	}
	p.typ, p.advice = memory.typ, memory.advice
	p.pool = &pool{m: m, mem: m.mem.sub(0, m.mem.n&^(align-1)), name: memory.name(), bus: uint32(memory.address), align: align}
	if p.outer != nil {
		p.pool.outer = &outerCache{p.outer}
	}
	// Touch.
	if err := p.pool.probe(); err != nil {
		return err
	}
	p.copies = chooseCopy(memory.typ, opts.Copy, deviceIsPicky, func() copyTimes { return measureCopy(p.pool.mem) })
	p.pool.fastIn, p.pool.fastOut = p.copies.fastIn, p.copies.fastOut
	return nil
}

// openLine opens the interrupt, or polls.
func openLine(sys System, opts Options, regs *Window) (interrupt, error) {
	src := opts.Interrupt
	if src.Kind == None && opts.Registers.Kind == UIO {
		src = Source{Kind: UIO, Path: opts.Registers.Path}
	}
	if src.Kind == UIO {
		u, err := OpenInterrupt(sys, src)
		switch {
		case err == nil:
			return u, nil
		case opts.Interrupt.Kind == UIO || !errors.Is(err, ErrNoInterrupt):
			return nil, err
		}
		opts.Log.Warn("polling instead of interrupts", "reason", err)
	}
	p, err := newPollInterrupt(regs.String(), lineOf(regs), opts.PollMin, opts.PollMax)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Info implements hw.Port.
func (p *Port) Info() hw.Info { return p.info }

// Registers implements hw.Port.
func (p *Port) Registers() hw.Registers { return p.regs }

// Interrupt implements hw.Port.
func (p *Port) Interrupt() hw.Interrupt { return p.irq }

// Clock implements hw.Port.
func (p *Port) Clock() hw.Clock { return theClock }

// Alloc implements hw.Port. Blocks are also aligned to the cache line and to the width of the bus.
func (p *Port) Alloc(size, align int) (hw.Memory, error) { return p.pool.alloc(size, align) }

// Free implements hw.Port.
func (p *Port) Free(m hw.Memory) error { return p.pool.free(m) }

// Polls reports whether the port has no interrupt and looks at the status register instead.
func (p *Port) Polls() bool {
	_, ok := p.irq.(*pollInterrupt)
	return ok
}

// MemoryType is how the DMA memory is mapped.
func (p *Port) MemoryType() MemoryType { return p.typ }

// MemoryUsed is how many bytes of the DMA memory are allocated, and MemorySize how many there are.
func (p *Port) MemoryUsed() int { return p.pool.used() }
func (p *Port) MemorySize() int { return p.pool.mem.n }

// String says in one line what was found and chosen.
func (p *Port) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "registers %v; interrupt: %v; memory %s, %v, %v; barrier %s", p.regs, p.irq, p.pool.name, p.typ, p.copies, barrierName)
	if p.outer != nil {
		fmt.Fprintf(&b, " and outer cache at %v", p.outer)
	}
	if p.advice != "" {
		fmt.Fprintf(&b, "; %s", p.advice)
	}
	return b.String()
}

// Close implements hw.Port. Registers then read all ones, and what is stored to DMA memory goes nowhere. It does not stop
// the device: a DMA that still runs writes to memory that the kernel may give to somebody else.
func (p *Port) Close() error {
	p.once.Do(func() {
		var errs []error
		if p.irq != nil {
			errs = append(errs, p.irq.Close())
		}
		if p.pool != nil {
			errs = append(errs, p.pool.close())
		}
		if p.regs != nil {
			errs = append(errs, p.regs.Close())
		}
		if p.outer != nil {
			errs = append(errs, p.outer.Close())
		}
		p.err = errors.Join(errs...)
	})
	return p.err
}
