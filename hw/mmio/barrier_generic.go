//go:build !(amd64 || 386 || arm64 || (arm && arm.6))

package mmio

import "sync/atomic"

// There is no barrier here that a device sees: ARMv5 (GOARM=5) drains its write buffer by an instruction that user mode may
// not use, and the other machines have not been looked at. Go's atomics order accesses among the CPUs, which is not enough,
// so Open refuses. GOARM=5 also has to keep loads of the heap aligned.
const (
	barrierName      = "atomic add (orders CPUs only)"
	barrierCompletes = false
	unalignedHeap    = false
	deviceIsPicky    = true
)

var barrierWord atomic.Uint32

func barrier() { barrierWord.Add(1) }
