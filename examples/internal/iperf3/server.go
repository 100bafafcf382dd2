package iperf3

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ServerOptions configures a [Server]. The zero value works.
type ServerOptions struct {
	Clock   Clock   // nil: the machine's
	Sockets Sockets // nil: those of the host, see KernelSockets

	// OneOff ends Serve after the first test that reached TEST_RUNNING. Port scans and garbage do not count.
	OneOff bool

	// Output gets what upstream's server prints: an account of each test as text or, with JSON, as one object. nil:
	// nothing.
	Output io.Writer
	JSON   bool
	// Interval is the length of intervals in reports; 0: 1 s; negative: none.
	Interval time.Duration
	// OnReport is called at the end of every test that got a slot, in the goroutine that conducts tests.
	OnReport func(*Report)
	Logger   *slog.Logger // nil: none

	// Limits of ours. A client that asks for more is refused. 0: no limit.
	MaxDuration time.Duration // omitted part and test together; refuses unlimited tests too
	MaxRate     float64       // bit/s of all streams together; refuses unlimited rates too

	Timeouts Timeouts
}

// Timeouts bounds the waits of a server. A zero field means the default.
type Timeouts struct {
	Handshake time.Duration // from accepting a connection to complete parameters; 10 s
	Streams   time.Duration // from CREATE_STREAMS to the last stream; 20 s
	Grace     time.Duration // that a test may last beyond its own duration; 40 s, as upstream
	Idle      time.Duration // without any data while a test runs; 120 s, as upstream
	Results   time.Duration // for the client's results; 10 s
	Done      time.Duration // for IPERF_DONE; 10 s
	Linger    time.Duration // for a refused peer to close; 2 s
}

func (t *Timeouts) setDefaults() {
	for _, f := range []struct {
		p *time.Duration
		d time.Duration
	}{
		{&t.Handshake, 10 * time.Second}, {&t.Streams, 20 * time.Second}, {&t.Grace, 40 * time.Second},
		{&t.Idle, 120 * time.Second}, {&t.Results, 10 * time.Second}, {&t.Done, 10 * time.Second},
		{&t.Linger, 2 * time.Second},
	} {
		if *f.p == 0 {
			*f.p = f.d
		}
	}
}

// controlKeepAlive finds a vanished client where nothing else would, as in an unlimited UDP test in reverse.
const controlKeepAlive = 15 * time.Second

// defaultUDPBuffer is what the UDP socket's buffers are set to. The usual defaults measure the buffer, not the path.
const defaultUDPBuffer = 4 << 20

// maxPending bounds the connections in their handshake: a full set of streams, and as many again. Beyond that the oldest
// gives way.
const maxPending = 4 * MaxStreams

// Server answers iperf3 clients, one test at a time. A second client is told that the server is busy.
type Server struct {
	o    ServerOptions
	stop chan struct{} // closed by Close
	once sync.Once

	udp  udpSocket // nil: no UDP
	udpC net.PacketConn
	// udpTest is the test that datagrams belong to, nil: none.
	udpTest atomic.Pointer[session]

	mu       sync.Mutex
	listener net.Listener
	pending  map[uint64]net.Conn // in their handshake, by order of arrival
	test     *session            // holds the slot; nil: free
	live     map[*session]bool   // these still have their control connection
	tests    int                 // number of the next one
	wg       sync.WaitGroup
}

// NewServer makes a server. Its errors match ErrOptions.
func NewServer(o ServerOptions) (*Server, error) {
	for _, f := range []struct {
		name string
		bad  bool
	}{
		{"MaxDuration", o.MaxDuration < 0}, {"MaxRate", !(o.MaxRate >= 0)},
		{"Timeouts", o.Timeouts.Handshake < 0 || o.Timeouts.Streams < 0 || o.Timeouts.Grace < 0 || o.Timeouts.Idle < 0 ||
			o.Timeouts.Results < 0 || o.Timeouts.Done < 0 || o.Timeouts.Linger < 0},
	} {
		if f.bad {
			return nil, fmt.Errorf("iperf3: server: %w: %s is negative", ErrOptions, f.name)
		}
	}
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	if o.Sockets == nil {
		o.Sockets = KernelSockets()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	o.Timeouts.setDefaults()
	return &Server{o: o, stop: make(chan struct{}), tests: 1,
		pending: make(map[uint64]net.Conn), live: make(map[*session]bool)}, nil
}

// Serve accepts connections on l and datagrams on pc, which should have the same address and port, until Close is called,
// the one-off test is over or l fails. It closes both, and returns when everything that it started has ended: nil, or
// why accepting failed. pc may be nil: UDP tests are refused then. A server serves once.
func (s *Server) Serve(l net.Listener, pc net.PacketConn) error {
	s.mu.Lock()
	s.listener = l
	if pc != nil {
		s.udp, s.udpC = packetConn{pc}, pc
	}
	s.mu.Unlock()
	if pc != nil {
		s.wg.Go(func() { s.readDatagrams() })
	}
	// A Close that came earlier has not seen the listener.
	s.wg.Go(func() {
		<-s.stop
		l.Close()
		s.abort()
	})
	s.banner()
	err := s.accept(l)
	s.Close()
	if pc != nil {
		// The reader must not keep Serve from returning, the last test may still need the socket for sending.
		s.waitTest()
		pc.Close()
	}
	s.wg.Wait()
	return err
}

// Close asks the server to end. A running test is ended with SERVER_TERMINATE. It does not wait: Serve returns when all
// is done. It may be called from anywhere and more than once.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.stop) })
	return nil
}

