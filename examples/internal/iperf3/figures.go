package iperf3

import "time"

// Figures is what one side counted on one stream, or on several together, over a span of a test. Times are in seconds
// since counting began, which is the end of the omitted part.
type Figures struct {
	Start, End float64
	Bytes      int64
	// Retransmits are segments that a TCP sender sent again; -1: not known, or not a sender.
	Retransmits int64
	// Datagrams, of UDP only. A receiver cannot see the loss of the last ones.
	Packets, Lost, OutOfOrder int64
	// Jitter in seconds, of a UDP receiver; of several streams the mean.
	Jitter float64
	// TCP is the state of a sender's connection at the end of the span, where known.
	TCP TCPInfo
	// Path is what was seen of it over the whole test; only in final figures.
	Path PathStats
}

// PathStats sums up the states of a TCP sender's connection seen at the ends of intervals.
type PathStats struct {
	MaxCongestionWindow, MaxSendWindow int64 // bytes
	MinRTT, MaxRTT, MeanRTT            time.Duration
	samples                            int
}

func (p *PathStats) add(t TCPInfo) {
	p.MaxCongestionWindow = max(p.MaxCongestionWindow, t.CongestionWindow)
	p.MaxSendWindow = max(p.MaxSendWindow, t.SendWindow)
	if t.RTT <= 0 {
		return
	}
	if p.samples == 0 || t.RTT < p.MinRTT {
		p.MinRTT = t.RTT
	}
	p.MaxRTT = max(p.MaxRTT, t.RTT)
	p.samples++
	p.MeanRTT += (t.RTT - p.MeanRTT) / time.Duration(p.samples)
}

// Seconds is the length of the span.
func (f Figures) Seconds() float64 { return f.End - f.Start }

// BitsPerSecond is the mean rate of payload; 0 for an empty span.
func (f Figures) BitsPerSecond() float64 { return perSecond(f.Bytes, f.Seconds()) }

// LostPercent is the share of datagrams lost; 0 if there were none.
func (f Figures) LostPercent() float64 {
	if f.Packets <= 0 {
		return 0
	}
	return 100 * float64(f.Lost) / float64(f.Packets)
}

func perSecond(bytes int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(bytes) * 8 / seconds
}

// sum adds up streams that ran side by side: times are those of the first, retransmits are known only if all are.
func sum(list []Figures) Figures {
	if len(list) == 0 {
		return Figures{Retransmits: -1}
	}
	t := Figures{Start: list[0].Start, End: list[0].End}
	for _, f := range list {
		t.Bytes += f.Bytes
		t.Packets += f.Packets
		t.Lost += f.Lost
		t.OutOfOrder += f.OutOfOrder
		t.Jitter += f.Jitter / float64(len(list))
		if f.Retransmits < 0 || t.Retransmits < 0 {
			t.Retransmits = -1
		} else {
			t.Retransmits += f.Retransmits
		}
	}
	return t
}

// Interval is a part of a test on all streams, as this side saw it.
type Interval struct {
	Start, End float64 // seconds since the start of the test, or since the end of the omitted part
	Omitted    bool    // lies in the omitted part
	Streams    []StreamInterval
}

// StreamInterval is one stream in it.
type StreamInterval struct {
	ID      int
	Reverse bool // the server sends
	Sending bool // this side sends
	Figures
}

// Sum adds up the streams of one direction; false if there are none.
func (i *Interval) Sum(reverse bool) (Figures, bool) {
	var list []Figures
	for _, s := range i.Streams {
		if s.Reverse == reverse {
			list = append(list, s.Figures)
		}
	}
	return sum(list), len(list) > 0
}
