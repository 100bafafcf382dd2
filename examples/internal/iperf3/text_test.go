package iperf3

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUnits(t *testing.T) {
	for _, tc := range []struct {
		x    float64
		want string
	}{
		{0, "0.00 Bytes"}, {999, " 999 Bytes"}, {1024, "1.00 KBytes"}, {112 << 20, " 112 MBytes"}, {1023 << 10, "1023 KBytes"},
		{1.09 * (1 << 30), "1.09 GBytes"}, {10 << 20, "10.0 MBytes"}, {99.96 * (1 << 20), " 100 MBytes"}, {9.996 * (1 << 20), "10.0 MBytes"},
	} {
		if got := FormatBytes(tc.x); got != tc.want {
			t.Errorf("%v bytes: %q, want %q", tc.x, got, tc.want)
		}
	}
	for x, want := range map[float64]string{0: "0.00 bits/sec", 941e6: " 941 Mbits/sec", 1.05e9: "1.05 Gbits/sec", 10.2e6: "10.2 Mbits/sec"} {
		if got := formatRate(x); got != want {
			t.Errorf("%v bit/s: %q, want %q", x, got, want)
		}
	}
}

func TestParseUnits(t *testing.T) {
	for s, want := range map[string]float64{"0": 0, "100M": 100e6, "1.5g": 1.5e9, "64k": 64e3, "2T": 2e12, "9600": 9600} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("rate %q: %v, %v, want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]int64{"50M": 50 << 20, "200K": 200 << 10, "1g": 1 << 30, "1000": 1000} {
		if got, err := ParseSize(s); err != nil || got != want {
			t.Errorf("size %q: %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "M", "-1", "10X", "ten", "1e400", "NaN", "1MM", "inf"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("rate %q: %v, want an error", s, got)
		} else if !strings.Contains(err.Error(), `"`+s+`"`) {
			t.Errorf("rate %q: the error does not name it: %v", s, err)
		}
	}
	if _, err := ParseSize("99999999999T"); err == nil {
		t.Error("a size beyond 64 bits is accepted")
	}
}

// Lines as the stock client prints them.
func TestLinesLookLikeUpstreams(t *testing.T) {
	const second = 1e6 / 8
	for _, tc := range []struct {
		name string
		p    Params
		iv   Interval
		want string
	}{
		{"TCP sender", Params{Parallel: 1}, Interval{End: 1, Streams: []StreamInterval{
			{ID: 5, Sending: true, Figures: Figures{End: 1, Bytes: 941 * second, Retransmits: 25, TCP: TCPInfo{CongestionWindow: 1023 << 10}}}}},
			"[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n" +
				"[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec   25   1023 KBytes       \n"},
		{"TCP receiver, omitted", Params{Parallel: 1, Reverse: true}, Interval{End: 1, Omitted: true, Streams: []StreamInterval{
			{ID: 5, Reverse: true, Figures: Figures{End: 1, Bytes: 941 * second, Retransmits: -1}}}},
			"[ ID] Interval           Transfer     Bitrate\n" +
				"[  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec                  (omitted)\n"},
		{"UDP sender", Params{UDP: true, Parallel: 1}, Interval{Start: 1, End: 2, Streams: []StreamInterval{
			{ID: 5, Sending: true, Figures: Figures{Start: 1, End: 2, Bytes: 10 * second, Packets: 38}}}},
			"[ ID] Interval           Transfer     Bitrate         Total Datagrams\n" +
				"[  5]   1.00-2.00   sec  1.19 MBytes  10.0 Mbits/sec  38  \n"},
		{"UDP receivers", Params{UDP: true, Parallel: 2, Reverse: true}, Interval{End: 1, Streams: []StreamInterval{
			{ID: 5, Reverse: true, Figures: Figures{End: 1, Bytes: 10 * second, Packets: 39, Jitter: 15e-6}},
			{ID: 7, Reverse: true, Figures: Figures{End: 1, Bytes: 10 * second, Packets: 41, Lost: 4, Jitter: 25e-6}}}},
			"[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n" +
				"[  5]   0.00-1.00   sec  1.19 MBytes  10.0 Mbits/sec  0.015 ms  0/39 (0%)  \n" +
				"[  7]   0.00-1.00   sec  1.19 MBytes  10.0 Mbits/sec  0.025 ms  4/41 (9.8%)  \n" +
				"[SUM]   0.00-1.00   sec  2.38 MBytes  20.0 Mbits/sec  0.020 ms  4/80 (5%)  \n"},
		{"both directions", Params{Bidirectional: true, Parallel: 1}, Interval{End: 1, Streams: []StreamInterval{
			{ID: 5, Sending: true, Figures: Figures{End: 1, Bytes: 941 * second, Retransmits: 0, TCP: TCPInfo{CongestionWindow: 1023 << 10}}},
			{ID: 7, Reverse: true, Figures: Figures{End: 1, Bytes: 941 * second, Retransmits: -1}}}},
			"[ ID][Role] Interval           Transfer     Bitrate         Retr  Cwnd\n" +
				"[  5][TX-C]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    0   1023 KBytes       \n" +
				"[  7][RX-C]   0.00-1.00   sec   112 MBytes   941 Mbits/sec                  \n"},
		{"UDP in both directions", Params{UDP: true, Bidirectional: true, Parallel: 1}, Interval{End: 1, Streams: []StreamInterval{
			{ID: 5, Sending: true, Figures: Figures{End: 1, Bytes: 10 * second, Packets: 39}},
			{ID: 7, Reverse: true, Figures: Figures{End: 1, Bytes: 10 * second, Packets: 39, Jitter: 23e-6}}}},
			"[ ID][Role] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n" +
				"[  5][TX-C]   0.00-1.00   sec  1.19 MBytes  10.0 Mbits/sec            39  \n" +
				"[  7][RX-C]   0.00-1.00   sec  1.19 MBytes  10.0 Mbits/sec  0.023 ms  0/39 (0%)  \n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var b strings.Builder
			p := printer{w: &b, p: &tc.p}
			p.interval(&tc.iv)
			if d := cmp.Diff(tc.want, b.String()); d != "" {
				t.Errorf("lines (-upstream +ours):\n%s", d)
			}
		})
	}
}

