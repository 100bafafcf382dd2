package sim

import (
	"errors"
	"io"
	"time"

	"dwnet/hw"
)

var errUnfinished = errors.New("sim: not finished")

type Board struct{}

func NewBoard(o Options) (*Board, error) { return nil, errUnfinished }
func (b *Board) Name() string            { return "" }
func (b *Board) Port() hw.Port           { return nil }
func (b *Board) Violations() []Violation { return nil }
func (b *Board) ClearViolations()        {}
func (b *Board) Faults() *Faults         { return nil }
func (b *Board) Stats() BoardStats       { return BoardStats{} }
func (b *Board) Close() error            { return nil }
func (b *Board) endpoint()               {}

type End interface{ endpoint() }

type CableOptions struct {
	SpeedMbps    int
	BackPressure bool
	DamageRate   float64
	LossRate     float64
	Seed         uint64
	Capture      io.Writer
	Clock        hw.Clock
}

type Cable struct{}

func Connect(a, b End, o CableOptions) (*Cable, error) { return nil, errUnfinished }
func (c *Cable) Stats() CableStats                     { return CableStats{} }
func (c *Cable) SetDamageRate(rate float64)            {}
func (c *Cable) SetLossRate(rate float64)              {}
func (c *Cable) Unplug()                               {}
func (c *Cable) Plug()                                 {}
func (c *Cable) Close() error                          { return nil }

type TAPOptions struct{ Name string }
type TAP struct{}

func OpenTAP(o TAPOptions) (*TAP, error) { return nil, errUnfinished }
func (t *TAP) Name() string              { return "" }
func (t *TAP) Close() error              { return nil }
func (t *TAP) endpoint()                 {}

type Host struct{}

func NewHost(rx func(frame []byte)) *Host  { return nil }
func (h *Host) Send(frame []byte) error    { return errUnfinished }
func (h *Host) SendRaw(frame []byte) error { return errUnfinished }
func (h *Host) SendBad(frame []byte) error { return errUnfinished }
func (h *Host) Close() error               { return nil }
func (h *Host) endpoint()                  {}

// ErrHostFull is returned by Send when the host's queue has no room.
var ErrHostFull = errors.New("sim: host queue full")

func RealClock() hw.Clock            { return nil }
func NewDilatedClock(n int) hw.Clock { return nil }

type SteppedClock struct{}

func NewSteppedClock(start time.Time) *SteppedClock                  { return nil }
func (c *SteppedClock) Now() time.Time                               { return time.Time{} }
func (c *SteppedClock) Sleep(d time.Duration)                        {}
func (c *SteppedClock) AfterFunc(d time.Duration, f func()) hw.Timer { return nil }
func (c *SteppedClock) Advance(d time.Duration)                      {}

type AccessKind uint8

const (
	AccessRW AccessKind = iota
	AccessRO
	AccessW1C
	AccessRC
	AccessRWSC
	AccessWO
)

type RegisterSpec struct {
	Name      string
	Offset    uint32
	Reset     uint32
	Access    AccessKind
	Writable  uint32
	ReadClear uint32
	SelfClear uint32
	W1C       uint32
}

func Registers() []RegisterSpec { return nil }

// Bit names a self-clearing bit that Faults.Freeze can hold.
type Bit uint8

const (
	BitGB Bit = iota
	BitSWR
	BitFTF
	BitCNTRST
	BitFCB
	BitST // the transmit engine's stop never completes
	BitSR // the receive engine's stop never completes
)

// TXHang says how the transmit engine hangs.
type TXHang uint8

const (
	TXHangNone    TXHang = iota
	TXHangDeaf           // poll demands have no effect
	TXHangStatus         // frames leave, but their status is never written back
	TXHangStopped        // nothing leaves
)

// BusError is the EB field of the status register, which says which access failed.
type BusError uint8

const (
	BusErrorRXData            BusError = 0
	BusErrorTXData            BusError = 3
	BusErrorRXDescriptorWrite BusError = 4
	BusErrorTXDescriptorWrite BusError = 5
	BusErrorRXDescriptorRead  BusError = 6
	BusErrorTXDescriptorRead  BusError = 7
)

type Faults struct{}

func (f *Faults) Clear()                               {}
func (f *Faults) LoseInterrupts(n int)                 {}
func (f *Faults) LoseEveryInterrupt(n int)             {}
func (f *Faults) LoseKicks(n int)                      {}
func (f *Faults) SetRegisterDelay(d time.Duration)     {}
func (f *Faults) SetDMABandwidth(bytesPerSecond int64) {}
func (f *Faults) SetStuckReset(on bool)                {}
func (f *Faults) SetNoRXClock(on bool)                 {}
func (f *Faults) SetPHYAbsent(on bool)                 {}
func (f *Faults) SetPHYStuckDown(on bool)              {}
func (f *Faults) SetDeadAfterOverflow(on bool)         {}
func (f *Faults) KillRX()                              {}
func (f *Faults) InjectBusError(e BusError)            {}
func (f *Faults) InjectRU()                            {}
func (f *Faults) InjectTU()                            {}
func (f *Faults) InjectUNF()                           {}
func (f *Faults) InjectStatus(bits uint32)             {}
func (f *Faults) SetTXHang(h TXHang)                   {}
func (f *Faults) Freeze(b Bit, on bool)                {}
func (f *Faults) SetGone(on bool)                      {}
func (f *Faults) SetScribble(on bool)                  {}
func (f *Faults) FailAlloc(n int)                      {}
func (f *Faults) SetSyncDoorbell(on bool)              {}
func (f *Faults) SetDropFastWrites(on bool)            {}
func (f *Faults) SetRXDamageRate(rate float64)         {}
func (f *Faults) CorruptLPA(n int)                     {}
