package hw

import "fmt"

// MIIAddress is the command register of the MDIO bus, 0x0010 (Linux stmmac_mdio.c).
type MIIAddress uint32

const (
	miiBusy  MIIAddress = 1 << 0 // GB: start, and not done yet
	miiWrite MIIAddress = 1 << 1 // GW

	miiClockShift = 2 // CR
	miiRegShift   = 6 // GR
	miiPHYShift   = 11
	miiClockMask  = 1<<4 - 1
	miiRegMask    = 1<<5 - 1
	miiPHYMask    = 1<<5 - 1

	phyAddresses = 32
	phyRegisters = 32
)

var miiAddressFields = []field{bit(0, "GB"), bit(1, "GW"), bits(5, 2, "CR"), bits(10, 6, "GR"), bits(15, 11, "PA")}

func (v MIIAddress) String() string { return decode(uint32(v), miiAddressFields) }

// EncodeMII is the command that reads or writes a register of a PHY. Bits that do not fit their field are dropped.
func EncodeMII(phy, reg int, clock uint32, write bool) MIIAddress {
	v := miiBusy | MIIAddress(phy&miiPHYMask)<<miiPHYShift | MIIAddress(reg&miiRegMask)<<miiRegShift |
		MIIAddress(clock&miiClockMask)<<miiClockShift
	if write {
		v |= miiWrite
	}
	return v
}

// PHY, Reg, Clock, Write and Busy take a command apart.
func (v MIIAddress) PHY() int      { return int(v >> miiPHYShift & miiPHYMask) }
func (v MIIAddress) Reg() int      { return int(v >> miiRegShift & miiRegMask) }
func (v MIIAddress) Clock() uint32 { return uint32(v >> miiClockShift & miiClockMask) }
func (v MIIAddress) Write() bool   { return v&miiWrite != 0 }
func (v MIIAddress) Busy() bool    { return v&miiBusy != 0 }

// csrRanges are the values of CR by the frequency of the register clock, in Hz, from which they apply, and what they divide it
// by (Linux stmmac_mdio.c and include/linux/stmmac.h, STMMAC_CSR_*).
var csrRanges = [...]struct {
	from, code, divider uint32
}{
	{20_000_000, 2, 16},
	{35_000_000, 3, 26},
	{60_000_000, 0, 42},
	{100_000_000, 1, 62},
	{150_000_000, 4, 102},
	{250_000_000, 5, 124},
}

const csrHighest = 300_000_000

// CSRRange is the value of CR, and the divider it stands for, that makes the MDIO clock at most 2.5 MHz from a register clock
// of hz, 20 to 300 MHz.
func CSRRange(hz uint32) (code, divider uint32, err error) {
	if hz >= csrRanges[0].from && hz <= csrHighest {
		for _, r := range csrRanges {
			if hz < r.from {
				break
			}
			code, divider = r.code, r.divider
		}
		return code, divider, nil
	}
	return 0, 0, configError("CSRClockHz", fmt.Sprintf("%d is not from %d to %d", hz, csrRanges[0].from, csrHighest))
}

// ReadPHY reads register reg of the PHY at address phy, both 0 to 31. Where nothing answers the value is 0xFFFF. Accesses are
// serialised; one takes some 40 µs and at most 20 ms.
func (m *MAC) ReadPHY(phy, reg int) (uint16, error) { return m.mdio("read PHY", phy, reg, 0, false) }

// WritePHY writes register reg of the PHY at address phy.
func (m *MAC) WritePHY(phy, reg int, v uint16) error {
	_, err := m.mdio("write PHY", phy, reg, v, true)
	return err
}

func (m *MAC) mdio(op string, phy, reg int, v uint16, write bool) (uint16, error) {
	if phy < 0 || phy >= phyAddresses || reg < 0 || reg >= phyRegisters {
		return 0, &Error{Op: op, Hint: fmt.Sprintf("address %d register %d is not from 0 to 31", phy, reg), Err: ErrConfig}
	}
	m.mdioMu.Lock()
	defer m.mdioMu.Unlock()
	if m.closed.Load() {
		return 0, closedError(op)
	}
	// The bus takes no command while it is busy, and the data register belongs to the command under way.
	if err := m.until(op, RegMIIAddress, uint32(miiBusy), 0, mdioLimit); err != nil {
		return 0, err
	}
	if write {
		m.reg.Store32(RegMIIData, uint32(v))
	}
	m.reg.Store32(RegMIIAddress, uint32(EncodeMII(phy, reg, m.csrRange, write)))
	if err := m.until(op, RegMIIAddress, uint32(miiBusy), 0, mdioLimit); err != nil {
		return 0, err
	}
	if write {
		return 0, nil
	}
	return uint16(m.reg.Load32(RegMIIData)), nil
}
