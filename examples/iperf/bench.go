package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"dwnet/examples/internal/netdev"
	"dwnet/hw/sim"
	"dwnet/link"
)

// bench is the hardware, with the file that frames go to.
type bench struct {
	*netdev.Bench
	file *os.File
	buf  *bufio.Writer
}

// open makes two boards for the demonstration and otherwise one on a TAP interface.
func (c *config) open() (*bench, error) {
	b := new(bench)
	o := netdev.CableOptions{SpeedMbps: c.speed, LossRate: c.loss, DamageRate: c.damage}
	if c.pcap != "" {
		f, err := os.Create(c.pcap)
		if err != nil {
			return nil, fmt.Errorf("-pcap: %w", err)
		}
		b.file, b.buf = f, bufio.NewWriterSize(f, 1<<20)
		o.Capture = b.buf
	}
	var err error
	if c.mode == "demo" {
		b.Bench, err = netdev.TwoBoards(o)
	} else {
		b.Bench, err = netdev.BoardOnTAP(c.tap, o)
	}
	if err != nil {
		return nil, errors.Join(err, b.closeFile())
	}
	return b, nil
}

// device starts the driver and a stack on one of the boards.
func (c *config) device(b *sim.Board, addrs ...netip.Prefix) (*netdev.Device, error) {
	return netdev.Open(b.Port(), netdev.Options{Addresses: addrs, Link: link.Options{GSOMaxSize: c.gsoMax}})
}

func (b *bench) closeFile() error {
	if b.file == nil {
		return nil
	}
	return errors.Join(b.buf.Flush(), b.file.Close())
}

// Close takes the hardware apart and finishes the file.
func (b *bench) Close() error {
	return errors.Join(b.Bench.Close(), b.closeFile())
}

// say is where progress goes: standard output, unless that is for a program.
func (c *config) say(stdout, stderr io.Writer) io.Writer {
	if c.json {
		return stderr
	}
	return stdout
}

// text is where text reports go: nowhere if the output is for a program.
func (c *config) text(stdout io.Writer) io.Writer {
	if c.json {
		return nil
	}
	return stdout
}

// interrupted is what a command says that was ended by a signal before it was done.
var errInterrupted = errors.New("interrupted")

func interruptedBy(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}
