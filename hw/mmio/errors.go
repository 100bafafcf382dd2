package mmio

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Sentinels that errors of this package match with errors.Is, besides those of package hw and the errno of a system call.
var (
	ErrStrictDevmem = errors.New("the kernel keeps /dev/mem away from this address") // CONFIG_STRICT_DEVMEM or CONFIG_IO_STRICT_DEVMEM
	ErrAttribute    = errors.New("missing or malformed attribute")                   // a file in /sys or /proc is not as it should be
	ErrAddress      = errors.New("address cannot be used")                           // outside, misaligned, overlapping, above 4 GiB
	ErrCached       = errors.New("DMA memory is cached by the CPU")                  // and the device does not snoop
	ErrOutOfMemory  = errors.New("out of DMA memory")                                // the region is full
	ErrIncoherent   = errors.New("CPU and device see different memory")              // the self-test failed
	ErrNoInterrupt  = errors.New("device has no interrupt")                          // or one that cannot be masked from user space
)

// Error is a failed step on the way to registers, memory or interrupts.
type Error struct {
	Op     string // what was being done, such as "map"
	Path   string // the file it was done to
	Detail string // address, size or value concerned, may be empty
	Remedy string // what the user may do about it, may be empty
	Err    error  // a sentinel of this package or of hw, or an errno
}

func (e *Error) Error() string {
	s := "mmio: " + e.Op
	if e.Path != "" {
		s += " " + e.Path
	}
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	s += ": " + e.Err.Error()
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// openError explains why a device node cannot be opened.
func openError(path string, kind Kind, err error) error {
	e := &Error{Op: "open", Path: path, Err: err}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		switch kind {
		case DevMem:
			e.Remedy = "the kernel was built without CONFIG_DEVMEM, or this container has no such node: use UIO"
		case UIO:
			e.Remedy = "no such UIO device: load uio_pdrv_genirq with of_id set to the node's compatible string and bind the device to it"
		case UDMABuf:
			e.Remedy = "load the u-dma-buf module, for example with udmabuf0=4194304"
		}
	case errors.Is(err, syscall.EPERM) && kind == DevMem:
		e.Remedy = "the process needs CAP_SYS_RAWIO, and the kernel must not be locked down (see /sys/kernel/security/lockdown)"
	case errors.Is(err, fs.ErrPermission):
		e.Remedy = "run as root, or change owner or mode of the node"
	}
	return e
}

// mapError explains why the kernel refuses a mapping. claimant names who has the address range, if that is known.
func mapError(path string, kind Kind, detail, claimant string, err error) error {
	e := &Error{Op: "map", Path: path, Detail: detail, Err: err}
	switch {
	case errors.Is(err, syscall.EPERM) && kind == DevMem:
		e.Err = fmt.Errorf("%w: %w", ErrStrictDevmem, err)
		if claimant != "" {
			e.Remedy = "it belongs to " + claimant + ": unbind that driver; or use UIO, or boot with iomem=relaxed"
		} else {
			e.Remedy = "memory of the kernel cannot be mapped: reserve a region with no-map in the device tree, or use u-dma-buf; for registers use UIO, or boot with iomem=relaxed"
		}
	case (errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENODEV)) && kind == UIO:
		e.Remedy = "this kernel does not map UIO regions that are not whole pages: map the registers through /dev/mem, or use a newer kernel"
	case errors.Is(err, syscall.EINVAL) && kind == UDMABuf:
		e.Remedy = "the buffer is smaller than what was asked for"
	case errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EAGAIN):
		e.Remedy = "out of address space or over a limit of the process (ulimit -v, -l)"
	}
	return e
}

// attributeError is a complaint about a file in /sys or /proc.
func attributeError(path, format string, args ...any) error {
	return &Error{Op: "read", Path: path, Detail: fmt.Sprintf(format, args...), Err: ErrAttribute}
}

// addressError is a complaint about an address range.
func addressError(what string, start, size uint64, format string, args ...any) error {
	return &Error{Op: "check", Path: what, Detail: span(start, size), Err: fmt.Errorf("%w: "+format, append([]any{ErrAddress}, args...)...)}
}

// span is an address range for a message.
func span(start, size uint64) string { return fmt.Sprintf("0x%x+0x%x", start, size) }
