package netdev

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"dwnet/examples/internal/iperf3"
)

// tcpConn is a connection whose endpoint can be asked and told things.
type tcpConn struct {
	*gonet.TCPConn
	ep tcpip.Endpoint
}

// listener is a TCP listener that makes such connections. gonet's keeps the endpoint to itself.
type listener struct {
	ep     tcpip.Endpoint
	wq     *waiter.Queue
	addr   net.Addr
	once   sync.Once
	closed chan struct{}
}

// listenBacklog is how many connections may wait for Accept.
const listenBacklog = 1024

// opError is an error of the stack in the form that package net gives its errors.
func opError(op, network string, at netip.AddrPort, err tcpip.Error) error {
	var cause error = errors.New(err.String())
	if _, ok := err.(*tcpip.ErrPortInUse); ok {
		cause = fmt.Errorf("%w: %v", ErrPortInUse, err)
	}
	var a net.Addr = net.TCPAddrFromAddrPort(at)
	if network == "udp" {
		a = net.UDPAddrFromAddrPort(at)
	}
	return &net.OpError{Op: op, Net: network, Addr: a, Err: cause}
}

// ErrPortInUse is what listening on a port that is taken matches with errors.Is.
var ErrPortInUse = errors.New("address already in use")

// anyFamily is the protocol of a socket for all addresses of the device: an IPv6 socket takes both families.
const anyFamily = ipv6.ProtocolNumber

// ListenTCP listens on a port of all addresses of the device.
func (d *Device) ListenTCP(port uint16) (net.Listener, error) {
	at := netip.AddrPortFrom(d.addrs[0].Addr(), port)
	l := &listener{wq: new(waiter.Queue), closed: make(chan struct{})}
	ep, err := d.Stack.NewEndpoint(tcp.ProtocolNumber, anyFamily, l.wq)
	if err != nil {
		return nil, opError("socket", "tcp", at, err)
	}
	l.ep = ep
	// As package net does: connections of an earlier listener that wait for their end do not keep the port.
	ep.SocketOptions().SetReuseAddress(true)
	if err := ep.Bind(tcpip.FullAddress{Port: port}); err != nil {
		ep.Close()
		return nil, opError("bind", "tcp", at, err)
	}
	if err := ep.Listen(listenBacklog); err != nil {
		ep.Close()
		return nil, opError("listen", "tcp", at, err)
	}
	local, _ := ep.GetLocalAddress()
	l.addr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), local.Port))
	return l, nil
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	entry, ready := waiter.NewChannelEntry(waiter.ReadableEvents)
	l.wq.EventRegister(&entry)
	defer l.wq.EventUnregister(&entry)
	for {
		ep, wq, err := l.ep.Accept(nil)
		switch err.(type) {
		case nil:
			return tcpConn{gonet.NewTCPConn(wq, ep), ep}, nil
		case *tcpip.ErrWouldBlock:
		default:
			if l.isClosed() {
				return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
			}
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: errors.New(err.String())}
		}
		select {
		case <-ready:
		case <-l.closed:
			return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
		}
	}
}

func (l *listener) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.ep.Close()
	})
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.addr }

// udpConn is a UDP socket with the methods of net.UDPConn that do not allocate.
type udpConn struct {
	*gonet.UDPConn
	ep     tcpip.Endpoint
	addr   net.Addr
	closed atomic.Bool

	read    tcpip.SliceWriter // of the one goroutine that reads
	writers sync.Pool         // of *udpWrite
}

// udpWrite is what one call of WriteToUDPAddrPort needs on the heap.
type udpWrite struct {
	r  bytes.Reader
	to tcpip.FullAddress
}

func newUDPConn(ep tcpip.Endpoint, wq *waiter.Queue, addr net.Addr) *udpConn {
	c := &udpConn{UDPConn: gonet.NewUDPConn(wq, ep), ep: ep, addr: addr}
	c.writers.New = func() any { return new(udpWrite) }
	return c
}

// ListenUDP binds a UDP socket to a port of all addresses of the device.
func (d *Device) ListenUDP(port uint16) (net.PacketConn, error) {
	at := netip.AddrPortFrom(d.addrs[0].Addr(), port)
	wq := new(waiter.Queue)
	ep, err := d.Stack.NewEndpoint(udp.ProtocolNumber, anyFamily, wq)
	if err != nil {
		return nil, opError("socket", "udp", at, err)
	}
	if err := ep.Bind(tcpip.FullAddress{Port: port}); err != nil {
		ep.Close()
		return nil, opError("bind", "udp", at, err)
	}
	local, _ := ep.GetLocalAddress()
	// The server reports the address that its clients use; the socket has all.
	return newUDPConn(ep, wq, &net.UDPAddr{IP: net.IPv6unspecified, Port: int(local.Port)}), nil
}

// LocalAddr implements net.PacketConn and net.Conn.
func (c *udpConn) LocalAddr() net.Addr {
	if c.addr != nil {
		return c.addr
	}
	return c.UDPConn.LocalAddr()
}

