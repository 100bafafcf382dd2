package iperf3

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// Whatever a peer does, the next ordinary client is served.

func TestBadPeersDoNotHarmTheServer(t *testing.T) {
	s := startServer(t, ServerOptions{})
	random := make([]byte, 20000)
	rand.Read(random)
	nested := strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)
	send := func(text string) func(*peer) { return func(p *peer) { p.ctl.Write([]byte(text)) } }
	params := func(text string) func(*peer) {
		return func(p *peer) {
			p.cookie()
			writeMessage(p.ctl, []byte(text))
			if b := expectEnd(p.t, p.ctl); len(b) == 0 || State(int8(b[0])) == CreateStreams {
				p.t.Errorf("the server answers % x", b)
			}
		}
	}
	for _, tc := range []struct {
		name string
		do   func(*peer)
	}{
		{"connects and leaves", func(*peer) {}},
		{"leaves after the cookie", func(p *peer) { p.cookie() }},
		{"leaves after the parameters", func(p *peer) { p.params(plainParams) }},
		{"leaves while running", func(p *peer) { p.running(plainParams) }},
		{"leaves after the end", func(p *peer) { p.running(plainParams).ended() }},
		{"leaves after the results", func(p *peer) { p.running(plainParams).ended().results(plainResults) }},
		{"terminates", func(p *peer) {
			p.running(plainParams)
			p.ctl.Write([]byte{byte(ClientTerminate)})
			expectEnd(p.t, p.ctl)
		}},
		{"says good-bye too early", func(p *peer) { p.running(plainParams); p.ctl.Write([]byte{byte(IperfDone)}); expectEnd(p.t, p.ctl) }},
		{"sends a short request", send("GET / HTTP/1.0\r\n\r\n")},
		{"sends zeros", send("\x00\x00\x00\x00")},
		{"sends a long request", send("GET /index.html HTTP/1.1\r\nHost: example.net\r\nUser-Agent: x\r\nAccept: */*\r\n\r\n")},
		{"sends noise", send(string(random))},
		{"announces 4 GiB", func(p *peer) {
			p.cookie()
			p.ctl.Write([]byte("\xff\xff\xff\xf0{\"tcp\""))
			expectError(p.t, p.ctl, CodeReceiveParams)
		}},
		{"announces nothing", func(p *peer) {
			p.cookie()
			p.ctl.Write(make([]byte, 4))
			expectError(p.t, p.ctl, CodeReceiveParams)
		}},
		{"announces more than it sends", func(p *peer) { p.cookie(); p.ctl.Write([]byte("\x00\x00\x00\x64{\"tcp\":true}")) }},
		{"sends broken JSON", params(`{"tcp":tru`)},
		{"sends an array", params(`[1,2,3]`)},
		{"asks for too many streams", params(`{"tcp":true,"parallel":100000}`)},
		{"asks for negative things", params(`{"tcp":true,"omit":-1,"time":-5,"num":-1,"blockcount":-1,"parallel":-1,"len":-1,"bandwidth":-1,"MSS":-1,"window":-1}`)},
		{"asks for SCTP", params(`{"sctp":true}`)},
		{"nests deeply", func(p *peer) { p.params(nested) }},
		{"has wrong types", func(p *peer) {
			p.params(`{"tcp":"yes","omit":"x","time":[],"num":{},"parallel":"four","len":"big","congestion":1}`)
		}},
		{"sends bad results", func(p *peer) {
			p.running(plainParams).ended()
			writeMessage(p.ctl, []byte(`{"cpu_util_total":"x","streams":7}`))
			expectError(p.t, p.ctl, CodeReceiveResults)
		}},
		{"announces huge results", func(p *peer) {
			p.running(plainParams).ended()
			p.ctl.Write([]byte("\x7f\xff\xff\xff{"))
			expectEnd(p.t, p.ctl)
		}},
		{"sends an unknown state", func(p *peer) {
			p.running(plainParams)
			p.ctl.Write([]byte{77})
			expectError(p.t, p.ctl, CodeMessage)
		}},
		{"ends before it began", func(p *peer) {
			p.params(plainParams)
			p.ctl.Write([]byte{byte(TestEnd)})
			expectError(p.t, p.ctl, CodeMessage)
		}},
		{"resets its control connection", func(p *peer) { p.running(plainParams); p.ctl.(*net.TCPConn).SetLinger(0) }},
		{"resets its stream", func(p *peer) {
			p.running(plainParams)
			p.data[0].(*net.TCPConn).SetLinger(0)
			p.data[0].Close()
			p.ended().results(plainResults)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := s.peer(t)
			tc.do(p)
			p.ctl.Close()
			for {
				_, err := s.try(ClientOptions{Params: Params{Bytes: 200 << 10}})
				if errors.Is(err, ErrBusy) { // the server has not seen it leave yet
					continue
				}
				if err != nil {
					t.Errorf("an ordinary client afterwards: %v", err)
				}
				return
			}
		})
	}
}

