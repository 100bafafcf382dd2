package iperf3

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

func FuzzParameters(f *testing.F) {
	for _, s := range []string{tcpFrom318, udpFrom312, `{}`, `[]`, `{"parallel":1e300}`, `{"len":-1,"udp":true}`, `{"time":1e-300}`, "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := decodeParams(text, 1448)
		if err != nil {
			if codeOf(err, 0) == 0 {
				t.Errorf("an error without a code: %v", err)
			}
			return
		}
		// What is accepted is within limits, and means the same when it is passed on.
		if err := p.validate(); err != nil {
			t.Errorf("accepted in spite of %v", err)
		}
		if n := p.streams(); n < 1 || n > 2*MaxStreams {
			t.Errorf("%d streams", n)
		}
		again, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		q, err := decodeParams(again, 1448)
		if err != nil || q != p {
			t.Errorf("%+v becomes %+v, %v", p, q, err)
		}
	})
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(plainResults))
	f.Add([]byte(`{"cpu_util_total":"x","streams":7}`))
	f.Add([]byte(`{"streams":[{"id":1e300}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeResults(text)
		if err != nil {
			return
		}
		run := newRun(SystemClock(), NoSockets{}, Params{UDP: true, Parallel: 1, Burst: 1, Length: 100, Time: 1}, true)
		run.report, run.printer = &Report{Params: run.params}, &printer{p: &run.params, w: io.Discard}
		run.addStream(new(stream))
		run.begin()
		run.freeze()
		run.finish()
		run.merge(r)
		run.printer.final(run.report)
		if _, err := run.report.JSON(); err != nil {
			t.Errorf("the report cannot be encoded: %v", err)
		}
		if _, err := r.encode(); err != nil {
			t.Errorf("the results cannot be encoded: %v", err)
		}
	})
}

func FuzzDatagrams(f *testing.F) {
	b := make([]byte, 32)
	putDatagram(b, time.Second, 7, false)
	f.Add(b, false)
	f.Add([]byte(udpConnect), true)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		var l lossStats
		for len(b) > 0 {
			n := min(len(b), udpHeader64)
			if sent, seq, ok := parseDatagram(b[:n], wide); ok {
				l.add(seq, sent, 0)
			}
			b = b[n:]
		}
		if l.Lost < 0 || l.Lost > l.Packets || l.Late < 0 || !(l.Jitter >= 0) {
			t.Errorf("%+v", l)
		}
	})
}

// script is a connection whose peer says what is written in it, and takes everything.
type script struct {
	r    io.Reader
	hung chan struct{} // closed by Close: a read at the end of the script blocks until then
	hold bool
}

func (s *script) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err == io.EOF && s.hold {
		<-s.hung
	}
	return n, err
}
func (s *script) Write(b []byte) (int, error) { return len(b), nil }
func (s *script) Close() error {
	select {
	case <-s.hung:
	default:
		close(s.hung)
	}
	return nil
}
func (s *script) LocalAddr() net.Addr                { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5201} }
func (s *script) RemoteAddr() net.Addr               { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 4000} }
func (s *script) SetDeadline(t time.Time) error      { return nil }
func (s *script) SetReadDeadline(t time.Time) error  { return nil }
func (s *script) SetWriteDeadline(t time.Time) error { return nil }

// FuzzControl plays a whole control connection after its cookie: parameters, states, results and whatever else. Streams
// are provided as the parameters ask for them.
func FuzzControl(f *testing.F) {
	message := func(s string) []byte {
		var b bytes.Buffer
		writeMessage(&b, []byte(s))
		return b.Bytes()
	}
	end := []byte{byte(TestEnd)}
	done := []byte{byte(IperfDone)}
	params := message(`{"tcp":true,"time":1,"num":0,"parallel":2,"len":1000,"get_server_output":1}`)
	reverse := message(`{"tcp":true,"reverse":true,"bandwidth":1000,"len":1000}`)
	f.Add(bytes.Join([][]byte{params, end, message(plainResults), done}, nil))
	f.Add(bytes.Join([][]byte{reverse, end, message(plainResults), done}, nil))
	f.Add(bytes.Join([][]byte{params, end, message(`{"streams":7}`)}, nil))
	f.Add(bytes.Join([][]byte{params, {byte(ClientTerminate)}}, nil))
	f.Add(bytes.Join([][]byte{params, {77}}, nil))
	f.Add([]byte("\xff\xff\xff\xf0{\"tcp\""))
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		s, err := NewServer(ServerOptions{Sockets: NoSockets{}, Output: &out})
		if err != nil {
			t.Fatal(err)
		}
		c := newCookie()
		ctl := &script{r: io.MultiReader(bytes.NewReader(c[:]), bytes.NewReader(in)), hung: make(chan struct{})}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			s.handshake(ctl, 0)
		}()
		// A session that waits for streams gets them, unless the script ends first.
		for seq := uint64(1); ; seq++ {
			stream := &script{r: bytes.NewReader(append(c[:], make([]byte, 3000)...)), hung: make(chan struct{})}
			s.mu.Lock()
			waits := s.test != nil && !s.test.p.UDP && s.test.offer(c, stream, seq)
			s.mu.Unlock()
			if waits {
				continue
			}
			select {
			case <-finished:
			case <-time.After(50 * time.Microsecond):
				continue
			}
			break
		}
		s.wg.Wait()
		if s.test != nil || len(s.live) != 0 || len(s.pending) != 0 {
			t.Errorf("left over: slot %v, %d tests, %d handshakes", s.test, len(s.live), len(s.pending))
		}
	})
}
