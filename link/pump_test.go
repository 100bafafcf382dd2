package link

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
	"dwnet/hw/sim"
)

// timeless opens an endpoint on a board whose clock stands still once the link is up: from then on no timer helps, and
// whatever is not brought about by an interrupt or a wake-up never happens.
func timeless(t *testing.T, o Options, rx func([]byte)) (*Endpoint, *sim.Host) {
	t.Helper()
	return timelessOn(t, sim.NewSteppedClock(time.Unix(1e9, 0)), o, rx)
}

func timelessOn(t *testing.T, clock *sim.SteppedClock, o Options, rx func([]byte)) (*Endpoint, *sim.Host) {
	t.Helper()
	checkGoroutines(t)
	o.Link = hw.Link{Speed: 1000, FullDuplex: true} // the loop must not be caught within an MDIO access, which takes time
	running := make(chan struct{})
	var stepper sync.WaitGroup
	step := func() {
		running = make(chan struct{})
		stepper.Go(func() {
			for {
				select {
				case <-running:
					return
				default:
					clock.Advance(100 * time.Microsecond)
					runtime.Gosched()
				}
			}
		})
	}
	halt := func() {
		close(running)
		stepper.Wait()
	}
	board := newBoard(t, sim.Options{Clock: clock})
	h := sim.NewHost(rx)
	cable, err := sim.Connect(board, h, sim.CableOptions{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	step()
	ep, err := New(board.Port(), o)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "link", func() bool { _, up, _ := ep.mac.LinkStatus(); return up })
	halt()
	t.Cleanup(func() {
		step() // stopping the MAC takes time
		ep.Close()
		halt()
		cable.Close()
		h.Close()
	})
	return ep, h
}

// Under random schedules of writers, receiver and completions no packet stays queued while the ring has room, and all of that
// without a timer (cases TXR-14, IRQ-01, IRQ-09).
func TestNothingStaysQueued(t *testing.T) {
	for name, slots := range map[string]int{"2 slots": 2, "8 slots": 8, "256 slots": 256} {
		t.Run(name, func(t *testing.T) {
			var frames, deliveries atomic.Int64
			ep, h := timeless(t, Options{TXSlots: slots, RXSlots: 16}, func([]byte) { frames.Add(1) })
			ep.Attach(dispatch(func(_ tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
				var list stack.PacketBufferList
				list.PushBack(rawPacket(64)) // a reply from within the delivery
				ep.WritePackets(list)
				list.Reset()
				deliveries.Add(1)
			}))
			super := superPacket{payload: make([]byte, 20000)}
			flat, hdrLen := super.bytes()
			var want atomic.Int64
			const rounds, perWriter = 20, 50
			n := rounds
			if testing.Short() {
				n = 3
			}
			for round := range n {
				var writers sync.WaitGroup
				for w := range 4 {
					writers.Go(func() {
						r := rand.New(rand.NewPCG(uint64(round), uint64(w)))
						for range perWriter {
							pkt, cut := rawPacket(60+r.IntN(1400)), int64(1)
							if r.IntN(8) == 0 {
								pkt.DecRef()
								mss := 400 + r.IntN(1000)
								cut = int64((len(super.payload) + mss - 1) / mss)
								pkt = packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: uint16(mss)}, hdrLen, 4096)
							}
							var list stack.PacketBufferList
							list.PushBack(pkt)
							if _, err := ep.WritePackets(list); err != nil {
								t.Errorf("write: %v", err)
							}
							list.Reset()
							want.Add(cut)
							for range r.IntN(3) {
								runtime.Gosched()
							}
						}
					})
				}
				writers.Go(func() {
					for range perWriter {
						eventually(t, "the host takes a frame", func() bool { return h.Send(ethernet(ep.Address(), 0x88b5, 46)) == nil })
					}
				})
				writers.Wait()
				want.Add(perWriter)
				eventually(t, "every frame is sent", func() bool { return frames.Load() == want.Load() })
			}
			if got := deliveries.Load(); got != int64(n*perWriter) {
				t.Errorf("%d frames delivered, want %d", got, n*perWriter)
			}
			if s := ep.Stats(); s.TXFrames != uint64(want.Load()) || s.Drops() != 0 {
				t.Errorf("%d frames counted, want %d; %d drops", s.TXFrames, want.Load(), s.Drops())
			}
		})
	}
}

// A burst needs one doorbell and one completion interrupt, not one a frame (cases TXR-09, E-40).
func TestOneDoorbellABurst(t *testing.T) {
	var frames atomic.Int64
	ep, _ := timeless(t, Options{}, func([]byte) { frames.Add(1) })
	p := superPacket{payload: make([]byte, 30*1420)}
	flat, hdrLen := p.bytes()
	pkt := packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: 1420}, hdrLen, 4096)
	before := ep.Stats()
	var list stack.PacketBufferList
	list.PushBack(pkt)
	ep.WritePackets(list)
	list.Reset()
	eventually(t, "all frames are sent", func() bool { return frames.Load() == 30 })
	if got := ep.Stats().TXKicks - before.TXKicks; got != 1 {
		t.Errorf("%d doorbells for one packet of 30 frames", got)
	}
}

