package sim

import (
	"fmt"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// raise latches status bits, with the summaries that they bring (Linux dwmac_dma.h: only enabled sources count there), and
// tells the driver if its line rises.
func (b *Board) raise(bits uint32) {
	var old, v uint32
	for {
		old = b.status.Load()
		v = old
		if bits&stRI != 0 {
			v &^= stERI
		}
		v = summarise(v|bits, b.intEnable.Load())
		if b.status.CompareAndSwap(old, v) {
			break
		}
	}
	if v&^old != 0 {
		b.edge()
	}
}

// summarise sets the summary bits that enabled sources bring.
func summarise(v, enable uint32) uint32 {
	if v&enable&stNormal != 0 {
		v |= stNIS
	}
	if v&enable&stAbnormal != 0 {
		v |= stAIS
	}
	return v
}

// line is the level of the interrupt line.
func (b *Board) line() bool {
	st, en := b.status.Load(), b.intEnable.Load()
	return st&en&(stNIS|stAIS) != 0 || b.extra.Load()&(stGLI|stGMI|stGPI) != 0
}

// edge tells the driver about an event that is new.
func (b *Board) edge() {
	if i := b.irq.Load(); i != nil {
		i.swallowed.Store(false)
		i.notify()
	}
}

// relevel tells the driver if the line is up, whatever the reason.
func (b *Board) relevel() {
	if i := b.irq.Load(); i != nil {
		i.notify()
	}
}

// clearStatus is a write of the status register. Summaries of sources that remain come back.
func (b *Board) clearStatus(v uint32) {
	for {
		old := b.status.Load()
		n := summarise(old&^(v&stLatched), b.intEnable.Load())
		if b.status.CompareAndSwap(old, n) {
			break
		}
	}
	b.relevel()
}

// setIntEnable is a write of the interrupt enable register: latched sources that it enables fire.
func (b *Board) setIntEnable(v uint32) {
	b.intEnable.Store(v)
	b.raise(0)
	b.relevel()
}

// statusWord is the status register as the CPU reads it.
func (b *Board) statusWord() uint32 {
	return b.status.Load() | b.extra.Load() | b.rxState.Load()<<stRS | b.txState.Load()<<stTS
}

// setExtra sets or clears read-only mirror bits of the status register. b.mu is held.
func (b *Board) setExtra(mask uint32, on bool) {
	old := b.extra.Load()
	v := old &^ mask
	if on {
		v |= mask
	}
	if v == old {
		return
	}
	b.extra.Store(v)
	if on {
		b.edge()
	}
}

// updateMACInt recomputes what the MAC, PMT and MMC contribute to the line. b.mu is held.
func (b *Board) updateMACInt() {
	v := b.macInt()
	open := v &^ b.reg[mustSlot(regIntMask)]
	b.setExtra(stGLI, open&macIntRGMII != 0)
	b.setExtra(stGPI, open&macIntPMT != 0)
	b.setExtra(stGMI, v&macIntMMC != 0)
}

// macInt is the MAC's interrupt status register. b.mu is held.
func (b *Board) macInt() uint32 {
	var v uint32
	if b.phy.changed {
		v |= macIntRGMII
	}
	if b.reg[mustSlot(regPMT)]&(pmtMagic|pmtWakeFrame) != 0 {
		v |= macIntPMT
	}
	for group, bit := range [mmcGroups]uint32{macIntMMCTX, macIntMMCRX, macIntIPC} {
		if b.mmc.pending[group]&^b.mmc.mask[group] != 0 {
			v |= bit | macIntMMC
		}
	}
	return v
}

// interrupt is a session's interrupt line. It implements hw.Interrupt.
type interrupt struct {
	s         *session
	masked    atomic.Bool
	woken     atomic.Bool // Wake was called
	swallowed atomic.Bool // the present level was lost, see Faults.LoseInterrupts
	ch        chan struct{}

	// The timer runs on past waits that ended early, so that a busy driver does not set it for each wait.
	timer   hw.Timer
	timerAt int64 // when it fires; never if it is not set
}

func (i *interrupt) init(s *session) {
	i.s = s
	i.ch = make(chan struct{}, 1)
	i.timerAt = never
}

// end makes every Wait return for good.
func (i *interrupt) end() { i.poke() }

func (i *interrupt) poke() {
	select {
	case i.ch <- struct{}{}:
	default:
	}
}

// notify lets a Wait look at the line.
func (i *interrupt) notify() {
	if !i.masked.Load() && i.s.b.line() {
		i.poke()
	}
}

// fires reports whether the line is up for the driver; a fault may lose it instead.
func (i *interrupt) fires() bool {
	b := i.s.b
	if i.masked.Load() || i.swallowed.Load() || !b.line() {
		return false
	}
	if b.faults.loses() {
		b.cnt.interruptsLost.Add(1)
		i.swallowed.Store(true)
		return false
	}
	i.masked.Store(true)
	b.cnt.interrupts.Add(1)
	return true
}

// Wait implements hw.Interrupt.
func (i *interrupt) Wait(timeout time.Duration) (hw.Wakeup, error) {
	clock := i.s.b.clock
	deadline := never
	for first := true; ; first = false {
		switch {
		case i.s.closed.Load():
			if i.timer != nil {
				i.timer.Stop()
			}
			return hw.WakeTimeout, fmt.Errorf("sim: wait for interrupt of %s: %w", i.s.b.opts.Name, hw.ErrClosed)
		case i.woken.Swap(false):
			return hw.WakeCall, nil
		case i.fires():
			return hw.WakeInterrupt, nil
		}
		if timeout >= 0 {
			now := clock.nanos()
			if first {
				deadline = now + int64(timeout)
			}
			if now >= deadline {
				return hw.WakeTimeout, nil
			}
			i.setTimer(now, deadline)
		}
		<-i.ch
	}
}

// setTimer makes sure that a poke comes no later than the deadline.
func (i *interrupt) setTimer(now, deadline int64) {
	if i.timer != nil && i.timerAt > now && i.timerAt <= deadline {
		return
	}
	i.timerAt = deadline
	d := time.Duration(deadline - now)
	if i.timer == nil {
		i.timer = i.s.b.clock.AfterFunc(d, i.poke)
	} else {
		i.timer.Reset(d)
	}
}

// Enable implements hw.Interrupt.
func (i *interrupt) Enable() error {
	if i.s.closed.Load() {
		return fmt.Errorf("sim: enable interrupt of %s: %w", i.s.b.opts.Name, hw.ErrClosed)
	}
	i.masked.Store(false)
	i.swallowed.Store(false)
	i.notify()
	return nil
}

// Wake implements hw.Interrupt.
func (i *interrupt) Wake() {
	i.woken.Store(true)
	i.poke()
}
