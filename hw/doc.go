// Package hw is the register-level driver of the Synopsys DesignWare Ethernet MAC 3.7x, called DWMAC1000 or GMAC, as it is in
// the Amlogic S805 and many others. What follows is a walk through it for somebody who has not seen it before.
//
// # The device
//
// The core is three things behind one window of registers. The MAC speaks MII, RMII, GMII or RGMII to a PHY, checks and makes
// the FCS, filters addresses and counts. Two FIFOs, 4 KiB to receive and 2 KiB to send on the S805, decouple it from memory.
// Two DMA engines move frames between the FIFOs and buffers in memory, led by two rings of descriptors of four words each. A
// descriptor belongs to the DMA while its bit OWN is set and to the CPU while it is clear; handing it over, in either
// direction, is all the synchronisation there is. The PHY is reached over MDIO, through two of the MAC's registers.
//
// Nearly everything runs on clocks that come from elsewhere. The receive clock comes from the PHY: while that sleeps, or is in
// reset, a software reset of the MAC never ends. Most bring-up problems are this one, and the error says so ([ErrNoClock]).
//
// # From the bottom up
//
// A [Port] says where registers, DMA memory, interrupt and time come from; this package knows of no mmap, no board and no
// simulator. [Open] takes a Port over: stops what a boot loader left running, wakes the PHY, resets, identifies the core by
// [Version] and [Feature], and programs everything, stopped. [MAC.Start] lets it run, [MAC.EnableInterrupts] lets it
// interrupt. [MAC.Close] makes sure that the DMA has stopped before it frees the memory that it wrote into.
//
//	m, err := hw.Open(port, hw.Config{})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	if link, up, err := m.LinkStatus(); err != nil {
//		return err
//	} else if up {
//		m.SetLink(link) // speed, duplex and pause, from what the PHY negotiated
//	}
//	if err := m.Start(); err != nil {
//		return err
//	}
//
// Sending is [MAC.TX]: write a frame piece by piece into the ring, commit it, and kick once per burst. The frame is the DMA's
// from Commit on, so whatever accounts for it must do so before.
//
//	tx := m.TX()
//	tx.Write(0, header)
//	tx.Write(len(header), payload)
//	if err := tx.Commit(len(header)+len(payload), hw.TXFlags{Interrupt: true}); err != nil {
//		return err // hw.ErrRingFull: reclaim, then try again
//	}
//	tx.Kick()
//
// Receiving is [MAC.RX]: look, copy, release. Bad frames come as well, with the reason, and are released as well: a slot that
// is not given back is lost to the engine.
//
//	rx := m.RX()
//	for {
//		f, ok := rx.Next()
//		if !ok {
//			break
//		}
//		if f.Err == 0 {
//			rx.CopyOut(buf[:f.Len])
//		}
//		rx.Release()
//	}
//	rx.Resume()
//
// Both belong into a loop that waits for the interrupt, acknowledges it with [MAC.Interrupts], and only then looks at the
// rings, until nothing is left; then it enables the port's interrupt again and looks once more. [Cause] says what happened;
// running out of slots ([Cause.RXUnavailable]) may be all that is told of a burst.
//
// # When something is wrong
//
// Every wait on hardware has a limit on the port's clock, and the [Error] says which bits of which register it waited for, what
// they were and how long. A device that vanished reads as ones and is [ErrGone], at once. Nothing panics on what a device
// does: a descriptor that lies is a bad frame.
//
// Recovery has three steps. A lost poll demand is cured by Kick and Resume. A transmitter that stands still while [MAC.Debug]
// says neither paused nor busy is restarted by [MAC.RestartTX]. All else, a bus error ([Cause.Fatal]) first of all, takes
// [MAC.Reset], which restores address, filters, link and masks, and Start. [MAC.Counters] go on counting through all of that,
// and [MAC.Dump] prints every register by its fields.
//
// # Who may call what at once
//
// The transmit ring has one producer and one consumer, which may run at the same time; the receive ring has one user. They
// take no lock and never wait. Start, Stop, Reset, RestartTX and Close exclude the users of the rings; the caller sees to
// that. All other methods of MAC lock what they need and may be called from anywhere.
//
// # Choices
//
// Ring mode, one buffer for each descriptor, 16-byte descriptors of either layout. Frames are copied into and out of the rings:
// on the boards in question DMA memory is uncached, so one copy is needed anyway and saves all mapping. Store and forward both
// ways. Bursts of 32 beats, so that checksums can be inserted into a full frame. All multicast passes after Open; no PAUSE
// frames are sent or obeyed until SetLink says so. Low power idle is never switched on.
//
// # Sources
//
// Registers: Intel's documentation of the same core in its SoC FPGAs (intel-socfpga-hwlib, alt_emac.h). Descriptors, orders and
// limits: Linux, drivers/net/ethernet/stmicro/stmmac. Checksum engines: TI SLAU723A, chapter EMAC. PHYs: IEEE 802.3 clauses
// 22 and 28.
package hw
