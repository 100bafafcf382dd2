package mmio

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dwnet/hw"
)

// board is a tree with everything that a port can be made of: a MAC on /dev/mem and on /dev/uio0, memory of every kind.
type board struct {
	*tree
	mem *memfd   // /dev/mem
	uio *fakeUIO // interrupt of /dev/uio0
	dma *memfd   // /dev/udmabuf0
}

// Addresses on the board, in the first 16 MiB so that a memfd holds them.
const (
	boardMAC    = 0x410000
	boardMACLen = 0x2000
	boardDMA    = 0x800000
	boardDMALen = 0x100000
)

func newBoard(t *testing.T) *board {
	t.Helper()
	if !barrierCompletes {
		t.Skip("Open refuses on this machine, see TestOpenNeedsABarrier")
	}
	b := &board{tree: newTree(t), uio: newFakeUIO(t)}
	b.mem = b.memory("/dev/mem", 16<<20)
	b.dma = b.memory("/dev/udmabuf0", 1<<20)
	b.file(iomemPath, "40000000-5bffffff : System RAM\n60000000-7fffffff : System RAM\nc9410000-c941ffff : ethernet\n")
	uioNode(b.tree, "uio0", "ethernet", UIOMap{Address: 0xC9410000, Size: boardMACLen}, UIOMap{Index: 1, Address: 0x5C000000, Size: boardDMALen})
	udmabufNode(b.tree, udmabufClasses[0], "udmabuf0", map[string]string{"size": "1048576", "sync_mode": "2"})
	maps := newMemfd(t, 2*boardDMALen)
	b.device("/dev/uio0", func(flags int) (File, error) {
		if flags&unix.O_NONBLOCK != 0 {
			return b.uio, nil
		}
		return maps.open()
	})
	return b
}

// options are a port through /dev/mem alone.
func (b *board) options() Options {
	return Options{
		Registers: Source{Kind: DevMem, Address: boardMAC, Size: boardMACLen},
		Memory:    Source{Kind: DevMem, Address: boardDMA, Size: boardDMALen},
		System:    b.sys(),
	}
}

