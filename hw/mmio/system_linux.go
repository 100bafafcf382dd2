package mmio

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// deviceFlags open a device to be mapped. Without O_SYNC the kernel maps memory through /dev/mem and u-dma-buf cached:
	// Linux drivers/char/mem.c and arch/arm/mm/mmu.c, phys_mem_access_prot.
	deviceFlags = os.O_RDWR | unix.O_SYNC | unix.O_CLOEXEC
	// interruptFlags open a UIO device to be waited for.
	interruptFlags = os.O_RDWR | unix.O_NONBLOCK | unix.O_CLOEXEC
	readFlags      = os.O_RDONLY | unix.O_CLOEXEC
)

// supported says whether this system can give a program its devices.
func supported() error { return nil }

// osFile is a file descriptor, used by system calls only: Go's own poller does not come into it.
type osFile int

func openFile(path string, flags int) (File, error) {
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return nil, err
	}
	return osFile(fd), nil
}

func (f osFile) Fd() int                     { return int(f) }
func (f osFile) Close() error                { return unix.Close(int(f)) }
func (f osFile) Read(p []byte) (int, error)  { return unix.Read(int(f), p) }
func (f osFile) Write(p []byte) (int, error) { return unix.Write(int(f), p) }

func (f osFile) Map(offset int64, length int) ([]byte, error) {
	return mapShared(int(f), offset, length)
}
