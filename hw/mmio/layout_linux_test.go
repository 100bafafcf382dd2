package mmio

import (
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dwnet/hw"
)

// 64-bit counters are aligned as 32-bit ARM and 386 need it, and there are no others.
func TestCountersAreAligned(t *testing.T) {
	var walk func(t *testing.T, typ reflect.Type, base uintptr, path string)
	walk = func(t *testing.T, typ reflect.Type, base uintptr, path string) {
		switch typ {
		case reflect.TypeFor[atomic.Int64](), reflect.TypeFor[atomic.Uint64]():
			if base%8 != 0 {
				t.Errorf("%s is at offset %d", path, base)
			}
			return
		case reflect.TypeFor[time.Time](), reflect.TypeFor[hw.Info]():
			return
		}
		if typ.Kind() == reflect.Struct {
			for i := range typ.NumField() {
				f := typ.Field(i)
				walk(t, f.Type, base+f.Offset, path+"."+f.Name)
			}
		}
	}
	for _, v := range []any{Port{}, Window{}, UIOInterrupt{}, pollInterrupt{}, pool{}, block{}, realClock{}} {
		typ := reflect.TypeOf(v)
		walk(t, typ, 0, typ.Name())
	}
	if !rawOf(make([]byte, 64)).aligned(4) {
		t.Error("the heap is not aligned to words")
	}
}

// A block of DMA memory is aligned for the CPU as it is for the device: words of a block are words of the mapping.
func TestBlocksAreAlignedForTheCPU(t *testing.T) {
	b := newBoard(t)
	o := b.options()
	o.Memory.Address += 64 // not at a page
	o.Memory.Size -= 64
	p := mustOpen(t, o)
	for _, size := range []int{1, 100, 4096} {
		m, err := p.Alloc(size, 16)
		if err != nil {
			t.Fatal(err)
		}
		if !m.(*block).mem.aligned(64) || m.Bus()%64 != 0 || m.Size()%4 != 0 {
			t.Errorf("block of %d bytes at 0x%x", m.Size(), m.Bus())
		}
	}
}

func BenchmarkRegisterLoad(b *testing.B) {
	f, err := unix.MemfdCreate("bench", 0)
	if err != nil {
		b.Fatal(err)
	}
	unix.Ftruncate(f, 8192)
	sys := System{Open: func(string, int) (File, error) { return osFile(f), nil }, Root: b.TempDir()}
	sys.Open = func(path string, flags int) (File, error) {
		if strings.HasSuffix(path, "/dev/mem") {
			return osFile(f), nil
		}
		return openFile(path, flags)
	}
	w, err := OpenWindow(sys, Source{Kind: DevMem, Size: 8192})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.ReportAllocs()
	for b.Loop() {
		w.Load32(hw.RegStatus)
	}
	runtime.KeepAlive(w)
}
