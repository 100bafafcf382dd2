package sim

import (
	"sync/atomic"
	"time"
)

// BoardStats are cumulative counts since the board was made. Frames and bytes are as on the wire, without preamble, with
// padding and without FCS.
type BoardStats struct {
	TXFrames, TXBytes uint64 // put on the wire
	RXFrames, RXBytes uint64 // written to memory whole

	TXNoLink  uint64 // sent while the link was down
	TXSpeed   uint64 // sent while the MAC's speed was not the PHY's
	TXAborted uint64 // underflow, jabber, flushed

	RXDropDisabled   uint64 // receiver off, no clock, link down, dead
	RXDropSpeed      uint64 // the MAC's speed was not the PHY's
	RXDropFilter     uint64 // address filter
	RXDropControl    uint64 // MAC control frames not passed on
	RXDropCRC        uint64 // CRC and other line errors
	RXDropRunt       uint64 // shorter than 64 bytes
	RXDropGiant      uint64 // dropped as giant, or cut by the watchdog
	RXDropChecksum   uint64 // checksum engine
	RXDropDescriptor uint64 // no receive descriptor: counted in the missed frame register
	RXDropOverflow   uint64 // receive FIFO overflow
	RXTruncated      uint64 // cut because the descriptors ended within a frame

	TXKicks, RXKicks                        uint64 // poll demands
	DMADescriptorReads, DMADescriptorWrites uint64 // by the engines
	CPUDescriptorReads, CPUDescriptorWrites uint64 // words of a running ring, by the driver
	RegisterReads, RegisterWrites           uint64
	MDIOReads, MDIOWrites                   uint64
	Interrupts                              uint64 // times that the driver was told
	InterruptsLost                          uint64 // by fault
	SoftResets                              uint64
	Violations                              uint64
}

// RXDrops is the sum of all frames that arrived and were not written to memory.
func (s BoardStats) RXDrops() uint64 {
	return s.RXDropDisabled + s.RXDropSpeed + s.RXDropFilter + s.RXDropControl + s.RXDropCRC + s.RXDropRunt +
		s.RXDropGiant + s.RXDropChecksum + s.RXDropDescriptor + s.RXDropOverflow
}

// DirectionStats count one direction of a cable.
type DirectionStats struct {
	Frames, Bytes uint64 // put on the wire, bytes without FCS
	Damaged       uint64 // arrived with bit errors
	Lost          uint64 // did not arrive: loss rate, cable unplugged
	Dropped       uint64 // arrived where there was no room: a board's FIFO or ring, a host's or TAP interface's queue
}

// CableStats are cumulative counts since the cable was connected.
type CableStats struct {
	AToB, BToA DirectionStats
	// HostStall is by how much the schedule of the wire had to be shifted because the machine ran the simulator too late
	// to catch up. Timing measured with more than 1 % of it is void.
	HostStall time.Duration
	// Elapsed is the simulated time since the cable was connected, without HostStall.
	Elapsed time.Duration
}

// counters are BoardStats as they are kept. What the engines count is guarded by the board's lock; what the driver's side
// counts is atomic and lies on other cache lines, since the two run on different CPUs.
type counters struct {
	txFrames, txBytes, rxFrames, rxBytes                                           uint64
	txNoLink, txSpeed, txAborted                                                   uint64
	dropDisabled, dropSpeed, dropFilter, dropControl, dropCRC, dropRunt, dropGiant uint64
	dropChecksum, dropDescriptor, dropOverflow, truncated                          uint64
	dmaReads, dmaWrites, mdioReads, mdioWrites, softResets                         uint64

	_ cacheLine

	txKicks, rxKicks, cpuReads, cpuWrites, regReads, regWrites atomic.Uint64
	interrupts, interruptsLost, violations                     atomic.Uint64
}

// cacheLine keeps what is before it from sharing a cache line with what is behind it.
type cacheLine [64]byte

// Stats returns the board's counts so far.
func (b *Board) Stats() BoardStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &b.cnt
	return BoardStats{
		TXFrames: c.txFrames, TXBytes: c.txBytes, RXFrames: c.rxFrames, RXBytes: c.rxBytes,
		TXNoLink: c.txNoLink, TXSpeed: c.txSpeed, TXAborted: c.txAborted,
		RXDropDisabled: c.dropDisabled, RXDropSpeed: c.dropSpeed, RXDropFilter: c.dropFilter,
		RXDropControl: c.dropControl, RXDropCRC: c.dropCRC, RXDropRunt: c.dropRunt, RXDropGiant: c.dropGiant,
		RXDropChecksum: c.dropChecksum, RXDropDescriptor: c.dropDescriptor, RXDropOverflow: c.dropOverflow,
		RXTruncated: c.truncated, DMADescriptorReads: c.dmaReads, DMADescriptorWrites: c.dmaWrites,
		MDIOReads: c.mdioReads, MDIOWrites: c.mdioWrites, SoftResets: c.softResets,
		TXKicks: c.txKicks.Load(), RXKicks: c.rxKicks.Load(),
		CPUDescriptorReads: c.cpuReads.Load(), CPUDescriptorWrites: c.cpuWrites.Load(),
		RegisterReads: c.regReads.Load(), RegisterWrites: c.regWrites.Load(),
		Interrupts: c.interrupts.Load(), InterruptsLost: c.interruptsLost.Load(), Violations: c.violations.Load(),
	}
}
