package phy

import (
	"errors"
	"fmt"

	"dwnet/hw"
)

// Bus is an MDIO bus for clause 22 frames. Accesses may come from several goroutines. [hw.MAC] is one.
type Bus interface {
	// ReadPHY reads register reg, 0 to 31, of the PHY at an address from 0 to 31. Nobody there reads as 0xffff.
	ReadPHY(phy, reg int) (uint16, error)
	WritePHY(phy, reg int, v uint16) error
}

// addresses is the number of addresses on a bus, registers that of registers behind each.
const (
	addresses = 32
	registers = 32
)

// absent is what a register reads as when nobody drives the bus.
const absent = 0xffff

// Errors of this package besides those of hw, for errors.Is.
var (
	// ErrReadBack: a register does not hold what was written to it.
	ErrReadBack = errors.New("register does not hold what was written")
	// ErrPartner: autonegotiation ended, again and again, with a link partner whose abilities make no sense.
	ErrPartner = errors.New("link partner's abilities make no sense")
)

// ID is a PHY's identifier, register 2 in the upper half and register 3 in the lower.
type ID uint32

const (
	RTL8211E ID = 0x001cc915
	RTL8211F ID = 0x001cc916
)

// Valid reports whether a PHY can have this identifier. A bus where nobody answers reads as ones, a PHY without supply
// or clock as zeroes, and a half-answered frame gives either in one word.
func (id ID) Valid() bool {
	return id != 0 && id>>16 != absent && id&absent != absent
}

func (id ID) String() string {
	switch id {
	case RTL8211E:
		return "RTL8211E (0x001cc915)"
	case RTL8211F:
		return "RTL8211F (0x001cc916)"
	}
	return fmt.Sprintf("0x%08x", uint32(id))
}

// Model is the manufacturer's model number, Revision that of the chip (802.3 22.2.4.3.1).
func (id ID) Model() int    { return int(id >> 4 & 0x3f) }
func (id ID) Revision() int { return int(id & 0xf) }

// Found is a PHY found on a bus.
type Found struct {
	Addr int
	ID   ID
}

// Identify reads the identifier of the PHY at an address. Nobody there, or an identifier that no PHY has, is an error that
// matches [hw.ErrNoPHY] and tells the words read.
func Identify(b Bus, addr int) (ID, error) {
	if addr < 0 || addr >= addresses {
		return 0, badAddress(addr)
	}
	var w [2]uint16
	for i, reg := range []int{RegID1, RegID2} {
		v, err := b.ReadPHY(addr, reg)
		if err != nil {
			return 0, fmt.Errorf("phy %d: identify: %w", addr, err)
		}
		w[i] = v
	}
	id := ID(w[0])<<16 | ID(w[1])
	if !id.Valid() {
		return id, &hw.Error{Op: fmt.Sprintf("identify PHY %d", addr), Err: hw.ErrNoPHY,
			Hint: fmt.Sprintf("registers 2 and 3 read 0x%04x and 0x%04x", w[0], w[1])}
	}
	return id, nil
}

// Scan looks at all addresses, 0 to 31, and returns the PHYs that answer, lowest first; none is not an error. Some PHYs, the
// RTL8211F among them, answer at address 0 as well as at their own.
func Scan(b Bus) ([]Found, error) {
	var found []Found
	for addr := range addresses {
		id, err := Identify(b, addr)
		switch {
		case err == nil:
			found = append(found, Found{addr, id})
		case !errors.Is(err, hw.ErrNoPHY):
			return found, err
		}
	}
	return found, nil
}

// Find is the PHY that a says: the one at its address, or with the zero value the lowest that answers.
func Find(b Bus, a hw.PHYAddr) (Found, error) {
	if a == hw.NoPHY {
		return Found{}, &hw.Error{Op: "find PHY", Err: hw.ErrNoPHY, Hint: "configured to have none"}
	}
	if a != hw.ScanPHY {
		addr, ok := fixed(a)
		if !ok {
			return Found{}, badAddress(int(a) - 1)
		}
		id, err := Identify(b, addr)
		return Found{addr, id}, err
	}
	found, err := Scan(b)
	if err != nil {
		return Found{}, err
	}
	if len(found) == 0 {
		return Found{}, &hw.Error{Op: "find PHY", Err: hw.ErrNoPHY,
			Hint: "none answers at addresses 0 to 31: in reset, without supply, or MDC and MDIO not connected"}
	}
	return found[0], nil
}

// fixed is the address that hw.PHYAt made a of.
func fixed(a hw.PHYAddr) (int, bool) {
	for addr := range addresses {
		if hw.PHYAt(addr) == a {
			return addr, true
		}
	}
	return 0, false
}

func badAddress(addr int) error {
	return &hw.Error{Op: "find PHY", Err: hw.ErrConfig, Hint: fmt.Sprintf("address %d is not from 0 to 31", addr)}
}
