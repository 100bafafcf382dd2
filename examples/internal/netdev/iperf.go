package netdev

import (
	"errors"
	"fmt"
	"net"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"dwnet/examples/internal/iperf3"
	"dwnet/hw"
)

// past is a deadline that has passed: setting it ends a blocked call.
var past = time.Unix(1, 0)

// Sockets are the options and figures of the device's connections.
func (d *Device) Sockets() iperf3.Sockets { return sockets{d} }

type sockets struct{ d *Device }

// endpoint is the stack's side of a connection of this package; nil if it is another's.
func endpoint(c any) (ep tcpip.Endpoint, isTCP bool) {
	switch c := c.(type) {
	case tcpConn:
		return c.ep, true
	case *udpConn:
		return c.ep, false
	}
	return nil, false
}

// setBuffers fixes the sizes of a socket's buffers, which ends their automatic growth. 0 leaves one alone.
func setBuffers(ep tcpip.Endpoint, send, receive int) {
	if send > 0 {
		ep.SocketOptions().SetSendBufferSize(int64(send), true)
	}
	if receive > 0 {
		ep.SocketOptions().SetReceiveBufferSize(int64(receive), true)
	}
}

func (s sockets) Configure(c any, o iperf3.SocketOptions) error {
	ep, isTCP := endpoint(c)
	if ep == nil {
		return errors.New("not a socket of this stack")
	}
	var errs []error
	try := func(what string, err tcpip.Error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %v", what, err))
		}
	}
	send := o.Window
	if !isTCP {
		send = min(send, udpSendBuffer)
	}
	setBuffers(ep, send, o.Window)
	try("TOS", ep.SetSockOptInt(tcpip.IPv4TOSOption, o.TOS))
	try("traffic class", ep.SetSockOptInt(tcpip.IPv6TrafficClassOption, o.TOS))
	if !isTCP {
		pmtu := tcpip.PMTUDiscoveryWant
		if o.DontFragment {
			pmtu = tcpip.PMTUDiscoveryDo
		}
		if err := ep.SetSockOptInt(tcpip.MTUDiscoverOption, int(pmtu)); o.DontFragment {
			try("DF", err)
		}
		return errors.Join(errs...)
	}
	ep.SocketOptions().SetDelayOption(!o.NoDelay)
	if o.Congestion != "" {
		cc := tcpip.CongestionControlOption(o.Congestion)
		try("congestion control "+o.Congestion, ep.SetSockOpt(&cc))
	}
	if o.KeepAlive > 0 {
		idle, interval := tcpip.KeepaliveIdleOption(o.KeepAlive), tcpip.KeepaliveIntervalOption(o.KeepAlive)
		try("keep-alive idle", ep.SetSockOpt(&idle))
		try("keep-alive interval", ep.SetSockOpt(&interval))
		try("keep-alive count", ep.SetSockOptInt(tcpip.KeepaliveCountOption, 4))
		ep.SocketOptions().SetKeepAlive(true)
	}
	return errors.Join(errs...)
}

// optionsOfSegment is what the time stamp option takes of a segment (RFC 7323, appendix A): Linux and gVisor use it.
const optionsOfSegment = 12

// maxOptions is the space that gVisor's TCP leaves for options in every segment that it sends.
const maxOptions = 40

func (s sockets) Info(c net.Conn) (iperf3.TCPInfo, bool) {
	ep, isTCP := endpoint(c)
	if !isTCP {
		return iperf3.TCPInfo{}, false
	}
	stats, ok := ep.Stats().(*tcp.Stats)
	if !ok {
		return iperf3.TCPInfo{}, false
	}
	var info tcpip.TCPInfoOption
	var cc tcpip.CongestionControlOption
	if ep.GetSockOpt(&info) != nil || ep.GetSockOpt(&cc) != nil {
		return iperf3.TCPInfo{}, false
	}
	mtu := int(s.d.Endpoint.MTU())
	headers := header.IPv4MinimumSize + header.TCPMinimumSize
	if a, err := ep.GetRemoteAddress(); err == nil && a.Addr.Len() == header.IPv6AddressSize && a.Addr.To4().Len() != header.IPv4AddressSize {
		headers = header.IPv6MinimumSize + header.TCPMinimumSize
	}
	return iperf3.TCPInfo{
		Retransmits: int64(stats.SendErrors.Retransmits.Value()), Congestion: string(cc),
		CongestionWindow: int64(info.SndCwnd) * int64(mtu-headers-maxOptions),
		RTT:              info.RTT, RTTVar: info.RTTVar, MSS: mtu - headers - optionsOfSegment, PMTU: mtu,
	}, true
}

func (s sockets) Queued(c net.Conn) (int, bool) {
	ep, isTCP := endpoint(c)
	if !isTCP {
		return 0, false
	}
	n, err := ep.GetSockOptInt(tcpip.ReceiveQueueSizeOption)
	return n, err == nil
}

func (s sockets) Closing(c net.Conn, limit time.Duration) {
	if ep, isTCP := endpoint(c); isTCP {
		o := tcpip.TCPUserTimeoutOption(limit)
		ep.SetSockOpt(&o)
	}
}

// IperfClock makes a device's clock the clock of a test.
func IperfClock(c hw.Clock) iperf3.Clock {
	if r, ok := c.(interface{ IsReal() bool }); ok && r.IsReal() {
		return iperf3.SystemClock()
	}
	return iperfClock{c}
}

type iperfClock struct{ hw.Clock }

func (c iperfClock) AfterFunc(d time.Duration, f func()) iperf3.Timer { return c.Clock.AfterFunc(d, f) }
