package hw

import (
	"fmt"
	"hash/crc32"
	mathbits "math/bits"
	"slices"
)

// Filter is which frames the MAC passes besides broadcast and those to its own address.
type Filter struct {
	Promiscuous  bool      // all frames, control frames too
	AllMulticast bool      // all groups
	Multicast    [][6]byte // groups. They pass by hash, so others pass too; without a hash all do
	Unicast      [][6]byte // further station addresses
}

// clone copies f, so that the caller may reuse its slices.
func (f Filter) clone() Filter {
	f.Multicast, f.Unicast = slices.Clone(f.Multicast), slices.Clone(f.Unicast)
	return f
}

func (f Filter) validate() error {
	for _, a := range f.Multicast {
		if !multicast(a) {
			return &Error{Op: "set filter", Hint: fmt.Sprintf("Multicast: %x is not a group address", a), Err: ErrConfig}
		}
	}
	for _, a := range f.Unicast {
		if !validStation(a) {
			return &Error{Op: "set filter", Hint: fmt.Sprintf("Unicast: %x is not a unicast address", a), Err: ErrConfig}
		}
	}
	return nil
}

// HashBin is the bin of an address in a hash table of 64, 128 or 256 bins: the upper bits of the bit-reversed CRC-32 of
// Ethernet over the address (Linux dwmac1000_core.c, dwmac1000_set_filter).
func HashBin(a [6]byte, bins int) int {
	crc := mathbits.Reverse32(crc32.ChecksumIEEE(a[:]))
	return int(crc >> (32 - mathbits.Len(uint(bins-1))))
}

// filterWords is what the registers hold for a Filter.
type filterWords struct {
	filter  FrameFilter
	hash    [hashWords]uint32 // bin n is bit n%32 of word n/32
	perfect [][6]byte         // entries 1 and up
}

// words computes the registers for a table of bins bins and a perfect filter with entries entries, entry 0 included.
func (f Filter) words(bins, entries int) filterWords {
	var w filterWords
	room := max(entries-1, 0)
	perfect := f.Unicast[:min(len(f.Unicast), room)]
	rest := f.Unicast[len(perfect):]
	w.perfect = perfect
	if f.Promiscuous || len(rest) > 0 && bins == 0 {
		w.filter = FiltPR | FiltPCFAll
		return w
	}
	w.filter = FiltHPF
	add := func(a [6]byte) {
		n := HashBin(a, bins)
		w.hash[n/32] |= 1 << (n % 32)
	}
	for _, a := range rest {
		w.filter |= FiltHUC
		add(a)
	}
	switch {
	case f.AllMulticast, len(f.Multicast) > 0 && bins == 0:
		w.filter |= FiltPM
	case len(f.Multicast) > 0:
		w.filter |= FiltHMC
		for _, a := range f.Multicast {
			add(a)
		}
	}
	return w
}

// SetFilter replaces the filter: every register is a function of f alone, entries that are not used any more are cleared.
// Where there are more Unicast addresses than entries the rest goes by hash, and without one the MAC is promiscuous. After
// Open all multicast passes.
func (m *MAC) SetFilter(f Filter) error {
	if err := f.validate(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("set filter")
	}
	m.filter = f.clone()
	m.writeFilter()
	return nil
}

// Filter is what SetFilter set last, or the default.
func (m *MAC) Filter() Filter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filter.clone()
}

// writeFilter writes tables and entries first and the register that uses them last.
func (m *MAC) writeFilter() {
	w := m.filter.words(m.bins, m.entries)
	for n := 1; n < m.entries; n++ {
		high, low := uint32(addrHighUnused), uint32(addrLowUnused)
		if n <= len(w.perfect) {
			high, low = AddressWords(w.perfect[n-1])
		}
		m.sync.pair(addressOffset(n), high, low)
	}
	switch m.bins {
	case 0:
	case 64:
		m.sync.write(RegHashHigh, w.hash[1])
		m.sync.write(RegHashLow, w.hash[0])
	default:
		for i := range m.bins / 32 {
			m.sync.write(RegExtendedHash+4*uint32(i), w.hash[i])
		}
	}
	m.sync.write(RegFrameFilter, uint32(w.filter))
}

// SetAddress changes the station address.
func (m *MAC) SetAddress(a [6]byte) error {
	if !validStation(a) {
		return &Error{Op: "set address", Hint: fmt.Sprintf("%x is not a unicast address", a), Err: ErrConfig}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed.Load() {
		return closedError("set address")
	}
	m.address = a
	m.writeAddress()
	return nil
}

// Address is the station address.
func (m *MAC) Address() [6]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.address
}

func (m *MAC) writeAddress() {
	high, low := AddressWords(m.address)
	m.sync.pair(RegAddressHigh, high, low)
}

// countEntries finds out how large the perfect filter is: after a reset every entry that exists holds the value of an unused
// one, and others read as zero. Where there are more than 16 the rest is left alone.
func (m *MAC) countEntries() {
	m.entries = 1
	if !m.feature.Has(FeatAddresses) {
		return
	}
	for n := 1; n < 16; n++ {
		off := addressOffset(n)
		high := m.reg.Load32(off)
		if high != addrHighUnused {
			return
		}
		m.sync.assume(off, high)
		m.sync.assume(off+4, m.reg.Load32(off+4))
		m.entries = n + 1
	}
}
