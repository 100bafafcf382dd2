package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// KernelSockets reaches the options of the host's sockets. What is not a *net.TCPConn or *net.UDPConn has no options.
func KernelSockets() Sockets { return kernelSockets{} }

type kernelSockets struct{}

// descriptor runs f on the file descriptor of a socket of the net package.
func descriptor(c any, f func(fd int) error) error {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return errors.New("not a socket")
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := rc.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func (kernelSockets) Configure(c any, o SocketOptions) error {
	var errs []error
	try := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	tcp, isTCP := c.(*net.TCPConn)
	if isTCP {
		try("TCP_NODELAY", tcp.SetNoDelay(o.NoDelay))
		if o.KeepAlive > 0 {
			try("keep-alive", tcp.SetKeepAliveConfig(net.KeepAliveConfig{
				Enable: true, Idle: o.KeepAlive, Interval: o.KeepAlive, Count: 4,
			}))
		}
	}
	try("socket", descriptor(c, func(fd int) error {
		setSocket(fd, isTCP, o, try)
		return nil
	}))
	return errors.Join(errs...)
}

// setSocket applies what both unconnected and connected sockets take.
func setSocket(fd int, isTCP bool, o SocketOptions, try func(string, error)) {
	if o.Window > 0 {
		try("SO_SNDBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, o.Window))
		try("SO_RCVBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, o.Window))
	}
	if isTCP && o.Congestion != "" {
		try("congestion control "+o.Congestion,
			unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.Congestion))
	}
	family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		try("SO_DOMAIN", err)
		return
	}
	// A socket for both families takes both options.
	if family == unix.AF_INET6 {
		try("IPV6_TCLASS", unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, o.TOS))
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, o.TOS) // fails if it is for IPv6 only
	} else {
		try("IP_TOS", unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, o.TOS))
	}
	if !isTCP {
		pmtu := unix.IP_PMTUDISC_WANT
		if o.DontFragment {
			pmtu = unix.IP_PMTUDISC_DO
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, pmtu); family == unix.AF_INET {
			try("IP_MTU_DISCOVER", err)
		}
	}
}

func (kernelSockets) Info(c net.Conn) (TCPInfo, bool) {
	if _, ok := c.(*net.TCPConn); !ok {
		return TCPInfo{}, false
	}
	var out TCPInfo
	err := descriptor(c, func(fd int) error {
		i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		if i.Snd_mss == 0 { // never so: user-mode emulation fills in the first bytes only
			return unix.ENOSYS
		}
		out = TCPInfo{
			Retransmits:      int64(i.Total_retrans),
			CongestionWindow: int64(i.Snd_cwnd) * int64(i.Snd_mss),
			SendWindow:       int64(i.Snd_wnd),
			RTT:              time.Duration(i.Rtt) * time.Microsecond,
			RTTVar:           time.Duration(i.Rttvar) * time.Microsecond,
			MSS:              int(i.Snd_mss),
			PMTU:             int(i.Pmtu),
		}
		name, _ := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		out.Congestion = strings.TrimRight(name, "\x00")
		return nil
	})
	return out, err == nil
}

func (kernelSockets) Queued(c net.Conn) (int, bool) {
	if _, ok := c.(*net.TCPConn); !ok {
		return 0, false
	}
	n := 0
	err := descriptor(c, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCINQ)
		return err
	})
	return n, err == nil
}

func (kernelSockets) Closing(c net.Conn, limit time.Duration) {
	if _, ok := c.(*net.TCPConn); ok {
		descriptor(c, func(fd int) error {
			return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
		})
	}
}

// KernelDialer makes the dial function of a client that uses the host's sockets.
func KernelDialer(address string) DialFunc {
	return func(ctx context.Context, network string, o SocketOptions) (net.Conn, error) {
		d := net.Dialer{Control: func(_, _ string, rc syscall.RawConn) error {
			return rc.Control(func(fd uintptr) {
				isTCP := network == "tcp"
				setSocket(int(fd), isTCP, o, func(string, error) {}) // told by Configure
				if isTCP && o.MSS > 0 {
					unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, o.MSS)
				}
			})
		}}
		return d.DialContext(ctx, network, address)
	}
}
