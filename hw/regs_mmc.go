package hw

// Offsets of the MAC management counters. Sources: Intel SoC EMAC, alt_emac.h; Linux
// drivers/net/ethernet/stmicro/stmmac/mmc_core.c.
const (
	RegMMCControl  = 0x0100
	RegMMCRX       = 0x0104 // interrupt, cleared by reading
	RegMMCTX       = 0x0108 // interrupt, cleared by reading
	RegMMCRXMask   = 0x010C
	RegMMCTXMask   = 0x0110
	RegMMCIPCMask  = 0x0200
	RegMMCIPC      = 0x0208 // interrupt of the checksum engine's counters, cleared by reading
	regMMCIPCFirst = 0x0210
	mmcMaskAll     = 0xFFFFFFFF // each counter interrupts at half its range unless masked; the masks reset to 0
)

// MMCControl is the control register of the management counters, 0x0100.
type MMCControl uint32

const (
	MMCReset  MMCControl = 1 << 0 // reset all counters, self-clearing
	MMCStop   MMCControl = 1 << 1 // stop at the maximum
	MMCReadRC MMCControl = 1 << 2 // reset a counter when it is read
	MMCFreeze MMCControl = 1 << 3
)

func (v MMCControl) String() string {
	return decode(uint32(v), []field{
		bit(0, "CNTRST"), bit(1, "CNTSTOPRO"), bit(2, "RSTONRD"), bit(3, "CNTFREEZ"), bit(4, "CNTPRST"), bit(5, "CNTPRSTLVL"),
		bit(8, "UCDBC"),
	})
}

// Counters are the counters of the MAC and its DMA, accumulated since Open. Good frames only unless the name ends in GB
// (good and bad). Octets do not include the preamble.
type Counters struct {
	// Transmit.
	TXOctetsGB, TXFramesGB                                            uint64
	TXBroadcast, TXMulticast                                          uint64
	TX64GB, TX65To127GB, TX128To255GB, TX256To511GB, TX512To1023GB    uint64
	TX1024UpGB                                                        uint64
	TXUnicastGB, TXMulticastGB, TXBroadcastGB                         uint64
	TXUnderflow, TXSingleCollision, TXMultiCollision, TXDeferred      uint64
	TXLateCollision, TXExcessCollision, TXCarrierError                uint64
	TXOctets, TXFrames, TXExcessDeferral, TXPause, TXVLAN, TXOversize uint64

	// Receive.
	RXFramesGB, RXOctetsGB, RXOctets                               uint64
	RXBroadcast, RXMulticast                                       uint64
	RXCRCError, RXAlignError, RXRunt, RXJabber                     uint64
	RXUndersize, RXOversize                                        uint64
	RX64GB, RX65To127GB, RX128To255GB, RX256To511GB, RX512To1023GB uint64
	RX1024UpGB                                                     uint64
	RXUnicast, RXLengthError, RXOutOfRange, RXPause                uint64
	RXFIFOOverflow, RXVLANGB, RXWatchdog, RXReceiveError           uint64
	RXControl                                                      uint64

	// Receive checksum engine: frames.
	RXIPv4, RXIPv4HeaderError, RXIPv4NoPayload, RXIPv4Fragment, RXIPv4UDPNoSum uint64
	RXIPv6, RXIPv6HeaderError, RXIPv6NoPayload                                 uint64
	RXUDP, RXUDPError, RXTCP, RXTCPError, RXICMP, RXICMPError                  uint64

	// Receive checksum engine: octets.
	RXIPv4Octets, RXIPv4HeaderErrorOctets, RXIPv4NoPayloadOctets, RXIPv4FragmentOctets uint64
	RXIPv4UDPNoSumOctets                                                               uint64
	RXIPv6Octets, RXIPv6HeaderErrorOctets, RXIPv6NoPayloadOctets                       uint64
	RXUDPOctets, RXUDPErrorOctets, RXTCPOctets, RXTCPErrorOctets                       uint64
	RXICMPOctets, RXICMPErrorOctets                                                    uint64

	// DMA, register 0x1020.
	RXMissed   uint64 // for lack of a descriptor
	RXOverflow uint64 // in the FIFO, runts dropped there included
}

// A counter ties a register of the MMC to its field in Counters. The vendor's name is that of Intel's documentation.
type counter struct {
	offset uint32
	name   string
	field  func(*Counters) *uint64
}

