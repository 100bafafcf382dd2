package sim

import "sync/atomic"

// mustSlot is slotOf for a register that exists.
func mustSlot(off uint32) int {
	i, _ := slotOf(off)
	return i
}

// Load32 implements hw.Registers.
func (s *session) Load32(off uint32) uint32 {
	b := s.b
	if s.closed.Load() {
		b.violate(RuleUseAfterClose, "read of register 0x%04x", off)
		b.flush()
		return gone
	}
	b.cnt.regReads.Add(1)
	b.faults.slow()
	v := uint32(gone)
	if !b.faults.gone.Load() {
		v = b.load(off)
	}
	if b.opts.OnAccess != nil {
		b.opts.OnAccess(Access{Time: b.clock.Now(), Off: off, Value: v})
	}
	b.flush()
	return v
}

// Store32 implements hw.Registers.
func (s *session) Store32(off uint32, v uint32) {
	b := s.b
	if s.closed.Load() {
		b.violate(RuleUseAfterClose, "write of 0x%08x to register 0x%04x", v, off)
		b.flush()
		return
	}
	b.cnt.regWrites.Add(1)
	b.faults.slow()
	if !b.faults.gone.Load() {
		b.store(off, v)
	}
	if b.opts.OnAccess != nil {
		b.opts.OnAccess(Access{Time: b.clock.Now(), Off: off, Value: v, Write: true})
	}
	b.flush()
}

