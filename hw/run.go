package hw

import (
	"errors"
	"fmt"
)

// quiesce stops what a boot loader may have left running, before its memory is somebody else's: its receive DMA would write
// into it. What does not stop is stopped by the reset that follows.
func (m *MAC) quiesce() {
	m.reg.Store32(RegInterruptEnable, 0)
	op := m.reg.Load32(RegOperationMode)
	if run := uint32(OpSR | OpST); op&run != 0 {
		m.log.Info("DMA was left running, stopping it", "mode", OperationMode(op))
		m.reg.Store32(RegOperationMode, op&^run)
		if err := m.until("stop DMA", RegStatus, causeRSMask|causeTSMask, 0, rxStopLimit); err != nil {
			m.log.Warn("DMA does not stop, resetting it", "err", err)
		}
	}
	if m.reg.Load32(RegMACConfig) != 0 {
		m.sync.store(RegMACConfig, 0)
	}
}

// softwareReset wakes the PHY and resets the whole core. Every register, the station address and the interrupt masks of the
// counters included, is at its reset value afterwards.
func (m *MAC) softwareReset() error {
	// A bus that hangs may be one of the things the reset is for, so that is only held against it afterwards.
	wakeErr := m.wakePHY()
	if err := m.swr(); err != nil {
		return err
	}
	if wakeErr != nil {
		if wakeErr = m.wakePHY(); wakeErr != nil {
			return fmt.Errorf("hw: MDIO after reset: %w", wakeErr)
		}
	}
	return nil
}

// swr asserts SWR and waits until it clears, which it does when every clock domain has left the reset. If it does not, a clock
// is missing, nearly always the receive clock: the PHY is in reset, powered down or wired in another mode.
func (m *MAC) swr() error {
	m.running = false
	// With a MII or RMII PHY the reset only completes while PS is set, and clears PS itself: so it is set before and, if it
	// went, again during the reset (U-Boot drivers/net/designware.c, commit c61221948c30).
	portSelect := uint32(0)
	if !m.info.Mode.gigabit() {
		portSelect = uint32(m.link.config(false) & confSpeed)
		m.sync.store(RegMACConfig, portSelect)
	}
	m.reg.Store32(RegBusMode, m.reg.Load32(RegBusMode)|uint32(BusSWR))
	m.sync.forget()
	if portSelect != 0 && m.reg.Load32(RegMACConfig) != portSelect {
		m.sync.store(RegMACConfig, portSelect)
	}
	err := m.until("software reset", RegBusMode, uint32(BusSWR), 0, resetLimit)
	if e := (*Error)(nil); errors.As(err, &e) && errors.Is(err, ErrTimeout) {
		e.Err = fmt.Errorf("%w, %w", ErrTimeout, ErrNoClock)
		e.Hint = fmt.Sprintf("%v; mode %v; elapsed %v", m.phy, m.info.Mode, e.Wait)
	}
	return err
}

// opMode is the operation mode without SR and ST. Store and forward both ways: checksum insertion needs it to send, and a
// received frame that overflows the FIFO is dropped whole. Pause thresholds, where the FIFO allows flow control at all, are
// 2 KiB of room left to pause and 3 to resume: with 1 KiB, the frame that is on its way when a PAUSE goes out does not fit. A
// FIFO of 4 KiB does not allow more.
func (m *MAC) opMode() OperationMode {
	v := OpRSF | OpTSF | OpOSF
	if m.canPause() {
		v |= OpEFC | 1<<opRFAShift | 2<<opRFDShift
	}
	return v
}

// program sets up everything after a reset, from m's state, and leaves it stopped. The order is that of Linux
// (stmmac_main.c, stmmac_hw_setup); the operation mode is the last register of the DMA (Intel SoC EMAC, alt_emac.h).
func (m *MAC) program() error {
	m.reg.Store32(RegBusMode, uint32(m.bus))
	m.reg.Store32(RegInterruptEnable, 0)
	m.rebuildRings()

	m.writeAddress()
	m.writeConfig()
	if m.checksum && MACConfig(m.reg.Load32(RegMACConfig))&ConfIPC == 0 {
		m.log.Warn("receive checksum engine does not stay on")
		m.checksum = false
		m.writeConfig()
	}
	m.rx.checksum = m.checksum
	m.countEntries()
	m.writeFilter()
	if err := m.writeFlow(); err != nil {
		return err
	}
	m.sync.write(RegVLANTag, 0)

	m.maskMMC()
	if m.feature.hasMMC() {
		m.reg.Store32(RegMMCControl, uint32(MMCReset))
	}
	m.countersRestart()
	if m.cfg.RXWatchdog != 0 {
		m.reg.Store32(RegRXWatchdog, uint32(m.cfg.RXWatchdog))
	}
	m.reg.Store32(RegInterruptMask, uint32(macIntMaskAll))
	m.reg.Store32(RegOperationMode, uint32(m.opMode()))
	return nil
}

// maskMMC keeps the management counters from interrupting. Their masks reset to "not masked", and the line would stay raised
// for good once a counter is half full.
func (m *MAC) maskMMC() {
	if !m.feature.hasMMC() {
		return
	}
	m.reg.Store32(RegMMCRXMask, mmcMaskAll)
	m.reg.Store32(RegMMCTXMask, mmcMaskAll)
	if m.feature.Has(FeatRXChecksum2) {
		m.reg.Store32(RegMMCIPCMask, mmcMaskAll)
	}
}

