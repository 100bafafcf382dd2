package sim

import "encoding/binary"

// nsPerByte is how long a byte takes at the MAC's speed.
func (b *Board) nsPerByte() int64 { return b.macRate.Load() }

// Nanoseconds for each byte.
const (
	rate1000 = 8
	rate100  = 80
	rate10   = 800
)

func rateOf(mbps int) int64 {
	switch mbps {
	case 10:
		return rate10
	case 100:
		return rate100
	}
	return rate1000
}

// macSpeed is the speed that PS and FES select. b.mu is held.
func (b *Board) macSpeed() int {
	switch cfg := b.reg[mustSlot(regConfig)]; {
	case cfg&cfgPS == 0:
		return 1000
	case cfg&cfgFES != 0:
		return 100
	}
	return 10
}

// configChanged is a write of the MAC configuration. b.mu is held.
func (b *Board) configChanged(old, v uint32) {
	b.macRate.Store(rateOf(b.macSpeed()))
	if v&^old&cfgRE != 0 {
		if b.rxState.Load() == rsStopped {
			b.violate(RuleStartOrder, "RE set, but SR is not")
		}
		for n := range b.addr {
			if b.addr[n].pending {
				b.violate(RuleAddressOrder, "RE set, but MAC_Address%d_Low was not written after its high half", n)
			}
		}
	}
	if v&^old&cfgTE != 0 {
		if b.txState.Load() == tsStopped {
			b.violate(RuleStartOrder, "TE set, but ST is not")
		}
		b.tx.notBefore = b.wireNow()
	}
	if old != v {
		b.tx.wake = true
	}
}

// macAddress is one entry of the perfect filter as the receiver has it.
type macAddress struct {
	bytes   [6]byte
	mask    byte // bit k: byte k is not compared
	on      bool
	source  bool
	pending bool // the high half was written and waits for the low half
}

// resetAddresses takes over the reset values. b.mu is held.
func (b *Board) resetAddresses() {
	for n := range b.addr {
		b.transferAddress(n)
	}
	b.macRate.Store(rate1000)
}

// addressWritten is a write of half an address: the low half takes both over. b.mu is held.
func (b *Board) addressWritten(off uint32) {
	n := int(off-regAddress0) / addressStride
	if off%addressStride == regAddress0%addressStride {
		b.addr[n].pending = true
		return
	}
	b.transferAddress(n)
}

func (b *Board) transferAddress(n int) {
	i := mustSlot(regAddress0 + uint32(n)*addressStride)
	high, low := b.reg[i], b.reg[i+1]
	a := &b.addr[n]
	binary.LittleEndian.PutUint32(a.bytes[:4], low)
	binary.LittleEndian.PutUint16(a.bytes[4:], uint16(high))
	a.mask = byte(high >> addrMBC & 63)
	a.on = high&addrAE != 0
	a.source = n > 0 && high&addrSA != 0
	a.pending = false
}

// debugWord is the debug register. b.mu is held.
func (b *Board) debugWord() uint32 {
	var v uint32
	if b.lane.pending() > 0 {
		v |= debugTXFIFO
		start, ok := b.lane.nextStart()
		if b.lane.started != b.lane.sent || ok && start <= b.wireNow() {
			v |= debugTXActive | debugTXTake | debugTXRead
		}
	}
	if b.tx.pausedUntil > b.wireNow() {
		v |= debugTXPaused
	}
	return v | b.rx.fill(b)<<debugRXFill
}

// sendPause is a write of FCB: a PAUSE frame is sent (half duplex back-pressure is not modelled). b.mu is held.
func (b *Board) sendPause(quanta uint16, slot int) {
	if b.faults.frozen(BitFCB) {
		b.reg[slot] |= flowFCB
		return
	}
	if b.reg[slot]&flowTFE == 0 || b.reg[mustSlot(regConfig)]&cfgDM == 0 {
		return
	}
	b.tx.pauseOut, b.tx.pauseTime = true, quanta
	b.tx.wake = true
}

// PAUSE frames (IEEE 802.3 annex 31B).
const (
	macControl   = 0x8808
	opcodePause  = 1
	pauseQuantum = 512 // bit times
)

var pauseAddress = [6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x01}

func pauseFrame(from [6]byte, quanta uint16) []byte {
	var p [18]byte
	copy(p[0:], pauseAddress[:])
	copy(p[6:], from[:])
	binary.BigEndian.PutUint16(p[12:], macControl)
	binary.BigEndian.PutUint16(p[14:], opcodePause)
	binary.BigEndian.PutUint16(p[16:], quanta)
	return p[:]
}

// countMMC adds to a counter. b.mu is held.
func (b *Board) countMMC(off, n uint32) {
	if b.mmc.add(off, n) {
		b.updateMACInt()
	}
}

// Ethernet types (IEEE 802 Numbers).
const (
	typeIPv4  = 0x0800
	typeIPv6  = 0x86DD
	typeVLAN  = 0x8100
	typeSVLAN = 0x88A8
	minType   = 0x0600 // below, the field is a length
)

// countTX counts a frame that has left the MAC. b.mu is held.
func (b *Board) countTX(f *flight) {
	switch f.fate {
	case fateNoLink:
		b.cnt.txNoLink++
	case fateSpeed:
		b.cnt.txSpeed++
	case fateAborted:
	default:
		b.cnt.txFrames++
		b.cnt.txBytes += uint64(f.n)
	}
	if f.status&txES != 0 {
		b.cnt.txAborted++
	}
	n := f.n + fcsBytes
	b.countMMC(mmcTXOctetsGB, uint32(n))
	b.countMMC(mmcTXFramesGB, 1)
	b.countMMC(sizeClass(mmcTX64, n), 1)
	good := f.status&txES == 0
	if f.status&txUF != 0 {
		b.countMMC(mmcTXUnderflow, 1)
	}
	if good {
		b.countMMC(mmcTXOctets, uint32(n))
		b.countMMC(mmcTXFrames, 1)
	}
	if f.n < headerBytes {
		return
	}
	d := f.data()
	switch {
	case d[0]&1 == 0:
		b.countMMC(mmcTXUnicastGB, 1)
	case isBroadcast(d):
		b.countMMC(mmcTXBroadcastGB, 1)
		if good {
			b.countMMC(mmcTXBroadcast, 1)
		}
	default:
		b.countMMC(mmcTXMulticastGB, 1)
		if good {
			b.countMMC(mmcTXMulticast, 1)
		}
	}
	vlan := binary.BigEndian.Uint16(d[12:]) == typeVLAN
	if vlan && good {
		b.countMMC(mmcTXVLAN, 1)
	}
	if good && n > b.giantLimit(vlan) {
		b.countMMC(mmcTXOversize, 1)
	}
}

func isBroadcast(d []byte) bool {
	return binary.BigEndian.Uint32(d) == all32 && binary.BigEndian.Uint16(d[4:]) == 0xFFFF
}

// Longest frames with FCS that are not giants (Intel socal/alt_emac.h, MAC configuration JE and 2KPE).
const (
	giantNormal = 1518
	giant2K     = 2000
	giantJumbo  = 9018
	vlanBytes   = 4
)

// giantLimit is the longest frame that is not a giant. b.mu is held.
func (b *Board) giantLimit(vlan bool) int {
	cfg := b.reg[mustSlot(regConfig)]
	limit := giantNormal
	switch {
	case cfg&cfgJE != 0:
		limit = giantJumbo
	case cfg&cfg2KPE != 0:
		return giant2K
	}
	if vlan {
		limit += vlanBytes
	}
	return limit
}
