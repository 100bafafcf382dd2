package iperf3

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What clients of 3.18 and 3.12 really send.
const (
	tcpFrom318 = `{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.18"}`
	udpFrom312 = `{"udp":true,"omit":0,"time":0,"num":204800,"blockcount":0,"parallel":1,"len":32768,"bandwidth":1048576,"pacing_timer":1000,"client_version":"3.12"}`
)

func TestParametersOfClients(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       Params
	}{
		{"3.18 TCP", tcpFrom318, Params{Time: 1, Parallel: 1, Burst: 1, Length: 131072, ClientVersion: "3.18"}},
		{"3.12 UDP", udpFrom312, Params{UDP: true, Bytes: 204800, Parallel: 1, Burst: 1, Length: 32768, Bandwidth: 1048576, ClientVersion: "3.12"}},
		{"nothing is a plain TCP test without limits", `{}`, Params{Parallel: 1, Burst: 1, Length: 131072}},
		{"UDP length defaults to the MSS of the control connection", `{"udp":true}`, Params{UDP: true, Parallel: 1, Burst: 1, Length: 1448}},
		{"names in any case, a trailing NUL, exponents", "{\"TCP\":true,\"Time\":1e1,\"NUM\":1.5e+12,\"mss\":1000,\"tos\":40}\x00",
			Params{Time: 10, Bytes: 1.5e12, MSS: 1000, TOS: 40, Parallel: 1, Burst: 1, Length: 131072}},
		{"everything", `{"tcp":true,"omit":2,"time":3,"blockcount":7,"parallel":4,"reverse":true,"len":1000,"bandwidth":5e6,"fqrate":1e6,
			"burst":10,"window":262144,"MSS":1200,"nodelay":true,"TOS":32,"congestion":"reno","get_server_output":1,"udp_counters_64bit":1,
			"repeating_payload":1,"dont_fragment":1,"title":"t","extra_data":"x","flowlabel":3,"zerocopy":1,"gso":1,"mptcp":true,"authtoken":"AA=="}`,
			Params{Omit: 2, Time: 3, Blocks: 7, Parallel: 4, Reverse: true, Length: 1000, Bandwidth: 5e6, FQRate: 1e6, Burst: 10,
				Window: 262144, MSS: 1200, NoDelay: true, TOS: 32, Congestion: "reno", GetServerOutput: true, UDPCounters64: true,
				RepeatingPayload: true, DontFragment: true, Title: "t", ExtraData: "x"}},
		{"wrong types count as absent", `{"tcp":"yes","omit":"x","time":[],"num":{},"parallel":"four","len":"big","window":"w","title":7,"congestion":1,"bandwidth":null}`,
			Params{Parallel: 1, Burst: 1, Length: 131072}},
		{"both directions", `{"tcp":true,"bidirectional":true,"parallel":2}`, Params{Bidirectional: true, Parallel: 2, Burst: 1, Length: 131072}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := decodeParams(bytes.TrimRight([]byte(tc.text), "\x00"), 1448)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("parameters (-want +got):\n%s", d)
			}
		})
	}
}

func TestParametersOutOfRangeNameTheirCode(t *testing.T) {
	for text, want := range map[string]Code{
		`{"time":86401}`:                CodeDuration,
		`{"time":-5}`:                   CodeDuration,
		`{"omit":601}`:                  CodeOmit,
		`{"omit":-1}`:                   CodeOmit,
		`{"parallel":129}`:              CodeNumStreams,
		`{"parallel":100000}`:           CodeNumStreams,
		`{"parallel":-1}`:               CodeNumStreams,
		`{"len":1048577}`:               CodeBlockSize,
		`{"len":-1}`:                    CodeBlockSize,
		`{"udp":true,"len":15}`:         CodeUDPBlockSize,
		`{"udp":true,"len":65508}`:      CodeUDPBlockSize,
		`{"window":536870913}`:          CodeBufSize,
		`{"MSS":9217}`:                  CodeMSS,
		`{"burst":1001}`:                CodeBurst,
		`{"TOS":256}`:                   CodeBadTOS,
		`{"bandwidth":-1}`:              CodeTotalRate,
		`{"num":-1}`:                    CodeReceiveParams,
		`{"sctp":true}`:                 CodeProtocol,
		`[1,2,3]`:                       CodeReceiveParams,
		`{"tcp":tru`:                    CodeReceiveParams,
		`7`:                             CodeReceiveParams,
		``:                              CodeReceiveParams,
		`{"time":1e400}`:                CodeReceiveParams,
		`{"parallel":1e300,"tcp":true}`: CodeNumStreams,
	} {
		_, err := decodeParams([]byte(text), 0)
		e, ok := errors.AsType[*ServerError](err)
		if !ok || e.Code != want {
			t.Errorf("%s: %v, want code %d (%s)", text, err, want, codeTexts[want])
		}
	}
}

