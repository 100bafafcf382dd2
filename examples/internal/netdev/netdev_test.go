package netdev

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"dwnet/examples/internal/iperf3"
	"dwnet/hw"
	"dwnet/hw/sim"
	"dwnet/link"
)

// guard ends a wait that would otherwise hang the test.
const guard = 60 * time.Second

var (
	nearAddrs = []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24"), netip.MustParsePrefix("fd01::1/64")}
	farAddrs  = []netip.Prefix{netip.MustParsePrefix("10.1.0.2/24"), netip.MustParsePrefix("fd01::2/64")}
)

// pair is two devices on a cable. They and everything below are gone at the end of the test.
type pair struct {
	near, far *Device
	bench     *Bench
}

func newPair(t testing.TB, o CableOptions) *pair {
	t.Helper()
	b, err := TwoBoards(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{bench: b}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, d := range []struct {
		to    **Device
		addrs []netip.Prefix
	}{{&p.near, nearAddrs}, {&p.far, farAddrs}} {
		if *d.to, err = Open(b.Boards[i].Port(), Options{Addresses: d.addrs}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup((*d.to).Close)
	}
	return p
}

// to is the address of a port of the far device.
func to(six bool, port uint16) netip.AddrPort {
	a := farAddrs[0]
	if six {
		a = farAddrs[1]
	}
	return netip.AddrPortFrom(a.Addr(), port)
}

// connect makes a TCP connection from near to far.
func (p *pair) connect(t testing.TB, six bool, o iperf3.SocketOptions) (near, far net.Conn) {
	t.Helper()
	l, err := p.far.ListenTCP(7)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	defer cancel()
	if near, err = p.near.Dialer(to(six, 7))(ctx, "tcp", o); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{near, far} {
		c.SetDeadline(time.Now().Add(guard))
		t.Cleanup(func() { c.Close() })
	}
	return near, far
}

func TestConnectionsInBothFamilies(t *testing.T) {
	p := newPair(t, CableOptions{})
	for _, six := range []bool{false, true} {
		near, far := p.connect(t, six, iperf3.SocketOptions{})
		want := map[bool][2]string{false: {"10.1.0.1", "10.1.0.2"}, true: {"fd01::1", "fd01::2"}}[six]
		for _, c := range []struct {
			name          string
			addr          net.Addr
			host          string
			mustBePort, n int
		}{
			{"near local", near.LocalAddr(), want[0], 0, 0}, {"near remote", near.RemoteAddr(), want[1], 7, 0},
			{"far local", far.LocalAddr(), want[1], 7, 0}, {"far remote", far.RemoteAddr(), want[0], 0, 0},
		} {
			a := c.addr.(*net.TCPAddr).AddrPort()
			if a.Addr().Unmap().String() != c.host || c.mustBePort != 0 && int(a.Port()) != c.mustBePort || a.Port() == 0 {
				t.Errorf("six %v, %s: %v, want %s port %d", six, c.name, a, c.host, c.mustBePort)
			}
		}
		go func() {
			near.Write([]byte("hello"))
			near.(interface{ CloseWrite() error }).CloseWrite()
		}()
		if b, err := io.ReadAll(far); err != nil || string(b) != "hello" {
			t.Errorf("six %v: far reads %q, %v", six, b, err)
		}
		far.Write([]byte("world"))
		far.Close()
		if b, err := io.ReadAll(near); err != nil || string(b) != "world" {
			t.Errorf("six %v: near reads %q, %v", six, b, err)
		}
	}
}

func TestListenersAndDialers(t *testing.T) {
	p := newPair(t, CableOptions{})
	l, err := p.far.ListenTCP(80)
	if err != nil {
		t.Fatal(err)
	}
	if a := l.Addr().String(); a != "10.1.0.2:80" {
		t.Errorf("the listener's address is %s", a)
	}
	if _, err := p.far.ListenTCP(80); !errors.Is(err, ErrPortInUse) || !strings.Contains(err.Error(), ":80") {
		t.Errorf("listening twice: %v", err)
	}
	pc, err := p.far.ListenUDP(80)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.far.ListenUDP(80); !errors.Is(err, ErrPortInUse) {
		t.Errorf("binding twice: %v", err)
	}
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	read := make(chan error, 1)
	go func() {
		_, _, err := pc.(interface {
			ReadFromUDPAddrPort([]byte) (int, netip.AddrPort, error)
		}).ReadFromUDPAddrPort(make([]byte, 10))
		read <- err
	}()
	l.Close()
	l.Close()
	pc.Close()
	pc.Close()
	for what, ch := range map[string]chan error{"accept": accepted, "read": read} {
		select {
		case err := <-ch:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("%s after Close: %v", what, err)
			}
		case <-time.After(guard):
			t.Fatalf("%s is not ended by Close", what)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after Close: %v", err)
	}
	if l, err = p.far.ListenTCP(80); err != nil {
		t.Errorf("the port is not free again: %v", err)
	} else {
		l.Close()
	}

	if _, err := p.near.Dialer(to(false, 81))(context.Background(), "tcp", iperf3.SocketOptions{}); err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), "10.1.0.2:81") {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := p.near.Dialer(netip.MustParseAddrPort("10.9.9.9:81"))(context.Background(), "tcp", iperf3.SocketOptions{}); err == nil || !strings.Contains(err.Error(), "10.9.9.9:81") {
		t.Errorf("no route: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.near.Dialer(netip.MustParseAddrPort("10.1.0.77:81"))(ctx, "tcp", iperf3.SocketOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled dial: %v", err)
	}
}

// Figures come from the stack, not from nowhere.
func TestInfoIsReal(t *testing.T) {
	p := newPair(t, CableOptions{})
	near, far := p.connect(t, false, iperf3.SocketOptions{})
	sockets := p.near.Sockets()
	info, ok := sockets.Info(near)
	if !ok || info.Congestion != "cubic" || info.MSS != 1448 || info.PMTU != 1500 || info.Retransmits != 0 || info.CongestionWindow < 1420 {
		t.Errorf("info: %+v, %v", info, ok)
	}
	if err := sockets.Configure(near, iperf3.SocketOptions{Congestion: "reno", KeepAlive: 5 * time.Second, NoDelay: true, Window: 64 << 10, TOS: 4}); err != nil {
		t.Error(err)
	}
	if info, _ := sockets.Info(near); info.Congestion != "reno" {
		t.Errorf("congestion control %q after asking for reno", info.Congestion)
	}
	if err := sockets.Configure(near, iperf3.SocketOptions{Congestion: "bbr"}); err == nil || !strings.Contains(err.Error(), "bbr") {
		t.Errorf("an unknown congestion control: %v", err)
	}
	if info, _ := sockets.Info(near); info.Congestion != "reno" {
		t.Errorf("congestion control %q after a failure", info.Congestion)
	}

	// Frames that are lost are sent again, and counted.
	p.bench.Cable.SetLossRate(0.05)
	go func() {
		near.Write(make([]byte, 1<<20))
		near.(interface{ CloseWrite() error }).CloseWrite()
	}()
	n, err := io.Copy(io.Discard, far)
	p.bench.Cable.SetLossRate(0)
	if n != 1<<20 || err != nil {
		t.Errorf("%d bytes arrive, %v", n, err)
	}
	if info, _ := sockets.Info(near); info.Retransmits == 0 {
		t.Error("no retransmits although frames were lost")
	}

	six, _ := p.connect(t, true, iperf3.SocketOptions{})
	if info, _ := sockets.Info(six); info.MSS != 1428 {
		t.Errorf("the MSS of IPv6 is %d", info.MSS)
	}
	a, _ := net.Pipe()
	if _, ok := sockets.Info(a); ok {
		t.Error("there is information about a pipe")
	}
	if err := sockets.Configure(a, iperf3.SocketOptions{}); err == nil {
		t.Error("a pipe has options")
	}
}

func TestQueuedIsWhatCanBeRead(t *testing.T) {
	p := newPair(t, CableOptions{})
	near, far := p.connect(t, false, iperf3.SocketOptions{})
	near.Write(make([]byte, 5000))
	if _, err := io.ReadFull(far, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		n, ok := p.far.Sockets().Queued(far)
		if ok && n == 4999 {
			return
		}
		if i > 5000 {
			t.Fatalf("queued: %d, %v, want 4999", n, ok)
		}
		time.Sleep(time.Millisecond) // polls for a state
	}
}

// capture is a pcap file in memory.
type capture struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.Write(p)
}

