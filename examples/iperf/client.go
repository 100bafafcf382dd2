package main

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"dwnet/examples/internal/iperf3"
	"dwnet/examples/internal/netdev"
)

// connect runs a client against a server beyond the TAP interface.
func connect(ctx context.Context, c *config, stdout, stderr io.Writer) (err error) {
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
	report, err := c.measure(ctx, d, netip.AddrPortFrom(c.host, c.port), c.params, c.text(stdout))
	if report != nil && c.json {
		text, bad := report.JSON()
		if bad != nil {
			return errors.Join(err, bad)
		}
		stdout.Write(text)
	}
	if c.stats || report != nil && !c.json {
		b.stall().print(c.say(stdout, stderr), "")
	}
	if c.stats {
		printCounters(c.say(stdout, stderr), "driver", d.Endpoint.Stats(), true)
	}
	return interruptedBy(ctx, err)
}

// measure does one test from a device.
func (c *config) measure(ctx context.Context, d *netdev.Device, to netip.AddrPort, p iperf3.Params, out io.Writer) (*iperf3.Report, error) {
	return iperf3.Run(ctx, iperf3.ClientOptions{
		Params: p, Dial: d.Dialer(to), Target: to.Addr().String(), Clock: netdev.IperfClock(d.Clock()), Sockets: d.Sockets(),
		Interval: c.interval, Output: out,
	})
}
