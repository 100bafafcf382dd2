package sim

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Rule names one thing that a driver must not do. Breaking it is reported as a [Violation]; what the simulated hardware
// then does is what the real one is documented, or known from bug reports, to do.
type Rule uint8

const (
	RuleNone Rule = iota

	// RuleLostKick: OWN was set on the very descriptor at which the transmit engine is suspended, and no transmit poll
	// demand followed within [LostKickTime] of board time. This is what "kick before OWN" looks like from the device.
	RuleLostKick
	// RuleOwnedStore: the CPU stored to a descriptor that the running engine owns.
	RuleOwnedStore
	// RuleWriteTooFast: a double-synchronised MAC register was written twice within four cycles of the GMII clock.
	RuleWriteTooFast
	// RuleStartOrder: the MAC's receiver or transmitter was enabled before its DMA engine was started, or an engine was
	// started without a list base since the last reset.
	RuleStartOrder
	// RuleBaseWhileRunning: a list base was written while its engine was not stopped.
	RuleBaseWhileRunning
	// RuleTSFWhileRunning: transmit store-and-forward was changed while the transmit engine was not stopped.
	RuleTSFWhileRunning
	// RuleUseAfterClose: a register or DMA memory was accessed through a port that had been closed.
	RuleUseAfterClose
	// RuleUnknownRegister: an offset that is no register was accessed, or a register of an absent block was written.
	RuleUnknownRegister
	// RuleReadOnlyWrite: a read-only register was written.
	RuleReadOnlyWrite
	// RuleReservedBits: a reserved bit of a register was written as one.
	RuleReservedBits
	// RuleMDIOBusy: the MDIO registers were written, or the data register read, during a transaction.
	RuleMDIOBusy
	// RuleMDC: an MDIO transaction was started with a divider that makes MDC faster than 2.5 MHz (IEEE 802.3 22.2.2.11).
	RuleMDC
	// RuleFlushBusy: the operation mode register was written while it was flushing the transmit FIFO.
	RuleFlushBusy
	// RuleResetBusy: a register was written while the software reset was under way.
	RuleResetBusy
	// RuleMixedChain: end-of-ring and second-address-chained were both used in one descriptor list.
	RuleMixedChain
	// RuleBufferSize: a buffer size that the engine cannot use: not a multiple of the bus width (receive), nothing at all,
	// or a second buffer size with the chained bit.
	RuleBufferSize
	// RuleFrameSize: a frame to be sent is shorter than an Ethernet header.
	RuleFrameSize
	// RuleDMAAddress: an engine was sent to a descriptor or buffer that is not inside one allocated block.
	RuleDMAAddress
	// RuleOwnOrder: the first descriptor of a frame was given to the engine before all others of the frame.
	RuleOwnOrder
	// RuleFirstLast: first- and last-segment bits do not delimit frames.
	RuleFirstLast
	// RuleStaleDescriptor: a descriptor was given to an engine with old status bits beside OWN.
	RuleStaleDescriptor
	// RuleNoBarrier: OWN was stored without a barrier after the other words of that descriptor.
	RuleNoBarrier
	// RulePBL: an illegal burst length.
	RulePBL
	// RuleMisalignedBase: a list base with bits set below the bus width, which the hardware drops.
	RuleMisalignedBase
	// RuleCICWithoutTSF: checksum insertion was asked for in threshold mode.
	RuleCICWithoutTSF
	// RuleChecksumTooBig: checksum insertion was asked for in a frame that does not fit the transmit FIFO beside a burst.
	RuleChecksumTooBig
	// RuleFlowThreshold: flow control thresholds that the FIFO cannot honour.
	RuleFlowThreshold
	// RuleAddressOrder: the receiver was enabled while a MAC address high register waited for its low half.
	RuleAddressOrder
	// RuleAccessMode: the device was addressed at an offset that is not a multiple of four or beyond its window.
	RuleAccessMode

	ruleCount
)

