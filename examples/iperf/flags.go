package main

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"dwnet/examples/internal/iperf3"
	"dwnet/link"
)

// config is the command line.
type config struct {
	mode  string // demo, server or client
	board string
	tap   string
	host  netip.Addr // of a client: the server

	addr, addr6 netip.Prefix
	port        uint16
	speed       int
	gsoMax      int // as link.Options.GSOMaxSize
	loss        float64
	damage      float64 // shares, not percent

	params   iperf3.Params
	interval time.Duration

	oneOff, json, stats bool
	pcap                string
}

// defaults of the flags that say something else than "nothing".
const (
	defaultPort       = 5201
	defaultAddr       = "192.168.77.2/24"
	defaultDemoTime   = 4  // seconds, each way
	defaultClientTime = 10 // as iperf3
	defaultUDPRate    = 1 << 20
)

// Bounds of -gso-max at the MTU of 1500 bytes that all boards here have, from link.Options: two segments of gVisor's 1420
// bytes and the 161 that it takes off for headers, and the largest IP packet. Package link checks them again.
const (
	minGSO = 161 + 2*1420
	maxGSO = 65536
)

// values are the flags as typed.
type values struct {
	addr, addr6, host, rate, bytes, length, window string
	port, gsoMax, seconds                          int
	loss, damage, interval                         float64
}

func flags(c *config, v *values) *flag.FlagSet {
	f := flag.NewFlagSet("iperf", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&c.board, "board", "sim", "`board` to run on: sim")
	f.StringVar(&c.tap, "tap", "", "TAP `interface` at the other end of the simulated board's cable (server, client)")
	f.StringVar(&v.addr, "addr", defaultAddr, "`prefix` with the address of the stack (server, client)")
	f.StringVar(&v.addr6, "addr6", "", "`prefix` with an IPv6 address of the stack (server, client)")
	f.StringVar(&v.host, "c", "", "`address` of the server (client); may also stand behind the flags")
	f.IntVar(&v.port, "port", defaultPort, "`port` of the server")
	f.IntVar(&c.speed, "speed", 1000, "speed of the cable in `Mbit/s`: 1000, 100, 10, or 0 for one without wire time")
	f.IntVar(&v.gsoMax, "gso-max", -1, "largest TCP packet handed to the driver in `bytes`; 0: no segmentation offload; -1: automatic")
	f.Float64Var(&v.loss, "loss", 0, "`percent` of the frames that the cable loses")
	f.Float64Var(&v.damage, "damage", 0, "`percent` of the frames that the cable damages")
	f.StringVar(&c.pcap, "pcap", "", "`file` that gets all frames")

	p := &c.params
	f.IntVar(&v.seconds, "t", -1, fmt.Sprintf("`seconds` of a test; 0: until interrupted (default %d, demo %d)", defaultClientTime, defaultDemoTime))
	f.IntVar(&p.Parallel, "P", 1, "`number` of parallel streams")
	f.BoolVar(&p.Reverse, "R", false, "the server sends (demo: download only)")
	f.BoolVar(&p.Bidirectional, "bidir", false, "both send (client)")
	f.BoolVar(&p.UDP, "u", false, "UDP")
	f.StringVar(&v.rate, "b", "", "`bit/s` of each stream, with K, M or G; 0: no limit (default: none, UDP 1M)")
	f.StringVar(&v.bytes, "n", "", "`bytes` to transfer in place of a time, with K, M or G")
	f.IntVar(&p.Omit, "O", 0, "`seconds` at the start that do not count")
	f.StringVar(&v.length, "l", "", "`bytes` of a block or datagram")
	f.StringVar(&v.window, "w", "", "`bytes` of the socket buffers")
	f.StringVar(&p.Congestion, "C", "", "congestion control `algorithm`")
	f.Float64Var(&v.interval, "i", 1, "`seconds` between reports; 0: none")
	f.BoolVar(&p.GetServerOutput, "get-server-output", false, "show the server's output, too (client)")

	f.BoolVar(&c.oneOff, "one-off", false, "exit after one test (server)")
	f.BoolVar(&c.json, "json", false, "output for programs")
	f.BoolVar(&c.stats, "stats", false, "print the driver's counters at the end")
	return f
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: iperf [demo|server|client] [flags] [HOST]\n\n")
	f := flags(new(config), new(values))
	f.SetOutput(w)
	f.PrintDefaults()
}

// parse reads and checks the command line. Its errors are one line that names the culprit.
func parse(args []string) (*config, error) {
	c, v := &config{mode: "demo"}, &values{}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		c.mode = args[0]
		args = args[1:]
	}
	switch c.mode {
	case "demo", "server", "client":
	default:
		return nil, fmt.Errorf("%q is none of demo, server and client", c.mode)
	}
	f := flags(c, v)
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	rest := f.Args()
	if c.mode == "client" && v.host == "" && len(rest) > 0 {
		v.host, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("unexpected argument %q", rest[0])
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := c.network(v); err != nil {
		return nil, err
	}
	if err := c.test(v, given); err != nil {
		return nil, err
	}
	return c, c.consistent(given)
}

