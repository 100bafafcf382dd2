package link

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
	"dwnet/hw/sim"
)

// wire is an endpoint whose cable ends in a host that sends any frame, and what the endpoint delivers.
type wire struct {
	*Endpoint
	host *sim.Host
	t    *testing.T

	mu        sync.Mutex
	delivered []delivery
	sent      [][]byte // by the endpoint
}

type delivery struct {
	Proto    tcpip.NetworkProtocolNumber
	Type     tcpip.PacketType
	Bytes    int // behind the Ethernet header
	Verified bool
}

func newWire(t *testing.T, o Options) *wire {
	t.Helper()
	checkGoroutines(t)
	w := &wire{t: t}
	b := newBoard(t, sim.Options{})
	w.host = sim.NewHost(func(f []byte) {
		w.mu.Lock()
		w.sent = append(w.sent, slices.Clone(f))
		w.mu.Unlock()
	})
	cable, err := sim.Connect(b, w.host, sim.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if w.Endpoint, err = New(b.Port(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		cable.Close()
		w.host.Close()
	})
	w.Attach(dispatch(func(p tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
		w.mu.Lock()
		defer w.mu.Unlock()
		// The stack asks for the capability when it takes over a packet.
		ok := w.Capabilities()&stack.CapabilityRXChecksumOffload != 0
		w.delivered = append(w.delivered, delivery{p, pkt.PktType, pkt.Data().Size(), ok})
	}))
	eventually(t, "link", w.linkUp.Load)
	return w
}

// taken is what was delivered since, once a marker sent behind everything else has come through.
func (w *wire) taken() []delivery {
	w.t.Helper()
	marker := ethernet(w.Address(), 0x9999, 46)
	w.send(marker)
	isMarker := func(d delivery) bool { return d.Proto == 0x9999 }
	eventually(w.t, "the marker is delivered", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.delivered, isMarker)
	})
	// What GRO holds comes at the end of the batch.
	eventually(w.t, "the batch ends", func() bool { return !w.deferring.Load() })
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.DeleteFunc(w.delivered, isMarker)
	w.delivered = nil
	return all
}

func (w *wire) send(f []byte) {
	w.t.Helper()
	eventually(w.t, "the host takes a frame", func() bool { return w.host.Send(f) == nil })
}

// ethernet is a frame with n bytes of zeros behind its header.
func ethernet(to [6]byte, typ uint16, n int) []byte {
	f := append(to[:], 2, 0, 0, 0, 0, 9)
	f = binary.BigEndian.AppendUint16(f, typ)
	return append(f, make([]byte, n)...)
}

