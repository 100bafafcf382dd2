package mmio

import (
	"errors"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waker blocks one goroutine until somebody wakes it, a descriptor becomes readable, or a time has passed. Wakes are merged
// and kept. It blocks in the kernel (ppoll) rather than on Go's timers, which may be a millisecond late while the process is
// idle: a system call with a timer slack of a nanosecond is some 20 µs late.
type waker struct {
	fd    int // eventfd
	state atomic.Uint32
	count [8]byte // what wait reads from fd
}

// wakeCount is what is written to an eventfd: in either byte order a count that is not zero.
var wakeCount = [8]byte{1}

// States of a waker.
const (
	wakerBusy   = iota // the goroutine does not wait
	wakerAsleep        // it waits, or is about to
	wakerPoked         // it was woken and does not know yet
)

func newWaker() (*waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, &Error{Op: "make eventfd", Err: err}
	}
	return &waker{fd: fd}, nil
}

// wake ends the current wait or the next. It never blocks.
func (w *waker) wake() {
	if w.state.Swap(wakerPoked) == wakerAsleep {
		w.signal()
	}
}

// signal makes the current wait, or the next, return early.
func (w *waker) signal() {
	_, _ = unix.Write(w.fd, wakeCount[:])
}

// take reports whether there was a wake, and forgets it.
func (w *waker) take() bool { return w.state.CompareAndSwap(wakerPoked, wakerBusy) }

// pending reports whether there was a wake.
func (w *waker) pending() bool { return w.state.Load() == wakerPoked }

// wait blocks until a wake, fd (unless it is negative) being readable, or d having passed; d < 0 is for ever. It may return
// early. The wake is still there afterwards. hung reports that fd cannot become readable any more.
func (w *waker) wait(fd int, d time.Duration) (hung bool, err error) {
	if !w.state.CompareAndSwap(wakerBusy, wakerAsleep) {
		return false, nil // poked already
	}
	fds := [2]unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}, {Fd: int32(fd), Events: unix.POLLIN}}
	n := 2
	if fd < 0 {
		n = 1
	}
	_, err = ppoll(fds[:n], d)
	w.state.CompareAndSwap(wakerAsleep, wakerBusy)
	if fds[0].Revents != 0 {
		_, _ = unix.Read(w.fd, w.count[:])
	}
	if errors.Is(err, syscall.EINTR) {
		err = nil
	}
	r := fds[1].Revents
	return r&unix.POLLIN == 0 && r&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0, err
}

func (w *waker) close() { _ = unix.Close(w.fd) }

// preciseBelow is how far ahead a time must lie for ordinary timers to be good enough.
const preciseBelow = 5 * time.Millisecond

// ppoll waits for descriptors or a time, precisely if it is short.
func ppoll(fds []unix.PollFd, d time.Duration) (int, error) {
	if d < 0 {
		return unix.Ppoll(fds, nil, nil)
	}
	ts := unix.NsecToTimespec(int64(min(d, maxWait)))
	if d > 0 && d < preciseBelow {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exactThread()
	}
	return unix.Ppoll(fds, &ts, nil)
}

// maxWait is the longest time given to the kernel at once, which a 32-bit timespec holds.
const maxWait = 1000 * time.Hour

// timerSlack is by how many nanoseconds the kernel may be late for the calling thread (prctl(2), PR_SET_TIMERSLACK; the
// default is 50 µs).
const timerSlack = 1

func exactThread() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) }

// preciseSleep sleeps for d, a short time, some 20 µs too long.
func preciseSleep(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exactThread()
	ts := unix.NsecToTimespec(int64(d))
	for errors.Is(unix.Nanosleep(&ts, &ts), unix.EINTR) {
	}
}