func TestSummaryLooksLikeUpstreams(t *testing.T) {
	const mega = 1e6 / 8
	r := &Report{
		Params:  Params{Parallel: 2},
		HasPeer: true,
		Streams: []StreamReport{
			{ID: 5, Sending: true, Sent: Figures{End: 2, Bytes: 200 * mega, Retransmits: 2}, Received: Figures{End: 2, Bytes: 200 * mega, Retransmits: -1}},
			{ID: 7, Sending: true, Sent: Figures{End: 2, Bytes: 200 * mega, Retransmits: 3}, Received: Figures{End: 2, Bytes: 100 * mega, Retransmits: -1}},
		},
	}
	client := `- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec    2             sender
[  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec                  receiver
[  7]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec    3             sender
[  7]   0.00-2.00   sec  11.9 MBytes  50.0 Mbits/sec                  receiver
[SUM]   0.00-2.00   sec  47.7 MBytes   200 Mbits/sec    5             sender
[SUM]   0.00-2.00   sec  35.8 MBytes   150 Mbits/sec                  receiver
`
	var b strings.Builder
	p := printer{w: &b, p: &r.Params}
	p.final(r)
	if d := cmp.Diff(client, b.String()); d != "" {
		t.Errorf("of a client (-upstream +ours):\n%s", d)
	}

	// A server prints its own half only, although it knows the other.
	for i := range r.Streams {
		r.Streams[i].Sending = false
	}
	r.Server = true
	server := `- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  23.8 MBytes   100 Mbits/sec                  receiver
[  7]   0.00-2.00   sec  11.9 MBytes  50.0 Mbits/sec                  receiver
[SUM]   0.00-2.00   sec  35.8 MBytes   150 Mbits/sec                  receiver
`
	b.Reset()
	p = printer{w: &b, p: &r.Params, server: true}
	p.final(r)
	if d := cmp.Diff(server, b.String()); d != "" {
		t.Errorf("of a server (-want +got):\n%s", d)
	}
}

func TestKeptTextIsBounded(t *testing.T) {
	p := printer{keep: new(strings.Builder), p: &Params{Parallel: 1}, server: true}
	iv := Interval{End: 1, Streams: []StreamInterval{{ID: 1, Figures: Figures{End: 1, Bytes: 1 << 30, Retransmits: -1}}}}
	for range 10000 {
		p.interval(&iv)
	}
	p.final(&Report{Params: *p.p, Streams: []StreamReport{{ID: 1}}})
	got := p.keep.String()
	if len(got) > maxServerText+1000 {
		t.Errorf("%d bytes are kept", len(got))
	}
	if !strings.HasSuffix(got, "receiver\n") || strings.Count(got, "left out") != 1 {
		t.Errorf("the kept text ends in %q", got[len(got)-300:])
	}
}

func TestReportIsBounded(t *testing.T) {
	var r Report
	iv := Interval{Streams: make([]StreamInterval, 2*MaxStreams)}
	for range maxKeptIntervals/len(iv.Streams) + 5 {
		r.addInterval(iv)
	}
	if n := len(r.Intervals) * len(iv.Streams); n > maxKeptIntervals || r.DroppedIntervals != 5 {
		t.Errorf("%d figures are kept, %d intervals dropped", n, r.DroppedIntervals)
	}
}

