package hw

import "fmt"

// Layout is one of the two descriptor formats of the core, chosen when it was synthesised. Both are four little-endian
// words. Sources: Linux drivers/net/ethernet/stmicro/stmmac/{descs.h,norm_desc.c,enh_desc.c}.
//
// Encoding and decoding are functions of whole words. Nothing is ever ORed into what a descriptor held before, so that
// nothing of an earlier frame survives in it.
type Layout uint8

const (
	LayoutNormal   Layout = iota // 11-bit buffer sizes: Meson8b, Meson8m2, GXBB
	LayoutEnhanced               // 13-bit buffer sizes
)

func (l Layout) String() string {
	if l == LayoutEnhanced {
		return "enhanced"
	}
	return "normal"
}

// Descriptor is one descriptor as it lies in memory: DES0 to DES3. The driver uses the 16-byte form of both layouts, in ring
// mode, with one buffer for each descriptor.
type Descriptor [4]uint32

// descriptorBytes is the size of a descriptor and, as DSL is zero, the distance between two.
const descriptorBytes = 16

// Bits that both layouts share.
const (
	desOwn     = 1 << 31 // DES0: the DMA's
	desRXNoInt = 1 << 31 // RDES1, DIC: no RI when this one completes

	statusTXMask = 1<<18 - 1 // TDES0 17:0, what the DMA writes
)

// Normal layout: buffer sizes in DES1 10:0 and 21:11.
const (
	normSizeMask  = 1<<11 - 1
	normTXEnd     = 1 << 25 // TDES1, TER
	normTXCICLow  = 27      // TDES1 28:27
	normTXFirst   = 1 << 29
	normTXLast    = 1 << 30
	normTXInt     = 1 << 31
	normRXEnd     = 1 << 25 // RDES1, RER
	normMaxBuffer = 2032    // largest size field, 2047, rounded down to the widest bus
)

// Enhanced layout: buffer sizes in DES1 12:0 and 28:16, transmit control in TDES0.
const (
	enhSizeMask  = 1<<13 - 1
	enhTXEnd     = 1 << 21 // TDES0, TER
	enhTXCICLow  = 22      // TDES0 23:22
	enhTXFirst   = 1 << 28
	enhTXLast    = 1 << 29
	enhTXInt     = 1 << 30
	enhRXEnd     = 1 << 15 // RDES1, RER
	enhMaxBuffer = 8176    // largest size field, 8191, rounded down to the widest bus
)

// MaxBuffer is the largest buffer of one descriptor in bytes: what its size field holds, as a multiple of 16, the widest
// bus there is. A size that is no multiple of the bus width makes the receive DMA's behaviour undefined.
func (l Layout) MaxBuffer() int {
	if l == LayoutEnhanced {
		return enhMaxBuffer
	}
	return normMaxBuffer
}

// CIC says which checksums the MAC inserts into a frame. It works for IPv4 and IPv6 behind the Ethernet header and at most
// one VLAN tag, and leaves fragments, unknown payloads and unknown EtherTypes as they are.
type CIC uint8

const (
	CICNone    CIC = iota // none
	CICHeader             // IPv4 header
	CICPayload            // IPv4 header and TCP, UDP or ICMP; their field holds the sum of the pseudo header
	CICFull               // IPv4 header and TCP, UDP or ICMP, pseudo header included; their field is ignored
)

func (c CIC) String() string {
	switch c {
	case CICNone:
		return "none"
	case CICHeader:
		return "header"
	case CICPayload:
		return "payload"
	case CICFull:
		return "full"
	}
	return fmt.Sprintf("CIC(%d)", uint8(c))
}

const cicMask = 3

// TXDesc is the content of a transmit descriptor before the DMA took it.
type TXDesc struct {
	Own       bool   // hand it to the DMA
	First     bool   // FS: first of its frame
	Last      bool   // LS: last of its frame
	Interrupt bool   // IC: raise TI when the frame is out; only on a last one
	Checksum  CIC    // on the first one
	EndOfRing bool   // TER: the next descriptor is the one at the list base
	Bytes     int    // length of the buffer, at most 2047 (normal) or 8191 (enhanced); higher bits are dropped
	Addr      uint32 // bus address of the buffer
}