func mustOpen(t *testing.T, o Options) *Port {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Every kind of source makes a port whose registers, memory and interrupt are the device's.
func TestPortOfEveryKind(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(b *board, o *Options)
		polls bool
		typ   MemoryType
		bus   uint32
		regs  func(b *board, off int64) uint32 // nil: not looked at
	}{
		{"all through /dev/mem", func(*board, *Options) {}, true, Device, boardDMA,
			func(b *board, off int64) uint32 { return b.mem.word(boardMAC + off) }},
		{"UIO and u-dma-buf", func(b *board, o *Options) {
			o.Registers = Source{Kind: UIO, Path: "/dev/uio0"}
			o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
		}, false, NonCacheable, 0x5C000000, nil},
		{"registers through /dev/mem, interrupt of UIO", func(b *board, o *Options) {
			o.Interrupt = Source{Kind: UIO, Path: "uio0"}
		}, false, Device, boardDMA, nil},
		{"UIO memory map", func(b *board, o *Options) {
			o.Memory = Source{Kind: UIO, Path: "uio0", Map: 1, Offset: 0x1000, Size: 0x40000}
		}, true, Device, 0x5C001000, nil},
		{"polling although there is an interrupt", func(b *board, o *Options) {
			o.Registers = Source{Kind: UIO, Path: "uio0"}
			o.Interrupt = Source{Kind: Polling}
		}, true, Device, boardDMA, nil},
		{"UIO without interrupt", func(b *board, o *Options) {
			b.uio.fail = unix.EIO
			o.Registers = Source{Kind: UIO, Path: "uio0"}
		}, true, Device, boardDMA, nil},
		{"emulator's memory", func(b *board, o *Options) {
			o.Memory = Source{Kind: SharedFile, Path: "/dev/udmabuf0", Address: 0x41000000, Offset: 0x1000, Size: 0x8000}
		}, true, WriteBack, 0x41000000, nil},
		{"the caller knows better", func(b *board, o *Options) {
			o.Memory.Type = NonCacheable
		}, true, NonCacheable, boardDMA, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			o := b.options()
			c.set(b, &o)
			p := mustOpen(t, o)
			if p.Polls() != c.polls || p.MemoryType() != c.typ {
				t.Errorf("polls %v, memory %v", p.Polls(), p.MemoryType())
			}
			p.Registers().Store32(hw.RegInterruptEnable, 0x1A061)
			if c.regs != nil && c.regs(b, hw.RegInterruptEnable) != 0x1A061 {
				t.Error("the device did not get the store")
			}
			if got := p.Registers().Load32(hw.RegInterruptEnable); got != 0x1A061 {
				t.Errorf("register reads 0x%x", got)
			}
			m, err := p.Alloc(1536, 16)
			if err != nil {
				t.Fatal(err)
			}
			if m.Bus() != c.bus {
				t.Errorf("first block is at 0x%x, want 0x%x", m.Bus(), c.bus)
			}
			want := pattern(1500, 9)
			m.CopyIn(10, want)
			m.Store32(1528, 0x01020304)
			m.Barrier()
			got := make([]byte, 1500)
			m.CopyOut(got, 10)
			if !bytes.Equal(got, want) || m.Load32(1528) != 0x01020304 {
				t.Error("memory does not keep what it was given")
			}
			if p.MemoryUsed() != 1536 || p.MemorySize() < 0x8000 {
				t.Errorf("%d of %d bytes in use", p.MemoryUsed(), p.MemorySize())
			}
			if err := p.Free(m); err != nil || p.MemoryUsed() != 0 {
				t.Errorf("Free: %v, %d bytes in use", err, p.MemoryUsed())
			}
			if p.Info().Name == "" || !strings.Contains(p.String(), barrierName) || !strings.Contains(p.String(), "copy in") {
				t.Errorf("%q is %v", p.Info().Name, p)
			}
			if p.Clock() != Clock() {
				t.Error("not the machine's clock")
			}
		})
	}
}

// Without a barrier that the device sees there is no port.
func TestOpenNeedsABarrier(t *testing.T) {
	_, err := Open(Options{Registers: Source{Kind: DevMem, Size: 8192}, Memory: Source{Kind: DevMem, Address: 8192, Size: 8192}, System: newTree(t).sys()})
	want := error(unix.ENOENT) // the tree has no /dev/mem
	if !barrierCompletes {
		want = hw.ErrUnsupported
	}
	wantError(t, err, want)
}

