package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// onesSum is the checksum of RFC 1071 as its text has it, word by word.
func onesSum(parts ...[]byte) uint16 {
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if len(all)%2 != 0 {
		all = append(all, 0)
	}
	var s uint32
	for i := 0; i < len(all); i += 2 {
		s += uint32(all[i])<<8 | uint32(all[i+1])
		if s > 0xFFFF {
			s -= 0xFFFF
		}
	}
	return ^uint16(s)
}

// packet describes an IP packet to be made.
type packet struct {
	v6      bool
	proto   byte
	body    int // bytes behind the transport header
	vlan    int // tags
	options int // bytes of IPv4 options or of an IPv6 hop-by-hop header
	frag    uint16
	noSum   bool // leave UDP's checksum at zero
	frag6   bool // an IPv6 fragment header
}

// make builds the frame with right checksums, and tells where the IP header and the transport header are.
func (k packet) make(to, from [6]byte) (frame []byte, ip, tp int) {
	frame = append(append([]byte(nil), to[:]...), from[:]...)
	for range k.vlan {
		frame = append(frame, 0x81, 0x00, 0x00, 0x05)
	}
	hdr := map[byte]int{protoTCP: 20, protoUDP: 8, protoICMP: 8, protoICMPv6: 8}[k.proto]
	seg := make([]byte, hdr+k.body)
	for i := range seg {
		seg[i] = byte(i*13 + 7)
	}
	sumAt := -1
	switch k.proto {
	case protoTCP:
		seg[12] = 5 << 4
		sumAt = 16
	case protoUDP:
		binary.BigEndian.PutUint16(seg[4:], uint16(len(seg)))
		sumAt = 6
	case protoICMP, protoICMPv6:
		sumAt = 2
	}
	var head, pseudo []byte
	if k.v6 {
		frame = append(frame, 0x86, 0xDD)
		ext := k.options
		if k.frag6 {
			ext += 8
		}
		head = make([]byte, 40+ext)
		head[0] = 0x60
		binary.BigEndian.PutUint16(head[4:], uint16(ext+len(seg)))
		head[6], head[7] = k.proto, 64
		for i := 8; i < 40; i++ {
			head[i] = byte(i * 5)
		}
		at := 40
		if k.options > 0 {
			head[6], head[at], head[at+1] = protoHop, k.proto, byte(k.options/8-1)
			at += k.options
		}
		if k.frag6 {
			head[6], head[at], head[at+3] = protoFragment, k.proto, 1
		}
		pseudo = append(pseudo, head[8:40]...)
		pseudo = binary.BigEndian.AppendUint32(pseudo, uint32(len(seg)))
		pseudo = append(pseudo, 0, 0, 0, k.proto)
	} else {
		frame = append(frame, 0x08, 0x00)
		head = make([]byte, 20+k.options)
		head[0] = 0x40 | byte(len(head)/4)
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+len(seg)))
		binary.BigEndian.PutUint16(head[6:], k.frag)
		head[8], head[9] = 64, k.proto
		copy(head[12:], []byte{192, 168, 77, 1, 192, 168, 77, 2})
		binary.BigEndian.PutUint16(head[10:], onesSum(head))
		if k.proto != protoICMP {
			pseudo = append(append(pseudo, head[12:20]...), 0, k.proto)
			pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(seg)))
		}
	}
	if sumAt >= 0 {
		seg[sumAt], seg[sumAt+1] = 0, 0
		if !k.noSum {
			s := onesSum(pseudo, seg)
			if s == 0 && k.proto == protoUDP {
				s = 0xFFFF
			}
			binary.BigEndian.PutUint16(seg[sumAt:], s)
		}
	}
	ip = len(frame)
	frame = append(append(frame, head...), seg...)
	for len(frame) < minFrame {
		frame = append(frame, 0)
	}
	return frame, ip, ip + len(head)
}

func TestSumWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32() | r.Uint32()) // many ones, so that carries happen
		}
		if got, want := ^fold(sumWords(p)), onesSum(p); got != want && !(got == 0xFFFF && want == 0 || got == 0 && want == 0xFFFF) {
			t.Errorf("%d bytes: 0x%04x, want 0x%04x", n, got, want)
		}
	}
	ones := make([]byte, 1600)
	for i := range ones {
		ones[i] = 0xFF
	}
	if got := fold(sumWords(ones)); got != 0xFFFF {
		t.Errorf("all ones sum up to 0x%04x", got)
	}
}

