//go:build arm && arm.7

package mmio

// DSB SY waits until every earlier load and store has completed for the whole system, the DMA included. The DMB ISH of Go's
// atomics only orders them, and only among the CPUs. Behind the CPU an L2C-310 may still hold stores to Normal memory, see
// Options.OuterCache. Source: Arm ARM (ARMv7), "Memory barriers"; Linux arch/arm/include/asm/barrier.h, mb.
const (
	barrierName      = "DSB SY"
	barrierCompletes = true
	unalignedHeap    = true
	deviceIsPicky    = true // an unaligned access to Device memory faults
)

// barrier orders every access before it, as a device sees them, before every access after it.
func barrier()
