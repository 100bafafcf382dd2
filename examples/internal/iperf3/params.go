package iperf3

import (
	"encoding/json"
	"math"
	"net"
)

// Limits of parameters, as in iperf.h.
const (
	MaxStreams      = 128       // parallel streams in each direction
	MaxTime         = 86400     // seconds
	MaxOmit         = 600       // seconds
	MaxBlockSize    = 1 << 20   // TCP, bytes
	MinUDPBlockSize = 16        // bytes
	MaxUDPBlockSize = 65507     // bytes: 65535 less the IPv4 and UDP headers
	MaxWindow       = 512 << 20 // bytes
	MaxMSS          = 9 * 1024  // bytes
	MaxBurst        = 1000      // blocks

	DefaultTCPBlockSize = 128 << 10 // bytes
	DefaultUDPBlockSize = 1460      // bytes, where the path's MSS is not known
)

// Params are the parameters of a test, as the client sends them to the server. The zero value is a TCP test from client
// to server with one stream that lasts until the client is stopped.
type Params struct {
	UDP           bool
	Reverse       bool // the server sends
	Bidirectional bool // both send, on as many streams again

	Omit   int   // seconds at the start that are not counted
	Time   int   // seconds; 0: no limit
	Bytes  int64 // end after this many bytes, over all streams; 0: no limit
	Blocks int64 // end after this many blocks; 0: no limit

	Parallel  int     // streams in each direction; 0: 1
	Length    int     // block size: of a write or read for TCP, of a datagram for UDP; 0: a default
	Bandwidth float64 // bit/s of each stream; 0: as fast as possible
	FQRate    float64 // bit/s, what upstream leaves to the kernel to pace; here it is the rate where Bandwidth is 0
	Burst     int     // blocks sent between two looks at the pacer; 0: 1

	Window       int // socket buffers, bytes; 0: the stack's default
	MSS          int // largest segment, bytes; 0: the stack's choice
	NoDelay      bool
	TOS          int
	Congestion   string // name of the congestion control; "": the default
	DontFragment bool   // UDP over IPv4

	GetServerOutput  bool // have the server's report sent over
	UDPCounters64    bool // 64-bit sequence numbers in datagrams
	RepeatingPayload bool // digits instead of random bytes

	Title, ExtraData string // shown in reports
	ClientVersion    string
}

// streams is the number of streams that the client opens.
func (p *Params) streams() int {
	n := max(p.Parallel, 1)
	if p.Bidirectional {
		n *= 2
	}
	return n
}

// rate is the pace of each stream in bit/s; 0: none.
func (p *Params) rate() float64 {
	if p.Bandwidth > 0 {
		return p.Bandwidth
	}
	return p.FQRate
}

// setDefaults fills in what zero stands for. mss is that of the control connection or 0.
func (p *Params) setDefaults(mss int) {
	if p.Parallel == 0 {
		p.Parallel = 1
	}
	if p.Burst == 0 {
		p.Burst = 1
	}
	switch {
	case p.Length != 0:
	case !p.UDP:
		p.Length = DefaultTCPBlockSize
	case mss >= MinUDPBlockSize:
		p.Length = min(mss, MaxUDPBlockSize)
	default:
		p.Length = DefaultUDPBlockSize
	}
}

// Validate checks every field against iperf3's limits; zeros stand for their defaults.
func (p *Params) Validate() error {
	q := *p
	q.setDefaults(0)
	return q.validate()
}

// validate checks every field against iperf3's limits. Its errors carry the code that upstream would send.
func (p *Params) validate() error {
	switch {
	case p.Time < 0 || p.Time > MaxTime:
		return fail(CodeDuration, "%d s", p.Time)
	case p.Omit < 0 || p.Omit > MaxOmit:
		return fail(CodeOmit, "%d s", p.Omit)
	case p.Parallel < 1 || p.Parallel > MaxStreams:
		return fail(CodeNumStreams, "%d", p.Parallel)
	case p.UDP && (p.Length < MinUDPBlockSize || p.Length > MaxUDPBlockSize):
		return fail(CodeUDPBlockSize, "%d", p.Length)
	case !p.UDP && (p.Length < 1 || p.Length > MaxBlockSize):
		return fail(CodeBlockSize, "%d", p.Length)
	case p.Window < 0 || p.Window > MaxWindow:
		return fail(CodeBufSize, "%d", p.Window)
	case p.MSS < 0 || p.MSS > MaxMSS:
		return fail(CodeMSS, "%d", p.MSS)
	case p.Burst < 0 || p.Burst > MaxBurst:
		return fail(CodeBurst, "%d", p.Burst)
	case p.TOS < 0 || p.TOS > 255:
		return fail(CodeBadTOS, "%d", p.TOS)
	case !(p.Bandwidth >= 0) || !(p.FQRate >= 0) || math.IsInf(p.Bandwidth, 0) || math.IsInf(p.FQRate, 0):
		return fail(CodeTotalRate, "bit rate %g", p.Bandwidth)
	case p.Bytes < 0 || p.Blocks < 0:
		return fail(CodeReceiveParams, "negative amount of data")
	}
	return nil
}

