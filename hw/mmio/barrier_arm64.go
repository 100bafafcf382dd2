package mmio

// DSB SY waits until every earlier load and store has completed for the whole system, the DMA included. The DMB ISH of Go's
// atomics only orders them, and only among the CPUs; a store to a register (Device memory) may then overtake a store to a
// descriptor (Normal non-cacheable memory). Source: Arm ARM, "Memory barriers"; Linux arch/arm64/include/asm/barrier.h, mb.
const (
	barrierName      = "DSB SY"
	barrierCompletes = true
	unalignedHeap    = true
	deviceIsPicky    = true // an unaligned access to Device memory faults
)

// barrier orders every access before it, as a device sees them, before every access after it.
func barrier()
