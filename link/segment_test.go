package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// frameBuffer collects one frame as a ring slot does.
type frameBuffer [2048]byte

func (f *frameBuffer) Write(off int, p []byte) { copy(f[off:], p) }

// superPacket describes a TCP packet as the stack hands it over: pseudo-header sum only, length of the whole.
type superPacket struct {
	v6       bool
	ipOpts   []byte // IPv4 options or IPv6 extension headers, a multiple of 4 or 8 bytes
	tcpOpts  []byte
	flags    header.TCPFlags
	seq      uint32
	id       uint16
	payload  []byte
	vlan     bool
	nextHdrs []byte // for IPv6 extension headers: the next header field of the fixed header
}

// bytes is the packet as one flat slice and the length of its headers.
func (p superPacket) bytes() (b []byte, hdrLen int) {
	b = append(b, 0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2)
	if p.vlan {
		b = append(b, 0x81, 0, 0, 7)
	}
	tcpLen := 20 + len(p.tcpOpts)
	if p.v6 {
		b = append(b, 0x86, 0xdd, 0x60, 1, 2, 3)
		b = binary.BigEndian.AppendUint16(b, uint16(len(p.ipOpts)+tcpLen+len(p.payload)))
		next := byte(6)
		if len(p.ipOpts) > 0 {
			next = p.nextHdrs[0]
		}
		b = append(b, next, 64)
		for i := range 32 {
			b = append(b, byte(i*7))
		}
		b = append(b, p.ipOpts...)
	} else {
		b = append(b, 0x08, 0)
		ip := make([]byte, 20+len(p.ipOpts))
		ip[0] = 0x40 | byte(len(ip)/4)
		ip[1] = 0x04
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+tcpLen+len(p.payload)))
		binary.BigEndian.PutUint16(ip[4:], p.id)
		ip[6] = 0x40
		ip[8], ip[9] = 64, 6
		copy(ip[12:], []byte{10, 0, 0, 1, 10, 0, 0, 2})
		copy(ip[20:], p.ipOpts)
		binary.BigEndian.PutUint16(ip[10:], ^naiveSum(ip))
		b = append(b, ip...)
	}
	tcp := make([]byte, tcpLen)
	binary.BigEndian.PutUint16(tcp[0:], 5201)
	binary.BigEndian.PutUint16(tcp[2:], 40000)
	binary.BigEndian.PutUint32(tcp[4:], p.seq)
	binary.BigEndian.PutUint32(tcp[8:], 0x01020304)
	tcp[12] = byte(tcpLen/4) << 4
	tcp[13] = byte(p.flags)
	binary.BigEndian.PutUint16(tcp[14:], 5000)
	binary.BigEndian.PutUint16(tcp[16:], 0xbeef) // whatever the stack left there
	copy(tcp[20:], p.tcpOpts)
	b = append(b, tcp...)
	return append(b, p.payload...), len(b)
}

