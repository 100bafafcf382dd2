package hw

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// The fakes of this file are just enough of a device to run the driver against: a register window that records what was done
// to it and knows which bits clear by themselves, DMA memory, a clock that moves when it is looked at, and PHYs. dma_test.go
// adds two DMA engines. They are written from the documents that the driver cites and share no constant with it where the
// value is what a test is about.

// fakeClock moves by itself only when somebody sleeps or, by tick, reads a register.
type fakeClock struct {
	mu   sync.Mutex
	now  time.Time
	tick time.Duration // per register access
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *fakeClock) Sleep(d time.Duration) { c.advance(max(d, 0)) }

func (c *fakeClock) AfterFunc(time.Duration, func()) Timer { panic("hw uses no timers") }

// access is one register access.
type access struct {
	write bool
	off   uint32
	v     uint32
	at    time.Time
}

// fakePHY is the registers of one PHY. Register 1 latches a lost link.
type fakePHY struct {
	regs     [32]uint16
	up       bool
	wontWake bool
	slowWake time.Duration // from BMCR saying awake to the clock being there
	awakeAt  time.Time
	writes   []uint16 // to BMCR
}

func newFakePHY() *fakePHY {
	p := &fakePHY{up: true}
	p.regs = [32]uint16{
		0: 0x1140, 1: 0x796D, 2: 0x001C, 3: 0xC916, 4: 0x01E1, 5: 0xCDE1, 9: 0x0200, 10: 0x3800,
	}
	return p
}

// drop loses the link, for however short a time.
func (p *fakePHY) drop() { p.regs[1] &^= 1 << 2 }

func (p *fakePHY) read(reg int) uint16 {
	v := p.regs[reg]
	if reg == 1 && p.up {
		p.regs[1] |= 1 << 2 // the latch opens when it is read
	}
	return v
}

func (p *fakePHY) write(reg int, v uint16, now time.Time) {
	if reg == 0 {
		p.writes = append(p.writes, v)
		if p.wontWake {
			v |= 1 << 11
		}
		if p.regs[0]&(1<<11) != 0 && v&(1<<11) == 0 {
			p.awakeAt = now.Add(p.slowWake)
		}
	}
	p.regs[reg] = v
}

func (p *fakePHY) clock(now time.Time) bool {
	return p.regs[0]&(1<<11|1<<10) == 0 && !now.Before(p.awakeAt)
}

// fakeMAC is a register window.
type fakeMAC struct {
	mu    sync.Mutex
	clock *fakeClock
	regs  map[uint32]uint32
	log   []access
	rules []string // rules that the driver broke

	version, feature uint32
	addresses        int // entries of the perfect filter
	noIPC            bool
	phys             map[int]*fakePHY
	mdioBusy         time.Time // until when
	mdioResult       uint16
	swrUntil         time.Time
	swrHung          bool
	swrTime          time.Duration
	needPS           int // 0: reset completes with any PS; 1: only with PS clear; 2: only with PS set
	frozen           map[uint32]uint32
	gone             bool
	rxState, txState uint32
	stopDelay        time.Duration // from ST or SR clear to stopped
	rxStopAt         time.Time
	txStopAt         time.Time
	drainAt          time.Time // when the transmit FIFO is empty
	ftfAt            time.Time
	onStore          func(off, v uint32) // after the effect of a write
	onLoad           func(off uint32)    // before a read
	afterLoad        func(off uint32)    // when the value is known
}

// featureS805 is what is known of the word of the S805: MII, GMII, half duplex, hash, addresses, MDIO, wake-up, magic, MMC,
// EEE, TX COE, RX COE type 2, FIFO, RGMII. Written as bit numbers, as the driver's names are under test.
const featureS805 = 1<<0 | 1<<1 | 1<<2 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<10 | 1<<11 | 1<<14 | 1<<16 | 1<<18 | 1<<19 | 1<<28

func newFakeMAC(c *fakeClock) *fakeMAC {
	f := &fakeMAC{
		clock: c, version: 0x1037, feature: featureS805, addresses: 4, phys: map[int]*fakePHY{0: newFakePHY()},
		frozen: map[uint32]uint32{}, swrTime: 20 * time.Microsecond,
	}
	f.resetRegs()
	return f
}

func (f *fakeMAC) resetRegs() {
	f.regs = map[uint32]uint32{
		0x20: f.version, 0x1058: f.feature, 0x1000: 0x00020101, 0x34: 0x03E80000, 0x1028: 0x00110001,
		0x40: 0x8000FFFF, 0x44: 0xFFFFFFFF,
	}
	for n := 1; n < f.addresses; n++ {
		f.regs[0x40+8*uint32(n)], f.regs[0x44+8*uint32(n)] = 0x0000FFFF, 0xFFFFFFFF
	}
	f.rxState, f.txState = 0, 0
	f.rxStopAt, f.txStopAt, f.drainAt, f.ftfAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}
}

