package hw

// Cause is the DMA's status register, 0x1014, as the interrupt handler reads it. Source: Intel SoC EMAC, alt_emac.h, Status;
// Linux dwmac_dma.h, DMA_STATUS.
type Cause uint32

const (
	CauseTI    Cause = 1 << 0  // a frame with IC was sent
	CauseTPS   Cause = 1 << 1  // transmit stopped
	CauseTU    Cause = 1 << 2  // transmit suspended, nothing to send
	CauseTJT   Cause = 1 << 3  // transmit jabber, transmit stopped
	CauseOVF   Cause = 1 << 4  // receive FIFO overflow
	CauseUNF   Cause = 1 << 5  // transmit underflow, transmit suspended
	CauseRI    Cause = 1 << 6  // a frame was received
	CauseRU    Cause = 1 << 7  // receive suspended, no descriptor
	CauseRPS   Cause = 1 << 8  // receive stopped
	CauseRWT   Cause = 1 << 9  // a received frame was cut
	CauseETI   Cause = 1 << 10 // a frame is in the transmit FIFO
	CauseFBI   Cause = 1 << 13 // fatal bus error
	CauseERI   Cause = 1 << 14 // a first receive buffer is full
	CauseAIS   Cause = 1 << 15 // abnormal summary
	CauseNIS   Cause = 1 << 16 // normal summary
	CauseGLI   Cause = 1 << 26 // line interface
	CauseGMI   Cause = 1 << 27 // management counters
	CauseGPI   Cause = 1 << 28 // power management
	CauseTTI   Cause = 1 << 29 // time stamp
	CauseGLPII Cause = 1 << 30 // low power idle

	causeAck       = 0x1FFFF // bits 16:0 are cleared by writing ones; the others mirror a source that is cleared elsewhere
	causeSecondary = CauseGLI | CauseGMI | CauseGPI | CauseGLPII

	causeRSShift = 17
	causeTSShift = 20
	causeEBShift = 23
	causeRSMask  = 7 << causeRSShift
	causeTSMask  = 7 << causeTSShift
)

// busErrors are the values of EB, by what the DMA was doing.
var busErrors = [8]string{
	0: "RX data write", 3: "TX data read", 4: "RX descriptor write", 5: "TX descriptor write",
	6: "RX descriptor read", 7: "TX descriptor read",
}

// TX reports that a frame with IC was sent. Like every question about a Cause it means nothing when Gone does.
func (c Cause) TX() bool { return c&CauseTI != 0 }

// RX reports that a frame was received.
func (c Cause) RX() bool { return c&CauseRI != 0 }

// RXUnavailable reports that the receive engine ran out of slots. It may be the only sign of frames in the ring.
func (c Cause) RXUnavailable() bool { return c&CauseRU != 0 }

// TXUnderflow reports that the transmit FIFO ran dry in a frame and the engine is suspended: kick it.
func (c Cause) TXUnderflow() bool { return c&CauseUNF != 0 }

// RXOverflow reports that the receive FIFO lost frames.
func (c Cause) RXOverflow() bool { return c&CauseOVF != 0 }

// TXStopped and RXStopped report that an engine came to a stop: asked to, or by jabber or a bus error.
func (c Cause) TXStopped() bool { return c&(CauseTPS|CauseTJT) != 0 }
func (c Cause) RXStopped() bool { return c&CauseRPS != 0 }

// Fatal reports a bus error. The engine that had it has given up; only Reset helps.
func (c Cause) Fatal() bool { return c&CauseFBI != 0 }

// Gone reports that the device does not answer: every register reads as ones.
func (c Cause) Gone() bool { return c == allOnes }

// BusError says what the DMA was doing when the bus failed it, or "" if it did not.
func (c Cause) BusError() string {
	if !c.Fatal() || c.Gone() {
		return ""
	}
	if s := busErrors[c>>causeEBShift&7]; s != "" {
		return s
	}
	return "unknown access"
}

var causeFields = []field{
	bit(0, "TI"), bit(1, "TPS"), bit(2, "TU"), bit(3, "TJT"), bit(4, "OVF"), bit(5, "UNF"), bit(6, "RI"), bit(7, "RU"),
	bit(8, "RPS"), bit(9, "RWT"), bit(10, "ETI"), bit(13, "FBI"), bit(14, "ERI"), bit(15, "AIS"), bit(16, "NIS"),
	bits(19, 17, "RS", dmaStates[:8]...), bits(22, 20, "TS", dmaStates[8:]...), bits(25, 23, "EB"),
	bit(26, "GLI"), bit(27, "GMI"), bit(28, "GPI"), bit(29, "TTI"), bit(30, "GLPII"),
}

