package mmio

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
)

const uioClass = "/sys/class/uio"

// maxUIOMaps is MAX_UIO_MAPS of Linux include/linux/uio_driver.h.
const maxUIOMaps = 5

// dmemDriver allocates DMA memory when its device is opened. Since Linux 6.9 its "addr" is where the kernel sees the memory,
// not where the device does: drivers/uio/uio_dmem_genirq.c, UIO_MEM_DMA_COHERENT.
const dmemDriver = "uio_dmem_genirq"

// UIODevice is a device that the kernel's userspace I/O framework gives to programs. Source: Linux
// Documentation/driver-api/uio-howto.rst and drivers/uio/uio.c.
type UIODevice struct {
	Node    string // "/dev/uio0"
	Name    string // as its driver calls it, for uio_pdrv_genirq the name of the device tree node
	Version string
	Driver  string // "uio_pdrv_genirq"; "" if unknown
	Maps    []UIOMap
}

// UIOMap is a memory region of a UIO device as /sys/class/uio/uioN/maps shows it.
type UIOMap struct {
	Index   int
	Name    string
	Address uint64
	Size    uint64
	Offset  uint64 // of the first register in the first page
}

// span says how far into its first page a map starts and how many bytes it has from there on. Older kernels show the address
// of the first register, and its low bits as the offset; newer ones show whole pages, with the offset counted in the size.
// Source: Linux drivers/uio/uio_pdrv_genirq.c and uio.c, map_offset_show, before and after 5.2.
func (m UIOMap) span(page int) (in, size uint64, err error) {
	mask := uint64(page) - 1
	switch low := m.Address & mask; {
	case low != 0 && m.Offset != 0 && m.Offset != low:
		return 0, 0, fmt.Errorf("offset 0x%x does not fit to address 0x%x", m.Offset, m.Address)
	case low != 0:
		in, size = low, m.Size
	case m.Offset > mask || m.Offset != 0 && m.Offset >= m.Size:
		return 0, 0, fmt.Errorf("offset 0x%x is outside of a map of 0x%x bytes", m.Offset, m.Size)
	default:
		in, size = m.Offset, m.Size-m.Offset
	}
	if size == 0 || size > maxSpan || m.Address&^mask+in+size < m.Address {
		return 0, 0, fmt.Errorf("size 0x%x at address 0x%x", m.Size, m.Address)
	}
	return in, size, nil
}

// ListUIO are the UIO devices that there are. A device whose attributes cannot be read is in the list with those that can,
// and its error is the second result.
func ListUIO(sys System) ([]UIODevice, error) {
	names := sys.list(uioClass)
	sort.Slice(names, func(i, j int) bool { return natural(names[i], names[j]) })
	var devices []UIODevice
	var first error
	for _, name := range names {
		d, err := sys.uioDevice(name)
		if err != nil && first == nil {
			first = err
		}
		devices = append(devices, d)
	}
	return devices, first
}

// natural puts uio2 before uio10.
func natural(a, b string) bool {
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

// uioDevice reads what /sys says about a device.
func (s System) uioDevice(node string) (UIODevice, error) {
	dir := uioClass + "/" + node
	d := UIODevice{Node: "/dev/" + node, Driver: s.link(dir + "/device/driver")}
	var err error
	if d.Name, err = s.attribute(dir + "/name"); err != nil {
		return d, err
	}
	d.Version, _ = s.attribute(dir + "/version") // for information only
	for i := range maxUIOMaps {
		if !s.exists(fmt.Sprintf("%s/maps/map%d", dir, i)) {
			continue
		}
		m, err := s.uioMap(node, i)
		if err != nil {
			return d, err
		}
		d.Maps = append(d.Maps, m)
	}
	return d, nil
}

// uioMap reads what /sys says about a map.
func (s System) uioMap(node string, i int) (UIOMap, error) {
	dir := fmt.Sprintf("%s/%s/maps/map%d", uioClass, node, i)
	m := UIOMap{Index: i}
	if !s.exists(dir) {
		e := &Error{Op: "find", Path: s.path(dir), Err: ErrAttribute, Remedy: "the device has no such map"}
		if have := s.list(uioClass + "/" + node + "/maps"); len(have) > 0 {
			e.Remedy += ", only " + strings.Join(have, ", ")
		}
		return m, e
	}
	var err error
	if m.Address, err = s.number(dir + "/addr"); err != nil {
		return m, err
	}
	if m.Size, err = s.number(dir + "/size"); err != nil {
		return m, err
	}
	if m.Offset, _, err = s.optionalNumber(dir + "/offset"); err != nil {
		return m, err
	}
	m.Name, _ = s.attribute(dir + "/name") // empty for most
	return m, nil
}

// locateUIO finds a map, and the part of it that the source names.
func locateUIO(sys System, src Source) (place, error) {
	page := os.Getpagesize()
	node := src.node()
	p := place{kind: UIO, path: src.path(), detail: "map" + strconv.Itoa(src.Map), page: page,
		start: uint64(src.Map) * uint64(page), typ: Device}
	if sys.link(uioClass+"/"+node+"/device/driver") == dmemDriver {
		// The memory comes with the first open and goes with the last close, and so does its address.
		p.virtual = true
		f, err := sys.open(p.path, deviceFlags)
		if err != nil {
			return place{}, openError(sys.path(p.path), UIO, err)
		}
		p.held = f
	}
	if err := locateUIOMap(sys, src, node, &p); err != nil {
		p.release()
		return place{}, err
	}
	return p, nil
}

func locateUIOMap(sys System, src Source, node string, p *place) error {
	m, err := sys.uioMap(node, src.Map)
	if err != nil {
		return err
	}
	dir := sys.path(fmt.Sprintf("%s/%s/maps/map%d", uioClass, node, src.Map))
	in, size, err := m.span(p.page)
	if err != nil {
		return attributeError(dir, "%v", err)
	}
	p.skip = in + src.Offset
	p.address = m.Address&^(uint64(p.page)-1) + p.skip
	if p.size, err = part(src, size); err != nil {
		return addressError(dir, src.Offset, src.Size, "%v", err)
	}
	return nil
}

// part is how many bytes of size a source asks for.
func part(src Source, size uint64) (uint64, error) {
	switch {
	case src.Offset >= size:
		return 0, fmt.Errorf("offset is outside of 0x%x bytes", size)
	case src.Size > size-src.Offset:
		return 0, fmt.Errorf("there are only 0x%x bytes from there on", size-src.Offset)
	case src.Size != 0:
		return src.Size, nil
	}
	return size - src.Offset, nil
}
