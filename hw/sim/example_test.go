package sim_test

import (
	"fmt"
	"time"

	"dwnet/hw/sim"
)

// A board answers to its registers at once. Under a stepped clock nothing else moves until the test says so.
func Example() {
	clock := sim.NewSteppedClock(time.Unix(0, 0))
	board, err := sim.NewBoard(sim.Options{Name: "eth0", Clock: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer board.Close()
	cable, err := sim.Connect(board, sim.NewHost(nil), sim.CableOptions{SpeedMbps: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cable.Close()

	const version, rgmii = 0x0020, 0x00D8
	regs := board.Port().Registers()
	fmt.Printf("version 0x%04x, in-band status 0x%x\n", regs.Load32(version), regs.Load32(rgmii))
	clock.Advance(time.Second)
	fmt.Printf("after autonegotiation 0x%x\n", regs.Load32(rgmii))

	regs.Store32(version, 1)
	for _, v := range board.Violations() {
		fmt.Println(v)
	}
	// Output:
	// version 0x1037, in-band status 0x0
	// after autonegotiation 0xb
	// write to read-only register: eth0: 0x00000001 to Version
}
