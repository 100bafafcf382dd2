package link

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"dwnet/hw"
)

var (
	_ stack.LinkEndpoint = (*Endpoint)(nil)
	_ stack.GSOEndpoint  = (*Endpoint)(nil)
)

var broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// dispatcher boxes the stack's dispatcher for an atomic pointer.
type dispatcher struct{ stack.NetworkDispatcher }

// Endpoint is a stack.LinkEndpoint and stack.GSOEndpoint on one MAC. All methods may be called from any goroutine.
type Endpoint struct {
	opts  Options
	port  hw.Port
	mac   *hw.MAC
	irq   hw.Interrupt
	clock hw.Clock

	mtu         atomic.Uint32
	gsoMax      atomic.Uint32 // 0: off
	address     atomic.Uint64 // station address, first octet in bits 47:40
	promiscuous atomic.Bool
	groups      atomic.Pointer[map[[6]byte]bool] // joined multicast groups; nil: all multicast is passed
	attached    atomic.Pointer[dispatcher]
	unverified  atomic.Bool // the packet being delivered has checksums that nobody has looked at

	// Transmit: queue.go, pump.go.
	queue     queue
	txmu      sync.Mutex  // producer side of the ring, cut, and the fields up to the blank line
	cut       cutter      // the packet being sent
	paused    bool        // the ring is being rebuilt, or was given up
	sinceIC   int         // on-wire bytes committed since a completion interrupt was asked for
	pending   atomic.Bool // somebody enqueued and could not pump
	deferring atomic.Bool // the poll loop is delivering and pumps by itself
	linkUp    atomic.Bool
	icBytes   atomic.Int32 // spacing of completion interrupts in on-wire bytes

	// The poll loop's own: poll.go, receive.go, recovery.go.
	gro      gro
	watch    watchdog
	carrier  carrier
	nextTick time.Time

	// Configuration wished for by callers, carried out by the poll loop: config.go.
	cfgMu     sync.Mutex
	cfg       wishes
	cfgChange atomic.Bool

	// Life: lifecycle.go.
	lifeMu   sync.Mutex
	onClose  func()
	stopping atomic.Bool
	loop     atomic.Uint64 // identity of the poll loop's goroutine
	done     chan struct{}

	stats counters
}

// New resets and starts the MAC behind port and returns an endpoint for it, ready for CreateNIC. The endpoint owns the
// port from then on: Close, which the stack calls when it removes the NIC, closes it. If New fails, the MAC is stopped and
// the port is still the caller's. An invalid option matches ErrOptions, trouble with the device an *hw.Error.
func New(port hw.Port, opts Options) (*Endpoint, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	cfg := opts.Hardware
	cfg.Address, cfg.TXSlots, cfg.RXSlots, cfg.Logger = opts.Address, opts.TXSlots, opts.RXSlots, opts.Logger
	if opts.SoftwareRXChecksum {
		cfg.NoRXChecksum = true // an engine that is on drops what it takes for damaged
	}
	mac, err := hw.Open(port, cfg)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	e := &Endpoint{
		opts: opts, port: port, mac: mac, irq: port.Interrupt(), clock: port.Clock(),
		done: make(chan struct{}),
	}
	if err := e.checkMTU(opts.MTU); err != nil {
		mac.Close()
		return nil, err
	}
	e.mtu.Store(opts.MTU)
	e.address.Store(addressBits(mac.Address()))
	e.promiscuous.Store(opts.Promiscuous)
	e.queue.init(opts.QueuePackets, opts.QueueBytes)
	e.gro.deliver = func(pkt *stack.PacketBuffer) { e.deliver(pkt, true) }
	e.cfg = wishes{promiscuous: opts.Promiscuous, address: mac.Address()}
	if err := e.bringUp(); err != nil {
		mac.Close()
		return nil, fmt.Errorf("link: %w", err)
	}
	go e.run()
	return e, nil
}

// bringUp applies filters and the state of the link, and starts the MAC. The poll loop does not run yet.
func (e *Endpoint) bringUp() error {
	if err := e.mac.SetFilter(e.cfg.filter()); err != nil {
		return err
	}
	e.setGSO(1000)
	if l := e.opts.Link; l.Speed != 0 {
		if err := e.mac.SetLink(l); err != nil {
			return err
		}
	}
	e.checkCarrier()
	if err := e.mac.Start(); err != nil {
		return err
	}
	now := e.clock.Now()
	e.watch.progress(now)
	e.watch.lastRX = now
	e.mac.EnableInterrupts()
	return e.irq.Enable()
}

// MAC is the hardware below, for registers, counters and the PHY. Its rings belong to the endpoint.
func (e *Endpoint) MAC() *hw.MAC { return e.mac }