// network checks where to run.
func (c *config) network(v *values) error {
	if err := tapName(c.tap); err != nil {
		return err
	}
	var err error
	if c.addr, err = prefix(v.addr, false); err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	if v.addr6 != "" {
		if c.addr6, err = prefix(v.addr6, true); err != nil {
			return fmt.Errorf("-addr6: %w", err)
		}
	}
	if v.port < 1 || v.port > 65535 {
		return fmt.Errorf("-port: %d is out of range, want 1 to 65535", v.port)
	}
	c.port = uint16(v.port)
	switch c.speed {
	case 0, 10, 100, 1000:
	default:
		return fmt.Errorf("-speed: %d is none of 1000, 100, 10 and 0", c.speed)
	}
	switch v.gsoMax {
	case -1:
		c.gsoMax = link.GSOAuto
	case 0:
		c.gsoMax = link.GSOOff
	default:
		if v.gsoMax < minGSO || v.gsoMax > maxGSO {
			return fmt.Errorf("-gso-max: %d is out of range, want %d to %d, 0 (off) or -1 (automatic)", v.gsoMax, minGSO, maxGSO)
		}
		c.gsoMax = v.gsoMax
	}
	for _, p := range []struct {
		name    string
		percent float64
		share   *float64
	}{{"-loss", v.loss, &c.loss}, {"-damage", v.damage, &c.damage}} {
		if !(p.percent >= 0 && p.percent <= 100) {
			return fmt.Errorf("%s: %v is out of range, want 0 to 100", p.name, p.percent)
		}
		*p.share = p.percent / 100
	}
	return nil
}

// test checks what to measure.
func (c *config) test(v *values, given map[string]bool) error {
	p := &c.params
	if err := c.amounts(v); err != nil {
		return err
	}
	if err := c.counts(v, given); err != nil {
		return err
	}
	if !(v.interval >= 0 && v.interval <= 3600) {
		return fmt.Errorf("-i: %v is out of range, want 0 to 3600", v.interval)
	}
	c.interval = time.Duration(v.interval * float64(time.Second))
	if c.interval == 0 {
		c.interval = -1
	}
	if err := p.Validate(); err != nil {
		return err
	}
	if c.mode != "client" {
		if v.host != "" {
			return fmt.Errorf("-c is for the client")
		}
		return nil
	}
	if v.host == "" {
		return fmt.Errorf("the client needs the address of a server")
	}
	var err error
	if c.host, err = netip.ParseAddr(v.host); err != nil {
		return fmt.Errorf("%q is not an IP address (names are not looked up)", v.host)
	}
	return nil
}

// consistent checks what goes together.
func (c *config) consistent(given map[string]bool) error {
	if c.board != "sim" {
		return fmt.Errorf("-board: %s is not supported, only sim is", strconv.Quote(c.board))
	}
	only := func(flag string, modes ...string) error {
		for _, m := range modes {
			if c.mode == m || !given[flag] {
				return nil
			}
		}
		return fmt.Errorf("-%s is not for %s", flag, c.mode)
	}
	for flag, modes := range map[string][]string{
		"tap": {"server", "client"}, "addr": {"server", "client"}, "addr6": {"server", "client"}, "one-off": {"server"},
		"bidir": {"client"}, "get-server-output": {"client"},
		"t": {"demo", "client"}, "P": {"demo", "client"}, "R": {"demo", "client"}, "u": {"demo", "client"},
		"b": {"demo", "client"}, "n": {"demo", "client"}, "O": {"demo", "client"}, "l": {"demo", "client"},
		"w": {"demo", "client"}, "C": {"demo", "client"},
	} {
		if err := only(flag, modes...); err != nil {
			return err
		}
	}
	switch {
	case c.mode != "demo" && c.tap == "":
		return fmt.Errorf("%s needs -tap: the interface at the other end of the cable", c.mode)
	case c.params.Bidirectional && c.params.Reverse:
		return fmt.Errorf("-R and -bidir exclude each other")
	case c.mode == "demo" && c.params.Time == 0 && c.params.Bytes == 0:
		return fmt.Errorf("-t: the demonstration needs an end")
	case c.mode == "client" && c.host.Is6() && !c.host.Is4In6() && !c.addr6.IsValid():
		return fmt.Errorf("a server at %v needs -addr6", c.host)
	}
	return nil
}

// addresses are those of the stack.
func (c *config) addresses() []netip.Prefix {
	if c.addr6.IsValid() {
		return []netip.Prefix{c.addr, c.addr6}
	}
	return []netip.Prefix{c.addr}
}
