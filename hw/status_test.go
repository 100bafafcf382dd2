package hw

import "testing"

// RXF-08: what the receive checksum engine says. Only "IP, no error" is good; "bypassed" is never good; an error is an error
// whether the error summary is set or not.
func TestRXF08_VerdictTable(t *testing.T) {
	const es, ft, ipce, pce = 1 << 15, 1 << 5, 1 << 7, 1 << 0
	for _, c := range []struct {
		s       uint32
		verdict Verdict
		err     RXError
	}{
		{0, ChecksumUnknown, 0},
		{ft, ChecksumGood, 0},
		{ft | pce, ChecksumBadL4, RXPayloadSum},
		{ft | ipce, ChecksumBadL3, RXHeaderSum},
		{ft | ipce | pce, ChecksumBadL3, RXHeaderSum | RXPayloadSum},
		{pce, ChecksumL3Good, 0},
		{ipce | pce, ChecksumUnknown, 0},
		{ipce, ChecksumUnknown, 0},
	} {
		s := RXStatus(c.s)
		if got := s.Verdict(true); got != c.verdict {
			t.Errorf("%v: %v, want %v", s, got, c.verdict)
		}
		if got := s.Errors(true); got != c.err {
			t.Errorf("%v: errors %v, want %v", s, got, c.err)
		}
		want := c.err
		if want == 0 {
			want = RXOther
		}
		if got := (s | es).Errors(true); got != want {
			t.Errorf("%v with ES: errors %v, want %v", s, got, want)
		}
		if got := s.Verdict(false); got != ChecksumUnknown {
			t.Errorf("%v, engine off: %v", s, got)
		}
	}
	// Without an engine bit 7 is a giant, and bit 0 an address match.
	if got := RXStatus(ft | ipce | pce).Errors(false); got != RXGiant {
		t.Errorf("engine off: %v", got)
	}
}

// RXF-13: each error bit is one error, alone or with the summary, and none of them is a good frame.
func TestRXF13_ErrorBits(t *testing.T) {
	for bit, want := range map[int]RXError{
		1: RXCRC, 3: RXReceive, 4: RXCut, 6: RXLateColl, 11: RXFIFO, 12: RXLength, 14: RXTruncated, 15: RXOther,
		2: 0, 8: 0, 9: 0, 10: 0, 13: 0, 30: 0, // dribble, LS, FS, VLAN, address filters: no errors
	} {
		s := RXStatus(1) << bit
		if got := s.Errors(true); got != want {
			t.Errorf("bit %d: %v, want %v", bit, got, want)
		}
		if want != 0 && want != RXOther {
			if got := (s | 1<<15).Errors(true); got != want {
				t.Errorf("bit %d with ES: %v, want %v", bit, got, want)
			}
		}
	}
	// LE means nothing in a frame with an EtherType.
	if got := RXStatus(1<<12 | 1<<5).Errors(true); got != 0 {
		t.Errorf("LE in a type frame: %v", got)
	}
}

func TestTXStatus(t *testing.T) {
	for _, c := range []struct {
		s     TXStatus
		errs  TXStatus
		colls int
	}{
		{0, 0, 0}, {1, 0, 0}, {5 << 3, 0, 5}, {1<<15 | 1<<1, TXErrorSummary | TXUnderflow, 0},
		{1<<8 | 15<<3, TXExcessColl, 0}, // the count is not valid then
		{1 << 7, 0, 0}, {1 << 12, TXPayloadSum, 0}, {1 << 16, TXHeaderSum, 0},
	} {
		if c.s.Errors() != c.errs || c.s.Collisions() != c.colls {
			t.Errorf("%v: %v, %d collisions", c.s, c.s.Errors(), c.s.Collisions())
		}
	}
}
