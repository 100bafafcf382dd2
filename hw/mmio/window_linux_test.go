package mmio

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"dwnet/hw"
)

// A window opened as it is on a board: page-aligned mapping, in-page offset, and the flags without which /dev/mem is cached.
func TestWindowOfDevMem(t *testing.T) {
	tr := newTree(t)
	mem := tr.memory("/dev/mem", 1<<20)
	const glue = 0x42140 // like PRG_ETH0, not at the start of a page
	mem.setWord(glue, 0x1621)
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Address: glue, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if got := w.Load32(0); got != 0x1621 {
		t.Errorf("register reads 0x%x", got)
	}
	w.Store32(4, 0xCAFE0001)
	if got := mem.word(glue + 4); got != 0xCAFE0001 {
		t.Errorf("device got 0x%x", got)
	}
	flags, ok := tr.opened("/dev/mem")
	if want := os.O_RDWR | unix.O_SYNC | unix.O_CLOEXEC; !ok || flags&want != want {
		t.Errorf("opened with 0x%x, want all of 0x%x", flags, want)
	}
	if w.Size() != 8 || w.Address() != glue {
		t.Errorf("size %d, address 0x%x", w.Size(), w.Address())
	}
}

// The mapping that is asked for starts at a page and is whole pages, whatever the registers are.
func TestMappingIsPageAligned(t *testing.T) {
	page := os.Getpagesize()
	tr := newTree(t)
	m := newMemfd(t, 1<<20)
	var got [][2]int64
	tr.device("/dev/mem", func(int) (File, error) {
		f, err := m.open()
		return &mapSpy{f, &got}, err
	})
	at := uint64(3*page - 4)
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Address: at, Size: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if len(got) != 1 || got[0] != [2]int64{int64(2 * page), int64(2 * page)} {
		t.Errorf("mapped %v", got)
	}
	w.Store32(0, 1)
	w.Store32(4, 2)
	if m.word(int64(at)) != 1 || m.word(int64(at)+4) != 2 {
		t.Error("registers on both sides of a page are not where they should be")
	}
}

type mapSpy struct {
	File
	got *[][2]int64
}

func (m *mapSpy) Map(offset int64, length int) ([]byte, error) {
	*m.got = append(*m.got, [2]int64{offset, int64(length)})
	return m.File.Map(offset, length)
}

func TestPageSpan(t *testing.T) {
	const page = 4096
	for _, c := range []struct {
		start, skip, size uint64
		base              uint64
		in, length        int
		bad               bool
	}{
		{start: 0xC9410000, size: 0x10000, base: 0xC9410000, length: 0x10000},
		{start: 0xC1108140, size: 4, base: 0xC1108000, in: 0x140, length: page},
		{start: 0xC1108FFE, size: 4, base: 0xC1108000, in: 0xFFE, length: 2 * page},
		{start: page, skip: 0x1140, size: 4, base: page, in: 0x1140, length: 2 * page},
		{start: 0, size: 0, bad: true},
		{start: 0, size: maxSpan + 1, bad: true},
		{start: 0, skip: maxSpan, size: maxSpan, bad: true},
		{start: 1, size: maxSpan, bad: true},
		{start: ^uint64(0), size: 1, bad: true},
	} {
		base, in, length, err := pageSpan(c.start, c.skip, c.size, page)
		if (err != nil) != c.bad || base != c.base || in != c.in || length != c.length {
			t.Errorf("%+v: got 0x%x, 0x%x, 0x%x, %v", c, base, in, length, err)
		}
	}
}

