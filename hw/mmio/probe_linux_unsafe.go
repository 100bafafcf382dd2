//go:build linux && (amd64 || 386 || arm || arm64)

package mmio

import (
	"errors"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"dwnet/hw"
)

// Bounds of the wait for the child of answers. A bus that never answers keeps its CPU, and then nothing helps.
const (
	probePatience = 2 * time.Second
	probePause    = 200 * time.Microsecond
)

// defaultAction is a struct sigaction of zeroes, as rt_sigaction takes it on every machine: SIG_DFL.
var defaultAction [8]uint64

// sigsetBytes is the size of the kernel's sigset_t.
const sigsetBytes = 8

// answers finds out whether the bus answers a load of the word at off, in a child process that has nothing else to do. A
// process of its own, because 32-bit ARM Linux reports an external abort as a SIGBUS with si_code 0 (arch/arm/mm/fsr-3level.c
// and fsr-2level.c), which the Go runtime takes for one that was sent by a process, so that debug.SetPanicOnFault does not
// apply and the program ends. A word that answers once is taken to answer.
func answers(r raw, off int) error {
	pid, errno := forkAndLoad(r.at(off, 4), &defaultAction)
	if errno != 0 {
		return errno
	}
	var status unix.WaitStatus
	for deadline := time.Now().Add(probePatience); ; {
		got, err := unix.Wait4(int(pid), &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD): // somebody else collects the children of this process
			return nil
		case err != nil:
			return err
		case got == int(pid):
			if status.Signaled() {
				return hw.ErrGone
			}
			return nil
		case time.Now().After(deadline):
			_ = unix.Kill(int(pid), unix.SIGKILL)
			return hw.ErrTimeout
		default:
			// The runtime's sleep: a nanosleep that the child's end interrupts never returned, once, under qemu-arm, and with it
			// the deadline was never looked at.
			time.Sleep(probePause)
		}
	}
}

// forkAndLoad forks; the child loads the word at p and exits, or dies. The child has one thread and no runtime: it must not
// grow its stack, allocate, or call anything that might.
//
//go:norace
//go:nosplit
//go:noinline
func forkAndLoad(p unsafe.Pointer, dfl *[8]uint64) (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0) // no core file
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGBUS), uintptr(unsafe.Pointer(dfl)), 0, sigsetBytes, 0, 0)
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGSEGV), uintptr(unsafe.Pointer(dfl)), 0, sigsetBytes, 0, 0)
	load32(p)
	for {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
