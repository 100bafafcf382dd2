package mmio

import (
	"fmt"
	"log/slog"
	"time"

	"dwnet/hw"
)

// Options say where a port's registers, memory and interrupt are. Registers and Memory must be set; the rest may be zero.
type Options struct {
	// Info is what the device does not say itself. Name is made from Registers if empty.
	Info hw.Info
	// Registers is the MAC's register window: DevMem or UIO.
	Registers Source
	// Memory is the DMA memory that blocks are cut from: DevMem (a region with no-map), UIO, UDMABuf or SharedFile. The
	// rings of a driver take slots times slot size each way, less than 2 MiB with the defaults of package hw.
	Memory Source
	// Interrupt is UIO or Polling. Without it, it is the UIO device of Registers if that has an interrupt that can be
	// masked, and polling otherwise.
	Interrupt Source
	// PollMin and PollMax bound the time between two looks when polling. Zero: 50 µs and 1 ms.
	PollMin, PollMax time.Duration
	// Copy chooses the copy routine. Zero: by the type of the memory and by measurement.
	Copy CopyPolicy
	// CacheLine is what blocks are aligned to at least, in bytes. Zero: 64, which serves every CPU that has this MAC.
	CacheLine int
	// OuterCache is the register block of an ARM L2C-310, on the S805 devmem:address=0xc4200000,size=0x1000. If it is set
	// every barrier empties that cache's buffers, too. It is needed for memory that is mapped non-cacheable (NonCacheable)
	// behind such a cache; stores to Device memory through /dev/mem are not held there.
	OuterCache Source
	// System is where files are opened. Zero: the real one.
	System System
	// Log gets what was chosen and what could not be checked. May be nil.
	Log *slog.Logger
}

const (
	defaultCacheLine = 64
	mostCacheLine    = 4096
	defaultBusBytes  = 8 // what a zero hw.Info.BusBytes stands for
)

// withDefaults checks the options and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	bad := func(field, format string, args ...any) (Options, error) {
		return Options{}, configError("Options."+field, fmt.Errorf(format, args...))
	}
	if err := o.Registers.check(forRegisters); err != nil {
		return bad("Registers", "%w", err)
	}
	if err := o.Memory.check(forMemory); err != nil {
		return bad("Memory", "%w", err)
	}
	if o.Interrupt.Kind != None {
		if err := o.Interrupt.check(forInterrupt); err != nil {
			return bad("Interrupt", "%w", err)
		}
	}
	if o.OuterCache.Kind != None {
		if err := o.OuterCache.check(forRegisters); err != nil {
			return bad("OuterCache", "%w", err)
		}
	}
	if o.PollMin == 0 {
		o.PollMin = defaultPollMin
		if o.PollMax != 0 {
			o.PollMin = min(o.PollMin, o.PollMax)
		}
	}
	if o.PollMax == 0 {
		o.PollMax = max(defaultPollMax, o.PollMin)
	}
	if o.PollMin < leastPoll || o.PollMin > mostPoll {
		return bad("PollMin", "%v, want %v to %v", o.PollMin, leastPoll, mostPoll)
	}
	if o.PollMax < o.PollMin || o.PollMax > mostPoll {
		return bad("PollMax", "%v, want %v to %v", o.PollMax, o.PollMin, mostPoll)
	}
	if int(o.Copy) >= len(copyPolicies) {
		return bad("Copy", "%v", o.Copy)
	}
	if o.CacheLine == 0 {
		o.CacheLine = defaultCacheLine
	}
	if o.CacheLine < 4 || o.CacheLine > mostCacheLine || o.CacheLine&(o.CacheLine-1) != 0 {
		return bad("CacheLine", "%d, want a power of two from 4 to %d", o.CacheLine, mostCacheLine)
	}
	switch o.Info.BusBytes {
	case 0, 4, 8, 16:
	default:
		return bad("Info.BusBytes", "%d, want 4, 8 or 16", o.Info.BusBytes)
	}
	return o, nil
}

// align is what blocks and the region are aligned to.
func (o Options) align() int {
	bus := o.Info.BusBytes
	if bus == 0 {
		bus = defaultBusBytes
	}
	return max(o.CacheLine, bus)
}