// Close implements net.PacketConn and net.Conn.
func (c *udpConn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	// gonet does not wake a reader of its own accord.
	c.UDPConn.SetDeadline(past)
	return c.UDPConn.Close()
}

// closedOr makes errors after Close net.ErrClosed.
func (c *udpConn) closedOr(err error) error {
	if err != nil && c.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// ReadFrom implements net.PacketConn.
func (c *udpConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, a, err := c.UDPConn.ReadFrom(b)
	return n, a, c.closedOr(err)
}

// Read implements net.Conn.
func (c *udpConn) Read(b []byte) (int, error) {
	n, err := c.UDPConn.Read(b)
	return n, c.closedOr(err)
}

// Write implements net.Conn.
func (c *udpConn) Write(b []byte) (int, error) {
	n, err := c.UDPConn.Write(b)
	return n, c.closedOr(err)
}

// ReadFromUDPAddrPort is like net.UDPConn's. One goroutine reads at a time.
func (c *udpConn) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	c.read = b
	res, err := c.ep.Read(&c.read, tcpip.ReadOptions{NeedRemoteAddr: true})
	if err == nil {
		a, _ := netip.AddrFromSlice(res.RemoteAddr.Addr.AsSlice())
		return res.Count, netip.AddrPortFrom(a, res.RemoteAddr.Port), nil
	}
	n, a, e := c.ReadFrom(b) // waits
	if e != nil {
		return n, netip.AddrPort{}, e
	}
	return n, a.(*net.UDPAddr).AddrPort(), nil
}

// WriteToUDPAddrPort is like net.UDPConn's.
func (c *udpConn) WriteToUDPAddrPort(b []byte, to netip.AddrPort) (int, error) {
	w := c.writers.Get().(*udpWrite)
	defer c.writers.Put(w)
	w.r.Reset(b)
	w.to = tcpip.FullAddress{Addr: tcpip.AddrFromSlice(to.Addr().AsSlice()), Port: to.Port()}
	n, err := c.ep.Write(&w.r, tcpip.WriteOptions{To: &w.to})
	if err == nil {
		return int(n), nil
	}
	if _, ok := err.(*tcpip.ErrWouldBlock); !ok {
		return 0, c.closedOr(errors.New(err.String()))
	}
	m, e := c.UDPConn.WriteTo(b, &net.UDPAddr{IP: to.Addr().AsSlice(), Port: int(to.Port())}) // waits
	return m, c.closedOr(e)
}

// Dialer makes the dial function of a client whose server has the given address.
func (d *Device) Dialer(to netip.AddrPort) iperf3.DialFunc {
	return func(ctx context.Context, network string, o iperf3.SocketOptions) (net.Conn, error) {
		if network == "udp" {
			return d.dialUDP(to)
		}
		return d.dialTCP(ctx, to, o)
	}
}

// family is the protocol number and the address as the stack has them.
func family(to netip.AddrPort) (tcpip.NetworkProtocolNumber, tcpip.FullAddress) {
	a := to.Addr().Unmap()
	full := tcpip.FullAddress{Addr: tcpip.AddrFromSlice(a.AsSlice()), Port: to.Port()}
	if a.Is6() {
		return ipv6.ProtocolNumber, full
	}
	return ipv4.ProtocolNumber, full
}

func (d *Device) dialTCP(ctx context.Context, to netip.AddrPort, o iperf3.SocketOptions) (net.Conn, error) {
	proto, full := family(to)
	wq := new(waiter.Queue)
	ep, err := d.Stack.NewEndpoint(tcp.ProtocolNumber, proto, wq)
	if err != nil {
		return nil, opError("socket", "tcp", to, err)
	}
	if o.MSS > 0 {
		if err := ep.SetSockOptInt(tcpip.MaxSegOption, o.MSS); err != nil {
			ep.Close()
			return nil, opError("MSS", "tcp", to, err)
		}
	}
	setBuffers(ep, o.Window, o.Window)
	entry, ready := waiter.NewChannelEntry(waiter.WritableEvents)
	wq.EventRegister(&entry)
	defer wq.EventUnregister(&entry)
	err = ep.Connect(full)
	if _, ok := err.(*tcpip.ErrConnectStarted); ok {
		select {
		case <-ctx.Done():
			ep.Close()
			return nil, ctx.Err()
		case <-ready:
		}
		err = ep.LastError()
	}
	if err != nil {
		ep.Close()
		return nil, opError("connect", "tcp", to, err)
	}
	return tcpConn{gonet.NewTCPConn(wq, ep), ep}, nil
}

func (d *Device) dialUDP(to netip.AddrPort) (net.Conn, error) {
	proto, full := family(to)
	wq := new(waiter.Queue)
	ep, err := d.Stack.NewEndpoint(udp.ProtocolNumber, proto, wq)
	if err != nil {
		return nil, opError("socket", "udp", to, err)
	}
	if err := ep.Connect(full); err != nil {
		ep.Close()
		return nil, opError("connect", "udp", to, err)
	}
	return newUDPConn(ep, wq, nil), nil
}
