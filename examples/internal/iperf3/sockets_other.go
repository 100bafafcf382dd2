//go:build !linux

package iperf3

import (
	"context"
	"errors"
	"net"
)

// KernelSockets reaches the options of the host's sockets, as far as the net package knows them.
func KernelSockets() Sockets { return kernelSockets{} }

type kernelSockets struct{ NoSockets }

type bufferSetter interface {
	SetReadBuffer(bytes int) error
	SetWriteBuffer(bytes int) error
}

func (kernelSockets) Configure(c any, o SocketOptions) error {
	var errs []error
	if tcp, ok := c.(*net.TCPConn); ok {
		errs = append(errs, tcp.SetNoDelay(o.NoDelay))
		if o.KeepAlive > 0 {
			errs = append(errs, tcp.SetKeepAlivePeriod(o.KeepAlive))
		}
	}
	if b, ok := c.(bufferSetter); ok && o.Window > 0 {
		errs = append(errs, b.SetReadBuffer(o.Window), b.SetWriteBuffer(o.Window))
	}
	if o.TOS != 0 || o.Congestion != "" || o.MSS != 0 {
		errs = append(errs, errors.New("TOS, congestion control and MSS cannot be set on this system"))
	}
	return errors.Join(errs...)
}

// KernelDialer makes the dial function of a client that uses the host's sockets.
func KernelDialer(address string) DialFunc {
	return func(ctx context.Context, network string, _ SocketOptions) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}
}
