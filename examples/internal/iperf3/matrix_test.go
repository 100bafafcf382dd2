package iperf3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// modes are the tests that both sides must agree on. Those without an amount last one second.
var modes = []struct {
	name string
	p    Params
}{
	{"tcp", Params{Time: 1}},
	{"tcp reverse", Params{Time: 1, Reverse: true}},
	{"tcp both", Params{Time: 1, Bidirectional: true}},
	{"tcp 4", Params{Time: 1, Parallel: 4}},
	{"tcp 4 reverse", Params{Time: 1, Parallel: 4, Reverse: true}},
	{"tcp 2 both", Params{Time: 1, Parallel: 2, Bidirectional: true}},
	{"tcp 128", Params{Bytes: 100 << 20, Parallel: 128}},
	{"tcp bytes", Params{Bytes: 10 << 20}},
	{"tcp bytes reverse", Params{Bytes: 5 << 20, Reverse: true}},
	{"tcp blocks", Params{Blocks: 100}},
	{"tcp blocks reverse", Params{Blocks: 50, Reverse: true, Length: 1000}},
	{"tcp bytes 3 both", Params{Bytes: 5 << 20, Parallel: 3, Bidirectional: true}},
	{"tcp omit", Params{Time: 1, Omit: 1}},
	{"tcp omit reverse", Params{Time: 1, Omit: 1, Reverse: true}},
	{"tcp omit bytes", Params{Bytes: 1 << 20, Omit: 1, Bandwidth: 100e6}},
	{"tcp rate", Params{Time: 1, Bandwidth: 20e6, Length: 8 << 10}},
	{"tcp rate reverse", Params{Time: 1, Bandwidth: 20e6, Length: 8 << 10, Reverse: true}},
	{"tcp small blocks", Params{Bytes: 1 << 20, Length: 1000, NoDelay: true}},
	{"tcp large blocks", Params{Bytes: 20 << 20, Length: 1 << 20}},
	{"tcp options", Params{Bytes: 1 << 20, Window: 256 << 10, MSS: 1000, TOS: 0x28, Congestion: "reno", RepeatingPayload: true, Title: "t", ExtraData: "x"}},
	{"udp", Params{UDP: true, Time: 1, Bandwidth: 10e6}},
	{"udp reverse", Params{UDP: true, Time: 1, Bandwidth: 10e6, Reverse: true}},
	{"udp both", Params{UDP: true, Time: 1, Bandwidth: 10e6, Bidirectional: true}},
	{"udp 3", Params{UDP: true, Time: 1, Bandwidth: 5e6, Parallel: 3}},
	{"udp 2 both", Params{UDP: true, Time: 1, Bandwidth: 5e6, Parallel: 2, Bidirectional: true}},
	{"udp 16", Params{UDP: true, Bytes: 1 << 20, Bandwidth: 5e6, Parallel: 16, Length: 1000}},
	{"udp 64-bit", Params{UDP: true, Time: 1, Bandwidth: 10e6, UDPCounters64: true}},
	{"udp 64-bit reverse", Params{UDP: true, Time: 1, Bandwidth: 10e6, UDPCounters64: true, Reverse: true}},
	{"udp smallest", Params{UDP: true, Time: 1, Bandwidth: 1e6, Length: 16, UDPCounters64: true}},
	{"udp largest", Params{UDP: true, Time: 1, Bandwidth: 20e6, Length: MaxUDPBlockSize}},
	{"udp burst", Params{UDP: true, Time: 1, Bandwidth: 10e6, Length: 1000, Burst: 10}},
	{"udp omit", Params{UDP: true, Time: 1, Omit: 1, Bandwidth: 10e6}},
	{"udp omit reverse", Params{UDP: true, Time: 1, Omit: 1, Bandwidth: 10e6, Reverse: true}},
	{"udp bytes", Params{UDP: true, Bytes: 500 << 10, Bandwidth: 50e6, Length: 1000}},
	{"udp blocks reverse", Params{UDP: true, Blocks: 200, Bandwidth: 50e6, Length: 1000, Reverse: true}},
	{"udp unpaced reverse", Params{UDP: true, Bytes: 1 << 20, Length: 1000, Reverse: true}},
	{"udp options", Params{UDP: true, Blocks: 50, Length: 1000, Bandwidth: 50e6, Window: 128 << 10, TOS: 0x28, DontFragment: true}},
}

func TestClientAndServerAgree(t *testing.T) {
	for i, m := range modes {
		if testing.Short() && i%3 != 1 {
			continue
		}
		speed := 8
		if m.p.Omit > 0 { // both sides must measure, however late the machine wakes them
			speed = 2
		}
		t.Run(m.name, func(t *testing.T) {
			s := startServer(t, ServerOptions{Clock: newFastClock(speed)})
			c := s.run(t, ClientOptions{Params: m.p, Clock: newFastClock(speed)})
			agree(t, m.p, c, s.report(t))
		})
	}
}

