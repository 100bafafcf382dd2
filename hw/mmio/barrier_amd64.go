package mmio

// Stores to uncached memory already reach the bus in order on x86, but stores to write-combining memory sit in buffers, and
// a load may overtake an older store. MFENCE empties the buffers and holds back what follows. Source: Intel SDM volume 3,
// "Memory Ordering" and "Write Combining".
const (
	barrierName      = "MFENCE"
	barrierCompletes = true
	unalignedHeap    = true
	deviceIsPicky    = false // uncached memory takes any access on x86
)

// barrier orders every access before it, as a device sees them, before every access after it.
func barrier()
