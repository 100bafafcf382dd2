package hw

import "fmt"

// Link is the state of a link as the PHY negotiated it or the caller fixed it.
type Link struct {
	Speed      int // Mbit/s: 10, 100 or 1000
	FullDuplex bool
	RXPause    bool // obey the peer's PAUSE frames; full duplex only
	TXPause    bool // send PAUSE frames when the receive FIFO fills; full duplex and a receive FIFO of 4 KiB only
}

func (l Link) String() string {
	duplex, pause := "half", "off"
	if l.FullDuplex {
		duplex = "full"
		switch {
		case l.RXPause && l.TXPause:
			pause = "both"
		case l.RXPause:
			pause = "rx"
		case l.TXPause:
			pause = "tx"
		}
	}
	return fmt.Sprintf("%d Mbit/s %s duplex, pause %s", l.Speed, duplex, pause)
}

// confBase is set in every configuration: no jabber limit, bursts, and no carrier sense errors, as Linux has it
// (dwmac1000.h, GMAC_CORE_INIT, less what depends on the link). ACS is not: it strips only 802.3 length frames, and takes
// switch tags for lengths.
const confBase = ConfJD | ConfBE | ConfDCRS

// config is the whole configuration word but for RE and TE.
func (l Link) config(checksum bool) MACConfig {
	v := confBase
	if checksum {
		v |= ConfIPC
	}
	if l.FullDuplex {
		v |= ConfDM
	}
	switch l.Speed {
	case 100:
		v |= ConfPS | ConfFES
	case 10:
		v |= ConfPS
	}
	return v
}

// pauseTime is what a PAUSE frame of ours asks for, in slots of 512 bit times: as long as possible. It is taken back by one
// with zero when the FIFO has drained. Linux asks for the same (stmmac_main.c, pause).
const pauseTime = 0xFFFF

// flow is the whole flow control word: nothing of an earlier link stays in it.
func (l Link) flow() FlowControl {
	var v FlowControl
	if !l.FullDuplex {
		return v
	}
	if l.RXPause {
		v |= FlowRFE
	}
	if l.TXPause {
		v |= FlowTFE | pauseTime<<flowPTShift
	}
	return v
}

func (m *MAC) checkLink(l Link) error {
	switch l.Speed {
	case 10, 100:
	case 1000:
		if !m.info.Mode.gigabit() {
			return &Error{Op: "set link", Hint: fmt.Sprintf("1000 Mbit/s over %v", m.info.Mode), Err: ErrUnsupported}
		}
	default:
		return &Error{Op: "set link", Hint: fmt.Sprintf("Speed: %d is not 10, 100 or 1000", l.Speed), Err: ErrConfig}
	}
	if f := m.feature; !l.FullDuplex && f != 0 && !f.Has(FeatHalfDuplex) {
		return &Error{Op: "set link", Hint: "half duplex", Err: ErrUnsupported}
	}
	return nil
}

// SetLink tells the MAC the speed, duplex and pause that the PHY settled on. Each register is a function of l alone and is
// written once, and only if it changes. It may be called before Start and while running. Pause that the MAC cannot do, or
// that half duplex does not know, is left off without an error: what to advertise is the PHY's business.
//
// Until it is called the link is 1000 Mbit/s full duplex, or 100 over MII and RMII.
func (m *MAC) SetLink(l Link) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("set link")
	}
	if err := m.checkLink(l); err != nil {
		return err
	}
	if !m.canPause() {
		l.TXPause = false
	}
	m.link = l
	m.writeConfig()
	return m.writeFlow()
}

// Link is what SetLink set last, or the default.
func (m *MAC) Link() Link {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.link
}

// canPause reports whether the MAC can send PAUSE frames by the level of its receive FIFO.
func (m *MAC) canPause() bool { return m.info.RXFIFOBytes >= flowControlFIFO }

// writeConfig writes the configuration register, RE and TE according to m.running.
func (m *MAC) writeConfig() {
	v := m.link.config(m.checksum)
	if m.running {
		v |= ConfRE | ConfTE
	}
	m.sync.write(RegMACConfig, uint32(v))
}

// writeFlow writes the flow control register. While a PAUSE frame is being sent it must not be written.
func (m *MAC) writeFlow() error {
	if err := m.until("flow control", RegFlowControl, uint32(FlowFCB), 0, flowLimit); err != nil {
		return err
	}
	m.sync.write(RegFlowControl, uint32(m.link.flow()))
	return nil
}
