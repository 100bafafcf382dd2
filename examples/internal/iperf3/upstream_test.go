package iperf3

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The stock client and server are the judges of compatibility.

// stock runs the iperf3 program.
func stock(t *testing.T, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*guard)
	defer cancel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("iperf3 %s: %w: %s%s", strings.Join(args, " "), err, stderr.Bytes(), out)
	}
	return out, err
}

func TestStockClient(t *testing.T) {
	program := needProgram(t, "iperf3")
	for i, tc := range []struct {
		args    string
		reverse bool
		udp     bool
		bidir   bool
	}{
		{"-n 20M", false, false, false},
		{"-t 1 --bidir", false, false, true},
		{"-u -b 20M -t 1 -R", true, true, false},
		// A test in the short form ends here.
		{"-t 1", false, false, false},
		{"-t 1 -R", true, false, false},
		{"-u -b 20M -t 1", false, true, false},
		{"-P 4 -t 1", false, false, false},
		{"-P 4 -t 1 -R", true, false, false},
		{"-P 2 -t 1 --bidir", false, false, true},
		{"-n 10M", false, false, false},
		{"-n 5M -R", true, false, false},
		{"-k 100 -R", true, false, false},
		{"-O 1 -t 1 -R", true, false, false},
		{"-b 20M -t 1 -R", true, false, false},
		{"-l 1M -w 256K -M 1000 -N -S 0x28 -n 5M", false, false, false},
		{"-C reno -Z -n 5M", false, false, false},
		{"-u -b 10M -t 1 -O 1 -R", true, true, false},
		{"-u -b 10M -P 3 -t 1", false, true, false},
		{"-u -b 10M -t 1 --bidir", false, true, true},
		{"-u -b 5M -l 64 --udp-counters-64bit -t 1", false, true, false},
		{"-u -b 10M -l 1000 -k 200 -R", true, true, false},
	} {
		if testing.Short() && i >= 3 {
			break
		}
		t.Run(tc.args, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, ServerOptions{})
			host, port, _ := net.SplitHostPort(s.addr)
			out, err := stock(t, program, append([]string{"-J", "-c", host, "-p", port}, strings.Fields(tc.args)...)...)
			if err != nil {
				t.Fatal(err)
			}
			if e := at(t, out, "error"); e != nil {
				t.Fatalf("the client says %v", e)
			}
			r := s.report(t)
			if r.Err != nil {
				t.Errorf("the server says %v", r.Err)
			}
			dirs := []bool{tc.reverse}
			if tc.bidir {
				dirs = []bool{false, true}
			}
			for _, reverse := range dirs {
				suffix := ""
				if tc.bidir && reverse {
					suffix = "_bidir_reverse"
				}
				sent, received, _ := r.Totals(reverse)
				// Each side's own account must come out of the client as it went in, to the byte.
				for _, f := range []struct {
					name string
					ours Figures
				}{{"sum_sent" + suffix, sent}, {"sum_received" + suffix, received}} {
					if got := int64(number(t, out, "end", f.name, "bytes")); got != f.ours.Bytes || got <= 0 {
						t.Errorf("%s: the client shows %d bytes, the server %d", f.name, got, f.ours.Bytes)
					}
				}
				if !tc.udp && reverse && emulated {
					continue
				}
				if !tc.udp {
					got := int64(number(t, out, "end", "sum_sent"+suffix, "retransmits"))
					if reverse && got != sent.Retransmits || got < 0 || got > 1e6 {
						t.Errorf("sum_sent%s: the client shows %d retransmits, the server %d", suffix, got, sent.Retransmits)
					}
					continue
				}
				lost, total := number(t, out, "end", "sum"+suffix, "lost_packets"), number(t, out, "end", "sum"+suffix, "packets")
				if lost < 0 || lost > total/2 || total <= 0 {
					t.Errorf("sum%s: %v of %v packets lost", suffix, lost, total)
				}
			}
			number(t, out, "end", "cpu_utilization_percent", "remote_total")
		})
	}
}

