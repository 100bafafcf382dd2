package netdev

import (
	"errors"
	"fmt"
	"io"

	"dwnet/hw"
	"dwnet/hw/sim"
)

// CableOptions describe the cable of a simulated board.
type CableOptions struct {
	SpeedMbps  int       // 1000, 100 or 10; 0: no wire time
	LossRate   float64   // share of frames that do not arrive
	DamageRate float64   // share of frames that arrive with bit errors
	Capture    io.Writer // gets every frame as pcap; nil: none
	Clock      hw.Clock  // nil: the machine's
}

// Bench is simulated hardware: one or two boards and what they are plugged into.
type Bench struct {
	Boards []*sim.Board
	Cable  *sim.Cable
	tap    *sim.TAP
}

func (o CableOptions) connect(a, b sim.End) (*sim.Cable, error) {
	return sim.Connect(a, b, sim.CableOptions{
		SpeedMbps: o.SpeedMbps, LossRate: o.LossRate, DamageRate: o.DamageRate, Capture: o.Capture, Clock: o.Clock,
	})
}

// TwoBoards makes two boards on one cable.
func TwoBoards(o CableOptions) (*Bench, error) {
	b := new(Bench)
	for range 2 {
		board, err := sim.NewBoard(sim.Options{Clock: o.Clock})
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.Boards = append(b.Boards, board)
	}
	var err error
	if b.Cable, err = o.connect(b.Boards[0], b.Boards[1]); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// BoardOnTAP makes a board whose cable ends at a TAP interface of this machine, which is created if there is none.
func BoardOnTAP(name string, o CableOptions) (*Bench, error) {
	b := new(Bench)
	tap, err := sim.OpenTAP(sim.TAPOptions{Name: name})
	if err != nil {
		return nil, err
	}
	b.tap = tap
	board, err := sim.NewBoard(sim.Options{Clock: o.Clock})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	b.Boards = append(b.Boards, board)
	if b.Cable, err = o.connect(board, tap); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close takes everything apart. A TAP interface that was created vanishes. It returns what the capture failed with, if it
// did, or what a driver has done wrong.
func (b *Bench) Close() error {
	var errs []error
	if b.Cable != nil {
		errs = append(errs, b.Cable.Close())
	}
	if b.tap != nil {
		errs = append(errs, b.tap.Close())
	}
	for _, board := range b.Boards {
		for _, v := range board.Violations() {
			errs = append(errs, fmt.Errorf("driver of %s: %v", board.Name(), v))
		}
		errs = append(errs, board.Close())
	}
	return errors.Join(errs...)
}

// HostStall is by how much this machine was too slow for the wire, and its share of the time that passed on it.
func (b *Bench) HostStall() (seconds, percent float64) {
	s := b.Cable.Stats()
	seconds = s.HostStall.Seconds()
	if all := s.Elapsed.Seconds() + seconds; all > 0 {
		percent = 100 * seconds / all
	}
	return seconds, percent
}