// wireParams has the names and the order of iperf_api.c, send_parameters.
type wireParams struct {
	TCP              bool    `json:"tcp,omitempty"`
	UDP              bool    `json:"udp,omitempty"`
	Omit             int     `json:"omit"`
	Time             int     `json:"time"`
	Num              int64   `json:"num"`
	BlockCount       int64   `json:"blockcount"`
	MSS              int     `json:"MSS,omitempty"`
	NoDelay          bool    `json:"nodelay,omitempty"`
	Parallel         int     `json:"parallel"`
	Reverse          bool    `json:"reverse,omitempty"`
	Bidirectional    bool    `json:"bidirectional,omitempty"`
	Window           int     `json:"window,omitempty"`
	Len              int     `json:"len"`
	Bandwidth        float64 `json:"bandwidth,omitempty"`
	FQRate           float64 `json:"fqrate,omitempty"`
	PacingTimer      int     `json:"pacing_timer"`
	Burst            int     `json:"burst,omitempty"`
	TOS              int     `json:"TOS,omitempty"`
	Title            string  `json:"title,omitempty"`
	ExtraData        string  `json:"extra_data,omitempty"`
	Congestion       string  `json:"congestion,omitempty"`
	GetServerOutput  int     `json:"get_server_output,omitempty"`
	UDPCounters64    int     `json:"udp_counters_64bit,omitempty"`
	RepeatingPayload int     `json:"repeating_payload,omitempty"`
	DontFragment     int     `json:"dont_fragment,omitempty"`
	ClientVersion    string  `json:"client_version"`
}

// pacingTimer is upstream's default in microseconds. Receivers ignore it.
const pacingTimer = 1000

func (p *Params) encode() ([]byte, error) {
	one := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	w := wireParams{
		TCP: !p.UDP, UDP: p.UDP, Omit: p.Omit, Time: p.Time, Num: p.Bytes, BlockCount: p.Blocks, MSS: p.MSS,
		NoDelay: p.NoDelay, Parallel: p.Parallel, Reverse: p.Reverse, Bidirectional: p.Bidirectional,
		Window: p.Window, Len: p.Length, Bandwidth: p.Bandwidth, FQRate: p.FQRate, PacingTimer: pacingTimer,
		TOS: p.TOS, Title: p.Title, ExtraData: p.ExtraData, Congestion: p.Congestion,
		GetServerOutput: one(p.GetServerOutput), UDPCounters64: one(p.UDPCounters64),
		RepeatingPayload: one(p.RepeatingPayload), DontFragment: one(p.DontFragment), ClientVersion: p.ClientVersion,
	}
	if p.Burst > 1 {
		w.Burst = p.Burst
	}
	return json.Marshal(w)
}

// decodeParams reads a client's parameters. Unknown fields and fields of a wrong type are ignored, as 3.18 does; an
// absent time, num or blockcount means no limit (clients of 3.1 leave zeros out). mss is that of the control connection.
func decodeParams(text []byte, mss int) (Params, error) {
	f, err := parseFields(text)
	if err != nil {
		return Params{}, fail(CodeReceiveParams, "%v", err)
	}
	if f.flag("sctp") {
		return Params{}, fail(CodeProtocol, "sctp")
	}
	integer := func(name string) int {
		n, _ := f.number(name)
		return int(max(min(n, math.MaxInt32), math.MinInt32))
	}
	long := func(name string) int64 {
		n, _ := f.number(name)
		return toInt64(n)
	}
	p := Params{
		UDP: f.flag("udp") && !f.flag("tcp"), Reverse: f.flag("reverse"), Bidirectional: f.flag("bidirectional"),
		Omit: integer("omit"), Time: integer("time"), Bytes: long("num"), Blocks: long("blockcount"),
		Parallel: 1, Length: integer("len"), Burst: integer("burst"), Window: integer("window"), MSS: integer("mss"),
		NoDelay: f.flag("nodelay"), TOS: integer("tos"), Congestion: f.text("congestion"),
		DontFragment: f.flag("dont_fragment"), GetServerOutput: f.flag("get_server_output"),
		UDPCounters64: f.flag("udp_counters_64bit"), RepeatingPayload: f.flag("repeating_payload"),
		Title: f.text("title"), ExtraData: f.text("extra_data"), ClientVersion: f.text("client_version"),
	}
	p.Bandwidth, _ = f.number("bandwidth")
	p.FQRate, _ = f.number("fqrate")
	if _, ok := f.number("parallel"); ok {
		p.Parallel = integer("parallel")
	}
	if p.Bidirectional {
		p.Reverse = false
	}
	p.setDefaults(mss)
	return p, p.validate()
}

// congestionName limits what a peer may have us hand to the stack as a name: Linux has 16 bytes for it.
func congestionName(s string) string {
	const longest = 15
	if len(s) > longest {
		return ""
	}
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return ""
		}
	}
	return s
}

// hostPort splits an address for display. Addresses that are not of the form host:port come back whole.
func hostPort(a net.Addr) (host string, port int) {
	if a == nil {
		return "", 0
	}
	ap, ok := addrPort(a)
	if !ok {
		return a.String(), 0
	}
	return ap.Addr().Unmap().String(), int(ap.Port())
}
