package link

import (
	"testing"

	"dwnet/hw"
	"dwnet/hw/sim"
)

// A board that is wired for 100 Mbit/s comes up and works, resets included (case RST-01).
func TestRMIIBoard(t *testing.T) {
	checkGoroutines(t)
	x, y := newBoard(t, sim.Options{PHYMode: "rmii"}), newBoard(t, sim.Options{PHYMode: "rmii"})
	cable, err := sim.Connect(x, y, sim.CableOptions{SpeedMbps: 100, BackPressure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer cable.Close()
	a, b := newHost(t, x, 1, Options{}), newHost(t, y, 2, Options{})
	transfer(t, a, b, false, 1<<20)
	x.Faults().InjectBusError(sim.BusErrorTXData)
	eventually(t, "reset", func() bool { return a.ep.Stats().Resets > 0 })
	transfer(t, b, a, false, 1<<20)
	if l, up := a.ep.LinkState(); !up || l.Speed != 100 {
		t.Errorf("link %+v, up %t", l, up)
	}
}

// Bytes sent are bytes received, with and without segmentation, over both IP versions, at each speed, and the driver breaks
// no rule of the hardware while doing so.
func TestTransfer(t *testing.T) {
	for name, tc := range map[string]struct {
		cable sim.CableOptions
		o     Options
		v6    bool
		n     int64
	}{
		"unlimited":                 {n: 64 << 20},
		"unlimited, IPv6":           {v6: true, n: 16 << 20},
		"unlimited, no GSO":         {o: Options{GSOMaxSize: GSOOff}, n: 16 << 20},
		"unlimited, small GSO":      {o: Options{GSOMaxSize: 161 + 2*1420}, n: 16 << 20},
		"unlimited, forwarding":     {o: Options{Forwarding: true}, n: 16 << 20},
		"software checksums":        {o: Options{SoftwareRXChecksum: true}, n: 16 << 20},
		"MAC without checksums":     {o: Options{Hardware: hw.Config{NoRXChecksum: true}}, n: 16 << 20},
		"tiny rings":                {o: Options{TXSlots: 2, RXSlots: 2}, n: 1 << 20},
		"gigabit":                   {cable: sim.CableOptions{SpeedMbps: 1000, BackPressure: true}, n: 32 << 20},
		"100 Mbit/s":                {cable: sim.CableOptions{SpeedMbps: 100, BackPressure: true}, n: 4 << 20},
		"10 Mbit/s":                 {cable: sim.CableOptions{SpeedMbps: 10, BackPressure: true}, n: 1 << 19},
		"one frame in 1000 damaged": {cable: sim.CableOptions{DamageRate: 0.001}, o: Options{GSOMaxSize: GSOOff}, n: 16 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pair(t, tc.cable, tc.o)
			transfer(t, a, b, tc.v6, size(tc.n))
			transfer(t, b, a, tc.v6, size(tc.n)/4)
			if s := a.ep.Stats(); s.Resets+s.TXRestarts+s.TXRekicks != 0 {
				t.Errorf("recovery without a fault: %+v", s)
			}
		})
	}
}
