package phy

import (
	"errors"
	"sync"
	"testing"

	"dwnet/hw"
	"github.com/google/go-cmp/cmp"
)

var errBus = errors.New("bus fault")

// A page that is left selected makes the next reader of the status register see something else. So it is restored whatever
// happens in between.
func TestPageIsRestored(t *testing.T) {
	for _, before := range []uint16{0, rtlPageStandard} {
		for _, c := range []struct {
			name string
			f    func(Access) error
		}{
			{"done", func(a Access) error { _, err := a.Read(rtlTXCR); return err }},
			{"failed", func(a Access) error { return errBus }},
			{"page changed by the callee", func(a Access) error { return a.Write(rtlPageSelect, 0xd04) }},
			{"panic", func(a Access) error { panic("in callee") }},
		} {
			m := newModel(t)
			p, _ := m.open(Options{})
			m.set(func() { m.page = before })
			func() {
				defer func() { _ = recover() }()
				_ = p.Paged(rtlPageRGMII, c.f)
			}()
			if m.page != before {
				t.Errorf("%s: page %#x, was %#x", c.name, m.page, before)
			}
			if _, err := p.Status(); err != nil { // and the lock is free
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// With the bus failing at any one access of a transaction on a page, the page is the standard one at the next access to clause 22.
func TestPageIsRestoredOnAFailingBus(t *testing.T) {
	for at := range 5 {
		m := newModel(t)
		p, _ := m.open(Options{})
		n := 0
		m.set(func() {
			m.fail = func(int) error {
				n++
				if n == at+1 {
					return errBus
				}
				return nil
			}
		})
		err := p.Paged(rtlPageRGMII, func(a Access) error { _, err := a.Modify(rtlTXCR, 0, rtlTXDelay); return err })
		// Read page, select, read, write, restore.
		if !errors.Is(err, errBus) {
			t.Errorf("access %d: %v", at, err)
		}
		if _, err := p.Read(RegBMCR); err != nil {
			t.Errorf("access %d: %v", at, err)
		}
		m.check()
	}
}

func TestPagesOfAnUnknownPHY(t *testing.T) {
	m := newPlain(t, 0x12345678)
	p, _ := m.open(Options{})
	m.writes()
	if err := p.Paged(0xa43, func(Access) error { return nil }); !errors.Is(err, hw.ErrUnsupported) {
		t.Error(err)
	}
	if l := m.writes(); l != nil {
		t.Errorf("wrote %v", l)
	}
}

func TestNoPageOfAPHYThatIsGone(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	m.set(func() { m.gone = true })
	err := p.Paged(rtlPageRGMII, func(Access) error { t.Error("called"); return nil })
	if !errors.Is(err, hw.ErrNoPHY) {
		t.Error(err)
	}
}

// Transactions of many accesses and plain reads from several goroutines must not get between each other.
func TestTransactionsStayTogether(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{Mode: hw.ModeRGMIIID})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if s, err := p.Status(); err != nil || !s.Up || s.Link.Speed != 1000 {
					t.Errorf("%+v, %v", s, err)
				}
				if d, err := p.Delays(); err != nil || d != (Delays{true, true, true}) {
					t.Errorf("%v, %v", d, err)
				}
				if v, err := p.ReadMMD(mmdPCS, pcsEEEAbility); err != nil || v != uint16(allEEE) {
					t.Errorf("%#x, %v", v, err)
				}
				if _, err := p.AcknowledgeInterrupt(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// rawLog is a bus that remembers all accesses to registers 13 and 14.
type rawLog struct {
	*model
	log []op
}

func (r *rawLog) ReadPHY(phy, reg int) (uint16, error) {
	v, err := r.model.ReadPHY(phy, reg)
	if reg == RegMMDCtrl || reg == RegMMDData {
		r.log = append(r.log, op{1, reg, v})
	}
	return v, err
}

func (r *rawLog) WritePHY(phy, reg int, v uint16) error {
	if reg == RegMMDCtrl || reg == RegMMDData {
		r.log = append(r.log, op{0, reg, v})
	}
	return r.model.WritePHY(phy, reg, v)
}

func TestMMDSequence(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	r := &rawLog{model: m}
	p.raw.bus = r
	const read = 1 // op.Page in this log
	for _, c := range []struct {
		name string
		f    func() error
		want []op
	}{
		{"read 3.20", func() error { _, err := p.ReadMMD(3, 20); return err },
			[]op{{0, 13, 0x0003}, {0, 14, 20}, {0, 13, 0x4003}, {read, 14, 0x0006}}},
		{"write 7.60", func() error { return p.WriteMMD(7, 60, 2) },
			[]op{{0, 13, 0x0007}, {0, 14, 60}, {0, 13, 0x4007}, {0, 14, 2}}},
		{"write 3.0", func() error { return p.WriteMMD(3, 0, 0x0100) },
			[]op{{0, 13, 0x0003}, {0, 14, 0}, {0, 13, 0x4003}, {0, 14, 0x0100}}},
		{"clock stop is followed by a read", func() error { return p.WriteMMD(3, 0, 0x0400) },
			[]op{{0, 13, 0x0003}, {0, 14, 0}, {0, 13, 0x4003}, {0, 14, 0x0400}, {read, 14, 0x0400}}},
	} {
		r.log = nil
		if err := c.f(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, r.log); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
	for _, dev := range []int{-1, 32} {
		if _, err := p.ReadMMD(dev, 0); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("device %d: %v", dev, err)
		}
	}
}

func TestRegisterNumbersAreChecked(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	for _, reg := range []int{-1, 32} {
		if _, err := p.Read(reg); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("read %d: %v", reg, err)
		}
		if err := p.Write(reg, 0); !errors.Is(err, hw.ErrConfig) {
			t.Errorf("write %d: %v", reg, err)
		}
	}
}

func TestModifyTouchesOnlyItsBits(t *testing.T) {
	m := newModel(t)
	p, _ := m.open(Options{})
	m.writes()
	err := p.Do(func(a Access) error {
		if _, err := a.Modify(RegANAR, uint16(AdvPause), uint16(AdvFault)); err != nil {
			return err
		}
		_, err := a.Modify(RegANAR, 0, uint16(AdvFault)) // nothing to change
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]op{{0, RegANAR, 0x21e1}}, m.writes()); d != "" {
		t.Error(d)
	}
}
