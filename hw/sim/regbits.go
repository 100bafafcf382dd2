package sim

// Register offsets and bits, named as in the public documentation of a MAC of the same generation (Intel SoC FPGA
// hardware library, socal/alt_emac.h) and in Linux drivers/net/ethernet/stmicro/stmmac/dwmac1000.h and dwmac_dma.h.

// gone is what a bus read gives when nothing answers.
const gone = 0xFFFFFFFF

// MAC registers.
const (
	regConfig      = 0x0000
	regFilter      = 0x0004
	regHashHigh    = 0x0008
	regHashLow     = 0x000C
	regMIIAddress  = 0x0010
	regMIIData     = 0x0014
	regFlowControl = 0x0018
	regVLANTag     = 0x001C
	regVersion     = 0x0020
	regDebug       = 0x0024
	regWakeFilter  = 0x0028
	regPMT         = 0x002C
	regLPIControl  = 0x0030
	regLPITimers   = 0x0034
	regIntStatus   = 0x0038
	regIntMask     = 0x003C
	regAddress0    = 0x0040 // high; low follows; 8 bytes for each address
	regRGMIIStatus = 0x00D8
	regWatchdog    = 0x00DC

	maxAddresses  = 16
	addressStride = 8
	addressEnd    = regAddress0 + maxAddresses*addressStride
)

// MAC configuration.
const (
	cfgPRELEN = 3 << 0
	cfgRE     = 1 << 2
	cfgTE     = 1 << 3
	cfgACS    = 1 << 7
	cfgIPC    = 1 << 10
	cfgDM     = 1 << 11
	cfgLM     = 1 << 12
	cfgFES    = 1 << 14
	cfgPS     = 1 << 15
	cfgIFG    = 17 // shift of a 3-bit field
	cfgJE     = 1 << 20
	cfgJD     = 1 << 22
	cfgWD     = 1 << 23
	cfgCST    = 1 << 25
	cfg2KPE   = 1 << 27
)

// MAC frame filter.
const (
	filterPR   = 1 << 0
	filterHUC  = 1 << 1
	filterHMC  = 1 << 2
	filterDAIF = 1 << 3
	filterPM   = 1 << 4
	filterDBF  = 1 << 5
	filterPCF  = 6 // shift of a 2-bit field
	filterSAIF = 1 << 8
	filterSAF  = 1 << 9
	filterHPF  = 1 << 10
	filterVTFE = 1 << 16
	filterRA   = 1 << 31
)

// GMII address.
const (
	miiGB     = 1 << 0
	miiGW     = 1 << 1
	miiCR     = 2 // shift of a 4-bit field
	miiGR     = 6 // shift of a 5-bit field
	miiPA     = 11
	miiField5 = 31
)

// Flow control.
const (
	flowFCB  = 1 << 0
	flowTFE  = 1 << 1
	flowRFE  = 1 << 2
	flowUP   = 1 << 3
	flowDZPQ = 1 << 7
	flowPT   = 16 // shift of a 16-bit field
)

// VLAN tag.
const (
	vlanVL   = 0xFFFF
	vlanETV  = 1 << 16
	vlanVTIM = 1 << 17
	vlanESVL = 1 << 18
)

// Debug.
const (
	debugRXFill   = 8 // shift of a 2-bit field
	debugTXPaused = 1 << 19
	debugTXActive = 1 << 16
	debugTXTake   = 3 << 17
	debugTXRead   = 1 << 20
	debugTXFIFO   = 1 << 24
)

// PMT control and status.
const (
	pmtPowerDown    = 1 << 0
	pmtMagicEnable  = 1 << 1
	pmtMagic        = 1 << 5
	pmtWakeFrame    = 1 << 6
	pmtFilterReset  = 1 << 31
	pmtPointer      = 24 // shift of a 3-bit field
	wakeFilterWords = 8
)

// MAC interrupt status and mask.
const (
	macIntRGMII = 1 << 0
	macIntPMT   = 1 << 3
	macIntMMC   = 1 << 4
	macIntMMCRX = 1 << 5
	macIntMMCTX = 1 << 6
	macIntIPC   = 1 << 7
)

// MAC address high.
const (
	addrAE  = 1 << 31
	addrSA  = 1 << 30
	addrMBC = 24 // shift of a 6-bit field
)

// RGMII status.
const (
	rgmiiDuplex = 1 << 0
	rgmiiSpeed  = 1 // shift of a 2-bit field
	rgmiiUp     = 1 << 3
)

// Programmable watchdog.
const (
	watchdogWTO = 0x3FFF
	watchdogPWE = 1 << 16
)

