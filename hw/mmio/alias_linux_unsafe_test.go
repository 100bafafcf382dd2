//go:build linux

package mmio

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aliasMap maps the first page of a file again and again, as an address decoder does that looks at too few bits.
type aliasMap struct{ File }

func (a aliasMap) Map(_ int64, length int) ([]byte, error) {
	page := os.Getpagesize()
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(length), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	for off := 0; off < length; off += page {
		if _, err := unix.MmapPtr(a.Fd(), 0, unsafe.Add(p, off), uintptr(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
			return nil, err
		}
	}
	return unsafe.Slice((*byte)(p), length), nil
}