// synced are the registers with a rule on how fast they may be written.
func synced(off uint32) bool {
	return off < 0x10 || off == 0x18 || off == 0x1C || off >= 0x40 && off < 0xC0 || off >= 0x500 && off < 0x520 || off >= 0x800 && off < 0x880
}

func (f *fakeMAC) broke(format string, args ...any) {
	f.rules = append(f.rules, fmt.Sprintf(format, args...))
}

func (f *fakeMAC) rxClock(now time.Time) bool {
	if len(f.phys) == 0 {
		return true
	}
	for _, p := range f.phys {
		if p.clock(now) {
			return true
		}
	}
	return false
}

func (f *fakeMAC) Load32(off uint32) uint32 {
	f.mu.Lock()
	if f.onLoad != nil {
		hook := f.onLoad
		f.mu.Unlock()
		hook(off)
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	if f.afterLoad != nil {
		defer f.afterLoad(off)
	}
	f.clock.advance(f.clock.tick)
	now := f.clock.Now()
	if off%4 != 0 {
		f.broke("unaligned load at 0x%x", off)
	}
	f.log = append(f.log, access{off: off, at: now})
	if f.gone {
		return 0xFFFFFFFF
	}
	v := f.regs[off]
	switch off {
	case 0x10:
		if now.Before(f.mdioBusy) {
			v |= 1
		} else {
			v &^= 1
		}
	case 0x14:
		if now.Before(f.mdioBusy) {
			f.broke("MDIO data read while busy")
		}
		v = uint32(f.mdioResult)
	case 0x24:
		if now.Before(f.drainAt) {
			v |= 1 << 24
		}
	case 0x1000:
		v &^= 1
		ps := int(f.regs[0]>>15&1) + 1
		if f.swrHung || now.Before(f.swrUntil) || f.needPS != 0 && !f.swrUntil.IsZero() && ps != f.needPS {
			v |= 1
		}
	case 0x1014:
		v |= f.states(now)
	case 0x1018:
		if now.Before(f.ftfAt) {
			v |= 1 << 20
		} else {
			v &^= 1 << 20
		}
	case 0x1020, 0x104, 0x108, 0x208:
		f.regs[off] = 0
	}
	return v | f.frozen[off]
}

func (f *fakeMAC) states(now time.Time) uint32 {
	rx, tx := f.rxState, f.txState
	if !f.rxStopAt.IsZero() && !now.Before(f.rxStopAt) {
		rx, f.rxState, f.rxStopAt = 0, 0, time.Time{}
	}
	if !f.txStopAt.IsZero() && !now.Before(f.txStopAt) {
		tx, f.txState, f.txStopAt = 0, 0, time.Time{}
	}
	return rx<<17 | tx<<20
}

func (f *fakeMAC) Store32(off, v uint32) {
	f.mu.Lock()
	f.store(off, v)
	hook := f.onStore
	f.mu.Unlock()
	if hook != nil {
		hook(off, v)
	}
}

func (f *fakeMAC) store(off, v uint32) {
	f.clock.advance(f.clock.tick)
	now := f.clock.Now()
	if off%4 != 0 {
		f.broke("unaligned store at 0x%x", off)
	}
	if synced(off) {
		for _, a := range slices.Backward(f.log) {
			if a.write && a.off == off {
				if now.Sub(a.at) < 1600*time.Nanosecond {
					f.broke("0x%x written twice within %v", off, now.Sub(a.at))
				}
				break
			}
		}
	}
	f.log = append(f.log, access{write: true, off: off, v: v, at: now})
	if f.gone {
		return
	}
	switch off {
	case 0x10:
		if now.Before(f.mdioBusy) {
			return // dropped
		}
		f.regs[off] = v
		if v&1 != 0 {
			f.mdio(v, now)
		}
	case 0x14:
		if now.Before(f.mdioBusy) {
			f.broke("MDIO data written while busy")
		}
		f.regs[off] = v
	case 0x0:
		if f.noIPC {
			v &^= 1 << 10
		}
		f.regs[off] = v
	case 0x1000:
		if v&1 != 0 {
			clock := f.rxClock(now)
			f.resetRegs()
			f.swrHung = !clock
			f.swrUntil = now.Add(f.swrTime)
		} else {
			f.regs[off] = v
		}
	case 0x1014:
		f.regs[off] &^= v & 0x1FFFF
	case 0x100C:
		if f.states(now)>>17&7 != 0 || f.regs[0x1018]&(1<<1) != 0 {
			f.broke("RX list base written while running")
		}
		f.regs[off] = v
	case 0x1010:
		if f.states(now)>>20&7 != 0 || f.regs[0x1018]&(1<<13) != 0 {
			f.broke("TX list base written while running")
		}
		f.regs[off] = v
	case 0x1018:
		if now.Before(f.ftfAt) {
			f.broke("operation mode written during a flush")
		}
		old := f.regs[off]
		f.regs[off] = v &^ (1 << 20)
		if v&(1<<20) != 0 {
			f.ftfAt, f.drainAt = now.Add(5*time.Microsecond), now
		}
		f.startStop(old, v, 1, &f.rxState, &f.rxStopAt, 3, now)
		f.startStop(old, v, 13, &f.txState, &f.txStopAt, 6, now)
	case 0x20, 0x24, 0x38, 0x1058, 0x102C, 0x1048, 0x104C, 0x1050, 0x1054:
		f.broke("read-only 0x%x written", off)
	case 0x1004, 0x1008:
	default:
		f.regs[off] = v
	}
}

func (f *fakeMAC) startStop(old, v uint32, bit int, state *uint32, at *time.Time, running uint32, now time.Time) {
	switch was, is := old>>bit&1, v>>bit&1; {
	case was == 0 && is == 1:
		*state, *at = running, time.Time{}
	case was == 1 && is == 0:
		*at = now.Add(f.stopDelay)
	}
}

func (f *fakeMAC) mdio(v uint32, now time.Time) {
	f.mdioBusy = now.Add(41 * time.Microsecond)
	p, reg := f.phys[int(v>>11&31)], int(v>>6&31)
	if v&2 != 0 {
		if p != nil {
			p.write(reg, uint16(f.regs[0x14]), now)
		}
		return
	}
	f.mdioResult = 0xFFFF
	if p != nil {
		f.mdioResult = p.read(reg)
	}
}

// set changes a register behind the driver's back.
func (f *fakeMAC) set(off, v uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.regs[off] = v
}

func (f *fakeMAC) get(off uint32) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.regs[off]
}

