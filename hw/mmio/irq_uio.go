package mmio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"
	"time"

	"dwnet/hw"
)

// UIOInterrupt is the interrupt of a UIO device. It implements hw.Interrupt. The kernel masks the line when it fires and
// counts; a read of four bytes takes the count; a write of a one unmasks the line. In between the device must have been
// quieted, or the line, which is a level, fires again at once. Source: Linux Documentation/driver-api/uio-howto.rst;
// drivers/uio/uio_pdrv_genirq.c.
type UIOInterrupt struct {
	waits
	f     File
	count [uioCountBytes]byte
	have  int  // how much of count was read
	hung  bool // the device cannot fire any more
	fired atomic.Uint64
}

var _ hw.Interrupt = (*UIOInterrupt)(nil)

const (
	uioCountBytes = 4 // uio_read and uio_write take exactly an s32
)

// What is written to a UIO device: an s32 in the machine's byte order.
var (
	uioMask   = make([]byte, uioCountBytes)
	uioUnmask = binary.NativeEndian.AppendUint32(nil, 1)
)

// OpenInterrupt opens the interrupt of a UIO device, and masks it: the first interrupt comes after the first Enable. A
// device without one, or whose driver cannot mask it, gives ErrNoInterrupt.
func OpenInterrupt(sys System, src Source) (*UIOInterrupt, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if err := src.check(forInterrupt); err != nil || src.Kind != UIO {
		if err == nil {
			err = fmt.Errorf("Kind is %v, want %v", src.Kind, UIO)
		}
		return nil, configError("Source", err)
	}
	path := sys.path(src.path())
	f, err := sys.open(src.path(), interruptFlags)
	if err != nil {
		return nil, openError(path, UIO, err)
	}
	w, err := newWaker()
	if err != nil {
		f.Close()
		return nil, err
	}
	u := &UIOInterrupt{f: f}
	u.waits = waits{waker: w, name: path, release: func() { f.Close() }}
	if err := u.control(uioMask); err != nil {
		u.Close()
		if errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EIO) {
			return nil, &Error{Op: "mask interrupt of", Path: path, Err: fmt.Errorf("%w: %w", ErrNoInterrupt, err),
				Remedy: "give the device tree node its interrupt and use uio_pdrv_genirq, or poll"}
		}
		return nil, &Error{Op: "mask interrupt of", Path: path, Err: err}
	}
	return u, nil
}

// Wait implements hw.Interrupt.
func (u *UIOInterrupt) Wait(timeout time.Duration) (hw.Wakeup, error) {
	return u.await(timeout, line{
		look: u.look,
		wait: func(d time.Duration) error {
			hung, err := u.wait(u.f.Fd(), d)
			u.hung = hung
			if err != nil {
				return &Error{Op: "wait for interrupt of", Path: u.name, Err: err}
			}
			return nil
		},
	})
}

// look reads the count if there is a new one. A read that is interrupted or short goes on.
func (u *UIOInterrupt) look() (bool, error) {
	gone := func(err error) error {
		return &Error{Op: "wait for interrupt of", Path: u.name, Err: fmt.Errorf("%w: %w", hw.ErrGone, err),
			Remedy: "the device was unbound, or has no interrupt"}
	}
	for try := 0; try < interruptedRetries; try++ {
		n, err := u.f.Read(u.count[u.have:])
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			if u.hung {
				return false, gone(io.ErrUnexpectedEOF)
			}
			return false, nil
		case err != nil:
			return false, gone(err)
		case n <= 0:
			return false, gone(io.ErrUnexpectedEOF)
		default:
			if u.have += n; u.have >= uioCountBytes {
				u.have = 0
				u.fired.Add(1)
				return true, nil
			}
		}
	}
	return false, nil // interrupted all the time: look after Wake, Close and the time first
}

// Enable implements hw.Interrupt. Call it when the status of the device was cleared.
func (u *UIOInterrupt) Enable() error {
	return u.use(func() error {
		if err := u.control(uioUnmask); err != nil {
			return &Error{Op: "unmask interrupt of", Path: u.name, Err: err}
		}
		return nil
	})
}

func (u *UIOInterrupt) control(order []byte) error {
	err := error(syscall.EINTR)
	for try := 0; try < interruptedRetries && errors.Is(err, syscall.EINTR); try++ {
		var n int
		if n, err = u.f.Write(order); err == nil && n != len(order) {
			err = io.ErrShortWrite
		}
	}
	return err
}

// Fired is how many interrupts were taken.
func (u *UIOInterrupt) Fired() uint64 { return u.fired.Load() }

func (u *UIOInterrupt) String() string { return "interrupt of " + u.name }

// Close ends a Wait. The line stays as it is: masked, or unmasked until it fires next.
func (u *UIOInterrupt) Close() error {
	u.close()
	return nil
}
