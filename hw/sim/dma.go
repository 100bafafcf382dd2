package sim

import "math/bits"

// powerOn puts the board into the state after power-on reset, which is over by the time a driver looks.
func (b *Board) powerOn() {
	b.resetRegisters()
	b.reg[mustSlot(regBusMode)] &^= busSWR
	b.resetAt, b.flushAt = never, never
}

// resetRegisters gives every register its reset value and stops the engines. b.mu is held.
func (b *Board) resetRegisters() {
	for i, spec := range b.file {
		if spec != nil {
			b.reg[i] = spec.Reset
		}
		b.written[i] = -1 << 62
	}
	b.flushAt = never
	b.wake, b.wakePos = [wakeFilterWords]uint32{}, 0
	b.mmc = mmc{}
	b.mdio.reset()
	b.phy.changed = false
	b.resetAddresses()
	b.resetEngines()
	b.intEnable.Store(0)
	b.status.Store(0)
	b.extra.Store(0)
}

// resetEngines stops both engines and empties the FIFOs. b.mu is held.
func (b *Board) resetEngines() {
	b.tx.reset(b)
	b.rx.reset(b)
}

// softReset is a write of SWR. Every register is reset at once; the bit clears once all clock domains have left reset,
// which takes a receive clock from the PHY. b.mu is held.
func (b *Board) softReset() {
	psWrong := b.needsPS() && b.reg[mustSlot(regConfig)]&cfgPS == 0
	b.resetRegisters()
	b.reg[mustSlot(regBusMode)] |= busSWR
	b.resetAt = b.clock.nanos() + int64(resetTime)
	if psWrong {
		b.resetAt = never
	}
	b.busy.Store(true)
	b.cnt.softResets++
}

// retryReset reports whether a write may be done although a software reset is under way: one that hangs because PS does
// not fit the PHY is cured by setting PS, which the reset itself has cleared, and asking again.
func (b *Board) retryReset(off, v uint32) bool {
	return b.needsPS() && (off == regConfig && (v&cfgPS != 0 || b.resetAt == never) ||
		b.resetAt == never && off == regBusMode && v&busSWR != 0)
}

// needsPS reports whether the PHY's clock is a 10/100 one, which a MAC set to 1000 cannot reset with (U-Boot
// drivers/net/designware.c).
func (b *Board) needsPS() bool {
	return b.opts.PHYMode == "mii" || b.opts.PHYMode == "rmii"
}

// resetting reports whether a software reset is under way. b.mu is held.
func (b *Board) resetting() bool { return b.reg[mustSlot(regBusMode)]&busSWR != 0 }

// settle ends what has had its time: software reset, FIFO flush. b.mu is held.
func (b *Board) settle() {
	if b.busy.Load() {
		i := mustSlot(regBusMode)
		if b.clock.nanos() >= b.resetAt && b.phy.rxClock() && !b.faults.frozen(BitSWR) && !b.faults.stuckReset.Load() {
			b.reg[i] &^= busSWR
			b.resetAt = never
			b.busy.Store(false)
		}
	}
	if b.flushAt != never && b.clock.nanos() >= b.flushAt && !b.lane.flushing && !b.faults.frozen(BitFTF) {
		b.flushAt = never
		b.reg[mustSlot(regOpMode)] &^= opFTF
	}
}

func legalPBL(n uint32) bool { return n <= 32 && bits.OnesCount32(n) == 1 }

// setBusMode is a write of the bus mode register.
func (b *Board) setBusMode(i int, n, v uint32) {
	if v&busSWR != 0 {
		b.softReset()
		return
	}
	pbl, rpbl := n>>busPBL&63, n>>busRPBL&63
	if !legalPBL(pbl) {
		b.violate(RulePBL, "PBL %d", pbl)
	}
	if n&busUSP != 0 && !legalPBL(rpbl) {
		b.violate(RulePBL, "RPBL %d", rpbl)
	}
	b.reg[i] = n
}

