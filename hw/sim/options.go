package sim

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"dwnet/hw"
)

// Options describe a simulated board. The zero value is an Odroid-C1 (Amlogic S805): normal descriptors, receive FIFO
// 4096 bytes, transmit FIFO 2048 bytes, version register 0x1037, checksum engines in both directions, MMC counters,
// wake-on-LAN, a 64-bin hash filter, and an RTL8211F at MDIO address 0.
type Options struct {
	// Name is used in messages; "" gives "sim0", "sim1" and so on.
	Name string
	// Clock is the time that the board lives in; nil is [RealClock]. Boards that share a cable share a clock.
	Clock hw.Clock
	// Address is the station address in the board's fuses, which Info tells. Zero: a locally administered one, the same
	// for the n-th board of each run of a program.
	Address [6]byte
	// EnhancedDescriptors makes the MAC one that was synthesised with enhanced descriptors (feature bit 24), as other
	// chips have it.
	EnhancedDescriptors bool
	// PHYAddress is the PHY's MDIO address, 0 to 31.
	PHYAddress int
	// PHYMode is the wiring between MAC and PHY as a device tree says it: "rgmii", "rgmii-id", "rgmii-rxid",
	// "rgmii-txid", "rmii" or "mii"; "" is "rgmii-id". With "mii" and "rmii" the software reset only ends while PS is set.
	PHYMode string
	// PHYPoweredDown makes the PHY come up with its power-down bit set, as some boot loaders leave it: there is no
	// receive clock until the driver clears it.
	PHYPoweredDown bool
	// RXFIFOBytes and TXFIFOBytes are the depths of the MAC's FIFOs; 0: 4096 and 2048.
	RXFIFOBytes, TXFIFOBytes int
	// BusBytes is the width of the DMA bus, 4, 8 or 16; 0: 8.
	BusBytes int
	// MemoryBytes is the size of the arena that Alloc serves; 0: 8 MiB.
	MemoryBytes int
	// DMABytesPerSecond is what the bus carries for each engine; 0: 600 MB/s.
	DMABytesPerSecond int64
	// AutonegTime is how long autonegotiation takes in board time; 0: 2 ms (a real pair of PHYs needs seconds).
	AutonegTime time.Duration
	// RealFCS makes the receive engine write the true frame check sequence behind each frame. Without it those four
	// bytes are written but are not a CRC, which saves time and which no driver may look at.
	RealFCS bool
	// MaxViolations bounds how many violations are kept; further ones are only counted. 0: 100.
	MaxViolations int
	// OnViolation is called for each violation, by the goroutine that caused it or by the board's own, with no lock of the
	// board held. It must not call into the port, since the driver may hold locks of its own, nor close the board or its
	// cable.
	OnViolation func(Violation)
	// OnAccess is called after each register access of the driver, in the driver's goroutine. It must not call into the
	// port.
	OnAccess func(Access)
}

// Access is one register access by the driver, as given to Options.OnAccess.
type Access struct {
	Time  time.Time
	Off   uint32
	Value uint32
	Write bool
}

// LostKickTime is how long OWN may wait for its poll demand before [RuleLostKick] fires.
const LostKickTime = time.Second

const (
	defaultRXFIFO   = 4096
	defaultTXFIFO   = 2048
	defaultBus      = 8
	defaultDMARate  = 600e6
	defaultAutoneg  = 2 * time.Millisecond
	defaultMaxViol  = 100
	csrClockHz      = 159375000 // Meson8b clk81: 637.5 MHz / 4
	resetTime       = 3 * time.Microsecond
	minDMARate      = 1000
	maxFIFO         = 1 << 16
	maxMemory       = 1 << 30
	addressOUI0     = 0x02 // locally administered
	boardNameFormat = "sim%d"
)

// phyModes are the device tree's names of the wirings.
var phyModes = map[string]hw.InterfaceMode{
	"": hw.ModeRGMIIID, "rgmii": hw.ModeRGMII, "rgmii-id": hw.ModeRGMIIID, "rgmii-rxid": hw.ModeRGMIIRXID,
	"rgmii-txid": hw.ModeRGMIITXID, "rmii": hw.ModeRMII, "mii": hw.ModeMII,
}

// boardCount numbers the boards of the process.
var boardCount atomic.Uint32

// complete fills in the defaults and says which field is wrong.
func (o *Options) complete() error {
	bad := func(field string, v any) error {
		return fmt.Errorf("sim: %w: Options.%s %v", hw.ErrConfig, field, v)
	}
	set := func(p *int, def int) {
		if *p == 0 {
			*p = def
		}
	}
	set(&o.RXFIFOBytes, defaultRXFIFO)
	set(&o.TXFIFOBytes, defaultTXFIFO)
	set(&o.BusBytes, defaultBus)
	set(&o.MemoryBytes, defaultMemoryBytes)
	set(&o.MaxViolations, defaultMaxViol)
	if o.DMABytesPerSecond == 0 {
		o.DMABytesPerSecond = defaultDMARate
	}
	if o.AutonegTime == 0 {
		o.AutonegTime = defaultAutoneg
	}
	_, modeOK := phyModes[o.PHYMode]
	switch {
	case o.PHYAddress < 0 || o.PHYAddress > 31:
		return bad("PHYAddress", o.PHYAddress)
	case !modeOK:
		return bad("PHYMode", strconv.Quote(o.PHYMode))
	case o.RXFIFOBytes < 256 || o.RXFIFOBytes > maxFIFO:
		return bad("RXFIFOBytes", o.RXFIFOBytes)
	case o.TXFIFOBytes < 256 || o.TXFIFOBytes > maxFIFO:
		return bad("TXFIFOBytes", o.TXFIFOBytes)
	case o.BusBytes != 4 && o.BusBytes != 8 && o.BusBytes != 16:
		return bad("BusBytes", o.BusBytes)
	case o.MemoryBytes < 4096 || o.MemoryBytes > maxMemory:
		return bad("MemoryBytes", o.MemoryBytes)
	case o.DMABytesPerSecond < minDMARate:
		return bad("DMABytesPerSecond", o.DMABytesPerSecond)
	case o.AutonegTime < 0:
		return bad("AutonegTime", o.AutonegTime)
	case o.MaxViolations < 0:
		return bad("MaxViolations", o.MaxViolations)
	case o.Address[0]&1 != 0:
		return bad("Address", "is a group address")
	}
	n := boardCount.Add(1) - 1
	if o.Name == "" {
		o.Name = fmt.Sprintf(boardNameFormat, n)
	}
	if o.Address == ([6]byte{}) {
		o.Address = [6]byte{addressOUI0, 0x00, 0x1E, 0x06, byte((n + 1) >> 8), byte(n + 1)}
	}
	return nil
}

// feature is the board's hardware feature word.
func (o *Options) feature() uint32 {
	v := uint32(featureS805)
	if o.EnhancedDescriptors {
		v |= featEnhanced
	}
	if o.RXFIFOBytes <= 2048 {
		v &^= featRXFIFO2K
	}
	switch phyModes[o.PHYMode] {
	case hw.ModeRMII:
		v = v&^(7<<featPHY) | phyRMII<<featPHY
	case hw.ModeMII:
		v &^= 7 << featPHY
	}
	return v
}
