package iperf3

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDatagramLayout(t *testing.T) {
	sent := 0x01020304*time.Second + 0x0506*time.Microsecond
	for _, tc := range []struct {
		wide bool
		seq  int64
		want []byte
	}{
		{false, 0x0708090A, []byte{1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 9, 10}},
		{true, 0x0708090A0B0C0D0E, []byte{1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}},
	} {
		b := make([]byte, len(tc.want))
		putDatagram(b, sent, tc.seq, tc.wide)
		if !bytes.Equal(b, tc.want) {
			t.Errorf("wide %v: % x, want % x", tc.wide, b, tc.want)
		}
		gotSent, gotSeq, ok := parseDatagram(b, tc.wide)
		if !ok || gotSent != sent || gotSeq != tc.seq {
			t.Errorf("wide %v: parsed %v, %#x, %v", tc.wide, gotSent, gotSeq, ok)
		}
		if _, _, ok := parseDatagram(b[:len(b)-1], tc.wide); ok {
			t.Errorf("wide %v: a datagram of %d bytes has a header", tc.wide, len(b)-1)
		}
	}
}

func TestUDPConnectInEveryForm(t *testing.T) {
	for name, b := range map[string]string{
		"3.12 and later":             "9876",
		"big-endian, 3.12 to 3.16":   "6789",
		"up to 3.11":                 "\x15\xcd\x5b\x07",
		"up to 3.11 on a big-endian": "\x07\x5b\xcd\x15",
	} {
		if !isUDPConnect([]byte(b)) {
			t.Errorf("%s: % x does not open a stream", name, b)
		}
	}
	for _, b := range []string{"", "987", "98765", "\x00\x00\x00\x00", "junk"} {
		if isUDPConnect([]byte(b)) {
			t.Errorf("% x opens a stream", b)
		}
	}
	for b, want := range map[string]bool{"6789": true, "6789 and more": true, "\xb1\x68\xde\x3a": true, "678": false, "9876": false, "": false} {
		if isUDPReply([]byte(b)) != want {
			t.Errorf("% x is a reply: %v, want %v", b, !want, want)
		}
	}
}

func TestLossAndReordering(t *testing.T) {
	for _, tc := range []struct {
		name string
		seqs []int64
		want lossStats
	}{
		{"in order", []int64{1, 2, 3}, lossStats{Packets: 3}},
		{"4 and 5 missing, 5 late, 8 and 9 missing", []int64{1, 2, 3, 6, 5, 7, 10}, lossStats{Packets: 10, Lost: 3, Late: 1}},
		{"the first missing", []int64{3}, lossStats{Packets: 3, Lost: 2}},
		{"a duplicate looks like a late one", []int64{1, 1}, lossStats{Packets: 1, Late: 1}},
		{"a duplicate never makes loss negative", []int64{1, 2, 2, 2, 4}, lossStats{Packets: 4, Lost: 1, Late: 2}},
		{"a wrap counts as late", []int64{math.MaxUint32, 0, 1}, lossStats{Packets: math.MaxUint32, Lost: math.MaxUint32 - 3, Late: 2}},
		{"a negative number", []int64{1, -5, 2}, lossStats{Packets: 2, Late: 1}},
	} {
		var l lossStats
		for _, s := range tc.seqs {
			l.add(s, 0, 0)
		}
		if d := cmp.Diff(tc.want, l, cmpopts.IgnoreUnexported(lossStats{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// Worked by hand after RFC 1889, A.8: J += (|D| - J) / 16.
func TestJitter(t *testing.T) {
	ms := time.Millisecond
	day := 24 * time.Hour // the two clocks have nothing to do with each other
	var l lossStats
	add := func(seq int64, sent, arrived time.Duration) { l.add(seq, sent+day, arrived) }
	check := func(want float64) {
		t.Helper()
		if math.Abs(l.Jitter-want) > 1e-9 {
			t.Errorf("jitter %.12f s, want %.12f s", l.Jitter, want)
		}
	}
	add(1, 0, 10*ms)
	check(0) // the first says nothing
	add(2, 20*ms, 30*ms)
	check(0) // no variation
	add(3, 40*ms, 66*ms)
	check(0.016 / 16)
	add(4, 60*ms, 70*ms)
	check(0.001 + (0.016-0.001)/16)
	before := l
	l.endOmit()
	if l.Jitter != 0 || l.Packets != before.Packets {
		t.Errorf("after the omitted part: %+v", l)
	}
	add(5, 80*ms, 190*ms) // counts as the first again
	check(0)
}
