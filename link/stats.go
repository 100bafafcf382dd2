package link

import (
	"reflect"
	"sync/atomic"

	"dwnet/hw"
)

// counters are the endpoint's own counts. All are written with atomics, by writers and by the poll loop.
type counters struct {
	txFrames, txBytes, txGSOPackets                   atomic.Uint64
	txKicks, txHandovers, txRingFull                  atomic.Uint64
	txQueueFull, txTooLong, txShort, txBadGSO         atomic.Uint64
	txLinkDown, txClosed, txErrors, txFlushed         atomic.Uint64
	rxPackets, rxBytes, rxMerged, rxThinned           atomic.Uint64
	rxShort, rxTooLong, rxDetached, rxFiltered, rxLLC atomic.Uint64
	rxTagged, rxChecksum, rxOverflows, rxUnavailable  atomic.Uint64
	txUnderflows, txPaused, txRekicks, txRestarts     atomic.Uint64
	rxDead, resets, resetsFailed, fatalErrors, gone   atomic.Uint64
	hardwareErrors, linkChanges                       atomic.Uint64
	wakeups                                           [3]atomic.Uint64 // by hw.Wakeup
	linkSpeed                                         atomic.Int32
	linkDuplex                                        atomic.Bool
}

// Stats are cumulative counts since the endpoint was made. Bytes are of frames, with Ethernet header and without FCS.
type Stats struct {
	TXFrames     uint64 // given to the MAC
	TXBytes      uint64
	TXGSOPackets uint64 // packets cut into more than one frame
	TXKicks      uint64 // doorbells; a burst needs one
	TXHandovers  uint64 // writers that left the rest to the poll loop
	TXRingFull   uint64 // times the pump found no room in the ring

	// Packets that were not sent.
	TXQueueFull uint64 // refused: the queue was at its limit
	TXTooLong   uint64 // larger than the MTU, or its segments are
	TXShort     uint64 // no room for an Ethernet header
	TXBadGSO    uint64 // asked for segmentation that cannot be done
	TXLinkDown  uint64 // the link was down, and it was not TCP
	TXClosed    uint64 // refused or dropped because the endpoint was closed
	TXErrors    uint64 // refused by the ring
	TXFlushed   uint64 // frames lost in the ring by a recovery

	RXPackets uint64 // frames for this host
	RXBytes   uint64
	RXMerged  uint64 // segments merged into the one before
	RXThinned uint64 // ACKs dropped because a later one supersedes them

	// Frames that were received and not delivered. Those that the MAC marked as bad are in RXRing.
	RXShort    uint64 // no whole Ethernet header
	RXTooLong  uint64 // larger than MTU and one VLAN tag allow
	RXDetached uint64 // no stack is attached
	RXFiltered uint64 // for another station or a multicast group not joined
	RXLLC      uint64 // 802.3 length frames
	RXChecksum uint64 // wrong IP, TCP, UDP or ICMP checksum

	RXTagged      uint64 // frames with a VLAN tag, which the stack does not know
	RXOverflows   uint64 // receive FIFO overflow interrupts
	RXUnavailable uint64 // times the receive ring had no free slot
	TXUnderflows  uint64 // transmit FIFO underflows

	TXPaused     uint64 // watchdog periods in which the peer's pause frames held the transmitter
	TXRekicks    uint64 // recovery, stage one: another doorbell
	TXRestarts   uint64 // stage two: transmit engine restarted
	Resets       uint64 // stage three: whole MAC reset
	ResetsFailed uint64
	RXDead       uint64 // resets because the receiver was dead
	FatalErrors  uint64 // fatal bus errors
	Gone         uint64 // register reads that returned all ones

	HardwareErrors uint64 // other failed operations, see the log
	LinkChanges    uint64

	WakeupsTimeout   uint64 // of the poll loop, by reason
	WakeupsInterrupt uint64
	WakeupsCall      uint64

	QueuePackets int // waiting now
	QueueBytes   int
	RingSlots    int // in the transmit ring now

	TXRing hw.TXStats
	RXRing hw.RXStats
	MAC    hw.Counters
}