// mmcCounters are all counters in the order of their addresses.
var mmcCounters = []counter{
	{0x114, "txoctetcount_gb", func(c *Counters) *uint64 { return &c.TXOctetsGB }},
	{0x118, "txframecount_gb", func(c *Counters) *uint64 { return &c.TXFramesGB }},
	{0x11C, "txbroadcastframes_g", func(c *Counters) *uint64 { return &c.TXBroadcast }},
	{0x120, "txmulticastframes_g", func(c *Counters) *uint64 { return &c.TXMulticast }},
	{0x124, "tx64octets_gb", func(c *Counters) *uint64 { return &c.TX64GB }},
	{0x128, "tx65to127octets_gb", func(c *Counters) *uint64 { return &c.TX65To127GB }},
	{0x12C, "tx128to255octets_gb", func(c *Counters) *uint64 { return &c.TX128To255GB }},
	{0x130, "tx256to511octets_gb", func(c *Counters) *uint64 { return &c.TX256To511GB }},
	{0x134, "tx512to1023octets_gb", func(c *Counters) *uint64 { return &c.TX512To1023GB }},
	{0x138, "tx1024tomaxoctets_gb", func(c *Counters) *uint64 { return &c.TX1024UpGB }},
	{0x13C, "txunicastframes_gb", func(c *Counters) *uint64 { return &c.TXUnicastGB }},
	{0x140, "txmulticastframes_gb", func(c *Counters) *uint64 { return &c.TXMulticastGB }},
	{0x144, "txbroadcastframes_gb", func(c *Counters) *uint64 { return &c.TXBroadcastGB }},
	{0x148, "txunderflowerror", func(c *Counters) *uint64 { return &c.TXUnderflow }},
	{0x14C, "txsinglecol_g", func(c *Counters) *uint64 { return &c.TXSingleCollision }},
	{0x150, "txmulticol_g", func(c *Counters) *uint64 { return &c.TXMultiCollision }},
	{0x154, "txdeferred", func(c *Counters) *uint64 { return &c.TXDeferred }},
	{0x158, "txlatecol", func(c *Counters) *uint64 { return &c.TXLateCollision }},
	{0x15C, "txexesscol", func(c *Counters) *uint64 { return &c.TXExcessCollision }},
	{0x160, "txcarriererr", func(c *Counters) *uint64 { return &c.TXCarrierError }},
	{0x164, "txoctetcnt", func(c *Counters) *uint64 { return &c.TXOctets }},
	{0x168, "txframecount_g", func(c *Counters) *uint64 { return &c.TXFrames }},
	{0x16C, "txexcessdef", func(c *Counters) *uint64 { return &c.TXExcessDeferral }},
	{0x170, "txpauseframes", func(c *Counters) *uint64 { return &c.TXPause }},
	{0x174, "txvlanframes_g", func(c *Counters) *uint64 { return &c.TXVLAN }},
	{0x178, "txoversize_g", func(c *Counters) *uint64 { return &c.TXOversize }},

	{0x180, "rxframecount_gb", func(c *Counters) *uint64 { return &c.RXFramesGB }},
	{0x184, "rxoctetcount_gb", func(c *Counters) *uint64 { return &c.RXOctetsGB }},
	{0x188, "rxoctetcount_g", func(c *Counters) *uint64 { return &c.RXOctets }},
	{0x18C, "rxbroadcastframes_g", func(c *Counters) *uint64 { return &c.RXBroadcast }},
	{0x190, "rxmulticastframes_g", func(c *Counters) *uint64 { return &c.RXMulticast }},
	{0x194, "rxcrcerror", func(c *Counters) *uint64 { return &c.RXCRCError }},
	{0x198, "rxalignmenterror", func(c *Counters) *uint64 { return &c.RXAlignError }},
	{0x19C, "rxrunterror", func(c *Counters) *uint64 { return &c.RXRunt }},
	{0x1A0, "rxjabbererror", func(c *Counters) *uint64 { return &c.RXJabber }},
	{0x1A4, "rxundersize_g", func(c *Counters) *uint64 { return &c.RXUndersize }},
	{0x1A8, "rxoversize_g", func(c *Counters) *uint64 { return &c.RXOversize }},
	{0x1AC, "rx64octets_gb", func(c *Counters) *uint64 { return &c.RX64GB }},
	{0x1B0, "rx65to127octets_gb", func(c *Counters) *uint64 { return &c.RX65To127GB }},
	{0x1B4, "rx128to255octets_gb", func(c *Counters) *uint64 { return &c.RX128To255GB }},
	{0x1B8, "rx256to511octets_gb", func(c *Counters) *uint64 { return &c.RX256To511GB }},
	{0x1BC, "rx512to1023octets_gb", func(c *Counters) *uint64 { return &c.RX512To1023GB }},
	{0x1C0, "rx1024tomaxoctets_gb", func(c *Counters) *uint64 { return &c.RX1024UpGB }},
	{0x1C4, "rxunicastframes_g", func(c *Counters) *uint64 { return &c.RXUnicast }},
	{0x1C8, "rxlengtherror", func(c *Counters) *uint64 { return &c.RXLengthError }},
	{0x1CC, "rxoutofrangetype", func(c *Counters) *uint64 { return &c.RXOutOfRange }},
	{0x1D0, "rxpauseframes", func(c *Counters) *uint64 { return &c.RXPause }},
	{0x1D4, "rxfifooverflow", func(c *Counters) *uint64 { return &c.RXFIFOOverflow }},
	{0x1D8, "rxvlanframes_gb", func(c *Counters) *uint64 { return &c.RXVLANGB }},
	{0x1DC, "rxwatchdogerror", func(c *Counters) *uint64 { return &c.RXWatchdog }},
	{0x1E0, "rxrcverror", func(c *Counters) *uint64 { return &c.RXReceiveError }},
	{0x1E4, "rxctrlframes_g", func(c *Counters) *uint64 { return &c.RXControl }},

	{0x210, "rxipv4_gd_frms", func(c *Counters) *uint64 { return &c.RXIPv4 }},
	{0x214, "rxipv4_hdrerr_frms", func(c *Counters) *uint64 { return &c.RXIPv4HeaderError }},
	{0x218, "rxipv4_nopay_frms", func(c *Counters) *uint64 { return &c.RXIPv4NoPayload }},
	{0x21C, "rxipv4_frag_frms", func(c *Counters) *uint64 { return &c.RXIPv4Fragment }},
	{0x220, "rxipv4_udsbl_frms", func(c *Counters) *uint64 { return &c.RXIPv4UDPNoSum }},
	{0x224, "rxipv6_gd_frms", func(c *Counters) *uint64 { return &c.RXIPv6 }},
	{0x228, "rxipv6_hdrerr_frms", func(c *Counters) *uint64 { return &c.RXIPv6HeaderError }},
	{0x22C, "rxipv6_nopay_frms", func(c *Counters) *uint64 { return &c.RXIPv6NoPayload }},
	{0x230, "rxudp_gd_frms", func(c *Counters) *uint64 { return &c.RXUDP }},
	{0x234, "rxudp_err_frms", func(c *Counters) *uint64 { return &c.RXUDPError }},
	{0x238, "rxtcp_gd_frms", func(c *Counters) *uint64 { return &c.RXTCP }},
	{0x23C, "rxtcp_err_frms", func(c *Counters) *uint64 { return &c.RXTCPError }},
	{0x240, "rxicmp_gd_frms", func(c *Counters) *uint64 { return &c.RXICMP }},
	{0x244, "rxicmp_err_frms", func(c *Counters) *uint64 { return &c.RXICMPError }},

	{0x250, "rxipv4_gd_octets", func(c *Counters) *uint64 { return &c.RXIPv4Octets }},
	{0x254, "rxipv4_hdrerr_octets", func(c *Counters) *uint64 { return &c.RXIPv4HeaderErrorOctets }},
	{0x258, "rxipv4_nopay_octets", func(c *Counters) *uint64 { return &c.RXIPv4NoPayloadOctets }},
	{0x25C, "rxipv4_frag_octets", func(c *Counters) *uint64 { return &c.RXIPv4FragmentOctets }},
	{0x260, "rxipv4_udsbl_octets", func(c *Counters) *uint64 { return &c.RXIPv4UDPNoSumOctets }},
	{0x264, "rxipv6_gd_octets", func(c *Counters) *uint64 { return &c.RXIPv6Octets }},
	{0x268, "rxipv6_hdrerr_octets", func(c *Counters) *uint64 { return &c.RXIPv6HeaderErrorOctets }},
	{0x26C, "rxipv6_nopay_octets", func(c *Counters) *uint64 { return &c.RXIPv6NoPayloadOctets }},
	{0x270, "rxudp_gd_octets", func(c *Counters) *uint64 { return &c.RXUDPOctets }},
	{0x274, "rxudp_err_octets", func(c *Counters) *uint64 { return &c.RXUDPErrorOctets }},
	{0x278, "rxtcp_gd_octets", func(c *Counters) *uint64 { return &c.RXTCPOctets }},
	{0x27C, "rxtcp_err_octets", func(c *Counters) *uint64 { return &c.RXTCPErrorOctets }},
	{0x280, "rxicmp_gd_octets", func(c *Counters) *uint64 { return &c.RXICMPOctets }},
	{0x284, "rxicmp_err_octets", func(c *Counters) *uint64 { return &c.RXICMPErrorOctets }},
}

// checksumEngine reports whether the counter belongs to the receive checksum engine.
func (c counter) checksumEngine() bool { return c.offset >= regMMCIPCFirst }
