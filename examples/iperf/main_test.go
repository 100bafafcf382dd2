package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dwnet/examples/internal/iperf3"
	"dwnet/examples/internal/netdev"
	"dwnet/link"
)

func TestCommandLine(t *testing.T) {
	addr := netip.MustParsePrefix(defaultAddr)
	plain := config{mode: "demo", board: "sim", addr: addr, port: 5201, speed: 1000, gsoMax: link.GSOAuto, interval: time.Second,
		params: iperf3.Params{Parallel: 1, Time: defaultDemoTime}}
	with := func(f func(*config)) config {
		c := plain
		f(&c)
		return c
	}
	for _, tc := range []struct {
		args string
		want config
	}{
		{"", plain},
		{"demo", plain},
		{"-t 2 -json -stats", with(func(c *config) { c.params.Time, c.json, c.stats = 2, true, true })},
		{"demo -u -R", with(func(c *config) { c.params.UDP, c.params.Reverse, c.params.Bandwidth = true, true, defaultUDPRate })},
		{"-u -b 900M -l 1400", with(func(c *config) { c.params.UDP, c.params.Bandwidth, c.params.Length = true, 900e6, 1400 })},
		{"-u -b 0", with(func(c *config) { c.params.UDP = true })},
		{"-speed 0 -gso-max 0 -damage 1 -loss 0.5", with(func(c *config) { c.speed, c.gsoMax, c.damage, c.loss = 0, link.GSOOff, 0.01, 0.005 })},
		{"-gso-max 3001", with(func(c *config) { c.gsoMax = 3001 })},
		{"-gso-max 65536", with(func(c *config) { c.gsoMax = 65536 })},
		{"-gso-max 10000 -n 1G -P 4 -w 256K -i 0", with(func(c *config) {
			c.gsoMax, c.params.Bytes, c.params.Time, c.params.Parallel, c.params.Window, c.interval = 10000, 1<<30, 0, 4, 256<<10, -1
		})},
		{"server -tap dw0 -one-off -port 5202 -addr 10.0.0.1/8 -addr6 fd00::1/64 -pcap f", with(func(c *config) {
			c.mode, c.tap, c.oneOff, c.port, c.pcap = "server", "dw0", true, 5202, "f"
			c.addr, c.addr6, c.params.Time = netip.MustParsePrefix("10.0.0.1/8"), netip.MustParsePrefix("fd00::1/64"), defaultClientTime
		})},
		{"server -tap abcdefghijklmno -addr 10.0.0.0/31", with(func(c *config) {
			c.mode, c.tap, c.addr, c.params.Time = "server", "abcdefghijklmno", netip.MustParsePrefix("10.0.0.0/31"), defaultClientTime
		})},
		{"-w 4M -l 1M -t 86400", with(func(c *config) { c.params.Window, c.params.Length, c.params.Time = 4<<20, 1<<20, 86400 })},
		{"client -tap dw0 -bidir -O 2 -C reno 192.168.77.1", with(func(c *config) {
			c.mode, c.tap, c.host = "client", "dw0", netip.MustParseAddr("192.168.77.1")
			c.params = iperf3.Params{Parallel: 1, Time: defaultClientTime, Bidirectional: true, Omit: 2, Congestion: "reno"}
		})},
		{"client -tap dw0 -c 192.168.77.1 -t 0", with(func(c *config) {
			c.mode, c.tap, c.host, c.params.Time = "client", "dw0", netip.MustParseAddr("192.168.77.1"), 0
		})},
	} {
		got, err := parse(strings.Fields(tc.args))
		if err != nil {
			t.Errorf("%q: %v", tc.args, err)
			continue
		}
		if d := cmp.Diff(&tc.want, got, cmp.AllowUnexported(config{}), cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})); d != "" {
			t.Errorf("%q (-want +got):\n%s", tc.args, d)
		}
	}
}