func (b *Board) load(off uint32) uint32 {
	switch off {
	case regStatus:
		return b.statusWord()
	case regIntEnable:
		return b.intEnable.Load()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i, spec := b.spec(off, "read")
	if spec == nil {
		return 0
	}
	b.settle()
	switch {
	case spec.Access == AccessAbsent || spec.Access == AccessWO:
		return 0
	case isCounter(off):
		defer b.updateMACInt()
		return b.mmc.read(off)
	}
	switch off {
	case regMIIAddress:
		return b.mdio.address(b)
	case regMIIData:
		return b.mdio.data(b)
	case regDebug:
		return b.debugWord()
	case regWakeFilter:
		v := b.wake[b.wakePos]
		b.wakePos = (b.wakePos + 1) % wakeFilterWords
		return v
	case regPMT:
		v := b.reg[i] | uint32(b.wakePos)<<pmtPointer
		b.reg[i] &^= spec.ReadClear
		b.updateMACInt()
		return v
	case regIntStatus:
		return b.macInt()
	case regRGMIIStatus:
		v := b.phy.inBand()
		b.phy.changed = false
		b.updateMACInt()
		return v
	case regMMCControl:
		return b.mmc.control
	case regMMCIntRX, regMMCIntTX, regIPCInt:
		group := mmcGroupOf(off)
		v := b.mmc.pending[group]
		b.mmc.pending[group] = 0
		b.updateMACInt()
		return v
	case regMMCMaskRX, regMMCMaskTX, regIPCMask:
		return b.mmc.mask[mmcGroupOf(off)]
	case regTXDesc:
		return b.tx.cur
	case regTXBuffer:
		return b.tx.curBuf
	case regRXDesc:
		return b.rx.cur
	case regRXBuffer:
		return b.rx.curBuf
	}
	v := b.reg[i]
	b.reg[i] &^= spec.ReadClear
	return v
}

func mmcGroupOf(off uint32) int {
	switch off {
	case regMMCIntRX, regMMCMaskRX:
		return mmcGroupRX
	case regMMCIntTX, regMMCMaskTX:
		return mmcGroupTX
	}
	return mmcGroupIPC
}

// spec finds a register and reports accesses that hit none.
func (b *Board) spec(off uint32, op string) (int, *RegisterSpec) {
	if off%4 != 0 || off >= windowBytes {
		b.violate(RuleAccessMode, "%s at offset 0x%x", op, off)
		return 0, nil
	}
	i, ok := slotOf(off)
	if !ok || b.file[i] == nil {
		b.violate(RuleUnknownRegister, "%s at offset 0x%04x", op, off)
		return 0, nil
	}
	return i, b.file[i]
}

func (b *Board) store(off, v uint32) {
	if !b.busy.Load() {
		switch off {
		case regStatus:
			b.clearStatus(v)
			return
		case regTXPoll:
			b.kickTX()
			return
		case regRXPoll:
			b.kickRX()
			return
		case regIntEnable:
			if v&^stLatched != 0 {
				b.violate(RuleReservedBits, "0x%08x to Interrupt_Enable", v)
			}
			b.setIntEnable(v & stLatched)
			return
		}
	}
	b.mu.Lock()
	b.storeSlow(off, v)
	b.mu.Unlock()
	b.afterStore()
}

// storeSlow is a write of any register. b.mu is held.
func (b *Board) storeSlow(off, v uint32) {
	i, spec := b.spec(off, "write")
	if spec == nil {
		return
	}
	b.settle()
	if b.resetting() && !b.retryReset(off, v) {
		b.violate(RuleResetBusy, "0x%08x to %s", v, spec.Name)
		return
	}
	switch spec.Access {
	case AccessAbsent:
		b.violate(RuleUnknownRegister, "0x%08x to %s of a block that this MAC does not have", v, spec.Name)
		return
	case AccessRO, AccessRC:
		b.violate(RuleReadOnlyWrite, "0x%08x to %s", v, spec.Name)
		return
	}
	if r := v & spec.Reserved; r != 0 {
		b.violate(RuleReservedBits, "0x%08x to %s: bits 0x%08x", v, spec.Name, r)
	}
	if spec.Sync && b.tooFast(i, spec, v) {
		return
	}
	old := b.reg[i]
	n := old&^spec.Writable | v&spec.Writable
	switch off {
	case regConfig:
		b.reg[i] = n
		b.configChanged(old, n)
	case regMIIAddress:
		b.mdio.command(b, v)
	case regMIIData:
		b.mdio.setData(b, v)
	case regFlowControl:
		b.reg[i] = n
		if v&flowFCB != 0 {
			b.sendPause(uint16(n>>flowPT), i)
		}
	case regWakeFilter:
		b.wake[b.wakePos] = v
		b.wakePos = (b.wakePos + 1) % wakeFilterWords
	case regPMT:
		b.reg[i] = n | v&pmtPowerDown
		if v&pmtFilterReset != 0 {
			b.wakePos = 0
		}
	case regIntMask:
		b.reg[i] = n
		b.updateMACInt()
	case regMMCControl:
		b.mmc.setControl(v&(spec.Writable|spec.SelfClear), b.faults.frozen(BitCNTRST))
	case regMMCMaskRX, regMMCMaskTX, regIPCMask:
		b.mmc.mask[mmcGroupOf(off)] = v & spec.Writable
		b.updateMACInt()
	case regBusMode:
		b.setBusMode(i, n, v)
	case regRXBase, regTXBase:
		b.setBase(off, i, v)
	case regOpMode:
		b.setOpMode(i, old, n, v)
	case regStatus:
		b.clearStatus(v)
	case regTXPoll:
		b.kickTX()
	case regRXPoll:
		b.kickRX()
	case regIntEnable:
		b.setIntEnable(v & stLatched)
	default:
		b.reg[i] = n
		if off >= regAddress0 && off < addressEnd {
			b.addressWritten(off)
		}
	}
}

// Synchronisation of a register into the GMII clock takes four of its cycles (Intel socal/alt_emac.h): by MAC speed.
const (
	sync1000 = 4 * 8
	sync100  = 4 * 40
	sync10   = 4 * 400
)

// tooFast notes a write to a register that crosses clocks and reports whether it is lost.
func (b *Board) tooFast(i int, spec *RegisterSpec, v uint32) bool {
	now := b.clock.nanos()
	last := b.written[i]
	b.written[i] = now
	need := int64(sync1000)
	switch cfg := b.reg[mustSlot(regConfig)]; {
	case cfg&cfgPS == 0:
	case cfg&cfgFES != 0:
		need = sync100
	default:
		need = sync10
	}
	if now-last >= need {
		return false
	}
	b.violate(RuleWriteTooFast, "0x%08x to %s %d ns after the last write, %d ns are needed", v, spec.Name, now-last, need)
	return b.faults.dropFast.Load()
}

// loadWord and storeWord are an engine's accesses to a descriptor word.
func loadWord(m *block, w int) uint32     { return atomic.LoadUint32(&m.words[w]) }
func storeWord(m *block, w int, v uint32) { atomic.StoreUint32(&m.words[w], v) }
