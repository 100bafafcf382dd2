package iperf3

import (
	"encoding/json"
	"fmt"
	"runtime"
	"time"
)

// version is what reports and peers get to see. The number says whose behaviour is followed.
const version = "dwnet iperf (iperf 3.12 protocol)"

// JSON encodes the report in the schema of iperf3 -J as of 3.12.
func (r *Report) JSON() ([]byte, error) {
	b, err := json.MarshalIndent(r.document(), "", "\t")
	if err != nil {
		return nil, fmt.Errorf("report as JSON: %w", err)
	}
	return append(b, '\n'), nil
}

type jsonDocument struct {
	Start      jsonStart       `json:"start"`
	Intervals  []jsonInterval  `json:"intervals"`
	End        jsonEnd         `json:"end"`
	Title      string          `json:"title,omitempty"`
	ExtraData  string          `json:"extra_data,omitempty"`
	ServerText string          `json:"server_output_text,omitempty"`
	ServerJSON json.RawMessage `json:"server_output_json,omitempty"`
	Error      string          `json:"error,omitempty"`
}

type jsonHost struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

type jsonConnected struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  int    `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort int    `json:"remote_port"`
}

type jsonStart struct {
	Connected  []jsonConnected `json:"connected"`
	Version    string          `json:"version"`
	SystemInfo string          `json:"system_info"`
	Timestamp  struct {
		Time string `json:"time"`
		Secs int64  `json:"timesecs"`
	} `json:"timestamp"`
	ConnectingTo  *jsonHost     `json:"connecting_to,omitempty"`
	Accepted      *jsonHost     `json:"accepted_connection,omitempty"`
	Cookie        string        `json:"cookie,omitempty"`
	TCPMSSDefault int           `json:"tcp_mss_default"`
	TargetBitrate int64         `json:"target_bitrate"`
	SockBufsize   int           `json:"sock_bufsize"`
	TestStart     jsonTestStart `json:"test_start"`
}

type jsonTestStart struct {
	Protocol      string `json:"protocol"`
	NumStreams    int    `json:"num_streams"`
	BlkSize       int    `json:"blksize"`
	Omit          int    `json:"omit"`
	Duration      int    `json:"duration"`
	Bytes         int64  `json:"bytes"`
	Blocks        int64  `json:"blocks"`
	Reverse       int    `json:"reverse"`
	TOS           int    `json:"tos"`
	TargetBitrate int64  `json:"target_bitrate"`
	Bidir         int    `json:"bidir"`
}

// jsonFigures has the fields of every kind of figures. Pointers are left out when nil.
type jsonFigures struct {
	Socket        *int     `json:"socket,omitempty"`
	Start         float64  `json:"start"`
	End           float64  `json:"end"`
	Seconds       float64  `json:"seconds"`
	Bytes         int64    `json:"bytes"`
	BitsPerSecond float64  `json:"bits_per_second"`
	Retransmits   *int64   `json:"retransmits,omitempty"`
	SndCwnd       *int64   `json:"snd_cwnd,omitempty"`
	SndWnd        *int64   `json:"snd_wnd,omitempty"`
	RTT           *int64   `json:"rtt,omitempty"` // µs
	RTTVar        *int64   `json:"rttvar,omitempty"`
	PMTU          *int64   `json:"pmtu,omitempty"`
	MaxSndCwnd    *int64   `json:"max_snd_cwnd,omitempty"`
	MaxSndWnd     *int64   `json:"max_snd_wnd,omitempty"`
	MaxRTT        *int64   `json:"max_rtt,omitempty"`
	MinRTT        *int64   `json:"min_rtt,omitempty"`
	MeanRTT       *int64   `json:"mean_rtt,omitempty"`
	JitterMS      *float64 `json:"jitter_ms,omitempty"`
	LostPackets   *int64   `json:"lost_packets,omitempty"`
	Packets       *int64   `json:"packets,omitempty"`
	LostPercent   *float64 `json:"lost_percent,omitempty"`
	OutOfOrder    *int64   `json:"out_of_order,omitempty"`
	Omitted       *bool    `json:"omitted,omitempty"`
	Sender        bool     `json:"sender"`
}

type jsonInterval struct {
	Streams    []jsonFigures `json:"streams"`
	Sum        *jsonFigures  `json:"sum,omitempty"`
	SumReverse *jsonFigures  `json:"sum_bidir_reverse,omitempty"`
}

type jsonStream struct {
	Sender   *jsonFigures `json:"sender,omitempty"`
	Receiver *jsonFigures `json:"receiver,omitempty"`
	UDP      *jsonFigures `json:"udp,omitempty"`
}

type jsonEnd struct {
	Streams            []jsonStream `json:"streams,omitempty"`
	Sum                *jsonFigures `json:"sum,omitempty"`
	SumSent            *jsonFigures `json:"sum_sent,omitempty"`
	SumReceived        *jsonFigures `json:"sum_received,omitempty"`
	SumReverse         *jsonFigures `json:"sum_bidir_reverse,omitempty"`
	SumSentReverse     *jsonFigures `json:"sum_sent_bidir_reverse,omitempty"`
	SumReceivedReverse *jsonFigures `json:"sum_received_bidir_reverse,omitempty"`
	CPU                *jsonCPU     `json:"cpu_utilization_percent,omitempty"`
	SenderCC           string       `json:"sender_tcp_congestion,omitempty"`
	ReceiverCC         string       `json:"receiver_tcp_congestion,omitempty"`
}

type jsonCPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}

func (r *Report) document() *jsonDocument {
	d := &jsonDocument{
		Start: r.startDocument(), Intervals: []jsonInterval{}, Title: r.Params.Title, ExtraData: r.Params.ExtraData,
		ServerText: r.ServerText, ServerJSON: r.ServerJSON,
	}
	for i := range r.Intervals {
		d.Intervals = append(d.Intervals, r.intervalDocument(&r.Intervals[i]))
	}
	if len(r.Streams) > 0 {
		d.End = r.endDocument()
	}
	if r.Err != nil {
		d.Error = "error - " + r.Err.Error()
	}
	return d
}

func (r *Report) startDocument() jsonStart {
	p := &r.Params
	s := jsonStart{
		Connected: []jsonConnected{}, Version: version, SystemInfo: runtime.GOOS + " " + runtime.GOARCH,
		Cookie: r.Cookie, TCPMSSDefault: r.ControlMSS, TargetBitrate: int64(p.rate()), SockBufsize: p.Window,
		TestStart: jsonTestStart{
			Protocol: "TCP", NumStreams: p.Parallel, BlkSize: p.Length, Omit: p.Omit, Duration: p.Time, Bytes: p.Bytes,
			Blocks: p.Blocks, TOS: p.TOS, TargetBitrate: int64(p.rate()),
		},
	}
	if p.UDP {
		s.TestStart.Protocol = "UDP"
	}
	if p.Reverse {
		s.TestStart.Reverse = 1
	}
	if p.Bidirectional {
		s.TestStart.Bidir = 1
	}
	s.Timestamp.Time, s.Timestamp.Secs = r.Time.UTC().Format(time.RFC1123), r.Time.Unix()
	host, port := hostPort(r.Remote)
	if r.Server {
		s.Accepted = &jsonHost{host, port}
	} else {
		if r.Target != "" {
			host = r.Target
		}
		s.ConnectingTo = &jsonHost{host, port}
	}
	for _, c := range r.Connected {
		j := jsonConnected{Socket: c.ID}
		j.LocalHost, j.LocalPort = hostPort(c.Local)
		j.RemoteHost, j.RemotePort = hostPort(c.Remote)
		s.Connected = append(s.Connected, j)
	}
	return s
}

func plain(f Figures, sender bool) *jsonFigures {
	return &jsonFigures{
		Start: f.Start, End: f.End, Seconds: f.Seconds(), Bytes: f.Bytes, BitsPerSecond: finite(f.BitsPerSecond()),
		Sender: sender,
	}
}

func (j *jsonFigures) withID(id int) *jsonFigures {
	j.Socket = &id
	return j
}

func (j *jsonFigures) withRetransmits(f Figures) *jsonFigures {
	if f.Retransmits >= 0 {
		j.Retransmits = &f.Retransmits
	}
	return j
}

func (j *jsonFigures) withLoss(f Figures) *jsonFigures {
	jitter, percent := finite(f.Jitter*1000), finite(f.LostPercent())
	j.JitterMS, j.LostPackets, j.Packets, j.LostPercent = &jitter, &f.Lost, &f.Packets, &percent
	return j
}

func (j *jsonFigures) withTCP(t TCPInfo) *jsonFigures {
	rtt, rttvar, pmtu := t.RTT.Microseconds(), t.RTTVar.Microseconds(), int64(t.PMTU)
	j.SndCwnd, j.SndWnd, j.RTT, j.RTTVar, j.PMTU = &t.CongestionWindow, &t.SendWindow, &rtt, &rttvar, &pmtu
	return j
}

func (r *Report) intervalDocument(iv *Interval) jsonInterval {
	omitted := iv.Omitted
	figures := func(f Figures, sending bool) *jsonFigures {
		j := plain(f, sending)
		j.Omitted = &omitted
		switch {
		case r.Params.UDP && sending:
			j.Packets = &f.Packets
		case r.Params.UDP:
			j.withLoss(f)
		case sending:
			j.withRetransmits(f)
		}
		return j
	}
	out := jsonInterval{Streams: []jsonFigures{}}
	for _, s := range iv.Streams {
		j := figures(s.Figures, s.Sending).withID(s.ID)
		if j.Retransmits != nil {
			j.withTCP(s.TCP)
		}
		out.Streams = append(out.Streams, *j)
	}
	for _, reverse := range r.directions() {
		f, _ := iv.Sum(reverse)
		j := figures(f, reverse == r.Server)
		if r.Params.Bidirectional && reverse {
			out.SumReverse = j
		} else {
			out.Sum = j
		}
	}
	return out
}

func (r *Report) endDocument() jsonEnd {
	var e jsonEnd
	for _, s := range r.Streams {
		if r.Params.UDP {
			own, j := s.Received, (*jsonFigures)(nil)
			if s.Sending {
				own = s.Sent
			}
			j = plain(own, s.Sending).withID(s.ID).withLoss(lossOf(s.Sent, s.Received, r.HasPeer, s.Sending))
			j.OutOfOrder = &own.OutOfOrder
			e.Streams = append(e.Streams, jsonStream{UDP: j})
			continue
		}
		snd := plain(s.Sent, s.Sending).withID(s.ID).withRetransmits(s.Sent)
		if s.Sending && snd.Retransmits != nil {
			p := s.Sent.Path
			maxRTT, minRTT, mean := p.MaxRTT.Microseconds(), p.MinRTT.Microseconds(), p.MeanRTT.Microseconds()
			snd.MaxSndCwnd, snd.MaxSndWnd = &p.MaxCongestionWindow, &p.MaxSendWindow
			snd.MaxRTT, snd.MinRTT, snd.MeanRTT = &maxRTT, &minRTT, &mean
		}
		e.Streams = append(e.Streams, jsonStream{
			Sender: snd, Receiver: plain(s.Received, s.Sending).withID(s.ID),
		})
	}
	for _, reverse := range r.directions() {
		sent, received, _ := r.Totals(reverse)
		sending := reverse == r.Server
		js, jr := plain(sent, sending).withRetransmits(sent), plain(received, sending)
		var total *jsonFigures
		if r.Params.UDP {
			js, jr = plain(sent, true).withLoss(sent), plain(received, false).withLoss(received)
			own := received
			if sending {
				own = sent
			}
			total = plain(own, sending).withLoss(lossOf(sent, received, r.HasPeer, sending))
		}
		if r.Params.Bidirectional && reverse {
			e.SumReverse, e.SumSentReverse, e.SumReceivedReverse = total, js, jr
		} else {
			e.Sum, e.SumSent, e.SumReceived = total, js, jr
		}
	}
	e.CPU = &jsonCPU{
		r.CPU.Total, r.CPU.User, r.CPU.System,
		finite(r.PeerCPU.Total), finite(r.PeerCPU.User), finite(r.PeerCPU.System),
	}
	for _, reverse := range r.directions() {
		if reverse == r.Server {
			e.SenderCC, e.ReceiverCC = r.Congestion, r.PeerCongestion
			break
		}
		e.SenderCC, e.ReceiverCC = r.PeerCongestion, r.Congestion
	}
	return e
}

// lossOf is the loss of a UDP stream as a whole: what the receiver missed, of what the sender sent.
func lossOf(sent, received Figures, hasPeer, sending bool) Figures {
	f := received
	if sending && !hasPeer {
		f = sent
	}
	if sent.Packets > 0 {
		f.Packets = sent.Packets
	}
	return f
}
