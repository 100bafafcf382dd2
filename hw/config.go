package hw

import (
	"fmt"
	"log/slog"
)

// Defaults and limits of Config.
const (
	DefaultTXSlots   = 256
	DefaultRXSlots   = 512
	DefaultSlotBytes = 1536 // a full frame with VLAN tag and FCS, and a multiple of the cache line
	// DefaultBurstBeats is half of what Linux uses: with a 2 KiB transmit FIFO and a 64-bit bus its 64 beats leave no room
	// for checksum insertion into a full frame, see TXRing.MaxChecksum.
	DefaultBurstBeats = 32

	minSlots        = 2
	maxSlots        = 4096
	slotBytesUnit   = 16 // the widest bus
	defaultCSRClock = 159_375_000
	defaultRXFIFO   = 4096
	defaultTXFIFO   = 2048
	defaultBusBytes = 8
	flowControlFIFO = 4096 // smallest receive FIFO with flow control by its level

	// NoHash as Config.HashBins says that there is no hash table.
	NoHash = -1
)

// PHYAddr says which PHY belongs to a MAC. The zero value finds it.
type PHYAddr uint8

const (
	ScanPHY PHYAddr = 0   // the first that answers
	NoPHY   PHYAddr = 255 // none: a switch or another MAC at a fixed speed
)

// PHYAt is the PHY at an address from 0 to 31.
func PHYAt(addr int) PHYAddr {
	if addr < 0 || addr >= phyAddresses {
		return phyInvalid
	}
	return PHYAddr(addr + 1)
}

const phyInvalid PHYAddr = 254

// fixed is the address that a PHYAt names.
func (a PHYAddr) fixed() (int, bool) {
	if a >= 1 && a <= phyAddresses {
		return int(a) - 1, true
	}
	return 0, false
}

