//go:build linux

package board

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Version 2 of the GPIO character device. Source: Linux include/uapi/linux/gpio.h.
const (
	gpioMaxLines = 64
	gpioMaxAttrs = 10
	gpioNameSize = 32

	gpioFlagActiveLow = 1 << 1
	gpioFlagOutput    = 1 << 3
)

// lineAttribute is struct gpio_v2_line_config_attribute with the attribute in it.
type lineAttribute struct {
	id, padding uint32
	value       uint64
	mask        uint64
}

// lineConfig is struct gpio_v2_line_config.
type lineConfig struct {
	flags    uint64
	numAttrs uint32
	padding  [5]uint32
	attrs    [gpioMaxAttrs]lineAttribute
}

// lineRequest is struct gpio_v2_line_request. Its 64-bit members are at multiples of eight on 32-bit machines as well, since
// all that stands before them is of such a length.
type lineRequest struct {
	offsets         [gpioMaxLines]uint32
	consumer        [gpioNameSize]byte
	config          lineConfig
	numLines        uint32
	eventBufferSize uint32
	padding         [5]uint32
	fd              int32
}

// lineValues is struct gpio_v2_line_values.
type lineValues struct{ bits, mask uint64 }

// iowr is _IOWR(0xB4, nr, size) of the generic encoding, which all our architectures use.
func iowr(nr, size uintptr) uintptr { return 3<<30 | size<<16 | 0xb4<<8 | nr }

var (
	gpioGetLine   = iowr(0x07, unsafe.Sizeof(lineRequest{}))
	gpioSetValues = iowr(0x0f, unsafe.Sizeof(lineValues{}))
)

type chardevLine struct{ f *os.File }

func openLine(chip string, line int, activeLow bool) (lineFile, error) {
	f, err := os.OpenFile(chip, os.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	req := lineRequest{numLines: 1}
	req.offsets[0] = uint32(line)
	copy(req.consumer[:], "dwnet-phy-reset")
	req.config.flags = gpioFlagOutput
	if activeLow {
		req.config.flags |= gpioFlagActiveLow
	}
	// Without an attribute for its value an output starts inactive: the PHY runs.
	if err := ioctl(f, gpioGetLine, unsafe.Pointer(&req)); err != nil {
		return nil, err
	}
	if req.fd < 0 {
		return nil, errors.New("the kernel gave no descriptor")
	}
	return chardevLine{os.NewFile(uintptr(req.fd), chip)}, nil
}

func (l chardevLine) set(active bool) error {
	v := lineValues{mask: 1}
	if active {
		v.bits = 1
	}
	return ioctl(l.f, gpioSetValues, unsafe.Pointer(&v))
}

func (l chardevLine) Close() error { return l.f.Close() }

// ioctl keeps the file open meanwhile.
func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var errno unix.Errno
	err = c.Control(func(fd uintptr) {
		for {
			_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg))
			if errno != unix.EINTR {
				return
			}
		}
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return err
}