// TestChecksumVerdicts is the truth table of the receive checksum engine, type 2, over FT, IPCE and PCE.
func TestChecksumVerdicts(t *testing.T) {
	const (
		ft = rxFT
		ip = rxIPCE
		pl = rxPCE
	)
	damageIP := func(f []byte, at, _ int) { f[at+1] ^= 1 }
	damageL4 := func(f []byte, _, at int) { f[at+1] ^= 1 }
	both := func(f []byte, i, a int) { damageIP(f, i, a); damageL4(f, i, a) }
	for _, c := range []struct {
		name   string
		k      packet
		change func(f []byte, ip, tp int)
		want   uint32
		ext    uint32
	}{
		{"TCP4", packet{proto: protoTCP, body: 100}, nil, ft, extIPv4 | extTCP},
		{"TCP4 odd", packet{proto: protoTCP, body: 101}, nil, ft, extIPv4 | extTCP},
		{"TCP4 full", packet{proto: protoTCP, body: 1460}, nil, ft, extIPv4 | extTCP},
		{"UDP4", packet{proto: protoUDP, body: 100}, nil, ft, extIPv4 | extUDP},
		{"UDP4 padded", packet{proto: protoUDP, body: 1}, nil, ft, extIPv4 | extUDP},
		{"UDP4 without sum", packet{proto: protoUDP, body: 9, noSum: true}, nil, ft, extIPv4 | extUDP},
		{"UDP6 without sum", packet{v6: true, proto: protoUDP, body: 9, noSum: true}, nil, ft | pl, extIPv6 | extUDP | extIPPE},
		{"ICMP4", packet{proto: protoICMP, body: 56}, nil, ft, extIPv4 | extICMP},
		{"TCP6", packet{v6: true, proto: protoTCP, body: 77}, nil, ft, extIPv6 | extTCP},
		{"UDP6", packet{v6: true, proto: protoUDP, body: 77}, nil, ft, extIPv6 | extUDP},
		{"ICMP6", packet{v6: true, proto: protoICMPv6, body: 77}, nil, ft, extIPv6 | extICMP},
		{"TCP4 with options", packet{proto: protoTCP, body: 10, options: 12}, nil, ft, extIPv4 | extTCP},
		{"TCP6 with hop-by-hop", packet{v6: true, proto: protoTCP, body: 10, options: 16}, nil, ft, extIPv6 | extTCP},
		{"TCP4 in a VLAN", packet{proto: protoTCP, body: 100, vlan: 1}, nil, ft, extIPv4 | extTCP},
		{"TCP4 in two VLANs", packet{proto: protoTCP, body: 100, vlan: 2}, nil, ip | pl, extBypassed},
		{"header error", packet{proto: protoTCP, body: 100}, damageIP, ft | ip, extIPv4 | extIPHE},
		{"payload error", packet{proto: protoTCP, body: 100}, damageL4, ft | pl, extIPv4 | extTCP | extIPPE},
		{"payload error UDP6", packet{v6: true, proto: protoUDP, body: 40}, damageL4, ft | pl, extIPv6 | extUDP | extIPPE},
		{"payload error ICMP4", packet{proto: protoICMP, body: 40}, damageL4, ft | pl, extIPv4 | extICMP | extIPPE},
		{"both", packet{proto: protoUDP, body: 40}, both, ft | ip | pl, extIPv4 | extIPHE},
		{"version 5", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at] = 0x55 }, ft | ip, extIPv4 | extIPHE},
		{"version 4 behind 86DD", packet{v6: true, proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at] = 0x45 }, ft | ip, extIPv6 | extIPHE},
		{"header length 4", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at] = 0x44 }, ft | ip, extIPv4 | extIPHE},
		{"length beyond the frame", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) {
			binary.BigEndian.PutUint16(f[at+2:], 2000)
			f[at+10], f[at+11] = 0, 0
			binary.BigEndian.PutUint16(f[at+10:], onesSum(f[at:at+20]))
		}, ft | pl, extIPv4 | extTCP | extIPPE},
		{"first fragment", packet{proto: protoUDP, body: 40, frag: 0x2000}, damageL4, ft, extIPv4},
		{"later fragment", packet{proto: protoUDP, body: 40, frag: 5}, damageL4, ft, extIPv4},
		{"IPv6 fragment", packet{v6: true, proto: protoUDP, body: 40, frag6: true}, damageL4, pl, extIPv6},
		{"unknown protocol", packet{proto: 253, body: 40}, nil, pl, extIPv4},
		{"IPv6 no next header", packet{v6: true, proto: protoNone, body: 40}, nil, pl, extIPv6},
		{"unknown protocol, header error", packet{proto: 253, body: 40}, damageIP, ft | ip, extIPv4 | extIPHE},
		{"not IP", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at-2], f[at-1] = 0x88, 0xB5 }, ip | pl, extBypassed},
		{"802.3", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) {
			binary.BigEndian.PutUint16(f[at-2:], uint16(len(f)-14))
		}, 0, extBypassed},
	} {
		for _, atds := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " atds=", atds), func(t *testing.T) {
				x := newBench(t, Options{EnhancedDescriptors: atds}, driverOptions{config: cfgIPC, opMode: opDT, atds: atds}, gigabit())
				frame, ipAt, tpAt := c.k.make(x.mac(), hostMAC)
				if c.change != nil {
					c.change(frame, ipAt, tpAt)
				}
				x.hostSend(frame)
				got := x.all()
				if len(got) != 1 {
					t.Fatalf("%d frames in memory, stats %+v", len(got), x.b.Stats())
				}
				equalFrame(t, got[0].frame(), frame)
				if st := got[0].status; st&rxES != 0 {
					t.Errorf("status 0x%08x has ES: the checksum engine is not part of it", st)
				}
				if !atds {
					if st := got[0].status & (rxFT | rxIPCE | rxPCE); st != c.want {
						t.Errorf("FT, IPCE, PCE are 0x%02x, want 0x%02x", st, c.want)
					}
				} else if got[0].ext != c.ext || c.name != "802.3" && got[0].status&rxPCE == 0 {
					t.Errorf("RDES4 is 0x%02x with status 0x%08x, want 0x%02x", got[0].ext, got[0].status, c.ext)
				}
				noViolations(t, x.b)
			})
		}
	}
}

