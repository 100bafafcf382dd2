package link

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// rx describes a received segment of one of a few flows.
type rx struct {
	flow    byte
	v6      bool
	seq     uint32
	ack     uint32
	window  uint16
	flags   header.TCPFlags // ACK is added
	options []byte
	tos     byte
	n       int // bytes of payload; their values follow from flow and sequence number
}

func (r rx) frame() []byte {
	payload := make([]byte, r.n)
	for i := range payload {
		payload[i] = byte(int(r.seq)+i) ^ r.flow
	}
	p := superPacket{v6: r.v6, seq: r.seq, flags: r.flags | header.TCPFlagAck, tcpOpts: r.options, payload: payload}
	b, hdrLen := p.bytes()
	l4 := hdrLen - 20 - len(r.options)
	b[l4] = r.flow
	binary.BigEndian.PutUint32(b[l4+8:], r.ack)
	binary.BigEndian.PutUint16(b[l4+14:], r.window)
	if !r.v6 {
		b[15] = r.tos
		binary.BigEndian.PutUint16(b[24:], 0)
		binary.BigEndian.PutUint16(b[24:], ^naiveSum(b[14:34]))
	}
	return naiveSegments(b, hdrLen, 1<<20)[0]
}

// got is what the stack would see of a delivered packet.
type got struct {
	Flow     byte
	Seq, Ack uint32
	Window   uint16
	Flags    header.TCPFlags
	N        int
}

// runGRO feeds frames through the path of a verified frame and returns what is delivered, checking that each delivered
// packet is consistent in itself.
func runGRO(t *testing.T, frames ...[]byte) []got {
	t.Helper()
	var g gro
	var out []got
	g.deliver = func(pkt *stack.PacketBuffer) {
		defer pkt.DecRef()
		b := pkt.Data().AsRange().ToSlice()
		ip, ok := parseIP(uint16(pkt.NetworkProtocolNumber), b)
		if !ok {
			t.Fatalf("malformed packet delivered: % x", b)
		}
		if ip.total != len(b) {
			t.Errorf("IP length %d, packet has %d bytes", ip.total, len(b))
		}
		if !ip.v6 && naiveSum(b[:ip.hdrLen]) != 0xffff {
			t.Errorf("wrong IP checksum: % x", b[:ip.hdrLen])
		}
		tcp := header.TCP(b[ip.hdrLen:])
		payload := tcp.Payload()
		for i, c := range payload {
			if c != byte(int(tcp.SequenceNumber())+i)^b[ip.hdrLen] {
				t.Fatalf("payload byte %d is wrong", i)
			}
		}
		out = append(out, got{b[ip.hdrLen], tcp.SequenceNumber(), tcp.AckNumber(), tcp.WindowSize(), tcp.Flags(), len(payload)})
	}
	for _, f := range frames {
		v := buffer.NewViewWithData(f)
		typ := binary.BigEndian.Uint16(f[12:])
		ip, ok := parseIP(typ, f[14:])
		var s segment
		if !ok || !s.fill(v, typ, tcpip.PacketHost, ip) {
			t.Fatalf("not taken for a segment: % x", f[:40])
		}
		g.add(&s)
	}
	g.flush()
	return out
}

const (
	ackFlag = header.TCPFlagAck
	pshFlag = header.TCPFlagPsh
)

