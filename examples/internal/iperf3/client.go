package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
)

// DialFunc opens a connection to the server: network is "tcp" or "udp". The options that must be set before connecting
// (MSS, buffers) are its business; the rest is applied with [Sockets.Configure] afterwards.
type DialFunc func(ctx context.Context, network string, o SocketOptions) (net.Conn, error)

// ClientOptions is one test as the client wants it.
type ClientOptions struct {
	Params Params

	Dial   DialFunc // required
	Target string   // name of the server in reports; "": its address

	Clock   Clock   // nil: the machine's
	Sockets Sockets // nil: those of the host

	// Interval is the length of intervals in reports; 0: 1 s; negative: none.
	Interval   time.Duration
	OnInterval func(Interval) // called at the end of each
	Output     io.Writer      // gets text in upstream's style; nil: nothing

	// Timeout bounds each step of the protocol other than the test itself; 0: 30 s.
	Timeout time.Duration
	// Idle ends a test without a set time that moves no data; 0: 120 s.
	Idle time.Duration
}

// Run does one test. The report is there also when the test fails half-way; its Err is then the error returned. When ctx
// is cancelled the server is told so.
func Run(ctx context.Context, o ClientOptions) (*Report, error) {
	if o.Dial == nil {
		return nil, fmt.Errorf("iperf3: client: %w: Dial is missing", ErrOptions)
	}
	if o.Clock == nil {
		o.Clock = SystemClock()
	}
	if o.Sockets == nil {
		o.Sockets = KernelSockets()
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Idle == 0 {
		o.Idle = 120 * time.Second
	}
	if o.Params.Bidirectional && o.Params.Reverse {
		return nil, fmt.Errorf("iperf3: client: %w: Reverse and Bidirectional exclude each other", ErrOptions)
	}
	if err := o.Params.Validate(); err != nil {
		return nil, fmt.Errorf("iperf3: client: %w: %w", ErrOptions, err)
	}
	c := &client{o: o, p: o.Params, cookie: newCookie()}
	c.p.ClientVersion = version
	c.report = &Report{Params: c.p, Target: o.Target, Cookie: c.cookie.String(), Time: time.Now()}
	err := c.conduct(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, errStopped) {
		err = ErrClientStopped
	}
	c.report.Err = err
	return c.report, err
}

type client struct {
	o      ClientOptions
	p      Params
	cookie cookie
	ctl    *control
	report *Report
	print  *printer
	run    *run
}

func (c *client) conduct(ctx context.Context) error {
	conn, err := c.dial(ctx, "tcp", SocketOptions{})
	if err != nil {
		return fmt.Errorf("unable to connect to server: %w", err)
	}
	defer conn.Close()
	c.ctl = &control{conn: conn, clock: c.o.Clock}
	defer context.AfterFunc(ctx, c.ctl.interrupt)()
	// The connection works without these, if less well.
	c.o.Sockets.Configure(conn, SocketOptions{NoDelay: true, KeepAlive: controlKeepAlive})
	info, _ := c.o.Sockets.Info(conn)
	c.p.setDefaults(info.MSS)
	c.report.Params, c.report.ControlMSS = c.p, info.MSS
	c.report.Local, c.report.Remote = conn.LocalAddr(), conn.RemoteAddr()
	c.print = &printer{w: c.o.Output, p: &c.p}
	c.run = newRun(c.o.Clock, c.o.Sockets, c.p, false)
	c.run.every, c.run.report, c.run.printer, c.run.onEvery = c.o.Interval, c.report, c.print, c.o.OnInterval
	host, port := hostPort(conn.RemoteAddr())
	if c.o.Target != "" {
		host = c.o.Target
	}
	c.print.printf("Connecting to host %s, port %d\n", host, port)
	if c.p.Reverse {
		c.print.printf("Reverse mode, remote host %s is sending\n", host)
	}
	err = c.phases(ctx)
	c.run.freeze()
	c.run.halt(everyStream)
	if err != nil {
		if c.report.Running && len(c.report.Streams) == 0 {
			c.run.finish()
		}
		c.print.final(c.report)
		c.farewell(ctx)
	}
	c.run.closeStreams()
	return err
}

// farewell tells the server that the client gives up.
func (c *client) farewell(ctx context.Context) {
	st := IperfDone
	if ctx.Err() != nil {
		st = ClientTerminate
	}
	c.ctl.resume()
	c.ctl.within(time.Second, "farewell", func() error { return c.ctl.writeStates(st) })
}

// dial opens a connection within the timeout.
func (c *client) dial(ctx context.Context, network string, o SocketOptions) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := c.o.Clock.AfterFunc(c.o.Timeout, func() { cancel(fmt.Errorf("%w after %v", ErrTimeout, c.o.Timeout)) })
	defer t.Stop()
	conn, err := c.o.Dial(ctx, network, o)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return conn, err
}