// agree checks that both reports are complete and tell the same story.
func agree(t *testing.T, p Params, c, s *Report) {
	t.Helper()
	if s.Err != nil || !s.HasPeer || !c.HasPeer {
		t.Fatalf("server: error %v, has results: server %v, client %v", s.Err, s.HasPeer, c.HasPeer)
	}
	want := max(p.Parallel, 1)
	if p.Bidirectional {
		want *= 2
	}
	if len(c.Streams) != want || len(s.Streams) != want || len(c.Connected) != want {
		t.Fatalf("streams: client %d, server %d, connected %d, want %d", len(c.Streams), len(s.Streams), len(c.Connected), want)
	}
	for i := range c.Streams {
		a, b := c.Streams[i], s.Streams[i]
		if a.ID != streamID(i) || b.ID != a.ID || a.Reverse != b.Reverse || a.Sending == b.Sending || a.Sending == a.Reverse {
			t.Errorf("stream %d: client %d %v %v, server %d %v %v", i, a.ID, a.Reverse, a.Sending, b.ID, b.Reverse, b.Sending)
		}
		for _, f := range []struct {
			name string
			a, b Figures
		}{{"sent", a.Sent, b.Sent}, {"received", a.Received, b.Received}} {
			if f.a.Bytes != f.b.Bytes || f.a.Packets != f.b.Packets || f.a.Lost != f.b.Lost {
				t.Errorf("stream %d, %s: the client says %d bytes, %d/%d packets, the server %d, %d/%d", a.ID, f.name,
					f.a.Bytes, f.a.Lost, f.a.Packets, f.b.Bytes, f.b.Lost, f.b.Packets)
			}
			if f.a.Bytes <= 0 && (p.Time > 0 || len(c.Streams) == 1) { // an amount may be reached by some alone
				t.Errorf("stream %d: %d bytes %s", a.ID, f.a.Bytes, f.name)
			}
			if p.UDP && (p.Time > 0 && f.a.Packets <= 0 || f.a.Lost < 0 || f.a.Bytes%int64(c.Params.Length) != 0) {
				t.Errorf("stream %d: %d/%d packets %s of %d bytes", a.ID, f.a.Lost, f.a.Packets, f.name, f.a.Bytes)
			}
		}
		if !p.UDP && p.Omit == 0 && a.Received.Bytes > a.Sent.Bytes {
			t.Errorf("stream %d: %d bytes received of %d sent", a.ID, a.Received.Bytes, a.Sent.Bytes)
		}
		if r := a.Sent.Retransmits; !p.UDP && !(r >= 0 && r < 1e6 || r == -1 && emulated) {
			t.Errorf("stream %d: %d retransmits", a.ID, r)
		}
	}
	for _, r := range []*Report{c, s} {
		if len(r.Intervals) == 0 {
			t.Error("a report has no intervals")
		}
		for _, reverse := range r.directions() {
			sent, received, ok := r.Totals(reverse)
			if !ok {
				t.Fatalf("no totals, reverse %v", reverse)
			}
			for _, f := range []Figures{sent, received} {
				// The clock of the test decides. How much later the machine wakes up is no concern here.
				if p.Time > 0 && p.Omit == 0 && f.Seconds() < float64(p.Time)*0.9 {
					t.Errorf("reverse %v: counted for %.3f s, want %d", reverse, f.Seconds(), p.Time)
				}
			}
		}
		if _, err := r.JSON(); err != nil {
			t.Error(err)
		}
	}
	moved := c.Streams[0].Received
	if !p.Reverse {
		moved = c.Streams[0].Sent
	}
	if p.Parallel <= 1 && !p.Bidirectional && (moved.Bytes < p.Bytes || moved.Bytes < p.Blocks*int64(c.Params.Length)) {
		t.Errorf("%d bytes moved, asked for %d bytes or %d blocks", moved.Bytes, p.Bytes, p.Blocks)
	}
	if p.Bandwidth > 0 && p.Time > 0 {
		// By the average: one block over the rate at most.
		own := float64(moved.Bytes) - float64(c.Params.Length*c.Params.Burst)
		if own > p.Bandwidth/8*moved.Seconds()*1.02 {
			t.Errorf("%d bytes in %.3f s is above %g bit/s", moved.Bytes, moved.Seconds(), p.Bandwidth)
		}
	}
}

