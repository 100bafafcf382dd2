package iperf3

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a TCP connection over loopback.
func pair(t *testing.T, o SocketOptions) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = KernelDialer(l.Addr().String())(context.Background(), "tcp", o)
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func option(t *testing.T, c any, level, name int) int {
	t.Helper()
	v := -1
	err := descriptor(c, func(fd int) (err error) {
		v, err = unix.GetsockoptInt(fd, level, name)
		return err
	})
	if err != nil {
		t.Fatalf("option %d/%d: %v", level, name, err)
	}
	return v
}

func TestKernelOptionsTakeEffect(t *testing.T) {
	o := SocketOptions{NoDelay: true, Window: 64 << 10, TOS: 0x28, MSS: 1000, KeepAlive: 20 * time.Second}
	c, s := pair(t, o)
	k := KernelSockets()
	for _, conn := range []net.Conn{c, s} {
		if err := k.Configure(conn, o); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			name               string
			level, opt, lo, hi int
		}{
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, 1, 1},
			{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, 64 << 10, 128 << 10},
			{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, 64 << 10, 128 << 10},
			{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS, 0x28, 0x28},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 20, 20},
		} {
			if got := option(t, conn, want.level, want.opt); got < want.lo || got > want.hi {
				t.Errorf("%s is %d, want %d to %d", want.name, got, want.lo, want.hi)
			}
		}
		i, ok := k.Info(conn)
		if !ok && emulated {
			continue // of which user-mode emulation knows nothing
		}
		if !ok || i.MSS > 1000 || i.MSS < 900 || i.Congestion == "" || i.CongestionWindow <= 0 {
			t.Errorf("info with an MSS of 1000: %+v, %v", i, ok)
		}
	}
	if err := k.Configure(c, SocketOptions{}); err != nil {
		t.Fatal(err)
	}
	if option(t, c, unix.IPPROTO_TCP, unix.TCP_NODELAY) != 0 || option(t, c, unix.IPPROTO_IP, unix.IP_TOS) != 0 {
		t.Error("options of the test before stay in force")
	}
	if err := k.Configure(c, SocketOptions{Congestion: "no-such-thing"}); err == nil || !strings.Contains(err.Error(), "no-such-thing") {
		t.Errorf("an unknown congestion control: %v", err)
	}
	k.Closing(c, 3*time.Second)
	if got := option(t, c, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); got != 3000 {
		t.Errorf("TCP_USER_TIMEOUT is %d ms, want 3000", got)
	}
}

func TestKernelUDPOptions(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::]:0"} {
		pc, err := net.ListenPacket("udp", addr)
		if err != nil {
			t.Skipf("listen on %s: %v", addr, err)
		}
		defer pc.Close()
		k := KernelSockets()
		if err := k.Configure(pc, SocketOptions{Window: 32 << 10, TOS: 0x20, DontFragment: true}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		level, name := unix.IPPROTO_IP, unix.IP_TOS
		if strings.HasPrefix(addr, "[") {
			level, name = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
		}
		if got := option(t, pc, level, name); got != 0x20 {
			t.Errorf("%s: TOS is %#x", addr, got)
		}
		if got := option(t, pc, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER); got != unix.IP_PMTUDISC_DO {
			t.Errorf("%s: IP_MTU_DISCOVER is %d", addr, got)
		}
		if _, ok := k.Info(nil); ok {
			t.Error("there is information about nothing")
		}
	}
}

func TestQueuedIsWhatCanBeRead(t *testing.T) {
	c, s := pair(t, SocketOptions{})
	k := KernelSockets()
	c.Write(make([]byte, 5000))
	var one [1]byte
	if _, err := io.ReadFull(s, one[:]); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ { // loopback delivers at once, but says nowhere that it does
		n, ok := k.Queued(s)
		if ok && n == 4999 {
			break
		}
		if i == 1000 {
			t.Fatalf("queued: %d, %v, want 4999", n, ok)
		}
		time.Sleep(time.Millisecond)
	}
	a, _ := net.Pipe()
	if _, ok := k.Queued(a); ok {
		t.Error("a pipe has a queue")
	}
	if err := k.Configure(a, SocketOptions{}); err == nil {
		t.Error("a pipe has options")
	}
}

// A name that no kernel knows must not end the test.
func TestUnknownCongestionControlIsNoError(t *testing.T) {
	if emulated {
		t.Skip("user-mode emulation does not tell the congestion control in use")
	}
	s := startServer(t, ServerOptions{})
	p := s.peer(t).running(`{"tcp":true,"congestion":"no-such-thing","len":1000}`)
	p.ended()
	if r := p.results(plainResults); r.Congestion == "" || r.Congestion == "no-such-thing" {
		t.Errorf("congestion control in use: %q", r.Congestion)
	}
	p = s.peer(t).running(`{"tcp":true,"congestion":"` + strings.Repeat("x", 1000) + `","len":1000}`)
	p.ended()
	p.results(plainResults)
	avail, err := os.ReadFile("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
	if err != nil || !strings.Contains(string(avail), "reno") {
		return
	}
	r := s.run(t, ClientOptions{Params: Params{Bytes: 1000, Congestion: "reno"}})
	if r.PeerCongestion != "reno" || r.Congestion != "reno" {
		t.Errorf("asked for reno: client %q, server %q", r.Congestion, r.PeerCongestion)
	}
}
