package phy_test

import (
	"context"
	"testing"
	"time"

	"dwnet/hw"
	"dwnet/hw/phy"
	"dwnet/hw/sim"
)

const hangGuard = 30 * time.Second

// The simulated board's PHY is somebody else's reading of the same data sheets, behind a MAC's MDIO bus.
func TestOnTheSimulatedBoard(t *testing.T) {
	var boards [2]*sim.Board
	for i := range boards {
		b, err := sim.NewBoard(sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		boards[i] = b
	}
	cable, err := sim.Connect(boards[0], boards[1], sim.CableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cable.Close()
	port := boards[0].Port()
	m, err := hw.Open(port, hw.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := phy.Options{ID: phy.RTL8211F, Mode: port.Info().Mode, EEEBroken: phy.EEE1000T}
	p, err := phy.Open(m, port.Clock(), o)
	if err != nil {
		t.Fatal(err)
	}
	mon := phy.NewMonitor(p, phy.MonitorOptions{Interval: time.Millisecond})
	up := func(what string, link hw.Link) {
		t.Helper()
		if s, err := mon.WaitUp(context.Background(), hangGuard); err != nil || s.Link != link {
			t.Fatalf("%s: %+v, %v", what, s, err)
		}
	}
	down := func(what string) {
		t.Helper()
		c := port.Clock()
		for start := c.Now(); c.Now().Sub(start) < hangGuard; c.Sleep(time.Millisecond) {
			if s, _, err := mon.Poll(c.Now()); !s.Up || err != nil {
				return
			}
		}
		t.Fatalf("%s: the link stays up", what)
	}
	gigabit := hw.Link{Speed: 1000, FullDuplex: true}
	up("first", gigabit)
	if l, ok, err := m.LinkStatus(); !ok || err != nil || l != gigabit {
		t.Errorf("the MAC's own look at the PHY: %v, %v, %v", l, ok, err)
	}
	r, err := p.Report()
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := phy.DelaysFor(o.Mode); r.Delays != want || r.ALDPS || r.EEE.Advertised != 0 || r.EEE.Active || !r.Status.Complete {
		t.Errorf("%+v", r)
	}
	cable.Unplug()
	down("unplugged")
	cable.Plug()
	up("plugged", gigabit)
	for _, s := range []struct {
		set  phy.Settings
		link hw.Link
	}{
		{phy.Settings{Advertise: phy.Mode100Full}, hw.Link{Speed: 100, FullDuplex: true}},
		{phy.Settings{Advertise: phy.Mode10Half}, hw.Link{Speed: 10}},
		{phy.Settings{}, gigabit},
	} {
		if restarted, err := p.Apply(s.set); err != nil || !restarted {
			t.Errorf("%v: %v, %v", s.set, restarted, err)
		}
		down(s.link.String())
		up(s.link.String(), s.link)
	}
	// A second user finds the link up and leaves it so.
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if p, err = phy.Open(m, port.Clock(), o); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Status(); err != nil || !s.Up || s.Link != gigabit {
		t.Errorf("opened again: %+v, %v", s, err)
	}
	for i, b := range boards {
		for _, v := range b.Violations() {
			t.Errorf("board %d: %v", i, v)
		}
	}
}