func (c Cause) String() string {
	if c.Gone() {
		return "gone"
	}
	return decode(uint32(c), causeFields)
}

// DMAState is what one of the two DMA engines is doing.
type DMAState uint8

const (
	RXStopped    DMAState = 0
	RXFetching   DMAState = 1 // a descriptor
	RXWaiting    DMAState = 3 // for a frame
	RXSuspended  DMAState = 4 // no descriptor
	RXClosing    DMAState = 5 // a descriptor
	RXTimestamp  DMAState = 6
	RXMoving     DMAState = 7 // data to memory
	TXStopped    DMAState = 8
	TXFetching   DMAState = 9  // a descriptor
	TXWaiting    DMAState = 10 // for the status of a frame
	TXMoving     DMAState = 11 // data into the FIFO
	TXTimestamp  DMAState = 12
	TXSuspended  DMAState = 14 // no descriptor, or underflow
	TXClosing    DMAState = 15 // a descriptor
	dmaStateTX            = 8
	dmaStateMask          = 7
)

var dmaStates = [16]string{
	"stopped", "fetching", "reserved", "waiting", "suspended", "closing", "timestamp", "moving",
	"stopped", "fetching", "waiting", "moving", "timestamp", "reserved", "suspended", "closing",
}

func (s DMAState) String() string {
	if int(s) < len(dmaStates) {
		return dmaStates[s]
	}
	return "?"
}

// Stopped reports that the engine stands still until it is started.
func (s DMAState) Stopped() bool { return s == RXStopped || s == TXStopped }

// Suspended reports that the engine found no descriptor and waits for a poll demand.
func (s DMAState) Suspended() bool { return s == RXSuspended || s == TXSuspended }

func rxState(status uint32) DMAState { return DMAState(status >> causeRSShift & dmaStateMask) }
func txState(status uint32) DMAState { return DMAState(status>>causeTSShift&dmaStateMask) + dmaStateTX }

// Interrupts reads the status register once and acknowledges exactly what it read, so that what comes later is not lost.
// Acknowledge first, then look at the rings: the other way round a frame could wait for the next one. Sources outside the DMA
// are cleared where they live, as the line would stay raised otherwise; all of them are masked by Open.
//
// It may run at the same time as everything but Close.
func (m *MAC) Interrupts() Cause {
	c := Cause(m.load(RegStatus))
	if c.Gone() {
		return c
	}
	if ack := uint32(c) & causeAck; ack != 0 {
		m.reg.Store32(RegStatus, ack)
	}
	if c&causeSecondary != 0 {
		m.quench(c)
	}
	return c
}

// quench clears the sources behind the mirror bits of the status register, and masks the counters again in case they were
// not (Linux dwmac1000_core.c, dwmac1000_irq_status).
func (m *MAC) quench(c Cause) {
	if c&CauseGLI != 0 {
		m.reg.Load32(RegRGMIIStatus)
		if m.feature.Has(FeatPCS) {
			m.reg.Load32(RegPCSStatus)
		}
	}
	if c&CauseGPI != 0 {
		m.reg.Load32(RegPMT)
	}
	if c&CauseGLPII != 0 {
		m.reg.Load32(RegLPIControl)
	}
	if c&CauseGMI != 0 {
		m.maskMMC()
		m.reg.Load32(RegMMCRX)
		m.reg.Load32(RegMMCTX)
		if m.feature.Has(FeatRXChecksum2) {
			m.reg.Load32(RegMMCIPC)
		}
	}
}

// EnableInterrupts lets the DMA raise the line: frames sent and received, slots run out, underflow, overflow, jabber, stopped
// engines and bus errors. It writes one register.
func (m *MAC) EnableInterrupts() {
	if !m.closed.Load() {
		m.reg.Store32(RegInterruptEnable, uint32(interruptsOn))
	}
}

// DisableInterrupts masks everything. Causes go on being latched.
func (m *MAC) DisableInterrupts() {
	if !m.closed.Load() {
		m.reg.Store32(RegInterruptEnable, 0)
	}
}

// TXState is what the transmit engine is doing. It acknowledges nothing.
func (m *MAC) TXState() DMAState { return txState(m.load(RegStatus)) }

// RXState is what the receive engine is doing. It acknowledges nothing.
func (m *MAC) RXState() DMAState { return rxState(m.load(RegStatus)) }

// Debug is what the MAC's engines and FIFOs are doing, for a watchdog: idle, paused by the peer, slow or dead.
func (m *MAC) Debug() Debug { return Debug(m.load(RegDebug)) }

// load reads a register, unless the MAC is closed: then all ones, as from a device that is gone.
func (m *MAC) load(off uint32) uint32 {
	if m.closed.Load() {
		return allOnes
	}
	return m.reg.Load32(off)
}
