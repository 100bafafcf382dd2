package mmio

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// Which instruction a build uses is a promise: an ordering-only barrier loses frames on ARM.
func TestBarrierOfThisBuild(t *testing.T) {
	want, ok := map[string]string{
		"amd64": "MFENCE",
		"386":   "LOCK ADDL",
		"arm64": "DSB SY",
		"arm":   armBarrier,
	}[runtime.GOARCH]
	if !ok {
		if barrierCompletes {
			t.Errorf("%s claims a barrier that completes", runtime.GOARCH)
		}
		t.Skip("no promise for ", runtime.GOARCH)
	}
	if barrierName != want {
		t.Errorf("barrier is %s, want %s", barrierName, want)
	}
	if wantCompletes := want != armBarrierNone; barrierCompletes != wantCompletes {
		t.Errorf("barrierCompletes is %v for %s", barrierCompletes, want)
	}
	if picky := strings.HasPrefix(runtime.GOARCH, "arm"); deviceIsPicky != picky {
		t.Errorf("deviceIsPicky is %v", deviceIsPicky)
	}
	barrier() // an instruction that user mode may not use would end the test
}

// armBarrierNone is what a build for ARMv5 has, which Open refuses.
const armBarrierNone = "atomic add (orders CPUs only)"

// The instructions behind the names.
func TestBarrierSources(t *testing.T) {
	for file, want := range map[string]string{
		"stubs_amd64.s":  `(?m)^\tMFENCE$`,
		"stubs_386.s":    `(?m)^\tLOCK\n\tADDL\t\$0, 0\(SP\)$`,
		"stubs_arm64.s":  `(?m)^\tDSB\t\$15\b`,          // option SY
		"barrier_arm7.s": `(?m)^\tWORD\t\$0xF57FF04F\b`, // DSB SY, Arm ARM A8.8.43
		"barrier_arm6.s": `(?m)^\tMCR\t15, 0, R0, C7, C10, 4$`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("%s has no barrier %s", file, want)
		}
	}
}

// The assembly makes no access that Device memory does not take: nothing wider than a word, no multiple, no vector, no
// repetition.
func TestStubsUseNothingWiderThanAWord(t *testing.T) {
	files, err := filepath.Glob("*.s")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d assembly files, %v", len(files), err)
	}
	// Instructions that touch memory other than the arguments, by machine.
	allowed := map[string]*regexp.Regexp{
		"stubs_amd64.s": regexp.MustCompile(`^(MOV[LWB])$`),
		"stubs_386.s":   regexp.MustCompile(`^(MOV[LWB]|ADDL)$`), // ADDL: the barrier, on the stack
		"stubs_arm64.s": regexp.MustCompile(`^(MOVWU?(\.P)?|MOVH|MOVB)$`),
		"stubs_arm.s":   regexp.MustCompile(`^(MOVW(\.P)?|MOVH|MOVB)$`),
	}
	memory := regexp.MustCompile(`\((R?[0-9A-Z]+)\)`)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			code, _, _ := strings.Cut(line, "//")
			fields := strings.Fields(code)
			if len(fields) < 2 || strings.HasPrefix(fields[0], "TEXT") || strings.HasPrefix(fields[0], "#") {
				continue
			}
			m := memory.FindStringSubmatch(strings.ReplaceAll(code, "(FP)", ""))
			if m == nil {
				continue
			}
			seen++
			if re := allowed[file]; re == nil || !re.MatchString(fields[0]) {
				t.Errorf("%s:%d: %s touches memory", file, i+1, strings.TrimSpace(code))
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d accesses seen: the test does not read what it should", seen)
	}
}