// A port that polls tells interrupts by the MAC's own registers.
func TestPortPollsTheStatusRegister(t *testing.T) {
	b := newBoard(t)
	p := mustOpen(t, b.options())
	irq := p.Interrupt()
	b.mem.setWord(boardMAC+hw.RegInterruptEnable, uint32(hw.CauseNIS|hw.CauseRI))
	if err := irq.Enable(); err != nil {
		t.Fatal(err)
	}
	wait(t, irq, time.Millisecond, hw.WakeTimeout)
	b.mem.setWord(boardMAC+hw.RegStatus, uint32(hw.CauseNIS|hw.CauseRI))
	wait(t, irq, -1, hw.WakeInterrupt)
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		field string
		set   func(o *Options)
	}{
		{"Options.Registers", func(o *Options) { o.Registers = Source{} }},
		{"Options.Registers", func(o *Options) { o.Registers.Size = 0 }},
		{"Options.Memory", func(o *Options) { o.Memory = Source{} }},
		{"Options.Memory", func(o *Options) { o.Memory.Kind = Polling }},
		{"Options.Interrupt", func(o *Options) { o.Interrupt.Kind = DevMem }},
		{"Options.OuterCache", func(o *Options) { o.OuterCache.Kind = UDMABuf }},
		{"Options.PollMin", func(o *Options) { o.PollMin = 1 }},
		{"Options.PollMin", func(o *Options) { o.PollMin = time.Second }},
		{"Options.PollMax", func(o *Options) { o.PollMin, o.PollMax = time.Millisecond, 999*time.Microsecond }},
		{"Options.PollMax", func(o *Options) { o.PollMax = time.Second }},
		{"Options.Copy", func(o *Options) { o.Copy = 3 }},
		{"Options.CacheLine", func(o *Options) { o.CacheLine = 48 }},
		{"Options.CacheLine", func(o *Options) { o.CacheLine = -64 }},
		{"Options.CacheLine", func(o *Options) { o.CacheLine = 8192 }},
		{"Options.Info.BusBytes", func(o *Options) { o.Info.BusBytes = 5 }},
	} {
		b := newBoard(t)
		o := b.options()
		c.set(&o)
		_, err := Open(o)
		wantError(t, err, hw.ErrConfig, c.field)
		if len(b.opens) != 0 {
			t.Errorf("%s: %v was opened before the options were checked", c.field, b.opens)
		}
	}
	for _, o := range []Options{
		{PollMin: leastPoll}, {PollMax: leastPoll}, {PollMin: mostPoll}, {PollMin: leastPoll, PollMax: mostPoll}, {CacheLine: 32}, {Copy: CopySafe},
	} {
		b := newBoard(t)
		base := b.options()
		o.Registers, o.Memory = base.Registers, base.Memory
		got, err := o.withDefaults()
		if err != nil || got.PollMin > got.PollMax || got.PollMin == 0 || got.CacheLine == 0 {
			t.Errorf("%+v: %+v, %v", o, got, err)
		}
	}
}

// Memory that the device cannot use, or that is somebody else's, is refused, and nothing has been opened for it, mapped or
// written by then.
func TestMemoryIsCheckedBeforeItIsTouched(t *testing.T) {
	devmem := func(address, size uint64) func(*board, *Options) {
		return func(_ *board, o *Options) { o.Memory = Source{Kind: DevMem, Address: address, Size: size} }
	}
	udmabuf := func(attributes map[string]string) func(*board, *Options) {
		return func(b *board, o *Options) {
			udmabufNode(b.tree, udmabufClasses[0], "udmabuf0", attributes)
			o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
		}
	}
	for _, c := range []struct {
		name string
		set  func(b *board, o *Options)
		want error
		say  string
	}{
		{"above 4 GiB", devmem(0x1_0000_0000, 0x10000), ErrAddress, "above 4 GiB"},
		{"across 4 GiB", devmem(0xFFFF_F000, 0x2000), ErrAddress, "above 4 GiB"},
		{"null", devmem(0, 0x10000), ErrAddress, "address 0"},
		{"misaligned", devmem(boardDMA+32, 0x10000), ErrAddress, "multiple of 64"},
		{"too small", devmem(boardDMA, minPool-1), ErrAddress, "at least 0x1000"},
		{"the registers", devmem(boardMAC-0x1000, 0x10000), ErrAddress, "overlaps the registers"},
		{"the kernel's memory", devmem(0x50000000, 0x100000), ErrAddress, "no-map"},
		{"an end in the kernel's memory", devmem(0x40000000-0x1000, 0x1040), ErrAddress, "40000000-5bffffff : System RAM"},
		{"buffer above 4 GiB", udmabuf(map[string]string{"phys_addr": "0x100000000"}), ErrAddress, "above 4 GiB"},
		{"cached buffer", udmabuf(map[string]string{"sync_mode": "0"}), ErrCached, "echo 2 > "},
		{"cached in spite of O_SYNC", udmabuf(map[string]string{"sync_mode": "4"}), ErrCached, "sync_mode"},
		{"buffer larger than it is", func(_ *board, o *Options) {
			o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0", Size: 1 << 21}
		}, ErrAddress, "only 0x100000"},
		{"hostile size", udmabuf(map[string]string{"size": "-1"}), ErrAttribute, "udmabuf0/size"},
		{"broken iomem", func(b *board, _ *Options) { b.file(iomemPath, "40000000-3fffffff : System RAM\n") }, ErrAttribute, iomemPath},
		{"address of the kernel's own", func(b *board, o *Options) {
			b.symlink(uioClass+"/uio0/device/driver", "../"+dmemDriver)
			uioNode(b.tree, "uio0", "dma", UIOMap{Address: 0xF0800000, Size: 0x10000})
			o.Memory = Source{Kind: UIO, Path: "uio0"}
		}, ErrAddress, "kernel's own"},
		{"address of the kernel's own, nothing known", func(b *board, o *Options) {
			b.symlink(uioClass+"/uio0/device/driver", "../"+dmemDriver)
			b.remove(iomemPath)
			o.Memory = Source{Kind: UIO, Path: "uio0", Map: 1}
		}, ErrAddress, "cannot be read to tell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			o := b.options()
			c.set(b, &o)
			p, err := Open(o)
			if p != nil {
				t.Error("there is a port")
			}
			wantError(t, err, c.want, c.say)
			for _, path := range []string{"/dev/mem", "/dev/udmabuf0"} {
				if _, ok := b.opened(path); ok {
					t.Errorf("%s was opened", path)
				}
			}
			if len(b.uio.events()) != 0 {
				t.Error("the interrupt was touched")
			}
		})
	}
}

