package sim

// mdio is the MAC's management interface (Linux drivers/net/ethernet/stmicro/stmmac/stmmac_mdio.c, Intel
// socal/alt_emac.h GMII address register). It is guarded by the board's lock.
type mdio struct {
	addr   uint32
	value  uint16
	endsAt int64 // when the transaction ends
	active bool
}

// mdcDividers are what CR divides the CSR clock by; 0 is reserved.
var mdcDividers = [16]int64{42, 62, 16, 26, 102, 124, 0, 0, 4, 6, 8, 10, 12, 14, 16, 18}

const (
	mdcMax      = 2_500_000
	frameBits   = 64 // preamble, command, data
	nobodyThere = 0xFFFF
)

func (m *mdio) reset() { *m = mdio{} }

// busy reports whether a transaction is under way.
func (m *mdio) busy(b *Board) bool {
	if m.active && b.clock.nanos() >= m.endsAt && !b.faults.frozen(BitGB) {
		m.active = false
	}
	return m.active
}

// address is a read of the address register.
func (m *mdio) address(b *Board) uint32 {
	if m.busy(b) {
		return m.addr | miiGB
	}
	return m.addr
}

// data is a read of the data register.
func (m *mdio) data(b *Board) uint32 {
	if m.busy(b) {
		b.violate(RuleMDIOBusy, "read of GMII_Data")
	}
	return uint32(m.value)
}

// setData is a write of the data register.
func (m *mdio) setData(b *Board, v uint32) {
	if m.busy(b) {
		b.violate(RuleMDIOBusy, "0x%08x to GMII_Data", v)
		return
	}
	m.value = uint16(v)
}

// command is a write of the address register, which starts a transaction if GB is set in it. During one it is lost.
func (m *mdio) command(b *Board, v uint32) {
	if m.busy(b) {
		b.violate(RuleMDIOBusy, "0x%08x to GMII_Address", v)
		return
	}
	m.addr = v & 0xFFFE
	if v&miiGB == 0 {
		return
	}
	div := mdcDividers[v>>miiCR&15]
	if div == 0 || csrClockHz > div*mdcMax {
		b.violate(RuleMDC, "CR %d with a CSR clock of %d Hz", v>>miiCR&15, csrClockHz)
		div = max(div, 4)
	}
	m.active = true
	m.endsAt = b.clock.nanos() + frameBits*div*1_000_000_000/csrClockHz
	reg := v >> miiGR & miiField5
	there := int(v>>miiPA&miiField5) == b.opts.PHYAddress && !b.faults.phyAbsent.Load()
	if v&miiGW != 0 {
		b.cnt.mdioWrites++
		if there {
			b.phy.write(reg, m.value)
		}
		return
	}
	b.cnt.mdioReads++
	m.value = nobodyThere
	if there {
		m.value = b.phy.read(reg)
	}
}
