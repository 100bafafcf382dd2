package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// In these tests time is simulated: connections are pipes, and a clock that all goroutines wait for jumps ahead. So
// limits can be checked to the second.

// pipeListener accepts the far ends of pipes.
type pipeListener struct {
	ch   chan net.Conn
	done chan struct{}
	once sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{ch: make(chan net.Conn), done: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ch:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5201} }

// addrConn gives a pipe addresses, as streams of UDP are told apart by them.
type addrConn struct {
	net.Conn
	local, remote *net.TCPAddr
}

func (c addrConn) LocalAddr() net.Addr  { return c.local }
func (c addrConn) RemoteAddr() net.Addr { return c.remote }

func (l *pipeListener) dial(_ context.Context, _ string, _ SocketOptions) (net.Conn, error) {
	a, b := net.Pipe()
	client, server := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 40000}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5201}
	select {
	case l.ch <- addrConn{b, server, client}:
		return addrConn{a, client, server}, nil
	case <-l.done:
		return nil, io.EOF
	}
}

// bubble runs f with a server in simulated time.
func bubble(t *testing.T, o ServerOptions, f func(t *testing.T, s *Server, l *pipeListener)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener()
		o.Sockets = NoSockets{}
		s, err := NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l, nil) }()
		f(t, s, l)
		s.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// to goes through the protocol as far as a stage and returns the control connection and the streams.
func (l *pipeListener) to(t *testing.T, stage string, params string, streams int) (net.Conn, []net.Conn) {
	t.Helper()
	c, err := l.dial(nil, "", SocketOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stage == "connected" {
		return c, nil
	}
	cookie := newCookie()
	c.Write(cookie[:])
	expect(t, c, ParamExchange)
	if stage == "cookie" {
		return c, nil
	}
	writeMessage(c, []byte(params))
	expect(t, c, CreateStreams)
	var data []net.Conn
	for range streams {
		d, _ := l.dial(nil, "", SocketOptions{})
		d.Write(cookie[:])
		data = append(data, d)
	}
	if stage == "params" {
		return c, data
	}
	expect(t, c, TestStart, TestRunning)
	if stage == "running" {
		return c, data
	}
	c.Write([]byte{byte(TestEnd)})
	expect(t, c, ExchangeResults)
	if stage == "ended" {
		return c, data
	}
	writeMessage(c, []byte(plainResults))
	if _, err := readMessage(c, maxResults); err != nil {
		t.Fatal(err)
	}
	expect(t, c, DisplayResults)
	return c, data
}

func TestEveryWaitHasALimit(t *testing.T) {
	const second = time.Second
	for _, tc := range []struct {
		name, stage, params string
		streams             int
		feed                bool          // data comes in all the time
		want                time.Duration // until the server gives up; 0: it does not within an hour
		code                Code          // 0: closes without a word
	}{
		{"silence from the start", "connected", "", 0, false, 10 * second, CodeReceiveCookie},
		{"no parameters", "cookie", "", 0, false, 10 * second, CodeReceiveParams},
		{"no streams", "params", plainParams, 0, false, 20 * second, CodeStreamConnection},
		{"no end after 5 s", "running", plainParams, 1, true, 45 * second, CodeDurationExpired},
		{"no end after 5 s and 3 s of omitted part", "running", `{"time":5,"omit":3,"len":1000}`, 1, true, 48 * second, CodeDurationExpired},
		{"no end of an unlimited test", "running", `{"time":0,"len":1000}`, 1, true, 0, 0},
		{"no end and no time given", "running", `{"len":1000}`, 1, true, 0, 0},
		{"no data", "running", `{"time":0,"len":1000}`, 1, false, 120 * second, CodeNoData},
		{"nobody reads", "running", `{"time":0,"reverse":true,"len":1000}`, 1, false, 120 * second, CodeNoData},
		{"no data, but a pace that leaves such gaps", "running", `{"time":0,"len":131072,"bandwidth":10000}`, 1, false, 4 * 131072 * 8 / 10000 * second, CodeNoData},
		{"no results", "ended", plainParams, 1, false, 10 * second, CodeReceiveResults},
		{"no good-bye", "results", plainParams, 1, false, 10 * second, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, ServerOptions{}, func(t *testing.T, s *Server, l *pipeListener) {
				c, data := l.to(t, tc.stage, tc.params, tc.streams)
				start := time.Now()
				stop := make(chan struct{})
				var wg sync.WaitGroup
				if tc.feed {
					wg.Go(func() {
						for {
							if _, err := data[0].Write(make([]byte, 1000)); err != nil {
								return
							}
							select {
							case <-time.After(second):
							case <-stop:
								return
							}
						}
					})
				}
				c.SetReadDeadline(time.Now().Add(time.Hour))
				b, err := io.ReadAll(c)
				took := time.Since(start)
				close(stop)
				switch {
				case tc.want == 0:
					if !isTimeout(err) {
						t.Errorf("the server gives up after %v: % x, %v", took, b, err)
					}
				case took < tc.want-second || took > tc.want+second:
					t.Errorf("the server gives up after %v, want %v", took, tc.want)
				case tc.code != 0 && (len(b) != 9 || State(int8(b[0])) != ServerErrorByte || Code(b[4]) != tc.code):
					t.Errorf("the server says % x, want SERVER_ERROR %d", b, tc.code)
				case tc.code == 0 && len(b) != 0:
					t.Errorf("the server says % x", b)
				}
				c.Close()
				for _, d := range data {
					d.Close()
				}
				wg.Wait()
				// The next one is served.
				synctest.Wait()
				c, _ = l.to(t, "params", plainParams, 0)
				c.Close()
			})
		})
	}
}