// UIO gives map m at m pages into the file, and what the offset attribute says is added.
func TestWindowsOfUIOMaps(t *testing.T) {
	page := int64(os.Getpagesize())
	tr := newTree(t)
	uio := tr.memory("/dev/uio0", 4*page)
	uioNode(tr, "uio0", "ethernet", UIOMap{Address: 0xC9410000, Size: uint64(page)}, UIOMap{Address: 0xC1108140, Size: 4},
		UIOMap{Address: 0xC1104000, Size: uint64(page), Offset: 0x100})
	for i, at := range []int64{0, page + 0x140, 2*page + 0x100} {
		w, err := OpenWindow(tr.sys(), Source{Kind: UIO, Path: "uio0", Map: i})
		if err != nil {
			t.Fatal(err)
		}
		w.Store32(0, uint32(0xA0+i))
		if got := uio.word(at); got != uint32(0xA0+i) {
			t.Errorf("map %d: device got 0x%x at 0x%x", i, got, at)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Reads of what is not there are all ones, stores are lost, and both are counted; nothing panics.
func TestWindowReadsAllOnesWhenNothingAnswers(t *testing.T) {
	page := os.Getpagesize()
	tr := newTree(t)
	mem := tr.memory("/dev/mem", int64(2*page))
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: uint64(2 * page)})
	if err != nil {
		t.Fatal(err)
	}
	last := uint32(2*page - 4)
	for _, off := range []uint32{2, last + 1, last + 4, 0xFFFFFFFC} {
		if got := w.Load32(off); got != allOnes {
			t.Errorf("offset 0x%x reads 0x%x", off, got)
		}
		w.Store32(off, 0)
	}
	if got := w.Faults(); got != 8 {
		t.Errorf("%d faults counted, want 8", got)
	}
	// The device goes away: a page of the file is cut off, and the bus (SIGBUS) does not answer there any more.
	if err := unix.Ftruncate(mem.fd, int64(page)); err != nil {
		t.Fatal(err)
	}
	if got := w.Load32(last); got != allOnes {
		t.Errorf("register of a device that is gone reads 0x%x", got)
	}
	w.Store32(last, 1)
	if got := w.Faults(); got != 10 {
		t.Errorf("%d faults counted, want 10", got)
	}
	w.Store32(0, 7)
	if w.Load32(0) != 7 {
		t.Error("the rest of the window does not work any more")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w.Store32(0, 9)
	if got := w.Load32(0); got != allOnes || mem.word(0) != 7 {
		t.Errorf("after Close a register reads 0x%x, and the device has %d", got, mem.word(0))
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// Only a bus fault is taken for one: other bugs stay visible.
func TestGuardCatchesFaultsOnly(t *testing.T) {
	mem := fenced(t, 1)
	if !guarded(func() { rawOf(mem).load32(0) }) {
		t.Error("memory that is there is said not to answer")
	}
	behind := raw{rawOf(mem).p, len(mem) + 4}
	if guarded(func() { behind.load32(len(mem)) }) {
		t.Error("memory that is not there is said to answer")
	}
	for name, f := range map[string]func(){
		"index":  func() { _ = mem[len(mem):cap(mem)][os.Getpagesize()-len(mem)] },
		"string": func() { panic("a bug") },
		"error":  func() { panic(unix.EIO) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is gone", name)
				}
			}()
			guarded(f)
		}()
	}
}

// A probe tells whether the bus answers, at no risk for the program.
func TestWindowProbe(t *testing.T) {
	page := os.Getpagesize()
	tr := newTree(t)
	tr.memory("/dev/mem", int64(page))
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: uint64(2 * page)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := w.Probe(0x20); err != nil {
			t.Error(err)
		}
		if canProbe {
			wantError(t, w.Probe(uint32(page)), hw.ErrGone, "/dev/mem", "clock or power")
		}
	}
	wantError(t, w.Probe(2), hw.ErrGone)
	wantError(t, w.Probe(uint32(2*page)), hw.ErrGone)
	w.Close()
	wantError(t, w.Probe(0x20), hw.ErrGone, "closed")
	// Children are collected.
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

// canProbe says that this machine has what Probe needs.
var canProbe = map[string]bool{"amd64": true, "386": true, "arm": true, "arm64": true}[runtime.GOARCH]

// Close in the middle of somebody's accesses does not crash, and no store reaches the device afterwards.
func TestWindowCloseDuringAccess(t *testing.T) {
	for range 20 {
		tr := newTree(t)
		tr.memory("/dev/mem", 4096)
		w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: 4096})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		started := make(chan struct{})
		for i := range 2 {
			wg.Go(func() {
				for n := 0; ; n++ {
					if n == 100 && i == 0 {
						close(started)
					}
					w.Store32(uint32(i*4), 1)
					if w.Load32(uint32(i*4)) == allOnes {
						return
					}
				}
			})
		}
		<-started
		w.Close()
		within(t, "access after Close", wg.Wait)
	}
}

