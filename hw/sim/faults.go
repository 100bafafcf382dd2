package sim

import (
	"sync/atomic"
	"time"
)

// Bit names a bit that Faults.Freeze can hold.
type Bit uint8

const (
	BitGB     Bit = iota // GMII address: a transaction never ends
	BitSWR               // bus mode: the reset never ends
	BitFTF               // operation mode: the flush never ends
	BitCNTRST            // MMC control: stays set
	BitFCB               // flow control: the PAUSE frame is never sent
	BitST                // the transmit engine does not stop
	BitSR                // the receive engine does not stop
	bitCount
)

// TXHang says how the transmit engine hangs.
type TXHang uint8

const (
	TXHangNone    TXHang = iota
	TXHangDeaf           // poll demands have no effect
	TXHangStatus         // frames leave, but their status is never written back
	TXHangStopped        // nothing leaves
)

// BusError is the EB field of the status register, which says which access failed.
type BusError uint8

const (
	BusErrorRXData            BusError = 0
	BusErrorTXData            BusError = 3
	BusErrorRXDescriptorWrite BusError = 4
	BusErrorTXDescriptorWrite BusError = 5
	BusErrorRXDescriptorRead  BusError = 6
	BusErrorTXDescriptorRead  BusError = 7
)

// Faults are a board's fault switches. All may be used at any time from any goroutine, except from a callback.
type Faults struct {
	b *Board

	loseInts     atomic.Int64
	loseEvery    atomic.Int64
	loseCount    atomic.Int64
	loseKicks    atomic.Int64
	delay        atomic.Int64
	bandwidth    atomic.Int64
	freeze       [bitCount]atomic.Bool
	stuckReset   atomic.Bool
	noRXClock    atomic.Bool
	phyAbsent    atomic.Bool
	phyDown      atomic.Bool
	deadOnOvf    atomic.Bool
	txHang       atomic.Uint32
	gone         atomic.Bool
	scribble     atomic.Bool
	syncDoorbell atomic.Bool
	dropFast     atomic.Bool
	damage       atomic.Uint64 // probability as a 64-bit threshold
	badLPA       atomic.Int64
}

// Clear switches every fault off. What has already broken stays broken: a dead engine needs a reset.
func (f *Faults) Clear() {
	f.loseInts.Store(0)
	f.loseEvery.Store(0)
	f.loseKicks.Store(0)
	f.delay.Store(0)
	for i := range f.freeze {
		f.freeze[i].Store(false)
	}
	for _, s := range []*atomic.Bool{&f.stuckReset, &f.deadOnOvf, &f.gone, &f.scribble, &f.syncDoorbell, &f.dropFast} {
		s.Store(false)
	}
	f.damage.Store(0)
	f.badLPA.Store(0)
	f.SetDMABandwidth(0)
	f.SetTXHang(TXHangNone)
	f.b.arena.failNext(0)
	f.SetStoreBuffer(false)
	f.SetNoRXClock(false)
	f.SetPHYAbsent(false)
	f.SetPHYStuckDown(false)
}

// LoseInterrupts loses the next n interrupts: each time the line would be reported, it is not until another event comes
// or the driver enables the interrupt anew.
func (f *Faults) LoseInterrupts(n int) { f.loseInts.Store(int64(n)) }

// LoseEveryInterrupt loses every n-th interrupt; 0 switches it off.
func (f *Faults) LoseEveryInterrupt(n int) {
	f.loseCount.Store(0)
	f.loseEvery.Store(int64(n))
}

// LoseKicks loses the next n transmit poll demands.
func (f *Faults) LoseKicks(n int) { f.loseKicks.Store(int64(n)) }

// SetRegisterDelay makes each register access take d of the board's time; 0 is none.
func (f *Faults) SetRegisterDelay(d time.Duration) { f.delay.Store(int64(max(d, 0))) }

// SetDMABandwidth sets what each engine can move, in bytes per second; 0 restores the board's.
func (f *Faults) SetDMABandwidth(bytesPerSecond int64) {
	if bytesPerSecond > 0 {
		bytesPerSecond = max(bytesPerSecond, minDMARate)
	}
	f.bandwidth.Store(bytesPerSecond)
}

// SetStuckReset makes the software reset never end.
func (f *Faults) SetStuckReset(on bool) { f.stuckReset.Store(on) }

// SetNoRXClock takes the receive clock away: the link is down and a software reset does not end.
func (f *Faults) SetNoRXClock(on bool) {
	if f.noRXClock.Swap(on) != on {
		f.b.renegotiate()
	}
}

// SetPHYAbsent takes the PHY off the MDIO bus, which then reads as ones, and with it its clock.
func (f *Faults) SetPHYAbsent(on bool) {
	if f.phyAbsent.Swap(on) != on {
		f.b.renegotiate()
	}
}