func TestChecksumErrorsAreDroppedUnlessTold(t *testing.T) {
	bad, _, at := packet{proto: protoTCP, body: 100}.make([6]byte{}, hostMAC)
	bad[at+1] ^= 1
	for _, c := range []struct {
		name   string
		config uint32
		op     uint32
		want   int
	}{
		{"IPC", cfgIPC, 0, 0},
		{"DT", cfgIPC, opDT, 1},
		{"FEF", cfgIPC, opFEF, 1},
		{"no IPC", 0, 0, 1},
	} {
		x := newBench(t, Options{}, driverOptions{config: c.config, opMode: c.op}, gigabit())
		mac := x.mac()
		copy(bad, mac[:])
		x.hostSend(bad)
		if got := len(x.all()); got != c.want {
			t.Errorf("%s: %d frames in memory, want %d", c.name, got, c.want)
		}
		if got := x.b.Stats().RXDropChecksum; int(got) != 1-c.want {
			t.Errorf("%s: %d drops counted", c.name, got)
		}
	}
}

// TestInsertedChecksums: what the engine inserts is what software computes.
func TestInsertedChecksums(t *testing.T) {
	for _, enhanced := range []bool{false, true} {
		for _, k := range []packet{
			{proto: protoTCP, body: 100}, {proto: protoTCP, body: 33}, {proto: protoUDP, body: 1472}, {proto: protoUDP, body: 3},
			{proto: protoICMP, body: 57}, {v6: true, proto: protoTCP, body: 1000}, {v6: true, proto: protoUDP, body: 7},
			{v6: true, proto: protoICMPv6, body: 64}, {proto: protoTCP, body: 10, vlan: 1}, {proto: protoTCP, body: 10, options: 8},
			{v6: true, proto: protoUDP, body: 50, options: 8},
		} {
			for cic := uint32(0); cic <= 3; cic++ {
				x := newBench(t, Options{EnhancedDescriptors: enhanced}, driverOptions{}, gigabit())
				x.cic = cic
				want, ipAt, tpAt := k.make(hostMAC, x.mac())
				frame := append([]byte(nil), want...)
				sumAt := tpAt + map[byte]int{protoTCP: 16, protoUDP: 6, protoICMP: 2, protoICMPv6: 2}[k.proto]
				if !k.v6 {
					binary.BigEndian.PutUint16(frame[ipAt+10:], 0xABCD)
				}
				binary.BigEndian.PutUint16(frame[sumAt:], 0x1234)
				switch cic {
				case 0:
					copy(want, frame)
				case 1:
					copy(want[tpAt:], frame[tpAt:])
				case 2: // the field holds the sum of the pseudo header: as if it were right, it comes out as if summed again
					binary.BigEndian.PutUint16(frame[sumAt:], pseudoOf(k, want, ipAt, tpAt))
				}
				x.send(frame)
				x.clock.Advance(time.Millisecond)
				got := x.arrived()
				if len(got) != 1 {
					t.Fatalf("%+v CIC %d: %d frames", k, cic, len(got))
				}
				if string(got[0]) != string(want) {
					t.Errorf("%+v CIC %d:\n got %x\nwant %x", k, cic, got[0], want)
				}
				if st := x.reclaim(); len(st) != 1 || st[0] != 0 {
					t.Errorf("%+v CIC %d: status %x", k, cic, st)
				}
				noViolations(t, x.b)
			}
		}
	}
}