// What WritePackets answers, and that each packet it does not take is counted (cases COE-08, GSO-06, GSO-17, GV-03, GV-09).
func TestWritePacketsAnswers(t *testing.T) {
	var frames atomic.Int64
	ep, _ := timeless(t, Options{MTU: 1000, QueueBytes: 1 << 16, QueuePackets: 20}, func([]byte) { frames.Add(1) })
	write := func(pkts ...*stack.PacketBuffer) (int, string) {
		var list stack.PacketBufferList
		for _, p := range pkts {
			list.PushBack(p)
		}
		n, err := ep.WritePackets(list)
		list.Reset()
		if err == nil {
			return n, ""
		}
		return n, err.String()
	}
	super := superPacket{payload: make([]byte, 5000)}
	flat, hdrLen := super.bytes()
	gso := func(mss uint16) *stack.PacketBuffer {
		return packet(flat, hdrLen, stack.GSO{Type: stack.GSOTCPv4, NeedsCsum: true, MSS: mss}, hdrLen, 900)
	}
	type answer struct {
		N       int
		Err     string
		Counter uint64
	}
	for _, tc := range []struct {
		name    string
		pkts    func() []*stack.PacketBuffer
		counter string
		want    answer
	}{
		{"empty list", func() []*stack.PacketBuffer { return nil }, "TXFrames", answer{}},
		{"largest frame", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{rawPacket(1014)} }, "TXFrames", answer{1, "", 1}},
		{"one byte more", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{rawPacket(1015)} }, "TXTooLong", answer{0, (&tcpip.ErrMessageTooLong{}).String(), 1}},
		{"only a header", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{rawPacket(14)} }, "TXFrames", answer{1, "", 1}},
		{"no header", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{rawPacket(13)} }, "TXShort", answer{0, (&tcpip.ErrMalformedHeader{}).String(), 1}},
		{"segments fit", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{gso(960)} }, "TXFrames", answer{1, "", 6}},
		{"segments do not fit", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{gso(961)} }, "TXTooLong", answer{0, (&tcpip.ErrMessageTooLong{}).String(), 1}},
		{"MSS 0", func() []*stack.PacketBuffer { return []*stack.PacketBuffer{gso(0)} }, "TXBadGSO", answer{0, (&tcpip.ErrMalformedHeader{}).String(), 1}},
		{"good, bad, good", func() []*stack.PacketBuffer {
			return []*stack.PacketBuffer{rawPacket(60), rawPacket(2000), rawPacket(60)}
		}, "TXFrames", answer{2, (&tcpip.ErrMessageTooLong{}).String(), 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := count(ep.Stats(), tc.counter)
			n, err := write(tc.pkts()...)
			eventually(t, "the queue empties", func() bool { n, _ := ep.queue.length(); return n == 0 && ep.mac.TX().Pending() == 0 })
			if diff := cmp.Diff(tc.want, answer{n, err, count(ep.Stats(), tc.counter) - before}); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("queue full", func(t *testing.T) {
		ep.pause(true) // nothing leaves the queue
		before := ep.Stats()
		for i := range 25 {
			if _, err := write(rawPacket(60)); (err == "") != (i < 20) {
				t.Errorf("packet %d: %q", i, err)
			}
		}
		if got := ep.Stats().TXQueueFull - before.TXQueueFull; got != 5 {
			t.Errorf("%d packets counted as refused, want 5", got)
		}
		ep.pause(false)
		ep.pumpFromWriter()
		eventually(t, "the queue empties", func() bool { n, _ := ep.queue.length(); return n == 0 })
	})
}

// A reference is dropped with no lock held: OnRelease may write again, as a UDP socket's notification may (design of the
// pump; case GV-03).
func TestReleaseMayWrite(t *testing.T) {
	var frames atomic.Int64
	ep, _ := timeless(t, Options{TXSlots: 4}, func([]byte) { frames.Add(1) })
	left := 500
	var send func()
	var mu sync.Mutex
	send = func() {
		mu.Lock()
		left--
		more := left >= 0
		mu.Unlock()
		if !more {
			return
		}
		pkt := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: rawPayload(60), OnRelease: send})
		pkt.LinkHeader().Consume(ethernetHeader)
		var list stack.PacketBufferList
		list.PushBack(pkt)
		ep.WritePackets(list)
		list.Reset()
	}
	within(t, "writing", send)
	eventually(t, "all frames are sent", func() bool { return frames.Load() == 500 })
}