// Stats reads all counters, those of the MAC included.
func (e *Endpoint) Stats() Stats {
	c := &e.stats
	s := Stats{
		TXFrames: c.txFrames.Load(), TXBytes: c.txBytes.Load(), TXGSOPackets: c.txGSOPackets.Load(),
		TXKicks: c.txKicks.Load(), TXHandovers: c.txHandovers.Load(), TXRingFull: c.txRingFull.Load(),
		TXQueueFull: c.txQueueFull.Load(), TXTooLong: c.txTooLong.Load(), TXShort: c.txShort.Load(),
		TXBadGSO: c.txBadGSO.Load(), TXLinkDown: c.txLinkDown.Load(), TXClosed: c.txClosed.Load(),
		TXErrors: c.txErrors.Load(), TXFlushed: c.txFlushed.Load(),
		RXPackets: c.rxPackets.Load(), RXBytes: c.rxBytes.Load(), RXMerged: c.rxMerged.Load(), RXThinned: c.rxThinned.Load(),
		RXShort: c.rxShort.Load(), RXTooLong: c.rxTooLong.Load(), RXDetached: c.rxDetached.Load(),
		RXFiltered: c.rxFiltered.Load(), RXLLC: c.rxLLC.Load(), RXTagged: c.rxTagged.Load(), RXChecksum: c.rxChecksum.Load(),
		RXOverflows: c.rxOverflows.Load(), RXUnavailable: c.rxUnavailable.Load(), TXUnderflows: c.txUnderflows.Load(),
		TXPaused: c.txPaused.Load(), TXRekicks: c.txRekicks.Load(), TXRestarts: c.txRestarts.Load(),
		Resets: c.resets.Load(), ResetsFailed: c.resetsFailed.Load(), RXDead: c.rxDead.Load(),
		FatalErrors: c.fatalErrors.Load(), Gone: c.gone.Load(),
		HardwareErrors: c.hardwareErrors.Load(), LinkChanges: c.linkChanges.Load(),
		WakeupsTimeout:   c.wakeups[hw.WakeTimeout].Load(),
		WakeupsInterrupt: c.wakeups[hw.WakeInterrupt].Load(),
		WakeupsCall:      c.wakeups[hw.WakeCall].Load(),
		RingSlots:        e.mac.TX().Pending(),
		TXRing:           e.mac.TX().Stats(), RXRing: e.mac.RX().Stats(), MAC: e.mac.Counters(),
	}
	s.QueuePackets, s.QueueBytes = e.queue.length()
	return s
}

// Drops is the number of packets and frames that this endpoint or the MAC below it lost or refused, in either direction: for
// want of room, with a wrong checksum or length, or in a recovery. Frames filtered on purpose, and those that the wire had
// damaged (MAC.RXCRCError), are not among them.
func (s Stats) Drops() uint64 {
	return s.TXQueueFull + s.TXTooLong + s.TXShort + s.TXBadGSO + s.TXLinkDown + s.TXErrors + s.TXFlushed +
		s.RXShort + s.RXTooLong + s.RXChecksum + s.MAC.RXMissed + s.MAC.RXFIFOOverflow
}

// Each calls f for every counter, in the order of the fields, with names such as "TXFrames" and "MAC.RXMissed".
func (s Stats) Each(f func(name string, value uint64)) {
	each("", reflect.ValueOf(s), f)
}

func each(prefix string, v reflect.Value, f func(string, uint64)) {
	for i := range v.NumField() {
		name := prefix + v.Type().Field(i).Name
		switch field := v.Field(i); field.Kind() {
		case reflect.Struct:
			each(name+".", field, f)
		case reflect.Uint64:
			f(name, field.Uint())
		case reflect.Int:
			f(name, uint64(field.Int()))
		}
	}
}
