package iperf3

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// session is one test on the server, from complete parameters to the end of its control connection. Everything in it is
// new for each test.
type session struct {
	s      *Server
	ctl    *control
	cookie cookie
	p      Params
	peer   netip.Addr // the client's address
	run    *run
	report *Report
	print  *printer
	over   chan struct{} // closed when the slot is free again

	finishing atomic.Bool // nothing is left to do that takes time
	counted   bool        // the final figures are taken

	mu      sync.Mutex
	opening bool        // streams may come
	offers  []candidate // TCP streams so far
	byAddr  map[netip.AddrPort]*stream
	udp     []*stream     // UDP streams in order of arrival
	ready   chan struct{} // closed when all are there
}

// candidate is a connection with the right cookie.
type candidate struct {
	conn net.Conn
	seq  uint64 // order of arrival
}

func newSession(s *Server, ctl *control, c cookie, p Params, mss int) *session {
	t := &session{
		s: s, ctl: ctl, cookie: c, p: p, peer: peerAddr(ctl.conn), over: make(chan struct{}),
		ready: make(chan struct{}), opening: true, byAddr: make(map[netip.AddrPort]*stream),
	}
	t.report = &Report{
		Server: true, Params: p, Cookie: c.String(), Time: time.Now(), Local: ctl.conn.LocalAddr(),
		Remote: ctl.conn.RemoteAddr(), ControlMSS: mss,
	}
	t.print = &printer{server: true, p: &t.p}
	if !s.o.JSON {
		t.print.w = s.o.Output
		if p.GetServerOutput {
			t.print.keep = new(strings.Builder)
		}
	}
	t.run = newRun(s.o.Clock, s.o.Sockets, p, true)
	t.run.every, t.run.report, t.run.printer, t.run.udp = s.o.Interval, t.report, t.print, s.udp
	return t
}

// offer gives the test a connection; false if it is not one of its streams. The server's lock is held.
func (t *session) offer(c cookie, conn net.Conn, seq uint64) bool {
	if c != t.cookie || t.p.UDP {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.opening {
		return false
	}
	t.offers = append(t.offers, candidate{conn, seq})
	if len(t.offers) == t.p.streams() {
		t.opening = false
		close(t.ready)
	}
	return true
}

// datagram takes a datagram of any origin. The socket's reader calls it.
func (t *session) datagram(b []byte, from netip.AddrPort) {
	key := sourceKey(from)
	t.mu.Lock()
	st, known := t.byAddr[key]
	if isUDPConnect(b) && key.Addr() == t.peer {
		switch {
		case known: // the answer was lost
		case !t.opening:
			t.mu.Unlock()
			return
		default:
			st = &stream{peer: from, local: t.udpLocal(), remote: net.UDPAddrFromAddrPort(from)}
			t.byAddr[key] = st
			t.udp = append(t.udp, st)
		}
		full := t.opening && len(t.udp) == t.p.streams()
		if full {
			t.opening = false
		}
		t.mu.Unlock()
		// The answer goes first: data must not overtake it.
		t.s.udp.writeTo([]byte(udpReply), from)
		if full {
			close(t.ready)
		}
		return
	}
	receives := known && !st.sending
	t.mu.Unlock()
	if receives {
		t.run.datagram(st, b)
	}
}

// udpLocal is this side's address of UDP streams. The socket itself may be bound to any address.
func (t *session) udpLocal() net.Addr {
	control, ok := addrPort(t.ctl.conn.LocalAddr())
	socket, ok2 := addrPort(t.s.udpC.LocalAddr())
	if !ok || !ok2 || !socket.Addr().IsUnspecified() {
		return t.s.udpC.LocalAddr()
	}
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(control.Addr(), socket.Port()))
}

// conduct runs the test and closes the control connection.
func (t *session) conduct() {
	defer t.s.endSession(t)
	err := t.phases()
	t.report.Err = err
	t.finishing.Store(true)
	if err != nil {
		t.s.o.Logger.Info("test failed", "peer", t.ctl.conn.RemoteAddr(), "err", err)
		t.run.freeze()
		if t.lastWord(err) {
			// Before its streams are closed under it, or the client reports that in place of the reason.
			lingerClose(t.ctl.conn, t.s.o.Clock, t.s.o.Timeouts.Linger)
		} else {
			t.ctl.conn.Close()
		}
	}
	t.discard()
	t.publish()
	last := t.report.Running && t.s.o.OneOff
	if last {
		defer t.s.Close()
	} else {
		// The streams are closed, at most a good-bye is missing: the next client may start.
		t.s.release(t)
	}
	if err == nil {
		t.goodbye()
		t.ctl.conn.Close() // at once: a client of 3.21 waits up to 10 s for it
	}
}

