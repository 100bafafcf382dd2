package clk

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loggedRegs writes the order of events into a list.
type loggedRegs struct {
	*regs
	name string
	log  *[]string
}

func (l loggedRegs) Store32(off uint32, v uint32) {
	*l.log = append(*l.log, fmt.Sprintf("%s+%#x = %#x", l.name, off, v))
	l.regs.Store32(off, v)
}

// rgmii builds mux, divider and factor over one parent, with a log of what is programmed in which order.
func rgmii(t testing.TB, parent Clock, log *[]string) (c Clock, prg *regs) {
	prg = newRegs()
	reg := Reg{Bank: NewBank(loggedRegs{prg, "PRG_ETH0", log}), Name: "PRG_ETH0"}
	mux := must[*Mux](t)(NewMux(MuxConfig{Name: "m250_sel", Inputs: []Clock{nil, parent}, Field: Field{reg, 4, 1}}))
	div := must[*Divider](t)(NewDivider(DividerConfig{Name: "m250_div", Parent: mux, Field: Field{reg, 7, 3},
		Table: TableRange(2, 7), MinInput: 500 * MHz}))
	half := must[*Factor](t)(NewFactor(FactorConfig{Name: "half", Parent: div, Mult: 1, Div: 2}))
	return half, prg
}

// The parent is asked for its rate before the divider is touched.
func TestParentFirst(t *testing.T) {
	var log []string
	parent := &other{name: "mpll2", rate: 250 * MHz, log: &log, can: func(want Hz) (Hz, error) { return min(want, 637490273), nil }}
	tx, _ := rgmii(t, parent, &log)
	change, err := SetRate(tx, 125*MHz, 0)
	if err != nil || change.Rate != 125*MHz {
		t.Fatalf("%+v, %v", change, err)
	}
	want := []string{"mpll2 at 500000000", "PRG_ETH0+0x0 = 0x10", "PRG_ETH0+0x0 = 0x110"}
	if d := cmp.Diff(want, log); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
}