// SetPHYStuckDown powers the PHY down and ignores attempts to wake it.
func (f *Faults) SetPHYStuckDown(on bool) {
	if f.phyDown.Swap(on) != on {
		f.b.renegotiate()
	}
}

// SetDeadAfterOverflow makes the next receive FIFO overflow latch the receive engine dead: it looks as if it ran, and
// every frame is counted as missed, until a software reset.
func (f *Faults) SetDeadAfterOverflow(on bool) { f.deadOnOvf.Store(on) }

// KillRX makes the receive engine dead as after such an overflow.
func (f *Faults) KillRX() {
	f.b.mu.Lock()
	f.b.rx.dead = true
	f.b.mu.Unlock()
}

// InjectBusError makes an engine fail as on a bus error.
func (f *Faults) InjectBusError(e BusError) {
	f.b.mu.Lock()
	f.b.fatal(e)
	f.b.mu.Unlock()
}

// InjectRU raises "receive buffer unavailable" although there is one.
func (f *Faults) InjectRU() { f.b.raise(stRU) }

// InjectTU raises "transmit buffer unavailable" although there may be one.
func (f *Faults) InjectTU() { f.b.raise(stTU) }

// InjectUNF makes the next frame sent underflow: it leaves damaged, its status says so and the engine suspends.
func (f *Faults) InjectUNF() {
	f.b.mu.Lock()
	f.b.tx.underflow = true
	f.b.mu.Unlock()
}

// InjectStatus raises any of the latched bits of the status register.
func (f *Faults) InjectStatus(bits uint32) { f.b.raise(bits & stLatched) }

// SetTXHang makes the transmit engine hang.
func (f *Faults) SetTXHang(h TXHang) {
	b := f.b
	b.mu.Lock()
	f.txHang.Store(uint32(h))
	b.tx.hungAt = 0
	b.tx.notBefore = b.wireNow()
	b.tx.free = max(b.tx.free, b.tx.notBefore)
	b.mu.Unlock()
	b.pokeNow()
}

// Freeze holds a bit, so that what it stands for never ends.
func (f *Faults) Freeze(bit Bit, on bool) {
	if bit < bitCount {
		f.freeze[bit].Store(on)
	}
}

// SetGone makes every register read as ones, as a device does that has lost its power or its bus.
func (f *Faults) SetGone(on bool) { f.gone.Store(on) }

// SetStoreBuffer makes the device see the driver's stores to DMA memory only after a barrier.
func (f *Faults) SetStoreBuffer(on bool) { f.b.arena.stores.set(on) }

// SetScribble makes the engines overwrite the other words of each descriptor that they give back.
func (f *Faults) SetScribble(on bool) { f.scribble.Store(on) }

// FailAlloc makes the n-th next call of Alloc fail, once; 0 cancels.
func (f *Faults) FailAlloc(n int) { f.b.arena.failNext(n) }

// SetSyncDoorbell makes a transmit poll demand return only once the engine has done all it can, so that frames may be
// complete before the driver's store returns.
func (f *Faults) SetSyncDoorbell(on bool) { f.syncDoorbell.Store(on) }

// SetDropFastWrites makes the MAC lose a write that breaks RuleWriteTooFast, as the hardware may.
func (f *Faults) SetDropFastWrites(on bool) { f.dropFast.Store(on) }

// SetRXDamageRate damages a share of the frames that arrive at this board, as if by the PHY.
func (f *Faults) SetRXDamageRate(rate float64) { f.damage.Store(threshold(rate)) }

// CorruptLPA makes the next n autonegotiations end with a link partner word without abilities.
func (f *Faults) CorruptLPA(n int) { f.badLPA.Store(int64(n)) }

func (f *Faults) frozen(b Bit) bool { return f.freeze[b].Load() }

func (f *Faults) slow() {
	if d := f.delay.Load(); d > 0 {
		f.b.clock.Sleep(time.Duration(d))
	}
}

// take uses up one of a number of coming events.
func take(n *atomic.Int64) bool {
	for {
		v := n.Load()
		if v <= 0 {
			return false
		}
		if n.CompareAndSwap(v, v-1) {
			return true
		}
	}
}

func (f *Faults) losesKick() bool {
	return take(&f.loseKicks) || TXHang(f.txHang.Load()) == TXHangDeaf
}

func (f *Faults) loses() bool {
	if take(&f.loseInts) {
		return true
	}
	n := f.loseEvery.Load()
	return n > 0 && f.loseCount.Add(1)%n == 0
}

// failNext makes the n-th next allocation fail.
func (a *arena) failNext(n int) {
	a.mu.Lock()
	a.failIn = n
	a.mu.Unlock()
}
