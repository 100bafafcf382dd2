package mmio

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// errSecondWaiter is what the second of two goroutines gets that wait at the same time.
var errSecondWaiter = errors.New("another goroutine waits already")

// waits is what every interrupt has: a waker, and care that no file is closed under a goroutine that uses it. Wake and Enable
// hold mu for reading, so that they wait for nobody but a Close.
type waits struct {
	*waker
	name    string
	release func() // closes the files of the interrupt

	inside  atomic.Bool // a goroutine waits; it alone closes the files then
	closing atomic.Bool

	mu   sync.RWMutex
	gone bool // the files are closed

	// owed says that a wake came together with an interrupt: it is next. Only the waiting goroutine looks.
	owed bool
}

// enter begins a wait.
func (w *waits) enter() error {
	if !w.inside.CompareAndSwap(false, true) {
		return fmt.Errorf("mmio: wait for interrupt of %s: %w: %w", w.name, hw.ErrConfig, errSecondWaiter)
	}
	if w.closing.Load() {
		w.leave()
		return w.closedError("wait for")
	}
	return nil
}

// leave ends a wait.
func (w *waits) leave() {
	w.inside.Store(false)
	if w.closing.Load() {
		w.drop()
	}
}

// close ends the current wait and all later ones.
func (w *waits) close() {
	w.closing.Store(true)
	if w.inside.Load() { // either it sees closing, or this sees that it left
		w.Wake()
	}
	if !w.inside.Load() {
		w.drop()
	}
}

// drop closes the files, once.
func (w *waits) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.gone {
		w.gone = true
		w.release()
		w.waker.close()
	}
}

// use calls f while the files are open.
func (w *waits) use(f func() error) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closing.Load() || w.gone {
		return w.closedError("enable")
	}
	return f()
}

// Wake implements hw.Interrupt.
func (w *waits) Wake() {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if !w.gone {
		w.waker.wake()
	}
}

func (w *waits) closedError(op string) error {
	return fmt.Errorf("mmio: %s interrupt of %s: %w", op, w.name, hw.ErrClosed)
}

// line is what await waits for.
type line struct {
	look func() (fired bool, err error) // take the interrupt if there is one
	wait func(d time.Duration) error    // block for at most d, d < 0 being for ever; early returns are welcome
}

// await is the loop that all interrupts have in common.
func (w *waits) await(timeout time.Duration, l line) (hw.Wakeup, error) {
	if err := w.enter(); err != nil {
		return hw.WakeTimeout, err
	}
	defer w.leave()
	var deadline time.Time
	if timeout > 0 {
		deadline = time.Now().Add(timeout)
	}
	for {
		if w.closing.Load() {
			return hw.WakeTimeout, w.closedError("wait for")
		}
		if w.owed {
			w.owed = false
			if w.take() {
				return hw.WakeCall, nil
			}
		}
		fired, err := l.look()
		switch {
		case err != nil:
			return hw.WakeTimeout, err
		case fired:
			w.owed = w.pending()
			return hw.WakeInterrupt, nil
		case w.closing.Load(): // its wake must not look like one of Wake
			continue
		case w.take():
			return hw.WakeCall, nil
		}
		left := timeout
		if timeout > 0 {
			left = max(time.Until(deadline), 0)
		}
		if left == 0 {
			return hw.WakeTimeout, nil
		}
		if err := l.wait(left); err != nil {
			return hw.WakeTimeout, err
		}
	}
}