// A parent that becomes something else than it promised is taken at its word: another divisor if that helps, else an
// error with everything restored. A clock that is off is never accepted.
func TestParentAnswersAnotherRate(t *testing.T) {
	for _, tc := range []struct {
		name    string
		answers Hz
		rate    Hz // zero: error
		div     uint32
	}{
		{"what was asked", 500 * MHz, 125 * MHz, 2},
		{"a little less", 499996410, 124999102, 2},
		{"within 0.1 %", 500400 * KHz, 125100 * KHz, 2},
		{"twice as much", 1000 * MHz, 125 * MHz, 4},
		{"three times as much", 1500 * MHz, 125 * MHz, 6},
		{"0.2 % more", 501 * MHz, 0, 0},
		{"2 % more, as with 32-bit arithmetic", 509956425, 0, 0},
		{"the boot loader's rate", 250 * MHz, 0, 0},
		{"far too much", 2000 * MHz, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log []string
			parent := &other{name: "mpll2", rate: 250 * MHz, log: &log}
			parent.set = func(o *other, want Hz) error {
				o.rate = tc.answers
				if want == 250*MHz {
					o.rate = want // being restored works
				}
				return nil
			}
			tx, prg := rgmii(t, parent, &log)
			const left = 0x00001001 | 5<<7
			prg.words[0] = left
			change, err := SetRate(tx, 125*MHz, 0)
			if tc.rate == 0 {
				wantError(t, "SetRate", err, ErrNoRate)
				if promise := fmt.Sprintf("gives %v instead of", tc.answers); !strings.Contains(err.Error(), promise) {
					t.Errorf("error %q does not say that mpll2 broke its promise", err)
				}
				if parent.rate != 250*MHz || prg.words[0] != left {
					t.Errorf("not restored: parent at %v, PRG_ETH0 %#x", parent.rate, prg.words[0])
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if r, err := tx.Rate(); err != nil || r != tc.rate || change.Rate != tc.rate {
				t.Errorf("rate %v (%v), change says %v, want %v", r, err, change.Rate, tc.rate)
			}
			if got := prg.words[0] >> 7 & 7; got != tc.div {
				t.Errorf("divider %d, want %d", got, tc.div)
			}
			if err := change.Restore(); err != nil || parent.rate != 250*MHz || prg.words[0] != left {
				t.Errorf("Restore: %v, parent at %v, PRG_ETH0 %#x", err, parent.rate, prg.words[0])
			}
		})
	}
}

// movingRegs calls somebody else after each write.
type movingRegs struct {
	*regs
	moved func()
}

func (m movingRegs) Store32(off uint32, v uint32) {
	m.regs.Store32(off, v)
	m.moved()
}

func dividerOver(t testing.TB, parent Clock, r Registers) Clock {
	reg := Reg{Bank: NewBank(r), Name: "PRG_ETH0"}
	div := must[*Divider](t)(NewDivider(DividerConfig{Name: "m250_div", Parent: parent, Field: Field{reg, 7, 3}, Table: TableRange(2, 7)}))
	return must[*Factor](t)(NewFactor(FactorConfig{Name: "half", Parent: div, Mult: 1, Div: 2}))
}

// Somebody else moves the parent whenever the divider is written: every plan is broken, though each would have done. After
// a bounded number of tries that is an error, and the divider is as it was found.
func TestUnstable(t *testing.T) {
	parent := &other{name: "source", rate: 500 * MHz}
	r, moves := newRegs(), 0
	tx := dividerOver(t, source{parent}, movingRegs{r, func() {
		moves++
		parent.rate = []Hz{500 * MHz, 1000 * MHz}[moves%2]
	}})
	r.words[0] = 7 << 7
	_, err := SetRate(tx, 125*MHz, 0)
	wantError(t, "SetRate", err, ErrNoRate, ErrUnstable)
	if moves < 2 || moves > 3*maxRounds || r.words[0] != 7<<7 {
		t.Errorf("%d writes, PRG_ETH0 %#x", moves, r.words[0])
	}
}

// rates is a clock that is read only and has another rate each time, the last one for ever.
type rates struct{ left []Hz }

func (r *rates) Name() string { return "rates" }
func (r *rates) Rate() (Hz, error) {
	v := r.left[0]
	if len(r.left) > 1 {
		r.left = r.left[1:]
	}
	return v, nil
}

// The rate is read back at the very end, and it is that which counts.
func TestReadBackCounts(t *testing.T) {
	half := func(r ...Hz) Clock {
		return must[*Factor](t)(NewFactor(FactorConfig{Name: "half", Parent: &rates{r}, Mult: 1, Div: 2}))
	}
	if _, err := SetRate(half(250*MHz, 300*MHz), 125*MHz, 0); !errors.Is(err, ErrNoRate) {
		t.Errorf("moved away after it was planned: %v", err)
	}
	if c, err := SetRate(half(250*MHz, 300*MHz, 250*MHz), 125*MHz, 0); err != nil || c.Rate != 125*MHz {
		t.Errorf("moved away and back: %v, %v", c, err)
	}
}

// A failure at any write leaves every register as it was found, and says what failed.
func TestFailureIsUndone(t *testing.T) {
	const left9, leftPrg = 0xC60ACCCD &^ (1 << 14), 0x00001091
	t.Run("divider does not take", func(t *testing.T) {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = left9, leftPrg
		s.prg.stuck[offPrgEth0] = 1 << 8 // bit 1 of the divider stays 0
		_, err := SetRate(s.tx, 125*MHz, 0)
		wantError(t, "SetRate", err, ErrReadback)
		if s.hhi.words[offMPLLCntl9] != left9 || s.prg.words[offPrgEth0] != leftPrg {
			t.Errorf("HHI_MPLL_CNTL9 %#x PRG_ETH0 %#x", s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0])
		}
	})
	t.Run("MPLL does not take", func(t *testing.T) {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = left9, leftPrg
		s.hhi.stuck[offMPLLCntl9] = 1 << 19
		_, err := SetRate(s.tx, 125*MHz, 0)
		wantError(t, "SetRate", err, ErrReadback)
		if s.hhi.words[offMPLLCntl9] != left9 || len(s.prg.writes) != 0 {
			t.Errorf("HHI_MPLL_CNTL9 %#x, %d writes to PRG_ETH0", s.hhi.words[offMPLLCntl9], len(s.prg.writes))
		}
	})
	t.Run("glue is gone", func(t *testing.T) {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9] = left9
		s.prg.gone = true
		_, err := SetRate(s.tx, 125*MHz, 0)
		wantError(t, "SetRate", err, ErrGone)
		if s.hhi.words[offMPLLCntl9] != left9 || len(s.prg.writes) != 0 {
			t.Errorf("HHI_MPLL_CNTL9 %#x, %d writes to PRG_ETH0", s.hhi.words[offMPLLCntl9], len(s.prg.writes))
		}
		if strings.Contains(err.Error(), "restoring failed") {
			t.Errorf("error %q: what was not written was restored", err)
		}
	})
	t.Run("clock controller is gone", func(t *testing.T) {
		s := meson8b(t)
		s.hhi.gone = true
		_, err := SetRate(s.tx, 125*MHz, 0)
		wantError(t, "SetRate", err, ErrGone, ErrNoRate)
		if s.written() != 0 {
			t.Errorf("%d writes", s.written())
		}
	})
	t.Run("gone half-way", func(t *testing.T) {
		s := meson8b(t)
		s.hhi.words[offMPLLCntl9] = left9
		s.prg.dies = 1
		_, err := SetRate(s.tx, 125*MHz, 0)
		wantError(t, "SetRate", err, ErrGone)
		if s.hhi.words[offMPLLCntl9] != left9 {
			t.Errorf("HHI_MPLL_CNTL9 %#x", s.hhi.words[offMPLLCntl9])
		}
		if !strings.Contains(err.Error(), "restoring failed") {
			t.Errorf("error %q hides that PRG_ETH0 was not restored", err)
		}
	})
	t.Run("another clock refuses", func(t *testing.T) {
		refusal := errors.New("busy")
		var log []string
		tx, prg := rgmii(t, &other{name: "mpll2", rate: 250 * MHz, set: func(*other, Hz) error { return refusal }}, &log)
		_, err := SetRate(tx, 125*MHz, 0)
		wantError(t, "SetRate", err, refusal)
		if len(prg.writes) != 0 {
			t.Errorf("%d writes", len(prg.writes))
		}
	})
}

