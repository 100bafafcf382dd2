package link

import (
	"flag"
	"testing"
	"time"

	"dwnet/hw/sim"
)

var large = flag.Int64("large", 0, "bytes of TestLargeTransfer on a clean wire and without GSO, a sixteenth of it with GSO on a bad one; 0: sizes that take seconds")

// A large transfer each way has equal SHA-256 sums at both ends, on a clean gigabit wire, and on one that damages a frame in
// a hundred: the MAC counts CRC errors, TCP repairs the stream. The rates are for the log: with GSO, gVisor's TCP is slow on a
// wire that bad.
//
//	go test ./link -run LargeTransfer -v -large 1073741824 -timeout 1h
func TestLargeTransfer(t *testing.T) {
	for _, tc := range []struct {
		name        string
		damage      float64
		gso         int
		short, long int64
	}{
		{"clean", 0, GSOAuto, size(128 << 20), *large},
		{"1 % damaged, no GSO", 0.01, GSOOff, max(2<<20, size(16<<20)), *large},
		{"1 % damaged, GSO", 0.01, GSOAuto, 2 << 20, *large / 16}, // enough frames for damage to be certain
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := tc.short
			if *large > 0 {
				n = tc.long
			}
			a, b, cable := pair(t, sim.CableOptions{SpeedMbps: 1000, DamageRate: tc.damage}, Options{GSOMaxSize: tc.gso})
			for _, dir := range [][2]*host{{a, b}, {b, a}} {
				from, to := dir[0], dir[1]
				tcp := from.stack.Stats().TCP
				rto, again, start := tcp.Timeouts.Value(), tcp.Retransmits.Value(), time.Now()
				transfer(t, from, to, false, n)
				t.Logf("%d bytes: %.1f Mbit/s, %d retransmits, %d RTOs", n, float64(n)*8/time.Since(start).Seconds()/1e6,
					tcp.Retransmits.Value()-again, tcp.Timeouts.Value()-rto)
				if got := to.ep.Stats().MAC.RXCRCError; (got > 0) != (tc.damage > 0) {
					t.Errorf("%d CRC errors counted by the MAC", got)
				}
			}
			s := cable.Stats()
			t.Logf("host_stall %.2f %%", 100*s.HostStall.Seconds()/(s.Elapsed+s.HostStall).Seconds())
		})
	}
}
