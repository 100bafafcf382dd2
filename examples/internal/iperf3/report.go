package iperf3

import (
	"encoding/json"
	"net"
	"time"
)

// maxKeptIntervals bounds how many figures of intervals a report keeps, counted in streams times intervals. A test of
// one stream may last a day with an interval each second.
const maxKeptIntervals = 100_000

// Report is everything that one side knows about a test.
type Report struct {
	Server bool   // made by the server
	Params Params // as agreed
	Target string // of a client: host it was told to connect to
	Cookie string
	Time   time.Time // when the test began, by the machine's clock

	Local, Remote net.Addr // of the control connection
	ControlMSS    int      // of the control connection, 0: not known

	Connected []Connection
	Intervals []Interval
	// DroppedIntervals is the number of intervals left out since the report would have become too large.
	DroppedIntervals int

	Streams    []StreamReport
	CPU        CPU    // this side's
	Congestion string // congestion control of this side, where known

	HasPeer        bool // the other side's results have come; without them its figures are zero
	PeerCPU        CPU
	PeerCongestion string
	ServerText     string          // the server's output, if asked for
	ServerJSON     json.RawMessage // the same of a server in JSON mode

	Running bool  // the test got as far as TEST_RUNNING
	Err     error // why it ended early; nil after a complete test
}

// Connection is the addresses of a data stream.
type Connection struct {
	ID            int
	Local, Remote net.Addr
}

// StreamReport is the final account of a stream, by both of its ends.
type StreamReport struct {
	ID      int
	Reverse bool // the server sends
	Sending bool // this side sends
	// Sent is the sender's account, Received the receiver's. The one that is not this side's is zero unless HasPeer.
	Sent, Received Figures
}

// Totals adds up the streams of one direction: from client to server, or in reverse. It returns false if there are none.
func (r *Report) Totals(reverse bool) (sent, received Figures, ok bool) {
	var s, v []Figures
	for _, st := range r.Streams {
		if st.Reverse == reverse {
			s, v = append(s, st.Sent), append(v, st.Received)
		}
	}
	sent, received = sum(s), sum(v)
	return sent, received, len(s) > 0
}

func (r *Report) addInterval(iv Interval) {
	if (len(r.Intervals)+1)*len(iv.Streams) > maxKeptIntervals {
		r.DroppedIntervals++
		return
	}
	r.Intervals = append(r.Intervals, iv)
}

// directions are those that the test has streams in: from client to server (false), in reverse (true).
func (r *Report) directions() []bool {
	switch {
	case r.Params.Bidirectional:
		return []bool{false, true}
	default:
		return []bool{r.Params.Reverse}
	}
}
