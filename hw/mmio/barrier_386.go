package mmio

// As on amd64, by a locked instruction, which empties the write-combining buffers too and exists without SSE2. Source: Intel
// SDM volume 3, "Write Combining", events that flush the buffers.
const (
	barrierName      = "LOCK ADDL"
	barrierCompletes = true
	unalignedHeap    = true
	deviceIsPicky    = false // uncached memory takes any access on x86
)

// barrier orders every access before it, as a device sees them, before every access after it.
func barrier()