func TestStockClientAsText(t *testing.T) {
	program := needProgram(t, "iperf3")
	s := startServer(t, ServerOptions{})
	host, port, _ := net.SplitHostPort(s.addr)
	out, err := stock(t, program, "-c", host, "-p", port, "-t", "1", "-R", "--get-server-output")
	if err != nil {
		t.Fatal(err)
	}
	retr := ` +Retr` // only there if our retransmits are real
	if emulated {
		retr = ``
	}
	for _, want := range []string{
		`(?m)^\[ ID\] Interval +Transfer +Bitrate` + retr + `$`,
		`(?m)^\[ +\d+\] .* sender$`, `(?m)^\[ +\d+\] .* receiver$`, `(?m)^Server output:$`, `(?m)^Accepted connection from 127`, `iperf Done`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("the client's text lacks %s:\n%s", want, out)
		}
	}
}

func TestStockClientIsToldBusy(t *testing.T) {
	program := needProgram(t, "iperf3")
	s := startServer(t, ServerOptions{})
	s.peer(t).running(plainParams)
	host, port, _ := net.SplitHostPort(s.addr)
	for range 5 {
		_, err := stock(t, program, "-c", host, "-p", port, "-t", "1")
		if err == nil || !strings.Contains(err.Error(), "the server is busy running a test") {
			t.Errorf("a second client: %v", err)
		}
	}
}

func TestStockClientHearsOfTheEnd(t *testing.T) {
	program := needProgram(t, "iperf3")
	var out lockedBuffer
	s := startServer(t, ServerOptions{Output: &out, Interval: 20 * time.Millisecond})
	host, port, _ := net.SplitHostPort(s.addr)
	go func() {
		for i := 0; i < 10000 && !strings.Contains(out.String(), "  0.00-"); i++ {
			time.Sleep(time.Millisecond) // polls for a running test
		}
		s.Close()
	}()
	_, err := stock(t, program, "-c", host, "-p", port, "-t", "20")
	if err == nil || !strings.Contains(err.Error(), "the server has terminated") {
		t.Errorf("the client says %v", err)
	}
}

// Our client must please the stock server, too.
func TestStockServer(t *testing.T) {
	program := needProgram(t, "iperf3")
	cases := []Params{
		{Time: 1, Parallel: 2, Bidirectional: true}, {UDP: true, Time: 1, Bandwidth: 10e6},
		// A test in the short form ends here.
		{Time: 1}, {Time: 1, Reverse: true}, {UDP: true, Time: 1, Bandwidth: 10e6, Reverse: true},
		{UDP: true, Time: 1, Bandwidth: 5e6, Parallel: 2, Bidirectional: true, UDPCounters64: true},
		{Bytes: 10 << 20}, {Bytes: 10 << 20, Reverse: true}, {Time: 1, Omit: 1, Reverse: true},
		{Bytes: 1 << 20, GetServerOutput: true, Window: 256 << 10, MSS: 1000, TOS: 32, NoDelay: true},
	}
	if testing.Short() {
		cases = cases[:2]
	}
	for i, p := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r, err := againstStock(t, program, p)
			for i := 0; err != nil && i < 3; i++ { // somebody else may have been given the same port
				r, err = againstStock(t, program, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, reverse := range r.directions() {
				sent, received, _ := r.Totals(reverse)
				if sent.Bytes <= 0 || received.Bytes <= 0 || !p.UDP && !emulated && (sent.Retransmits < 0 || sent.Retransmits > 1e6) {
					t.Errorf("reverse %v: sent %+v, received %+v", reverse, sent, received)
				}
			}
			if p.GetServerOutput && !strings.Contains(r.ServerText, "receiver") {
				t.Errorf("the server's output: %q", r.ServerText)
			}
		})
	}
}

// againstStock runs our client against a stock server on a port that is free, or was a moment ago.
func againstStock(t *testing.T, program string, p Params) (*Report, error) {
	l, pc := listenBoth(t)
	addr := l.Addr().String()
	l.Close()
	pc.Close()
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(program, "-s", "-1", "-B", host, "-p", port)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	for i := 0; ; i++ { // until it listens
		r, err := Run(context.Background(), ClientOptions{Params: p, Dial: KernelDialer(addr)})
		if err == nil || i == 300 || !strings.Contains(err.Error(), "refused") {
			return r, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