func TestServerOutputReachesTheClient(t *testing.T) {
	for _, js := range []bool{false, true} {
		var out lockedBuffer
		s := startServer(t, ServerOptions{Clock: newFastClock(8), JSON: js, Output: &out})
		var text bytes.Buffer
		r := s.run(t, ClientOptions{Params: Params{Time: 2, GetServerOutput: true, Bandwidth: 1e6, Length: 1000}, Clock: newFastClock(8), Output: &text})
		s.Close()
		if err := s.wait(); err != nil {
			t.Fatal(err)
		}
		if js {
			if number(t, r.ServerJSON, "end", "sum_received", "bytes") <= 0 || number(t, []byte(out.String()), "end", "sum_received", "bytes") <= 0 {
				t.Errorf("server JSON without bytes:\n%s", r.ServerJSON)
			}
			if r.ServerText != "" {
				t.Errorf("text from a server in JSON mode: %q", r.ServerText)
			}
			continue
		}
		for _, want := range []string{"Accepted connection from 127.0.0.1", "[  1] local 127.0.0.1 port", "  0.00-", "receiver\n"} {
			if !strings.Contains(r.ServerText, want) {
				t.Errorf("the server's text lacks %q:\n%s", want, r.ServerText)
			}
		}
		if !strings.Contains(out.String(), r.ServerText) {
			t.Errorf("the server prints something else than it sends:\n%s\n---\n%s", out.String(), r.ServerText)
		}
		if !strings.Contains(text.String(), "Server output:\n"+r.ServerText) || !strings.HasSuffix(text.String(), "\niperf Done.\n") {
			t.Errorf("the client's text:\n%s", text.String())
		}
		// Nobody else gets it.
		s = startServer(t, ServerOptions{})
		if r := s.run(t, ClientOptions{Params: Params{Bytes: 1000}}); r.ServerText != "" || r.ServerJSON != nil {
			t.Errorf("unasked server output %q %q", r.ServerText, r.ServerJSON)
		}
	}
}

// What one test asks for must not be there for the next.
func TestEachTestStartsFresh(t *testing.T) {
	s := startServer(t, ServerOptions{})
	first := s.run(t, ClientOptions{Params: Params{Bytes: 1 << 20, GetServerOutput: true, Congestion: "reno", Title: "x"}})
	s.report(t)
	second := s.run(t, ClientOptions{Params: Params{Bytes: 1 << 20}})
	r := s.report(t)
	if second.ServerText != "" || r.Params.Title != "" || r.Params.Congestion != "" {
		t.Errorf("left over from the test before: %q, %+v", second.ServerText, r.Params)
	}
	if first.PeerCongestion == "reno" && second.PeerCongestion != second.Congestion {
		t.Errorf("congestion control %q at the server, %q at the client", second.PeerCongestion, second.Congestion)
	}
	for range 3 { // a small amount must not end the reverse tests after it
		s.run(t, ClientOptions{Params: Params{Bytes: 1000, Length: 1000}})
		c := s.run(t, ClientOptions{Params: Params{Bytes: 1 << 20, Reverse: true}})
		if _, received, _ := c.Totals(true); received.Bytes < 1<<20 {
			t.Errorf("%d bytes in reverse", received.Bytes)
		}
	}
}

func TestOneOff(t *testing.T) {
	s := startServer(t, ServerOptions{OneOff: true})
	for _, stage := range []string{"connected", "cookie", "params"} { // none of these is a test
		p := s.peer(t)
		switch stage {
		case "cookie":
			p.cookie()
		case "params":
			p.params(plainParams)
		}
		p.ctl.Close()
	}
	for {
		r, err := s.try(ClientOptions{Params: Params{Bytes: 1 << 20}})
		if errors.Is(err, ErrBusy) { // the last of the three is not gone yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, received, _ := r.Totals(false); received.Bytes <= 0 {
			t.Error("the one test has no result")
		}
		break
	}
	if err := s.wait(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if c, err := net.Dial("tcp", s.addr); err == nil {
		c.Close()
		t.Error("the server still listens")
	}
}

func TestSecondClientIsToldBusy(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).running(plainParams)
	if _, err := s.try(ClientOptions{Params: Params{Bytes: 1}}); !errors.Is(err, ErrBusy) {
		t.Errorf("the second client gets %v, want %v", err, ErrBusy)
	}
	// It does not disturb the first.
	p.data[0].Write(make([]byte, 1000))
	p.ended()
	p.results(plainResults)
	p.ctl.Write([]byte{byte(IperfDone)})
	expectEnd(t, p.ctl)
	s.good(t)
}

func TestBackToBackClientsAreNotRefused(t *testing.T) {
	s := startServer(t, ServerOptions{})
	for range 30 {
		s.run(t, ClientOptions{Params: Params{Bytes: 10000}})
	}
}