// naiveSum is the Internet checksum's sum, a byte at a time (RFC 1071).
func naiveSum(b []byte) uint16 {
	var s uint32
	for i, c := range b {
		if i%2 == 0 {
			s += uint32(c) << 8
		} else {
			s += uint32(c)
		}
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// naiveSegments cuts a flat packet as the RFCs and Linux's tcp_gso_segment have it, written without regard to speed and
// without the code under test.
func naiveSegments(flat []byte, hdrLen, mss int) [][]byte {
	l3 := 14
	if flat[12] == 0x81 {
		l3 = 18
	}
	v6 := flat[l3]>>4 == 6
	l4 := l3 + int(flat[l3]&15)*4
	if v6 {
		l4 = l3 + 40
		for next := flat[l3+6]; next != 6; {
			next, l4 = flat[l4], l4+8+8*int(flat[l4+1])
		}
	}
	payload := flat[hdrLen:]
	var frames [][]byte
	for o := 0; o == 0 || o < len(payload); o += mss {
		end := min(o+mss, len(payload))
		f := append(append([]byte{}, flat[:hdrLen]...), payload[o:end]...)
		if v6 {
			binary.BigEndian.PutUint16(f[l3+4:], uint16(len(f)-l3-40))
		} else {
			binary.BigEndian.PutUint16(f[l3+2:], uint16(len(f)-l3))
			binary.BigEndian.PutUint16(f[l3+4:], binary.BigEndian.Uint16(flat[l3+4:])+uint16(len(frames)))
			binary.BigEndian.PutUint16(f[l3+10:], 0)
			binary.BigEndian.PutUint16(f[l3+10:], ^naiveSum(f[l3:l4]))
		}
		binary.BigEndian.PutUint32(f[l4+4:], binary.BigEndian.Uint32(flat[l4+4:])+uint32(o))
		if end < len(payload) {
			f[l4+13] &^= 0x01 | 0x08 | 0x04 // FIN, PSH, RST
		}
		if o > 0 {
			f[l4+13] &^= 0x80 // CWR
		}
		var pseudo []byte
		if v6 {
			pseudo = append(pseudo, f[l3+8:l3+40]...)
		} else {
			pseudo = append(pseudo, f[l3+12:l3+20]...)
		}
		pseudo = append(pseudo, 0, 6)
		pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(len(f)-l4))
		binary.BigEndian.PutUint16(f[l4+16:], 0)
		binary.BigEndian.PutUint16(f[l4+16:], ^naiveSum(append(pseudo, f[l4:]...)))
		frames = append(frames, f)
	}
	return frames
}

// packet makes a PacketBuffer of flat, split into views of the given sizes (the last is repeated).
func packet(flat []byte, hdrLen int, gso stack.GSO, views ...int) *stack.PacketBuffer {
	var buf buffer.Buffer
	for i := 0; len(flat) > 0; i++ {
		n := min(views[min(i, len(views)-1)], len(flat))
		v := buffer.MakeWithView(buffer.NewViewWithData(flat[:n]))
		buf.Merge(&v)
		flat = flat[n:]
	}
	pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buf})
	// The headers count as such, in one piece: only the sizes matter to the endpoint.
	pkt.LinkHeader().Consume(hdrLen)
	pkt.GSOOptions = gso
	return pkt
}

