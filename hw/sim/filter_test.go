package sim

import (
	"encoding/binary"
	"testing"
	"time"
)

func TestAddressFilter(t *testing.T) {
	own := [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}
	other := [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x56}
	bcast := [6]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}
	group := [6]byte{0x01, 0x00, 0x5E, 0x00, 0x00, 0xFB}  // bin 48: high word, bit 16
	group2 := [6]byte{0x33, 0x33, 0x00, 0x00, 0x00, 0x01} // bin 1: low word, bit 1
	const high16, low1 = 1 << 16, 1 << 1
	type got struct {
		Pass bool
		AFM  bool
	}
	yes, no, failed := got{true, false}, got{}, got{true, true}
	for _, c := range []struct {
		name      string
		filter    uint32
		high, low uint32
		addr1     uint32 // high half of address 1, whose rest is that of other
		to        [6]byte
		want      got
	}{
		{"own", 0, 0, 0, 0, own, yes},
		{"other", 0, 0, 0, 0, other, no},
		{"broadcast", 0, 0, 0, 0, bcast, yes},
		{"broadcast off", filterDBF, 0, 0, 0, bcast, no},
		{"broadcast off wins over promiscuous", filterDBF | filterPR, 0, 0, 0, bcast, no},
		{"group", 0, 0, 0, 0, group, no},
		{"group, pass all", filterPM, 0, 0, 0, group, yes},
		{"other, pass all groups", filterPM, 0, 0, 0, other, no},
		{"group in the hash", filterHMC, high16, 0, 0, group, yes},
		{"group in the wrong half", filterHMC, 0, high16, 0, group, no},
		{"group in the low half", filterHMC, 0, low1, 0, group2, yes},
		{"hash without HMC", 0, high16, 0, 0, group, no},
		{"own with HUC and an empty hash", filterHUC, 0, 0, 0, own, no},
		{"own with HUC and HPF", filterHUC | filterHPF, 0, 0, 0, own, yes},
		{"own with HMC", filterHMC, 0, 0, 0, own, yes},
		{"promiscuous", filterPR, 0, 0, 0, other, yes},
		{"receive all tells", filterRA, 0, 0, 0, other, failed},
		{"receive all, own", filterRA, 0, 0, 0, own, yes},
		{"inverse own", filterDAIF, 0, 0, 0, own, no},
		{"inverse other", filterDAIF, 0, 0, 0, other, yes},
		{"second address", 0, 0, 0, addrAE, other, yes},
		{"second address off", 0, 0, 0, 0, other, no},
		{"second address masked", 0, 0, 0, addrAE | 1<<5<<addrMBC, [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x99}, yes},
		{"second address masked, other byte", 0, 0, 0, addrAE | 1<<5<<addrMBC, [6]byte{0x02, 0x11, 0x22, 0x33, 0x99, 0x56}, no},
		{"second address is for the source", 0, 0, 0, addrAE | addrSA, other, no},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newBench(t, Options{Address: own}, driverOptions{}, gigabit())
			x.clock.Advance(time.Millisecond)
			x.r.Store32(regFilter, c.filter)
			x.r.Store32(regHashHigh, c.high)
			x.r.Store32(regHashLow, c.low)
			x.r.Store32(regAddress0+8, c.addr1|uint32(binary.LittleEndian.Uint16(other[4:])))
			x.r.Store32(regAddress0+12, binary.LittleEndian.Uint32(other[:4]))
			x.hostSend(makeFrame(c.to, hostMAC, 100))
			all := x.all()
			var g got
			if len(all) > 0 {
				g = got{true, all[0].status&rxAFM != 0}
			}
			if g != c.want {
				t.Errorf("got %+v, want %+v", g, c.want)
			}
			if s := x.b.Stats(); int(s.RXDropFilter) != 1-len(all) {
				t.Errorf("%d dropped by the filter", s.RXDropFilter)
			}
			noViolations(t, x.b)
		})
	}
}