// Memory in system RAM is fine if the kernel allocated it for DMA.
func TestMemoryOfTheKernelsAllocator(t *testing.T) {
	b := newBoard(t)
	b.symlink(uioClass+"/uio0/device/driver", "../"+dmemDriver)
	b.file(iomemPath, "40000000-7fffffff : System RAM\n")
	o := b.options()
	o.Memory = Source{Kind: UIO, Path: "uio0", Map: 1}
	if p := mustOpen(t, o); p.MemoryType() != Device {
		t.Errorf("memory is %v", p.MemoryType())
	}
	udmabufNode(b.tree, udmabufClasses[0], "udmabuf0", map[string]string{"size": "1048576", "sync_mode": "0", "dma_coherent": "1"})
	o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
	if p := mustOpen(t, o); p.MemoryType() != WriteBack {
		t.Errorf("memory is %v", p.MemoryType())
	}
}

// The last byte below 4 GiB can be used.
func TestMemoryUpTo4GiB(t *testing.T) {
	b := newBoard(t)
	o := b.options()
	o.Memory = Source{Kind: SharedFile, Path: "/dev/udmabuf0", Address: 0x1_0000_0000 - 0x2000, Size: 0x2000}
	p := mustOpen(t, o)
	m, err := p.Alloc(0x2000, 0x1000)
	if err != nil || m.Bus() != 0xFFFFE000 {
		t.Errorf("got %v, %v", m, err)
	}
}

// A window that is too small for the MAC, or is something else, is refused before anything is written.
func TestRegistersAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(o *Options)
		say  string
	}{
		{"MAC registers only", func(o *Options) { o.Registers.Size = 0x1000 }, "at least 0x105c"},
		{"small UIO map", func(o *Options) { o.Registers = Source{Kind: UIO, Path: "uio0", Offset: 0x1000} }, "at least 0x105c"},
		{"in memory", func(o *Options) { o.Registers.Address = 0x40000000 }, "System RAM"},
		{"odd", func(o *Options) { o.Registers.Address++ }, "multiple of 4"},
		{"outer cache too small", func(o *Options) { o.OuterCache = Source{Kind: DevMem, Address: 0xC4200000, Size: 0x100} }, "at least 0x1000"},
		{"outer cache in memory", func(o *Options) { o.OuterCache = Source{Kind: DevMem, Address: 0x40000000, Size: 0x1000} }, "System RAM"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			o := b.options()
			c.set(&o)
			_, err := Open(o)
			wantError(t, err, ErrAddress, c.say)
			if _, ok := b.opened("/dev/mem"); ok {
				t.Error("/dev/mem was opened")
			}
		})
	}
}