func TestServerCloseTellsTheClient(t *testing.T) {
	s := startServer(t, ServerOptions{})
	for _, p := range []Params{{}, {Reverse: true}, {UDP: true, Bandwidth: 1e6, Bidirectional: true}} {
		s := startServer(t, ServerOptions{})
		running := make(chan struct{})
		var once bool
		got := make(chan error, 1)
		go func() {
			_, err := s.try(ClientOptions{Params: p, Interval: 20 * time.Millisecond, OnInterval: func(Interval) {
				if !once {
					once = true
					close(running)
				}
			}})
			got <- err
		}()
		<-running
		s.Close()
		if err := <-got; !errors.Is(err, ErrTerminated) {
			t.Errorf("%+v: the client gets %v, want %v", p, err, ErrTerminated)
		}
		if err := s.wait(); err != nil {
			t.Errorf("Serve: %v", err)
		}
		if r := s.report(t); !errors.Is(r.Err, ErrTerminated) || len(r.Streams) == 0 {
			t.Errorf("the server's report: %v, %d streams", r.Err, len(r.Streams))
		}
	}
	s.Close()
	s.Close()
}

func TestClientCanBeCancelled(t *testing.T) {
	s := startServer(t, ServerOptions{})
	for _, p := range []Params{{}, {Reverse: true}, {UDP: true, Bandwidth: 1e6}} {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := Run(ctx, ClientOptions{Params: p, Dial: KernelDialer(s.addr), Interval: 20 * time.Millisecond, OnInterval: func(Interval) { cancel() }})
		if !errors.Is(err, ErrClientStopped) || !errors.Is(r.Err, ErrClientStopped) {
			t.Errorf("%+v: %v", p, err)
		}
		if len(r.Streams) == 0 {
			t.Error("a cancelled test has no figures")
		}
		if sr := s.report(t); !errors.Is(sr.Err, ErrClientStopped) {
			t.Errorf("the server sees %v", sr.Err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, ClientOptions{Dial: KernelDialer(s.addr)}); err == nil {
		t.Error("a client cancelled before it began succeeds")
	}
	s.good(t)
}

func TestServerWithoutUDPSaysSo(t *testing.T) {
	l, pc := listenBoth(t)
	pc.Close()
	s := serveOn(t, ServerOptions{}, l, nil)
	_, err := s.try(ClientOptions{Params: Params{UDP: true, Time: 1}})
	if e, ok := errors.AsType[*ServerError](err); !ok || e.Code != CodeCreateStream {
		t.Errorf("client: %v, want code %d", err, CodeCreateStream)
	}
	s.good(t)
}

func TestServerLimits(t *testing.T) {
	s := startServer(t, ServerOptions{MaxDuration: 10 * time.Second, MaxRate: 10e6, Clock: newFastClock(8)})
	for _, tc := range []struct {
		p    Params
		want Code
	}{
		{Params{Time: 11, Bandwidth: 1e6}, CodeMaxDuration},
		{Params{Time: 9, Omit: 2, Bandwidth: 1e6}, CodeMaxDuration},
		{Params{Bandwidth: 1e6}, CodeMaxDuration},
		{Params{Time: 1}, CodeTotalRate},
		{Params{Time: 1, Bandwidth: 6e6, Parallel: 2}, CodeTotalRate},
		{Params{Time: 1, Bandwidth: 6e6, Bidirectional: true}, CodeTotalRate},
	} {
		_, err := s.try(ClientOptions{Params: tc.p})
		if e, ok := errors.AsType[*ServerError](err); !ok || e.Code != tc.want {
			t.Errorf("%+v: %v, want code %d", tc.p, err, tc.want)
		}
	}
	s.run(t, ClientOptions{Params: Params{Time: 1, Bandwidth: 5e6, Parallel: 2, Length: 1000}, Clock: newFastClock(8)})
}

func TestOptionsAreChecked(t *testing.T) {
	if _, err := NewServer(ServerOptions{MaxDuration: -1}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "MaxDuration") {
		t.Errorf("server: %v", err)
	}
	if _, err := NewServer(ServerOptions{Timeouts: Timeouts{Idle: -1}}); !errors.Is(err, ErrOptions) {
		t.Errorf("server: %v", err)
	}
	dial := func(context.Context, string, SocketOptions) (net.Conn, error) { return nil, io.EOF }
	for _, o := range []ClientOptions{
		{}, {Dial: dial, Params: Params{Parallel: 129}}, {Dial: dial, Params: Params{Reverse: true, Bidirectional: true}},
		{Dial: dial, Params: Params{UDP: true, Length: 15}}, {Dial: dial, Params: Params{Time: -1}},
	} {
		if _, err := Run(context.Background(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("client %+v: %v", o.Params, err)
		}
	}
	if _, err := Run(context.Background(), ClientOptions{Dial: dial}); !errors.Is(err, io.EOF) {
		t.Errorf("a failed dial: %v", err)
	}
}
