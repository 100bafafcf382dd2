package mmio

import (
	"fmt"
	"time"
)

// MemoryType is how the CPU maps a piece of memory, which decides what instructions may touch it.
type MemoryType uint8

const (
	// AutoType takes the type from the source of the memory; see Source.
	AutoType MemoryType = iota
	// Device is memory mapped with the kernel's pgprot_noncached: Strongly ordered on 32-bit ARM, Device-nGnRnE on arm64,
	// uncached on x86. On ARM only aligned accesses are allowed. It is what /dev/mem gives for a reserved region with
	// no-map, and what UIO gives for any physical region.
	Device
	// NonCacheable is memory mapped with pgprot_writecombine: Normal non-cacheable on ARM, write-combining on x86. It takes
	// any access, and bursts.
	NonCacheable
	// WriteBack is ordinary cached memory. It serves for DMA only if the device snoops the caches, as on x86; the Ethernet
	// MAC of the S805 does not.
	WriteBack
)

var memoryTypes = []string{AutoType: "auto", Device: "device", NonCacheable: "non-cacheable", WriteBack: "write-back"}

func (t MemoryType) String() string {
	if int(t) < len(memoryTypes) {
		return memoryTypes[t]
	}
	return fmt.Sprintf("MemoryType(%d)", uint8(t))
}

// CopyPolicy says which routine copies payload to and from DMA memory.
type CopyPolicy uint8

const (
	// CopyAuto uses the safe routine for Device memory wherever that is picky (ARM); for all other memory both routines are
	// timed on the mapping when it is opened, in each direction, and the quicker one is taken.
	CopyAuto CopyPolicy = iota
	// CopySafe uses aligned 32-bit accesses always.
	CopySafe
	// CopyFast uses Go's copy always. It is refused for Device memory on ARM, where it ends in a bus error.
	CopyFast
)

var copyPolicies = []string{CopyAuto: "auto", CopySafe: "safe", CopyFast: "fast"}

func (p CopyPolicy) String() string {
	if int(p) < len(copyPolicies) {
		return copyPolicies[p]
	}
	return fmt.Sprintf("CopyPolicy(%d)", uint8(p))
}

// copyTimes is what one copy of a full frame took, in nanoseconds; zero was not measured.
type copyTimes struct{ safeIn, fastIn, safeOut, fastOut int64 }

// copyChoice is which routine a mapping uses for each direction, and what was measured.
type copyChoice struct {
	fastIn, fastOut bool
	times           copyTimes
}

func (c copyChoice) String() string {
	one := func(fast bool, safeNs, fastNs int64) string {
		name := copyPolicies[CopySafe]
		if fast {
			name = copyPolicies[CopyFast]
		}
		if safeNs == 0 || fastNs == 0 {
			return name
		}
		return fmt.Sprintf("%s (%d of %d MB/s)", name, megabytes(min(safeNs, fastNs)), megabytes(max(safeNs, fastNs)))
	}
	return "copy in " + one(c.fastIn, c.times.safeIn, c.times.fastIn) + ", out " + one(c.fastOut, c.times.safeOut, c.times.fastOut)
}

func megabytes(ns int64) int64 { return frameBytes * 1000 / ns }

const (
	frameBytes  = 1514 // a full Ethernet frame
	copyRounds  = 16   // best of: an interrupt in one round must not decide
	headerBytes = 66   // Ethernet, IPv4 and TCP with time stamps: where payload starts in a frame
)

// chooseCopy decides for a mapping. measure is called only where both routines are allowed.
func chooseCopy(t MemoryType, policy CopyPolicy, picky bool, measure func() copyTimes) copyChoice {
	switch {
	case policy == CopySafe, t == Device && picky:
		return copyChoice{}
	case policy == CopyFast:
		return copyChoice{fastIn: true, fastOut: true}
	}
	m := measure()
	return copyChoice{fastIn: m.fastIn < m.safeIn, fastOut: m.fastOut < m.safeOut, times: m}
}

// measureCopy times both routines on scratch memory of at least 2 KiB, whose content is lost. Copies in are as the transmit
// path makes them, headers and then payload; copies out are of whole frames.
func measureCopy(scratch raw) copyTimes {
	frame := make([]byte, frameBytes)
	best := func(f func()) int64 {
		least := int64(1) << 62
		for range copyRounds {
			start := time.Now()
			f()
			least = min(least, int64(time.Since(start)))
		}
		return max(least, 1)
	}
	mem := scratch.bytes()
	return copyTimes{
		safeIn: best(func() {
			storeBytes(scratch, 0, frame[:headerBytes])
			storeBytes(scratch, headerBytes, frame[headerBytes:])
			barrier()
		}),
		fastIn: best(func() {
			copy(mem, frame[:headerBytes])
			copy(mem[headerBytes:], frame[headerBytes:])
			barrier()
		}),
		safeOut: best(func() { loadBytes(scratch, frame, 0) }),
		fastOut: best(func() { copy(frame, mem) }),
	}
}