func cutAll(t *testing.T, pkt *stack.PacketBuffer, mtu int) [][]byte {
	t.Helper()
	var c cutter
	if !c.load(pkt, mtu) {
		t.Fatal("packet was refused")
	}
	var frames [][]byte
	for last := false; !last; {
		var f frameBuffer
		var n int
		n, last = c.next(&f)
		frames = append(frames, append([]byte{}, f[:n]...))
	}
	c.finish().DecRef()
	return frames
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Every frame cut from a packet equals, byte for byte, what a naive segmenter makes of the flat packet (cases GSO-04,
// GSO-08, GSO-09, GSO-11, GSO-18).
func TestSegmentsEqualNaiveOnes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	timestamps := []byte{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8}
	hopByHop := []byte{6, 0, 1, 4, 0, 0, 0, 0}
	packets := map[string]superPacket{
		"IPv4":                  {},
		"IPv4, timestamps":      {tcpOpts: timestamps},
		"IPv4, options":         {ipOpts: []byte{1, 1, 1, 1, 148, 4, 0, 0}},
		"IPv4, all options":     {ipOpts: make([]byte, 40), tcpOpts: make([]byte, 40)},
		"IPv4, tag":             {vlan: true},
		"IPv6":                  {v6: true, tcpOpts: timestamps},
		"IPv6, extension":       {v6: true, ipOpts: hopByHop, nextHdrs: []byte{0}},
		"ID and sequence wrap":  {id: 0xfffe, seq: 0xfffffff0},
		"FIN, PSH, CWR and ECE": {flags: header.TCPFlagAck | header.TCPFlagFin | header.TCPFlagPsh | header.TCPFlagCwr | header.TCPFlagEce | header.TCPFlagRst | header.TCPFlagUrg},
	}
	for name, p := range packets {
		t.Run(name, func(t *testing.T) {
			for _, mss := range []int{8, 76, 536, 1023, 1380} {
				for _, size := range []int{0, 1, mss - 1, mss, mss + 1, 2*mss - 1, 2 * mss, 2*mss + 1, 5*mss + 3, 64000} {
					if mss == 8 && size > 100 || size > 10000 && mss != 1380 && mss != 76 {
						continue
					}
					p := p
					p.payload = random(r, size)
					flat, hdrLen := p.bytes()
					typ := stack.GSOTCPv4
					if p.v6 {
						typ = stack.GSOTCPv6
					}
					gso := stack.GSO{Type: typ, NeedsCsum: true, CsumOffset: 16, MSS: uint16(mss), L3HdrLen: 20}
					for _, views := range [][]int{{hdrLen, 65536}, {hdrLen, 1}, {hdrLen, 7, 4096}, {hdrLen, 1 + r.IntN(3000)}} {
						if size > 6000 && views[1] != 65536 && views[1] != 7 {
							continue
						}
						got := cutAll(t, packet(flat, hdrLen, gso, views...), 1504)
						want := naiveSegments(flat, hdrLen, mss)
						if slices.EqualFunc(want, got, bytes.Equal) {
							continue // cmp takes its time over tens of thousands of bytes
						}
						if diff := cmp.Diff(want, got); diff != "" {
							t.Fatalf("MSS %d, %d bytes, views %v (-want +got):\n%s", mss, size, views, diff)
						}
					}
				}
			}
		})
	}
}

// Headers may be spread over any number of views (case GSO-11).
func TestSegmentHeaderInManyViews(t *testing.T) {
	p := superPacket{tcpOpts: make([]byte, 40), payload: random(rand.New(rand.NewPCG(3, 4)), 5000)}
	flat, hdrLen := p.bytes()
	gso := stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: 1400}
	for n := 1; n < hdrLen; n += 3 {
		pkt := packet(flat, hdrLen, gso, hdrLen, 999)
		scattered := packet(flat, 0, gso, n)
		var c, s cutter
		if !c.load(pkt, 1500) || !s.load(scattered, 1500) {
			t.Fatal("refused")
		}
		for last := false; !last; {
			var a, b frameBuffer
			n1, l := c.next(&a)
			n2, _ := s.next(&b)
			last = l
			if diff := cmp.Diff(a[:n1], b[:n2]); diff != "" {
				t.Fatalf("views of %d bytes:\n%s", n, diff)
			}
		}
		c.finish().DecRef()
		s.finish().DecRef()
	}
}