// setBase is a write of a descriptor list base.
func (b *Board) setBase(off uint32, i int, v uint32) {
	low := uint32(b.opts.BusBytes - 1)
	if v&low != 0 {
		b.violate(RuleMisalignedBase, "0x%08x to %s: the low bits are dropped", v, b.file[i].Name)
	}
	b.reg[i] = v &^ low
	state, base := b.txState.Load(), &b.tx.base
	if off == regRXBase {
		state, base = b.rxState.Load(), &b.rx.base
	}
	if state != tsStopped {
		b.violate(RuleBaseWhileRunning, "0x%08x to %s", v, b.file[i].Name)
	}
	base.addr, base.written, base.ever = v&^low, true, true
}

// listBase is a list base register on its way into an engine: it is taken over at the next start.
type listBase struct {
	addr    uint32
	written bool // since the last start
	ever    bool // since the last reset
}

// setOpMode is a write of the operation mode register.
func (b *Board) setOpMode(i int, old, n, v uint32) {
	if b.flushAt != never {
		b.violate(RuleFlushBusy, "0x%08x to Operation_Mode", v)
		return
	}
	if (old^n)&opTSF != 0 && b.txState.Load() != tsStopped {
		b.violate(RuleTSFWhileRunning, "0x%08x to Operation_Mode, was 0x%08x", v, old)
	}
	if n&opEFC != 0 {
		rfa, rfd := n>>opRFA&3, n>>opRFD&3
		if n&opRFA2 != 0 {
			rfa |= 4
		}
		if n&opRFD2 != 0 {
			rfd |= 4
		}
		if rfd < rfa || rfa == 3 && b.opts.RXFIFOBytes == 4096 {
			b.violate(RuleFlowThreshold, "RFA %d RFD %d with a FIFO of %d bytes", rfa, rfd, b.opts.RXFIFOBytes)
		}
	}
	b.reg[i] = n
	if v&opFTF != 0 {
		b.reg[i] |= opFTF
		b.flushAt = b.clock.nanos() + flushTime
		b.tx.flush(b)
	}
	if n&opSR != 0 && b.rxState.Load() == rsStopped {
		b.rx.start(b)
	} else if n&opSR == 0 && b.rxState.Load() != rsStopped {
		b.rx.stop(b)
	}
	b.tx.stopping = n&opST == 0
	if n&opST != 0 && b.txState.Load() == tsStopped {
		b.tx.start(b)
	} else if n&opST == 0 && b.txState.Load() != tsStopped {
		b.tx.tryStop(b)
	}
}

// flushTime is how long a flush of the transmit FIFO takes.
const flushTime = 1000

// fatal is a bus error: the engine that met it stops all access. b.mu is held.
func (b *Board) fatal(e BusError) {
	b.extra.Store(b.extra.Load()&^(7<<stEB) | uint32(e)<<stEB)
	switch e {
	case BusErrorTXData, BusErrorTXDescriptorRead, BusErrorTXDescriptorWrite:
		b.tx.dead = true
	default:
		b.rx.dead = true
	}
	b.raise(stFBI)
}

// kickTX is a transmit poll demand.
func (b *Board) kickTX() {
	b.cnt.txKicks.Add(1)
	if b.faults.losesKick() {
		return
	}
	now := b.clock.nanos()
	b.tx.unkicked.Store(0)
	b.tx.kickAt.CompareAndSwap(0, now+1)
	b.poke(now)
	if b.faults.syncDoorbell.Load() {
		if r := b.runner.Load(); r != nil {
			r.sync()
		}
	}
}

// poke makes the runner look at the board, or gives the board a runner of its own if it is on no cable.
func (b *Board) poke(now int64) {
	if r := b.runner.Load(); r != nil {
		r.pokeAt(now)
		return
	}
	b.ownRunner() // looks at everything when it starts, as a cable's does
}

func (b *Board) pokeNow() { b.poke(b.clock.nanos()) }

// afterStore does what a register write left to be done without the board's lock.
func (b *Board) afterStore() {
	b.mu.Lock()
	relink, wake := b.phy.relink, b.tx.wake
	b.phy.relink, b.tx.wake = false, false
	b.mu.Unlock()
	if relink {
		b.renegotiate()
	}
	if wake {
		b.pokeNow()
	}
}
