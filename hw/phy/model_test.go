package phy

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"dwnet/hw"
)

// clock is a time that only passes in Sleep and AfterFunc, or when a test says so.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept time.Duration
	never bool // AfterFunc never fires
}

func newClock() *clock { return &clock{now: time.Unix(1000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
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

// op is a write that a PHY has seen. MMD accesses show as what they reach.
type op struct {
	Page uint16
	Reg  int
	V    uint16
}

func (o op) String() string { return fmt.Sprintf("%x:%d=%04x", o.Page, o.Reg, o.V) }

// model is one PHY on a bus of its own: the registers of clause 22 with a latching link bit, EEE by MMD, and the RTL8211F's
// pages. On another page than the standard one the registers of clause 22 are not there, and looking for them is a violation.
type model struct {
	t    testing.TB
	mu   sync.Mutex
	addr int
	id   ID

	paged     bool // an RTL8211F, not a plain one
	page      uint16
	std       [16]uint16
	banks     map[[2]uint16]uint16
	stuckBits map[[2]uint16]uint16 // bits of paged registers that do not take writes
	mmd       map[[2]uint16]uint16
	mmdDev    uint16 // last value of the control register
	mmdReg    uint16

	plugged       bool
	link, latched bool // latched: the link bit reads 0 once
	hold          bool // autonegotiation does not end
	partner       Modes
	partnerPause  Pause
	partnerEEE    EEEModes
	partnerSilent bool // it does not autonegotiate
	corrupt       int  // how many negotiations give a nonsense word
	downshift     Modes
	masterFault   bool

	gone       bool
	stuckSleep bool // power-down does not end
	stuckReset bool
	fail       func(n int) error // consulted with the number of the access, from 0

	accesses   int
	restarts   int
	pending    uint16 // INSR
	log        []op
	violations []string
}

const (
	testSupported = uint16(BMSR10Half | BMSR10Full | BMSR100Half | BMSR100Full | BMSRExtStat | BMSRAutoneg | BMSRExtCap)
	modesNo1000H  = AllModes &^ Mode1000Half
)

// newModel is an RTL8211F as it comes out of reset, on a cable to a partner that can do everything.
func newModel(t testing.TB) *model {
	m := &model{t: t, id: RTL8211F, paged: true, plugged: true, partner: AllModes, partnerEEE: allEEE}
	m.reset()
	return m
}

// newPlain is a PHY that only knows clause 22.
func newPlain(t testing.TB, id ID) *model {
	m := &model{t: t, id: id, plugged: true, partner: AllModes}
	m.reset()
	return m
}

func (m *model) reset() {
	m.std = [16]uint16{RegBMCR: uint16(BMCRAutoneg | BMCRSpeed1000 | BMCRDuplex), RegBMSR: testSupported, RegID1: uint16(m.id >> 16),
		RegID2: uint16(m.id), RegANAR: 0x0de1, RegGBCR: gbcr1000Full | gbcr1000Half, RegESR: esr1000Full | esr1000Half}
	m.page = rtlPageStandard
	m.banks = map[[2]uint16]uint16{
		{rtlPagePHY, rtlPHYCR1}: 0x2100 | rtlALDPSEnable | rtlALDPSPLLOff,
		{rtlPagePHY, rtlPHYCR2}: 0x0800 | rtlPHYModeEEE | rtlClockOut,
		{rtlPageRGMII, rtlTXCR}: 0x0009, {rtlPageRGMII, rtlRXCR}: 0x0011,
	}
	m.mmd = map[[2]uint16]uint16{}
	if m.paged {
		m.mmd[[2]uint16{mmdPCS, pcsEEEAbility}] = uint16(allEEE)
		m.mmd[[2]uint16{mmdAN, anEEEAdvertise}] = uint16(allEEE)
	}
	m.negotiate()
}

// negotiate is autonegotiation, at once.
func (m *model) negotiate() {
	if m.link {
		m.latched = true
	}
	was := m.link
	m.link = false
	m.std[RegBMSR] &^= uint16(BMSRComplete)
	m.std[RegANLPAR], m.std[RegANER], m.std[RegGBSR] = 0, 0, 0
	delete(m.mmd, [2]uint16{mmdAN, anEEEPartner})
	bmcr := BMCR(m.std[RegBMCR])
	defer func() {
		if was || m.link {
			m.pending |= rtlINERLink
		}
	}()
	if !m.plugged || bmcr&BMCRPowerDown != 0 {
		return
	}
	if bmcr&BMCRAutoneg == 0 {
		m.link = m.partner&bmcr.forced() != 0
		return
	}
	if m.hold {
		return
	}
	m.std[RegBMSR] |= uint16(BMSRComplete)
	if m.partnerSilent {
		// Parallel detection sees the speed only and takes it for half duplex.
		half := Mode10Half
		if m.partner.Speed() == 100 {
			half = Mode100Half
		}
		m.std[RegANLPAR] = advModes.bits(half)
		m.link = true
		return
	}
	m.std[RegANER] = anerPartnerAble
	m.std[RegANLPAR] = uint16(Advertisement(AdvSelector|AdvAck).advertise(m.partner, m.partnerPause))
	m.std[RegGBSR] = gbsrModes.bits(m.partner) | gbsrMaster
	m.mmd[[2]uint16{mmdAN, anEEEPartner}] = uint16(m.partnerEEE)
	m.link = m.resolved() != 0
	if m.masterFault {
		m.std[RegGBSR] |= gbsrMasterFault
		m.link = false
	}
	if m.corrupt > 0 {
		m.corrupt--
		m.std[RegANLPAR], m.std[RegGBSR] = uint16(AdvSelector), 0
		m.link = true
	}
}

func (m *model) resolved() Modes {
	mine := Advertisement(m.std[RegANAR]).modes() | gbcrModes.modes(m.std[RegGBCR])
	return (mine & m.partner).Best()
}

func (m *model) access(phy int) error {
	n := m.accesses
	m.accesses++
	if m.fail != nil {
		return m.fail(n)
	}
	return nil
}

func (m *model) onStandard(what string, reg int) bool {
	if !m.paged || m.page == rtlPageStandard || m.page == 0 {
		return true
	}
	m.violations = append(m.violations, fmt.Sprintf("%s of register %d on page 0x%x", what, reg, m.page))
	return false
}

func (m *model) ReadPHY(phy, reg int) (uint16, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.access(phy); err != nil {
		return 0, err
	}
	if m.gone || phy != m.addr {
		return 0xffff, nil
	}
	switch {
	case reg == rtlPageSelect && m.paged:
		return m.page, nil
	case reg > RegESR:
		if !m.paged {
			return 0, nil
		}
		k := [2]uint16{m.bank(), uint16(reg)}
		switch k {
		case [2]uint16{rtlPagePHY, rtlPHYSR}:
			return m.physr(), nil
		case [2]uint16{rtlPagePHY, rtlINSR}:
			v := m.pending
			m.pending = 0
			return v, nil
		}
		return m.banks[k], nil
	case !m.onStandard("read", reg):
		return 0x5a5a, nil
	case reg == RegMMDData:
		if m.mmdDev&0xc000 == mmdAddress {
			return m.mmdReg, nil
		}
		return m.mmd[[2]uint16{m.mmdDev & mmdDeviceMask, m.mmdReg}], nil
	case reg == RegBMSR:
		v := m.std[RegBMSR]
		if m.link && !m.latched {
			v |= uint16(BMSRLink)
		}
		m.latched = !m.link
		return v, nil
	}
	return m.std[reg], nil
}

func (m *model) bank() uint16 {
	if m.page == 0 {
		return rtlPageStandard
	}
	return m.page
}

func (m *model) physr() uint16 {
	mode := m.resolved()
	if bmcr := BMCR(m.std[RegBMCR]); bmcr&BMCRAutoneg == 0 {
		mode = bmcr.forced()
	} else if m.partnerSilent {
		mode = Advertisement(m.std[RegANLPAR]).modes()
	}
	if m.downshift != 0 {
		mode = m.downshift
	}
	var v uint16
	if m.link {
		v |= rtlPHYSRLink
	}
	if mode.FullDuplex() {
		v |= rtlPHYSRFull
	}
	switch mode.Speed() {
	case 100:
		v |= 1 << 4
	case 1000:
		v |= 2 << 4
	}
	return v
}

func (m *model) WritePHY(phy, reg int, v uint16) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.access(phy); err != nil {
		return err
	}
	if m.gone || phy != m.addr {
		return nil
	}
	switch {
	case reg == rtlPageSelect && m.paged:
		m.page = v
		return nil
	case reg > RegESR:
		m.log = append(m.log, op{m.bank(), reg, v})
		k := [2]uint16{m.bank(), uint16(reg)}
		stuck := m.stuckBits[k]
		m.banks[k] = m.banks[k]&stuck | v&^stuck
		return nil
	case !m.onStandard("write", reg):
		return nil
	case reg == RegMMDCtrl:
		m.mmdDev = v
		return nil
	case reg == RegMMDData:
		if m.mmdDev&0xc000 == mmdAddress {
			m.mmdReg = v
			return nil
		}
		dev := m.mmdDev & mmdDeviceMask
		m.log = append(m.log, op{dev, int(m.mmdReg), v})
		m.mmd[[2]uint16{dev, m.mmdReg}] = v
		return nil
	}
	m.log = append(m.log, op{0, reg, v})
	switch reg {
	case RegBMCR:
		m.writeBMCR(BMCR(v))
	case RegANAR, RegGBCR:
		m.std[reg] = v
	}
	return nil
}

func (m *model) writeBMCR(v BMCR) {
	if v&BMCRReset != 0 {
		m.reset()
		if m.stuckReset {
			m.std[RegBMCR] |= uint16(BMCRReset)
		}
		return
	}
	old := BMCR(m.std[RegBMCR])
	if m.stuckSleep {
		v |= old & BMCRPowerDown
	}
	m.std[RegBMCR] = uint16(v &^ BMCRRestart)
	if v&BMCRRestart != 0 {
		m.restarts++
	}
	if v&BMCRRestart != 0 || (old^v)&(bmcrForcedMask|BMCRPowerDown) != 0 {
		m.negotiate()
	}
}

// pull and plug the cable.
func (m *model) pull() { m.set(func() { m.plugged = false; m.negotiate() }) }
func (m *model) plug() { m.set(func() { m.plugged = true; m.negotiate() }) }

// set changes the model.
func (m *model) set(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// writes is what was written since the last call.
func (m *model) writes() []op {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log
	m.log = nil
	return l
}

// wrote reports whether register reg of clause 22 was among the writes.
func wrote(l []op, reg int) bool {
	for _, o := range l {
		if o.Page == 0 && o.Reg == reg {
			return true
		}
	}
	return false
}

// check fails the test if the registers of clause 22 were looked for on another page, or the page was not restored.
func (m *model) check() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, v := range m.violations {
		m.t.Error(v)
	}
	if m.paged && m.page != rtlPageStandard && m.page != 0 {
		m.t.Errorf("page 0x%x is left selected", m.page)
	}
}

// open opens the model with options, and takes a failure for the test's.
func (m *model) open(o Options) (*PHY, *clock) {
	m.t.Helper()
	c := newClock()
	p, err := Open(m, c, o)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(m.check)
	return p, c
}