// EncodeTX makes the four words of d.
func (l Layout) EncodeTX(d TXDesc) Descriptor {
	w := Descriptor{2: d.Addr}
	if d.Own {
		w[0] = desOwn
	}
	if l == LayoutEnhanced {
		w[0] |= uint32(d.Checksum&cicMask) << enhTXCICLow
		w[0] |= when(d.First, enhTXFirst) | when(d.Last, enhTXLast) | when(d.Interrupt, enhTXInt) | when(d.EndOfRing, enhTXEnd)
		w[1] = uint32(d.Bytes) & enhSizeMask
		return w
	}
	w[1] = uint32(d.Bytes)&normSizeMask | uint32(d.Checksum&cicMask)<<normTXCICLow
	w[1] |= when(d.First, normTXFirst) | when(d.Last, normTXLast) | when(d.Interrupt, normTXInt) | when(d.EndOfRing, normTXEnd)
	return w
}

// DecodeTX is the inverse of [Layout.EncodeTX]; fields that the driver does not use are ignored.
func (l Layout) DecodeTX(w Descriptor) TXDesc {
	d := TXDesc{Own: w[0]&desOwn != 0, Addr: w[2]}
	if l == LayoutEnhanced {
		d.First, d.Last = w[0]&enhTXFirst != 0, w[0]&enhTXLast != 0
		d.Interrupt, d.EndOfRing = w[0]&enhTXInt != 0, w[0]&enhTXEnd != 0
		d.Checksum = CIC(w[0]>>enhTXCICLow) & cicMask
		d.Bytes = int(w[1] & enhSizeMask)
		return d
	}
	d.First, d.Last = w[1]&normTXFirst != 0, w[1]&normTXLast != 0
	d.Interrupt, d.EndOfRing = w[1]&normTXInt != 0, w[1]&normTXEnd != 0
	d.Checksum = CIC(w[1]>>normTXCICLow) & cicMask
	d.Bytes = int(w[1] & normSizeMask)
	return d
}

// RXDesc is the content of a receive descriptor before the DMA took it.
type RXDesc struct {
	Own         bool   // hand it to the DMA
	NoInterrupt bool   // DIC: no RI for it; the receive watchdog, if on, raises it later
	EndOfRing   bool   // RER: the next descriptor is the one at the list base
	Bytes       int    // size of the buffer, a multiple of the bus width; bits above the field are dropped
	Addr        uint32 // bus address of the buffer
}

// EncodeRX makes the four words of d. DES0 is nothing but OWN.
func (l Layout) EncodeRX(d RXDesc) Descriptor {
	w := Descriptor{0: when(d.Own, desOwn), 1: when(d.NoInterrupt, desRXNoInt), 2: d.Addr}
	if l == LayoutEnhanced {
		w[1] |= uint32(d.Bytes)&enhSizeMask | when(d.EndOfRing, enhRXEnd)
	} else {
		w[1] |= uint32(d.Bytes)&normSizeMask | when(d.EndOfRing, normRXEnd)
	}
	return w
}

// DecodeRX is the inverse of [Layout.EncodeRX]; fields that the driver does not use are ignored.
func (l Layout) DecodeRX(w Descriptor) RXDesc {
	d := RXDesc{Own: w[0]&desOwn != 0, NoInterrupt: w[1]&desRXNoInt != 0, Addr: w[2]}
	if l == LayoutEnhanced {
		d.Bytes, d.EndOfRing = int(w[1]&enhSizeMask), w[1]&enhRXEnd != 0
	} else {
		d.Bytes, d.EndOfRing = int(w[1]&normSizeMask), w[1]&normRXEnd != 0
	}
	return d
}

func when(b bool, v uint32) uint32 {
	if b {
		return v
	}
	return 0
}
