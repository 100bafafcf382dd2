package link

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"dwnet/hw"
)

const (
	ethernetHeader = 14 // destination, source, EtherType
	vlanTag        = 4
	minMTU         = 68   // RFC 791: every IPv4 module must be able to forward 68 octets without fragmentation
	maxMTU         = 1500 // standard Ethernet; a frame, its FCS and one VLAN tag fit a slot and both FIFOs of an S805

	// tcpReserve is what gVisor's TCP takes off GSOMaxSize for headers before it sizes the payload of a packet, and one:
	// maxPayload = GSOMaxSize - 160 - 1 (transport/tcp/snd.go). Computed unsigned: a smaller GSOMaxSize wraps.
	tcpReserve = 161
	// gVisorMSS is the payload of a full TCP segment at MTU 1500: gVisor reserves all 40 bytes of options.
	gVisorMSS = 1420
	// maxGSO is the largest useful size: 46 whole segments. 65536 would give a 47th of 55 bytes.
	maxGSO = tcpReserve + 46*gVisorMSS
)

// Values of [Options.GSOMaxSize] with a meaning of their own.
const (
	GSOAuto = 0  // follow the speed of the link
	GSOOff  = -1 // no segmentation offload: TCP makes every frame
)

// ErrOptions is what errors about an invalid [Options] match with errors.Is.
var ErrOptions = errors.New("invalid link option")

// Options configure an [Endpoint]. The zero value works.
type Options struct {
	// Address is the station (MAC) address. Zero: the port's, which comes from a fuse or the device tree.
	Address [6]byte

	// MTU is the largest IP packet in bytes, 68..1500. 0: 1500.
	MTU uint32

	// GSOMaxSize bounds the TCP packets that the stack hands over to be cut into frames here, in bytes, as
	// stack.GSOEndpoint defines it: 161 + 2*MSS .. 65536, where gVisor's MSS is 1420 at MTU 1500. GSOAuto (0) is about one
	// millisecond of wire at the link's speed, at most 46 segments. GSOOff (-1) turns it off. gVisor latches the size when
	// a connection is made.
	GSOMaxSize int

	// QueueBytes and QueuePackets bound what waits in front of the ring, on-wire bytes and packets. A packet that does not
	// fit is refused with ErrNoBufferSpace and counted. 0: 4 MiB and 10240.
	QueueBytes   int
	QueuePackets int

	// TXSlots and RXSlots are the sizes of the DMA rings. 0: 256 and 512.
	TXSlots, RXSlots int

	// Forwarding is for stacks that route between NICs: frames are delivered one by one as they came, since a merged
	// packet is larger than the MTU of the other side and would be dropped there if it must not be fragmented.
	Forwarding bool

	// Promiscuous passes frames for other stations, too.
	Promiscuous bool

	// SoftwareRXChecksum ignores the MAC's checksum verdict and verifies every packet in software.
	SoftwareRXChecksum bool

	// Link fixes speed and duplex mode. Zero: what the PHY has negotiated, looked at once a second.
	Link hw.Link

	// HangTime is how long the ring may hold frames without one leaving before the MAC is taken to be stuck, 10 ms or more.
	// 0: 1 s.
	HangTime time.Duration

	// Hardware is passed on to hw.Open. Address, ring sizes and logger are overridden by the fields here.
	Hardware hw.Config

	// Logger gets start-up, link changes and recovery. Nil: nothing is logged.
	Logger *slog.Logger
}

// withDefaults checks o and fills in what is zero.
func (o Options) withDefaults() (Options, error) {
	bad := func(field string, value any, want string) error {
		return fmt.Errorf("link: %w: %s is %v, want %s", ErrOptions, field, value, want)
	}
	if o.MTU == 0 {
		o.MTU = maxMTU
	}
	if o.MTU < minMTU || o.MTU > maxMTU {
		return o, bad("MTU", o.MTU, fmt.Sprintf("%d..%d", minMTU, maxMTU))
	}
	if err := checkGSO(o.GSOMaxSize, o.MTU); err != nil {
		return o, err
	}
	if o.QueueBytes == 0 {
		o.QueueBytes = 4 << 20
	}
	if o.QueueBytes < 64<<10 || o.QueueBytes > 1<<30 {
		return o, bad("QueueBytes", o.QueueBytes, "65536..1073741824")
	}
	if o.QueuePackets == 0 {
		o.QueuePackets = 10240
	}
	if o.QueuePackets < 1 || o.QueuePackets > 1<<20 {
		return o, bad("QueuePackets", o.QueuePackets, "1..1048576")
	}
	if o.TXSlots == 0 {
		o.TXSlots = 256
	}
	if o.RXSlots == 0 {
		o.RXSlots = 512
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"TXSlots", o.TXSlots}, {"RXSlots", o.RXSlots}} {
		if f.value < 2 || f.value > 4096 {
			return o, bad(f.name, f.value, "2..4096")
		}
	}
	if o.HangTime == 0 {
		o.HangTime = time.Second
	}
	if o.HangTime < 10*time.Millisecond {
		return o, bad("HangTime", o.HangTime, "10ms or more")
	}
	switch o.Link.Speed {
	case 0, 10, 100, 1000:
	default:
		return o, bad("Link.Speed", o.Link.Speed, "10, 100 or 1000")
	}
	if o.Address[0]&1 != 0 {
		return o, bad("Address", fmt.Sprintf("% x", o.Address), "a unicast address")
	}
	return o, nil
}

// checkGSO refuses the sizes that gVisor mis-handles: its TCP computes size - 161 unsigned, and an IP packet cannot be
// larger than 65535 bytes.
func checkGSO(size int, mtu uint32) error {
	if size == GSOAuto || size == GSOOff {
		return nil
	}
	if low := minGSO(mtu); size < low || size > 65536 {
		return fmt.Errorf("link: %w: GSOMaxSize is %d, want %d..65536, 0 for automatic or -1 for off", ErrOptions, size, low)
	}
	return nil
}

// minGSO is the smallest GSO size worth having: two segments. With one there is nothing to cut.
func minGSO(mtu uint32) int {
	return tcpReserve + 2*mssOf(mtu)
}

// mssOf is the payload of gVisor's full segments over IPv4: MTU less IP header, TCP header and all TCP options. Small MTUs
// leave nothing of it; 8 is the least that is cut.
func mssOf(mtu uint32) int { return max(int(mtu)-80, 8) }

// autoGSO is the size for a link of the given speed: what the wire carries in a millisecond, so that one packet does not
// hold the queue for longer, but two segments at least and 46 at most, in whole segments.
func autoGSO(speedMbps int, mtu uint32) int {
	mss := mssOf(mtu)
	bytesPerMillisecond := speedMbps * 1000 / 8
	n := max(2, min(bytesPerMillisecond/mss, (maxGSO-tcpReserve)/mss))
	return tcpReserve + n*mss
}