// What is wrong is said in one line that names it, and the status tells scripts.
func TestMistakesGetOneClearLine(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		want   []string // parts of the line
	}{
		{"serve", 2, []string{`"serve"`}},
		{"-nonsense", 2, []string{"-nonsense"}},
		{"-t x", 2, []string{`"x"`, "-t"}},
		{"-t -1", 2, []string{"-t: -1 is out of range, want 0 to 86400 seconds"}},
		{"-t 100000", 2, []string{"-t: 100000 is out of range, want 0 to 86400 seconds"}},
		{"-O -1", 2, []string{"-O: -1 is out of range, want 0 to 600 seconds"}},
		{"-O 601", 2, []string{"-O: 601 is out of range"}},
		{"-t 0", 2, []string{"-t"}},
		{"-P 129", 2, []string{"-P: 129 is out of range, want 1 to 128 streams"}},
		{"-P 0", 2, []string{"-P: 0 is out of range"}},
		{"-b fast", 2, []string{"-b", `"fast"`}},
		{"-b -1", 2, []string{`-b: "-1" is out of range, want 0 (no limit) to 1T bit/s`}},
		{"-b 2T", 2, []string{`-b: "2T" is out of range`}},
		{"-b 1e999", 2, []string{`-b: "1e999" is out of range`}},
		{"-n -5", 2, []string{`-n: "-5" is out of range, want 0 to 9223372036854775807 bytes`}},
		{"-n 1e30", 2, []string{`-n: "1e30" is out of range`}},
		{"-u -l 15", 2, []string{`-l: "15" is out of range, want 16 to 65507 bytes`}},
		{"-l 2M", 2, []string{`-l: "2M" is out of range, want 1 to 1048576 bytes`}},
		{"-w 1T", 2, []string{`-w: "1T" is out of range, want 0 to 4194304 bytes`}},
		{"-w -1", 2, []string{`-w: "-1" is out of range`}},
		{"-w 5M", 2, []string{`-w: "5M" is out of range`}},
		{"-C vegas", 2, []string{`-C: "vegas" is not known, want one of reno, cubic`}},
		{"-i -1", 2, []string{"-i", "-1"}},
		{"-speed 2500", 2, []string{"-speed", "2500"}},
		{"-gso-max 5", 2, []string{"iperf: -gso-max: 5 is out of range, want 3001 to 65536, 0 (off) or -1 (automatic)\n"}},
		{"-gso-max -2", 2, []string{"-gso-max: -2 is out of range, want 3001 to 65536"}},
		{"-gso-max 3000", 2, []string{"-gso-max: 3000 is"}},
		{"-gso-max 65537", 2, []string{"-gso-max: 65537 is"}},
		{"-gso-max 100000", 2, []string{"-gso-max: 100000 is"}},
		{"-loss 101", 2, []string{"-loss", "101"}},
		{"-damage -1", 2, []string{"-damage", "-1"}},
		{"-board odroid-c1", 2, []string{"-board", "odroid-c1"}},
		{"-tap dw0", 2, []string{"-tap", "demo"}},
		{"-one-off", 2, []string{"-one-off", "demo"}},
		{"-pcap /no/such/directory/file", 1, []string{"-pcap", "/no/such/directory/file"}},
		{"extra", 2, []string{`"extra"`}},
		{"demo extra", 2, []string{`"extra"`}},
		{"server", 2, []string{"-tap"}},
		{"server -tap dw0 -addr 192.168.77.300/24", 2, []string{"-addr", "192.168.77.300/24"}},
		{"server -tap dw0 -addr 192.168.77.2", 2, []string{"-addr", "prefix length"}},
		{"server -tap dw0 -addr6 192.168.77.2/24", 2, []string{"-addr6", "IPv6"}},
		{"server -tap dw0 -port 0", 2, []string{"-port", "0"}},
		{"server -tap dw0 -port 65536", 2, []string{"-port", "65536"}},
		{"server -tap dw0 -t 5", 2, []string{"-t", "server"}},
		{"server -tap a/b", 2, []string{`-tap: "a/b" is not the name of an interface`}},
		{"server -tap dw%d", 2, []string{`-tap: "dw%d" is not the name`}},
		{"server -tap abcdefghijklmnop", 2, []string{`-tap: "abcdefghijklmnop" is longer than 15 bytes`}},
		{"server -tap dw0 -addr 192.168.77.2/33", 2, []string{`-addr: "192.168.77.2/33": the prefix length is out of range, want 1 to 32`}},
		{"server -tap dw0 -addr 192.168.77.2/0", 2, []string{"the prefix length is out of range"}},
		{"server -tap dw0 -addr6 fd00::1/129", 2, []string{`-addr6: "fd00::1/129": the prefix length is out of range, want 1 to 128`}},
		{"server -tap dw0 -addr 224.0.0.1/24", 2, []string{`-addr: "224.0.0.1/24" is not a unicast address`}},
		{"server -tap dw0 -addr 0.0.0.0/24", 2, []string{"is not a unicast address"}},
		{"server -tap dw0 -addr 255.255.255.255/32", 2, []string{"is not a unicast address"}},
		{"server -tap dw0 -addr6 ff02::1/64", 2, []string{"is not a unicast address"}},
		{"server -tap dw0 -addr 127.0.0.1/8", 2, []string{"is a loopback address"}},
		{"server -tap dw0 -addr 192.168.77.0/24", 2, []string{"is the address of the network"}},
		{"server -tap dw0 -addr6 fd00::/64", 2, []string{"is the address of the network"}},
		{"server -tap dw0 -addr 192.168.77.255/24", 2, []string{"is the broadcast address of the network"}},
		{"client -tap dw0", 2, []string{"address of a server"}},
		{"client -tap dw0 example.net", 2, []string{"example.net"}},
		{"client -tap dw0 -R -bidir 10.0.0.1", 2, []string{"-R", "-bidir"}},
		{"client -tap dw0 fd00::1", 2, []string{"-addr6"}},
		{"client 10.0.0.1", 2, []string{"-tap"}},
	} {
		var out, errs bytes.Buffer
		status := run(context.Background(), strings.Fields(tc.args), &out, &errs)
		line := errs.String()
		if status != tc.status || strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "iperf: ") || out.Len() != 0 {
			t.Errorf("%q: status %d, want %d; output %q, errors %q", tc.args, status, tc.status, out.String(), line)
		}
		for _, w := range tc.want {
			if !strings.Contains(line, w) {
				t.Errorf("%q: %q does not name %q", tc.args, line, w)
			}
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"server", "-help"}} {
		var out, errs bytes.Buffer
		if status := run(context.Background(), args, &out, &errs); status != 0 || errs.Len() != 0 {
			t.Errorf("%v: status %d, errors %q", args, status, errs.String())
		}
		for _, f := range []string{"-tap", "-addr6", "-gso-max", "-one-off", "-pcap", "-speed"} {
			if !strings.Contains(out.String(), "  "+f+" ") && !strings.Contains(out.String(), "  "+f+"\n") {
				t.Errorf("%v: the help lacks %s", args, f)
			}
		}
	}
}

