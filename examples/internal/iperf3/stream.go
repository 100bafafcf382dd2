package iperf3

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// receiveBuffer is what is read from a TCP stream at a time. Nothing on the wire depends on it.
const receiveBuffer = 128 << 10

// drainLimit bounds what is read after the end of a test from what the stack has queued already.
const drainLimit = 16 << 20

// stream is one data stream.
type stream struct {
	id      int
	reverse bool           // the server sends
	sending bool           // this side sends
	conn    net.Conn       // TCP connection, or a client's connected UDP socket; nil for a server's UDP stream
	peer    netip.AddrPort // of a server's UDP stream, as the socket reports it

	local, remote net.Addr

	// Totals since TEST_RUNNING, the omitted part included. For a UDP sender packets counts what was sent.
	bytes   atomic.Int64
	packets atomic.Int64

	mu   sync.Mutex
	loss lossStats // of a UDP receiver

	done chan struct{} // closed when its goroutine has ended; nil: it has none

	// What follows belongs to the goroutine that runs the test.
	omitted counters // at the end of the omitted part
	last    counters // at the end of the last interval
	final   counters // at the end of the test
	path    PathStats
	usedCC  string // congestion control in use
}

// counters is the state of a stream's totals at one moment.
type counters struct {
	bytes, packets, lost, late int64
	retransmits                int64 // -1: not known
	jitter                     float64
	info                       TCPInfo
}

// count takes the totals. sockets is asked about TCP connections that send.
func (s *stream) count(sockets Sockets, udp bool) counters {
	c := counters{bytes: s.bytes.Load(), retransmits: -1}
	switch {
	case udp && s.sending:
		c.packets = s.packets.Load()
	case udp:
		s.mu.Lock()
		c.packets, c.lost, c.late, c.jitter = s.loss.Packets, s.loss.Lost, s.loss.Late, s.loss.Jitter
		s.mu.Unlock()
	default:
		info, ok := sockets.Info(s.conn)
		if !ok {
			break
		}
		s.usedCC = info.Congestion
		if s.sending {
			c.info, c.retransmits = info, info.Retransmits
			s.path.add(info)
		}
	}
	return c
}

// since is the figures of what happened between two moments.
func (c counters) since(b counters) Figures {
	f := Figures{
		Bytes: c.bytes - b.bytes, Retransmits: -1, Packets: c.packets - b.packets, Lost: c.lost - b.lost,
		OutOfOrder: c.late - b.late, Jitter: c.jitter, TCP: c.info,
	}
	if c.retransmits >= 0 {
		f.Retransmits = c.retransmits - max(b.retransmits, 0)
	}
	return f
}

// sendTCP writes blocks until the test is stopped, a limit is reached or the connection fails.
func (r *run) sendTCP(s *stream) {
	p := r.newPacer()
	defer p.stop()
	for p.wait(s.bytes.Load()) {
		for range r.params.Burst {
			block := r.payload
			if left := r.left(&r.sent); left < int64(len(block)) {
				block = block[:left]
			}
			n, err := s.conn.Write(block)
			s.bytes.Add(int64(n))
			if r.reached(&r.sent, n) || err != nil || r.stopping() {
				return
			}
		}
	}
}

// receiveTCP reads until the test is stopped or the connection ends. An end during the test is not an error: the
// control connection decides.
func (r *run) receiveTCP(s *stream) {
	buf := make([]byte, receiveBuffer)
	for {
		n, err := s.conn.Read(buf)
		s.bytes.Add(int64(n))
		r.reached(&r.received, n)
		if err == nil {
			continue
		}
		if r.stopping() && isTimeout(err) && r.drain {
			r.drainTCP(s, buf)
		}
		return
	}
}

// drainTCP reads what has arrived already and was not read yet, without waiting for more.
func (r *run) drainTCP(s *stream, buf []byte) {
	queued, ok := r.sockets.Queued(s.conn)
	if !ok {
		return
	}
	s.conn.SetReadDeadline(time.Now().Add(hangGuard))
	for left := min(queued, drainLimit); left > 0; {
		n, err := s.conn.Read(buf[:min(left, len(buf))])
		s.bytes.Add(int64(n))
		left -= n
		if err != nil {
			return
		}
	}
}

// sendUDP sends datagrams until the test is stopped or a limit is reached. write sends one.
func (r *run) sendUDP(s *stream, write func([]byte) (int, error)) {
	p := r.newPacer()
	defer p.stop()
	b := make([]byte, r.params.Length)
	copy(b, r.payload)
	for p.wait(s.bytes.Load()) {
		for range r.params.Burst {
			seq := s.packets.Load() + 1
			putDatagram(b, r.wireTime(), seq, r.params.UDPCounters64)
			if _, err := write(b); err != nil {
				if r.stopping() || errors.Is(err, net.ErrClosed) {
					return
				}
				// A full queue, or an ICMP error caused by an earlier datagram. The number is used again.
				if !p.pause(time.Millisecond) {
					return
				}
				continue
			}
			s.packets.Store(seq)
			s.bytes.Add(int64(len(b)))
			if r.reached(&r.sent, len(b)) || r.stopping() {
				return
			}
		}
	}
}

// receiveUDP reads datagrams of a client's stream until the test is stopped.
func (r *run) receiveUDP(s *stream) {
	// One byte more than a datagram can have, so that none is cut.
	buf := make([]byte, MaxUDPBlockSize+1)
	for {
		n, err := s.conn.Read(buf)
		if err != nil {
			if r.stopping() || errors.Is(err, net.ErrClosed) {
				return
			}
			p := r.newPacer()
			if !p.pause(time.Millisecond) {
				return
			}
			p.stop()
			continue
		}
		r.datagram(s, buf[:n])
	}
}

// datagram counts one received datagram of a stream. Those too short for a header, and those that come while the test
// does not run, do not count.
func (r *run) datagram(s *stream, b []byte) {
	if !r.counting.Load() {
		return
	}
	sent, seq, ok := parseDatagram(b, r.params.UDPCounters64)
	if !ok {
		return
	}
	arrived := r.wireTime()
	s.mu.Lock()
	s.loss.add(seq, sent, arrived)
	s.mu.Unlock()
	s.bytes.Add(int64(len(b)))
	r.reached(&r.received, len(b))
}
