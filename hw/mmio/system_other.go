//go:build !linux

package mmio

import (
	"os"
	"runtime"

	"dwnet/hw"
)

const (
	deviceFlags    = os.O_RDWR | os.O_SYNC
	interruptFlags = os.O_RDWR
	readFlags      = os.O_RDONLY
)

// supported says whether this system can give a program its devices.
func supported() error {
	return &Error{Op: "open device on " + runtime.GOOS, Err: hw.ErrUnsupported,
		Remedy: "registers, DMA memory and interrupts in user space need Linux; use hw/sim elsewhere"}
}

func openFile(string, int) (File, error) { return nil, supported() }
