package link

import (
	"runtime"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
)

const (
	// A writer holds its TCP endpoint's lock meanwhile, so it pumps this much at most and leaves the rest to the poll loop.
	writerFrames = 32
	writerBytes  = 64 << 10

	// loopFrames is how many frames one turn of the poll loop sends before it looks at the receiver again.
	loopFrames = 64

	// wireOverhead is what a frame costs on the wire besides its bytes: preamble 8, FCS 4, inter-frame gap 12.
	wireOverhead = 24
)

// WritePackets implements stack.LinkWriter. It never blocks. Packets stay the caller's; the endpoint holds a reference of
// its own to each that it queues. It returns how many were queued, and with the first that was not: ErrMessageTooLong
// if it or its segments exceed the MTU, ErrMalformedHeader if it asks for segmentation in a way that cannot be
// followed, ErrNoBufferSpace if the queue is full, ErrClosedForSend after Close. The rest of the list is still tried: each
// dropped packet is counted. While the link is down TCP is queued and anything else dropped with a count, and neither
// is an error.
func (e *Endpoint) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	var first tcpip.Error
	n := 0
	for _, pkt := range pkts.AsSlice() {
		if err := e.enqueue(pkt); err == nil {
			n++
		} else if first == nil {
			first = err
		}
	}
	if n > 0 {
		e.pumpFromWriter()
	}
	return n, first
}

// enqueue checks a packet and queues it.
func (e *Endpoint) enqueue(pkt *stack.PacketBuffer) tcpip.Error {
	size := pkt.Size()
	mtu := int(e.mtu.Load())
	if needsCutting(pkt) {
		if mss := int(pkt.GSOOptions.MSS); mss < 8 && pkt.Data().Size() > mss || pkt.HeaderSize() > maxHeaders {
			e.stats.txBadGSO.Add(1)
			return &tcpip.ErrMalformedHeader{}
		}
	}
	switch {
	case e.stopping.Load():
		e.stats.txClosed.Add(1)
		return &tcpip.ErrClosedForSend{}
	case largestFrame(pkt) > mtu+ethernetHeader:
		e.stats.txTooLong.Add(1)
		return &tcpip.ErrMessageTooLong{}
	case size < ethernetHeader:
		e.stats.txShort.Add(1)
		return &tcpip.ErrMalformedHeader{}
	case !e.linkUp.Load() && e.stats.linkChanges.Load() > 0 && pkt.TransportProtocolNumber != header.TCPProtocolNumber:
		// TCP waits for the link to come back; anything else would come out stale. No error: one would make the stack give
		// up on the neighbour that an ARP request is for. Before the link was up for the first time everything waits, as
		// a program that starts does not know that the PHY is still negotiating.
		e.stats.txLinkDown.Add(1)
		return nil
	}
	ok, closed := e.queue.push(pkt.IncRef(), wireBytes(pkt))
	if ok {
		return nil
	}
	pkt.DecRef() // never the last reference: the caller has one
	if closed {
		e.stats.txClosed.Add(1)
		return &tcpip.ErrClosedForSend{}
	}
	e.stats.txQueueFull.Add(1)
	return &tcpip.ErrNoBufferSpace{}
}

// largestFrame is the length of the largest frame that pkt will make.
func largestFrame(pkt *stack.PacketBuffer) int {
	if needsCutting(pkt) {
		return pkt.HeaderSize() + min(int(pkt.GSOOptions.MSS), pkt.Data().Size())
	}
	return pkt.Size()
}

// wireBytes is what pkt will occupy on the wire, all its frames together.
func wireBytes(pkt *stack.PacketBuffer) int {
	size := pkt.Size()
	if needsCutting(pkt) {
		if mss, payload := int(pkt.GSOOptions.MSS), pkt.Data().Size(); mss > 0 && payload > mss {
			more := (payload - 1) / mss
			return size + more*(size-payload) + (more+1)*wireOverhead
		}
	}
	return max(size, 60) + wireOverhead
}

// pumpFromWriter moves frames to the ring if nobody else does, within a writer's budget.
func (e *Endpoint) pumpFromWriter() {
	e.pending.Store(true)
	if e.deferring.Load() {
		return // the poll loop stores false, then pumps if pending: one of the two sees the other's store
	}
	var done [writerFrames]*stack.PacketBuffer
	released := 0
	frames, bytes := writerFrames, writerBytes
	for e.pending.Load() && e.txmu.TryLock() {
		e.pending.Store(false)
		r := e.pump(done[released:], frames, bytes)
		e.txmu.Unlock()
		released += r.released
		frames -= max(r.frames, r.released)
		bytes -= r.bytes
		if r.more || frames <= 0 || bytes <= 0 {
			e.stats.txHandovers.Add(1)
			e.pending.Store(true)
			e.irq.Wake()
			break
		}
	}
	dropAll(done[:released])
}

