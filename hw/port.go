package hw

import "time"

// Registers is a window of 32-bit device registers. Offsets are in bytes from the MAC's base address and are multiples of
// four. Accesses are single aligned 32-bit loads and stores, and reach the device in program order. A window whose device
// is gone (bus fault, closed) reads as all ones.
type Registers interface {
	Load32(off uint32) uint32
	Store32(off uint32, v uint32)
}

// Memory is one block of DMA memory that the CPU and the device share. Offsets are in bytes from the start of the block.
// It may be mapped as Device memory or uncached, so callers copy whole pieces and never read back what they wrote.
//
// Offsets outside the block are a bug of the caller and panic, as for a slice.
type Memory interface {
	// Bus is the address of offset 0 as the device sees it. It is fixed for the life of the block.
	Bus() uint32
	// Size is the length of the block in bytes.
	Size() int
	// Load32 and Store32 access one aligned little-endian word. Each is a single access that is neither repeated nor
	// split. In simulation they are atomic (acquire and release); on hardware they are plain, see Barrier.
	Load32(off int) uint32
	Store32(off int, v uint32)
	// CopyIn copies src into the block at off, CopyOut copies from the block at off into dst. Any alignment is allowed.
	CopyIn(off int, src []byte)
	CopyOut(dst []byte, off int)
	// Barrier orders every access to this block before it, as the device sees them, before every access to memory or
	// registers after it. On ARM it completes the stores (DSB), which Go's atomics do not.
	Barrier()
}

// Wakeup says why [Interrupt.Wait] returned.
type Wakeup uint8

const (
	WakeTimeout   Wakeup = iota // the time-out passed
	WakeInterrupt               // the device raised its line
	WakeCall                    // somebody called Wake
)

func (w Wakeup) String() string {
	switch w {
	case WakeTimeout:
		return "timeout"
	case WakeInterrupt:
		return "interrupt"
	case WakeCall:
		return "wake"
	}
	return "unknown"
}

// Interrupt is the MAC's one interrupt line. It is level triggered and masks itself when it fires, as UIO does: after
// WakeInterrupt the next interrupt is only reported once Enable was called. If the line is still asserted at Enable, it
// fires at once.
type Interrupt interface {
	// Wait blocks until the line fires, Wake is called or the time-out passes on the port's clock; a negative time-out
	// means for ever. One goroutine waits at a time. A Wake that comes while nobody waits is kept for the next Wait;
	// several are merged. After the port was closed it returns an error that errors.Is ErrClosed.
	Wait(timeout time.Duration) (Wakeup, error)
	// Enable unmasks the line. It never blocks.
	Enable() error
	// Wake ends the current or the next Wait. It never blocks and may be called from anywhere, also after Close.
	Wake()
}

// Timer is a pending call of [Clock.AfterFunc].
type Timer interface {
	// Stop cancels the call and reports whether it did so before the call started.
	Stop() bool
	// Reset cancels the call and schedules it anew, d from now.
	Reset(d time.Duration)
}

// Clock is the time that the device lives in: the machine's for hardware, simulated time for a simulated board, which may
// run slower than real time or only when a test steps it. Everything above a port takes the time from its clock.
type Clock interface {
	// Now is the current time. It never goes back.
	Now() time.Time
	// Sleep returns when at least d has passed.
	Sleep(d time.Duration)
	// AfterFunc calls f in a goroutine of its own once at least d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// InterfaceMode is how the MAC and the PHY are wired, as the device tree's phy-mode.
type InterfaceMode uint8

const (
	ModeRGMII InterfaceMode = iota // RGMII without delays made by the PHY
	ModeRGMIIID
	ModeRGMIIRXID
	ModeRGMIITXID
	ModeRMII
	ModeMII
)

func (m InterfaceMode) String() string {
	switch m {
	case ModeRGMII:
		return "rgmii"
	case ModeRGMIIID:
		return "rgmii-id"
	case ModeRGMIIRXID:
		return "rgmii-rxid"
	case ModeRGMIITXID:
		return "rgmii-txid"
	case ModeRMII:
		return "rmii"
	case ModeMII:
		return "mii"
	}
	return "unknown"
}

// Info is what a port knows about its device that the device does not say itself. A zero field means "not known".
type Info struct {
	Name        string        // for messages, such as "sim0" or "/dev/uio0"
	CSRClockHz  uint32        // clock of the register interface, from which MDC is divided; 0: 159.375 MHz (Meson8b clk81)
	RXFIFOBytes int           // 0: 4096
	TXFIFOBytes int           // 0: 2048
	BusBytes    int           // width of the DMA bus: 4 or 8; 0: 8, the more careful choice
	Mode        InterfaceMode // wiring to the PHY
	Address     [6]byte       // station address from a fuse or the device tree; zero: none known
}

// Port is one MAC with everything needed to drive it. hw/sim and hw/mmio make ports. A port has one user at a time.
type Port interface {
	Info() Info
	Registers() Registers
	Interrupt() Interrupt
	Clock() Clock
	// Alloc returns a zeroed block of DMA memory whose bus address and size are multiples of align, a power of two.
	Alloc(size, align int) (Memory, error)
	// Free gives a block back. The device must not use it any more: stop the DMA first.
	Free(Memory) error
	// Close releases the port. Waits end with ErrClosed. It does not stop the device: see MAC.Close.
	Close() error
}
