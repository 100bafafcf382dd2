package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeServer is the other side of a client in simulated time, with a mind of its own.
type fakeServer struct {
	results string            // "": good ones for one stream
	stream  func(c net.Conn)  // what it does with a data stream; nil: reads
	never   State             // the state that it does not send; 0: all are sent
	early   []byte            // sent in place of TEST_START
	params  func(text []byte) // sees the parameters
	dial    error             // what opening a stream fails with
}

const goodResults = `{"cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[` +
	`{"id":1,"bytes":1000,"retransmits":-1,"jitter":0.001,"errors":2,"packets":10,"start_time":0,"end_time":1}]}`

// run does a test against it.
func (f *fakeServer) run(t *testing.T, ctx context.Context, o ClientOptions) (*Report, error) {
	t.Helper()
	var wg sync.WaitGroup
	control, client := net.Pipe()
	opened := make(chan struct{}, 2*MaxStreams)
	first := true
	o.Sockets = NoSockets{}
	o.Dial = func(_ context.Context, network string, _ SocketOptions) (net.Conn, error) {
		if first {
			first = false
			return client, nil
		}
		if f.dial != nil {
			return nil, f.dial
		}
		a, b := net.Pipe()
		wg.Go(func() {
			defer b.Close()
			if network == "tcp" {
				readFull(b, make([]byte, cookieSize))
				opened <- struct{}{}
			}
			if f.stream == nil {
				io.Copy(io.Discard, b)
				return
			}
			f.stream(b)
		})
		return a, nil
	}
	wg.Go(func() {
		defer control.Close()
		send := func(s State) bool {
			if s == f.never {
				io.Copy(io.Discard, control) // until the client gives up
				return false
			}
			_, err := control.Write([]byte{byte(s)})
			return err == nil
		}
		if readFull(control, make([]byte, cookieSize)) != nil || !send(ParamExchange) {
			return
		}
		text, err := readMessage(control, maxParamsJSON)
		if err != nil {
			return
		}
		if f.params != nil {
			f.params(text)
		}
		p, _ := decodeParams(text, 0)
		if !send(CreateStreams) {
			return
		}
		if f.early != nil {
			control.Write(f.early)
			io.Copy(io.Discard, control)
			return
		}
		for i := 0; i < p.streams() && !p.UDP && f.never != TestStart; i++ {
			<-opened
		}
		if !send(TestStart) || !send(TestRunning) {
			return
		}
		var b [1]byte
		if readFull(control, b[:]) != nil || State(b[0]) != TestEnd || !send(ExchangeResults) {
			return
		}
		if _, err := readMessage(control, maxResults); err != nil {
			return
		}
		r := f.results
		if r == "" {
			r = goodResults
		}
		writeMessage(control, []byte(r))
		if send(DisplayResults) {
			readFull(control, b[:])
		}
	})
	r, err := Run(ctx, o)
	client.Close()
	wg.Wait()
	return r, err
}

func TestClientAgainstBadServers(t *testing.T) {
	stream := func(c net.Conn) { io.Copy(io.Discard, c) }
	for _, tc := range []struct {
		name string
		f    fakeServer
		o    ClientOptions
		want string // part of the error; "": success
		took time.Duration
	}{
		{"a good one", fakeServer{}, ClientOptions{Params: Params{Time: 3, Bandwidth: 8e5, Length: 1000}}, "", 3 * time.Second},
		{"results with an unknown stream", fakeServer{results: strings.Replace(goodResults, `"id":1`, `"id":2`, 1)}, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}}, "invalid id: 2", time.Second},
		{"results that lack a field", fakeServer{results: strings.Replace(goodResults, `"errors":2,`, ``, 1)}, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}}, "errors is missing", time.Second},
		{"results that are none", fakeServer{results: `7`}, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}}, "unable to receive results", time.Second},
		{"no EXCHANGE_RESULTS", fakeServer{never: ExchangeResults}, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}}, "EXCHANGE_RESULTS: timed out", 31 * time.Second},
		{"no DISPLAY_RESULTS", fakeServer{never: DisplayResults}, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}}, "DISPLAY_RESULTS: timed out", 31 * time.Second},
		{"one that sends nothing", fakeServer{stream: func(c net.Conn) { io.Copy(io.Discard, c) }}, ClientOptions{Params: Params{Bytes: 1 << 20, Reverse: true}}, "idle timeout", 120 * time.Second},
		{"one that sends nothing for a given time", fakeServer{stream: stream}, ClientOptions{Params: Params{Time: 300, Reverse: true}}, "", 300 * time.Second},
		{"one without UDP", fakeServer{stream: stream, never: TestStart}, ClientOptions{Params: Params{Time: 1, UDP: true, Bandwidth: 1e6}, Timeout: 9 * time.Second}, "unable to read from stream socket", 9 * time.Second},
		{"a stream that cannot be opened", fakeServer{never: TestStart, dial: io.ErrNoProgress}, ClientOptions{Params: Params{Time: 1}}, "unable to connect stream", 0},
		{"an error in place of a start", fakeServer{early: []byte{0xFE, 0, 0, 0, 200, 0, 0, 0, 0}}, ClientOptions{Params: Params{Time: 1}}, "unable to create a new stream", 0},
		{"an error with one number", fakeServer{early: []byte{0xFE, 0, 0, 0, 142}}, ClientOptions{Params: Params{Time: 1}, Timeout: 5 * time.Second}, "authorization", 5 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r, err := tc.f.run(t, context.Background(), tc.o)
				took := time.Since(start)
				switch {
				case tc.want == "" && err != nil:
					t.Fatal(err)
				case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("%v, want ... %s", err, tc.want)
				}
				if took < tc.took || took > tc.took+3*time.Second {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
				b, jsonErr := r.JSON()
				if jsonErr != nil {
					t.Fatal(jsonErr)
				}
				if e, _ := at(t, b, "error").(string); (e == "") != (err == nil) || err != nil && !strings.HasSuffix(e, err.Error()) {
					t.Errorf("the report says %q, the error is %v", e, err)
				}
			})
		})
	}
}

