package sim

import "encoding/binary"

// Limits of a received frame, with FCS (Intel socal/alt_emac.h, MAC configuration WD and JE).
const (
	minWire       = 64
	watchdogMax   = 2048
	watchdogJumbo = 10240
)

// rxThresholds are the values of RTC: how much of a frame must have come before the engine moves it, in threshold mode.
var rxThresholds = [4]int{64, 32, 96, 128}

// admit is the MAC's look at a whole frame: filter, line errors, length, checksum engine. It fills in what goes to memory
// and returns whether the frame goes there. b.mu is held.
func (b *Board) admit(f *flight, fr *rxFrame, at int64) bool {
	cfg, op := b.reg[mustSlot(regConfig)], b.reg[mustSlot(regOpMode)]
	n := f.n + fcsBytes
	*fr = rxFrame{buf: fr.buf, n: n, size: n, wire: f.n}
	f.grow(n)
	if f.n < headerBytes { // no address to filter by: a fragment
		b.countMMC(mmcRXFramesGB, 1)
		b.countMMC(mmcRXRunt, 1)
		b.cnt.dropRunt++
		b.countFIFO()
		return false
	}
	d := f.data()
	typ := int(binary.BigEndian.Uint16(d[12:]))
	vlan := b.isVLAN(d)
	v := b.filter(d)
	control, pass := b.controlFrame(d, typ, v.pass, !f.fcsBad && n >= minWire, at)
	if !v.pass && !pass {
		b.cnt.dropFilter++
		if b.mmc.control&mmcDroppedBC != 0 && isBroadcast(d) {
			b.countMMC(mmcRXBroadcast, 1)
		}
		return false
	}
	st := uint32(0)
	if v.afm {
		st |= rxAFM
	}
	if v.saf {
		st |= rxSAF
	}
	if typ >= minType {
		st |= rxFT
	}
	if vlan && b.matchesVLAN(d) {
		st |= rxVLAN
	}
	if f.fcsBad {
		st |= rxCE | rxES
	}
	limit := watchdogMax
	switch wd := b.reg[mustSlot(regWatchdog)]; {
	case cfg&cfgWD != 0:
		limit = longestFrame
	case wd&watchdogPWE != 0:
		limit = int(wd & watchdogWTO)
	case cfg&cfgJE != 0:
		limit = watchdogJumbo
	}
	cut := n > limit
	if cut {
		st |= rxRWT | rxES
		fr.n, fr.size = limit, limit
	}
	giant := n > b.giantLimit(vlan)
	if typ < minType && !cut && !lengthFits(typ, f.n) {
		st |= rxLE
	}
	b.countRX(d, n, st, vlan, giant, control)
	if extended := b.layout().words == 8; cfg&cfgIPC != 0 && st&(rxCE|rxRWT) == 0 && n >= minWire && (typ >= minType || extended) {
		sum := inspect(d)
		b.countIPC(&sum)
		st |= sum.status(extended)
		if sum.bypassed() && !extended {
			st &^= rxFT
		}
		fr.ext = sum.extended()
		if sum.bad() && op&opDT == 0 && op&opFEF == 0 && op&opRSF != 0 {
			b.cnt.dropChecksum++
			return false
		}
	}
	if control && !pass {
		b.cnt.dropControl++
		return false
	}
	fr.status = st
	if !b.keepBad(n, st, giant, op) {
		return false
	}
	b.strip(f, fr, cfg, typ)
	return true
}

// keepBad reports whether a frame with line errors or of a bad length is passed on.
func (b *Board) keepBad(n int, st uint32, giant bool, op uint32) bool {
	early := op&opRSF == 0 && n > rxThresholds[op>>opRTC&3] // its first part is in memory by now
	switch {
	case n < minWire:
		if op&opFUF != 0 && st&rxCE == 0 {
			return true
		}
		b.cnt.dropRunt++
		b.countFIFO()
		return false
	case st&rxCE != 0 && op&opFEF == 0 && !early:
		b.cnt.dropCRC++
		return false
	case st&rxRWT != 0 && op&opFEF == 0 && !early, giant && op&opDGF != 0 && !early:
		b.cnt.dropGiant++
		return false
	}
	return true
}

// strip ends the frame as it goes to memory: with its FCS, or without if the MAC was told to take it off.
func (b *Board) strip(f *flight, fr *rxFrame, cfg uint32, typ int) {
	switch {
	case fr.status&rxRWT != 0: // cut before its end
		return
	case typ < minType && cfg&cfgACS != 0:
		fr.n = f.n
		if fr.n >= headerBytes+typ {
			fr.n = headerBytes + typ
		}
	case typ >= minType && cfg&cfgCST != 0:
		fr.n = f.n
	default:
		b.putFCS(f.buf, f.n, f.fcsBad)
	}
}

