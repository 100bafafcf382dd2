//go:build !(amd64 || 386 || arm || arm64)

package mmio

import "unsafe"

// On other machines the accesses are Go, kept apart by noinline. Open refuses to drive a device there, see barrierCompletes;
// what remains is for code that only has to build and for tests.

//go:noinline
func load32(p unsafe.Pointer) uint32 { return *(*uint32)(p) }

//go:noinline
func store32(p unsafe.Pointer, v uint32) { *(*uint32)(p) = v }

//go:noinline
func store16(p unsafe.Pointer, v uint16) { *(*uint16)(p) = v }

//go:noinline
func store8(p unsafe.Pointer, v uint8) { *(*uint8)(p) = v }

func copyWords(dst, src unsafe.Pointer, words int) {
	for i := range words {
		store32(unsafe.Add(dst, 4*i), load32(unsafe.Add(src, 4*i)))
	}
}