// The slot is given back even if the client does not read its refusal.
func TestRefusalsDoNotBlock(t *testing.T) {
	bubble(t, ServerOptions{}, func(t *testing.T, s *Server, l *pipeListener) {
		running, data := l.to(t, "running", plainParams, 1)
		for range 5 { // a pipe has no buffer: the refusal blocks until it is read
			c, _ := l.dial(nil, "", SocketOptions{})
			cookie := newCookie()
			c.Write(cookie[:])
			defer c.Close()
		}
		running.Write([]byte{byte(TestEnd)})
		expect(t, running, ExchangeResults)
		running.Close()
		data[0].Close()
		synctest.Wait()
		start := time.Now()
		c, _ := l.to(t, "params", plainParams, 0)
		if d := time.Since(start); d != 0 {
			t.Errorf("the next test had to wait %v", d)
		}
		c.Close()
	})
}

// A rate is kept by the average: never more than a block ahead, and no drift.
func TestPaceIsExact(t *testing.T) {
	for _, tc := range []struct {
		p      Params
		blocks int64 // in 10 s
	}{
		{Params{Bandwidth: 8e6, Length: 10000}, 1000},
		{Params{Bandwidth: 8e6, Length: 10000, Reverse: true}, 1000},
		{Params{Bandwidth: 1e6, Length: 131072}, 10}, // 9.5: the last one is under way
		{Params{FQRate: 8e6, Length: 10000}, 1000},
		{Params{Bandwidth: 3333, Length: 1000}, 5},
		{Params{Bandwidth: 8e6, Length: 1000, Burst: 10, Bidirectional: true}, 10000},
	} {
		tc.p.Time = 10
		bubble(t, ServerOptions{}, func(t *testing.T, s *Server, l *pipeListener) {
			r, err := Run(context.Background(), ClientOptions{Params: tc.p, Dial: l.dial, Sockets: NoSockets{}})
			if err != nil {
				t.Fatal(err)
			}
			for _, reverse := range r.directions() {
				sent, received, _ := r.Totals(reverse)
				burst := int64(r.Params.Burst)
				for _, f := range []Figures{sent, received} {
					// A burst falls due at the very end of the test, and may come before or after it.
					if n := f.Bytes / int64(tc.p.Length); n < tc.blocks || n > tc.blocks+burst {
						t.Errorf("%+v: %d blocks in 10 s, want %d to %d", tc.p, n, tc.blocks, tc.blocks+burst)
					}
					if f.Seconds() != 10 {
						t.Errorf("%+v: %v s", tc.p, f.Seconds())
					}
				}
				if sent.Retransmits != -1 {
					t.Errorf("%d retransmits on a pipe", sent.Retransmits)
				}
			}
			if len(r.Intervals) != 10 {
				t.Errorf("%d intervals in 10 s", len(r.Intervals))
			}
			for i, iv := range r.Intervals {
				if iv.Start != float64(i) || iv.End != float64(i+1) {
					t.Errorf("interval %d: %v to %v s", i, iv.Start, iv.End)
				}
			}
		})
	}
}

