// Command iperf is an iperf3-compatible server and client on a user-space Ethernet driver, and a demonstration of both.
//
//	iperf [demo] [flags]        two simulated boards on a cable: upload, then download
//	iperf server [flags]        waits for iperf3 clients
//	iperf client [flags] HOST   measures against an iperf3 server
//
// Server and client run on a simulated board whose cable ends at a TAP interface of this machine (-tap, needs
// CAP_NET_ADMIN). The interface gets no address: add one of the same network, as in
//
//	iperf server -tap dw0 &
//	ip addr add 192.168.77.1/24 dev dw0
//	iperf3 -c 192.168.77.2
//
// It prints "listening on ADDR:PORT" when it is ready (on standard error with -json), ends in order on SIGINT and SIGTERM,
// and exits with status 1 and one line on standard error if something fails, 2 if the command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command without its process. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &checked{w: stdout, failed: cancel}
	c, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		usage(out)
		return out.status(nil, stderr)
	case err != nil:
		fmt.Fprintf(stderr, "iperf: %s\n", oneLine(err))
		return 2
	}
	switch c.mode {
	case "server":
		err = serve(ctx, c, out, stderr)
	case "client":
		err = connect(ctx, c, out, stderr)
	default:
		err = demo(ctx, c, out, stderr)
	}
	return out.status(err, stderr)
}

// checked is standard output. The first error of writing ends the command: what nobody can read need not be measured.
type checked struct {
	w      io.Writer
	failed func()

	mu  sync.Mutex
	err error
}

func (o *checked) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.err = err
		o.failed()
	}
	return n, err
}

// status is the exit status of a command that ended with err, after saying why on stderr.
func (o *checked) status(err error, stderr io.Writer) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err == nil:
	case err == nil, errors.Is(err, errInterrupted), errors.Is(err, o.err):
		err = o.err // the interruption is its consequence
	default:
		err = errors.Join(o.err, err)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "iperf: %s\n", oneLine(err))
	return 1
}

// oneLine is an error for people: joined errors become one line.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
