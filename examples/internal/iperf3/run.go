package iperf3

import (
	"crypto/rand"
	"math"
	"net/netip"
	"sync/atomic"
	"time"
)

// run is the measuring half of a test, the same on both sides: streams, counters, the omitted part, intervals and the
// final figures. Its methods belong to the goroutine that conducts the test, except for those that streams call.
type run struct {
	clock   Clock
	sockets Sockets
	params  Params
	server  bool
	every   time.Duration // length of intervals; 0: none
	report  *Report
	printer *printer
	onEvery func(Interval)

	streams []*stream
	udp     udpSocket // of a server
	payload []byte    // one block, shared by all senders

	zero     time.Time     // TEST_START
	start    time.Time     // counting began: TEST_START or the end of the omitted part
	ended    time.Time     // TEST_END
	lastAt   time.Time     // end of the last interval
	nextAt   time.Time     // end of the current one; zero: never
	omitting bool          // the omitted part is not over
	epoch    time.Duration // what datagrams carry as time at zero

	stop     chan struct{} // closed: senders and receivers end
	stopped  atomic.Bool
	counting atomic.Bool // received datagrams count
	drain    bool        // receivers take what is queued when they are stopped

	// Limits, of a client only: the amount to send or to receive since the omitted part; noLimit: none.
	amount         int64        // as asked for
	limit          atomic.Int64 // in force: none during the omitted part
	sent, received atomic.Int64
	limitReached   chan struct{} // closed when one of the two reaches it
	limitOnce      atomic.Bool

	cpu cpuMeter
}

// noLimit stands for an unlimited amount.
const noLimit = math.MaxInt64

func newRun(c Clock, s Sockets, p Params, server bool) *run {
	r := &run{
		clock: c, sockets: s, params: p, server: server, amount: noLimit,
		stop: make(chan struct{}), limitReached: make(chan struct{}),
	}
	r.limit.Store(noLimit)
	if !server { // the server never ends a test by amount: the client counts, in both directions
		if p.Bytes > 0 {
			r.amount = p.Bytes
		}
		if p.Blocks > 0 && p.Blocks <= noLimit/int64(p.Length) {
			r.amount = min(r.amount, p.Blocks*int64(p.Length))
		}
	}
	if !p.Bidirectional && p.Reverse != server {
		return r // nothing to send
	}
	r.payload = make([]byte, p.Length)
	if p.RepeatingPayload {
		for i := range r.payload {
			r.payload[i] = byte('0' + i%10)
		}
	} else {
		rand.Read(r.payload)
	}
	return r
}

// addStream appends a stream in the order of the protocol: with --bidir the client sends on the first half.
func (r *run) addStream(s *stream) {
	n := len(r.streams)
	s.id = streamID(n)
	s.reverse = r.params.Reverse
	if r.params.Bidirectional {
		s.reverse = n >= r.params.Parallel
	}
	s.sending = s.reverse == r.server
	r.streams = append(r.streams, s)
}

// begin starts the clock of the test, at TEST_START. Received datagrams count from here: the first may be as fast as
// TEST_RUNNING, which allows them.
func (r *run) begin() {
	now := r.clock.Now()
	r.zero, r.start, r.lastAt = now, now, now
	r.omitting = r.params.Omit > 0
	if !r.omitting {
		r.limit.Store(r.amount)
	}
	r.epoch = time.Duration(now.Unix()) * time.Second
	for _, s := range r.streams {
		c := s.count(r.sockets, r.params.UDP)
		s.omitted, s.last = c, c
		s.path = PathStats{} // an idle connection says nothing
	}
	r.cpu.start()
	r.planInterval()
	r.counting.Store(true)
}

// flow starts the data, at TEST_RUNNING.
func (r *run) flow() {
	for _, s := range r.streams {
		var f func()
		switch {
		case r.params.UDP && s.sending && s.conn == nil:
			f = func() { r.sendUDP(s, func(b []byte) (int, error) { return r.udp.writeTo(b, s.peer) }) }
		case r.params.UDP && s.sending:
			f = func() { r.sendUDP(s, s.conn.Write) }
		case r.params.UDP && s.conn == nil:
			continue // the socket's reader feeds it
		case r.params.UDP:
			f = func() { r.receiveUDP(s) }
		case s.sending:
			f = func() { r.sendTCP(s) }
		default:
			f = func() { r.receiveTCP(s) }
		}
		s.done = make(chan struct{})
		go func() {
			defer close(s.done)
			f()
		}()
	}
}