// The parts of a report add up: intervals make the total.
func TestIntervalsAddUp(t *testing.T) {
	reports := make(chan *Report, 1)
	bubble(t, ServerOptions{OnReport: func(r *Report) { reports <- r }}, func(t *testing.T, s *Server, l *pipeListener) {
		var seen []Interval
		c, err := Run(context.Background(), ClientOptions{
			Params: Params{Time: 4, Omit: 2, Bandwidth: 50e6, Length: 8 << 10, Parallel: 2}, Dial: l.dial, Sockets: NoSockets{},
			OnInterval: func(i Interval) { seen = append(seen, i) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.Intervals, seen, cmpopts.IgnoreUnexported(PathStats{})); d != "" {
			t.Errorf("intervals in the report (-) and reported while running (+):\n%s", d)
		}
		for _, r := range []*Report{c, <-reports} {
			var bytes int64
			var spans []string
			for i, iv := range r.Intervals {
				f, ok := iv.Sum(false)
				if _, reverse := iv.Sum(true); !ok || reverse || len(iv.Streams) != 2 {
					t.Fatalf("interval %d has %d streams", i, len(iv.Streams))
				}
				note := ""
				if iv.Omitted {
					note = " omitted"
				} else {
					bytes += f.Bytes
				}
				spans = append(spans, fmt.Sprintf("%g-%g%s", iv.Start, iv.End, note))
			}
			sent, received, _ := r.Totals(false)
			total := sent
			if r.Server {
				total = received
			}
			if bytes != total.Bytes || bytes == 0 {
				t.Errorf("server %v: intervals have %d bytes, the total %d", r.Server, bytes, total.Bytes)
			}
			if d := cmp.Diff("0-1 omitted, 1-2 omitted, 0-1, 1-2, 2-3, 3-4", strings.Join(spans, ", ")); d != "" {
				t.Errorf("server %v: intervals (-want +got):\n%s", r.Server, d)
			}
		}
	})
}

// What is sent in the omitted part counts for nothing, on either side.
func TestOmittedPartIsLeftOut(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		bubble(t, ServerOptions{}, func(t *testing.T, s *Server, l *pipeListener) {
			r, err := Run(context.Background(), ClientOptions{
				Params: Params{Bandwidth: 8e6, Length: 10000, Time: 10, Omit: 30, Reverse: reverse}, Dial: l.dial, Sockets: NoSockets{},
			})
			if err != nil {
				t.Fatal(err)
			}
			sent, received, _ := r.Totals(reverse)
			for _, f := range []Figures{sent, received} {
				if math.Abs(float64(f.Bytes)-10e6) > 20000 || f.Seconds() != 10 {
					t.Errorf("reverse %v: %d bytes in %v s, want 10 MB in 10 s", reverse, f.Bytes, f.Seconds())
				}
			}
			if len(r.Intervals) != 40 || !r.Intervals[29].Omitted || r.Intervals[30].Omitted {
				t.Errorf("%d intervals", len(r.Intervals))
			}
		})
	}
}

// A client does not wait for ever either.
func TestClientLimits(t *testing.T) {
	for _, tc := range []struct {
		name string
		say  []byte // what the server says, one state for each step
		want string
		took time.Duration
	}{
		{"silence", nil, "timed out", 30 * time.Second},
		{"no CREATE_STREAMS", []byte{9}, "timed out", 30 * time.Second},
		{"no TEST_START", []byte{9, 10}, "timed out", 30 * time.Second},
		{"no TEST_RUNNING", []byte{9, 10, 1}, "timed out", 30 * time.Second},
		{"busy", []byte{0xFF}, "busy", 0},
		{"terminated", []byte{9, 11}, "terminated", 0},
		{"an unknown state", []byte{77}, "unknown control message", 0},
		{"an error", []byte{0xFE, 0, 0, 0, 144, 0, 0, 0, 0}, "idle timeout", 0},
		{"an unknown error while streams are opened", []byte{9, 10, 0xFE, 0, 0, 39, 15, 0, 0, 0, 1}, "int_errno=9999", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipeListener()
				var wg sync.WaitGroup
				defer wg.Wait()
				defer l.Close()
				wg.Go(func() {
					c, err := l.Accept()
					if err != nil {
						return
					}
					defer c.Close()
					wg.Go(func() { io.Copy(io.Discard, c) })
					wg.Go(func() { // streams
						for {
							d, err := l.Accept()
							if err != nil {
								return
							}
							wg.Go(func() { io.Copy(io.Discard, d) })
						}
					})
					c.Write(tc.say)
					<-l.done
				})
				start := time.Now()
				_, err := Run(context.Background(), ClientOptions{Params: Params{Time: 1}, Dial: l.dial, Sockets: NoSockets{}})
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want ... %s", err, tc.want)
				}
				if took := time.Since(start); took < tc.took || took > tc.took+2*time.Second {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
				if strings.Contains(tc.name, "error") {
					if _, ok := errors.AsType[*ServerError](err); !ok {
						t.Errorf("%v is no ServerError", err)
					}
				}
			})
		})
	}
}

func TestSourcesAreComparable(t *testing.T) {
	for _, tc := range [][2]string{
		{"[::ffff:10.0.0.1]:5201", "10.0.0.1:5201"},
		{"[fe80::1%eth0]:5201", "[fe80::1]:5201"},
		{"10.0.0.1:5201", "10.0.0.1:5201"},
	} {
		if got := sourceKey(netip.MustParseAddrPort(tc[0])); got != netip.MustParseAddrPort(tc[1]) {
			t.Errorf("%s is the same source as %v, want %s", tc[0], got, tc[1])
		}
	}
}
