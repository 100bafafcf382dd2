package hw

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// MAC is one Ethernet MAC. Open makes one; Close ends it.
//
// Its rings have rules of their own, see [TXRing] and [RXRing]. Everything else may be called from any goroutine at any time,
// but for this: Start, Stop, Reset, RestartTX and Close move the rings under their users, so no ring may be in use meanwhile.
// No lock is taken by the rings, Interrupts, EnableInterrupts and DisableInterrupts, so none of them ever waits for a reset
// or for MDIO.
type MAC struct {
	port  Port
	info  Info
	reg   Registers
	clock Clock
	log   *slog.Logger
	cfg   Config

	feature  Feature
	version  Version
	csrRange uint32
	bus      BusMode
	tx       *TXRing
	rx       *RXRing
	closed   atomic.Bool

	// mu guards what follows and the registers that it stands for.
	mu       sync.Mutex
	sync     syncRegs
	running  bool
	checksum bool // the receive checksum engine is on
	bins     int  // of the multicast hash
	entries  int  // of the perfect filter, the station address included
	address  [6]byte
	link     Link
	filter   Filter
	phy      phyState

	mdioMu sync.Mutex // one command on the MDIO bus at a time

	phyMu     sync.Mutex // guards what follows
	phyAddr   int        // PHY that LinkStatus asks; -1: to be found
	phyUp     bool       // what it said last
	linkDrops atomic.Uint64

	countersMu sync.Mutex
	counters   counterState
}

func closedError(op string) error { return &Error{Op: op, Err: ErrClosed} }

// Open takes over the MAC behind a port. Whatever a boot loader left running is stopped, the PHY is brought out of power-down
// so that there is a receive clock, the MAC is reset and identified, the rings are allocated and everything is programmed,
// but nothing started and no interrupt enabled. It takes a few milliseconds; when the reset hangs for want of a clock it
// gives up after less than a second, with an error that matches [ErrNoClock] and [ErrTimeout].
//
// When Open fails it leaves nothing behind, and the port can be opened again. It never closes the port.
func Open(p Port, c Config) (*MAC, error) {
	// The layout is not known yet, so the wider one's limits apply; they are checked again once it is.
	if err := c.Validate(FeatEnhanced); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	m := &MAC{
		port: p, info: p.Info().withDefaults(), reg: p.Registers(), clock: p.Clock(), log: c.Logger, cfg: c,
		phyAddr: -1, link: Link{Speed: 1000, FullDuplex: true}, filter: Filter{AllMulticast: true},
	}
	m.sync = newSyncRegs(m.reg, m.clock)
	if !m.info.Mode.gigabit() {
		m.link.Speed = 100
	}
	if err := m.open(); err != nil {
		m.freeRings()
		return nil, err
	}
	m.log.Info("opened", "port", m.info.Name, "version", m.version, "feature", m.feature,
		"descriptors", m.feature.Layout(), "address", fmt.Sprintf("%x", m.address), "phy", m.phy)
	return m, nil
}

func (m *MAC) open() error {
	var err error
	if m.csrRange, _, err = CSRRange(m.info.CSRClockHz); err != nil {
		return err
	}
	if v := m.reg.Load32(RegVersion); v == allOnes {
		return &Error{Op: "open", Reg: registerName(RegVersion), Last: v, Err: ErrGone}
	}
	if m.address, err = m.findAddress(); err != nil {
		return err
	}
	m.quiesce()
	if err := m.softwareReset(); err != nil {
		return err
	}
	m.phyAddr = m.phy.addr
	m.version, m.feature = Version(m.reg.Load32(RegVersion)), Feature(m.reg.Load32(RegFeature))
	if err := m.cfg.validateFor(m.feature, m.version, m.info); err != nil {
		return err
	}
	m.bus, _ = busMode(m.cfg.BurstBeats, m.version.Synopsys())
	m.checksum = m.feature.Has(FeatRXChecksum2) && !m.cfg.NoRXChecksum
	switch m.bins = m.cfg.HashBins; m.bins {
	case 0:
		m.bins = m.feature.HashBins()
	case NoHash:
		m.bins = 0
	}
	if err := m.allocRings(); err != nil {
		return err
	}
	return m.program()
}

