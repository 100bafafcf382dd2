// Package link gives a gVisor network stack an Ethernet port: an [Endpoint] is a stack.LinkEndpoint that drives a
// DesignWare MAC through package hw, from user space.
//
//	ep, err := link.New(port, link.Options{})   // port: a simulated board's, or real registers
//	s.CreateNIC(1, ep)
//
// # Transmit
//
// WritePackets never blocks. It checks the packets, keeps a reference to each and appends them to a bounded queue
// (queue.go). The pump (pump.go) moves frames from the queue to the MAC's ring while the ring has room. It is run by
// whoever finds it idle: the writer itself, for a bounded number of frames, or the poll loop. Large TCP packets
// ("GSO", stack.HostGSOSupported) wait whole and are cut into frames one at a time, straight into DMA memory (segment.go).
//
// # Receive
//
// One goroutine, the poll loop (poll.go), owns the receive ring. Each frame is copied once into pooled memory and its
// slot is given back to the MAC at once, whatever became of the frame (receive.go). TCP segments that follow one another
// are merged, and acknowledgements that a later one supersedes are dropped, before the stack sees them (gro.go), unless
// Options.Forwarding asks for every frame as it came.
//
// The stack takes an endpoint's receive checksum capability as a promise for each packet, but the MAC does not look into
// fragments, unknown protocols or stacked tags. So Capabilities answers for the packet that is being delivered: see verdict.go.
//
// # Life
//
// New opens and starts the MAC; Close ends everything and is also what the stack calls when the NIC is removed
// (lifecycle.go). Attach(nil) and Wait never wait for the delivering goroutine, since the stack holds its own lock around
// them. When the device stops working the poll loop repairs it in stages (recovery.go) and connections live on.
//
// # Locks
//
//	lifeMu   on-close action, closed flag; leaf
//	cfgMu    configuration wished for by callers (address, filter); leaf
//	qmu      the transmit queue; held for nanoseconds, never across a copy or a register access; leaf
//	txmu     the producer side of the transmit ring; taken with TryLock by writers; only qmu is taken inside it
//
// No lock of this package is held across a call into gVisor. Dropping a packet's last reference is such a call.
package link
