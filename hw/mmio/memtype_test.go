package mmio

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Device memory is copied by the safe routine wherever it is picky; everything else by what is measured to be quicker, in
// each direction; and a policy that is given is followed.
func TestCopyChoice(t *testing.T) {
	fastWins := copyTimes{safeIn: 900, fastIn: 300, safeOut: 4000, fastOut: 1000}
	mixed := copyTimes{safeIn: 300, fastIn: 900, safeOut: 4000, fastOut: 1000}
	tie := copyTimes{safeIn: 300, fastIn: 300, safeOut: 400, fastOut: 400}
	for _, c := range []struct {
		name     string
		typ      MemoryType
		policy   CopyPolicy
		picky    bool
		times    copyTimes
		want     copyChoice
		measured bool
	}{
		{"Device on ARM", Device, CopyAuto, true, fastWins, copyChoice{}, false},
		{"Device on x86", Device, CopyAuto, false, fastWins, copyChoice{true, true, fastWins}, true},
		{"non-cacheable", NonCacheable, CopyAuto, true, fastWins, copyChoice{true, true, fastWins}, true},
		{"one way only", NonCacheable, CopyAuto, true, mixed, copyChoice{false, true, mixed}, true},
		{"a tie is safe", NonCacheable, CopyAuto, true, tie, copyChoice{false, false, tie}, true},
		{"told to be safe", NonCacheable, CopySafe, false, fastWins, copyChoice{}, false},
		{"told to be fast", NonCacheable, CopyFast, true, mixed, copyChoice{fastIn: true, fastOut: true}, false},
		{"not fast on Device", Device, CopyFast, true, fastWins, copyChoice{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			measured := false
			got := chooseCopy(c.typ, c.policy, c.picky, func() copyTimes { measured = true; return c.times })
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(copyChoice{}, copyTimes{})); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
			if measured != c.measured {
				t.Errorf("measured: %v, want %v", measured, c.measured)
			}
		})
	}
}

func TestMeasureCopyMeasuresAll(t *testing.T) {
	m := measureCopy(rawOf(make([]byte, minPool)))
	for name, ns := range map[string]int64{"safe in": m.safeIn, "fast in": m.fastIn, "safe out": m.safeOut, "fast out": m.fastOut} {
		if ns <= 0 {
			t.Errorf("%s took %d ns", name, ns)
		}
	}
}

func TestCopyChoiceSaysWhatWasMeasured(t *testing.T) {
	for want, c := range map[string]copyChoice{
		"copy in safe, out safe": {},
		"copy in fast, out fast": {fastIn: true, fastOut: true},
		"copy in safe (5046 of 1682 MB/s), out fast (1514 of 378 MB/s)": {fastOut: true,
			times: copyTimes{safeIn: 300, fastIn: 900, safeOut: 4000, fastOut: 1000}},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"device": Device.String(), "write-back": WriteBack.String(), "MemoryType(9)": MemoryType(9).String(),
		"fast": CopyFast.String(), "CopyPolicy(9)": CopyPolicy(9).String(),
		"udmabuf": UDMABuf.String(), "Kind(99)": Kind(99).String(),
		"bytes around the buffer changed": Overrun.String(), "Symptom(0)": Symptom(0).String(),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