// frames calls f for each frame (pcap: a header of 24 bytes, then records with a header of 16).
func (c *capture) frames(f func([]byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.b.Bytes()
	if len(b) < 24 {
		return
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if len(b) < 16+n {
			return
		}
		f(b[16 : 16+n])
		b = b[16+n:]
	}
}

// iperf runs a server on the far device and one test from the near one.
func (p *pair) iperf(t testing.TB, six bool, params iperf3.Params) (client, server *iperf3.Report) {
	t.Helper()
	reports := make(chan *iperf3.Report, 1)
	s, err := iperf3.NewServer(iperf3.ServerOptions{
		Clock: IperfClock(p.far.Clock()), Sockets: p.far.Sockets(), OneOff: true, OnReport: func(r *iperf3.Report) { reports <- r },
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.far.ListenTCP(5201)
	if err != nil {
		t.Fatal(err)
	}
	pc, err := p.far.ListenUDP(5201)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, pc) }()
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	defer cancel()
	client, err = iperf3.Run(ctx, iperf3.ClientOptions{
		Params: params, Dial: p.near.Dialer(to(six, 5201)), Clock: IperfClock(p.near.Clock()), Sockets: p.near.Sockets(),
	})
	s.Close()
	if e := <-served; e != nil {
		t.Errorf("Serve: %v", e)
	}
	if err != nil {
		t.Fatalf("%+v: %v", params, err)
	}
	return client, <-reports
}

func TestIperf(t *testing.T) {
	p := newPair(t, CableOptions{})
	for _, params := range []iperf3.Params{
		{Bytes: 4 << 20}, {Bytes: 4 << 20, Reverse: true}, {Bytes: 4 << 20, Bidirectional: true, Parallel: 2},
		{Bytes: 2 << 20, Parallel: 32, Reverse: true}, {Bytes: 1 << 20, Window: 128 << 10, NoDelay: true, Congestion: "reno"},
		{UDP: true, Bytes: 1 << 20, Length: 1400}, {UDP: true, Bytes: 1 << 20, Bandwidth: 200e6, Reverse: true, UDPCounters64: true},
		{UDP: true, Bytes: 1 << 20, Bandwidth: 200e6, Bidirectional: true, Length: 4000},
	} {
		for _, six := range []bool{false, true} {
			t.Run(fmt.Sprintf("six %v, %+v", six, params), func(t *testing.T) {
				c, s := p.iperf(t, six, params)
				for i := range c.Streams {
					a, b := c.Streams[i], s.Streams[i]
					if a.Sent.Bytes != b.Sent.Bytes || a.Received.Bytes != b.Received.Bytes || a.Received.Bytes > a.Sent.Bytes {
						t.Errorf("stream %d: the client says %d of %d bytes, the server %d of %d", a.ID, a.Received.Bytes, a.Sent.Bytes, b.Received.Bytes, b.Sent.Bytes)
					}
					if !params.UDP && a.Sent.Retransmits < 0 {
						t.Errorf("stream %d: retransmits are not known", a.ID)
					}
					if params.UDP && (a.Received.Lost != 0 || a.Received.OutOfOrder != 0) {
						t.Errorf("stream %d: %d lost, %d out of order on a cable that loses nothing", a.ID, a.Received.Lost, a.Received.OutOfOrder)
					}
				}
				if params.UDP && params.Length == 0 && c.Params.Length != 1448 && !six {
					t.Errorf("datagrams of %d bytes", c.Params.Length)
				}
				want := params.Congestion
				if want == "" {
					want = "cubic"
				}
				if !params.UDP && (c.Congestion != want || c.PeerCongestion != want) {
					t.Errorf("congestion control %q and %q, want %q", c.Congestion, c.PeerCongestion, want)
				}
			})
		}
	}
	for _, b := range p.bench.Boards {
		for _, v := range b.Violations() {
			t.Error(v)
		}
	}
}

// Options show on the wire.
func TestOptionsReachTheWire(t *testing.T) {
	for _, tc := range []struct {
		params iperf3.Params
		check  func(t *testing.T, frame []byte) // of each IPv4 frame with more than a header's worth of data
	}{
		{iperf3.Params{Bytes: 1 << 20, Reverse: true, MSS: 1000}, func(t *testing.T, f []byte) {
			if n := binary.BigEndian.Uint16(f[16:]); n > 1000+40 {
				t.Errorf("an IP packet of %d bytes with an MSS of 1000", n)
			}
		}},
		{iperf3.Params{Bytes: 8 << 20, Bidirectional: true, TOS: 0x28}, func(t *testing.T, f []byte) {
			if f[15] != 0x28 {
				t.Errorf("TOS %#x on a packet of %d bytes", f[15], binary.BigEndian.Uint16(f[16:]))
			}
		}},
		{iperf3.Params{UDP: true, Bytes: 1 << 18, Bandwidth: 100e6, Bidirectional: true, TOS: 0x20, Length: 1400, DontFragment: true}, func(t *testing.T, f []byte) {
			if f[15] != 0x20 || f[20]&0x40 == 0 {
				t.Errorf("TOS %#x, flags %#x on a datagram", f[15], f[20])
			}
		}},
	} {
		c := new(capture)
		p := newPair(t, CableOptions{Capture: c})
		p.iperf(t, false, tc.params)
		if err := p.bench.Cable.Close(); err != nil { // flushes
			t.Fatal(err)
		}
		n := 0
		c.frames(func(f []byte) {
			const ipv4 = 0x0800
			// The results of iperf3 are smaller than this.
			if len(f) > 900 && binary.BigEndian.Uint16(f[12:]) == ipv4 {
				if n++; !t.Failed() {
					tc.check(t, f)
				}
			}
		})
		if n < 100 {
			t.Errorf("%+v: %d frames with data", tc.params, n)
		}
	}
}

// On a slow clock a second is a second of that clock, for the protocol, the stack and the wire alike.
func TestSimulatedTime(t *testing.T) {
	p := newPair(t, CableOptions{SpeedMbps: 100, Clock: sim.NewDilatedClock(3)})
	c, _ := p.iperf(t, false, iperf3.Params{Time: 1, Reverse: true})
	_, received, _ := c.Totals(true)
	if s := received.Seconds(); s < 0.9 || s > 2 {
		t.Errorf("a second lasts %v s", s)
	}
	// 100 Mbit/s carry no more than 94.9 of TCP payload. In real time it is a third.
	if r := received.BitsPerSecond(); r > 95e6 {
		t.Errorf("%g bit/s on a wire of 100 Mbit/s", r)
	}
}

func TestOpenFailsCleanly(t *testing.T) {
	b, err := sim.NewBoard(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if _, err := Open(b.Port(), Options{}); err == nil {
		t.Error("a stack without an address")
	}
	if _, err := Open(b.Port(), Options{Addresses: nearAddrs, Link: link.Options{MTU: 7}}); !errors.Is(err, link.ErrOptions) {
		t.Errorf("an MTU of 7: %v", err)
	}
	b.Faults().SetStuckReset(true)
	if _, err := Open(b.Port(), Options{Addresses: nearAddrs}); !errors.Is(err, hw.ErrTimeout) {
		t.Errorf("a MAC that does not reset: %v", err)
	}
	b.Faults().Clear()
	d, err := Open(b.Port(), Options{Addresses: nearAddrs})
	if err != nil {
		t.Fatal(err)
	}
	if d.Addr(false) != nearAddrs[0].Addr() || d.Addr(true) != nearAddrs[1].Addr() {
		t.Errorf("addresses %v and %v", d.Addr(false), d.Addr(true))
	}
	d.Close()
	for _, v := range b.Violations() {
		t.Error(v)
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("use", func(t *testing.T) {
		p := newPair(t, CableOptions{})
		p.iperf(t, false, iperf3.Params{Bytes: 1 << 20, Bidirectional: true})
		p.connect(t, true, iperf3.SocketOptions{}) // still open at the end
	})
	for i := 0; ; i++ {
		n := runtime.NumGoroutine()
		if n <= before {
			return
		}
		if i > 1000 {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, n, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond) // polls for a state
	}
}

// What the adapters add to the stack's work: nothing on the heap for each datagram.
func BenchmarkUDP(b *testing.B) {
	p := newPair(b, CableOptions{})
	b.SetBytes(1400)
	b.ReportAllocs()
	p.iperf(b, false, iperf3.Params{UDP: true, Length: 1400, Blocks: int64(b.N)})
}

func BenchmarkTCP(b *testing.B) {
	for name, reverse := range map[string]bool{"upload": false, "download": true} {
		b.Run(name, func(b *testing.B) {
			p := newPair(b, CableOptions{})
			b.SetBytes(iperf3.DefaultTCPBlockSize)
			b.ReportAllocs()
			p.iperf(b, false, iperf3.Params{Blocks: int64(b.N), Reverse: reverse})
		})
	}
}

// gVisor's tail loss probe and RACK are off where packets are larger than frames, and only there.
func TestLossDetectionSuitsTheSizeOfPackets(t *testing.T) {
	for _, tc := range []struct {
		name string
		size int
		off  bool
	}{
		{"automatic", link.GSOAuto, true},
		{"a size", 10000, true},
		{"off", link.GSOOff, false},
	} {
		b, err := sim.NewBoard(sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		d, err := Open(b.Port(), Options{Addresses: nearAddrs, Link: link.Options{GSOMaxSize: tc.size}})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var r tcpip.TCPRecovery
		if err := d.Stack.TransportProtocolOption(tcp.ProtocolNumber, &r); err != nil {
			t.Fatal(err)
		}
		var known tcpip.TCPAvailableCongestionControlOption
		if err := d.Stack.TransportProtocolOption(tcp.ProtocolNumber, &known); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(CongestionControls(), " "); got != string(known) {
			t.Errorf("congestion controls %q, the stack has %q", got, known)
		}
		if off := r&tcpip.TCPRACKLossDetection == 0; off != tc.off {
			t.Errorf("GSO %s: RACK off is %v, want %v", tc.name, off, tc.off)
		}
	}
}
