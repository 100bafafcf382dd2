package iperf3

import (
	"encoding/binary"
	"time"
)

// Datagrams that open a UDP stream and their answer, as bytes on the wire. Clients from 3.12 on send "9876"; older ones
// the number 123456789 in their own byte order; big-endian ones from 3.12 to 3.16 swap theirs too. The reply "6789"
// satisfies all of them: those up to 3.11 do not look at it.
const (
	udpConnect     = "9876"
	udpReply       = "6789"
	udpReplyLegacy = "\xb1\x68\xde\x3a" // 987654321, little endian, from servers up to 3.11
)

// isUDPConnect reports whether b opens a stream. Upstream takes any datagram for that, which lets strays in.
func isUDPConnect(b []byte) bool {
	switch string(b) {
	case udpConnect, "6789", "\x15\xcd\x5b\x07", "\x07\x5b\xcd\x15":
		return true
	}
	return false
}

// isUDPReply reports whether b answers a connect.
func isUDPReply(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	switch string(b[:4]) {
	case udpReply, udpReplyLegacy, "\x3a\xde\x68\xb1":
		return true
	}
	return false
}

// Sizes of the header of a data datagram (iperf_udp.c): seconds, microseconds and a sequence number of 32 or 64 bits,
// all big-endian.
const (
	udpHeader   = 12
	udpHeader64 = 16
)

// putDatagram writes the header. sent is the sender's time; only differences matter to the receiver.
func putDatagram(b []byte, sent time.Duration, seq int64, wide bool) {
	binary.BigEndian.PutUint32(b, uint32(sent/time.Second))
	binary.BigEndian.PutUint32(b[4:], uint32(sent%time.Second/time.Microsecond))
	if wide {
		binary.BigEndian.PutUint64(b[8:], uint64(seq))
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(seq))
	}
}

// parseDatagram reads the header; false if the datagram is too short for one.
func parseDatagram(b []byte, wide bool) (sent time.Duration, seq int64, ok bool) {
	if len(b) < udpHeader || wide && len(b) < udpHeader64 {
		return 0, 0, false
	}
	sent = time.Duration(binary.BigEndian.Uint32(b))*time.Second +
		time.Duration(binary.BigEndian.Uint32(b[4:]))*time.Microsecond
	if wide {
		seq = int64(binary.BigEndian.Uint64(b[8:]))
	} else {
		seq = int64(binary.BigEndian.Uint32(b[8:]))
	}
	return sent, seq, true
}

// lossStats is what a receiver makes of the datagrams of one stream, by upstream's formulas (iperf_udp.c,
// iperf_udp_recv) so that figures compare.
type lossStats struct {
	Packets int64   // highest sequence number seen
	Lost    int64   // numbers skipped and not seen late
	Late    int64   // numbers at or below the highest: reordered or duplicated
	Jitter  float64 // seconds, RFC 1889 appendix A.8

	transit  float64 // of the last datagram, in seconds
	measured bool    // transit is valid
}

// add counts a datagram that was sent and has arrived at the given times, each on its own side's clock.
func (l *lossStats) add(seq int64, sent, arrived time.Duration) {
	if seq > l.Packets {
		l.Lost += seq - l.Packets - 1
		l.Packets = seq
	} else {
		l.Late++
		if l.Lost > 0 {
			l.Lost--
		}
	}
	transit := (arrived - sent).Abs().Seconds()
	if !l.measured { // without this the difference of the two clocks would count as jitter
		l.transit, l.measured = transit, true
		return
	}
	d := transit - l.transit
	if d < 0 {
		d = -d
	}
	l.transit = transit
	l.Jitter += (d - l.Jitter) / 16
}

// endOmit starts jitter afresh. Counts go on; the caller remembers them.
func (l *lossStats) endOmit() { l.Jitter, l.measured = 0, false }
