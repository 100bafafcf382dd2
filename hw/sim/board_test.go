package sim

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsAreChecked(t *testing.T) {
	for field, o := range map[string]Options{
		"PHYAddress":        {PHYAddress: 32},
		"PHYMode":           {PHYMode: "sgmii"},
		"RXFIFOBytes":       {RXFIFOBytes: 100},
		"TXFIFOBytes":       {TXFIFOBytes: 1 << 20},
		"BusBytes":          {BusBytes: 5},
		"MemoryBytes":       {MemoryBytes: 10},
		"DMABytesPerSecond": {DMABytesPerSecond: -1},
		"AutonegTime":       {AutonegTime: -1},
		"MaxViolations":     {MaxViolations: -1},
		"Address":           {Address: [6]byte{1, 2, 3, 4, 5, 6}},
	} {
		if _, err := NewBoard(o); !errors.Is(err, hw.ErrConfig) || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestInfo(t *testing.T) {
	b := newBoard(t, Options{Name: "eth9", Address: [6]byte{0, 0x1E, 6, 1, 2, 3}})
	want := hw.Info{Name: "eth9", CSRClockHz: 159375000, RXFIFOBytes: 4096, TXFIFOBytes: 2048, BusBytes: 8,
		Mode: hw.ModeRGMIIID, Address: [6]byte{0, 0x1E, 6, 1, 2, 3}}
	if d := cmp.Diff(want, b.Port().Info()); d != "" {
		t.Error(d)
	}
	c, d := newBoard(t, Options{}), newBoard(t, Options{PHYMode: "rgmii"})
	ci, di := c.Port().Info(), d.Port().Info()
	if ci.Address == di.Address || ci.Address[0]&3 != 2 || ci.Name == di.Name {
		t.Errorf("two boards have the addresses %x and %x, the names %s and %s", ci.Address, di.Address, ci.Name, di.Name)
	}
	if di.Mode != hw.ModeRGMII {
		t.Errorf("mode %v", di.Mode)
	}
}

func TestAlloc(t *testing.T) {
	b := newBoard(t, Options{MemoryBytes: 1 << 16})
	p := b.Port()
	for _, c := range [][2]int{{0, 64}, {-1, 64}, {64, 0}, {64, 48}, {64, -4}} {
		if m, err := p.Alloc(c[0], c[1]); !errors.Is(err, hw.ErrConfig) || m != nil {
			t.Errorf("Alloc%v: %v, %v", c, m, err)
		}
	}
	if _, err := p.Alloc(1<<17, 64); err == nil {
		t.Error("more than there is")
	}
	m, err := p.Alloc(100, 4096)
	if err != nil || m.Bus()%4096 != 0 || m.Size()%4096 != 0 || m.Size() < 100 || m.Bus() == 0 {
		t.Fatalf("Alloc(100, 4096): bus 0x%x size %d, %v", m.Bus(), m.Size(), err)
	}
	other := newBoard(t, Options{}).Port()
	if err := other.Free(m); !errors.Is(err, hw.ErrConfig) {
		t.Errorf("Free of a foreign block: %v", err)
	}
	if err := p.Free(m); err != nil {
		t.Error(err)
	}
	if err := p.Free(m); !errors.Is(err, hw.ErrConfig) {
		t.Errorf("Free twice: %v", err)
	}
	p.Close()
	if _, err := p.Alloc(64, 64); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("Alloc after Close: %v", err)
	}
}

// TestAllocatorKeepsBlocksApart allocates and frees at random; blocks never overlap, start zeroed, and all of the memory can
// be had again in the end.
func TestAllocatorKeepsBlocksApart(t *testing.T) {
	b := newBoard(t, Options{MemoryBytes: 1 << 16})
	p := b.Port()
	r := rand.New(rand.NewPCG(3, 4))
	var live []hw.Memory
	for range 2000 {
		if len(live) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(live))
			if err := p.Free(live[i]); err != nil {
				t.Fatal(err)
			}
			live = append(live[:i], live[i+1:]...)
			continue
		}
		m, err := p.Alloc(1+r.IntN(5000), 1<<r.IntN(10))
		if err != nil {
			continue
		}
		buf := make([]byte, m.Size())
		m.CopyOut(buf, 0)
		for _, v := range buf {
			if v != 0 {
				t.Fatal("a new block is not zero")
			}
		}
		for i := range buf {
			buf[i] = 0xEE
		}
		m.CopyIn(0, buf)
		for _, o := range live {
			if m.Bus() < o.Bus()+uint32(o.Size()) && o.Bus() < m.Bus()+uint32(m.Size()) {
				t.Fatalf("blocks 0x%x+%d and 0x%x+%d overlap", m.Bus(), m.Size(), o.Bus(), o.Size())
			}
		}
		live = append(live, m)
	}
	for _, m := range live {
		p.Free(m)
	}
	if _, err := p.Alloc(1<<16-4096, 64); err != nil {
		t.Error(err)
	}
	noViolations(t, b)
}