// runDemo runs the demonstration and returns what it prints.
func runDemo(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if status := run(ctx, args, &out, &errs); status != 0 || errs.Len() != 0 {
		t.Fatalf("%v: status %d, errors %q\n%s", args, status, errs.String(), out.String())
	}
	return out.String()
}

func TestDemoAsText(t *testing.T) {
	out := runDemo(t, "-t", "1", "-speed", "100", "-stats")
	for _, want := range []string{
		"\nUpload\n", "\nDownload\n", "Reverse mode, remote host 192.168.77.1 is sending", "[ ID] Interval           Transfer     Bitrate",
		" sender\n", " receiver\n", "\nSummary\n  upload ", "\n  download ", "retransmits", "\n  host_stall ",
		"Counters of the driver of 192.168.77.2", "  TXFrames ", "  MAC.RXFramesGB ", "Counters of the driver of 192.168.77.1",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "broke") {
		t.Errorf("a rule of the hardware is broken:\n%s", out)
	}
}

func TestDemoAsJSON(t *testing.T) {
	for _, tc := range []struct {
		args     string
		download bool // alone
	}{
		{"-n 3M -speed 100", false},
		{"-n 3M -speed 1000 -P 4", false},
		{"-n 300K -speed 10", false},
		{"-n 3M -speed 0", false},
		{"-n 3M -gso-max 0", false},
		{"-n 3M -gso-max 65481", false},
		{"-n 3M -R", true},
		{"-n 1M -u -b 50M -speed 100", false},
		{"-t 1 -damage 1 -gso-max 0", false},
		{"-t 1 -loss 0.5 -gso-max 0", false},
	} {
		if testing.Short() && strings.Contains(tc.args, "-gso") {
			continue
		}
		t.Run(tc.args, func(t *testing.T) {
			out := runDemo(t, append(strings.Fields(tc.args), "-json")...)
			var r result
			d := json.NewDecoder(strings.NewReader(out))
			d.DisallowUnknownFields()
			if err := d.Decode(&r); err != nil {
				t.Fatalf("%v in:\n%s", err, out)
			}
			if d.More() {
				t.Errorf("more than one object:\n%s", out)
			}
			if r.Download == nil || (r.Upload == nil) != tc.download {
				t.Fatalf("directions: upload %v, download %v", r.Upload, r.Download)
			}
			for name, d := range map[string]*direction{"upload": r.Upload, "download": r.Download} {
				if d == nil {
					continue
				}
				// An upload by amount ends when the stack has taken the last byte: few may have arrived.
				low := int64(1)
				if name == "download" {
					low = 100 << 10
				}
				if d.Bytes < low || d.Seconds <= 0 || d.BitsPerSecond <= 0 || d.Retransmits < 0 {
					t.Errorf("%s: %+v", name, d)
				}
			}
			if r.Driver["TXFrames"] == 0 || r.Driver["RXPackets"] == 0 || r.Peer["MAC.RXFramesGB"] == 0 {
				t.Errorf("counters: %v", r.Driver)
			}
			if r.Violations != 0 {
				t.Errorf("%d rules of the hardware are broken", r.Violations)
			}
			damaged := r.Driver["MAC.RXCRCError"] + r.Peer["MAC.RXCRCError"]
			if want := strings.Contains(tc.args, "-damage"); (damaged > 0) != want {
				t.Errorf("%d frames damaged", damaged)
			}
			// What the knobs say must be there.
			if gso := r.Driver["TXGSOPackets"]; strings.Contains(tc.args, "-gso-max 0") && gso != 0 {
				t.Errorf("%d large packets although they are off", gso)
			}
		})
	}
}