func TestGRO(t *testing.T) {
	ts := func(v byte) []byte { return []byte{1, 1, 8, 10, 0, 0, 0, v, 0, 0, 0, 9} }
	sack := []byte{1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2}
	for name, tc := range map[string]struct {
		in   []rx
		want []got
	}{
		"segments in a row become one": {
			[]rx{{seq: 0, n: 100, window: 9}, {seq: 100, n: 100, window: 9}, {seq: 200, n: 100, window: 9}},
			[]got{{Seq: 0, Window: 9, Flags: ackFlag, N: 300}},
		},
		"a short one is the last": {
			[]rx{{seq: 0, n: 100}, {seq: 100, n: 60}, {seq: 160, n: 100}},
			[]got{{Seq: 0, Flags: ackFlag, N: 160}, {Seq: 160, Flags: ackFlag, N: 100}},
		},
		"a longer one is not merged": {
			[]rx{{seq: 0, n: 100}, {seq: 100, n: 101}},
			[]got{{Seq: 0, Flags: ackFlag, N: 100}, {Seq: 100, Flags: ackFlag, N: 101}},
		},
		"push ends a packet and is kept": {
			[]rx{{seq: 0, n: 100}, {seq: 100, n: 100, flags: pshFlag}, {seq: 200, n: 100}},
			[]got{{Seq: 0, Flags: ackFlag | pshFlag, N: 200}, {Seq: 200, Flags: ackFlag, N: 100}},
		},
		"sequence numbers wrap": {
			[]rx{{seq: 0xffffffc0, n: 100}, {seq: 36, n: 100}},
			[]got{{Seq: 0xffffffc0, Flags: ackFlag, N: 200}},
		},
		"a gap is not bridged, order stays": {
			[]rx{{seq: 0, n: 100}, {seq: 200, n: 100}, {seq: 100, n: 100}},
			[]got{{Seq: 0, Flags: ackFlag, N: 100}, {Seq: 200, Flags: ackFlag, N: 100}, {Seq: 100, Flags: ackFlag, N: 100}},
		},
		"acknowledgement, window, options or TOS differ": {
			[]rx{{seq: 0, n: 9, ack: 1}, {seq: 9, n: 9, ack: 2}, {seq: 18, n: 9, ack: 2, window: 5},
				{seq: 27, n: 9, ack: 2, window: 5, options: ts(1)}, {seq: 36, n: 9, ack: 2, window: 5, options: ts(2)},
				{seq: 45, n: 9, ack: 2, window: 5, options: ts(2), tos: 3}},
			[]got{{Seq: 0, Ack: 1, Flags: ackFlag, N: 9}, {Seq: 9, Ack: 2, Flags: ackFlag, N: 9},
				{Seq: 18, Ack: 2, Window: 5, Flags: ackFlag, N: 9}, {Seq: 27, Ack: 2, Window: 5, Flags: ackFlag, N: 9},
				{Seq: 36, Ack: 2, Window: 5, Flags: ackFlag, N: 9}, {Seq: 45, Ack: 2, Window: 5, Flags: ackFlag, N: 9}},
		},
		"FIN, RST, SYN, URG, CWR pass by, behind what is held": {
			[]rx{{seq: 0, n: 9}, {seq: 9, n: 9, flags: header.TCPFlagFin}, {seq: 18, n: 9}, {seq: 27, flags: header.TCPFlagRst}},
			[]got{{Seq: 0, Flags: ackFlag, N: 9}, {Seq: 9, Flags: ackFlag | header.TCPFlagFin, N: 9},
				{Seq: 18, Flags: ackFlag, N: 9}, {Seq: 27, Flags: ackFlag | header.TCPFlagRst}},
		},
		"flows do not mix": {
			[]rx{{flow: 1, seq: 0, n: 50}, {flow: 2, seq: 50, n: 50}, {flow: 1, seq: 50, n: 50}, {flow: 2, seq: 100, n: 50}},
			[]got{{Flow: 1, Seq: 0, Flags: ackFlag, N: 100}, {Flow: 2, Seq: 50, Flags: ackFlag, N: 100}},
		},
		"IPv6": {
			[]rx{{v6: true, seq: 0, n: 100}, {v6: true, seq: 100, n: 100}},
			[]got{{Seq: 0, Flags: ackFlag, N: 200}},
		},
		"never beyond 65535 bytes": {
			[]rx{{seq: 0, n: 30000}, {seq: 30000, n: 30000}, {seq: 60000, n: 30000}},
			[]got{{Seq: 0, Flags: ackFlag, N: 60000}, {Seq: 60000, Flags: ackFlag, N: 30000}},
		},
		"a newer pure ACK supersedes the older": {
			[]rx{{ack: 10, window: 7, options: ts(1)}, {ack: 20, window: 7, options: ts(2)}, {ack: 30, window: 8, options: ts(2)}},
			[]got{{Ack: 30, Window: 8, Flags: ackFlag}},
		},
		"across the wrap of acknowledgement numbers": {
			[]rx{{ack: 0xfffffff0, window: 7}, {ack: 5, window: 7}},
			[]got{{Ack: 5, Window: 7, Flags: ackFlag}},
		},
		"duplicate ACKs are kept": {
			[]rx{{ack: 10, window: 7}, {ack: 10, window: 7}, {ack: 10, window: 7}},
			[]got{{Ack: 10, Window: 7, Flags: ackFlag}, {Ack: 10, Window: 7, Flags: ackFlag}, {Ack: 10, Window: 7, Flags: ackFlag}},
		},
		"the last of several duplicates, too": {
			[]rx{{ack: 10, window: 7}, {ack: 10, window: 7}, {ack: 20, window: 7}},
			[]got{{Ack: 10, Window: 7, Flags: ackFlag}, {Ack: 10, Window: 7, Flags: ackFlag}, {Ack: 20, Window: 7, Flags: ackFlag}},
		},
		"window updates and shrinking windows are kept": {
			[]rx{{ack: 10, window: 7}, {ack: 10, window: 9}, {ack: 20, window: 3}},
			[]got{{Ack: 10, Window: 7, Flags: ackFlag}, {Ack: 10, Window: 9, Flags: ackFlag}, {Ack: 20, Window: 3, Flags: ackFlag}},
		},
		"ACKs with SACK are kept": {
			[]rx{{ack: 10, options: sack}, {ack: 20, options: sack}, {ack: 30}},
			[]got{{Ack: 10, Flags: ackFlag}, {Ack: 20, Flags: ackFlag}, {Ack: 30, Flags: ackFlag}},
		},
		"older ACKs do not supersede": {
			[]rx{{ack: 20}, {ack: 10}},
			[]got{{Ack: 20, Flags: ackFlag}, {Ack: 10, Flags: ackFlag}},
		},
		"ECN echo is kept": {
			[]rx{{ack: 10, flags: header.TCPFlagEce}, {ack: 20, flags: header.TCPFlagEce}},
			[]got{{Ack: 10, Flags: ackFlag | header.TCPFlagEce}, {Ack: 20, Flags: ackFlag | header.TCPFlagEce}},
		},
		"data does not supersede an ACK, nor an ACK data": {
			[]rx{{ack: 10}, {ack: 20, n: 5}, {seq: 5, ack: 30}},
			[]got{{Ack: 10, Flags: ackFlag}, {Ack: 20, Flags: ackFlag, N: 5}, {Seq: 5, Ack: 30, Flags: ackFlag}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var frames [][]byte
			for _, r := range tc.in {
				frames = append(frames, r.frame())
			}
			if diff := cmp.Diff(tc.want, runGRO(t, frames...)); diff != "" {
				t.Errorf("delivered (-want +got):\n%s", diff)
			}
		})
	}
}

