package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"dwnet/examples/internal/iperf3"
	"dwnet/examples/internal/netdev"
)

// maxRate bounds -b in bit/s, far above any wire.
const maxRate = 1e12

// amounts checks the numbers with a unit.
func (c *config) amounts(v *values) error {
	p := &c.params
	shortest, longest := int64(1), int64(iperf3.MaxBlockSize)
	if p.UDP {
		shortest, longest = iperf3.MinUDPBlockSize, iperf3.MaxUDPBlockSize
	}
	for _, u := range []struct {
		name, text string
		low, high  int64
		set        func(int64)
	}{
		{"-n", v.bytes, 0, math.MaxInt64, func(n int64) { p.Bytes = n }},
		{"-l", v.length, shortest, longest, func(n int64) { p.Length = int(n) }},
		{"-w", v.window, 0, netdev.MaxBuffer, func(n int64) { p.Window = int(n) }},
	} {
		if u.text == "" {
			continue
		}
		n, err := iperf3.ParseSize(u.text)
		if errors.Is(err, iperf3.ErrRange) || err == nil && (n < u.low || n > u.high) {
			return fmt.Errorf("%s: %q is out of range, want %d to %d bytes", u.name, u.text, u.low, u.high)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", u.name, err)
		}
		u.set(n)
	}
	if v.rate == "" {
		if p.UDP {
			p.Bandwidth = defaultUDPRate
		}
		return nil
	}
	rate, err := iperf3.ParseRate(v.rate)
	if errors.Is(err, iperf3.ErrRange) || rate > maxRate {
		return fmt.Errorf("-b: %q is out of range, want 0 (no limit) to 1T bit/s", v.rate)
	}
	if err != nil {
		return fmt.Errorf("-b: %w", err)
	}
	p.Bandwidth = rate
	return nil
}

// counts checks the plain numbers and names.
func (c *config) counts(v *values, given map[string]bool) error {
	p := &c.params
	for _, u := range []struct {
		name         string
		n, low, high int
		unit         string
	}{
		{"t", v.seconds, 0, iperf3.MaxTime, " seconds"}, {"O", p.Omit, 0, iperf3.MaxOmit, " seconds"},
		{"P", p.Parallel, 1, iperf3.MaxStreams, " streams"},
	} {
		if given[u.name] && (u.n < u.low || u.n > u.high) {
			return fmt.Errorf("-%s: %d is out of range, want %d to %d%s", u.name, u.n, u.low, u.high, u.unit)
		}
	}
	switch {
	case given["t"]:
		p.Time = v.seconds
	case p.Bytes > 0:
	case c.mode == "demo":
		p.Time = defaultDemoTime
	default:
		p.Time = defaultClientTime
	}
	if known := netdev.CongestionControls(); p.Congestion != "" && !slices.Contains(known, p.Congestion) {
		return fmt.Errorf("-C: %q is not known, want one of %s", p.Congestion, strings.Join(known, ", "))
	}
	return nil
}

// tapName checks the name of an interface by the rules of Linux: IFNAMSIZ less its zero (include/uapi/linux/if.h), and
// dev_valid_name of net/core/dev.c, with "%" that would ask for a number.
func tapName(s string) error {
	switch {
	case len(s) > 15:
		return fmt.Errorf("-tap: %q is longer than 15 bytes", s)
	case s == "." || s == ".." || strings.ContainsAny(s, "/:% \t\n\v\f\r\x00"):
		return fmt.Errorf("-tap: %q is not the name of an interface", s)
	}
	return nil
}

// prefix parses an address of one family with prefix length, which a host can have.
func prefix(s string, six bool) (netip.Prefix, error) {
	family, bits := "IPv4", 32
	if six {
		family, bits = "IPv6", 128
	}
	text, _, slash := strings.Cut(s, "/")
	a, err := netip.ParseAddr(text)
	if err != nil || !slash || a.Is6() != six || a.Is4In6() || a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is not an %s address with prefix length", s, family)
	}
	p, err := netip.ParsePrefix(s)
	if err != nil || p.Bits() == 0 {
		return p, fmt.Errorf("%q: the prefix length is out of range, want 1 to %d", s, bits)
	}
	switch {
	case a.IsUnspecified() || a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return p, fmt.Errorf("%q is not a unicast address", s)
	case a.IsLoopback():
		return p, fmt.Errorf("%q is a loopback address", s)
	case bits-p.Bits() < 2: // a link between two (RFC 3021, RFC 6164) or a host: all addresses are usable
	case a == p.Masked().Addr():
		return p, fmt.Errorf("%q is the address of the network, not of a host in it", s)
	case !six && !p.Contains(a.Next()):
		return p, fmt.Errorf("%q is the broadcast address of the network, not of a host in it", s)
	}
	return p, nil
}