// Those who hold a connection open in silence do not keep others from being served, and are thrown out in the end.
func TestSilentPeersHoldNothingUp(t *testing.T) {
	s := startServer(t, ServerOptions{Timeouts: Timeouts{Handshake: 2 * time.Second}})
	var held []net.Conn
	for range 20 {
		held = append(held, s.dial(t))
	}
	half := s.dial(t)
	half.Write(make([]byte, 10))
	held = append(held, half)
	held = append(held, s.peer(t).cookie().ctl)
	short := s.peer(t).cookie()
	short.ctl.Write([]byte("\x00\x00\x00\x64{\"tcp\":true}"))
	held = append(held, short.ctl)
	s.good(t)
	// A drip is no better than silence: the limit is on the whole.
	drip := s.peer(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if _, err := drip.ctl.Write([]byte("x")); err != nil {
					return
				}
			case <-stop:
				return
			}
		}
	}()
	s.good(t)
	for i, c := range held {
		b := expectEnd(t, c)
		if len(b) != 9 || State(int8(b[0])) != ServerErrorByte {
			t.Errorf("silent peer %d is told % x", i, b)
		}
	}
	<-done // the server closed on it
	close(stop)
	s.good(t)
}

func TestMissingStreamsEndTheTest(t *testing.T) {
	s := startServer(t, ServerOptions{Clock: newFastClock(50)})
	p := s.peer(t).params(strings.Replace(plainParams, `"parallel":1`, `"parallel":2`, 1)).streams(1)
	expectError(t, p.ctl, CodeStreamConnection)
	expectEnd(t, p.data[0])
	s.good(t)
}

func TestSilentStreamDoesNotBlockTheOthers(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).params(plainParams)
	s.dial(t) // says nothing
	p.streams(1)
	expect(t, p.ctl, TestStart, TestRunning)
}

func TestWrongCookieIsRefusedAndTheTestGoesOn(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).params(plainParams)
	stranger := s.dial(t)
	c := newCookie()
	stranger.Write(c[:])
	expect(t, stranger, AccessDenied)
	expectEnd(t, stranger)
	p.streams(1)
	expect(t, p.ctl, TestStart, TestRunning)
	p.data[0].Write(make([]byte, 5000))
	p.ended()
	p.results(plainResults)
}

// More streams than agreed, and streams after the start, are refused like strangers.
func TestSurplusStreamsAreRefused(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).running(plainParams)
	p.streams(1)
	expect(t, p.data[1], AccessDenied)
	p.ended()
	if r := p.results(plainResults); len(r.Streams) != 1 {
		t.Errorf("%d streams in the results", len(r.Streams))
	}
}

func TestResultsOfARawClient(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).params(plainParams)
	// Cookie and data in one segment: the server must not lose what follows the cookie.
	c := s.dial(t)
	c.Write(append(p.c[:], make([]byte, 5000)...))
	expect(t, p.ctl, TestStart, TestRunning)
	c.Write(make([]byte, 95000))
	// What has arrived counts, although the reader may not have come to it.
	p.ended()
	r := p.results(plainResults)
	if len(r.Streams) != 1 || r.Streams[0].ID != 1 || r.Streams[0].Bytes != 100000 || r.HasRetransmits != -1 || r.Streams[0].Retransmits != -1 {
		t.Errorf("results: %+v", r)
	}
	p.ctl.Write([]byte{byte(IperfDone)})
	if b := expectEnd(t, p.ctl); len(b) != 0 {
		t.Errorf("after the good-bye comes % x", b)
	}
}

