// Package phy drives the Ethernet PHY at the other end of a MAC's MDIO bus: finding and identifying it, autonegotiation and
// forced modes, pause and EEE advertisement, RGMII delays, and watching the link.
//
// [Open] brings a PHY up, [PHY.Apply] changes its settings, and a [Monitor] follows its link from the caller's own loop. PHYs
// that it does not know are driven by the registers of IEEE 802.3 clause 22 alone; the Realtek RTL8211F has a driver of its
// own.
//
// # What is shared with the MAC
//
// A PHY is used through its [PHY] only. The RTL8211F has banks of registers behind a page select, and EEE lies behind an
// address and a data register, so that a transaction is several accesses that nobody may come between. The lock for that
// is in the PHY. Code that reads the same PHY past it, by the bus, may meet any page.
//
// # Time
//
// All waits are bounded and happen on the clock given to Open. A [Monitor] never waits: what takes time is spread over calls
// of [Monitor.Poll].
//
// Sources: IEEE 802.3-2018 clauses 22, 28, 40 and 45, tables 28B-3 (pause) and 45-205 (EEE advertisement); register names
// after Linux include/uapi/linux/mii.h and mdio.h; RTL8211F after Linux drivers/net/phy/realtek/realtek_main.c.
package phy