// Scripts parse this: the names are iperf3's.
func TestJSONHasUpstreamsKeys(t *testing.T) {
	info := TCPInfo{CongestionWindow: 1, SendWindow: 2, RTT: 3 * time.Microsecond, RTTVar: 4 * time.Microsecond, PMTU: 5}
	keys := func(v any) string {
		m, _ := v.(map[string]any)
		var b strings.Builder
		for _, k := range []string{"socket", "start", "end", "seconds", "bytes", "bits_per_second", "retransmits", "snd_cwnd", "snd_wnd", "rtt",
			"rttvar", "pmtu", "max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt", "jitter_ms", "lost_packets", "packets",
			"lost_percent", "out_of_order", "omitted", "sender"} {
			if _, ok := m[k]; ok {
				b.WriteString(k + " ")
				delete(m, k)
			}
		}
		for k := range m {
			b.WriteString("unexpected:" + k + " ")
		}
		return strings.TrimSpace(b.String())
	}
	base := "start end seconds bytes bits_per_second "
	for _, tc := range []struct {
		name string
		r    Report
		want map[string]string
	}{
		{"TCP", Report{Params: Params{Parallel: 1}, HasPeer: true,
			Intervals: []Interval{{End: 1, Streams: []StreamInterval{{ID: 1, Sending: true, Figures: Figures{TCP: info}}}}},
			Streams:   []StreamReport{{ID: 1, Sending: true, Received: Figures{Retransmits: -1}}}},
			map[string]string{
				"intervals.0.streams.0":  "socket " + base + "retransmits snd_cwnd snd_wnd rtt rttvar pmtu omitted sender",
				"intervals.0.sum":        base + "retransmits omitted sender",
				"end.streams.0.sender":   "socket " + base + "retransmits max_snd_cwnd max_snd_wnd max_rtt min_rtt mean_rtt sender",
				"end.streams.0.receiver": "socket " + base + "sender",
				"end.sum_sent":           base + "retransmits sender",
				"end.sum_received":       base + "sender",
			}},
		{"UDP in reverse", Report{Params: Params{UDP: true, Reverse: true, Parallel: 1}, HasPeer: true,
			Intervals: []Interval{{End: 1, Streams: []StreamInterval{{ID: 1, Reverse: true}}}},
			Streams:   []StreamReport{{ID: 1, Reverse: true}}},
			map[string]string{
				"intervals.0.streams.0": "socket " + base + "jitter_ms lost_packets packets lost_percent omitted sender",
				"intervals.0.sum":       base + "jitter_ms lost_packets packets lost_percent omitted sender",
				"end.streams.0.udp":     "socket " + base + "jitter_ms lost_packets packets lost_percent out_of_order sender",
				"end.sum":               base + "jitter_ms lost_packets packets lost_percent sender",
				"end.sum_sent":          base + "jitter_ms lost_packets packets lost_percent sender",
				"end.sum_received":      base + "jitter_ms lost_packets packets lost_percent sender",
			}},
		{"TCP both ways", Report{Params: Params{Bidirectional: true, Parallel: 1},
			Intervals: []Interval{{End: 1, Streams: []StreamInterval{{ID: 1, Sending: true}, {ID: 3, Reverse: true}}}},
			Streams:   []StreamReport{{ID: 1, Sending: true}, {ID: 3, Reverse: true, Sent: Figures{Retransmits: -1}}}},
			map[string]string{
				"intervals.0.sum_bidir_reverse":  base + "omitted sender",
				"end.sum_sent_bidir_reverse":     base + "sender",
				"end.sum_received_bidir_reverse": base + "sender",
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, err := tc.r.JSON()
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range tc.want {
				var v any
				if err := json.Unmarshal(b, &v); err != nil {
					t.Fatal(err)
				}
				for _, p := range strings.Split(path, ".") {
					if l, ok := v.([]any); ok {
						v = l[int(p[0]-'0')]
					} else {
						v = v.(map[string]any)[p]
					}
				}
				if d := cmp.Diff(want, keys(v)); d != "" {
					t.Errorf("%s (-upstream +ours):\n%s", path, d)
				}
			}
			for _, k := range []string{"host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"} {
				number(t, b, "end", "cpu_utilization_percent", k)
			}
			for _, k := range []string{"num_streams", "blksize", "omit", "duration", "bytes", "blocks", "reverse", "tos", "target_bitrate"} {
				number(t, b, "start", "test_start", k)
			}
		})
	}
}

// The banner says that the server waits for a test. One that was told to stop does not.
func TestNoBannerAfterAStop(t *testing.T) {
	var out lockedBuffer
	s := startServer(t, ServerOptions{Output: &out})
	s.good(t)
	if _, err := s.try(ClientOptions{Interval: 100 * time.Millisecond, OnInterval: func(Interval) { s.Close() }}); !errors.Is(err, ErrTerminated) {
		t.Errorf("the client of a server that was stopped: %v", err)
	}
	if err := s.wait(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out.String(), "Server listening"); n != 2 {
		t.Errorf("%d banners, want one before each of two tests:\n%s", n, out.String())
	}
}