// TestHashBins has the bins of well-known addresses, computed by hand from their CRC.
func TestHashBins(t *testing.T) {
	for _, c := range []struct {
		addr [6]byte
		bin  uint32
	}{
		{[6]byte{0x01, 0x00, 0x5E, 0x00, 0x00, 0x01}, 32},
		{[6]byte{0x01, 0x00, 0x5E, 0x00, 0x00, 0xFB}, 48},
		{[6]byte{0x01, 0x00, 0x5E, 0x7F, 0xFF, 0xFA}, 20},
		{[6]byte{0x33, 0x33, 0x00, 0x00, 0x00, 0x01}, 1},
		{[6]byte{0x33, 0x33, 0x00, 0x00, 0x00, 0xFB}, 17},
		{[6]byte{0x33, 0x33, 0xFF, 0x12, 0x34, 0x56}, 61},
		{[6]byte{0x01, 0x80, 0xC2, 0x00, 0x00, 0x0E}, 30},
		{[6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}, 47},
	} {
		if got := hashBin(c.addr[:]); got != c.bin {
			t.Errorf("%x: bin %d, want %d", c.addr, got, c.bin)
		}
	}
}

func TestSourceFilter(t *testing.T) {
	for _, c := range []struct {
		filter uint32
		from   [6]byte
		pass   bool
		saf    bool
	}{
		{0, hostMAC, true, false},
		{filterSAF, hostMAC, true, false},
		{filterSAF, [6]byte{2}, false, false},
		{filterSAF | filterSAIF, hostMAC, false, false},
		{filterSAF | filterSAIF, [6]byte{2}, true, false},
		{filterSAF | filterRA, [6]byte{2}, true, true},
		{filterSAIF, hostMAC, true, true}, // told, not dropped
	} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.clock.Advance(time.Millisecond)
		x.r.Store32(regFilter, c.filter)
		x.r.Store32(regAddress0+8, addrAE|addrSA|uint32(binary.LittleEndian.Uint16(hostMAC[4:])))
		x.r.Store32(regAddress0+12, binary.LittleEndian.Uint32(hostMAC[:4]))
		x.hostSend(makeFrame(x.mac(), c.from, 100))
		all := x.all()
		if len(all) == 1 != c.pass {
			t.Errorf("filter 0x%x, source %x: %d frames", c.filter, c.from, len(all))
		} else if c.pass && all[0].status&rxSAF != 0 != c.saf {
			t.Errorf("filter 0x%x, source %x: status 0x%08x", c.filter, c.from, all[0].status)
		}
	}
}

func TestVLANMatch(t *testing.T) {
	for _, c := range []struct {
		tag    uint32
		typ    uint16
		tci    uint16
		filter uint32
		want   bool // VLAN bit
		pass   bool
	}{
		{0, typeVLAN, 5, 0, true, true},
		{0, typeSVLAN, 5, 0, false, true},
		{vlanESVL, typeSVLAN, 5, 0, true, true},
		{5, typeVLAN, 5, 0, true, true},
		{5, typeVLAN, 6, 0, false, true},
		{5, typeVLAN, 0x2005, 0, false, true},
		{5 | vlanETV, typeVLAN, 0x2005, 0, true, true},
		{5 | vlanVTIM, typeVLAN, 6, 0, true, true},
		{5, typeVLAN, 6, filterVTFE, false, false},
		{5, typeVLAN, 5, filterVTFE, true, true},
	} {
		x := newBench(t, Options{}, driverOptions{}, gigabit())
		x.clock.Advance(time.Millisecond)
		x.r.Store32(regVLANTag, c.tag)
		x.r.Store32(regFilter, c.filter)
		p := makeFrame(x.mac(), hostMAC, 100)
		binary.BigEndian.PutUint16(p[12:], c.typ)
		binary.BigEndian.PutUint16(p[14:], c.tci)
		x.hostSend(p)
		all := x.all()
		if len(all) == 1 != c.pass {
			t.Errorf("%+v: %d frames", c, len(all))
		} else if c.pass && all[0].status&rxVLAN != 0 != c.want {
			t.Errorf("%+v: status 0x%08x", c, all[0].status)
		}
	}
}