// Management counters.
const (
	regMMCControl = 0x0100
	regMMCIntRX   = 0x0104
	regMMCIntTX   = 0x0108
	regMMCMaskRX  = 0x010C
	regMMCMaskTX  = 0x0110
	regMMCTX      = 0x0114 // first counter
	regMMCTXLast  = 0x0178
	regMMCRX      = 0x0180
	regMMCRXLast  = 0x01E4
	regIPCMask    = 0x0200
	regIPCInt     = 0x0208
	regIPC        = 0x0210
	regIPCLast    = 0x0244
	regIPCOctets  = 0x0250
	regIPCOctEnd  = 0x0284

	mmcReset       = 1 << 0
	mmcStop        = 1 << 1
	mmcResetOnRead = 1 << 2
	mmcFreeze      = 1 << 3
	mmcPreset      = 1 << 4
	mmcPresetLevel = 1 << 5
	mmcDroppedBC   = 1 << 8

	mmcIntBits = 1<<26 - 1
	ipcIntBits = 0x3FFF3FFF
)

// DMA registers.
const (
	regBusMode    = 0x1000
	regTXPoll     = 0x1004
	regRXPoll     = 0x1008
	regRXBase     = 0x100C
	regTXBase     = 0x1010
	regStatus     = 0x1014
	regOpMode     = 0x1018
	regIntEnable  = 0x101C
	regMissed     = 0x1020
	regRXWatchdog = 0x1024
	regAXIBusMode = 0x1028
	regBusStatus  = 0x102C
	regTXDesc     = 0x1048
	regRXDesc     = 0x104C
	regTXBuffer   = 0x1050
	regRXBuffer   = 0x1054
	regFeature    = 0x1058
)

// Bus mode.
const (
	busSWR   = 1 << 0
	busDSL   = 2 // shift of a 5-bit field
	busATDS  = 1 << 7
	busPBL   = 8  // shift of a 6-bit field
	busRPBL  = 17 // shift of a 6-bit field
	busUSP   = 1 << 23
	bus8xPBL = 1 << 24
)

// Status and interrupt enable.
const (
	stTI  = 1 << 0
	stTPS = 1 << 1
	stTU  = 1 << 2
	stTJT = 1 << 3
	stOVF = 1 << 4
	stUNF = 1 << 5
	stRI  = 1 << 6
	stRU  = 1 << 7
	stRPS = 1 << 8
	stRWT = 1 << 9
	stETI = 1 << 10
	stFBI = 1 << 13
	stERI = 1 << 14
	stAIS = 1 << 15
	stNIS = 1 << 16

	stNormal   = stTI | stTU | stRI | stERI
	stAbnormal = stTPS | stTJT | stOVF | stUNF | stRU | stRPS | stRWT | stETI | stFBI
	stLatched  = stNormal | stAbnormal | stAIS | stNIS

	stRS  = 17 // shift of a 3-bit field
	stTS  = 20
	stEB  = 23
	stGLI = 1 << 26
	stGMI = 1 << 27
	stGPI = 1 << 28

	rsStopped   = 0
	rsWaiting   = 3
	rsSuspended = 4
	tsStopped   = 0
	tsFetching  = 1
	tsStatus    = 2
	tsSuspended = 6
)

// Operation mode.
const (
	opSR   = 1 << 1
	opOSF  = 1 << 2
	opRTC  = 3 // shift of a 2-bit field
	opDGF  = 1 << 5
	opFUF  = 1 << 6
	opFEF  = 1 << 7
	opEFC  = 1 << 8
	opRFA  = 9
	opRFD  = 11
	opST   = 1 << 13
	opTTC  = 14 // shift of a 3-bit field
	opFTF  = 1 << 20
	opTSF  = 1 << 21
	opRFD2 = 1 << 22
	opRFA2 = 1 << 23
	opDFF  = 1 << 24
	opRSF  = 1 << 25
	opDT   = 1 << 26
)

// Missed frame counter.
const (
	missedMax      = 0xFFFF
	missedOverflow = 1 << 16
	fifoShift      = 17
	fifoMax        = 0x7FF
	fifoOverflow   = 1 << 28
)

// Hardware feature register.
const (
	featMII       = 1 << 0
	featGMII      = 1 << 1
	featHalf      = 1 << 2
	featHash      = 1 << 4
	featAddresses = 1 << 5
	featMDIO      = 1 << 8
	featRemote    = 1 << 9
	featMagic     = 1 << 10
	featMMC       = 1 << 11
	featTXCOE     = 1 << 16
	featRXCOE2    = 1 << 18
	featRXFIFO2K  = 1 << 19
	featEnhanced  = 1 << 24
	featPHY       = 28 // shift of a 3-bit field

	phyGMII  = 0
	phyRGMII = 1
	phyRMII  = 4

	versionS805 = 0x1037
)