// Address space is given back when a closed window is forgotten, not before.
func TestClosedMappingIsUnmappedWhenForgotten(t *testing.T) {
	tr := newTree(t)
	tr.memory("/dev/mem", 4096)
	w, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: 4096})
	if err != nil {
		t.Fatal(err)
	}
	page := w.m.pages
	w.Close()
	runtime.GC()
	page.store32(0, 5) // still there
	if got := page.load32(0); got != 5 {
		t.Errorf("private page reads %d", got)
	}
	runtime.KeepAlive(w)
	w = nil
	within(t, "unmapping", func() {
		for guarded(func() { page.load32(0) }) {
			runtime.GC()
		}
	})
}

func TestOpenWindowErrors(t *testing.T) {
	strict := func(int) (File, error) { return &scripted{mapErr: unix.EPERM, File: osFile(-1)}, nil }
	fails := func(err error) func(int) (File, error) {
		return func(int) (File, error) { return &scripted{mapErr: err, File: osFile(-1)}, nil }
	}
	denied := func(err error) func(int) (File, error) { return func(int) (File, error) { return nil, err } }
	mac := Source{Kind: DevMem, Address: 0xC9410000, Size: 0x2000}
	for _, c := range []struct {
		name   string
		src    Source
		device func(int) (File, error)
		iomem  string
		want   error
		say    []string
	}{
		{"no source", Source{}, nil, "", hw.ErrConfig, []string{"Source", "Kind"}},
		{"no /dev/mem", mac, denied(unix.ENOENT), "", unix.ENOENT, []string{"/dev/mem", "CONFIG_DEVMEM"}},
		{"no capability", mac, denied(unix.EPERM), "", unix.EPERM, []string{"/dev/mem", "CAP_SYS_RAWIO"}},
		{"kernel driver bound", mac, strict, boardIOMem, ErrStrictDevmem, []string{"/dev/mem", "0xc9410000+0x2000", "belongs to", "ethernet@c9410000", "unbind"}},
		{"strict, nobody known", mac, strict, "", ErrStrictDevmem, []string{"iomem=relaxed", "no-map"}},
		{"strict keeps the errno", mac, strict, "", unix.EPERM, nil},
		{"in memory", Source{Kind: DevMem, Address: 0x50000000, Size: 0x2000}, nil, boardIOMem, ErrAddress, []string{"System RAM"}},
		{"misaligned", Source{Kind: DevMem, Address: 0xC9410002, Size: 0x2000}, nil, "", ErrAddress, []string{"multiple of 4"}},
		{"too small", Source{Kind: DevMem, Address: 0xC9410000, Size: 2}, nil, "", ErrAddress, []string{"at least 0x4"}},
		{"old kernel, unaligned UIO", Source{Kind: UIO, Path: "uio0", Map: 1}, fails(unix.ENODEV), "", unix.ENODEV, []string{"/dev/uio0", "map1", "whole pages", "/dev/mem"}},
		{"out of memory", mac, fails(unix.ENOMEM), "", unix.ENOMEM, []string{"address space"}},
		{"broken iomem", mac, nil, "nonsense\n", ErrAttribute, []string{iomemPath, "line 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			uioNode(tr, "uio0", "e", UIOMap{Address: 4096, Size: 4096}, UIOMap{Address: 0xC1108140, Size: 4})
			if c.iomem != "" {
				tr.file(iomemPath, c.iomem)
			}
			if c.device != nil {
				tr.device("/dev/mem", c.device).device("/dev/uio0", c.device)
			}
			w, err := OpenWindow(tr.sys(), c.src)
			if w != nil {
				t.Error("there is a window")
			}
			wantError(t, err, c.want, c.say...)
			if _, ok := tr.opened("/dev/mem"); ok && c.device == nil {
				t.Error("/dev/mem was opened before the check")
			}
		})
	}
}

// A file that maps less than it was asked for is not trusted.
func TestShortMappingIsRefused(t *testing.T) {
	tr := newTree(t)
	tr.device("/dev/mem", func(int) (File, error) { return shortMap{osFile(-1)}, nil })
	_, err := OpenWindow(tr.sys(), Source{Kind: DevMem, Size: 4096})
	if err == nil {
		t.Error("accepted")
	}
}

type shortMap struct{ File }

func (shortMap) Map(int64, int) ([]byte, error) { return make([]byte, 8), nil }
func (shortMap) Close() error                   { return nil }
