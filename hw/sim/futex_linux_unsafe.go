//go:build linux

package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2), on a word that only this process sees.
const (
	futexPrivate = 128
	futexWaitOp  = 0 | futexPrivate
	futexWakeOp  = 1 | futexPrivate
)

// futexWait blocks while *word is val, at most for the time given, nil meaning for ever.
func futexWait(word *uint32, val uint32, timeout *unix.Timespec) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitOp, uintptr(val),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// futexWake wakes the one goroutine that waits on word.
func futexWake(word *uint32) {
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakeOp, 1)
}