func TestParametersSurviveTheWire(t *testing.T) {
	for _, p := range []Params{
		{},
		{UDP: true, Bandwidth: 123456789.5, Length: 1200, UDPCounters64: true, DontFragment: true},
		{Bidirectional: true, Parallel: 128, Time: 86400, Omit: 600, Bytes: 1 << 50, Blocks: 1 << 40, Burst: 1000},
		{Reverse: true, Window: 512 << 20, MSS: 9216, NoDelay: true, TOS: 255, Congestion: "cubic", GetServerOutput: true,
			RepeatingPayload: true, Title: `quote " and ü`, ExtraData: "x", FQRate: 1e9, ClientVersion: version},
	} {
		p.setDefaults(0)
		text, err := p.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeParams(text, 0)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if d := cmp.Diff(p, got); d != "" {
			t.Errorf("parameters after the wire (-want +got):\n%s\n%s", d, text)
		}
	}
}

// Clients end the run when one of these fields is missing or not a number.
var mandatory = []string{"cpu_util_total", "cpu_util_user", "cpu_util_system", "sender_has_retransmits"}
var mandatoryOfStream = []string{"id", "bytes", "retransmits", "jitter", "errors", "packets"}

func TestResultsHaveEveryMandatoryField(t *testing.T) {
	r := results{CPU: CPU{Total: math.NaN(), User: math.Inf(1)}, Streams: []streamResult{{}, {ID: 3, Jitter: math.NaN(), Seconds: math.Inf(-1)}}}
	b, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range mandatory {
		number(t, b, k)
	}
	for i := range r.Streams {
		for _, k := range append([]string{"omitted_errors", "omitted_packets", "start_time", "end_time"}, mandatoryOfStream...) {
			number(t, b, "streams", i, k)
		}
	}
	if b, err = (&results{}).encode(); err != nil || at(t, b, "streams") == nil {
		t.Errorf("a test without streams lacks the array: %s, %v", b, err)
	}
}

