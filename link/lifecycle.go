package link

import (
	"bytes"
	"log/slog"
	"runtime"
	"strconv"

	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// Attach implements stack.LinkEndpoint. Frames that arrive while nothing is attached are dropped with a count. Attach(nil)
// only marks the endpoint as detached: the stack calls it with its lock held, which a delivery under way may need.
func (e *Endpoint) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		e.attached.Store(nil)
		return
	}
	e.attached.Store(&dispatcher{d})
}

// IsAttached implements stack.LinkEndpoint.
func (e *Endpoint) IsAttached() bool { return e.attached.Load() != nil }

func (e *Endpoint) dispatcher() *dispatcher { return e.attached.Load() }

// Wait implements stack.LinkEndpoint. It returns at once: the stack calls it with its lock held, which a delivery under way
// may need, so the goroutine that delivers cannot be waited for here. Close does that.
func (e *Endpoint) Wait() {}

// SetOnCloseAction implements stack.LinkEndpoint.
func (e *Endpoint) SetOnCloseAction(f func()) {
	e.lifeMu.Lock()
	e.onClose = f
	e.lifeMu.Unlock()
}

// Close implements stack.LinkEndpoint. It removes the NIC, if there is one, stops the MAC, proves that its DMA has stopped,
// drops everything queued and closes the port (or, without that proof, leaves it open, counted as a HardwareError), and returns when all of that has happened and no goroutine is left. Called
// from within a delivery, by a handler that the stack runs on the delivering goroutine, it only starts that. It may be
// called any number of times.
func (e *Endpoint) Close() {
	// The action that CreateNIC installs removes the NIC, which calls SetOnCloseAction(nil), Attach(nil) and Close again,
	// in this goroutine.
	e.lifeMu.Lock()
	act := e.onClose
	e.onClose = nil
	e.lifeMu.Unlock()
	if act != nil {
		act()
	}
	e.stopping.Store(true)
	e.irq.Wake()
	if e.loop.Load() == goroutineID() {
		return
	}
	<-e.done
}

// shutdown is the end of the poll loop.
func (e *Endpoint) shutdown() {
	e.stopping.Store(true)
	e.queue.close()
	e.txmu.Lock() // a pump that is running ends; none starts
	e.paused = true
	e.txmu.Unlock()
	e.linkUp.Store(false)
	// Frames still in the ring are lost, and counted.
	flushed := e.mac.TX().Stats().Flushed
	err := e.mac.Close()
	e.stats.txFlushed.Add(e.mac.TX().Stats().Flushed - flushed)
	if err == nil {
		err = e.port.Close()
	} // else the DMA may still run, into memory that must stay what it is: the port stays open
	if err != nil {
		e.stats.hardwareErrors.Add(1)
		e.log(slog.LevelError, "the MAC did not stop", "err", err)
	}
	e.drain()
	close(e.done)
}

// goroutineID is the number of the calling goroutine as the runtime prints it. It is needed to tell a Close from within a
// delivery, which must not wait for that delivery to end, from a Close on another goroutine, which must. The runtime
// offers no other way to ask, and the cost only arises at Close.
func goroutineID() uint64 {
	var buf [64]byte
	s, _ := bytes.CutPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	digits, _, _ := bytes.Cut(s, []byte(" "))
	id, _ := strconv.ParseUint(string(digits), 10, 64)
	return id
}