// A lost datagram does not cost the test: the client asks again, and is not misled by what is no answer.
func TestUDPStreamsAreOpenedAgainstLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		f := fakeServer{stream: func(c net.Conn) {
			var b [2000]byte
			for {
				n, err := c.Read(b[:])
				if err != nil {
					return
				}
				if string(b[:n]) != udpConnect {
					continue // data
				}
				switch asked++; asked {
				case 1: // lost
				case 2:
					c.Write([]byte("junk"))
				case 3:
					c.Write(make([]byte, 1000)) // data that has overtaken the answer
					c.Write([]byte(udpReply))
				}
			}
		}}
		start := time.Now()
		o := ClientOptions{Params: Params{UDP: true, Time: 1, Bandwidth: 8e5, Length: 1000}}
		f.never = TestStart // the fake server does not know when streams are open: the client fails there
		_, err := f.run(t, context.Background(), o)
		if asked != 3 {
			t.Errorf("the client asked %d times", asked)
		}
		if took := time.Since(start); err == nil || !strings.Contains(err.Error(), "TEST_START: timed out") || took < 34*time.Second || took > 36*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestClientIsCancelledAtAnyStage(t *testing.T) {
	for _, never := range []State{ParamExchange, CreateStreams, TestStart, TestRunning, ExchangeResults, DisplayResults} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			f := fakeServer{never: never}
			r, err := f.run(t, ctx, ClientOptions{Params: Params{Time: 1, Bandwidth: 8e5, Length: 1000}})
			if !errors.Is(err, ErrClientStopped) {
				t.Errorf("waiting for %v: %v", never, err)
			}
			if b, err := r.JSON(); err != nil || at(t, b, "error") == nil {
				t.Errorf("waiting for %v: report %s, %v", never, b, err)
			}
		})
	}
}

// What the server needs is in the parameters, and nothing is lost on the way.
func TestClientSendsItsParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := Params{Time: 1, Parallel: 3, Bandwidth: 8e5, Length: 1000, TOS: 8, Window: 65536, GetServerOutput: true, Title: "t"}
		var got Params
		f := fakeServer{params: func(text []byte) { got, _ = decodeParams(text, 0) }}
		if _, err := f.run(t, context.Background(), ClientOptions{Params: want}); err != nil {
			t.Fatal(err)
		}
		want.Burst, want.ClientVersion = 1, version
		if got != want {
			t.Errorf("the server gets %+v, want %+v", got, want)
		}
	})
}

// A test that ends within its omitted part has counted nothing, and says so without dividing by zero.
func TestEndWithinTheOmittedPart(t *testing.T) {
	bubble(t, ServerOptions{}, func(t *testing.T, s *Server, l *pipeListener) {
		c, data := l.to(t, "running", `{"tcp":true,"omit":10,"time":10,"len":1000}`, 1)
		data[0].Write(make([]byte, 5000))
		synctest.Wait()
		c.Write([]byte{byte(TestEnd)})
		expect(t, c, ExchangeResults)
		writeMessage(c, []byte(plainResults))
		b, err := readMessage(c, maxResults)
		if err != nil {
			t.Fatal(err)
		}
		r, err := decodeResults(b)
		if err != nil || r.Streams[0].Bytes != 0 || r.Streams[0].Seconds != 0 {
			t.Errorf("results: %s, %v", b, err)
		}
		c.Close()
		data[0].Close()
	})
}

// moodyListener fails now and then.
type moodyListener struct {
	*pipeListener
	mu       sync.Mutex
	failures int // still to come; negative: for ever
}

func (l *moodyListener) Accept() (net.Conn, error) {
	l.mu.Lock()
	fail := l.failures != 0
	if l.failures > 0 {
		l.failures--
	}
	l.mu.Unlock()
	if fail {
		return nil, errors.New("too many open files")
	}
	return l.pipeListener.Accept()
}