// lastWord tells the client why the test ends; false if that is the client's own doing.
func (t *session) lastWord(err error) bool {
	switch {
	case errors.Is(err, ErrControlClosed), errors.Is(err, ErrClientStopped), errors.Is(err, net.ErrClosed):
		return false
	case errors.Is(err, errStopped):
		t.report.Err = ErrTerminated
		t.ctl.resume()
		t.ctl.within(t.s.o.Timeouts.Linger, "last word", func() error { return t.ctl.writeStates(ServerTerminate) })
	default:
		code := codeOf(err, CodeControlClosed)
		t.ctl.within(t.s.o.Timeouts.Linger, "last word", func() error { return t.ctl.writeServerError(code) })
	}
	return true
}

// discard stops and closes whatever streams there are. It is harmless after a complete test.
func (t *session) discard() {
	t.mu.Lock()
	t.opening = false
	offers := t.offers
	t.offers = nil
	t.mu.Unlock()
	for _, c := range offers {
		c.conn.Close()
	}
	t.run.freeze()
	t.run.halt(everyStream)
	if t.report.Running && !t.counted {
		t.run.finish()
		t.print.final(t.report)
	}
	t.run.closeStreams()
}

// publish prints and reports the test.
func (t *session) publish() {
	if t.s.o.OnReport != nil {
		t.s.o.OnReport(t.report)
	}
	out := t.s.o.Output
	if out == nil {
		return
	}
	if t.s.o.JSON {
		if b, err := t.report.JSON(); err == nil {
			out.Write(b)
		}
		return
	}
	if t.report.Err != nil {
		t.print.printf("iperf: error - %v\n", t.report.Err)
	}
	if !t.s.o.OneOff || !t.report.Running {
		t.s.banner()
	}
}

// phases goes through the protocol from CREATE_STREAMS to IPERF_DONE.
func (t *session) phases() error {
	host, port := hostPort(t.ctl.conn.RemoteAddr())
	t.print.printf("Accepted connection from %s, port %d\n", host, port)
	if t.s.udpC != nil {
		if t.p.UDP {
			t.s.udpTest.Store(t)
		}
		window := t.p.Window
		if window == 0 {
			window = defaultUDPBuffer
		}
		// Always, so that nothing of an earlier test stays in force.
		o := SocketOptions{Window: window, TOS: t.p.TOS, DontFragment: t.p.DontFragment}
		if err := t.s.o.Sockets.Configure(t.s.udpC, o); err != nil && t.p.UDP {
			t.s.o.Logger.Warn("UDP socket", "err", err)
		}
	}
	err := t.ctl.within(t.s.o.Timeouts.Handshake, "CREATE_STREAMS", func() error {
		return t.ctl.writeStates(CreateStreams)
	})
	if err != nil {
		return err
	}
	states := t.readNext()
	if err := t.collect(states); err != nil {
		return err
	}
	t.run.begin()
	err = t.ctl.within(t.s.o.Timeouts.Handshake, "TEST_START", func() error {
		return t.ctl.writeStates(TestStart, TestRunning)
	})
	if err != nil {
		return err
	}
	t.report.Running = true
	t.run.flow()
	if err := t.measure(states); err != nil {
		return err
	}
	t.end()
	return t.exchange()
}

// event is a state from the client, or the end of its connection.
type event struct {
	state State
	err   error
}

// readNext reads one state in a goroutine of its own. After it the connection can be read directly.
func (t *session) readNext() <-chan event {
	ch := make(chan event, 1)
	t.s.wg.Go(func() {
		st, err := t.ctl.readState()
		ch <- event{st, err}
	})
	return ch
}

// failure turns what the client sent at a moment when it should not into an error.
func (t *session) failure(e event) error {
	switch {
	case t.s.closed():
		return errStopped
	case e.err != nil:
		return e.err
	case e.state == ClientTerminate, e.state == IperfDone:
		return ErrClientStopped
	}
	return fail(CodeMessage, "%v", e.state)
}

