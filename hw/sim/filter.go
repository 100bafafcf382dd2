package sim

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// verdict is what the address filter says about a frame.
type verdict struct {
	pass bool
	afm  bool // destination did not match
	saf  bool // source did not match
}

// hashBin is the bin of an address in the 64-bin hash table: the upper bits of the bit-reversed, complemented CRC-32
// (Linux drivers/net/ethernet/stmicro/stmmac/dwmac1000_core.c).
func hashBin(addr []byte) uint32 { return bits.Reverse32(crc32.ChecksumIEEE(addr)) >> 26 }

// filter judges a frame by its addresses (Intel socal/alt_emac.h, MAC frame filter). b.mu is held.
func (b *Board) filter(d []byte) verdict {
	f := b.reg[mustSlot(regFilter)]
	da, sa := d[:6], d[6:12]
	var v verdict
	switch {
	case isBroadcast(d):
		v.pass = f&filterDBF == 0
	case f&filterPR != 0:
		v.pass = true
	default:
		v.pass = b.matchesDestination(f, da)
	}
	v.afm = !v.pass
	if f&filterPR != 0 {
		v.afm = false
		return v
	}
	if f&(filterSAF|filterSAIF) != 0 {
		match := false
		for n := 1; n < len(b.addr); n++ {
			if a := &b.addr[n]; a.on && a.source && a.matches(sa) {
				match = true
			}
		}
		v.saf = match == (f&filterSAIF != 0)
		if f&filterSAF != 0 && v.saf {
			v.pass = false
		}
	}
	if f&filterVTFE != 0 && binary.BigEndian.Uint16(d[12:]) == typeVLAN && !b.matchesVLAN(d) {
		v.pass = false
	}
	if f&filterRA != 0 {
		v.pass = true
	}
	return v
}

func (b *Board) matchesDestination(f uint32, da []byte) bool {
	perfect := false
	for n := range b.addr {
		if a := &b.addr[n]; a.on && !a.source && a.matches(da) {
			perfect = true
			break
		}
	}
	group := da[0]&1 != 0
	hashed := f&filterHUC != 0
	if group {
		if f&filterPM != 0 {
			return true
		}
		hashed = f&filterHMC != 0
	}
	inverse := f&filterDAIF != 0
	if !hashed {
		return perfect != inverse
	}
	bin := hashBin(da)
	table := b.reg[mustSlot(regHashLow)]
	if bin >= 32 {
		table = b.reg[mustSlot(regHashHigh)]
	}
	hit := table>>(bin&31)&1 != 0
	if f&filterHPF != 0 {
		hit = hit || perfect
	}
	return hit != inverse
}

func (a *macAddress) matches(addr []byte) bool {
	if a.mask == 0 {
		return bytes.Equal(a.bytes[:], addr)
	}
	for i := range a.bytes {
		if a.mask>>i&1 == 0 && a.bytes[i] != addr[i] {
			return false
		}
	}
	return true
}

// isVLAN reports whether a frame carries a tag that the MAC knows.
func (b *Board) isVLAN(d []byte) bool {
	switch binary.BigEndian.Uint16(d[12:]) {
	case typeVLAN:
		return true
	case typeSVLAN:
		return b.reg[mustSlot(regVLANTag)]&vlanESVL != 0
	}
	return false
}

// matchesVLAN reports whether a tagged frame's tag is the one looked for. b.mu is held.
func (b *Board) matchesVLAN(d []byte) bool {
	tag := b.reg[mustSlot(regVLANTag)]
	if len(d) < headerBytes+vlanBytes {
		return false
	}
	want, got := tag&vlanVL, uint32(binary.BigEndian.Uint16(d[14:]))
	if tag&vlanETV != 0 {
		want, got = want&0xFFF, got&0xFFF
	}
	if want == 0 {
		return true
	}
	return (got == want) != (tag&vlanVTIM != 0)
}
