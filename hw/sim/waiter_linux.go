package sim

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how many nanoseconds the kernel may be late for the calling thread (prctl(2), PR_SET_TIMERSLACK).
const timerSlack = 1

func exactThread() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0) }

// preciseWaiter blocks its goroutine's thread in the kernel, which wakes it some 20 µs late instead of the millisecond
// that Go's timers may need.
type preciseWaiter struct {
	c    *realClock
	word uint32
}

func newPreciseWaiter(c *realClock) waiter { return &preciseWaiter{c: c} }

func (w *preciseWaiter) enter() {
	runtime.LockOSThread()
	exactThread()
}

func (w *preciseWaiter) leave() { runtime.UnlockOSThread() }

func (w *preciseWaiter) wait(deadline int64) {
	if !atomic.CompareAndSwapUint32(&w.word, waiterBusy, waiterAsleep) {
		atomic.StoreUint32(&w.word, waiterBusy)
		return
	}
	if deadline == never {
		futexWait(&w.word, waiterAsleep, nil)
	} else if d := deadline*w.c.scale - w.c.realNanos(); d > 0 {
		ts := unix.NsecToTimespec(d)
		futexWait(&w.word, waiterAsleep, &ts)
	}
	atomic.StoreUint32(&w.word, waiterBusy)
}

func (w *preciseWaiter) poke() {
	if atomic.SwapUint32(&w.word, waiterPoked) == waiterAsleep {
		futexWake(&w.word)
	}
}

// preciseSleep sleeps for less than a few milliseconds, some 20 µs too long.
func preciseSleep(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exactThread()
	ts := unix.NsecToTimespec(int64(d))
	for unix.Nanosleep(&ts, &ts) == unix.EINTR {
	}
}
