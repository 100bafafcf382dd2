package iperf3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// guard ends a wait that would otherwise hang the test. It is no measurement.
const guard = 30 * time.Second

// emulated is true where tests usually run under user-mode emulation, which gives no figures about TCP connections.
const emulated = runtime.GOARCH == "arm"

// fastClock runs n times faster than the machine's, so that a test of ten seconds takes less.
type fastClock struct {
	start time.Time
	n     time.Duration
}

func newFastClock(n int) fastClock { return fastClock{time.Now(), time.Duration(n)} }

func (c fastClock) Now() time.Time { return c.start.Add(time.Since(c.start) * c.n) }

func (c fastClock) AfterFunc(d time.Duration, f func()) Timer {
	return fastTimer{time.AfterFunc(d/c.n, f), c.n}
}

type fastTimer struct {
	t *time.Timer
	n time.Duration
}

func (t fastTimer) Stop() bool            { return t.t.Stop() }
func (t fastTimer) Reset(d time.Duration) { t.t.Reset(d / t.n) }

// testServer is a server on a loopback port of its own.
type testServer struct {
	*Server
	addr    string
	reports chan *Report
	served  chan error
}

// listenBoth binds TCP and UDP to one port of the loopback interface.
func listenBoth(t testing.TB) (net.Listener, net.PacketConn) {
	t.Helper()
	var err error
	for range 20 { // the UDP port may be somebody else's
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			break
		}
		var pc net.PacketConn
		if pc, err = net.ListenPacket("udp", l.Addr().String()); err == nil {
			return l, pc
		}
		l.Close()
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	t.Fatalf("listen on loopback: %v", err)
	return nil, nil
}

// startServer serves until the test ends, and then checks that Serve returns nil.
func startServer(t testing.TB, o ServerOptions) *testServer {
	t.Helper()
	l, pc := listenBoth(t)
	return serveOn(t, o, l, pc)
}

func serveOn(t testing.TB, o ServerOptions, l net.Listener, pc net.PacketConn) *testServer {
	t.Helper()
	ts := &testServer{reports: make(chan *Report, 100), served: make(chan error, 1), addr: l.Addr().String()}
	o.OnReport = func(r *Report) { ts.reports <- r }
	var err error
	if ts.Server, err = NewServer(o); err != nil {
		t.Fatal(err)
	}
	go func() { ts.served <- ts.Serve(l, pc) }()
	t.Cleanup(func() {
		ts.Close()
		if err := ts.wait(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ts
}

// wait waits for Serve to return. It may be called again.
func (s *testServer) wait() error {
	select {
	case err := <-s.served:
		s.served <- err
		return err
	case <-time.After(guard):
		return errors.New("Serve does not return")
	}
}

// report is the server's account of the test that ended last.
func (s *testServer) report(t testing.TB) *Report {
	t.Helper()
	select {
	case r := <-s.reports:
		return r
	case <-time.After(guard):
		t.Fatal("no report from the server")
		return nil
	}
}

// run does a test as a client and fails if it does not succeed.
func (s *testServer) run(t testing.TB, o ClientOptions) *Report {
	t.Helper()
	r, err := s.try(o)
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	return r
}

func (s *testServer) try(o ClientOptions) (*Report, error) {
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	defer cancel()
	if o.Dial == nil {
		o.Dial = KernelDialer(s.addr)
	}
	return Run(ctx, o)
}

// good checks that an ordinary client is served.
func (s *testServer) good(t testing.TB) {
	t.Helper()
	r := s.run(t, ClientOptions{Params: Params{Bytes: 200 << 10}})
	_, received, _ := r.Totals(false)
	if received.Bytes <= 0 {
		t.Errorf("the server has received %d bytes", received.Bytes)
	}
}

// peer is a client made by hand.
type peer struct {
	t    testing.TB
	s    *testServer
	c    cookie
	ctl  net.Conn
	data []net.Conn
}

func (s *testServer) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(guard))
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *testServer) peer(t testing.TB) *peer {
	t.Helper()
	return &peer{t: t, s: s, c: newCookie(), ctl: s.dial(t)}
}

// expect reads states from a connection.
func expect(t testing.TB, c net.Conn, want ...State) {
	t.Helper()
	for _, w := range want {
		var b [1]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			t.Fatalf("waiting for %v: %v", w, err)
		}
		if got := State(int8(b[0])); got != w {
			t.Fatalf("got %v, want %v", got, w)
		}
	}
}