// pumpFromLoop is the poll loop's turn at the ring. more says that it stopped at its budget.
func (e *Endpoint) pumpFromLoop() (more bool) {
	e.pending.Store(true)
	for frames := loopFrames; e.pending.Load() && e.txmu.TryLock(); {
		var done [loopFrames]*stack.PacketBuffer
		e.pending.Store(false)
		r := e.pump(done[:frames], frames, 1<<30)
		e.txmu.Unlock()
		dropAll(done[:r.released])
		if frames -= max(r.frames, r.released); r.more || frames <= 0 {
			return true
		}
	}
	return false
}

// dropAll drops references, with no lock held: the last one calls back into the stack, which may write again.
func dropAll(pkts []*stack.PacketBuffer) {
	for i, p := range pkts {
		pkts[i] = nil
		p.DecRef()
	}
}

// pumped is what one run of the pump did.
type pumped struct {
	frames, bytes int
	released      int  // packets in done
	more          bool // stopped at the budget, with work and room left
}

// pump cuts and commits up to the given number of frames and bytes while the ring has room, and rings the doorbell once.
// Packets that are finished with are put into done, which has room for one a frame. The caller holds txmu.
func (e *Endpoint) pump(done []*stack.PacketBuffer, frames, bytes int) (r pumped) {
	if e.paused || !e.linkUp.Load() {
		return r
	}
	tx := e.mac.TX()
	mtu := int(e.mtu.Load())
	free := tx.Free()
	spacing := int(e.icBytes.Load())
	committed := 0
	for {
		if !e.cut.loaded() {
			pkt, _ := e.queue.pop()
			if pkt == nil {
				break
			}
			refused := &e.stats.txBadGSO
			if largestFrame(pkt) > mtu+ethernetHeader { // the MTU has shrunk since
				refused = &e.stats.txTooLong
			} else if e.cut.load(pkt, mtu) {
				refused = nil
			}
			if refused != nil {
				refused.Add(1)
				done[r.released] = pkt
				if r.released++; r.released == len(done) {
					r.more = true
					break
				}
				continue
			}
		}
		need := slotsFor(e.cut.frameBytes(), tx.SlotBytes())
		if r.frames >= frames || r.bytes >= bytes || r.released == len(done) {
			r.more = true
			break
		}
		if free < need {
			if free = tx.Free(); free < need {
				e.stats.txRingFull.Add(1)
				break // a completion interrupt is on its way: the frame that filled the ring asked for it
			}
		}
		n, last := e.cut.next(tx)
		e.sinceIC += n + wireOverhead
		onward := (!last || e.queue.waiting.Load() > 0) && r.frames+1 < frames && r.bytes+n < bytes && free >= 2*need &&
			(!last || r.released+1 < len(done))
		flags := hw.TXFlags{Interrupt: !onward || e.sinceIC >= spacing}
		if flags.Interrupt {
			e.sinceIC = 0
		}
		if err := tx.Commit(n, flags); err != nil {
			e.stats.txErrors.Add(1) // cannot be: room and length were checked. The packet is given up, not the ring.
			last = true
		} else {
			committed++
			e.stats.txFrames.Add(1)
			e.stats.txBytes.Add(uint64(n))
		}
		r.frames++
		r.bytes += n
		free -= need
		if last {
			if e.cut.cut > 1 {
				e.stats.txGSOPackets.Add(1)
			}
			done[r.released] = e.cut.finish()
			r.released++
		}
	}
	if committed > 0 {
		e.stats.txKicks.Add(1)
		tx.Kick()
	}
	return r
}

// slotsFor is the number of ring slots that a frame takes.
func slotsFor(frame, slotBytes int) int { return max(1, (frame+slotBytes-1)/slotBytes) }

// turnTX reclaims what the MAC has sent and pumps. It runs in the poll loop. more says that there is work left that nothing
// will wake the loop for.
func (e *Endpoint) turnTX() (more bool) {
	if d := e.mac.TX().Reclaim(); d.Slots > 0 {
		e.watch.progress(e.clock.Now())
	}
	return e.pumpFromLoop()
}

// drain takes all packets out of the transmit path. The queue is closed, and nobody pumps any more.
func (e *Endpoint) drain() {
	for {
		e.txmu.Lock()
		pkt := e.cut.finish()
		e.txmu.Unlock()
		if pkt == nil {
			if pkt, _ = e.queue.pop(); pkt == nil {
				return
			}
		}
		e.stats.txClosed.Add(1)
		pkt.DecRef()
		runtime.Gosched()
	}
}
