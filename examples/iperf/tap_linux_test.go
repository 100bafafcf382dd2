package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// inNamespace is set in the environment of a test binary that runs in a network namespace of its own.
const inNamespace = "DWNET_IPERF_NETNS"

// TestOnTAP runs the tests below in a network namespace of their own, where they meet the host's stack and the stock
// iperf3. It needs root.
func TestOnTAP(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a network namespace and a TAP interface")
	}
	if runtime.GOARCH == "arm" {
		t.Skip("user-mode emulation starts no process in another namespace")
	}
	for _, p := range []string{"ip", "ping", "iperf3"} {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is not installed", p)
			}
			t.Skipf("%s is not installed", p)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.run=^TestNamespace", "-test.v=true", "-test.timeout=5m"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("no network namespace: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestNamespaceServer", "TestNamespaceClient", "TestNamespaceMistakes"} {
		if !bytes.Contains(out, []byte("--- PASS: "+name)) {
			t.Errorf("%s has not passed:\n%s", name, out)
		}
	}
}

// namespace skips a test that is not run by TestOnTAP.
func namespace(t *testing.T) {
	t.Helper()
	if os.Getenv(inNamespace) == "" {
		t.Skip("runs within TestOnTAP")
	}
	command(t, "ip", "link", "set", "lo", "up")
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.Bytes())
	}
	return string(out)
}

// output is what a command under test prints, while it does.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// started is a command under test.
type started struct {
	out, errs output
	stop      context.CancelFunc
	done      chan int
}

func start(t *testing.T, args string) *started {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &started{stop: cancel, done: make(chan int, 1)}
	go func() { s.done <- run(ctx, strings.Fields(args), &s.out, &s.errs) }()
	t.Cleanup(func() {
		cancel()
		s.wait(t)
	})
	return s
}

// wait waits for the end and returns the exit status. It may be called again.
func (s *started) wait(t *testing.T) int {
	t.Helper()
	select {
	case status := <-s.done:
		s.done <- status
		return status
	case <-time.After(time.Minute):
		t.Fatalf("the command does not end:\n%s%s", s.out.String(), s.errs.String())
		return -1
	}
}

// ready waits for the line that scripts wait for.
func (s *started) ready(t *testing.T, o *output, addr string) {
	t.Helper()
	for i := 0; !strings.Contains(o.String(), "listening on "+addr+"\n"); i++ {
		if i > 3000 || len(s.done) > 0 {
			t.Fatalf("it does not get ready:\n%s%s", s.out.String(), s.errs.String())
		}
		time.Sleep(10 * time.Millisecond) // polls for a state
	}
}

// stock runs a stock client and returns its JSON report.
func stock(t *testing.T, args string) map[string]any {
	t.Helper()
	out := command(t, "iperf3", append([]string{"-J"}, strings.Fields(args)...)...)
	var v map[string]any
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("iperf3 %s: %v\n%s", args, err, out)
	}
	if e := v["error"]; e != nil {
		t.Fatalf("iperf3 %s: %v", args, e)
	}
	return v
}

// number is a number in a JSON document, by a path with dots.
func number(t *testing.T, v any, path string) float64 {
	t.Helper()
	for _, k := range strings.Split(path, ".") {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	n, ok := v.(float64)
	if !ok {
		t.Fatalf("%s is %v, not a number", path, v)
	}
	return n
}

func TestNamespaceServer(t *testing.T) {
	namespace(t)
	s := start(t, "server -tap dw0 -addr6 fd77::2/64 -stats")
	s.ready(t, &s.out, "192.168.77.2:5201")
	s.ready(t, &s.out, "[fd77::2]:5201")
	command(t, "ip", "addr", "add", "192.168.77.1/24", "dev", "dw0")
	command(t, "ip", "addr", "add", "fd77::1/64", "dev", "dw0", "nodad")
	pings := "2000"
	if testing.Short() {
		pings = "200"
	}
	for _, addr := range []string{"192.168.77.2", "fd77::2"} {
		if out := command(t, "ping", "-f", "-c", pings, addr); !strings.Contains(out, " 0% packet loss") {
			t.Errorf("ping %s:\n%s", addr, out)
		}
	}
	for i, args := range []string{
		"-c 192.168.77.2 -t 1", "-c 192.168.77.2 -t 1 -R", "-c 192.168.77.2 -u -b 20M -t 1 -R",
		// A test in the short form ends here.
		"-c 192.168.77.2 -t 1 --bidir", "-c 192.168.77.2 -P 4 -t 1", "-c 192.168.77.2 -n 50M", "-c 192.168.77.2 -u -b 20M -t 1",
		"-c fd77::2 -t 1", "-c fd77::2 -t 1 -R", "-c 192.168.77.2 -u -l 4000 -b 20M -t 1",
	} {
		if testing.Short() && i >= 3 {
			break
		}
		r := stock(t, args)
		sums := []string{""}
		if strings.Contains(args, "--bidir") {
			sums = append(sums, "_bidir_reverse")
		}
		for _, x := range sums {
			sent, received := number(t, r, "end.sum_sent"+x+".bytes"), number(t, r, "end.sum_received"+x+".bytes")
			// What is under way at the end is not received: a send buffer, or what the wire carries of UDP.
			if received <= 0 || received > sent || sent-received > 16<<20 {
				t.Errorf("iperf3 %s: %v bytes sent, %v received%s", args, sent, received, x)
			}
			if !strings.Contains(args, "-u") {
				number(t, r, "end.sum_sent"+x+".retransmits")
				continue
			}
			if lost, all := number(t, r, "end.sum.lost_packets"), number(t, r, "end.sum.packets"); lost > all/2 {
				t.Errorf("iperf3 %s: %v of %v lost", args, lost, all)
			}
		}
	}
	s.stop()
	if status := s.wait(t); status != 0 || s.errs.String() != "" {
		t.Errorf("status %d, errors %q", status, s.errs.String())
	}
	for _, want := range []string{"Accepted connection from 192.168.77.1", "Counters of the driver", "MAC.RXTCP ", "\nhost_stall "} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, s.out.String())
		}
	}
	// One banner at the start and one after each test, none for the stop.
	if tests, banners := strings.Count(s.out.String(), "Accepted connection"), strings.Count(s.out.String(), "Server listening"); banners > tests+1 {
		t.Errorf("%d banners for %d tests", banners, tests)
	}
	if _, err := net.InterfaceByName("dw0"); err == nil {
		t.Error("the interface is still there")
	}

	// One test and out, for programs.
	s = start(t, "server -tap dw0 -one-off -json -stats")
	s.ready(t, &s.errs, "192.168.77.2:5201")
	command(t, "ip", "addr", "add", "192.168.77.1/24", "dev", "dw0")
	r := stock(t, "-c 192.168.77.2 -n 1M -R")
	if status := s.wait(t); status != 0 {
		t.Errorf("status %d, errors %q", status, s.errs.String())
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(s.out.String()), &doc); err != nil {
		t.Fatalf("%v in:\n%s", err, s.out.String())
	}
	if a, b := number(t, r, "end.sum_sent.bytes"), number(t, doc, "end.sum_sent.bytes"); a != b {
		t.Errorf("sent: the client shows %v bytes, the server %v", a, b)
	}
}

