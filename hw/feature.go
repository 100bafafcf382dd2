package hw

// Feature is the hardware feature register, 0x1058: what was synthesised. Zero means that the register is absent, on cores
// before release 3.50. Sources: Intel SoC EMAC, alt_emac.h, HW_Feature; Linux dwmac_dma.h, DMA_HW_FEAT.
type Feature uint32

const (
	FeatMII          Feature = 1 << 0
	FeatGMII         Feature = 1 << 1
	FeatHalfDuplex   Feature = 1 << 2
	FeatExtendedHash Feature = 1 << 3 // hash table of 128 or 256 bins at 0x500
	FeatHash         Feature = 1 << 4
	FeatAddresses    Feature = 1 << 5 // more than one perfect filter entry
	FeatPCS          Feature = 1 << 6
	FeatL3L4         Feature = 1 << 7
	FeatMDIO         Feature = 1 << 8
	FeatWakeUp       Feature = 1 << 9
	FeatMagic        Feature = 1 << 10
	FeatMMC          Feature = 1 << 11
	FeatEEE          Feature = 1 << 14
	FeatTXChecksum   Feature = 1 << 16
	FeatRXChecksum1  Feature = 1 << 17 // old engine, appends its sum to the frame
	FeatRXChecksum2  Feature = 1 << 18
	FeatRXFIFO       Feature = 1 << 19 // receive FIFO larger than 2 KiB
	FeatEnhanced     Feature = 1 << 24 // enhanced descriptors
	FeatVLAN         Feature = 1 << 27 // source address and VLAN insertion
)

var featureFields = []field{
	bit(0, "MII"), bit(1, "GMII"), bit(2, "half-duplex"), bit(3, "extended-hash"), bit(4, "hash"), bit(5, "addresses"),
	bit(6, "PCS"), bit(7, "L3L4"), bit(8, "MDIO"), bit(9, "wake-up"), bit(10, "magic"), bit(11, "MMC"), bit(12, "PTPv1"),
	bit(13, "PTPv2"), bit(14, "EEE"), bit(15, "AV"), bit(16, "TX-COE"), bit(17, "RX-COE1"), bit(18, "RX-COE2"),
	bit(19, "RX-FIFO>2K"), bits(21, 20, "RX-channels"), bits(23, 22, "TX-channels"), bit(24, "enhanced"), bit(25, "INTTS"),
	bit(26, "FLEXIPPS"), bit(27, "SAVLAN"),
	bits(30, 28, "phy", "GMII/MII", "RGMII", "SGMII", "TBI", "RMII", "RTBI", "SMII", "RevMII"),
}

func (f Feature) String() string {
	if f == 0 {
		return "absent"
	}
	return decode(uint32(f), featureFields)
}

// Has reports whether all of the bits are set.
func (f Feature) Has(bits Feature) bool { return f&bits == bits }

// Layout is the descriptor layout that the core uses.
func (f Feature) Layout() Layout {
	if f.Has(FeatEnhanced) {
		return LayoutEnhanced
	}
	return LayoutNormal
}

// HashBins is the number of bins of the multicast hash that the word vouches for: 64 or 0. It does not say how large an
// extended table is; see Config.HashBins.
func (f Feature) HashBins() int {
	if f.Has(FeatHash) && !f.Has(FeatExtendedHash) {
		return 64
	}
	return 0
}

// hasMMC reports whether the management counters may be read. Cores too old for the feature register have them.
func (f Feature) hasMMC() bool { return f == 0 || f.Has(FeatMMC) }
