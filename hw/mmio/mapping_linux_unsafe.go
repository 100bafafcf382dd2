//go:build linux

package mmio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapShared(fd int, offset int64, length int) ([]byte, error) {
	p, err := unix.MmapPtr(fd, offset, nil, uintptr(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), length), nil
}

// unmapDevice takes the device away from under a mapping and leaves private zeroes in its place, so that somebody who still
// reads or writes there does no harm and does not crash.
func unmapDevice(r raw) error {
	_, err := unix.MmapPtr(-1, 0, r.p, uintptr(r.n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return err
}

// unmap gives the address range back.
func unmap(r raw) { _ = unix.MunmapPtr(r.p, uintptr(r.n)) }