// Whatever step fails, everything that was opened is closed again, and the device's memory is as it was.
func TestOpenFailsCleanly(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(t *testing.T, b *board, o *Options)
		want error
		say  string
	}{
		{"STRICT_DEVMEM", func(_ *testing.T, b *board, _ *Options) {
			b.device("/dev/mem", func(int) (File, error) { return &scripted{File: osFile(-1), mapErr: unix.EPERM}, nil })
		}, ErrStrictDevmem, "iomem=relaxed"},
		{"memory refused", func(_ *testing.T, b *board, o *Options) {
			b.device("/dev/udmabuf0", func(int) (File, error) { return &scripted{File: osFile(-1), mapErr: unix.EINVAL}, nil })
			o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
		}, unix.EINVAL, "smaller"},
		{"buffer's node missing", func(_ *testing.T, b *board, o *Options) {
			b.device("/dev/udmabuf0", func(int) (File, error) { return nil, unix.ENOENT })
			o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
		}, unix.ENOENT, "/dev/udmabuf0"},
		{"interrupt refused", func(_ *testing.T, b *board, o *Options) {
			b.uio.fail = unix.EIO
			o.Interrupt = Source{Kind: UIO, Path: "uio0"}
		}, ErrNoInterrupt, "/dev/uio0"},
		{"interrupt forbidden", func(_ *testing.T, b *board, o *Options) {
			b.uio.fail = unix.EPERM
			o.Registers = Source{Kind: UIO, Path: "uio0"}
		}, unix.EPERM, "/dev/uio0"},
		{"outer cache refused", func(t *testing.T, b *board, o *Options) {
			b.device("/dev/l2", func(int) (File, error) { return nil, unix.EACCES })
			o.OuterCache = Source{Kind: DevMem, Path: "/dev/l2", Address: 0xC4200000, Size: 0x1000}
		}, unix.EACCES, "/dev/l2"},
		{"no device there", func(t *testing.T, b *board, o *Options) {
			small := newMemfd(t, 4096)
			b.device("/dev/mem", func(int) (File, error) { return small.open() })
		}, hw.ErrGone, "clock or power"},
		{"no memory there", func(t *testing.T, b *board, o *Options) {
			o.Memory = Source{Kind: SharedFile, Path: "/dev/udmabuf0", Address: 0x41000000, Offset: 1 << 20, Size: 0x8000}
		}, ErrAddress, "nothing answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBoard(t)
			b.mem.setWord(boardDMA, 0x12345678)
			o := b.options()
			c.set(t, b, &o)
			before := openFiles(t)
			p, err := Open(o)
			if p != nil {
				t.Error("there is a port")
			}
			wantError(t, err, c.want, c.say)
			if after := openFiles(t); after != before {
				t.Errorf("%d files open, %d before", after, before)
			}
			if b.mem.word(boardDMA) != 0x12345678 {
				t.Error("memory was written")
			}
		})
	}
}

// openFiles is how many descriptors the process has.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc/self/fd")
	}
	return len(entries)
}

// Opening does not write to a single register.
func TestOpenLeavesTheDeviceAlone(t *testing.T) {
	b := newBoard(t)
	for off := int64(0); off < boardMACLen; off += 4 {
		b.mem.setWord(boardMAC+off, uint32(off)*0x01010101+7)
	}
	before := b.mem.bytes(boardMAC, boardMACLen)
	p := mustOpen(t, b.options())
	p.Close()
	if !bytes.Equal(b.mem.bytes(boardMAC, boardMACLen), before) {
		t.Error("registers were written")
	}
}