// Ethernet pads short frames; padding must not be taken for payload.
func TestGROIgnoresPadding(t *testing.T) {
	pad := func(b []byte) []byte { return append(b, make([]byte, max(0, 60-len(b)))...) }
	in := [][]byte{pad(rx{ack: 5}.frame()), pad(rx{ack: 6, n: 2}.frame()), pad(rx{seq: 2, ack: 6, n: 2}.frame())}
	want := []got{{Ack: 5, Flags: ackFlag}, {Ack: 6, Flags: ackFlag, N: 4}}
	if diff := cmp.Diff(want, runGRO(t, in...)); diff != "" {
		t.Error(diff)
	}
}

// With more flows than there are places everything is still delivered, once, in order per flow, within the batch (case
// GV-10).
func TestGROLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	next := map[byte]uint32{}
	want := map[byte]int{}
	var frames [][]byte
	for range 5000 {
		f := byte(r.IntN(3 * groFlows))
		n := []int{0, 10, 10, 10, 7}[r.IntN(5)]
		flags := header.TCPFlags(0)
		if r.IntN(10) == 0 {
			flags = pshFlag
		}
		frames = append(frames, rx{flow: f, seq: next[f], n: n, flags: flags, v6: f%2 == 0}.frame())
		next[f] += uint32(n)
		want[f] += n
	}
	seen := map[byte]int{}
	for _, g := range runGRO(t, frames...) {
		if g.N > 0 && g.Seq != uint32(seen[g.Flow]) {
			t.Fatalf("flow %d: sequence %d, want %d", g.Flow, g.Seq, seen[g.Flow])
		}
		seen[g.Flow] += g.N
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(fmt.Sprint("bytes per flow:\n", diff))
	}
}