// expect waits for a state; the server's refusals become errors.
func (c *client) expect(want State) error {
	var st State
	err := c.ctl.within(c.o.Timeout, want.String(), func() (err error) {
		st, err = c.ctl.readState()
		return err
	})
	return c.check(event{st, err}, want)
}

// check compares what came with what should have come.
func (c *client) check(e event, want State) error {
	switch {
	case c.ctl.interrupted.Load():
		return errStopped
	case e.err != nil:
		return e.err
	case e.state == want:
		return nil
	case e.state == AccessDenied:
		return ErrBusy
	case e.state == ServerTerminate:
		return ErrTerminated
	case e.state == ServerErrorByte:
		var code Code
		var errno int32
		err := c.ctl.within(c.o.Timeout, "SERVER_ERROR", func() (err error) {
			code, errno, err = c.ctl.readServerError()
			return err
		})
		if err != nil {
			return err
		}
		detail := ""
		if errno != 0 {
			detail = fmt.Sprintf("errno %d at the server", errno)
		}
		return fmt.Errorf("server: %w", &ServerError{Code: code, Errno: syscall.Errno(errno), Detail: detail})
	}
	return fail(CodeMessage, "%v in place of %v", e.state, want)
}

func (c *client) phases(ctx context.Context) error {
	err := c.ctl.within(c.o.Timeout, "cookie", func() error {
		_, err := c.ctl.conn.Write(c.cookie[:])
		return err
	})
	if err != nil {
		return err
	}
	if err := c.expect(ParamExchange); err != nil {
		return err
	}
	text, err := c.p.encode()
	if err != nil {
		return fmt.Errorf("parameters as JSON: %w", err)
	}
	err = c.ctl.within(c.o.Timeout, "parameters", func() error { return writeMessage(c.ctl.conn, text) })
	if err != nil {
		return err
	}
	if err := c.expect(CreateStreams); err != nil {
		return err
	}
	states := c.readNext()
	if err := c.openStreams(ctx, states); err != nil {
		return err
	}
	if err := c.await(ctx, states, TestStart); err != nil {
		return err
	}
	c.run.begin()
	if err := c.await(ctx, c.readNext(), TestRunning); err != nil {
		return err
	}
	c.report.Running = true
	c.run.flow()
	states = c.readNext()
	if err := c.measure(ctx, states); err != nil {
		return err
	}
	c.run.freeze()
	c.run.halt(func(s *stream) bool { return s.sending })
	c.run.finish()
	err = c.ctl.within(c.o.Timeout, "TEST_END", func() error { return c.ctl.writeStates(TestEnd) })
	if err != nil {
		return err
	}
	// Receivers go on reading until the server has noticed: older ones cannot while their writes are blocked.
	if err := c.await(ctx, states, ExchangeResults); err != nil {
		return err
	}
	return c.exchange()
}

// readNext reads one state in a goroutine of its own, which ends with the connection at the latest.
func (c *client) readNext() <-chan event {
	ch := make(chan event, 1)
	go func() {
		st, err := c.ctl.readState()
		ch <- event{st, err}
	}()
	return ch
}

// await waits for a state that is being read already.
func (c *client) await(ctx context.Context, states <-chan event, want State) error {
	limit := newAlarm(c.o.Clock)
	defer limit.Stop()
	limit.Set(c.o.Timeout)
	select {
	case e := <-states:
		return c.check(e, want)
	case <-limit.C:
		return fmt.Errorf("%v: %w after %v", want, ErrTimeout, c.o.Timeout)
	case <-ctx.Done():
		return errStopped
	}
}

// openStreams opens the data streams one after the other: the server numbers them by arrival.
func (c *client) openStreams(ctx context.Context, states <-chan event) error {
	p := &c.p
	o := SocketOptions{
		NoDelay: p.NoDelay, Window: p.Window, TOS: p.TOS, MSS: p.MSS, Congestion: p.Congestion,
		DontFragment: p.DontFragment,
	}
	network := "tcp"
	if p.UDP {
		network = "udp"
	}
	for range p.streams() {
		conn, err := c.dial(ctx, network, o)
		if err != nil {
			// The server may have said why.
			select {
			case e := <-states:
				if said := c.check(e, TestStart); said != nil {
					return said
				}
			default:
			}
			return fmt.Errorf("unable to connect stream: %w", err)
		}
		s := &stream{conn: conn, local: conn.LocalAddr(), remote: conn.RemoteAddr()}
		c.run.addStream(s)
		if err := c.o.Sockets.Configure(conn, o); err != nil {
			return fmt.Errorf("stream %d: %w", s.id, err)
		}
		if p.UDP {
			err = c.greet(ctx, conn, states)
		} else {
			within := &control{conn: conn, clock: c.o.Clock}
			err = within.within(c.o.Timeout, "stream cookie", func() error {
				_, err := conn.Write(c.cookie[:])
				return err
			})
		}
		if err != nil {
			return fmt.Errorf("stream %d: %w", s.id, err)
		}
		link := Connection{ID: s.id, Local: s.local, Remote: s.remote}
		c.report.Connected = append(c.report.Connected, link)
		c.print.connected(link)
	}
	return nil
}