func TestMemoryWordsAndBytes(t *testing.T) {
	m, err := newBoard(t, Options{}).Port().Alloc(64, 64)
	if err != nil {
		t.Fatal(err)
	}
	m.Store32(4, 0x04030201)
	got := make([]byte, 6)
	m.CopyOut(got, 3)
	if d := cmp.Diff([]byte{0, 1, 2, 3, 4, 0}, got); d != "" {
		t.Error(d)
	}
	m.CopyIn(9, []byte{0xAA})
	if v := m.Load32(8); v != 0xAA00 {
		t.Errorf("0x%08x", v)
	}
}

// TestReopen: a port closed and opened again finds the board as it was left, and the old one is dead.
func TestReopen(t *testing.T) {
	b := newBoard(t, Options{})
	h := NewHost(nil)
	connect(t, b, h, CableOptions{})
	for range 20 {
		d := openDriver(t, b, driverOptions{ring: 8})
		d.linkUp()
		for range 5 {
			d.send(makeFrame(hostMAC, hostMAC, 60))
			d.sent()
		}
		d.r.Store32(regOpMode, d.opMode&^(opST|opSR))
		d.r.Store32(regConfig, 0)
		if err := d.port.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := h.Stats().Received; n != 100 {
		t.Errorf("%d frames arrived", n)
	}
	noViolations(t, b)
	first, second := b.Port(), b.Port()
	if _, err := first.Alloc(64, 64); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("the first of two ports: %v", err)
	}
	if _, err := second.Alloc(64, 64); err != nil {
		t.Error(err)
	}
	b.Close()
	if v := second.Registers().Load32(regVersion); v != all32 {
		t.Errorf("version 0x%x of a closed board", v)
	}
	if _, err := b.Port().Alloc(64, 64); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("port of a closed board: %v", err)
	}
}

func TestHostLimits(t *testing.T) {
	h, peer := NewHost(nil), NewHost(nil)
	if err := h.Send(make([]byte, 60)); !errors.Is(err, hw.ErrClosed) {
		t.Errorf("Send without a cable: %v", err)
	}
	c, err := Connect(h, peer, CableOptions{SpeedMbps: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := h.Send(make([]byte, longestFrame+1)); err == nil || errors.Is(err, hw.ErrClosed) {
		t.Errorf("a frame too long: %v", err)
	}
	full := 0
	for range 3 * hostQueue {
		if errors.Is(h.Send(make([]byte, 1514)), ErrHostFull) {
			full++
		}
	}
	if full == 0 || h.Queued() == 0 {
		t.Errorf("refused %d times, %d queued", full, h.Queued())
	}
}

// TestReopenUnderLoad resets, flushes, stops and opens again while frames keep coming and going.
func TestReopenUnderLoad(t *testing.T) {
	for _, o := range []CableOptions{{}, {SpeedMbps: 1000}} {
		b := newBoard(t, Options{})
		h := NewHost(func([]byte) {})
		connect(t, b, h, o)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Add(1)
		mac := b.opts.Address
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if h.Send(makeFrame(mac, hostMAC, 60+i%1000)) != nil {
					runtime.Gosched()
				}
			}
		}()
		for i := range 30 {
			d := openDriver(t, b, driverOptions{ring: 8})
			d.linkUp()
			for range 20 {
				d.queue(makeFrame(hostMAC, mac, 60+i))
				d.kick()
				d.drop()
			}
			off := d.opMode &^ (opST | opSR)
			d.r.Store32(regOpMode, off)
			if i%3 == 0 {
				d.r.Store32(regOpMode, off|opFTF)
				for d.r.Load32(regOpMode)&opFTF != 0 {
					runtime.Gosched()
				}
			}
			d.r.Store32(regConfig, 0)
			if i%2 == 0 {
				d.resetMAC()
			}
			for st := d.r.Load32(regStatus); st>>stTS&7 != tsStopped || st>>stRS&7 != rsStopped; st = d.r.Load32(regStatus) {
				if i%3 != 0 && st>>stRS&7 == rsStopped { // TE is off: what is in the FIFO must be flushed
					d.r.Store32(regOpMode, off|opFTF)
					for d.r.Load32(regOpMode)&opFTF != 0 {
						runtime.Gosched()
					}
				}
				runtime.Gosched()
			}
			if err := d.port.Close(); err != nil {
				t.Fatal(err)
			}
		}
		close(stop)
		wg.Wait()
		noViolations(t, b)
	}
}
