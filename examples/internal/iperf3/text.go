package iperf3

import (
	"fmt"
	"io"
	"strings"
)

// maxServerText bounds the text that is kept for --get-server-output. When it is full, lines of intervals are left out.
const maxServerText = 256 << 10

// printer writes a test as text in upstream's style (formats: iperf_locale.c).
type printer struct {
	w       io.Writer        // nil: nowhere
	keep    *strings.Builder // for the client, nil: not asked for
	omitted bool             // lines were left out of keep
	server  bool
	p       *Params
	begun   bool  // the header of the intervals is out
	failed  error // of w; nothing more is written to it
}

const (
	ruler     = "-----------------------------------------------------------\n"
	separator = "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
)

func (t *printer) printf(format string, args ...any) {
	t.write(fmt.Sprintf(format, args...), false)
}

// write sends text to both outputs. Optional text may be left out of what is kept.
func (t *printer) write(text string, optional bool) {
	if t.w != nil && t.failed == nil {
		_, t.failed = io.WriteString(t.w, text)
	}
	if t.keep == nil {
		return
	}
	if optional && t.keep.Len()+len(text) > maxServerText {
		if !t.omitted {
			t.omitted = true
			t.keep.WriteString("[...] further intervals are left out\n")
		}
		return
	}
	t.keep.WriteString(text)
}

// connected prints the addresses of a stream.
func (t *printer) connected(c Connection) {
	lh, lp := hostPort(c.Local)
	rh, rp := hostPort(c.Remote)
	t.printf("[%3d] local %s port %d connected to %s port %d\n", c.ID, lh, lp, rh, rp)
}

// role is what --bidir adds to every line.
func (t *printer) role(sending bool) string {
	if !t.p.Bidirectional {
		return ""
	}
	side, way := "C", "RX"
	if t.server {
		side = "S"
	}
	if sending {
		way = "TX"
	}
	return "[" + way + "-" + side + "]"
}

func (t *printer) header(retransmits, window, datagrams, loss bool) string {
	h := "[ ID]"
	if t.p.Bidirectional {
		h += "[Role]"
	}
	h += " Interval           Transfer     Bitrate"
	switch {
	case loss:
		h += "         Jitter    Lost/Total Datagrams"
	case datagrams:
		h += "         Total Datagrams"
	case window:
		h += "         Retr  Cwnd"
	case retransmits:
		h += "         Retr"
	}
	return h + "\n"
}

// line prints the figures of one stream, or of a sum, that a sender or a receiver counted.
func (t *printer) line(id string, sending bool, f Figures, kind lineKind, note string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s %6.2f-%-6.2f sec  %s  %s", id, t.role(sending), f.Start, f.End,
		FormatBytes(float64(f.Bytes)), formatRate(f.BitsPerSecond()))
	switch kind {
	case linePlain:
		fmt.Fprintf(&b, "                  %s", note)
	case lineRetransmits:
		fmt.Fprintf(&b, "  %3d             %s", f.Retransmits, note)
	case lineWindow:
		fmt.Fprintf(&b, "  %3d   %s       %s", f.Retransmits, FormatBytes(float64(f.TCP.CongestionWindow)), note)
	case lineDatagrams:
		pad := ""
		if t.p.Bidirectional {
			pad = "          "
		}
		fmt.Fprintf(&b, " %s %d  %s", pad, f.Packets, note)
	case lineLoss:
		fmt.Fprintf(&b, "  %5.3f ms  %d/%d (%.2g%%)  %s", f.Jitter*1000, f.Lost, f.Packets, f.LostPercent(), note)
	}
	b.WriteByte('\n')
	return b.String()
}

// lineKind is what a line shows beside amount and rate.
type lineKind int

const (
	linePlain       lineKind = iota
	lineRetransmits          // segments sent again
	lineWindow               // and the congestion window
	lineDatagrams            // number of datagrams
	lineLoss                 // jitter, lost and total datagrams
)

// interval prints the lines of an interval, with sums if there are several streams.
func (t *printer) interval(iv *Interval) {
	if t == nil || t.w == nil && t.keep == nil {
		return
	}
	var b strings.Builder
	kind := func(sending bool, f Figures) lineKind {
		switch {
		case t.p.UDP && sending:
			return lineDatagrams
		case t.p.UDP:
			return lineLoss
		case sending && f.Retransmits >= 0:
			return lineWindow
		}
		return linePlain
	}
	if !t.begun {
		sends, receives, known := false, false, false
		for _, s := range iv.Streams {
			sends, receives = sends || s.Sending, receives || !s.Sending
			known = known || s.Retransmits >= 0
		}
		b.WriteString(t.header(known, known, t.p.UDP && sends, t.p.UDP && receives))
	} else if t.p.Parallel > 1 {
		b.WriteString(separator)
	}
	note := ""
	if iv.Omitted {
		note = "(omitted)"
	}
	for _, reverse := range []bool{false, true} {
		sending := reverse == t.server
		for _, s := range iv.Streams {
			if s.Reverse == reverse {
				b.WriteString(t.line(fmt.Sprintf("[%3d]", s.ID), sending, s.Figures, kind(sending, s.Figures), note))
			}
		}
		if f, ok := iv.Sum(reverse); ok && t.p.Parallel > 1 {
			k := kind(sending, f)
			if k == lineWindow {
				k = lineRetransmits
			}
			b.WriteString(t.line("[SUM]", sending, f, k, note))
		}
	}
	t.write(b.String(), t.begun)
	t.begun = true
}

// final prints the summary: of a client with both sides' figures, of a server with its own.
func (t *printer) final(r *Report) {
	if t == nil || t.w == nil && t.keep == nil || len(r.Streams) == 0 {
		return
	}
	retransmits := false
	for _, s := range r.Streams {
		retransmits = retransmits || s.Sent.Retransmits >= 0
	}
	t.printf("%s%s", separator, t.header(retransmits, false, false, t.p.UDP))
	sent := func(id string, sending bool, f Figures) {
		kind := linePlain
		switch {
		case t.p.UDP:
			kind = lineLoss
		case f.Retransmits >= 0:
			kind = lineRetransmits
		}
		t.printf("%s", t.line(id, sending, f, kind, "sender"))
	}
	received := func(id string, sending bool, f Figures) {
		kind := linePlain
		if t.p.UDP {
			kind = lineLoss
		}
		t.printf("%s", t.line(id, sending, f, kind, "receiver"))
	}
	both := func(id string, sending bool, s, v Figures) {
		if sending || r.HasPeer && !t.server {
			sent(id, sending, s)
		}
		if !sending || r.HasPeer && !t.server {
			received(id, sending, v)
		}
	}
	for _, reverse := range r.directions() {
		for _, s := range r.Streams {
			if s.Reverse == reverse {
				both(fmt.Sprintf("[%3d]", s.ID), s.Sending, s.Sent, s.Received)
			}
		}
		if s, v, ok := r.Totals(reverse); ok && t.p.Parallel > 1 {
			both("[SUM]", reverse == t.server, s, v)
		}
	}
}
