package hw

import "log/slog"

// Config is how a MAC is opened. Its zero value works.
type Config struct {
	Address      [6]byte
	PHY          PHYAddr
	TXSlots      int
	RXSlots      int
	TXSlotBytes  int
	RXSlotBytes  int
	BurstBeats   int
	HashBins     int
	RXWatchdog   uint8
	NoRXChecksum bool
	Logger       *slog.Logger
}

// PHYAddr says which PHY belongs to the MAC; zero scans.
type PHYAddr uint8

// Feature is register 0x1058.
type Feature uint32

// Version is register 0x20.
type Version uint32

// MAC is one Ethernet MAC.
type MAC struct {
	port Port
	tx   *TXRing
	rx   *RXRing
}

// Validate checks c.
func (c Config) Validate(f Feature) error { return nil }

// Open opens the MAC.
func Open(p Port, c Config) (*MAC, error) { return nil, ErrUnsupported }

func (m *MAC) Start() error                              { return nil }
func (m *MAC) Stop() error                               { return nil }
func (m *MAC) Reset() error                              { return nil }
func (m *MAC) RestartTX() error                          { return nil }
func (m *MAC) Close() error                              { return nil }
func (m *MAC) Feature() Feature                          { return 0 }
func (m *MAC) Version() Version                          { return 0 }
func (m *MAC) Address() [6]byte                          { return [6]byte{} }
func (m *MAC) Port() Port                                { return m.port }
func (m *MAC) TX() *TXRing                               { return m.tx }
func (m *MAC) RX() *RXRing                               { return m.rx }
func (m *MAC) SetLink(l Link) error                      { return nil }
func (m *MAC) SetFilter(f Filter) error                  { return nil }
func (m *MAC) SetAddress(a [6]byte) error                { return nil }
func (m *MAC) ReadPHY(phy, reg int) (uint16, error)      { return 0, nil }
func (m *MAC) WritePHY(phy, reg int, v uint16) error     { return nil }
func (m *MAC) ScanPHY() (addr int, id uint32, err error) { return 0, 0, nil }
func (m *MAC) LinkStatus() (Link, bool, error)           { return Link{}, false, nil }
func (m *MAC) Interrupts() Cause                         { return 0 }
func (m *MAC) EnableInterrupts()                         {}
func (m *MAC) DisableInterrupts()                        {}
func (m *MAC) TXState() DMAState                         { return 0 }
func (m *MAC) RXState() DMAState                         { return 0 }
func (m *MAC) Debug() Debug                              { return 0 }
func (m *MAC) Counters() Counters                        { return Counters{} }
func (m *MAC) Dump() []RegisterValue                     { return nil }

// Link is what the PHY negotiated.
type Link struct {
	Speed            int
	FullDuplex       bool
	RXPause, TXPause bool
}

// Filter is which frames the MAC passes.
type Filter struct {
	Promiscuous, AllMulticast bool
	Multicast, Unicast        [][6]byte
}

// Cause is the DMA status register.
type Cause uint32

func (c Cause) String() string      { return "" }
func (c Cause) TX() bool            { return false }
func (c Cause) RX() bool            { return false }
func (c Cause) RXUnavailable() bool { return false }
func (c Cause) TXUnderflow() bool   { return false }
func (c Cause) RXOverflow() bool    { return false }
func (c Cause) Fatal() bool         { return false }
func (c Cause) Gone() bool          { return false }
func (c Cause) BusError() string    { return "" }

// DMAState is what a DMA engine is doing.
type DMAState uint8

func (s DMAState) String() string  { return "" }
func (s DMAState) Stopped() bool   { return false }
func (s DMAState) Suspended() bool { return false }

// Debug is register 0x24.
type Debug uint32

func (d Debug) PausedByPeer() bool { return false }
func (d Debug) TXIdle() bool       { return false }

// Counters are the MMC counters.
type Counters struct{ RXMissed, RXOverflow uint64 }

// RegisterValue is one line of a dump.
type RegisterValue struct {
	Name    string
	Offset  uint32
	Value   uint32
	Decoded string
}

// CIC is the checksum insertion code of a frame.
type CIC uint8

const (
	CICNone    CIC = iota // none
	CICHeader             // IPv4 header only
	CICPayload            // header and payload, pseudo header sum is in the checksum field
	CICFull               // header, pseudo header and payload
)

// TXFlags say how a frame is sent.
type TXFlags struct {
	Interrupt bool
	Checksum  CIC
}

// TXDone is what Reclaim found.
type TXDone struct{ Frames, Slots, Bytes, Errors int }

// TXStats counts what became of transmitted frames.
type TXStats struct{ Frames, Bytes, Errors uint64 }

// TXRing is the transmit ring.
type TXRing struct{}

func (r *TXRing) Slots() int                    { return 0 }
func (r *TXRing) SlotBytes() int                { return 0 }
func (r *TXRing) Free() int                     { return 0 }
func (r *TXRing) Write(off int, p []byte)       {}
func (r *TXRing) Discard()                      {}
func (r *TXRing) Commit(n int, o TXFlags) error { return nil }
func (r *TXRing) Kick()                         {}
func (r *TXRing) Reclaim() TXDone               { return TXDone{} }
func (r *TXRing) Pending() int                  { return 0 }
func (r *TXRing) Stats() TXStats                { return TXStats{} }

// Verdict is what the checksum engine says about a frame.
type Verdict uint8

const (
	ChecksumUnknown Verdict = iota // not looked at
	ChecksumGood                   // no error found
	ChecksumBadL3                  // IP header wrong
	ChecksumBadL4                  // TCP, UDP or ICMP wrong
	ChecksumL3Good                 // IP header right, payload not looked at
)

// RXError is why a frame is bad, 0 when it is not.
type RXError uint32

// RXTooLong is a frame larger than a slot.
const RXTooLong RXError = 1

// RXFrame is a received frame.
type RXFrame struct {
	Len     int
	Err     RXError
	Verdict Verdict
	VLAN    bool
	Slots   int
}

// RXStats counts received frames by what became of them.
type RXStats struct{ Frames, Bytes, Errors uint64 }

// RXRing is the receive ring.
type RXRing struct{}

func (r *RXRing) Slots() int            { return 0 }
func (r *RXRing) SlotBytes() int        { return 0 }
func (r *RXRing) Next() (RXFrame, bool) { return RXFrame{}, false }
func (r *RXRing) CopyOut(dst []byte)    {}
func (r *RXRing) Release()              {}
func (r *RXRing) Resume()               {}
func (r *RXRing) Stats() RXStats        { return RXStats{} }
