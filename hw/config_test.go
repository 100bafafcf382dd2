package hw

import (
	"bytes"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The zero value works, limits are what they say, and an error names the field.
func TestConfigValidate(t *testing.T) {
	for _, c := range []struct {
		field string // empty: valid
		c     Config
		f     Feature
	}{
		{"", Config{}, 0},
		{"", Config{TXSlots: 2, RXSlots: 4096, TXSlotBytes: 16, RXSlotBytes: 2032, BurstBeats: 1, HashBins: NoHash, PHY: PHYAt(0)}, 0},
		{"", Config{TXSlotBytes: 8176, RXSlotBytes: 8176, HashBins: 256, PHY: NoPHY}, FeatEnhanced},
		{"TXSlots", Config{TXSlots: 1}, 0},
		{"TXSlots", Config{TXSlots: -4}, 0},
		{"RXSlots", Config{RXSlots: 4097}, 0},
		{"TXSlotBytes", Config{TXSlotBytes: 1514}, 0},
		{"TXSlotBytes", Config{TXSlotBytes: 2048}, 0}, // RXF-05: would be encoded as 0
		{"RXSlotBytes", Config{RXSlotBytes: 2040}, 0},
		{"RXSlotBytes", Config{RXSlotBytes: 8192}, FeatEnhanced},
		{"RXSlotBytes", Config{RXSlotBytes: 1 << 31 >> 1}, FeatEnhanced}, // slots times this would overflow 32 bits
		{"BurstBeats", Config{BurstBeats: 24}, 0},
		{"BurstBeats", Config{BurstBeats: -8}, 0},
		{"HashBins", Config{HashBins: 65}, 0},
		{"PHY", Config{PHY: PHYAt(32)}, 0},
		{"Address", Config{Address: [6]byte{1}}, 0},
	} {
		err := c.c.Validate(c.f)
		if c.field == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.c, err)
			}
			continue
		}
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%+v: %v does not name %s", c.c, err, c.field)
		}
		if !c.f.Has(FeatEnhanced) {
			p := newFakePort(t)
			if m, err := Open(p, c.c); m != nil || !errors.Is(err, ErrConfig) || len(p.blocks) != 0 {
				t.Errorf("Open with %+v: %v", c.c, err)
			}
		}
	}
}

// What depends on the port and on the release of the core is checked as well: no receive watchdog before release 3.5.
func TestConfigForThisCore(t *testing.T) {
	p := newFakePort(t)
	p.mac.version = 0x1034
	p.mac.resetRegs()
	if _, err := Open(p, Config{RXWatchdog: 1}); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "RXWatchdog") {
		t.Errorf("watchdog on an old core: %v", err)
	}
	if _, err := Open(p, Config{BurstBeats: 256}); !errors.Is(err, ErrConfig) {
		t.Errorf("256 beats on an old core: %v", err)
	}
	p = newFakePort(t)
	if _, err := Open(p, Config{BurstBeats: 256}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "BurstBeats") {
		t.Errorf("256 beats of 8 bytes on a 2 KiB FIFO: %v", err)
	}
	p.info.BusBytes = 4
	p.open(Config{BurstBeats: 256})
}

// The logger hears of the device and of fall-backs; without one nothing is written anywhere.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	p := newFakePort(t)
	p.mac.phys[0].regs[0] = 0x1940
	b := p.bench(Config{Logger: slog.New(slog.NewTextHandler(&out, nil))})
	b.mac.stopDelay = time.Hour
	_ = b.m.Stop()
	for _, want := range []string{"waking PHY", "opened", "DWMAC 3.7", "001e06c10001", "0x001cc916", "does not stop"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not say %q:\n%s", want, &out)
		}
	}
}

// An error says what was waited for; errors.Is sees the sentinel through it.
func TestErrorText(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.frozen[0x10] = 1
	_, err := b.m.ReadPHY(0, 1)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "GMII_Address=0x") || !strings.Contains(err.Error(), "after 10ms") {
		t.Errorf("%v", err)
	}
}

// ARM-01: on 32-bit machines every 64-bit word that several goroutines share is 8-aligned: it is one of sync/atomic's types,
// and lies so in the structs that the package allocates. Plain 64-bit words appear only in values and behind a lock.
func TestARM01_AtomicsAreAligned(t *testing.T) {
	b := newBench(t, Config{})
	atomics := 0
	var walk func(name string, typ reflect.Type, off uintptr)
	walk = func(name string, typ reflect.Type, off uintptr) {
		switch typ {
		case reflect.TypeFor[atomic.Uint64](), reflect.TypeFor[atomic.Int64]():
			atomics++
			if off%8 != 0 {
				t.Errorf("%s is at offset %d", name, off)
			}
			return
		case reflect.TypeFor[counterState](), reflect.TypeFor[time.Time]():
			return // behind countersMu; not shared
		}
		switch typ.Kind() {
		case reflect.Uint64, reflect.Int64:
			t.Errorf("%s is a plain 64-bit word", name)
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				walk(name+"."+f.Name, f.Type, off+f.Offset)
			}
		case reflect.Array:
			for i := range typ.Len() {
				walk(name, typ.Elem(), off+uintptr(i)*typ.Elem().Size())
			}
		}
	}
	for _, p := range []any{b.m, b.m.tx, b.m.rx} {
		v := reflect.ValueOf(p)
		if v.Pointer()%8 != 0 {
			t.Errorf("%T is at 0x%x", p, v.Pointer())
		}
		walk(v.Elem().Type().Name(), v.Elem().Type(), 0)
	}
	if want := 1 + 6 + len(txCauses) + 5 + rxErrorsCount; atomics != want {
		t.Errorf("%d atomic words found, want %d", atomics, want)
	}
}