func TestRawStreamsAreNumberedByArrival(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).params(`{"tcp":true,"parallel":2,"bidirectional":true,"len":1000}`)
	// All connect first, then introduce themselves in another order: the first two still are the server's receivers.
	var conns []net.Conn
	for range 4 {
		conns = append(conns, s.dial(t))
	}
	for _, i := range []int{3, 1, 0, 2} {
		conns[i].Write(p.c[:])
	}
	expect(t, p.ctl, TestStart, TestRunning)
	conns[0].Write(make([]byte, 1000))
	conns[1].Write(make([]byte, 2000))
	for i := 2; i < 4; i++ {
		if err := readFull(conns[i], make([]byte, 1000)); err != nil {
			t.Errorf("stream %d does not send: %v", i, err)
		}
	}
	p.ended()
	r := p.results(strings.Replace(plainResults, `"streams":[`+plainResults[strings.Index(plainResults, `{"id"`):len(plainResults)-2], `"streams":[`, 1))
	for i, want := range []streamResult{{ID: 1, Bytes: 1000}, {ID: 3, Bytes: 2000}, {ID: 4}, {ID: 5}} {
		got := r.Streams[i]
		if got.ID != want.ID || want.Bytes != 0 && got.Bytes != want.Bytes || got.Bytes < 1000 {
			t.Errorf("stream %d: id %d, %d bytes, want id %d, %d bytes", i, got.ID, got.Bytes, want.ID, want.Bytes)
		}
	}
}

// A client that has sent TEST_END need not read its streams any more.
func TestEndWhileWritesAreBlocked(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).running(`{"tcp":true,"reverse":true,"len":131072}`)
	if err := readFull(p.data[0], make([]byte, 500000)); err != nil {
		t.Fatal(err)
	}
	// Wait until the server makes no progress: its buffers are full.
	session := func() *session {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.test
	}()
	for last := int64(-1); ; {
		now := session.run.moved()
		if now == last {
			break
		}
		last = now
		time.Sleep(50 * time.Millisecond) // polls for a state, no synchronisation depends on it
	}
	p.ended()
	r := p.results(plainResults)
	if r.Streams[0].Bytes < 500000 || r.HasRetransmits < 0 || r.HasRetransmits > 1 {
		t.Errorf("results: %+v", r)
	}
	p.ctl.Write([]byte{byte(IperfDone)})
	expectEnd(t, p.ctl)
	s.good(t)
}

func TestMessagesInPieces(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t)
	pieces := func(c net.Conn, b []byte) {
		c.(*net.TCPConn).SetNoDelay(true)
		for len(b) > 0 {
			n := min(7, len(b))
			c.Write(b[:n])
			b = b[n:]
		}
	}
	frame := func(text string) []byte { return append([]byte{0, 0, 0, byte(len(text))}, text...) }
	pieces(p.ctl, p.c[:])
	expect(t, p.ctl, ParamExchange)
	pieces(p.ctl, frame(plainParams))
	expect(t, p.ctl, CreateStreams)
	c := s.dial(t)
	pieces(c, p.c[:])
	expect(t, p.ctl, TestStart, TestRunning)
	// The end and the results in one segment.
	text := strings.ReplaceAll(plainResults, "18446744073709551615", "-1")
	p.ctl.Write(append([]byte{byte(TestEnd)}, frame(text)...))
	expect(t, p.ctl, ExchangeResults)
	if _, err := readMessage(p.ctl, maxResults); err != nil {
		t.Fatal(err)
	}
	expect(t, p.ctl, DisplayResults)
}

// udpPeer is a UDP stream made by hand.
func (p *peer) udpStream(connect string) net.Conn {
	p.t.Helper()
	c, err := net.Dial("udp", p.s.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(guard))
	c.Write([]byte(connect))
	return c
}