// writes are the writes since a mark in the log, MDIO left out.
func (f *fakeMAC) writes(mark int) []access {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []access
	for _, a := range f.log[mark:] {
		if a.write && a.off != 0x10 && a.off != 0x14 {
			out = append(out, a)
		}
	}
	return out
}

func (f *fakeMAC) mark() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.log)
}

// fakePort is a port with audited memory.
type fakePort struct {
	t       testing.TB
	info    Info
	mac     *fakeMAC
	clk     *fakeClock
	irq     fakeInterrupt
	blocks  map[*fakeMemory]bool
	allocs  int
	failAt  int // number of the allocation that fails, from 1
	nextBus uint32
	order   []string // allocations and frees
	prepare func(*fakeMemory)
}

func newFakePort(t testing.TB) *fakePort {
	c := &fakeClock{now: time.Unix(1, 0)}
	p := &fakePort{
		t: t, mac: newFakeMAC(c), clk: c, blocks: map[*fakeMemory]bool{}, nextBus: 0x4010_0000,
		info: Info{Name: "fake", Address: [6]byte{0x00, 0x1E, 0x06, 0xC1, 0x00, 0x01}},
	}
	return p
}

var errNoMemory = errors.New("no memory")

func (p *fakePort) Info() Info           { return p.info }
func (p *fakePort) Registers() Registers { return p.mac }
func (p *fakePort) Interrupt() Interrupt { return &p.irq }
func (p *fakePort) Clock() Clock         { return p.clk }
func (p *fakePort) Close() error         { return nil }

func (p *fakePort) Alloc(size, align int) (Memory, error) {
	p.allocs++
	if p.allocs == p.failAt {
		return nil, errNoMemory
	}
	size = (size + align - 1) / align * align
	m := &fakeMemory{t: p.t, bus: p.nextBus, words: make([]uint32, size/4)}
	p.nextBus += uint32(size) + 0x1000
	if p.prepare != nil {
		p.prepare(m)
	}
	p.blocks[m] = true
	p.order = append(p.order, fmt.Sprint("alloc ", p.allocs))
	m.id = p.allocs
	return m, nil
}

func (p *fakePort) Free(m Memory) error {
	f := m.(*fakeMemory)
	if !p.blocks[f] {
		p.t.Error("freed memory that is not allocated")
	}
	delete(p.blocks, f)
	f.freed = true
	if p.mac.rxState|p.mac.txState != 0 && !p.mac.gone {
		p.t.Error("memory freed while the DMA runs")
	}
	p.order = append(p.order, fmt.Sprint("free ", f.id))
	return nil
}

type fakeInterrupt struct {
	mu    sync.Mutex
	wakes int
}

func (i *fakeInterrupt) Wait(time.Duration) (Wakeup, error) { return WakeTimeout, nil }
func (i *fakeInterrupt) Enable() error                      { return nil }
func (i *fakeInterrupt) Wake() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wakes++
}

// open opens a MAC on p and fails the test otherwise.
func (p *fakePort) open(c Config) *MAC {
	p.t.Helper()
	m, err := Open(p, c)
	if err != nil {
		p.t.Fatalf("Open: %v", err)
	}
	return m
}

// checkRules fails the test if the driver broke a rule of the registers.
func (p *fakePort) checkRules() {
	p.t.Helper()
	for _, r := range p.mac.rules {
		p.t.Errorf("rule broken: %s", r)
	}
}
