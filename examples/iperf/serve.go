package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"dwnet/examples/internal/iperf3"
	"dwnet/examples/internal/netdev"
)

// serve runs a server until ctx ends or, with -one-off, one test is over.
func serve(ctx context.Context, c *config, stdout, stderr io.Writer) (err error) {
	b, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	d, err := c.device(b.Boards[0], c.addresses()...)
	if err != nil {
		return err
	}
	defer d.Close()
	s, l, pc, err := c.listen(d, stdout)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if ctx.Err() != nil {
		s.Close() // before Serve announces it
	}
	for _, p := range c.addresses() {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(c.say(stdout, stderr), "listening on %v\n", netip.AddrPortFrom(p.Addr(), c.port))
	}
	err = s.Serve(l, pc)
	if c.stats {
		b.stall().print(c.say(stdout, stderr), "")
		printCounters(c.say(stdout, stderr), "driver", d.Endpoint.Stats(), true)
	}
	return err
}

// listen makes a server and its sockets on a device.
func (c *config) listen(d *netdev.Device, out io.Writer) (*iperf3.Server, net.Listener, net.PacketConn, error) {
	s, err := iperf3.NewServer(iperf3.ServerOptions{
		Clock: netdev.IperfClock(d.Clock()), Sockets: d.Sockets(), OneOff: c.oneOff, JSON: c.json, Output: out, Interval: c.interval,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	l, err := d.ListenTCP(c.port)
	if err != nil {
		return nil, nil, nil, err
	}
	pc, err := d.ListenUDP(c.port)
	if err != nil {
		l.Close()
		return nil, nil, nil, err
	}
	return s, l, pc, nil
}
