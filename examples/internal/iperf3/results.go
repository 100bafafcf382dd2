package iperf3

import (
	"encoding/json"
	"fmt"
)

// results is one side's account of a test, exchanged after TEST_END.
type results struct {
	CPU            CPU
	HasRetransmits int64 // of a sender: 1 if its retransmits are real; -1 from a side that only receives
	Congestion     string
	Streams        []streamResult
	ServerText     string          // what the server printed, if asked for
	ServerJSON     json.RawMessage // the server's report as an object, if it runs in JSON mode
}

// streamResult is one stream in it. Counts include the omitted part, except for bytes and retransmits.
type streamResult struct {
	ID             int
	Bytes          int64
	Retransmits    int64   // -1: not known
	Jitter         float64 // s
	Errors         int64   // datagrams lost
	OmittedErrors  int64
	Packets        int64 // datagrams: highest number seen by a receiver, number sent by a sender
	OmittedPackets int64
	HasOmitted     bool // the peer sends the two omitted values (3.14 and later)
	Seconds        float64
	HasSeconds     bool // the peer sends its times (3.2 and later)
}

// CPU is the processor time of a whole process during a test, in percent of one processor.
type CPU struct {
	Total, User, System float64
}

// wireResults has the names and the order of iperf_api.c, send_results. No mandatory field may be left out when zero:
// clients give up on a missing one.
type wireResults struct {
	CPUTotal       float64            `json:"cpu_util_total"`
	CPUUser        float64            `json:"cpu_util_user"`
	CPUSystem      float64            `json:"cpu_util_system"`
	HasRetransmits int64              `json:"sender_has_retransmits"`
	Congestion     string             `json:"congestion_used,omitempty"`
	ServerText     string             `json:"server_output_text,omitempty"`
	ServerJSON     json.RawMessage    `json:"server_output_json,omitempty"`
	Streams        []wireStreamResult `json:"streams"`
}

type wireStreamResult struct {
	ID             int     `json:"id"`
	Bytes          int64   `json:"bytes"`
	Retransmits    int64   `json:"retransmits"`
	Jitter         float64 `json:"jitter"`
	Errors         int64   `json:"errors"`
	OmittedErrors  int64   `json:"omitted_errors"`
	Packets        int64   `json:"packets"`
	OmittedPackets int64   `json:"omitted_packets"`
	StartTime      float64 `json:"start_time"` // always 0
	EndTime        float64 `json:"end_time"`
}

func (r *results) encode() ([]byte, error) {
	w := wireResults{
		CPUTotal: finite(r.CPU.Total), CPUUser: finite(r.CPU.User), CPUSystem: finite(r.CPU.System),
		HasRetransmits: r.HasRetransmits, Congestion: r.Congestion, ServerText: r.ServerText, ServerJSON: r.ServerJSON,
		Streams: make([]wireStreamResult, 0, len(r.Streams)),
	}
	for _, s := range r.Streams {
		w.Streams = append(w.Streams, wireStreamResult{
			ID: s.ID, Bytes: s.Bytes, Retransmits: s.Retransmits, Jitter: finite(s.Jitter), Errors: s.Errors,
			OmittedErrors: s.OmittedErrors, Packets: s.Packets, OmittedPackets: s.OmittedPackets,
			EndTime: finite(s.Seconds),
		})
	}
	return json.Marshal(w)
}

// maxResultStreams bounds what a peer may list. A test has at most 2*MaxStreams.
const maxResultStreams = 4 * MaxStreams

// decodeResults reads the other side's results. Every mandatory field must be there and be a number.
func decodeResults(text []byte) (*results, error) {
	f, err := parseFields(text)
	if err != nil {
		return nil, fail(CodeReceiveResults, "%v", err)
	}
	need := func(f fields, name string) float64 {
		n, ok := f.number(name)
		if !ok && err == nil {
			err = fail(CodeReceiveResults, "%s is missing or not a number", name)
		}
		return n
	}
	r := &results{
		CPU:            CPU{need(f, "cpu_util_total"), need(f, "cpu_util_user"), need(f, "cpu_util_system")},
		HasRetransmits: signed(need(f, "sender_has_retransmits")),
		Congestion:     f.text("congestion_used"),
	}
	r.ServerText, _ = f["server_output_text"].(string)
	if o, ok := f["server_output_json"].(map[string]any); ok {
		r.ServerJSON, _ = json.Marshal(o)
	}
	list, ok := f["streams"].([]any)
	if !ok || len(list) > maxResultStreams {
		return nil, fail(CodeReceiveResults, "streams is missing, not an array or too long")
	}
	for _, v := range list {
		f, bad := toFields(v)
		if bad != nil {
			return nil, fail(CodeReceiveResults, "a stream is %v", bad)
		}
		s := streamResult{
			ID: int(max(min(need(f, "id"), 1<<30), -1)), Bytes: toInt64(need(f, "bytes")),
			Retransmits: signed(need(f, "retransmits")), Jitter: need(f, "jitter"),
			Errors: toInt64(need(f, "errors")), Packets: toInt64(need(f, "packets")),
		}
		oe, okE := f.number("omitted_errors")
		op, okP := f.number("omitted_packets")
		if okE != okP {
			return nil, fail(CodeReceiveResults, "stream %d has only one of omitted_errors and omitted_packets", s.ID)
		}
		s.OmittedErrors, s.OmittedPackets, s.HasOmitted = toInt64(oe), toInt64(op), okE
		start, okS := f.number("start_time")
		end, okE := f.number("end_time")
		if okS && okE {
			s.Seconds, s.HasSeconds = end-start, true
		}
		r.Streams = append(r.Streams, s)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// finite replaces what JSON cannot express.
func finite(x float64) float64 {
	if x != x || x > 1e300 || x < -1e300 {
		return 0
	}
	return x
}

// streamID is the number of the n-th stream, from 0: 1, 3, 4, 5 and so on. Upstream never uses 2, a mistake that every
// version repeats to stay compatible (iperf_api.c, iperf_add_stream).
func streamID(n int) int {
	if n == 0 {
		return 1
	}
	return n + 2
}

// byID finds a stream's result.
func (r *results) byID(id int) (streamResult, bool) {
	for _, s := range r.Streams {
		if s.ID == id {
			return s, true
		}
	}
	return streamResult{}, false
}

// checkIDs reports a stream that this side does not know.
func (r *results) checkIDs(known func(id int) bool) error {
	for _, s := range r.Streams {
		if !known(s.ID) {
			return fmt.Errorf("stream has an invalid id: %d", s.ID)
		}
	}
	return nil
}