// everyStream selects for halt.
func everyStream(*stream) bool { return true }

func (r *run) stopping() bool { return r.stopped.Load() }

// wireTime is the time that datagrams carry: seconds since 1970 when the test began, and a steady clock from there.
func (r *run) wireTime() time.Duration { return r.epoch + r.clock.Now().Sub(r.zero) }

// left is what may still be moved in a direction before the limit.
func (r *run) left(moved *atomic.Int64) int64 {
	limit := r.limit.Load()
	if limit == noLimit {
		return noLimit
	}
	return max(limit-moved.Load(), 0)
}

// reached counts n bytes towards the limit and reports whether it is reached. The omitted part does not count.
func (r *run) reached(moved *atomic.Int64, n int) bool {
	limit := r.limit.Load()
	if limit == noLimit || moved.Add(int64(n)) < limit {
		return false
	}
	if r.limitOnce.CompareAndSwap(false, true) {
		close(r.limitReached)
	}
	return true
}

// moved is the number of bytes counted so far, by which a standstill shows.
func (r *run) moved() int64 {
	var n int64
	for _, s := range r.streams {
		n += s.bytes.Load()
	}
	return n
}

// endOmit ends the omitted part: what has been counted so far is remembered and taken off later.
func (r *run) endOmit() {
	r.closeInterval()
	r.omitting = false
	now := r.clock.Now()
	r.start, r.lastAt = now, now
	r.limit.Store(r.amount)
	for _, s := range r.streams {
		s.mu.Lock()
		s.loss.endOmit()
		s.mu.Unlock()
		s.path = PathStats{}
		c := s.count(r.sockets, r.params.UDP)
		s.omitted, s.last = c, c
	}
	r.planInterval()
}

// planInterval sets the end of the next interval. The one that ends with the test is left to finish, so that its figures
// do not depend on which timer fires first.
func (r *run) planInterval() {
	if r.every <= 0 {
		r.nextAt = time.Time{}
		return
	}
	elapsed := r.lastAt.Sub(r.start)
	n := (elapsed + r.every/2) / r.every
	r.nextAt = r.start.Add((n + 1) * r.every)
	length := r.params.Time
	if r.omitting {
		length = r.params.Omit
	}
	if end := r.start.Add(time.Duration(length) * time.Second); length > 0 && r.nextAt.Equal(end) {
		r.nextAt = r.nextAt.Add(r.every)
	}
}

// endInterval reports the interval that ends now.
func (r *run) endInterval() {
	r.closeInterval()
	r.planInterval()
}

func (r *run) closeInterval() {
	now := r.clock.Now()
	if !r.ended.IsZero() {
		now = r.ended
	}
	if !now.After(r.lastAt) {
		return
	}
	iv := Interval{
		Start: r.lastAt.Sub(r.start).Seconds(), End: now.Sub(r.start).Seconds(), Omitted: r.omitting,
		Streams: make([]StreamInterval, 0, len(r.streams)),
	}
	for _, s := range r.streams {
		c := s.final
		if r.ended.IsZero() {
			c = s.count(r.sockets, r.params.UDP)
		}
		f := c.since(s.last)
		f.Start, f.End = iv.Start, iv.End
		s.last = c
		iv.Streams = append(iv.Streams, StreamInterval{ID: s.id, Reverse: s.reverse, Sending: s.sending, Figures: f})
	}
	r.lastAt = now
	if r.every <= 0 {
		return
	}
	r.report.addInterval(iv)
	r.printer.interval(&iv)
	if r.onEvery != nil {
		r.onEvery(iv)
	}
}

// freeze ends the counting at the present time. Streams go on until halt.
func (r *run) freeze() {
	if r.ended.IsZero() {
		r.ended = r.clock.Now()
		r.counting.Store(false)
	}
}

// halt stops the streams that the filter selects and waits for their goroutines. Blocked calls are interrupted: a peer
// that has ended the test need not read any more.
func (r *run) halt(which func(*stream) bool) {
	if r.stopped.CompareAndSwap(false, true) {
		close(r.stop)
	}
	shared := false
	for _, s := range r.streams {
		switch {
		case s.done == nil || !which(s):
		case s.conn != nil:
			s.conn.SetDeadline(past)
		default:
			shared = true
		}
	}
	if shared {
		r.udp.SetWriteDeadline(past)
		defer r.udp.SetWriteDeadline(time.Time{})
	}
	guard := time.NewTimer(hangGuard)
	defer guard.Stop()
	for _, s := range r.streams {
		if s.done == nil || !which(s) {
			continue
		}
		select {
		case <-s.done:
		case <-guard.C: // a connection that ignores deadlines
			if s.conn != nil {
				s.conn.Close()
			}
			guard.Reset(hangGuard)
		}
	}
}

