package board

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"unsafe"

	"dwnet/hw"
)

// The kernel's structures are the same on all architectures: sizes and numbers as include/uapi/linux/gpio.h gives them.
func TestGPIOStructures(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"gpio_v2_line_config", unsafe.Sizeof(lineConfig{}), 272},
		{"gpio_v2_line_request", unsafe.Sizeof(lineRequest{}), 592},
		{"gpio_v2_line_request.config", unsafe.Offsetof(lineRequest{}.config), 288},
		{"gpio_v2_line_request.num_lines", unsafe.Offsetof(lineRequest{}.numLines), 560},
		{"gpio_v2_line_request.fd", unsafe.Offsetof(lineRequest{}.fd), 588},
		{"gpio_v2_line_values", unsafe.Sizeof(lineValues{}), 16},
		{"GPIO_V2_GET_LINE_IOCTL", gpioGetLine, 0xc250b407},
		{"GPIO_V2_LINE_SET_VALUES_IOCTL", gpioSetValues, 0xc010b40f},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, c.got, c.want)
		}
	}
}

func TestGPIOLineErrors(t *testing.T) {
	for _, c := range []struct {
		chip string
		line int
		is   error
	}{
		{"", 0, hw.ErrConfig},
		{"/dev/gpiochip0", -1, hw.ErrConfig},
		{"/dev/gpiochip0", 1 << 20, hw.ErrConfig},
		{t.TempDir() + "/none", 1, fs.ErrNotExist},
	} {
		if l, err := OpenGPIOLine(c.chip, c.line, true); l != nil || !errors.Is(err, c.is) {
			t.Errorf("%q %d: %v", c.chip, c.line, err)
		}
	}
	var errno syscall.Errno // ENOTTY, or ENOSYS where the system is emulated
	if l, err := OpenGPIOLine("/dev/null", 1, true); l != nil || !errors.As(err, &errno) {
		t.Errorf("no GPIO chip: %v", err)
	}
	l := &GPIOLine{chip: "/dev/null", line: 1, file: failing{}}
	if err := l.SetReset(true); !errors.Is(err, errMap) {
		t.Error(err)
	}
	if err := l.Close(); !errors.Is(err, errMap) {
		t.Error(err)
	}
}

// failing is a line that does nothing but fail.
type failing struct{}

func (failing) set(bool) error { return errMap }
func (failing) Close() error   { return errMap }