// findAddress is the station address: the caller's, the board's or what a boot loader left in the registers, which a reset
// wipes.
func (m *MAC) findAddress() ([6]byte, error) {
	inRegs := AddressOf(m.reg.Load32(RegAddressHigh), m.reg.Load32(RegAddressLow))
	for _, a := range [][6]byte{m.cfg.Address, m.info.Address, inRegs} {
		if validStation(a) {
			return a, nil
		}
	}
	return [6]byte{}, configError("Address", "neither the caller nor the port nor the registers have one")
}

func (m *MAC) allocRings() error {
	sum := 0
	if m.feature.Has(FeatTXChecksum) {
		sum = maxChecksum(m.info.TXFIFOBytes, m.cfg.BurstBeats, m.info.BusBytes)
	}
	b, err := allocBlock(m.port, m.feature.Layout(), m.cfg.TXSlots, m.cfg.TXSlotBytes)
	if err != nil {
		return err
	}
	m.tx = newTXRing(b, m.reg, m.port.Interrupt().Wake, sum)
	if b, err = allocBlock(m.port, m.feature.Layout(), m.cfg.RXSlots, m.cfg.RXSlotBytes); err != nil {
		return err
	}
	m.rx = newRXRing(b, m.reg, m.cfg.RXWatchdog != 0)
	return nil
}

// freeRings gives the memory back, last taken first. The DMA is known to be stopped.
func (m *MAC) freeRings() error {
	var errs []error
	if m.rx != nil {
		errs = append(errs, m.port.Free(m.rx.mem))
	}
	if m.tx != nil {
		errs = append(errs, m.port.Free(m.tx.mem))
	}
	return errors.Join(errs...)
}

// Close stops the MAC, masks its interrupts, makes sure that the DMA has stopped and frees the rings. When it returns the
// device is not touched any more by anything here: calls on the MAC and its rings fail, do nothing or say what was last
// known. It does not close the port. Calling it again does nothing.
//
// If the DMA cannot be stopped the rings' memory is not freed, as the device may still write to it, and the error says so.
func (m *MAC) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return nil
	}
	m.tx.closed.Store(true)
	m.rx.closed.Store(true)
	err := m.halt()
	if err != nil {
		err = m.swr()
	}
	m.running = false
	if err == nil {
		m.tx.abandon()
	}
	m.readCounters()

	// From here on nobody begins anything, and whoever holds the bus or the counters is waited for.
	m.closed.Store(true)
	m.mdioMu.Lock()
	m.mdioMu.Unlock()
	m.countersMu.Lock()
	m.countersMu.Unlock()
	if err != nil {
		return fmt.Errorf("hw: DMA not known to have stopped, ring memory is kept: %w", err)
	}
	return m.freeRings()
}

// Feature is the feature register; zero on cores too old to have it.
func (m *MAC) Feature() Feature { return m.feature }

// Version is the release of the core.
func (m *MAC) Version() Version { return m.version }

// Port is the port that the MAC was opened on.
func (m *MAC) Port() Port { return m.port }

// TX and RX are the rings. They stay the same for the life of the MAC.
func (m *MAC) TX() *TXRing { return m.tx }
func (m *MAC) RX() *RXRing { return m.rx }

// RXChecksum reports whether received frames have a checksum verdict.
func (m *MAC) RXChecksum() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checksum
}

// MaxMTU is the largest packet, in bytes, that the MAC can both send and receive, with room for a VLAN tag: a received frame
// fits one slot and is not cut at 2048 bytes, a sent one fits the transmit FIFO. The limit for checksum insertion is lower,
// see [TXRing.MaxChecksum].
func (m *MAC) MaxMTU() int {
	rx := min(m.cfg.RXSlotBytes, rxCutBytes) - MaxFrame(0, true)
	tx := m.info.TXFIFOBytes - m.info.TXFIFOBytes%slotBytesUnit - headerBytes - vlanBytes
	return min(rx, tx, m.tx.maxFrame-headerBytes-vlanBytes)
}

// rxCutBytes is where the MAC cuts what it receives, FCS included, with WD and JE clear.
const rxCutBytes = 2048