// datagram is a frame with a UDP datagram in IPv4, checksums right, before edit has had its way with the IP packet.
func datagram(to [6]byte, n int, edit func(ip []byte)) []byte {
	f := ethernet(to, etherTypeIPv4, 28+n)
	ip := f[14:]
	ip[0], ip[8], ip[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(ip[2:], uint16(28+n))
	copy(ip[12:], []byte{10, 0, 0, 9, 10, 0, 0, 1})
	binary.BigEndian.PutUint16(ip[20:], 1000)
	binary.BigEndian.PutUint16(ip[22:], 2000)
	binary.BigEndian.PutUint16(ip[24:], uint16(8+n))
	for i := range n {
		ip[28+i] = byte(i)
	}
	pseudo := append(slices.Clone(ip[12:20]), 0, 17)
	pseudo = binary.BigEndian.AppendUint16(pseudo, uint16(8+n))
	binary.BigEndian.PutUint16(ip[26:], ^naiveSum(append(pseudo, ip[20:]...)))
	if edit != nil {
		edit(ip)
	}
	binary.BigEndian.PutUint16(ip[10:], 0)
	binary.BigEndian.PutUint16(ip[10:], ^naiveSum(ip[:20]))
	return f
}

var (
	stranger = [6]byte{2, 0, 0, 0, 0, 0x77}
	mdns     = [6]byte{1, 0, 0x5e, 0, 0, 0xfb}
	allNodes = [6]byte{0x33, 0x33, 0, 0, 0, 1}
)

// What arrives is delivered, dropped or counted as it should be, and the receiver goes on (cases RXF-04, RXF-07, RXF-08,
// RXF-10, RXF-11, RXF-13, RXR-03).
func TestInput(t *testing.T) {
	w := newWire(t, Options{})
	me := w.Address()
	tooBig := func(n int) []byte { return ethernet(me, 0x88b5, n) }
	for name, tc := range map[string]struct {
		frame   []byte
		bad     bool // FCS is wrong
		want    []delivery
		counter string
	}{
		"unknown EtherType":     {frame: ethernet(me, 0x88b5, 46), want: []delivery{{0x88b5, tcpip.PacketHost, 46, false}}},
		"runt":                  {frame: ethernet(me, 0x88b5, 45)},
		"full frame":            {frame: tooBig(1500), want: []delivery{{0x88b5, tcpip.PacketHost, 1500, false}}},
		"full frame with a tag": {frame: ethernet(me, 0x8100, 1504), want: []delivery{{0x8100, tcpip.PacketHost, 1504, false}}, counter: "RXTagged"},
		"broadcast":             {frame: ethernet(broadcast, etherTypeARP, 46), want: []delivery{{etherTypeARP, tcpip.PacketBroadcast, 46, false}}},
		"any multicast":         {frame: ethernet(mdns, 0x88b5, 46), want: []delivery{{0x88b5, tcpip.PacketMulticast, 46, false}}},
		"for another station":   {frame: ethernet(stranger, 0x88b5, 46)},
		"802.3 length frame":    {frame: ethernet(me, 46, 46), counter: "RXLLC"},
		"wrong FCS":             {frame: ethernet(me, 0x88b5, 46), bad: true},
		"one byte too large":    {frame: tooBig(1501), counter: "RXTooLong"},
		"tag and a byte more":   {frame: ethernet(me, 0x8100, 1505), counter: "RXTooLong"},
		"two bytes too large":   {frame: tooBig(1506)},
		"giant":                 {frame: tooBig(4000)},
		"good UDP":              {frame: datagram(me, 100, nil), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 128, true}}},
		"damaged UDP":           {frame: datagram(me, 100, func(ip []byte) { ip[40] ^= 1 })},
		"damaged IP header":     {frame: func() []byte { f := datagram(me, 100, nil); f[14+8]--; return f }()},
		"UDP without checksum":  {frame: datagram(me, 100, func(ip []byte) { ip[26], ip[27] = 0, 0 }), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 128, true}}},
		"first fragment, damaged: the stack verifies": {
			frame: datagram(me, 100, func(ip []byte) { ip[6] = 0x20; ip[40] ^= 1 }), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 128, false}},
		},
		"last fragment": {
			frame: datagram(me, 100, func(ip []byte) { ip[7] = 5 }), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 128, false}},
		},
		"unknown IP protocol": {
			frame: datagram(me, 100, func(ip []byte) { ip[9] = 253 }), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 128, false}},
		},
		"TCP":           {frame: station(me, rx{n: 100}.frame()), want: []delivery{{etherTypeIPv4, tcpip.PacketHost, 140, true}}},
		"damaged TCP":   {frame: station(me, func() []byte { f := rx{n: 100}.frame(); f[100] ^= 1; return f }())},
		"TCP over IPv6": {frame: station(me, rx{v6: true, n: 100}.frame()), want: []delivery{{etherTypeIPv6, tcpip.PacketHost, 160, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.Stats()
			if tc.bad {
				eventually(t, "the host takes a frame", func() bool { return w.host.SendBad(tc.frame) == nil })
			} else {
				w.send(tc.frame)
			}
			if diff := cmp.Diff(tc.want, w.taken(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
			if tc.counter != "" && count(w.Stats(), tc.counter) != count(before, tc.counter)+1 {
				t.Errorf("%s was not counted", tc.counter)
			}
			if s := w.Stats(); s.Resets != 0 {
				t.Errorf("the frame led to a reset")
			}
		})
	}
}

// station addresses a frame to a station.
func station(to [6]byte, f []byte) []byte {
	copy(f, to[:])
	return f
}

func count(s Stats, name string) (n uint64) {
	s.Each(func(k string, v uint64) {
		if k == name {
			n = v
		}
	})
	return n
}

// Whatever the verdict of the MAC, software comes to the same one.
func TestSoftwareChecksum(t *testing.T) {
	w := newWire(t, Options{SoftwareRXChecksum: true})
	me := w.Address()
	for _, f := range [][]byte{
		station(me, rx{n: 100}.frame()),
		station(me, func() []byte { f := rx{n: 100}.frame(); f[100] ^= 1; return f }()),
		datagram(me, 100, nil),
	} {
		w.send(f)
	}
	want := []delivery{
		{etherTypeIPv4, tcpip.PacketHost, 128, false}, // UDP first: the segment is held until the batch ends
		{etherTypeIPv4, tcpip.PacketHost, 140, true},
	}
	got := w.taken()
	slices.SortFunc(got, func(a, b delivery) int { return a.Bytes - b.Bytes })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if n := w.Stats().RXChecksum; n != 1 {
		t.Errorf("%d damaged segments counted, want 1", n)
	}
}

// Multicast is passed as a whole until groups are joined, and then by group, although the hash of the MAC lets others
// through; promiscuous mode passes everything (case RXF-11).
func TestFilters(t *testing.T) {
	w := newWire(t, Options{})
	deliveredTo := func(to [6]byte) bool {
		w.send(ethernet(to, 0x88b5, 46))
		return len(w.taken()) == 1
	}
	applied := func() {
		t.Helper()
		eventually(t, "the filter is set", func() bool { return !w.cfgChange.Load() })
	}
	if !deliveredTo(mdns) || !deliveredTo(allNodes) {
		t.Error("multicast is not passed by default")
	}
	w.LeaveMulticast(mdns)
	applied()
	if !deliveredTo(mdns) || !deliveredTo(allNodes) {
		t.Error("leaving a group that was not joined has changed something")
	}
	if err := w.JoinMulticast(mdns); err != nil {
		t.Fatal(err)
	}
	applied()
	// Find another group that shares mdns' bin of the hash: only software can tell them apart.
	collision := [6]byte{1, 0, 0x5e, 1, 0, 0}
	for hw.HashBin(collision, 64) != hw.HashBin(mdns, 64) {
		collision[5]++
		if collision[5] == 0 {
			collision[4]++
		}
	}
	if !deliveredTo(mdns) || deliveredTo(allNodes) || deliveredTo(collision) || !deliveredTo(broadcast) {
		t.Error("wrong groups after a join")
	}
	w.LeaveMulticast(allNodes) // not joined: changes nothing
	w.LeaveMulticast(mdns)
	applied()
	if deliveredTo(mdns) {
		t.Error("group is received after it was left")
	}
	if err := w.JoinMulticast(stranger); err == nil {
		t.Error("a unicast address was joined")
	}
	w.SetPromiscuous(true)
	applied()
	if !deliveredTo(stranger) {
		t.Error("promiscuous mode does not pass frames for others")
	}
	w.SetPromiscuous(false)
	applied()
	if deliveredTo(stranger) {
		t.Error("promiscuous mode does not end")
	}
	w.SetLinkAddress(tcpip.LinkAddress(stranger[:]))
	applied()
	if !deliveredTo(stranger) {
		t.Error("frames for the new station address are not received")
	}
	w.SetLinkAddress("")
	w.SetLinkAddress(tcpip.LinkAddress(mdns[:]))
	if w.Address() != stranger {
		t.Error("a wrong station address was accepted")
	}
}

// With Forwarding every frame is delivered as it came.
func TestForwardingDeliversFrameByFrame(t *testing.T) {
	w := newWire(t, Options{Forwarding: true})
	var want []delivery
	for i := range 100 {
		f := station(w.Address(), rx{seq: uint32(1000 * i), n: 1000}.frame())
		w.send(f)
		w.send(append(station(w.Address(), rx{flow: 9, ack: uint32(i)}.frame()), make([]byte, 6)...)) // padded to 60
		want = append(want, delivery{etherTypeIPv4, tcpip.PacketHost, 1040, true}, delivery{etherTypeIPv4, tcpip.PacketHost, 46, true})
	}
	if diff := cmp.Diff(want, w.taken()); diff != "" {
		t.Errorf("%s\n%+v", diff, w.Stats())
	}
}

// A segment that GRO cannot hold, here for its IP options, does not overtake those that it holds (case GV-10).
func TestOrderWithinFlow(t *testing.T) {
	e := &Endpoint{}
	e.promiscuous.Store(true)
	var seqs []uint32
	e.Attach(dispatch(func(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
		b := pkt.Data().AsRange().ToSlice()
		seqs = append(seqs, binary.BigEndian.Uint32(b[int(b[0]&15)*4+4:]))
	}))
	e.gro.deliver = func(pkt *stack.PacketBuffer) { e.deliver(pkt, true) }
	options := superPacket{flags: ackFlag, seq: 100, ipOpts: []byte{1, 1, 1, 1}, payload: make([]byte, 100)}
	flat, hdrLen := options.bytes()
	for _, f := range [][]byte{rx{seq: 0, n: 100}.frame(), naiveSegments(flat, hdrLen, 1<<20)[0], rx{seq: 200, n: 100}.frame()} {
		e.input(buffer.NewViewWithData(f), hw.ChecksumGood)
	}
	e.gro.flush()
	if diff := cmp.Diff([]uint32{0, 100, 200}, seqs); diff != "" {
		t.Errorf("order of delivery (-want +got):\n%s", diff)
	}
}

// A flood of bad frames starves nobody: good ones among them come through (case RXR-04).
func TestBadFrameFlood(t *testing.T) {
	w := newWire(t, Options{})
	for i := range 2000 {
		if i%64 == 63 {
			w.send(ethernet(w.Address(), 0x88b5, 46))
			continue
		}
		eventually(t, "the host takes a frame", func() bool { return w.host.SendBad(ethernet(w.Address(), 0x88b5, 1400)) == nil })
	}
	if n := len(w.taken()); n != 2000/64 {
		t.Errorf("%d good frames delivered, want %d", n, 2000/64)
	}
}

// Runts are dropped by the MAC and counted where FIFO overflows are; a flood of them is no sign of a dead receiver.
func TestRuntFlood(t *testing.T) {
	w := newWire(t, Options{HangTime: 10 * time.Millisecond})
	for ticks := w.Stats().WakeupsTimeout + 10; w.Stats().WakeupsTimeout < ticks; {
		w.send(ethernet(w.Address(), 0x88b5, 10))
	}
	if s := w.Stats(); s.MAC.RXOverflow == 0 || s.Resets != 0 {
		t.Errorf("%d runts counted, %d resets", s.MAC.RXOverflow, s.Resets)
	}
	w.taken()
}

// FuzzInput gives the receive path any bytes with any verdict: it never panics, and each frame is delivered or counted once.
func FuzzInput(f *testing.F) {
	f.Add(rx{n: 100}.frame(), uint8(1), false)
	f.Add(rx{v6: true, n: 10}.frame(), uint8(0), true)
	f.Add(datagram([6]byte{}, 9, nil), uint8(2), false)
	f.Add([]byte{}, uint8(0), false)
	f.Fuzz(func(t *testing.T, b []byte, verdict uint8, forwarding bool) {
		if len(b) < ethernetHeader || len(b) > 1518 {
			return
		}
		e := &Endpoint{}
		e.opts.Forwarding = forwarding
		e.promiscuous.Store(true)
		delivered := 0
		e.Attach(dispatch(func(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
			delivered++
			if len(pkt.LinkHeader().Slice()) != ethernetHeader {
				t.Error("no Ethernet header")
			}
		}))
		e.gro.deliver = func(pkt *stack.PacketBuffer) { e.deliver(pkt, true) }
		const times = 3
		for range times {
			e.input(buffer.NewViewWithData(b), hw.Verdict(verdict%5))
		}
		e.gro.flush()
		s := &e.stats
		total := uint64(delivered) + s.rxLLC.Load() + s.rxChecksum.Load() + e.gro.mergedSegments + e.gro.thinnedACKs
		if total != times {
			t.Errorf("%d of %d frames accounted for", total, times)
		}
	})
}

// Random frames from the wire, of all lengths, do no harm.
func TestRandomFrames(t *testing.T) {
	w := newWire(t, Options{})
	r := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		f := random(r, 14+r.IntN(1600))
		if r.IntN(2) == 0 {
			a := w.Address()
			copy(f, a[:])
		}
		if r.IntN(2) == 0 {
			copy(f[12:], []byte{8, 0, 0x45})
		}
		if r.IntN(4) == 0 {
			eventually(t, "the host takes a frame", func() bool { return w.host.SendRaw(f) == nil })
		} else {
			w.send(f)
		}
	}
	w.taken()
}