// After Close waits end, registers read all ones, memory is out of reach, and everything may be called again.
func TestPortClose(t *testing.T) {
	b := newBoard(t)
	files := openFiles(t)
	o := b.options()
	o.Registers = Source{Kind: UIO, Path: "uio0"}
	o.OuterCache = Source{Kind: DevMem, Address: 0, Size: outerCacheBytes}
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.Alloc(4096, 64)
	if err != nil {
		t.Fatal(err)
	}
	m.Store32(0, 1)
	ended := make(chan error)
	go func() {
		_, err := p.Interrupt().Wait(-1)
		ended <- err
	}()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	within(t, "Wait", func() { wantError(t, <-ended, hw.ErrClosed) })
	if got := p.Registers().Load32(0); got != allOnes {
		t.Errorf("register reads 0x%x", got)
	}
	p.Registers().Store32(0, 1)
	m.Store32(0, 2)
	m.CopyOut(make([]byte, 4096), 0)
	m.Barrier()
	if got := b.mem.word(boardDMA); got != 1 {
		t.Errorf("memory of the device has %d", got)
	}
	_, err = p.Alloc(64, 64)
	wantError(t, err, hw.ErrClosed)
	wantError(t, p.Interrupt().Enable(), hw.ErrClosed)
	p.Interrupt().Wake()
	if got := openFiles(t); got != files {
		t.Errorf("%d files open, %d before", got, files)
	}
}

// The safe routine is used where it must be, and what is asked for cannot be unsafe.
func TestPortCopyPolicy(t *testing.T) {
	b := newBoard(t)
	o := b.options()
	o.Copy = CopyFast
	p, err := Open(o)
	if deviceIsPicky {
		wantError(t, err, hw.ErrConfig, "Options.Copy", "device")
	} else if err != nil || !p.pool.fastIn {
		t.Errorf("got %v", err)
	} else {
		p.Close()
	}
	o.Copy = CopySafe
	if p := mustOpen(t, o); p.pool.fastIn || p.pool.fastOut {
		t.Error("the fast routine is used although the safe one was asked for")
	}
	o.Copy = CopyAuto
	p = mustOpen(t, o)
	if measured := p.copies.times != (copyTimes{}); measured == deviceIsPicky {
		t.Errorf("measured: %v, picky: %v", measured, deviceIsPicky)
	}
	o.Memory.Type = NonCacheable
	p = mustOpen(t, o)
	if p.copies.times == (copyTimes{}) || p.pool.fastIn != p.copies.fastIn || p.pool.fastOut != p.copies.fastOut {
		t.Errorf("non-cacheable memory: %v", p.copies)
	}
}

// What could not be checked, and what is slower than it could be, is said.
func TestPortLogs(t *testing.T) {
	b := newBoard(t)
	b.remove(iomemPath)
	b.uio.fail = unix.EIO
	udmabufNode(b.tree, udmabufClasses[0], "udmabuf0", map[string]string{"size": "1048576", "sync_mode": "1"})
	var log bytes.Buffer
	o := b.options()
	o.Registers = Source{Kind: UIO, Path: "uio0"}
	o.Memory = Source{Kind: UDMABuf, Path: "udmabuf0"}
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	mustOpen(t, o)
	for _, say := range []string{iomemPath + " cannot be read", "polling instead of interrupts", "port opened", "sync_mode makes copying quicker"} {
		if !strings.Contains(log.String(), say) {
			t.Errorf("log does not say %q:\n%s", say, log.String())
		}
	}
}

func TestErrorsReadWell(t *testing.T) {
	for want, err := range map[string]error{
		"mmio: map /dev/mem (0x1000+0x4): " + ErrStrictDevmem.Error() + ": operation not permitted; do this": &Error{Op: "map", Path: "/dev/mem",
			Detail: span(0x1000, 4), Remedy: "do this", Err: fmt.Errorf("%w: %w", ErrStrictDevmem, unix.EPERM)},
		"mmio: make eventfd: too many open files": &Error{Op: "make eventfd", Err: unix.EMFILE},
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