// A packet without segmentation request is sent as it is, checksums untouched, whatever it is (cases GV-09, GSO-14).
func TestPlainPacketsUntouched(t *testing.T) {
	p := superPacket{payload: []byte("hello")}
	flat, hdrLen := p.bytes()
	for name, gso := range map[string]stack.GSO{
		"none":                          {},
		"cut by gVisor":                 {Type: stack.GSOGvisor, MSS: 1420},
		"summed TCP smaller than MSS":   {Type: stack.GSOTCPv4, MSS: 1420},
		"not a TCP packet, nothing set": {MSS: 3},
	} {
		if diff := cmp.Diff([][]byte{flat}, cutAll(t, packet(flat, hdrLen, gso, 9), 1500)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for _, raw := range [][]byte{make([]byte, 14), append(make([]byte, 12), 0x88, 0xb5, 1, 2, 3)} {
		if diff := cmp.Diff([][]byte{raw}, cutAll(t, packet(raw, 14, stack.GSO{}, 5), 1500)); diff != "" {
			t.Error(diff)
		}
	}
}

// What cannot be segmented is refused (cases GSO-17, GSO-18), and the reference stays with the caller.
func TestSegmentationRefused(t *testing.T) {
	good := superPacket{payload: make([]byte, 5000)}
	flat, hdrLen := good.bytes()
	gso := func(mss uint16) stack.GSO { return stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: mss} }
	with := func(f func(b []byte)) []byte {
		b := append([]byte{}, flat...)
		f(b)
		return b
	}
	for name, tc := range map[string]struct {
		b   []byte
		gso stack.GSO
		mtu int
	}{
		"MSS 0":                    {flat, gso(0), 1500},
		"MSS 7":                    {flat, gso(7), 1500},
		"segments larger than MTU": {flat, gso(1461), 1500},
		"MTU has shrunk":           {flat, gso(1400), 1000},
		"UDP":                      {with(func(b []byte) { b[23] = 17 }), gso(1400), 1500},
		"fragment":                 {with(func(b []byte) { b[20] = 0x20 }), gso(1400), 1500},
		"IPv4 header length 0":     {with(func(b []byte) { b[14] = 0x40 }), gso(1400), 1500},
		"IPv5":                     {with(func(b []byte) { b[14] = 0x55 }), gso(1400), 1500},
		"TCP header length 0":      {with(func(b []byte) { b[46] = 0 }), gso(1400), 1500},
		"TCP header past the end":  {with(func(b []byte) { b[46] = 0xf0 })[:60], gso(1), 1500},
		"ARP":                      {with(func(b []byte) { b[12], b[13] = 8, 6 }), gso(1400), 1500},
		"only an Ethernet header":  {flat[:14], gso(1400), 1500},
		"nothing":                  {flat[:10], gso(1400), 1500},
	} {
		t.Run(name, func(t *testing.T) {
			pkt := packet(tc.b, min(hdrLen, len(tc.b)), tc.gso, 100)
			defer pkt.DecRef()
			var c cutter
			if c.load(pkt, tc.mtu) {
				t.Error("was accepted")
			}
			if c.loaded() {
				t.Error("the refused packet was kept")
			}
		})
	}
}

// Whatever bytes and options a packet has, cutting it ends, stays within the MTU and loses no payload.
func FuzzSegment(f *testing.F) {
	for _, p := range []superPacket{{payload: make([]byte, 4000)}, {v6: true, payload: make([]byte, 100)}} {
		flat, _ := p.bytes()
		f.Add(flat, uint16(1400), uint8(1), uint8(40))
	}
	f.Fuzz(func(t *testing.T, flat []byte, mss uint16, typ, view uint8) {
		if len(flat) == 0 || len(flat) > 65550 {
			return
		}
		pkt := packet(flat, min(54, len(flat)), stack.GSO{Type: stack.GSOType(typ % 4), NeedsCsum: typ&16 != 0, MSS: mss}, 1+int(view)*16)
		var c cutter
		if !c.load(pkt, 1500) {
			pkt.DecRef()
			return
		}
		total := 0
		for frames, last := 0, false; !last; frames++ {
			w := &boundsWriter{t: t, max: max(1514+4, len(flat))}
			var n int
			n, last = c.next(w)
			if n != w.end {
				t.Fatalf("frame of %d bytes, %d written", n, w.end)
			}
			if !c.plain {
				total += n - c.hdrLen
			} else {
				total += n
			}
			if frames > len(flat)+1 {
				t.Fatal("endless")
			}
		}
		want := len(flat)
		if !c.plain {
			want -= c.hdrLen
		}
		if total != want {
			t.Fatalf("%d bytes of payload sent, want %d", total, want)
		}
		c.finish().DecRef()
	})
}

type boundsWriter struct {
	t        *testing.T
	max, end int
}

func (w *boundsWriter) Write(off int, p []byte) {
	if off < 0 || off+len(p) > w.max {
		w.t.Fatalf("write of %d bytes at %d, limit %d", len(p), off, w.max)
	}
	w.end = max(w.end, off+len(p))
}

func BenchmarkCut(b *testing.B) {
	p := superPacket{payload: make([]byte, 46*1420), tcpOpts: make([]byte, 12)}
	flat, hdrLen := p.bytes()
	pkt := packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: 1420}, hdrLen, 32768)
	defer pkt.DecRef()
	var f frameBuffer
	frames := 0
	b.ReportAllocs()
	for b.Loop() {
		var c cutter
		c.load(pkt, 1500)
		for last := false; !last; frames++ {
			_, last = c.next(&f)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}