// Restore gives back exactly the bits that were changed; what others did to the same registers meanwhile stays.
func TestRestore(t *testing.T) {
	s := meson8b(t)
	const left9, leftPrg = 0x42000001, 0x000010B1
	s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = left9, leftPrg
	change, err := SetRate(s.tx, 125*MHz, 0)
	if err != nil {
		t.Fatal(err)
	}
	closeGates, err := Enable(s.tx)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.hhi.words[offMPLLCntl9]; got != 0x4205C667 {
		t.Errorf("HHI_MPLL_CNTL9 = %#x", got)
	}
	if on, err := s.tx.Enabled(); !on || err != nil {
		t.Errorf("gate: %v, %v", on, err)
	}
	s.prg.words[offPrgEth0] |= 1 << 31
	if err := closeGates(); err != nil {
		t.Fatal(err)
	}
	if err := change.Restore(); err != nil {
		t.Fatal(err)
	}
	if s.hhi.words[offMPLLCntl9] != left9 || s.prg.words[offPrgEth0] != leftPrg|1<<31 {
		t.Errorf("HHI_MPLL_CNTL9 %#x PRG_ETH0 %#x", s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0])
	}
	// Restoring is done once: by a second call the clock may have become somebody else's.
	if _, err := SetRate(s.tx, 125*MHz, 0); err != nil {
		t.Fatal(err)
	}
	n := s.written()
	if err := change.Restore(); err != nil || s.written() != n {
		t.Errorf("a second Restore: %v, %d writes", err, s.written()-n)
	}
}

// Setting the rate that is there already writes nothing.
func TestNothingToDo(t *testing.T) {
	s := meson8b(t)
	s.hhi.words[offMPLLCntl9], s.prg.words[offPrgEth0] = 0x0005C667, 0x00001501
	if _, err := SetRate(s.tx, 125*MHz, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Enable(s.tx); err != nil {
		t.Fatal(err)
	}
	if s.written() != 0 {
		t.Errorf("%d writes", s.written())
	}
}

// Gates open from the source down, only those on the way, and a failure closes those that were opened.
func TestEnable(t *testing.T) {
	var log []string
	r := newRegs()
	reg := Reg{Bank: NewBank(loggedRegs{r, "GATES", &log}), Name: "GATES"}
	src := must[*Fixed](t)(NewFixed("src", 100))
	gate := func(name string, parent Clock, bit uint8, low bool) *Gate {
		return must[*Gate](t)(NewGate(GateConfig{Name: name, Parent: parent, Field: Field{reg, bit, 1}, ActiveLow: low}))
	}
	a := gate("a", src, 0, false)
	b := gate("b", a, 1, true)
	gate("unrelated", a, 2, false)
	c := gate("c", b, 3, false)
	r.words[0] = 0b0010
	closeGates, err := Enable(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := closeGates(); err != nil {
		t.Fatal(err)
	}
	want := []string{"GATES+0x0 = 0x3", "GATES+0x0 = 0x1", "GATES+0x0 = 0x9", "GATES+0x0 = 0x1", "GATES+0x0 = 0x3", "GATES+0x0 = 0x2"}
	if d := cmp.Diff(want, log); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
	r.stuck[0] = 1 << 3
	_, err = Enable(c)
	wantError(t, "Enable", err, ErrReadback)
	if r.words[0] != 0b0010 {
		t.Errorf("gates are %#b after a failure", r.words[0])
	}
	// A mux on the way that points nowhere.
	f, _ := testField(0, 2, 3)
	m := must[*Mux](t)(NewMux(MuxConfig{Name: "mux", Field: f, Inputs: []Clock{a, b}}))
	_, err = Enable(gate("d", m, 4, false))
	wantError(t, "Enable", err, ErrInvalid)
}

// circle is a clock of somebody else that says it is made from itself.
type circle struct{ other }

func (c *circle) Parent() (Clock, error) { return c, nil }

func TestCircle(t *testing.T) {
	c := &circle{other{name: "circle", rate: 5}}
	_, err := Enable(c)
	wantError(t, "Enable", err, ErrConfig)
	if infos := Inspect(c); len(infos) != maxDepth || infos[maxDepth-1].Error == "" {
		t.Errorf("%d parts, the last %+v", len(infos), infos[len(infos)-1])
	}
}