// The summary mentions what is unusual, and only then.
func TestSummary(t *testing.T) {
	good := result{Upload: &direction{Bytes: 1, Seconds: 1}, Driver: map[string]uint64{}, Peer: map[string]uint64{}}
	for _, tc := range []struct {
		name string
		set  func(*result)
		want string // "" where none of the others' is there
	}{
		{"nothing", func(*result) {}, ""},
		{"damage here", func(r *result) { r.Driver = map[string]uint64{damagedFrames: 3} }, "  frames received damaged: 3 here, 0 at the peer\n"},
		{"damage there", func(r *result) { r.Peer = map[string]uint64{damagedFrames: 4} }, "  frames received damaged: 0 here, 4 at the peer\n"},
		{"retransmits", func(r *result) {
			r.Upload = &direction{Retransmits: 9, TCP: netdev.TCPStats{SpuriousRecoveries: 2}}
		}, "  TCP recoveries where nothing had been lost (spurious): 2 or more\n"},
		{"slow", func(r *result) { r.HostStall = hostStall{0.5, 1.5} }, "  host_stall 0.500 s (1.50 %): this machine was too slow for the wire, the figures are void\n"},
	} {
		r := good
		tc.set(&r)
		var b strings.Builder
		new(config).summary(&b, &r, link.Stats{}, link.Stats{})
		out := b.String()
		if !strings.Contains(out, tc.want) {
			t.Errorf("%s: the summary lacks %q:\n%s", tc.name, tc.want, out)
		}
		for _, unusual := range []string{"damaged", "spurious", "void"} {
			if strings.Contains(out, unusual) != strings.Contains(tc.want, unusual) {
				t.Errorf("%s: wrong about %q:\n%s", tc.name, unusual, out)
			}
		}
	}
}

// full is standard output on a disk without room after some bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, syscall.ENOSPC
	}
	f.room -= len(p)
	return len(p), nil
}

func TestOutputThatFails(t *testing.T) {
	for _, tc := range []struct {
		args string
		room int
	}{
		{"-h", 0},
		{"-t 60", 0},   // at the start: it does not measure for a minute
		{"-t 60", 200}, // under way
		{"-n 300K -R -json", 0},
	} {
		var errs bytes.Buffer
		status := run(context.Background(), strings.Fields(tc.args), &full{tc.room}, &errs)
		if want := "iperf: " + syscall.ENOSPC.Error() + "\n"; status != 1 || errs.String() != want {
			t.Errorf("%q with room for %d bytes: status %d, errors %q, want %q", tc.args, tc.room, status, errs.String(), want)
		}
	}
}

// Frames go to a file that tcpdump reads: magic number and link type of pcap with nanoseconds.
func TestDemoCapture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "frames.pcap")
	runDemo(t, "-n", "1M", "-R", "-json", "-pcap", file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 1<<20 || !bytes.HasPrefix(b, []byte{0x4d, 0x3c, 0xb2, 0xa1}) || b[20] != 1 {
		t.Errorf("%d bytes, beginning with % x", len(b), b[:min(24, len(b))])
	}
}

// A signal ends the demonstration in order, at any moment.
func TestDemoIsInterrupted(t *testing.T) {
	for _, d := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		done := make(chan string, 1)
		go func() {
			var out, errs bytes.Buffer
			status := run(ctx, []string{"-t", "60"}, &out, &errs)
			done <- fmt.Sprintf("%d %s", status, errs.String())
		}()
		select {
		case got := <-done:
			if got != "1 iperf: interrupted\n" {
				t.Errorf("interrupted after %v: %q", d, got)
			}
		case <-time.After(time.Minute):
			t.Fatalf("interrupted after %v: does not end", d)
		}
		cancel()
	}
}