func TestResultsOfPeers(t *testing.T) {
	text := `{"cpu_util_total":42.1,"cpu_util_user":30.5,"cpu_util_system":11.6,"sender_has_retransmits":18446744073709551615,
		"congestion_used":"cubic","streams":[
		{"id":1,"bytes":1.2e+09,"retransmits":18446744073709551615,"jitter":0.001,"errors":3,"omitted_errors":1,"packets":10,"omitted_packets":2,"start_time":0,"end_time":10.5},
		{"id":3,"bytes":7,"retransmits":5,"jitter":0,"errors":0,"packets":0}],
		"server_output_text":"hello\n"}`
	got, err := decodeResults([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &results{
		CPU: CPU{42.1, 30.5, 11.6}, HasRetransmits: -1, Congestion: "cubic", ServerText: "hello\n",
		Streams: []streamResult{
			{ID: 1, Bytes: 1.2e9, Retransmits: -1, Jitter: 0.001, Errors: 3, OmittedErrors: 1, Packets: 10, OmittedPackets: 2,
				HasOmitted: true, Seconds: 10.5, HasSeconds: true},
			{ID: 3, Bytes: 7, Retransmits: 5},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("results (-want +got):\n%s", d)
	}
}

func TestResultsThatLackSomethingAreRefused(t *testing.T) {
	base := func() map[string]any {
		var m map[string]any
		if err := json.Unmarshal([]byte(plainResults), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	check := func(name string, m any) {
		t.Helper()
		b, _ := json.Marshal(m)
		_, err := decodeResults(b)
		if e, ok := errors.AsType[*ServerError](err); !ok || e.Code != CodeReceiveResults {
			t.Errorf("%s: %v, want code %d", name, err, CodeReceiveResults)
		}
	}
	for _, k := range append([]string{"streams"}, mandatory...) {
		m := base()
		delete(m, k)
		check("without "+k, m)
		m[k] = "1"
		check(k+" as a string", m)
	}
	for _, k := range mandatoryOfStream {
		m := base()
		s := m["streams"].([]any)[0].(map[string]any)
		delete(s, k)
		check("stream without "+k, m)
		s[k] = nil
		check("stream with null "+k, m)
	}
	for _, k := range []string{"omitted_errors", "omitted_packets"} {
		m := base()
		m["streams"].([]any)[0].(map[string]any)[k] = 1
		check("only "+k, m)
	}
	m := base()
	m["streams"] = []any{7}
	check("a number as stream", m)
	m["streams"] = make([]map[string]any, maxResultStreams+1)
	check("too many streams", m)
	check("an array", []any{})
	if _, err := decodeResults([]byte(plainResults)); err != nil {
		t.Errorf("the base of this table is refused: %v", err)
	}
}

func TestStreamsAreNumbered1345(t *testing.T) {
	for n, want := range []int{1, 3, 4, 5, 6} {
		if got := streamID(n); got != want {
			t.Errorf("stream %d has id %d, want %d", n, got, want)
		}
	}
}

func TestCookieIsWhatClientsSend(t *testing.T) {
	form := regexp.MustCompile(`^[a-z2-7]{36}\x00$`)
	seen := map[cookie]bool{}
	for range 100 {
		c := newCookie()
		if !form.Match(c[:]) {
			t.Fatalf("cookie %q", c[:])
		}
		if seen[c] {
			t.Fatalf("cookie %q twice", c[:])
		}
		seen[c] = true
	}
	if got := (cookie{'a', 1, 200, 'b'}).String(); !strings.HasPrefix(got, "a?") || strings.ContainsAny(got, "\x00\x01") {
		t.Errorf("a foreign cookie prints as %q", got)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	frame := func(n uint32, text string) *bytes.Reader {
		return bytes.NewReader(append(binary.BigEndian.AppendUint32(nil, n), text...))
	}
	for _, tc := range []struct {
		name string
		in   *bytes.Reader
		ok   bool
	}{
		{"as announced", frame(2, "{}"), true},
		{"a NUL counted in", frame(3, "{}\x00"), true},
		{"more follows", frame(2, "{}{}"), true},
		{"zero", frame(0, ""), false},
		{"over the limit", frame(101, strings.Repeat(" ", 101)), false},
		{"4 GiB", frame(math.MaxUint32, `{"tcp"`), false},
		{"short", frame(100, "{}"), false},
		{"no length", bytes.NewReader([]byte{0, 0}), false},
	} {
		got, err := readMessage(tc.in, 100)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
		if tc.ok && string(got) != "{}" {
			t.Errorf("%s: got %q", tc.name, got)
		}
	}
	// What is announced costs no memory until it comes.
	if n := testing.AllocsPerRun(10, func() { readMessage(frame(maxResults, "{"), maxResults) }); n > 20 {
		t.Errorf("%v allocations for a message that does not come", n)
	}
}

func TestErrorsHaveTexts(t *testing.T) {
	for c, text := range codeTexts {
		e := fmt.Errorf("wrapped: %w", fail(c, "detail"))
		if !strings.Contains(e.Error(), text) || !strings.Contains(e.Error(), "detail") || codeOf(e, 0) != c {
			t.Errorf("code %d: %v", c, e)
		}
	}
	if got := (&ServerError{Code: 9999}).Error(); got != "int_errno=9999" {
		t.Errorf("an unknown code prints as %q", got)
	}
	for s, want := range map[State]string{TestRunning: "TEST_RUNNING", AccessDenied: "ACCESS_DENIED", 77: "state 77"} {
		if s.String() != want {
			t.Errorf("%d prints as %v, want %s", int8(s), s, want)
		}
	}
}