// lengthFits reports whether an IEEE 802.3 length field agrees with the frame's length: padding may follow.
func lengthFits(length, n int) bool {
	data := n - headerBytes
	if n <= minFrame {
		return length <= data
	}
	return length == data
}

// controlFrame handles MAC control frames: it obeys PAUSE, and says whether the frame is one and is passed on (PCF).
func (b *Board) controlFrame(d []byte, typ int, passed, good bool, at int64) (control, pass bool) {
	if typ != macControl || len(d) < headerBytes+4 {
		return false, passed
	}
	flow := b.reg[mustSlot(regFlowControl)]
	pause := binary.BigEndian.Uint16(d[14:]) == opcodePause && good
	to := [6]byte(d[:6])
	pause = pause && (to == pauseAddress || flow&flowUP != 0 && to == b.addr[0].bytes)
	obey := pause && flow&flowRFE != 0 && b.reg[mustSlot(regConfig)]&cfgDM != 0
	if pause {
		b.countMMC(mmcRXPause, 1)
	}
	if obey {
		quanta := int64(binary.BigEndian.Uint16(d[16:]))
		b.tx.pausedUntil = at + quanta*pauseQuantum*b.nsPerByte()/8
	}
	switch b.reg[mustSlot(regFilter)] >> filterPCF & 3 {
	case 1:
		return true, passed && !obey
	case 2:
		return true, true
	case 3:
		return true, passed
	}
	return true, false
}

// countRX counts a frame that passed the address filter. b.mu is held.
func (b *Board) countRX(d []byte, n int, st uint32, vlan, giant, control bool) {
	b.countMMC(mmcRXFramesGB, 1)
	b.countMMC(mmcRXOctetsGB, uint32(n))
	b.countMMC(sizeClass(mmcRX64, n), 1)
	if vlan {
		b.countMMC(mmcRXVLAN, 1)
	}
	bad := st&rxCE != 0
	switch {
	case bad && n < minWire:
		b.countMMC(mmcRXRunt, 1)
	case bad && giant:
		b.countMMC(mmcRXJabber, 1)
		b.countMMC(mmcRXCRC, 1)
	case bad:
		b.countMMC(mmcRXCRC, 1)
	case n < minWire:
		b.countMMC(mmcRXUndersize, 1)
	case giant:
		b.countMMC(mmcRXOversize, 1)
	}
	if st&rxRWT != 0 {
		b.countMMC(mmcRXWatchdog, 1)
		bad = true
	}
	if st&rxLE != 0 {
		b.countMMC(mmcRXLength, 1)
	}
	if bad {
		return
	}
	b.countMMC(mmcRXOctets, uint32(n))
	switch {
	case d[0]&1 == 0:
		b.countMMC(mmcRXUnicast, 1)
	case isBroadcast(d):
		b.countMMC(mmcRXBroadcast, 1)
	default:
		b.countMMC(mmcRXMulticast, 1)
	}
	if control {
		b.countMMC(mmcRXControl, 1)
	}
}

// flow asks the sender to pause when the FIFO is fuller than RFA allows, and to go on below RFD. b.mu is held.
func (x *rxEngine) flow(b *Board, at int64) {
	op, flow := b.reg[mustSlot(regOpMode)], b.reg[mustSlot(regFlowControl)]
	if op&opEFC == 0 || flow&flowTFE == 0 || b.reg[mustSlot(regConfig)]&cfgDM == 0 {
		x.flowOn, x.flowAgain = false, never
		return
	}
	level := func(shift, top uint32) int {
		v := op >> shift & 3
		if op&top != 0 {
			v |= 4
		}
		return b.opts.RXFIFOBytes - int(v+1)*1024
	}
	n := x.occupied(at)
	switch {
	case x.flowOn && n < level(opRFD, opRFD2):
		x.flowOn, x.flowAgain = false, never
		if flow&flowDZPQ == 0 {
			b.pauseSoon(0)
		}
	case x.flowOn && at >= x.flowAgain, !x.flowOn && n > level(opRFA, opRFA2):
		x.flowOn = true
		x.flowAgain = x.resend(b, at, flow)
		b.pauseSoon(uint16(flow >> flowPT))
	}
}

// pauseLead are the values of PLT: how long before its end a pause is renewed, in slot times.
var pauseLead = [4]int64{4, 28, 144, 256}

func (x *rxEngine) resend(b *Board, at int64, flow uint32) int64 {
	left := int64(flow>>flowPT) - pauseLead[flow>>4&3]
	if left <= 0 {
		return never
	}
	return at + left*pauseQuantum*b.nsPerByte()/8
}

func (b *Board) pauseSoon(quanta uint16) {
	b.tx.pauseOut, b.tx.pauseTime = true, quanta
}
