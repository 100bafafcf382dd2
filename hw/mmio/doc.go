// Package mmio gives package hw a MAC on real hardware under Linux: registers, DMA memory and interrupts in user space,
// without a kernel driver for it.
//
//	port, err := mmio.Open(mmio.Options{
//		Registers: mmio.Source{Kind: mmio.UIO, Path: "/dev/uio0"},
//		Memory:    mmio.Source{Kind: mmio.UDMABuf, Path: "/dev/udmabuf0"},
//	})
//
// # Sources
//
// Registers come from /dev/mem or from a map of a UIO device (uio_pdrv_genirq, uio_pci_generic). Interrupts come from the UIO
// device; without one the status register is looked at every 50 µs to 1 ms, the more often the less time has passed since
// the last interrupt. DMA memory comes from
//
//	/dev/mem     a region that the device tree reserves with no-map; Device memory on ARM
//	UIO          a region that the device tree gives to a UIO device; Device memory on ARM
//	u-dma-buf    a buffer of that driver; by its sync_mode Device memory (1, the default) or non-cacheable (2, quicker)
//	a file       shared with an emulator
//
// DMA memory must be uncached unless the device snoops, lie below 4 GiB, and be nobody else's: all this is checked before
// anything is written, as far as the system tells, and SelfTest proves it with the device's help.
//
// # Access
//
// Registers, descriptors and everything else of 32 bits is touched by single aligned loads and stores in assembly. Payload is
// copied by one of two routines. The safe one makes aligned accesses of at most 32 bits and reads each word once: it is the
// only one for Device memory on ARM, where an unaligned or vector access is a bus error. Go's copy is for the rest, if it is
// quicker on that mapping, which is measured when the port is opened: the policy is that of CopyAuto.
//
// Barriers are instructions that complete on the bus (DSB on ARM, MFENCE on amd64); each file barrier_*.go says why. On other
// machines, and for GOARM=5, Open refuses.
//
// # Privileges
//
// /dev/mem needs CAP_SYS_RAWIO and a kernel that is not locked down; one with CONFIG_STRICT_DEVMEM keeps its own memory, and
// with CONFIG_IO_STRICT_DEVMEM registers that a driver claims, away. UIO and u-dma-buf need access to the node only.
// /proc/iomem shows addresses to CAP_SYS_ADMIN. Nothing is needed after Open: drop root then.
//
// # What it does not do
//
// It switches on no clock and deasserts no reset (package board does), unbinds no kernel driver, and does not stop the device
// on Close (hw.MAC.Close does, before the port is closed).
package mmio