// finish takes the final figures. Call it after freeze, and after halt of those streams whose last block is to count.
func (r *run) finish() {
	for _, s := range r.streams {
		s.final = s.count(r.sockets, r.params.UDP)
	}
	if r.omitting { // the test ended in its omitted part: nothing counts
		for _, s := range r.streams {
			s.omitted = s.final
		}
		r.start = r.ended
	}
	tail := r.ended.Sub(r.lastAt)
	if r.every > 0 && (tail > r.every/10 || len(r.report.Intervals) == 0) {
		r.closeInterval()
	}
	r.report.CPU = r.cpu.percent()
	for _, s := range r.streams {
		f := s.final.since(s.omitted)
		f.End = r.ended.Sub(r.start).Seconds()
		f.Path = s.path
		f.TCP = TCPInfo{}
		out := StreamReport{ID: s.id, Reverse: s.reverse, Sending: s.sending}
		if s.sending {
			out.Sent = f
			out.Received.Retransmits = -1
		} else {
			out.Received = f
			out.Sent.Retransmits = -1
		}
		r.report.Streams = append(r.report.Streams, out)
		if s.usedCC != "" {
			r.report.Congestion = s.usedCC
		}
	}
}

// closeStreams closes every connection. Data that its peer does not take is not waited for.
func (r *run) closeStreams() {
	for _, s := range r.streams {
		if s.conn == nil {
			continue
		}
		if !r.params.UDP {
			r.sockets.Closing(s.conn, closingLimit)
		}
		s.conn.Close()
	}
}

// closingLimit is how long a stack may try to deliver the rest of a closed data stream.
const closingLimit = 10 * time.Second

// results is this side's account for the peer.
func (r *run) results() *results {
	out := &results{CPU: r.report.CPU, HasRetransmits: -1, Congestion: r.report.Congestion}
	known := !r.params.UDP
	for _, s := range r.streams {
		f := s.final.since(s.omitted)
		sr := streamResult{ID: s.id, Bytes: f.Bytes, Retransmits: -1, Seconds: r.ended.Sub(r.start).Seconds()}
		if s.sending {
			sr.Retransmits = f.Retransmits
			out.HasRetransmits = 1
			known = known && f.Retransmits >= 0
		}
		if r.params.UDP {
			sr.Jitter, sr.Errors, sr.Packets = s.final.jitter, s.final.lost, s.final.packets
			sr.OmittedErrors, sr.OmittedPackets = s.omitted.lost, s.omitted.packets
		}
		out.Streams = append(out.Streams, sr)
	}
	if out.HasRetransmits == 1 && !known {
		out.HasRetransmits = 0
		for i := range out.Streams {
			out.Streams[i].Retransmits = -1
		}
	}
	return out
}

// merge puts the other side's account into the report.
func (r *run) merge(peer *results) {
	r.report.HasPeer = true
	r.report.PeerCPU, r.report.PeerCongestion = peer.CPU, peer.Congestion
	end := r.ended.Sub(r.start).Seconds()
	if len(peer.Streams) > 0 && peer.Streams[0].HasSeconds { // the time base is the first stream's
		end = finite(peer.Streams[0].Seconds)
	}
	for i := range r.report.Streams {
		out := &r.report.Streams[i]
		s, _ := peer.byID(out.ID)
		f := Figures{End: end, Bytes: s.Bytes, Retransmits: -1}
		if r.params.UDP {
			if !s.HasOmitted {
				// A peer before 3.14 leaves the omitted part in. What this side saw of it is the best guess.
				s.OmittedPackets = r.streams[i].omitted.packets
			}
			f.Packets, f.Lost, f.Jitter = s.Packets-s.OmittedPackets, s.Errors-s.OmittedErrors, s.Jitter
		}
		if out.Sending {
			out.Received = f
			continue
		}
		if peer.HasRetransmits != 0 && !r.params.UDP {
			f.Retransmits = max(s.Retransmits, -1)
		}
		f.Lost, f.Jitter = 0, 0
		out.Sent = f
	}
}

// udpSocket is a server's one UDP socket.
type udpSocket interface {
	readFrom(b []byte) (int, netip.AddrPort, error)
	writeTo(b []byte, to netip.AddrPort) (int, error)
	SetWriteDeadline(time.Time) error
}
