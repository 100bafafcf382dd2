package mmio

import (
	"errors"
	"fmt"
	"os"
	"sort"
)

// udmabufClasses are where the driver shows its buffers: since version 2, and before.
var udmabufClasses = []string{"/sys/class/u-dma-buf", "/sys/class/udmabuf"}

// UDMABufDevice is a DMA buffer of the u-dma-buf driver, github.com/ikwzm/udmabuf, Readme.md. The kernel's own /dev/udmabuf,
// which makes dma-bufs out of memfds, is something else.
type UDMABufDevice struct {
	Node     string // "/dev/udmabuf0"
	Address  uint64 // as the device sees it
	Size     uint64
	SyncMode int  // 0..7: what O_SYNC does to the CPU's cache
	Coherent bool // the device snoops the cache
	Quirk    int  // how mmap is done: 1 by the kernel's dma_mmap_coherent, 2.. by the driver; 0 unknown
}

// Values of sync_mode, which counts as set for O_SYNC only unless udmabufAlways is added.
const (
	udmabufCached       = 0
	udmabufNonCached    = 1
	udmabufWriteCombine = 2
	udmabufDMACoherent  = 3
	udmabufModeMask     = 3
	udmabufAlways       = 4
)

// udmabufNoQuirk is the value of quirk_mmap_mode with which the kernel chooses the mapping.
const udmabufNoQuirk = 1

// memoryType is how the buffer is mapped when it was opened with O_SYNC.
func (d UDMABufDevice) memoryType() MemoryType {
	if d.Quirk == udmabufNoQuirk {
		if d.Coherent {
			return WriteBack
		}
		return NonCacheable
	}
	switch d.SyncMode & udmabufModeMask {
	case udmabufNonCached:
		return Device
	case udmabufWriteCombine, udmabufDMACoherent:
		return NonCacheable
	}
	return WriteBack
}

// ListUDMABuf are the buffers that there are, sorted by name. A buffer with an attribute that cannot be read is left out,
// and its error is the second result.
func ListUDMABuf(sys System) ([]UDMABufDevice, error) {
	var devices []UDMABufDevice
	var first error
	for _, class := range udmabufClasses {
		names := sys.list(class)
		sort.Slice(names, func(i, j int) bool { return natural(names[i], names[j]) })
		for _, name := range names {
			d, err := sys.udmabuf(class, name)
			if err == nil {
				devices = append(devices, d)
			} else if first == nil {
				first = err
			}
		}
	}
	return devices, first
}

func (s System) udmabuf(class, node string) (UDMABufDevice, error) {
	dir := class + "/" + node
	d := UDMABufDevice{Node: "/dev/" + node}
	var err error
	if d.Address, err = s.number(dir + "/phys_addr"); err != nil {
		return d, err
	}
	if d.Size, err = s.number(dir + "/size"); err != nil {
		return d, err
	}
	if d.Size == 0 || d.Size > maxSpan {
		return d, attributeError(s.path(dir+"/size"), "%d bytes", d.Size)
	}
	mode, err := s.number(dir + "/sync_mode")
	if err != nil {
		return d, err
	}
	if mode > udmabufAlways|udmabufModeMask {
		return d, attributeError(s.path(dir+"/sync_mode"), "%d is not 0..7", mode)
	}
	d.SyncMode = int(mode)
	coherent, _, err := s.optionalNumber(dir + "/dma_coherent")
	if err != nil {
		return d, err
	}
	d.Coherent = coherent == 1
	quirk, _, err := s.optionalNumber(dir + "/quirk_mmap_mode")
	if err != nil {
		return d, err
	}
	d.Quirk = int(quirk & 0xF)
	return d, nil
}

// locateUDMABuf finds a buffer, and the part of it that the source names.
func locateUDMABuf(sys System, src Source) (place, error) {
	node := src.node()
	class := ""
	for _, c := range udmabufClasses {
		if sys.exists(c + "/" + node) {
			class = c
			break
		}
	}
	if class == "" {
		e := &Error{Op: "find", Path: sys.path(udmabufClasses[0] + "/" + node), Err: errors.Join(ErrAttribute, os.ErrNotExist),
			Remedy: "load the u-dma-buf module, for example with udmabuf0=4194304"}
		if node == "udmabuf" {
			e.Remedy = "this is the kernel's own udmabuf, which has no physical address: " + e.Remedy
		}
		return place{}, e
	}
	d, err := sys.udmabuf(class, node)
	if err != nil {
		return place{}, err
	}
	dir := sys.path(class + "/" + node)
	p := place{kind: UDMABuf, path: src.path(), page: os.Getpagesize(), start: src.Offset, address: d.Address + src.Offset,
		typ: d.memoryType(), coherent: d.Coherent, owned: true}
	if p.size, err = part(src, d.Size); err != nil {
		return place{}, addressError(dir, src.Offset, src.Size, "%v", err)
	}
	if d.Address+d.Size < d.Address {
		return place{}, attributeError(dir+"/phys_addr", "0x%x and size 0x%x overflow", d.Address, d.Size)
	}
	if p.typ == Device {
		p.advice = fmt.Sprintf("echo %d > %s/sync_mode makes copying quicker", udmabufWriteCombine, dir)
	}
	if p.typ == WriteBack {
		p.remedy = fmt.Sprintf("echo %d > %s/sync_mode", udmabufWriteCombine, dir)
	}
	return p, nil
}
