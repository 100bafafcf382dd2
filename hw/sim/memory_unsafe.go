package sim

import "unsafe"

// bytesOf is the same memory as words, byte by byte. The words themselves are only ever accessed atomically; payload is
// only ever copied, and its hand-over is ordered by the OWN words.
func bytesOf(words []uint32) []byte {
	if len(words) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*4)
}