var ruleNames = [ruleCount]string{
	RuleNone:             "none",
	RuleLostKick:         "lost kick",
	RuleOwnedStore:       "store to owned descriptor",
	RuleWriteTooFast:     "register written twice too fast",
	RuleStartOrder:       "start order",
	RuleBaseWhileRunning: "list base while running",
	RuleTSFWhileRunning:  "TSF changed while running",
	RuleUseAfterClose:    "use after close",
	RuleUnknownRegister:  "unknown register",
	RuleReadOnlyWrite:    "write to read-only register",
	RuleReservedBits:     "reserved bits",
	RuleMDIOBusy:         "MDIO access while busy",
	RuleMDC:              "MDC too fast",
	RuleFlushBusy:        "operation mode while flushing",
	RuleResetBusy:        "write during software reset",
	RuleMixedChain:       "chain and ring mixed",
	RuleBufferSize:       "buffer size",
	RuleFrameSize:        "frame size",
	RuleDMAAddress:       "DMA outside allocated memory",
	RuleOwnOrder:         "OWN order",
	RuleFirstLast:        "first/last segment",
	RuleStaleDescriptor:  "stale descriptor status",
	RuleNoBarrier:        "no barrier before OWN",
	RulePBL:              "burst length",
	RuleMisalignedBase:   "misaligned list base",
	RuleCICWithoutTSF:    "checksum insertion without store-and-forward",
	RuleChecksumTooBig:   "checksum insertion beyond the FIFO",
	RuleFlowThreshold:    "flow control thresholds",
	RuleAddressOrder:     "MAC address order",
	RuleAccessMode:       "misaligned register access",
}

func (r Rule) String() string {
	if r < ruleCount {
		return ruleNames[r]
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// Rules lists every rule, in the order of their values.
func Rules() []Rule {
	all := make([]Rule, 0, ruleCount-1)
	for r := RuleNone + 1; r < ruleCount; r++ {
		all = append(all, r)
	}
	return all
}

// Violation is one breach of a [Rule] by the driver.
type Violation struct {
	Rule   Rule
	Time   time.Time // on the board's clock
	Detail string    // what was accessed and how, with numbers
}

func (v Violation) String() string { return v.Rule.String() + ": " + v.Detail }

// violations collects what the driver did wrong. It has a lock of its own, so that it can be told from anywhere.
type violations struct {
	b       *Board
	waiting atomic.Bool // there are some to call OnViolation with

	mu    sync.Mutex
	all   []Violation
	calls []Violation
}

// violate records a breach. OnViolation is called by the next flush.
func (b *Board) violate(r Rule, format string, args ...any) {
	b.cnt.violations.Add(1)
	v := Violation{Rule: r, Time: b.clock.Now(), Detail: b.opts.Name + ": " + fmt.Sprintf(format, args...)}
	b.viol.mu.Lock()
	defer b.viol.mu.Unlock()
	if len(b.viol.all) < b.opts.MaxViolations {
		b.viol.all = append(b.viol.all, v)
		if b.opts.OnViolation != nil {
			b.viol.calls = append(b.viol.calls, v)
			b.viol.waiting.Store(true)
		}
	}
}

// flush calls OnViolation for what happened since the last flush. No lock is held.
func (b *Board) flush() {
	if !b.viol.waiting.Load() {
		return
	}
	b.viol.mu.Lock()
	calls := b.viol.calls
	b.viol.calls = nil
	b.viol.waiting.Store(false)
	b.viol.mu.Unlock()
	for _, v := range calls {
		b.opts.OnViolation(v)
	}
}

// Violations returns what the driver has done wrong so far, oldest first, at most Options.MaxViolations of them.
func (b *Board) Violations() []Violation {
	b.viol.mu.Lock()
	defer b.viol.mu.Unlock()
	return append([]Violation(nil), b.viol.all...)
}

// ClearViolations forgets them.
func (b *Board) ClearViolations() {
	b.viol.mu.Lock()
	defer b.viol.mu.Unlock()
	b.viol.all = nil
}
