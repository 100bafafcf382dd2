package mmio

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"dwnet/hw"
)

// place is where registers or memory are: found, but not mapped or touched yet.
type place struct {
	kind    Kind
	path    string // device node
	detail  string // more of its name, such as "map1"
	page    int    // page size
	start   uint64 // offset in the device node
	skip    uint64 // bytes from start to the first byte wanted
	size    uint64
	address uint64 // physical address, or for memory what the device sees
	typ     MemoryType

	coherent bool   // the device snoops the cache
	owned    bool   // memory that the kernel allocated for DMA, so that it may lie in system RAM
	virtual  bool   // the address may be one of the kernel's own
	advice   string // what would be better
	remedy   string // what to do if typ will not do
	held     File   // opened already, because the address is only known then
}

// release closes what locate had to open.
func (p *place) release() {
	if p.held != nil {
		p.held.Close()
		p.held = nil
	}
}

// name is the place for messages.
func (p place) name() string {
	s := p.path
	if p.detail != "" {
		s += " " + p.detail
	}
	return s + " " + span(p.address, p.size)
}

// locate finds what a source names. The source is checked already.
func locate(sys System, src Source) (p place, err error) {
	switch src.Kind {
	case DevMem:
		p = place{kind: DevMem, path: src.path(), page: os.Getpagesize(), start: src.Address, size: src.Size,
			address: src.Address, typ: Device}
	case UIO:
		p, err = locateUIO(sys, src)
	case UDMABuf:
		p, err = locateUDMABuf(sys, src)
	case SharedFile:
		p = place{kind: SharedFile, path: src.path(), page: os.Getpagesize(), start: src.Offset, size: src.Size,
			address: src.Address, typ: WriteBack, coherent: true, owned: true}
	default:
		return place{}, configError("Source", fmt.Errorf("Kind is %v", src.Kind))
	}
	if src.Type != AutoType {
		p.typ = src.Type
		p.coherent = p.coherent || src.Type == WriteBack // the caller's word for it
	}
	return p, err
}

// mapIn opens the device and maps the place. The file is closed again: the mapping keeps the device.
func (p *place) mapIn(sys System) (*mapping, error) {
	path := sys.path(p.path)
	if p.held == nil {
		f, err := sys.open(p.path, deviceFlags)
		if err != nil {
			return nil, openError(path, p.kind, err)
		}
		p.held = f
	}
	defer p.release()
	m, err := mapRange(p.held, p.start, p.skip, p.size, p.page)
	if err != nil {
		var who string
		if ranges, err := ReadIOMem(sys); err == nil {
			who = claimant(ranges, p.address, p.size)
		}
		return nil, mapError(path, p.kind, strings.TrimSpace(p.detail+" "+span(p.address, p.size)), who, err)
	}
	return m, nil
}

// knownRAM is what /proc/iomem says; nil, and no error, if it says nothing to this process.
func knownRAM(sys System) ([]IORange, error) {
	ranges, err := ReadIOMem(sys)
	if errors.Is(err, ErrAttribute) {
		return nil, err
	}
	return ranges, nil
}

// checkRegisters refuses a window that cannot be one, before anything is touched. least is the fewest bytes it must have.
// ranges is what is known of /proc/iomem.
func checkRegisters(p place, least uint64, ranges []IORange) error {
	bad := func(format string, args ...any) error {
		return addressError(p.path, p.address, p.size, format, args...)
	}
	switch {
	case p.address&3 != 0:
		return bad("registers start at a multiple of 4")
	case p.size < 4 || p.size < least:
		return bad("a window of at least 0x%x bytes is needed", max(least, 4))
	}
	if r := ramIn(ranges, p.address, p.size); r != nil {
		return bad("registers cannot be in memory, %v", r)
	}
	return nil
}

// checkMemory refuses memory that the device cannot use or that others use, before anything is touched. align is what the
// region must be aligned to, ranges what is known of /proc/iomem.
func checkMemory(p place, align int, registers place, ranges []IORange) error {
	bad := func(format string, args ...any) error {
		return addressError(p.path, p.address, p.size, format, args...)
	}
	switch {
	case p.size > math.MaxUint32 || p.address > math.MaxUint32 || p.address+p.size > math.MaxUint32+1:
		return bad("the device has 32-bit addresses and sees nothing above 4 GiB")
	case p.address == 0:
		return bad("address 0 stands for no buffer")
	case p.address%uint64(align) != 0:
		return bad("start must be a multiple of %d, the larger of cache line and bus width", align)
	case p.size < uint64(minPool):
		return bad("at least 0x%x bytes are needed", minPool)
	case registers.kind != None && p.address < registers.address+registers.size && registers.address < p.address+p.size:
		return bad("overlaps the registers at %s", span(registers.address, registers.size))
	}
	if p.kind != SharedFile { // an emulator's addresses are not this machine's
		switch r := ramIn(ranges, p.address, p.size); {
		case p.virtual && ranges == nil:
			return bad("%s may show an address of the kernel's own, and /proc/iomem cannot be read to tell", dmemDriver)
		case p.virtual && !insideRAM(ranges, p.address, p.size):
			return bad("%s shows an address of the kernel's own (since Linux 6.9): use u-dma-buf or a reserved region", dmemDriver)
		case r != nil && !p.owned && !p.virtual:
			return bad("the kernel uses this memory, %v: reserve the region with no-map in the device tree", r)
		}
	}
	if p.typ == WriteBack && !p.coherent {
		return &Error{Op: "check", Path: p.path, Detail: span(p.address, p.size), Err: ErrCached, Remedy: p.remedy}
	}
	return nil
}

// configError is a complaint about an option.
func configError(field string, err error) error {
	return fmt.Errorf("mmio: %w: %s: %w", hw.ErrConfig, field, err)
}