// collect waits for the streams and readies them.
func (t *session) collect(states <-chan event) error {
	limit := newAlarm(t.s.o.Clock)
	defer limit.Stop()
	due := t.s.o.Clock.Now().Add(t.s.o.Timeouts.Streams)
	limit.Set(t.s.o.Timeouts.Streams)
wait:
	for {
		select {
		case <-t.ready:
			break wait
		case <-t.s.stop:
			return errStopped
		case e := <-states:
			return t.failure(e)
		case <-limit.C:
			if left := due.Sub(t.s.o.Clock.Now()); left > 0 {
				limit.Set(left)
				continue
			}
			return fail(CodeStreamConnection, "not all of %d streams came within %v", t.p.streams(), t.s.o.Timeouts.Streams)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Nothing on the wire numbers the streams, and with --bidir the first half sends: the order of arrival decides.
	slices.SortFunc(t.offers, func(a, b candidate) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	o := SocketOptions{
		NoDelay: t.p.NoDelay, Window: t.p.Window, TOS: t.p.TOS, Congestion: congestionName(t.p.Congestion),
	}
	for _, c := range t.offers {
		if err := t.s.o.Sockets.Configure(c.conn, o); err != nil {
			t.s.o.Logger.Warn("data stream", "err", err)
		}
		t.run.addStream(&stream{conn: c.conn, local: c.conn.LocalAddr(), remote: c.conn.RemoteAddr()})
	}
	t.offers = nil
	for _, st := range t.udp {
		t.run.addStream(st)
	}
	for _, st := range t.run.streams {
		c := Connection{ID: st.id, Local: st.local, Remote: st.remote}
		t.report.Connected = append(t.report.Connected, c)
		t.print.connected(c)
	}
	return nil
}

// measure lets the data flow until the client sends TEST_END. The client alone decides when that is; the server's own
// limits only catch clients that have gone astray.
func (t *session) measure(states <-chan event) error {
	clock, r := t.s.o.Clock, t.run
	wake := newAlarm(clock)
	defer wake.Stop()
	var overall time.Time
	if t.p.Time > 0 {
		overall = r.zero.Add(time.Duration(t.p.Omit+t.p.Time)*time.Second + t.s.o.Timeouts.Grace)
	}
	omitEnd := r.zero.Add(time.Duration(t.p.Omit) * time.Second)
	idle := t.idleLimit()
	moved, idleAt := int64(0), r.zero.Add(idle)
	for {
		now := clock.Now()
		if r.omitting && !now.Before(omitEnd) {
			r.endOmit()
		}
		if !r.nextAt.IsZero() && !now.Before(r.nextAt) {
			r.endInterval()
		}
		if !overall.IsZero() && !now.Before(overall) {
			return fail(CodeDurationExpired, "after %v", now.Sub(r.zero))
		}
		if !now.Before(idleAt) {
			m := r.moved()
			if m == moved {
				return fail(CodeNoData, "no data for %v", idle)
			}
			// Looked at so seldom, a standstill may last up to twice the limit.
			moved, idleAt = m, now.Add(idle)
		}
		next := idleAt
		for _, at := range []time.Time{r.nextAt, overall} {
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if r.omitting && omitEnd.Before(next) {
			next = omitEnd
		}
		wake.Set(next.Sub(now))
		select {
		case e := <-states:
			if e.err == nil && e.state == TestEnd {
				return nil
			}
			return t.failure(e)
		case <-t.s.stop:
			return errStopped
		case <-wake.C:
		}
	}
}

// idleLimit is how long a test may move no data. A slow pace and large blocks leave longer gaps by themselves.
func (t *session) idleLimit() time.Duration {
	idle := t.s.o.Timeouts.Idle
	if rate := t.p.rate(); rate > 0 {
		idle = max(idle, seconds(4*8*float64(t.p.Length)*float64(t.p.Burst)/rate))
	}
	return idle
}

// end takes the final figures and closes the streams.
func (t *session) end() {
	t.run.freeze()
	t.run.drain = true
	t.run.halt(everyStream)
	t.run.finish()
	t.counted = true
	t.run.closeStreams()
	t.print.final(t.report)
}

// exchange swaps results: the client's first.
func (t *session) exchange() error {
	var text []byte
	err := t.ctl.within(t.s.o.Timeouts.Results, "results", func() error {
		if err := t.ctl.writeStates(ExchangeResults); err != nil {
			return err
		}
		var err error
		text, err = readMessage(t.ctl.conn, maxResults)
		return err
	})
	if err != nil {
		if errors.Is(err, ErrTimeout) {
			return fail(CodeReceiveResults, "%v", err)
		}
		return err
	}
	peer, err := decodeResults(text)
	if err != nil {
		return err
	}
	t.run.merge(peer)
	mine := t.run.results()
	if t.p.GetServerOutput {
		if err := t.attachOutput(mine); err != nil {
			return err
		}
	}
	b, err := mine.encode()
	if err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	t.finishing.Store(true)
	return t.ctl.within(t.s.o.Timeouts.Results, "results", func() error {
		if err := writeMessage(t.ctl.conn, b); err != nil {
			return err
		}
		return t.ctl.writeStates(DisplayResults)
	})
}

// attachOutput adds what the server has to say about the test.
func (t *session) attachOutput(to *results) error {
	if !t.s.o.JSON {
		if t.print.keep != nil {
			to.ServerText = t.print.keep.String()
		}
		return nil
	}
	d := t.report.document()
	b, err := json.Marshal(d)
	if err == nil && len(b) > maxServerText {
		d.Intervals = []jsonInterval{}
		b, err = json.Marshal(d)
	}
	to.ServerJSON = b
	return err
}

// goodbye waits for IPERF_DONE, or for the client to close. Closing sooner makes the write of some clients fail. The
// client has its results: how it leaves is its own affair.
func (t *session) goodbye() {
	t.ctl.within(t.s.o.Timeouts.Done, "IPERF_DONE", func() error {
		_, err := t.ctl.readState()
		return err
	})
}