func (s *Server) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// abort ends handshakes and the running test.
func (s *Server) abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.pending {
		c.Close()
	}
	for t := range s.live {
		t.ctl.interrupt()
	}
}

// waitTest waits until no test holds the slot.
func (s *Server) waitTest() {
	s.mu.Lock()
	t := s.test
	s.mu.Unlock()
	if t != nil {
		<-t.over
	}
}

// accept hands each connection to a goroutine of its own, with the number of its arrival: streams are counted in the
// order of arrival, whichever is read first.
func (s *Server) accept(l net.Listener) error {
	failures := 0
	for seq := uint64(0); ; seq++ {
		conn, err := l.Accept()
		switch {
		case s.closed():
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("iperf3: server: accept: %w", err)
		case err != nil:
			// Such as a connection reset while it queued, or no file descriptors left: none is a reason to end.
			failures++
			if failures > maxAcceptFailures {
				return fmt.Errorf("iperf3: server: accept: %w", err)
			}
			s.o.Logger.Warn("accept failed", "err", err)
			s.sleep(min(time.Second, time.Duration(failures)*5*time.Millisecond))
			continue
		}
		failures = 0
		s.addPending(seq, conn)
		s.wg.Go(func() { s.handshake(conn, seq) })
	}
}

// maxAcceptFailures in a row mean that the listener is broken.
const maxAcceptFailures = 1000

func (s *Server) sleep(d time.Duration) {
	a := newAlarm(s.o.Clock)
	defer a.Stop()
	a.Set(d)
	select {
	case <-a.C:
	case <-s.stop:
	}
}

func (s *Server) addPending(seq uint64, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) >= maxPending {
		oldest := seq
		for n := range s.pending {
			oldest = min(oldest, n)
		}
		if c, ok := s.pending[oldest]; ok {
			c.Close()
			delete(s.pending, oldest)
		}
	}
	s.pending[seq] = conn
	if s.closed() {
		conn.Close()
	}
}

func (s *Server) donePending(seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, seq)
}

// handshake takes a connection from its first byte to where it belongs: to the running test as a stream, to the slot
// with a test of its own, or away.
func (s *Server) handshake(conn net.Conn, seq uint64) {
	defer s.donePending(seq)
	ctl := &control{conn: conn, clock: s.o.Clock}
	began := s.o.Clock.Now()
	var c cookie
	err := ctl.within(s.o.Timeouts.Handshake, "cookie", func() error { return readFull(conn, c[:]) })
	if err != nil {
		s.refuse(ctl, err, CodeReceiveCookie)
		return
	}
	due := began.Add(s.o.Timeouts.Handshake)
	switch s.place(c, conn, seq, due) {
	case placeStream:
		return
	case placeBusy:
		s.deny(ctl)
		return
	}
	if err := s.o.Sockets.Configure(conn, SocketOptions{NoDelay: true, KeepAlive: controlKeepAlive}); err != nil {
		s.o.Logger.Debug("control connection", "err", err)
	}
	info, _ := s.o.Sockets.Info(conn)
	var text []byte
	err = ctl.within(due.Sub(s.o.Clock.Now()), "parameters", func() error {
		if err := ctl.writeStates(ParamExchange); err != nil {
			return err
		}
		var err error
		text, err = readMessage(conn, maxParamsJSON)
		return err
	})
	if err != nil {
		s.refuse(ctl, err, CodeReceiveParams)
		return
	}
	p, err := decodeParams(text, info.MSS)
	if err == nil {
		err = s.allowed(&p)
	}
	if err != nil {
		s.refuse(ctl, err, CodeReceiveParams)
		return
	}
	t := s.take(ctl, c, p, info.MSS, due)
	if t == nil {
		s.deny(ctl)
		return
	}
	s.donePending(seq)
	t.conduct()
}

