// Package sim is a simulated Ethernet board: an Odroid-C1 (Amlogic S805 with a Synopsys DWMAC1000 3.7x and an RTL8211F) as
// its driver sees it, register by register and descriptor by descriptor. With it an appliance is developed, tested and
// measured without a board.
//
//	a, _ := sim.NewBoard(sim.Options{})
//	b, _ := sim.NewBoard(sim.Options{})
//	cable, _ := sim.Connect(a, b, sim.CableOptions{SpeedMbps: 1000})
//	driver := open(a.Port()) // whatever drives a hw.Port
//
// A [Board] is one end of a [Cable]. Others are a [TAP] interface of the machine, and a [Host], which sends what a test
// hands it and gives back what arrives.
//
// # What is modelled
//
// The registers with their access rules and reset values ([Registers]); both DMA engines, which walk real descriptors in
// DMA memory, normal and enhanced, rings and chains; the FIFOs; address and VLAN filters; both checksum engines; PAUSE
// frames in both directions; the management counters with their interrupts; MDIO with the time it takes; the PHY with its
// pages, autonegotiation across the cable, power-down and what that does to the software reset; the interrupt line.
//
// Not modelled are half-duplex collisions, the SoC's glue registers (clocks and delays in front of the MAC), waking up by
// magic packet or filter, low-power idle beyond its registers, IEEE 1588, and buses slower than Options.DMABytesPerSecond
// because of others.
//
// # Time
//
// A board lives in a [hw.Clock], which boards on one cable share: [RealClock], one that passes N times slower
// ([NewDilatedClock]), or one that a test moves ([NewSteppedClock]), under which the simulation is reproducible. What
// happens on a wire and in the engines is computed in that time: a frame of 1514 bytes follows another one after 12304 ns at
// 1000 Mbit/s however the goroutines are scheduled. When the machine runs the simulator too late, the wire catches up by
// at most a millisecond, or a quarter of the receive ring; the rest shifts its schedule and is counted
// (CableStats.HostStall). On a busy wire of 1000 Mbit/s the simulator acts every 50 µs, up to 200 µs on a machine that is
// late all the time, so the driver learns of events that much late; at 100 and 10 Mbit/s it acts for each frame. A cable
// without wire time carries what the CPU allows, and loses nothing, as frames wait for the receiver.
//
// An idle board takes no CPU time. A cable with wire time keeps an operating system thread, which sleeps in the kernel.
//
// # Strictness
//
// A driver that breaks a rule of the hardware is reported: see [Rule] and Options.OnViolation. [Faults] makes the board
// break, in the ways that boards are known to.
package sim