func TestFailuresOfAcceptAreSurvived(t *testing.T) {
	serve := func(t *testing.T, failures int, f func(l *pipeListener)) error {
		l := &moodyListener{pipeListener: newPipeListener(), failures: failures}
		s, err := NewServer(ServerOptions{Sockets: NoSockets{}})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l, nil) }()
		if f != nil {
			f(l.pipeListener)
			s.Close()
		}
		return <-served
	}
	synctest.Test(t, func(t *testing.T) {
		err := serve(t, 100, func(l *pipeListener) {
			c, _ := l.to(t, "params", plainParams, 0)
			c.Close()
		})
		if err != nil {
			t.Errorf("after some failures: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if err := serve(t, -1, nil); err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("a listener that fails for ever: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		s, _ := NewServer(ServerOptions{Sockets: NoSockets{}})
		l.Close() // by somebody else
		if err := s.Serve(l, nil); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a listener that somebody closed: %v", err)
		}
	})
}

// plainPacketConn has no more than the interface.
type plainPacketConn struct{ net.PacketConn }

// failingPacketConn refuses every other datagram.
type failingPacketConn struct {
	net.PacketConn
	mu sync.Mutex
	n  int
}

func (c *failingPacketConn) WriteTo(b []byte, to net.Addr) (int, error) {
	c.mu.Lock()
	c.n++
	fail := c.n%2 == 0 && len(b) > 4
	c.mu.Unlock()
	if fail {
		return 0, errors.New("no buffer space available")
	}
	return c.PacketConn.WriteTo(b, to)
}

// Any PacketConn will do, and a datagram that could not be sent is not counted as lost: its number is used again.
func TestOtherPacketConns(t *testing.T) {
	for _, wrap := range []func(net.PacketConn) net.PacketConn{
		func(pc net.PacketConn) net.PacketConn { return plainPacketConn{pc} },
		func(pc net.PacketConn) net.PacketConn { return &failingPacketConn{PacketConn: pc} },
	} {
		l, pc := listenBoth(t)
		s := serveOn(t, ServerOptions{}, l, wrap(pc))
		for _, p := range []Params{
			{UDP: true, Blocks: 50, Bandwidth: 10e6, Length: 1000}, {UDP: true, Blocks: 50, Bandwidth: 10e6, Length: 1000, Reverse: true},
			{UDP: true, Blocks: 50, Bandwidth: 10e6, Length: 1000, Bidirectional: true, Parallel: 2},
		} {
			c := s.run(t, ClientOptions{Params: p})
			agree(t, p, c, s.report(t))
			for _, st := range c.Streams {
				if st.Received.Lost != 0 || st.Received.OutOfOrder != 0 {
					t.Errorf("%+v: stream %d: %d lost, %d late", p, st.ID, st.Received.Lost, st.Received.OutOfOrder)
				}
			}
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "test" }
func (a textAddr) String() string { return string(a) }

func TestAddressesForDisplay(t *testing.T) {
	for _, tc := range []struct {
		a    net.Addr
		host string
		port int
	}{
		{nil, "", 0},
		{&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, "10.0.0.1", 5},
		{net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[::ffff:10.0.0.1]:5")), "10.0.0.1", 5},
		{net.TCPAddrFromAddrPort(netip.MustParseAddrPort("[fd00::1]:5")), "fd00::1", 5},
		{textAddr("10.0.0.1:5"), "10.0.0.1", 5},
		{textAddr("a pipe"), "a pipe", 0},
	} {
		if host, port := hostPort(tc.a); host != tc.host || port != tc.port {
			t.Errorf("%v: %q, %d", tc.a, host, port)
		}
	}
}

func TestNumbersFromPeers(t *testing.T) {
	for x, want := range map[float64]int64{0: 0, -1: -1, 1.9: 1, 1e300: 1<<63 - 1, -1e300: -1 << 63, 1 << 62: 1 << 62} {
		if got := toInt64(x); got != want {
			t.Errorf("%g becomes %d, want %d", x, got, want)
		}
	}
	for x, want := range map[float64]int64{18446744073709551615: -1, 5: 5, -1: -1} {
		if got := signed(x); got != want {
			t.Errorf("%g becomes %d, want %d", x, got, want)
		}
	}
	if got := seconds(1e300); got < 365*24*time.Hour {
		t.Errorf("1e300 s become %v", got)
	}
	for _, name := range []string{"cubic", "reno", "bbr2"} {
		if congestionName(name) != name {
			t.Errorf("%q is refused", name)
		}
	}
	for _, name := range []string{strings.Repeat("x", 16), "a b", "a\x00b", "ü"} {
		if got := congestionName(name); got != "" {
			t.Errorf("%q is taken as %q", name, got)
		}
	}
	if got := fmt.Sprint((&Report{Params: Params{Reverse: true}}).directions()); got != "[true]" {
		t.Errorf("directions of a reverse test: %s", got)
	}
}