// pseudoOf is the folded sum of a packet's pseudo header, which CIC 2 wants in the checksum field.
func pseudoOf(k packet, frame []byte, ip, tp int) uint16 {
	n := 0
	var p []byte
	switch {
	case k.v6:
		n = 40 + int(binary.BigEndian.Uint16(frame[ip+4:])) - (tp - ip)
		p = append(p, frame[ip+8:ip+40]...)
	case k.proto == protoICMP:
		return 0
	default:
		n = int(binary.BigEndian.Uint16(frame[ip+2:])) - (tp - ip)
		p = append(p, frame[ip+12:ip+20]...)
	}
	p = append(p, 0, k.proto, byte(n>>8), byte(n))
	return ^onesSum(p)
}

func TestChecksumInsertionLeavesAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		k      packet
		change func(f []byte, ip, tp int)
		ipOnly bool
		status uint32
	}{
		{"fragments", packet{proto: protoUDP, body: 40, frag: 0x2000}, nil, true, 0},
		{"IPv6 fragments", packet{v6: true, proto: protoUDP, body: 40, frag6: true}, nil, false, 0},
		{"unknown payload", packet{proto: 50, body: 40}, nil, true, 0},
		{"two tags", packet{proto: protoTCP, body: 40, vlan: 2}, nil, false, 0},
		{"other types", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at-2], f[at-1] = 0x88, 0xB5 }, false, 0},
		{"bad headers", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at] = 0x65 }, false, txIHE},
		{"short packets", packet{proto: protoTCP, body: 40}, func(f []byte, at, _ int) { f[at+2] = 9 }, true, txPCE},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newBench(t, Options{}, driverOptions{}, gigabit())
			x.cic = 3
			frame, ipAt, tpAt := c.k.make(hostMAC, x.mac())
			frame[tpAt+6] ^= 0xFF
			if c.change != nil {
				c.change(frame, ipAt, tpAt)
			}
			want := append([]byte(nil), frame...)
			if c.ipOnly {
				binary.BigEndian.PutUint16(want[ipAt+10:], 0)
				binary.BigEndian.PutUint16(want[ipAt+10:], onesSum(want[ipAt:tpAt]))
			}
			x.send(frame)
			x.clock.Advance(time.Millisecond)
			got := x.arrived()
			if len(got) != 1 {
				t.Fatalf("%d frames arrived", len(got))
			}
			equalFrame(t, got[0], want)
			if st := x.reclaim(); len(st) != 1 || st[0] != c.status {
				t.Errorf("status %x, want %x", st, c.status)
			}
		})
	}
}

// TestChecksumOfAFrameThatDoesNotFit: with long bursts a full frame does not fit the FIFO, and its sum comes out wrong.
func TestChecksumOfAFrameThatDoesNotFit(t *testing.T) {
	x := newBench(t, Options{}, driverOptions{}, gigabit())
	x.cic = 3
	x.r.Store32(regBusMode, busUSP|bus8xPBL|8<<busPBL|8<<busRPBL) // 64 beats of 8 bytes: 1512 bytes are too many
	want, _, _ := packet{proto: protoTCP, body: 1460}.make(hostMAC, x.mac())
	x.send(want)
	x.clock.Advance(time.Millisecond)
	got := x.arrived()
	if len(got) != 1 || string(got[0]) == string(want) {
		t.Error("the checksum came out right")
	}
	if r := rules(x.b); len(r) != 1 || r[0] != RuleChecksumTooBig {
		t.Errorf("violations %v", r)
	}
}

func BenchmarkInspect(b *testing.B) {
	f, _, _ := packet{proto: protoTCP, body: 1460}.make(hostMAC, hostMAC)
	b.SetBytes(int64(len(f)))
	for range b.N {
		if p := inspect(f); p.bad() {
			b.Fatal("bad")
		}
	}
}
