package iperf3

import (
	"net"
	"time"
)

// SocketOptions is what a test may ask of a socket. The zero value asks for the defaults.
type SocketOptions struct {
	NoDelay      bool          // TCP_NODELAY
	Window       int           // SO_SNDBUF and SO_RCVBUF in bytes; 0: leave them
	TOS          int           // IPv4 TOS or IPv6 traffic class, 0..255
	MSS          int           // largest TCP segment, set before connecting; 0: leave it
	Congestion   string        // TCP congestion control by name; "": leave it
	DontFragment bool          // UDP over IPv4: set DF
	KeepAlive    time.Duration // probe an idle TCP connection this often; 0: leave it
}

// TCPInfo is what a stack knows about one TCP connection. Fields that it does not know are zero.
type TCPInfo struct {
	Retransmits      int64         // segments sent again since the connection was made
	Congestion       string        // congestion control in use
	CongestionWindow int64         // bytes
	SendWindow       int64         // bytes
	RTT, RTTVar      time.Duration // smoothed round trip time and its variation
	MSS, PMTU        int           // bytes
}

// Sockets reaches what net.Conn and net.PacketConn have no methods for. c is what the caller's listener, packet
// connection or dial function returned.
type Sockets interface {
	// Configure applies the options to a TCP connection or a UDP socket. The error names what could not be
	// applied; the rest is in force.
	Configure(c any, o SocketOptions) error
	// Info describes a TCP connection; false if the stack has no figures.
	Info(c net.Conn) (TCPInfo, bool)
	// Queued is the number of bytes that can be read from a TCP connection without waiting; false if not known.
	Queued(c net.Conn) (int, bool)
	// Closing is called before a TCP data connection is closed, perhaps with data that its peer does not take. It
	// limits how long the stack goes on trying.
	Closing(c net.Conn, limit time.Duration)
}

// NoSockets knows nothing about a connection and leaves everything at its default.
type NoSockets struct{}

func (NoSockets) Configure(any, SocketOptions) error { return nil }
func (NoSockets) Info(net.Conn) (TCPInfo, bool)      { return TCPInfo{}, false }
func (NoSockets) Queued(net.Conn) (int, bool)        { return 0, false }
func (NoSockets) Closing(net.Conn, time.Duration)    {}