// expectEnd checks that the server closes a connection, with or without a reset, and returns what came before.
func expectEnd(t testing.TB, c net.Conn) []byte {
	t.Helper()
	b, err := io.ReadAll(c)
	if isTimeout(err) {
		t.Fatal("the server keeps the connection open")
	}
	return b
}

// expectError checks that a connection ends with SERVER_ERROR and a code.
func expectError(t testing.TB, c net.Conn, want Code) {
	t.Helper()
	expect(t, c, ServerErrorByte)
	b := expectEnd(t, c)
	if len(b) != 8 {
		t.Fatalf("%d bytes after SERVER_ERROR, want 8", len(b))
	}
	if got := Code(int32(b[0])<<24 | int32(b[1])<<16 | int32(b[2])<<8 | int32(b[3])); got != want {
		t.Errorf("SERVER_ERROR %d, want %d", got, want)
	}
}

const plainParams = `{"tcp":true,"omit":0,"time":5,"num":0,"blockcount":0,"parallel":1,"len":1000}`

// cookie goes as far as PARAM_EXCHANGE.
func (p *peer) cookie() *peer {
	p.t.Helper()
	p.ctl.Write(p.c[:])
	expect(p.t, p.ctl, ParamExchange)
	return p
}

// params goes as far as CREATE_STREAMS.
func (p *peer) params(text string) *peer {
	p.t.Helper()
	p.cookie()
	writeMessage(p.ctl, []byte(text))
	expect(p.t, p.ctl, CreateStreams)
	return p
}

// streams opens n data streams, one after the other.
func (p *peer) streams(n int) *peer {
	p.t.Helper()
	for range n {
		c := p.s.dial(p.t)
		c.Write(p.c[:])
		p.data = append(p.data, c)
	}
	return p
}

// running goes as far as TEST_RUNNING, with one stream.
func (p *peer) running(text string) *peer {
	p.t.Helper()
	p.params(text).streams(1)
	expect(p.t, p.ctl, TestStart, TestRunning)
	return p
}

// ended goes as far as EXCHANGE_RESULTS.
func (p *peer) ended() *peer {
	p.t.Helper()
	p.ctl.Write([]byte{byte(TestEnd)})
	expect(p.t, p.ctl, ExchangeResults)
	return p
}

const plainResults = `{"cpu_util_total":1.5,"cpu_util_user":1,"cpu_util_system":0.5,"sender_has_retransmits":1,"streams":[` +
	`{"id":1,"bytes":100000,"retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0}]}`

// results exchanges results and goes as far as DISPLAY_RESULTS.
func (p *peer) results(text string) *results {
	p.t.Helper()
	writeMessage(p.ctl, []byte(text))
	b, err := readMessage(p.ctl, maxResults)
	if err != nil {
		p.t.Fatalf("the server's results: %v", err)
	}
	r, err := decodeResults(b)
	if err != nil {
		p.t.Fatalf("the server's results: %v\n%s", err, b)
	}
	expect(p.t, p.ctl, DisplayResults)
	return r
}

// needProgram skips the test if a program is not installed; under CI it fails.
func needProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed", name)
	default:
		t.Skipf("%s is not installed", name)
	}
	return ""
}

// lockedBuffer is an output that a test reads while a server writes.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}

// at is the value at a path in a JSON document.
func at(t testing.TB, doc []byte, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(doc, &v); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}

// number is the number there.
func number(t testing.TB, doc []byte, path ...any) float64 {
	t.Helper()
	n, ok := at(t, doc, path...).(float64)
	if !ok {
		t.Fatalf("%s is not a number", fmt.Sprint(path...))
	}
	return n
}