// MTU implements stack.LinkEndpoint. It is the size of the largest IP packet, without the Ethernet header.
func (e *Endpoint) MTU() uint32 { return e.mtu.Load() }

// SetMTU implements stack.LinkEndpoint. A value out of range, which ChangeMTU would refuse, is ignored.
func (e *Endpoint) SetMTU(mtu uint32) { _ = e.ChangeMTU(mtu) }

// ChangeMTU sets the MTU: 68..1500, less if the slots or FIFOs of the MAC are small. Packets queued for a larger one are
// dropped with a count when their turn comes; the GSO size follows for new connections.
func (e *Endpoint) ChangeMTU(mtu uint32) error {
	if err := e.checkMTU(mtu); err != nil {
		return err
	}
	e.mtu.Store(mtu)
	e.setGSO(int(e.stats.linkSpeed.Load()))
	return nil
}

// checkMTU refuses an MTU that is out of range or that the MAC cannot send or receive.
func (e *Endpoint) checkMTU(mtu uint32) error {
	if largest := min(maxMTU, e.mac.MaxMTU()); mtu < minMTU || int(mtu) > largest {
		return fmt.Errorf("link: %w: MTU is %d, want %d..%d", ErrOptions, mtu, minMTU, largest)
	}
	tx := e.mac.TX()
	if need := slotsFor(int(mtu)+ethernetHeader+vlanTag, tx.SlotBytes()); need > tx.Slots() {
		return fmt.Errorf("link: %w: TXSlots is %d, want at least %d for one frame", ErrOptions, tx.Slots(), need)
	}
	return nil
}

// MaxHeaderLength implements stack.LinkEndpoint.
func (e *Endpoint) MaxHeaderLength() uint16 { return ethernetHeader }

// Address is the station address.
func (e *Endpoint) Address() [6]byte {
	a := e.address.Load()
	return [6]byte{byte(a >> 40), byte(a >> 32), byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}
}

func addressBits(a [6]byte) uint64 {
	var bits uint64
	for _, b := range a {
		bits = bits<<8 | uint64(b)
	}
	return bits
}

// LinkAddress implements stack.LinkEndpoint.
func (e *Endpoint) LinkAddress() tcpip.LinkAddress {
	a := e.Address()
	return tcpip.LinkAddress(a[:])
}

// Capabilities implements stack.LinkEndpoint. Transmit checksums are computed by the stack, or here for packets that it
// marks so. The receive bit is looked at by the stack only while it takes over a packet that this endpoint delivers, and
// holds for that packet: see verdict.go.
func (e *Endpoint) Capabilities() stack.LinkEndpointCapabilities {
	c := stack.CapabilityResolutionRequired
	if !e.unverified.Load() {
		c |= stack.CapabilityRXChecksumOffload
	}
	return c
}

// ARPHardwareType implements stack.LinkEndpoint.
func (e *Endpoint) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareEther }

// AddHeader implements stack.LinkEndpoint.
func (e *Endpoint) AddHeader(pkt *stack.PacketBuffer) {
	src := pkt.EgressRoute.LocalLinkAddress
	if len(src) == 0 {
		src = e.LinkAddress()
	}
	header.Ethernet(pkt.LinkHeader().Push(ethernetHeader)).Encode(&header.EthernetFields{
		SrcAddr: src,
		DstAddr: pkt.EgressRoute.RemoteLinkAddress,
		Type:    pkt.NetworkProtocolNumber,
	})
}

// ParseHeader implements stack.LinkEndpoint.
func (e *Endpoint) ParseHeader(pkt *stack.PacketBuffer) bool {
	_, ok := pkt.LinkHeader().Consume(ethernetHeader)
	return ok
}

// GSOMaxSize implements stack.GSOEndpoint.
func (e *Endpoint) GSOMaxSize() uint32 { return e.gsoMax.Load() }

// SupportedGSO implements stack.GSOEndpoint. gVisor latches the answer when a connection is made.
func (e *Endpoint) SupportedGSO() stack.SupportedGSO {
	if e.gsoMax.Load() == 0 {
		return stack.GSONotSupported
	}
	return stack.HostGSOSupported
}

// setGSO sets the GSO size after a change of the link's speed.
func (e *Endpoint) setGSO(speed int) {
	switch size := e.opts.GSOMaxSize; size {
	case GSOOff:
		e.gsoMax.Store(0)
	case GSOAuto:
		e.gsoMax.Store(uint32(autoGSO(speed, e.mtu.Load())))
	default:
		e.gsoMax.Store(uint32(size))
	}
}
