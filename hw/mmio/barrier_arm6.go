//go:build arm && arm.6 && !arm.7

package mmio

// ARMv6 has DSB as a coprocessor operation, then called data synchronisation barrier or drain write buffer, which user mode
// may use. A build for GOARM=6 may also run on ARMv7, which knows it (deprecated), and on ARMv8, where Linux emulates it
// slowly: prefer GOARM=7. Source: ARM1176JZF-S TRM, "c7, Cache operations"; Linux arch/arm/include/asm/barrier.h.
const (
	barrierName      = "DSB by CP15 c7, c10, 4"
	barrierCompletes = true
	unalignedHeap    = true
	deviceIsPicky    = true // an unaligned access to Device memory faults
)

// barrier orders every access before it, as a device sees them, before every access after it.
func barrier()
