package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"dwnet/examples/internal/iperf3"
	"dwnet/examples/internal/netdev"
	"dwnet/hw/sim"
	"dwnet/link"
)

// The addresses of the demonstration: the board whose figures are shown, and the one it talks to.
var (
	demoClient = netip.MustParsePrefix("192.168.77.2/24")
	demoServer = netip.MustParsePrefix("192.168.77.1/24")
)

// direction is one transfer of the demonstration.
type direction struct {
	BitsPerSecond float64         `json:"bits_per_second"` // of payload, at the receiver
	Bytes         int64           `json:"bytes"`
	Seconds       float64         `json:"seconds"`
	Retransmits   int64           `json:"retransmits"`
	TCP           netdev.TCPStats `json:"tcp"` // of the sending stack
	Packets       int64           `json:"packets,omitempty"`
	LostPackets   int64           `json:"lost_packets,omitempty"`
}

// result is what -json prints. Directions are seen from the first board: upload means that it sends.
type result struct {
	Upload     *direction        `json:"upload,omitempty"`
	Download   *direction        `json:"download,omitempty"`
	Driver     map[string]uint64 `json:"driver"` // of the first board
	Peer       map[string]uint64 `json:"peer"`   // of the second
	HostStall  hostStall         `json:"host_stall"`
	Violations uint64            `json:"violations"` // of the simulated hardware's rules by the drivers
}

// demo connects two simulated boards and measures both directions.
func demo(ctx context.Context, c *config, stdout, _ io.Writer) (err error) {
	b, err := c.open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	near, err := c.device(b.Boards[0], demoClient)
	if err != nil {
		return err
	}
	defer near.Close()
	far, err := c.device(b.Boards[1], demoServer)
	if err != nil {
		return err
	}
	defer far.Close()

	quiet := *c
	quiet.json = false
	s, l, pc, err := quiet.listen(far, nil)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, pc) }()
	defer func() {
		s.Close()
		err = errors.Join(err, <-served)
	}()

	out := c.text(stdout)
	if out == nil {
		out = io.Discard
	}
	wire := fmt.Sprintf("%d Mbit/s", c.speed)
	if c.speed == 0 {
		wire = "no wire time"
	}
	fmt.Fprintf(out, "Two simulated boards, %v and %v, on a cable: %s\n", demoClient.Addr(), demoServer.Addr(), wire)
	var r result
	to := netip.AddrPortFrom(demoServer.Addr(), c.port)
	if !c.params.Reverse {
		fmt.Fprintln(out, "\nUpload")
		if r.Upload, err = c.transfer(ctx, near, near, to, false, out); err != nil {
			return interruptedBy(ctx, err)
		}
	}
	fmt.Fprintln(out, "\nDownload")
	if r.Download, err = c.transfer(ctx, near, far, to, true, out); err != nil {
		return interruptedBy(ctx, err)
	}

	driver, peer := near.Endpoint.Stats(), far.Endpoint.Stats()
	r.Driver, r.Peer = counters(driver), counters(peer)
	r.HostStall = b.stall()
	r.Violations = violations(b.Boards)
	if c.json {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "\t")
		return e.Encode(&r)
	}
	c.summary(out, &r, driver, peer)
	return nil
}

// transfer measures one direction from the board near; sender is the board that sends.
func (c *config) transfer(ctx context.Context, near, sender *netdev.Device, to netip.AddrPort, reverse bool, out io.Writer) (*direction, error) {
	p := c.params
	p.Reverse = reverse
	before := sender.TCPStats()
	report, err := c.measure(ctx, near, to, p, out)
	if err != nil {
		return nil, err
	}
	sent, received, _ := report.Totals(reverse)
	d := &direction{
		BitsPerSecond: received.BitsPerSecond(), Bytes: received.Bytes, Seconds: received.Seconds(), Retransmits: max(sent.Retransmits, 0),
		TCP: sender.TCPStats().Since(before),
	}
	if p.UDP {
		d.Packets, d.LostPackets = sent.Packets, received.Lost
	}
	return d, nil
}

func violations(boards []*sim.Board) uint64 {
	var n uint64
	for _, b := range boards {
		n += b.Stats().Violations
	}
	return n
}

// summary is the end of the demonstration for people.
func (c *config) summary(w io.Writer, r *result, driver, peer link.Stats) {
	fmt.Fprintln(w, "\nSummary")
	for _, d := range []struct {
		name string
		d    *direction
	}{{"upload", r.Upload}, {"download", r.Download}} {
		if d.d == nil {
			continue
		}
		fmt.Fprintf(w, "  %-9s %s in %.2f s, %.1f Mbit/s", d.name, iperf3.FormatBytes(float64(d.d.Bytes)), d.d.Seconds, d.d.BitsPerSecond/1e6)
		if c.params.UDP {
			fmt.Fprintf(w, ", %d of %d datagrams lost\n", d.d.LostPackets, d.d.Packets)
		} else {
			fmt.Fprintf(w, ", %d retransmits, %d retransmission timeouts\n", d.d.Retransmits, d.d.TCP.Timeouts)
			if d.d.Retransmits > 0 {
				// gVisor finds out by time stamps and duplicate SACKs, and only about some.
				fmt.Fprintf(w, "            TCP recoveries where nothing had been lost (spurious): %d or more\n", d.d.TCP.SpuriousRecoveries)
			}
		}
	}
	fmt.Fprintf(w, "  drops in the driver and the MAC: %d here, %d at the peer\n", driver.Drops(), peer.Drops())
	if here, there := r.Driver[damagedFrames], r.Peer[damagedFrames]; here+there > 0 {
		fmt.Fprintf(w, "  frames received damaged: %d here, %d at the peer\n", here, there)
	}
	r.HostStall.print(w, "  ")
	if r.Violations > 0 {
		fmt.Fprintf(w, "  the drivers broke %d rules of the hardware\n", r.Violations)
	}
	fmt.Fprintln(w)
	printCounters(w, fmt.Sprintf("driver of %v", demoClient.Addr()), driver, c.stats)
	if c.stats {
		fmt.Fprintln(w)
		printCounters(w, fmt.Sprintf("driver of %v", demoServer.Addr()), peer, true)
	}
}