// greetInterval is how long a UDP stream waits for its answer before it asks again. Upstream asks once, and a lost
// datagram costs it the test.
const greetInterval = 2 * time.Second

// greet opens a UDP stream.
func (c *client) greet(ctx context.Context, conn net.Conn, states <-chan event) error {
	var b [64]byte
	due := c.o.Clock.Now().Add(c.o.Timeout)
	stopWatch := context.AfterFunc(ctx, func() { conn.SetReadDeadline(past) })
	defer stopWatch()
	for c.o.Clock.Now().Before(due) {
		if _, err := conn.Write([]byte(udpConnect)); err != nil && errors.Is(err, net.ErrClosed) {
			return err
		}
		conn.SetReadDeadline(time.Time{})
		t := c.o.Clock.AfterFunc(greetInterval, func() { conn.SetReadDeadline(past) })
		for {
			if ctx.Err() != nil {
				t.Stop()
				return errStopped
			}
			n, err := conn.Read(b[:])
			if err == nil && isUDPReply(b[:n]) {
				t.Stop()
				conn.SetReadDeadline(time.Time{})
				return nil
			}
			if err != nil { // its time is over, or an ICMP error: ask again when it is
				break
			}
		}
		t.Stop()
		select {
		case e := <-states:
			if err := c.check(e, TestStart); err != nil {
				return err
			}
			return errors.New("the server starts the test without an answer to this stream")
		default:
		}
		a := newAlarm(c.o.Clock)
		a.Set(greetInterval / 20)
		select {
		case <-a.C:
		case <-ctx.Done():
		}
		a.Stop()
	}
	return fmt.Errorf("unable to read from stream socket: %w after %v", ErrTimeout, c.o.Timeout)
}

// measure lets the data flow until time, bytes or blocks are reached.
func (c *client) measure(ctx context.Context, states <-chan event) error {
	r := c.run
	wake := newAlarm(c.o.Clock)
	defer wake.Stop()
	omitEnd := r.zero.Add(time.Duration(c.p.Omit) * time.Second)
	moved, idleAt := int64(0), r.zero.Add(c.o.Idle)
	for {
		now := c.o.Clock.Now()
		if r.omitting && !now.Before(omitEnd) {
			r.endOmit()
		}
		var end time.Time
		if c.p.Time > 0 {
			end = omitEnd.Add(time.Duration(c.p.Time) * time.Second)
			if !now.Before(end) {
				return nil
			}
		}
		if !r.nextAt.IsZero() && !now.Before(r.nextAt) {
			r.endInterval()
		}
		if !now.Before(idleAt) {
			m := r.moved()
			if m == moved && c.p.Time == 0 && c.p.rate() == 0 {
				return fail(CodeNoData, "no data for %v", c.o.Idle)
			}
			moved, idleAt = m, now.Add(c.o.Idle)
		}
		next := idleAt
		for _, at := range []time.Time{r.nextAt, end} {
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
			err := c.check(e, TestRunning)
			if err == nil {
				err = fail(CodeMessage, "%v twice", e.state)
			}
			return err
		case <-r.limitReached:
			return nil
		case <-ctx.Done():
			return errStopped
		case <-wake.C:
		}
	}
}

// exchange swaps results and says good-bye.
func (c *client) exchange() error {
	mine, err := c.run.results().encode()
	if err != nil {
		return fmt.Errorf("results as JSON: %w", err)
	}
	var text []byte
	err = c.ctl.within(c.o.Timeout, "results", func() error {
		if err := writeMessage(c.ctl.conn, mine); err != nil {
			return err
		}
		var err error
		text, err = readMessage(c.ctl.conn, maxResults)
		return err
	})
	if err != nil {
		return err
	}
	peer, err := decodeResults(text)
	if err != nil {
		return err
	}
	err = peer.checkIDs(func(id int) bool {
		for _, s := range c.run.streams {
			if s.id == id {
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	c.run.merge(peer)
	c.report.ServerText, c.report.ServerJSON = peer.ServerText, peer.ServerJSON
	if err := c.expect(DisplayResults); err != nil {
		return err
	}
	c.print.final(c.report)
	if peer.ServerText != "" {
		c.print.printf("\nServer output:\n%s", strings.TrimRight(peer.ServerText, "\n")+"\n")
	}
	c.print.printf("\niperf Done.\n")
	c.run.halt(everyStream)
	c.run.closeStreams()
	// A server may have closed already; the test is complete in any case.
	c.ctl.within(c.o.Timeout, "IPERF_DONE", func() error { return c.ctl.writeStates(IperfDone) })
	return nil
}
