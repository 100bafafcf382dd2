package clk

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every shift and width: a field changes its own bits and no others, and reads back what was written.
func TestFieldTouchesItsBitsOnly(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 0))
	for width := uint8(1); width <= 32; width++ {
		for shift := uint8(0); shift+width <= 32; shift++ {
			f, regs := testField(shift, width, 0)
			f.Reg.MayBeOnes = true // random words
			for range 4 {
				before := r.Uint32()
				regs.words[0] = before
				v := r.Uint32() & f.Max()
				old, err := f.Set(v)
				if err != nil {
					t.Fatalf("%v: %v", f, err)
				}
				own := uint32(0)
				for b := shift; b < shift+width; b++ {
					own |= 1 << b
				}
				after := regs.words[0]
				if after&^own != before&^own || after>>shift&f.Max() != v || old != before>>shift&f.Max() {
					t.Fatalf("%v = %#x: register went from %#08x to %#08x, old %#x", f, v, before, after, old)
				}
				if got, err := f.Get(); err != nil || got != v {
					t.Fatalf("%v reads %#x (%v), want %#x", f, got, err, v)
				}
			}
			if width < 32 {
				_, err := f.Set(f.Max() + 1)
				wantError(t, f.String(), err, ErrConfig)
			}
		}
	}
}

// The mask of a one-bit mux at bit 4 was once shifted twice and hit the divider at bits 9:7.
func TestMuxLeavesDivider(t *testing.T) {
	for div := uint32(2); div <= 7; div++ {
		for _, rest := range []uint32{0, 0x00001421, 0x7FFFFC6F} {
			s := meson8b(t)
			before := div<<7 | rest&^(7<<7|1<<4)
			s.prg.words[offPrgEth0] = before
			if err := s.sel.Select(1); err != nil {
				t.Fatal(err)
			}
			if got := s.prg.words[offPrgEth0]; got != before|1<<4 {
				t.Errorf("input 1: PRG_ETH0 went from %#08x to %#08x", before, got)
			}
			if d, err := s.div.Div(); err != nil || d != div {
				t.Errorf("divider is %d (%v), want %d", d, err, div)
			}
			if err := s.sel.Select(0); err != nil || s.prg.words[offPrgEth0] != before {
				t.Errorf("input 0: PRG_ETH0 = %#08x (%v), want %#08x", s.prg.words[offPrgEth0], err, before)
			}
			if err := s.div.SetDiv(9 - div); err != nil {
				t.Fatal(err)
			}
			if got := s.prg.words[offPrgEth0]; got != (9-div)<<7|before&^(7<<7) {
				t.Errorf("divider %d: PRG_ETH0 went from %#08x to %#08x", 9-div, before, got)
			}
		}
	}
}

func TestUpdate(t *testing.T) {
	t.Run("outside the mask", func(t *testing.T) {
		f, r := testField(0, 4, 5)
		_, err := f.Reg.Update(0xF0, 0x100)
		wantError(t, "Update", err, ErrConfig)
		if len(r.writes) != 0 {
			t.Errorf("written: %v", r.writes)
		}
	})
	t.Run("same value", func(t *testing.T) {
		f, r := testField(4, 4, 0x35)
		if old, err := f.Set(3); old != 3 || err != nil || len(r.writes) != 0 {
			t.Errorf("old %#x, error %v, written %v", old, err, r.writes)
		}
	})
	t.Run("all ones before the first write", func(t *testing.T) {
		f, r := testField(4, 4, 0)
		r.gone = true
		_, err := f.Set(3)
		wantError(t, "Set", err, ErrGone)
		_, err = f.Get()
		wantError(t, "Get", err, ErrGone)
		if len(r.writes) != 0 {
			t.Errorf("written: %v", r.writes)
		}
	})
	t.Run("all ones is legal", func(t *testing.T) {
		f, r := testField(3, 1, allOnes)
		f.Reg.MayBeOnes = true
		if v, err := f.Get(); v != 1 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		if _, err := f.Set(0); err != nil || r.words[0] != 0xFFFFFFF7 {
			t.Errorf("%#08x, %v", r.words[0], err)
		}
	})
	t.Run("stuck bits", func(t *testing.T) {
		f, r := testField(4, 4, 0)
		r.stuck[0] = 1 << 5
		_, err := f.Set(0xF)
		wantError(t, "Set", err, ErrReadback)
	})
	t.Run("gone with the write", func(t *testing.T) {
		f, r := testField(4, 4, 0)
		r.dies = 1
		_, err := f.Set(0xF)
		wantError(t, "Set", err, ErrGone)
	})
	t.Run("no register", func(t *testing.T) {
		for _, r := range []Reg{{}, {Bank: NewBank(nil)}, {Bank: NewBank(newRegs()), Off: 2}} {
			_, err := r.Load()
			wantError(t, "Load", err, ErrConfig)
			_, err = r.Update(1, 1)
			wantError(t, "Update", err, ErrConfig)
		}
	})
}

// Fields that share a register are written at once, others in the order given; restoring goes backwards.
func TestWriteAndRestore(t *testing.T) {
	r := newRegs()
	b := NewBank(r)
	r.words[0], r.words[4] = 0xA0A0, 0x0B0B
	one, two := Reg{Bank: b, Name: "ONE"}, Reg{Bank: b, Name: "TWO", Off: 4}
	restore, err := write([]setting{{Field{one, 0, 4}, 0x5}, {Field{two, 0, 8}, 0x22}, {Field{one, 8, 4}, 0x7}, {Field{two, 8, 4}, 0xB}})
	if err != nil {
		t.Fatal(err)
	}
	r.words[0] |= 1 << 31 // somebody else, meanwhile
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	want := []regWrite{{0, 0xA7A5}, {4, 0x0B22}, {4, 0x0B0B}, {0, 0x8000A0A0}}
	if d := cmp.Diff(want, r.writes); d != "" {
		t.Errorf("writes (-want +got):\n%s", d)
	}
}

// Two users of one register do not undo each other's changes. Run with -race.
func TestBankIsShared(t *testing.T) {
	r := newRegs()
	b := NewBank(r)
	done := make(chan error)
	for i := range 4 {
		go func() {
			f := Field{Reg{Bank: b, Name: "SHARED"}, uint8(8 * i), 7}
			for v := range uint32(500) {
				if _, err := f.Set(v % 100); err != nil {
					done <- err
					return
				}
				if got, err := f.Get(); err != nil || got != v%100 {
					done <- fmt.Errorf("%v reads %d (%v), wrote %d", f, got, err, v%100)
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
