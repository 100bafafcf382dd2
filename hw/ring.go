package hw

import "fmt"

const (
	// cacheLine is what blocks and buffers are aligned to, so that none shares a line with another. Lines are 32 bytes on
	// the Cortex-A5 and 64 on the Cortex-A53; every bus width divides it.
	cacheLine = 64

	headerBytes = 14    // Ethernet header
	fcsBytes    = 4     // frame check sequence
	vlanBytes   = 4     // one VLAN tag
	maxJabber   = 16384 // with JD set the MAC still cuts what it sends at this many bytes, FCS included
)

// A block is the memory of one ring: its descriptors, then one buffer for each. Both lie in one Memory, so that one barrier
// orders payload and descriptors.
type block struct {
	mem       Memory
	layout    Layout
	slots     int
	slotBytes int // what a descriptor says
	stride    int // distance between two buffers
	buffers   int // offset of the first buffer
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// allocBlock gets the memory of a ring. slots and slotBytes were validated: the product fits an int of 32 bits.
func allocBlock(p Port, l Layout, slots, slotBytes int) (block, error) {
	b := block{layout: l, slots: slots, slotBytes: slotBytes, stride: roundUp(slotBytes, cacheLine)}
	b.buffers = roundUp(slots*descriptorBytes, cacheLine)
	size := b.buffers + slots*b.stride
	mem, err := p.Alloc(size, cacheLine)
	if err != nil {
		return block{}, fmt.Errorf("hw: %d bytes of DMA memory for a ring: %w", size, err)
	}
	b.mem = mem
	hint := ""
	switch bus := mem.Bus(); {
	case mem.Size() < size:
		hint = fmt.Sprintf("block of %d bytes, asked for %d", mem.Size(), size)
	case bus%cacheLine != 0: // the DMA drops the low bits of a list base
		hint = fmt.Sprintf("bus address 0x%08x is not a multiple of %d", bus, cacheLine)
	case uint64(bus)+uint64(size) > 1<<32:
		hint = fmt.Sprintf("block at 0x%08x crosses the end of 32-bit bus addresses", bus)
	default:
		return b, nil
	}
	// The allocator's fault is what the caller has to know; that it also cannot take the block back would not help.
	_ = p.Free(mem)
	return block{}, &Error{Op: "allocate DMA memory", Hint: hint, Err: ErrConfig}
}

// desc and buffer are the offsets of slot i's descriptor and buffer, bus its buffer's address as the DMA sees it.
func (b *block) desc(i int) int   { return i * descriptorBytes }
func (b *block) buffer(i int) int { return b.buffers + i*b.stride }
func (b *block) bus(i int) uint32 { return b.mem.Bus() + uint32(b.buffer(i)) }

// at is the slot n places behind slot i, n at most the size of the ring.
func (b *block) at(i, n int) int {
	if i += n; i >= b.slots {
		i -= b.slots
	}
	return i
}

// last reports whether slot i ends the ring.
func (b *block) last(i int) bool { return i == b.slots-1 }

// storeTail writes DES1 to DES3 of slot i: everything but the word with OWN.
func (b *block) storeTail(i int, w Descriptor) {
	off := b.desc(i)
	b.mem.Store32(off+12, w[3])
	b.mem.Store32(off+8, w[2])
	b.mem.Store32(off+4, w[1])
}

// listBase is what the list base register holds.
func (b *block) listBase() uint32 { return b.mem.Bus() }

// MaxFrame is the length on the wire, without preamble, of a frame that carries a packet of mtu bytes, FCS included, and one
// VLAN tag if vlan. The limits of the standard are MaxFrame(1500, false) = 1518 and MaxFrame(1500, true) = 1522.
func MaxFrame(mtu int, vlan bool) int {
	n := mtu + headerBytes + fcsBytes
	if vlan {
		n += vlanBytes
	}
	return n
}
