package hw

import "time"

// Limits of the waits on hardware. None is a measured figure of how long something takes; they are what it never takes on
// working hardware.
const (
	// resetLimit for the software reset. Linux gave up after 100 ms, found parts that need more, and waits 200 ms now
	// (dwmac_lib.c, dwmac_dma_reset).
	resetLimit = 300 * time.Millisecond
	// mdioLimit for one MDIO transaction, 64 MDC cycles: 26 µs at 2.5 MHz.
	mdioLimit = 10 * time.Millisecond
	// txStopLimit for the transmitter to finish. A full 2 KiB FIFO and one frame more take 2.9 ms at 10 Mbit/s.
	txStopLimit = 20 * time.Millisecond
	// rxStopLimit for the receiver to empty its FIFO into memory, flushLimit for the flush of the transmit FIFO.
	rxStopLimit = 10 * time.Millisecond
	flushLimit  = 10 * time.Millisecond
	// flowLimit for a PAUSE frame that is being sent; one behind a full frame takes 1.3 ms at 10 Mbit/s.
	flowLimit = 10 * time.Millisecond

	// wakeLimit for BMCR to say that the PHY left power-down, wakeSettle for its clocks to come up after that.
	wakeLimit  = 50 * time.Millisecond
	wakeSettle = 100 * time.Millisecond
	// rescanDelay before the bus is scanned again when no PHY answered: one that just left its hardware reset needs up to
	// 80 ms (Linux meson8b-odroidc1.dts, reset-deassert-us).
	rescanDelay = 80 * time.Millisecond

	pollFirst = 10 * time.Microsecond // pause between two reads, doubled up to pollMax
	pollMax   = time.Millisecond
)

// wait calls try until it is done or fails, or the limit has passed on the port's clock, and returns the time that took. It
// is the one place that waits for hardware. The limit is a time and not a number of reads, and try is called once more after
// it has passed, so that a machine that was held up does not take a good device for a bad one.
func wait(c Clock, limit time.Duration, try func() (bool, error)) (time.Duration, error) {
	start := c.Now()
	for pause := pollFirst; ; pause = min(2*pause, pollMax) {
		waited := c.Now().Sub(start)
		switch done, err := try(); {
		case err != nil:
			return waited, err
		case done:
			return waited, nil
		case waited >= limit:
			return waited, ErrTimeout
		}
		c.Sleep(min(pause, limit-waited))
	}
}

// until waits until the bits of mask in a register are want. The error says what it waited for.
func (m *MAC) until(op string, off, mask, want uint32, limit time.Duration) error {
	var v uint32
	waited, err := wait(m.clock, limit, func() (bool, error) {
		if v = m.reg.Load32(off); v == allOnes {
			return false, ErrGone
		}
		return v&mask == want, nil
	})
	if err != nil {
		return &Error{Op: op, Reg: registerName(off), Mask: mask, Last: v, Wait: waited, Err: err}
	}
	return nil
}

// syncGap is the time between two writes to one of the registers that are handed to the clock of the MII: four of its cycles,
// 1.6 µs at 10 Mbit/s, or the second is lost (Intel SoC EMAC, alt_emac.h, notes on the MAC's registers). On Amlogic parts two
// writes in a row to the configuration register, even of the same value, have been seen to leave the transmitter dead (Jerome
// Brunet, linux-amlogic and netdev lists, 2022).
const syncGap = 2 * time.Microsecond

// syncRegs writes the registers that are synchronised into another clock: configuration, filter, hash, flow control, VLAN and
// addresses. It leaves out writes that change nothing and keeps those to one register apart. MAC.mu guards it.
type syncRegs struct {
	reg   Registers
	clock Clock
	last  map[uint32]syncWrite
}

type syncWrite struct {
	value   uint32
	known   bool // the register holds value
	written bool
	at      time.Time // of the last write
}

func newSyncRegs(r Registers, c Clock) syncRegs {
	return syncRegs{reg: r, clock: c, last: make(map[uint32]syncWrite)}
}

// write makes the register hold v.
func (s *syncRegs) write(off, v uint32) {
	if w := s.last[off]; !w.known || w.value != v {
		s.store(off, v)
	}
}

// pair makes two registers hold high and low. The write of the low one hands both over, so when one has changed both are
// written, the high one first.
func (s *syncRegs) pair(off uint32, high, low uint32) {
	h, l := s.last[off], s.last[off+4]
	if h.known && l.known && h.value == high && l.value == low {
		return
	}
	s.store(off, high)
	s.store(off+4, low)
}

// store writes v whatever the register holds.
func (s *syncRegs) store(off, v uint32) {
	if w := s.last[off]; w.written {
		if since := s.clock.Now().Sub(w.at); since < syncGap {
			s.clock.Sleep(syncGap - since)
		}
	}
	s.reg.Store32(off, v)
	s.last[off] = syncWrite{value: v, known: true, written: true, at: s.clock.Now()}
}

// forget says that the registers hold something else than was written: a software reset. The times stay.
func (s *syncRegs) forget() {
	for off, w := range s.last {
		w.known = false
		s.last[off] = w
	}
}

// assume says that the register was read and holds v.
func (s *syncRegs) assume(off, v uint32) {
	w := s.last[off]
	w.value, w.known = v, true
	s.last[off] = w
}
