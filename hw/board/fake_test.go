package board

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"dwnet/hw"
)

const ms = time.Millisecond

// clock is a time that only passes in Sleep and AfterFunc.
type clock struct {
	mu    sync.Mutex
	slept time.Duration
	never bool // AfterFunc never fires
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(1, 0).Add(c.slept)
}
func (c *clock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept += d
}

func (c *clock) AfterFunc(d time.Duration, f func()) hw.Timer {
	if !c.never {
		c.Sleep(d)
		go f()
	}
	return timer{}
}

type timer struct{}

func (timer) Stop() bool          { return false }
func (timer) Reset(time.Duration) {}

// write is a store that a board has seen.
type write struct {
	Addr, V uint32
}

func (w write) String() string { return fmt.Sprintf("%08x=%08x", w.Addr, w.V) }

// soc is the registers of a SoC, as plain memory, with faults.
type soc struct {
	words  map[uint32]uint32
	log    []write
	writes int

	dead      bool
	deadAfter int               // accesses until the bus is gone; 0: never
	lose      int               // the write with this number, from 1, has no effect
	stuck     map[uint32]uint32 // bits that do not take writes
	onWrite   func(write)

	accesses int
	maps     int
	closed   int
	failMap  int // the map with this number, from 1, fails
}

// Reset values. Registers that are not here are zero.
const (
	c1PRG      = 0xc1108140
	c1MPLL2    = 0xc11042a0
	c1MPLL6    = 0xc1104294
	c1Gate     = 0xc1104144
	c1MemPD    = 0xc1104100
	c1Reset1   = 0xc1104408
	c1GPIODir  = 0xc1108054
	c1GPIOOut  = 0xc1108058
	c1GPIOIn   = 0xc110805c
	c1Mux6     = 0xc11080c8
	c1Mux7     = 0xc11080cc
	c1ClkMPEG  = 0xc1104174
	c2PRG      = 0xc8834540
	c2MPLL6    = 0xc883c294
	c1MPLLPre  = 0xc1104290
	gateOthers = 0xfffffff7
)

// newC1 is an Odroid-C1 out of reset: no power, no clocks, the PHY in reset.
func newC1() *soc {
	return &soc{words: map[uint32]uint32{
		c1MemPD: 0xffffffff, c1Gate: gateOthers, c1GPIODir: 0xffffffff, c1GPIOOut: 0,
		c1MPLL6: 0x01230000, c1MPLL2: 0x02000000, c1ClkMPEG: 5<<12 | 1<<7 | 3, // fclk_div4 / 4
		0xc11080d4: 0x3c00, 0xc11080c0: 0x0000000e, 0xc11080c8: 0x30, // other functions on Ethernet's pads
	}}
}

// newC2 is an Odroid-C2 out of reset.
func newC2() *soc {
	return &soc{words: map[uint32]uint32{
		0xc883c100: 0x0c, 0xc883c144: gateOthers, 0xc8834454: 0xffffffff, c2MPLL6: 0x00ab0000, 0xc883c2a0: 0x1,
		0xc883c174: 5<<12 | 1<<7 | 2,
	}}
}

func (s *soc) Map(phys, size uint32) (hw.Registers, error) {
	s.maps++
	if s.maps == s.failMap {
		return nil, errMap
	}
	return &part{s, phys, size}, nil
}

var errMap = errors.New("no such memory")

// part is one window.
type part struct {
	s          *soc
	base, size uint32
}

func (p *part) Close() error { p.s.closed++; return nil }

func (s *soc) count() bool {
	s.accesses++
	if s.deadAfter != 0 && s.accesses > s.deadAfter {
		s.dead = true
	}
	return !s.dead
}

func (p *part) Load32(off uint32) uint32 {
	if off >= p.size || off%4 != 0 {
		panic(fmt.Sprintf("offset 0x%x of 0x%x", off, p.base))
	}
	if !p.s.count() {
		return allOnes
	}
	addr := p.base + off
	if addr == c1GPIOIn || addr == 0xc883445c {
		// A pin that is an output reads as its level; an input is pulled up, by the PHY's resistor.
		dir, out := p.s.words[addr-8], p.s.words[addr-4]
		return dir | out
	}
	return p.s.words[addr]
}

func (p *part) Store32(off uint32, v uint32) {
	if off >= p.size || off%4 != 0 {
		panic(fmt.Sprintf("offset 0x%x of 0x%x", off, p.base))
	}
	if !p.s.count() {
		return
	}
	addr := p.base + off
	p.s.writes++
	p.s.log = append(p.s.log, write{addr, v})
	if p.s.onWrite != nil {
		p.s.onWrite(write{addr, v})
	}
	if addr == c1Reset1 || p.s.writes == p.s.lose {
		return // a pulse, or lost
	}
	st := p.s.stuck[addr]
	p.s.words[addr] = p.s.words[addr]&st | v&^st
}

// image is the registers' contents, for comparison.
func (s *soc) image() map[uint32]uint32 {
	m := map[uint32]uint32{}
	for a, v := range s.words {
		if v != 0 {
			m[a] = v
		}
	}
	return m
}

// changes is the log reduced to what one register went through.
func (s *soc) changes(addr uint32) (vs []uint32) {
	for _, w := range s.log {
		if w.Addr == addr {
			vs = append(vs, w.V)
		}
	}
	return vs
}

func mustState(t *testing.T, b Board, s *soc) State {
	t.Helper()
	st, err := Read(b, s)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// ids is the identifiers of findings.
func ids(l []Finding) (s []string) {
	for _, f := range l {
		s = append(s, f.ID)
	}
	return s
}
