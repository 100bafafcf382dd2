//go:build amd64 || 386 || arm || arm64

package mmio

import "unsafe"

// The accesses are assembly so that each is exactly what it says: the compiler may join neighbouring loads or stores into
// wider ones, repeat a load, or turn a loop into memmove, and sync/atomic stores with a read-modify-write on x86, which the
// bus of a device may not carry. Pointers on the device's side are aligned to the access; those of the heap need not be,
// see unalignedHeap.

//go:noescape
func load32(p unsafe.Pointer) uint32

//go:noescape
func store32(p unsafe.Pointer, v uint32)

//go:noescape
func store16(p unsafe.Pointer, v uint16)

//go:noescape
func store8(p unsafe.Pointer, v uint8)

// copyWords copies words of 32 bits, each read once and written once, in rising order.
//
//go:noescape
func copyWords(dst, src unsafe.Pointer, words int)
