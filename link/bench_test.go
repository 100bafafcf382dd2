package link

import (
	"runtime"
	"sync/atomic"
	"testing"

	"gvisor.dev/gvisor/pkg/refs"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw/sim"
)

// benchPort is an endpoint on a board whose cable has no wire time and ends in a host.
func benchPort(b *testing.B, o Options, rx func([]byte)) (*Endpoint, *sim.Host) {
	refs.SetLeakMode(refs.NoLeakChecking) // it counts every reference, with allocations
	b.Cleanup(func() { refs.SetLeakMode(refs.LeaksPanic) })
	board := newBoard(b, sim.Options{})
	h := sim.NewHost(rx)
	cable, err := sim.Connect(board, h, sim.CableOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ep, err := New(board.Port(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ep.Close()
		cable.Close()
		h.Close()
	})
	eventually(b, "link", ep.linkUp.Load)
	return ep, h
}

// BenchmarkTransmit is the way of a frame from WritePackets to the wire, the simulated MAC's work included: packets of one
// frame, and TCP packets of 46.
func BenchmarkTransmit(b *testing.B) {
	super := superPacket{payload: make([]byte, 46*1420), tcpOpts: make([]byte, 12)}
	flat, hdrLen := super.bytes()
	for name, pkt := range map[string]*stack.PacketBuffer{
		"frame": rawPacket(1514),
		"GSO":   packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: 1420}, hdrLen, 32768),
	} {
		b.Run(name, func(b *testing.B) {
			var frames atomic.Int64
			ep, _ := benchPort(b, Options{}, func([]byte) { frames.Add(1) })
			var list stack.PacketBufferList
			list.PushBack(pkt)
			b.ReportAllocs()
			before := ep.stats.txFrames.Load()
			for b.Loop() {
				for {
					if _, err := ep.WritePackets(list); err == nil {
						break
					}
					runtime.Gosched()
				}
			}
			eventually(b, "all frames sent", func() bool {
				n, _ := ep.queue.length()
				return n == 0 && uint64(frames.Load()) == ep.stats.txFrames.Load()
			})
			n := float64(ep.stats.txFrames.Load() - before)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/frame")
			b.ReportMetric(n/float64(b.N), "frames/op")
		})
		pkt.DecRef()
	}
}

// BenchmarkReceive is the way of a frame from the wire to the dispatcher.
func BenchmarkReceive(b *testing.B) {
	for name, forwarding := range map[string]bool{"GRO": false, "one by one": true} {
		b.Run(name, func(b *testing.B) {
			var bytes atomic.Int64
			ep, h := benchPort(b, Options{Forwarding: forwarding}, nil)
			ep.Attach(dispatch(func(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) { bytes.Add(int64(pkt.Data().Size())) }))
			var train [][]byte
			for i := range 64 {
				f := rx{seq: uint32(i * 1420), n: 1420, window: 9}.frame()
				a := ep.Address()
				copy(f, a[:])
				train = append(train, f)
			}
			b.ReportAllocs()
			b.SetBytes(1474)
			i := 0
			for b.Loop() {
				for h.Send(train[i%len(train)]) != nil {
					runtime.Gosched()
				}
				i++
			}
			eventually(b, "all frames received", func() bool { return ep.stats.rxPackets.Load() == uint64(i) })
			b.ReportMetric(float64(ep.stats.rxMerged.Load())/float64(i), "merged/frame")
		})
	}
}