// rebuildRings empties both rings and tells the stopped DMA where they are. It takes the list bases over when it starts;
// without that it would go on where it was.
func (m *MAC) rebuildRings() {
	m.tx.rebuild()
	m.rx.rebuild()
	m.reg.Store32(RegRXListBase, m.rx.listBase())
	m.reg.Store32(RegTXListBase, m.tx.listBase())
}

// Start empties the rings and starts the MAC: list bases, old causes acknowledged, then SR and ST with the operation mode, and
// RE and TE last, in one write, when there is somewhere for a frame to go. Interrupts stay masked until EnableInterrupts.
// Frames committed before are dropped. Starting a MAC that runs does nothing.
func (m *MAC) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("start")
	}
	if m.running {
		return nil
	}
	// The list bases may only be written while the engines stand still.
	if err := m.until("start", RegStatus, causeRSMask|causeTSMask, 0, rxStopLimit); err != nil {
		return err
	}
	m.rebuildRings()
	m.reg.Store32(RegStatus, causeAck)
	m.reg.Store32(RegOperationMode, uint32(m.opMode()|OpSR|OpST))
	m.running = true
	m.writeConfig()
	return nil
}

// Stop masks the interrupts, lets the frames under way out and the received ones into memory, and stops both engines and the
// MAC. Frames that the DMA has not fetched yet stay in the ring until Start drops them. What does not settle is flushed and,
// in the end, reset with everything restored. It takes a few milliseconds, at most half a second when hardware is stuck.
//
// Without an error the DMA has stopped. Stopping a stopped MAC is allowed.
func (m *MAC) Stop() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("stop")
	}
	err := m.halt()
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	m.log.Warn("does not stop, resetting", "err", err)
	return m.reset()
}

// halt is Stop without the reset. Without an error the DMA has stopped.
func (m *MAC) halt() error {
	m.reg.Store32(RegInterruptEnable, 0)
	if m.running {
		err := m.stopTX()
		m.running = false
		m.writeConfig()
		if err != nil {
			return err // a flush may hang, and the register that stops the receiver must not be written meanwhile
		}
		// A receiver without slots keeps what is in its FIFO for ever, which is no reason not to go on.
		if err := m.until("drain receive FIFO", RegDebug, debugRXFIFO, 0, rxStopLimit); errors.Is(err, ErrGone) {
			return err
		}
		m.reg.Store32(RegOperationMode, uint32(m.opMode()))
	}
	return m.until("stop DMA", RegStatus, causeRSMask|causeTSMask, 0, rxStopLimit)
}

// stopTX stops the transmit engine, with the receiver as it is: ST off, then the engine ends the frame it is at and the MAC
// empties its FIFO. When that takes too long, as under PAUSE frames, the FIFO is flushed.
func (m *MAC) stopTX() error {
	op := m.opMode() | OpSR
	m.reg.Store32(RegOperationMode, uint32(op))
	err := m.until("stop transmit DMA", RegStatus, causeTSMask, 0, txStopLimit)
	if err == nil {
		err = m.until("drain transmit FIFO", RegDebug, debugTX, 0, txStopLimit)
	}
	if err == nil || errors.Is(err, ErrGone) {
		return err
	}
	m.log.Info("flushing the transmit FIFO", "err", err)
	// The register must not be written again before FTF clears.
	m.reg.Store32(RegOperationMode, uint32(op|OpFTF))
	if err := m.until("flush transmit FIFO", RegOperationMode, uint32(OpFTF), 0, flushLimit); err != nil {
		return err
	}
	return m.until("stop transmit DMA", RegStatus, causeTSMask, 0, txStopLimit)
}

// RestartTX restarts the transmit engine alone: it is stopped, the ring emptied and written anew, the list base set again and
// the engine started. Whatever was in the ring is lost. Reception goes on. It is the remedy for a transmitter that stands still
// for no reason; when it fails, Reset is.
func (m *MAC) RestartTX() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("restart transmit")
	}
	if !m.running {
		return &Error{Op: "restart transmit", Hint: "the MAC is stopped", Err: ErrConfig}
	}
	if err := m.stopTX(); err != nil {
		return err
	}
	m.tx.rebuild()
	// Without this the engine would go on at its old descriptor while the ring begins at its first (Linux stmmac_main.c,
	// stmmac_tx_err).
	m.reg.Store32(RegTXListBase, m.tx.listBase())
	m.reg.Store32(RegOperationMode, uint32(m.opMode()|OpSR|OpST))
	return nil
}

// Reset resets the whole core and restores address, filters, link, masks and rings, which are empty afterwards. The MAC is
// stopped then, with interrupts masked: Start it again. The error is that of Open.
func (m *MAC) Reset() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("reset")
	}
	return m.reset()
}

func (m *MAC) reset() error {
	m.countersSuspend()
	m.running = false
	m.reg.Store32(RegInterruptEnable, 0)
	// The engines alone: the other bits must not change while they run, and the register not at all during a flush.
	if op := OperationMode(m.reg.Load32(RegOperationMode)); op&OpFTF == 0 && op&(OpSR|OpST) != 0 {
		m.reg.Store32(RegOperationMode, uint32(op&^(OpSR|OpST)))
	}
	m.writeConfig()
	if err := m.softwareReset(); err != nil {
		return err
	}
	return m.program()
}