func (p *peer) udpReply(c net.Conn) {
	p.t.Helper()
	var b [64]byte
	n, err := c.Read(b[:])
	if err != nil || string(b[:n]) != udpReply {
		p.t.Fatalf("UDP reply %q, %v", b[:n], err)
	}
}

func TestRawUDP(t *testing.T) {
	s := startServer(t, ServerOptions{})
	for _, wide := range []bool{false, true} {
		for _, connect := range []string{"9876", "\x15\xcd\x5b\x07", "\x07\x5b\xcd\x15", "6789"} {
			t.Run(fmt.Sprintf("%v % x", wide, connect), func(t *testing.T) {
				p := s.peer(t)
				x := ""
				if wide {
					x = `"udp_counters_64bit":1,`
				}
				p.params(`{"udp":true,` + x + `"len":100}`)
				c := p.udpStream(connect)
				p.udpReply(c)
				expect(t, p.ctl, TestStart, TestRunning)
				b := make([]byte, 100)
				for _, seq := range []int64{1, 2, 3, 6, 5, 7, 10} {
					putDatagram(b, time.Second, seq, wide)
					c.Write(b)
				}
				c.Write(b[:5]) // too short for a header
				// Those of strangers do not count.
				stranger := p.udpStream("9876")
				stranger.Write(b)
				session := s.udpTest.Load()
				for i := 0; session.run.moved() < 700; i++ {
					if i > 1000 {
						t.Fatalf("%d of 700 bytes arrive", session.run.moved())
					}
					time.Sleep(time.Millisecond) // polls for a state
				}
				p.ended()
				r := p.results(plainResults)
				got := r.Streams[0]
				if got.Bytes != 700 || got.Packets != 10 || got.Errors != 3 || got.Jitter < 0 {
					t.Errorf("results: %+v", got)
				}
				p.ctl.Write([]byte{byte(IperfDone)})
				expectEnd(t, p.ctl)
			})
		}
	}
	s.good(t)
}

func TestUDPStreamsAreOneForEachSource(t *testing.T) {
	s := startServer(t, ServerOptions{})
	p := s.peer(t).params(`{"udp":true,"len":100,"parallel":2}`)
	junk := p.udpStream(strings.Repeat("x", 100)) // no stream
	first := p.udpStream("9876")
	p.udpReply(first)
	// The reply may have been lost: it is given again, and no second stream is made.
	first.Write([]byte(udpConnect))
	p.udpReply(first)
	second := p.udpStream("9876")
	p.udpReply(second)
	expect(t, p.ctl, TestStart, TestRunning)
	// Even now, as the client may still wait for it.
	second.Write([]byte(udpConnect))
	p.udpReply(second)
	junk.SetReadDeadline(past)
	if _, err := junk.Read(make([]byte, 1)); !isTimeout(err) {
		t.Error("junk is answered")
	}
	p.ended()
	r := p.results(plainResults)
	if len(r.Streams) != 2 || r.Streams[0].ID != 1 || r.Streams[1].ID != 3 {
		t.Errorf("results: %+v", r.Streams)
	}
}

func TestStrayDatagramsWithoutATest(t *testing.T) {
	s := startServer(t, ServerOptions{})
	for _, n := range []int{0, 1, 4, 16, 100, 1400, 65000} {
		c, err := net.Dial("udp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(make([]byte, n))
		c.Close()
	}
	s.run(t, ClientOptions{Params: Params{UDP: true, Bytes: 10000, Length: 1000}})
}

func TestFloodOfConnections(t *testing.T) {
	s := startServer(t, ServerOptions{})
	var held []net.Conn
	for range maxPending + 50 {
		held = append(held, s.dial(t))
	}
	s.good(t) // there is room, at the cost of the oldest
	s.mu.Lock()
	n := len(s.pending)
	s.mu.Unlock()
	if n > maxPending {
		t.Errorf("%d connections are pending", n)
	}
	for _, c := range held {
		c.Close()
	}
}
