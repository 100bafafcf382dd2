package hw

import "fmt"

// RegisterValue is a register with a value read from it.
type RegisterValue struct {
	Register
	Value   uint32
	Decoded string // Value by its fields
}

func (v RegisterValue) String() string {
	return fmt.Sprintf("%04x %-40s %08x %s", v.Offset, v.Name, v.Value, v.Decoded)
}

// Dump reads all registers that the core has, by offset, but for those where reading changes something. It is nil after
// Close.
func (m *MAC) Dump() []RegisterValue { return m.dump(false) }

// DumpAll is Dump with the registers that reading changes: it acknowledges events of the counters, of power management and of
// low power idle, and moves the pointer of the wake-up filter. Frames that it finds missed are not lost to Counters.
func (m *MAC) DumpAll() []RegisterValue { return m.dump(true) }

func (m *MAC) dump(all bool) []RegisterValue {
	// While the bus is busy its data register must be left alone.
	m.mdioMu.Lock()
	defer m.mdioMu.Unlock()
	m.countersMu.Lock()
	defer m.countersMu.Unlock()
	if m.closed.Load() {
		return nil
	}
	out := make([]RegisterValue, 0, len(registerTable))
	for _, r := range registerTable {
		if r.ReadActs && !all || !r.present(m.feature) {
			continue
		}
		v := m.reg.Load32(r.Offset)
		if r.Offset == RegMissedFrames && v != allOnes {
			m.counters.addMissed(MissedFrames(v))
		}
		out = append(out, RegisterValue{Register: r, Value: v, Decoded: r.Decode(v)})
	}
	return out
}