func TestNamespaceClient(t *testing.T) {
	namespace(t)
	// The interface must have its address before our client starts, so somebody else makes it.
	command(t, "ip", "tuntap", "add", "dw1", "mode", "tap")
	command(t, "ip", "addr", "add", "192.168.77.1/24", "dev", "dw1")
	command(t, "ip", "addr", "add", "fd77::1/64", "dev", "dw1", "nodad")
	command(t, "ip", "link", "set", "dw1", "up")
	server := exec.Command("iperf3", "-s")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Wait()
	defer server.Process.Kill()
	for i, args := range []string{"-n 10M 192.168.77.1", "-n 10M -R 192.168.77.1", "-u -b 10M -t 1 192.168.77.1", "-bidir -P 2 -t 1 192.168.77.1", "-n 10M -R fd77::1"} {
		if testing.Short() && i >= 2 {
			break
		}
		var status int
		var out, errs string
		for range 100 { // the stock server is away for a moment between two tests
			s := start(t, "client -tap dw1 -addr6 fd77::2/64 -json "+args)
			status = s.wait(t)
			out, errs = s.out.String(), s.errs.String()
			if status == 0 || !strings.Contains(errs, "refused") && !strings.Contains(errs, "reset") {
				break
			}
			time.Sleep(20 * time.Millisecond) // polls for a state
		}
		if status != 0 {
			t.Fatalf("client %s: status %d, errors %q", args, status, errs)
		}
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("client %s: %v in:\n%s", args, err, out)
		}
		if n := number(t, doc, "end.sum_received.bytes"); n <= 0 {
			t.Errorf("client %s: %v bytes received", args, n)
		}
	}
	// For people, the line that says whether the figures are worth anything is always there.
	for range 100 {
		s := start(t, "client -tap dw1 -n 1M 192.168.77.1")
		if status := s.wait(t); status == 0 {
			if !strings.Contains(s.out.String(), "\nhost_stall ") {
				t.Errorf("the output lacks the host's stall:\n%s", s.out.String())
			}
			break
		} else if e := s.errs.String(); !strings.Contains(e, "refused") && !strings.Contains(e, "reset") {
			t.Fatalf("status %d, errors %q", status, e)
		}
		time.Sleep(20 * time.Millisecond) // polls for a state
	}
	// It was not ours: it stays.
	if _, err := net.InterfaceByName("dw1"); err != nil {
		t.Errorf("the interface of somebody else is gone: %v", err)
	}
}

func TestNamespaceMistakes(t *testing.T) {
	namespace(t)
	s := start(t, "server -tap dw2")
	s.ready(t, &s.out, "192.168.77.2:5201")
	for _, tc := range []struct{ args, want string }{
		{"server -tap dw2", "dw2"}, // taken
		{"server -tap lo", "lo"},   // no TAP interface
	} {
		c := start(t, tc.args)
		if status := c.wait(t); status != 1 || strings.Count(c.errs.String(), "\n") != 1 || !strings.Contains(c.errs.String(), tc.want) {
			t.Errorf("%s: status %d, errors %q", tc.args, status, c.errs.String())
		}
	}
	// Nobody at the other end: the client gives up when it is told to.
	c := start(t, "client -tap dw3 10.9.9.9")
	if status := c.wait(t); status != 1 || strings.Count(c.errs.String(), "\n") != 1 || !strings.Contains(c.errs.String(), "10.9.9.9") {
		t.Errorf("no route: status %d, errors %q", status, c.errs.String())
	}
}