// Config is how a MAC is opened. Its zero value works.
type Config struct {
	// Address is the station address. Zero: the one of the port's Info, else what the registers hold when Open comes.
	Address [6]byte
	// PHY says which PHY is the MAC's.
	PHY PHYAddr
	// TXSlots and RXSlots are the sizes of the rings, 2 to 4096; 0: 256 and 512.
	TXSlots, RXSlots int
	// TXSlotBytes and RXSlotBytes are the sizes of a slot's buffer, multiples of 16 up to 2032 with normal and 8176 with
	// enhanced descriptors; 0: 1536. A received frame must fit its slot with its FCS; a sent one may take several.
	TXSlotBytes, RXSlotBytes int
	// BurstBeats is the longest DMA burst in bus words: 1, 2, 4, 8, 16 or 32, and 64, 128 or 256 as far as half of each
	// FIFO holds it; 0: 32. Longer bursts lower TXRing.MaxChecksum: with a 2 KiB FIFO and a 64-bit bus, 64 beats leave
	// 1511 bytes, less than a full frame.
	BurstBeats int
	// HashBins is the size of the multicast hash: 64, 128 or 256; 0: 64 if the feature register has a hash of the plain
	// size, else none; NoHash: none. Without one, joining a group passes all multicast.
	HashBins int
	// RXWatchdog delays the receive interrupt by this many times 256 bus clocks after a frame, so that one stands for
	// several; 0: an interrupt for each. Needs release 3.5.
	RXWatchdog uint8
	// NoRXChecksum leaves the receive checksum engine off. It is on by default where there is one of type 2.
	NoRXChecksum bool
	// Logger is told about the device found, about fall-backs and about nothing else; nil: nobody is.
	Logger *slog.Logger
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults() Config {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.TXSlots, DefaultTXSlots)
	def(&c.RXSlots, DefaultRXSlots)
	def(&c.TXSlotBytes, DefaultSlotBytes)
	def(&c.RXSlotBytes, DefaultSlotBytes)
	def(&c.BurstBeats, DefaultBurstBeats)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate checks c against what was synthesised. The error matches [ErrConfig], or [ErrUnsupported], and names the field.
// What the port says about FIFOs and bus is checked by Open as well.
func (c Config) Validate(f Feature) error {
	c = c.withDefaults()
	largest := f.Layout().MaxBuffer()
	for _, v := range []struct {
		name             string
		n, min, max, mul int
	}{
		{"TXSlots", c.TXSlots, minSlots, maxSlots, 1},
		{"RXSlots", c.RXSlots, minSlots, maxSlots, 1},
		{"TXSlotBytes", c.TXSlotBytes, slotBytesUnit, largest, slotBytesUnit},
		{"RXSlotBytes", c.RXSlotBytes, slotBytesUnit, largest, slotBytesUnit},
	} {
		if v.n < v.min || v.n > v.max || v.n%v.mul != 0 {
			hint := fmt.Sprintf("%d is not from %d to %d", v.n, v.min, v.max)
			if v.mul > 1 {
				hint += fmt.Sprintf(" and a multiple of %d", v.mul)
			}
			return configError(v.name, hint)
		}
	}
	if _, ok := busMode(c.BurstBeats, versionWatchdog); !ok {
		return configError("BurstBeats", fmt.Sprintf("%d is not a burst that the DMA can do", c.BurstBeats))
	}
	switch c.HashBins {
	case 0, NoHash, 64, 128, 256:
	default:
		return configError("HashBins", fmt.Sprintf("%d is not 64, 128 or 256", c.HashBins))
	}
	if c.PHY != ScanPHY && c.PHY != NoPHY {
		if _, ok := c.PHY.fixed(); !ok {
			return configError("PHY", "address is not from 0 to 31")
		}
	}
	if c.Address != [6]byte{} && !validStation(c.Address) {
		return configError("Address", fmt.Sprintf("%x is not a unicast address", c.Address))
	}
	return nil
}

// validateFor checks what depends on the core's release and on the port.
func (c Config) validateFor(f Feature, v Version, info Info) error {
	if err := c.Validate(f); err != nil {
		return err
	}
	if _, ok := busMode(c.BurstBeats, v.Synopsys()); !ok {
		return configError("BurstBeats", fmt.Sprintf("release %x cannot do bursts of %d", v.Synopsys(), c.BurstBeats))
	}
	if half := min(info.RXFIFOBytes, info.TXFIFOBytes) / 2; c.BurstBeats*info.BusBytes > half {
		return configError("BurstBeats", fmt.Sprintf("%d beats of %d bytes are more than half a FIFO (%d)",
			c.BurstBeats, info.BusBytes, half))
	}
	if c.RXWatchdog != 0 && v.Synopsys() < versionWatchdog {
		return &Error{Op: "configure", Hint: fmt.Sprintf("RXWatchdog: release %x has none", v.Synopsys()), Err: ErrUnsupported}
	}
	return nil
}

func configError(name, hint string) error {
	return &Error{Op: "configure", Hint: name + ": " + hint, Err: ErrConfig}
}

// validStation reports whether a is an address that a station can have.
func validStation(a [6]byte) bool { return a != [6]byte{} && !multicast(a) }

// multicast reports whether a is a group address; broadcast is one.
func multicast(a [6]byte) bool { return a[0]&1 != 0 }

// withDefaults fills in what the port does not know.
func (i Info) withDefaults() Info {
	if i.CSRClockHz == 0 {
		i.CSRClockHz = defaultCSRClock
	}
	if i.RXFIFOBytes == 0 {
		i.RXFIFOBytes = defaultRXFIFO
	}
	if i.TXFIFOBytes == 0 {
		i.TXFIFOBytes = defaultTXFIFO
	}
	if i.BusBytes == 0 {
		i.BusBytes = defaultBusBytes
	}
	return i
}

// gigabit reports whether the wiring can carry 1000 Mbit/s.
func (m InterfaceMode) gigabit() bool { return m != ModeMII && m != ModeRMII }

// maxChecksum is the longest frame that checksums can be inserted into: the FIFO must hold it beside one burst and three
// more words (TI SLAU723A, EMAC, transmit checksum offload engine).
func maxChecksum(fifo, beats, bus int) int { return max(fifo-(beats+3)*bus-1, 0) }
