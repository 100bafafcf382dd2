package mmio

import (
	"fmt"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// Bounds of the time between two looks at the status register: the defaults, and what Options may ask for. The longest is
// how late an interrupt may be on an idle line: a thousand looks a second cost about one per cent of a small core. At a
// gigabit some 80 full frames arrive in it, far less than a ring holds.
const (
	defaultPollMin = 50 * time.Microsecond
	defaultPollMax = time.Millisecond
	leastPoll      = 10 * time.Microsecond
	mostPoll       = 100 * time.Millisecond
)

// idleShare is the part of the time since the last interrupt that the next look waits: what has been quiet for long may be
// noticed later, and never by more than an eighth of the silence.
const idleShare = 8

// pollInterrupt stands in for an interrupt line by looking at the device. It implements hw.Interrupt.
type pollInterrupt struct {
	waits
	asserted  func() bool // the level of the line
	least     time.Duration
	most      time.Duration
	unmasked  atomic.Bool
	lastFired time.Time // only the waiting goroutine looks
	fired     atomic.Uint64
	looks     atomic.Uint64
}

var _ hw.Interrupt = (*pollInterrupt)(nil)

func newPollInterrupt(name string, asserted func() bool, least, most time.Duration) (*pollInterrupt, error) {
	w, err := newWaker()
	if err != nil {
		return nil, err
	}
	p := &pollInterrupt{asserted: asserted, least: least, most: most, lastFired: time.Now()}
	p.waits = waits{waker: w, name: name, release: func() {}}
	return p, nil
}

// pollDelay is how long to wait before the next look when the last interrupt was idle ago.
func pollDelay(idle, least, most time.Duration) time.Duration {
	return min(max(idle/idleShare, least), most)
}

// Wait implements hw.Interrupt.
func (p *pollInterrupt) Wait(timeout time.Duration) (hw.Wakeup, error) {
	return p.await(timeout, line{
		look: func() (bool, error) {
			if !p.unmasked.Load() {
				return false, nil
			}
			p.looks.Add(1)
			if !p.asserted() {
				return false, nil
			}
			p.unmasked.Store(false)
			p.fired.Add(1)
			p.lastFired = time.Now()
			return true, nil
		},
		wait: func(d time.Duration) error {
			if p.unmasked.Load() {
				delay := pollDelay(time.Since(p.lastFired), p.least, p.most)
				if d < 0 || delay < d {
					d = delay
				}
			}
			_, err := p.wait(-1, d)
			return err
		},
	})
}

// Enable implements hw.Interrupt.
func (p *pollInterrupt) Enable() error {
	return p.use(func() error {
		p.unmasked.Store(true)
		if p.inside.Load() { // somebody waits, and takes the line for masked
			p.signal()
		}
		return nil
	})
}

func (p *pollInterrupt) String() string {
	return fmt.Sprintf("polling every %v to %v", p.least, p.most)
}

func (p *pollInterrupt) Close() error {
	p.close()
	return nil
}

// lineOf is the level of the MAC's interrupt line by its registers: a summary bit whose enable is set, or one of the bits
// that mirror another source and have no enable here. Source: Linux drivers/net/ethernet/stmicro/stmmac/dwmac_dma.h,
// DMA_STATUS_* and DMA_INTR_ENA_*. A window without a device reads all ones, which counts as an interrupt: the driver is to
// find out.
func lineOf(r hw.Registers) func() bool {
	const (
		summaries = uint32(hw.CauseNIS | hw.CauseAIS)
		mirrors   = uint32(hw.CauseGLI | hw.CauseGMI | hw.CauseGPI | hw.CauseTTI | hw.CauseGLPII)
	)
	return func() bool {
		status := r.Load32(hw.RegStatus)
		if status&mirrors != 0 {
			return true
		}
		return status&summaries != 0 && status&summaries&r.Load32(hw.RegInterruptEnable) != 0
	}
}
