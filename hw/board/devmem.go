package board

import (
	"dwnet/hw"
	"dwnet/hw/mmio"
)

// DevMem maps registers from /dev/mem. The zero value of System is the machine that the program runs on.
type DevMem struct{ System mmio.System }

var _ Mapper = DevMem{}

// Map implements Mapper.
func (m DevMem) Map(phys, size uint32) (hw.Registers, error) {
	w, err := mmio.OpenWindow(m.System, mmio.Source{Kind: mmio.DevMem, Address: uint64(phys), Size: uint64(size)})
	if err != nil {
		return nil, err // and not a window of nil
	}
	return w, nil
}