// allowed checks parameters against the server's own limits.
func (s *Server) allowed(p *Params) error {
	if p.UDP && s.udp == nil {
		return fail(CodeCreateStream, "no UDP here")
	}
	if d := time.Duration(p.Omit+p.Time) * time.Second; s.o.MaxDuration > 0 && (p.Time == 0 || d > s.o.MaxDuration) {
		return fail(CodeMaxDuration, "%v", d)
	}
	if s.o.MaxRate > 0 && (p.rate() == 0 || p.rate()*float64(p.streams()) > s.o.MaxRate) {
		return fail(CodeTotalRate, "%g bit/s", p.rate()*float64(p.streams()))
	}
	return nil
}

type placement int

const (
	placeControl placement = iota // opens a test
	placeStream                   // belongs to the running test, which has it now
	placeBusy
)

// place finds out what a connection with the given cookie is.
func (s *Server) place(c cookie, conn net.Conn, seq uint64, due time.Time) placement {
	out := placeBusy
	s.whenSettled(due, func() {
		switch {
		case s.test == nil:
			out = placeControl
		case s.test.offer(c, conn, seq):
			out = placeStream
		}
	})
	return out
}

// take takes the slot for a test; nil if it is not free.
func (s *Server) take(ctl *control, c cookie, p Params, mss int, due time.Time) (t *session) {
	s.whenSettled(due, func() {
		if s.test != nil || s.closed() {
			return
		}
		t = newSession(s, ctl, c, p, mss)
		s.test, s.live[t] = t, true
		s.tests++
	})
	return t
}

// whenSettled calls f with the lock held. A test that is all but over is waited for, until due at most: the next client
// can be faster than the last steps of the one before, and must not be refused for that.
func (s *Server) whenSettled(due time.Time, f func()) {
	wake := newAlarm(s.o.Clock)
	defer wake.Stop()
	for {
		s.mu.Lock()
		left := due.Sub(s.o.Clock.Now())
		t := s.test
		if t == nil || !t.finishing.Load() || left <= 0 || s.closed() {
			f()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		wake.Set(left)
		select {
		case <-t.over:
		case <-wake.C:
		case <-s.stop:
		}
	}
}

// release gives the slot back.
func (s *Server) release(t *session) {
	s.udpTest.CompareAndSwap(t, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.test == t {
		s.test = nil
		close(t.over)
	}
}

// endSession forgets a test. The slot of a one-off test is only given back now, when nobody can take it any more.
func (s *Server) endSession(t *session) {
	s.mu.Lock()
	delete(s.live, t)
	s.mu.Unlock()
	s.release(t)
}

// deny tells a client that the server is busy. Whatever goes wrong here concerns nobody else.
func (s *Server) deny(ctl *control) {
	s.o.Logger.Info("refused: busy", "peer", ctl.conn.RemoteAddr())
	ctl.within(s.o.Timeouts.Linger, "refusal", func() error { return ctl.writeStates(AccessDenied) })
	s.linger(ctl)
}

// refuse ends a connection with SERVER_ERROR.
func (s *Server) refuse(ctl *control, err error, fallback Code) {
	s.o.Logger.Info("refused", "peer", ctl.conn.RemoteAddr(), "err", err)
	if errors.Is(err, errStopped) || s.closed() {
		ctl.conn.Close()
		return
	}
	ctl.within(s.o.Timeouts.Linger, "refusal", func() error { return ctl.writeServerError(codeOf(err, fallback)) })
	s.linger(ctl)
}

// linger closes a connection so that the last word arrives, sooner if the server is closed.
func (s *Server) linger(ctl *control) {
	if s.closed() {
		ctl.conn.Close()
		return
	}
	lingerClose(ctl.conn, s.o.Clock, s.o.Timeouts.Linger)
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if err != nil {
		return closedError(err)
	}
	return nil
}

// readDatagrams hands datagrams to the running test until the socket is closed.
func (s *Server) readDatagrams() {
	buf := make([]byte, MaxUDPBlockSize+1)
	for {
		n, from, err := s.udp.readFrom(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) || s.closed() && s.udpTest.Load() == nil {
				return
			}
			s.sleep(time.Millisecond) // an ICMP error of an earlier datagram, or the like
			continue
		}
		if t := s.udpTest.Load(); t != nil {
			t.datagram(buf[:n], from)
		}
	}
}

// banner is what upstream prints before each test, which a server that was told to stop has none of.
func (s *Server) banner() {
	if s.o.Output == nil || s.o.JSON || s.closed() {
		return
	}
	s.mu.Lock()
	n, port := s.tests, 0
	if s.listener != nil {
		_, port = hostPort(s.listener.Addr())
	}
	s.mu.Unlock()
	fmt.Fprintf(s.o.Output, "%sServer listening on %d (test #%d)\n%s", ruler, port, n, ruler)
}

// peerAddr is the IP address at the other end of a connection; invalid if it has none.
func peerAddr(c net.Conn) netip.Addr {
	ap, _ := addrPort(c.RemoteAddr())
	return sourceKey(ap).Addr()
}
