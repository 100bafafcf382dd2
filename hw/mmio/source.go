package mmio

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"dwnet/hw"
)

// Kind is where registers, memory or interrupts come from.
type Kind uint8

const (
	None       Kind = iota
	DevMem          // physical addresses through /dev/mem
	UIO             // a map, or the interrupt, of a /dev/uioN
	UDMABuf         // a buffer of the u-dma-buf driver (github.com/ikwzm/udmabuf)
	SharedFile      // a file that an emulator shares as memory; for memory only
	Polling         // look at the status register now and then; for interrupts only
)

var kinds = []string{None: "none", DevMem: "devmem", UIO: "uio", UDMABuf: "udmabuf", SharedFile: "file", Polling: "poll"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Source names a register window, a piece of DMA memory or an interrupt. Which fields apply depends on Kind:
//
//	DevMem      Address (physical; for memory also as the device sees it) and Size; Path is "/dev/mem" unless set
//	UIO         Path, such as "/dev/uio0" or "uio0", Map, and a part of the map by Offset and Size
//	UDMABuf     Path, such as "/dev/udmabuf0" or "udmabuf0", and a part of the buffer by Offset and Size
//	SharedFile  Path, Address (as the device sees the byte at Offset), Offset and Size
//	Polling     nothing
//
// An interrupt needs Path only.
type Source struct {
	Kind    Kind
	Path    string
	Map     int        // number of the UIO map
	Address uint64     // physical or bus address of the first byte
	Offset  uint64     // bytes into the UIO map, the buffer or the file
	Size    uint64     // in bytes; 0: as much as there is, where the system knows it
	Type    MemoryType // what the caller knows better than this package; AutoType otherwise
}

// maxSpan is the largest window or region, far more than a port needs, and little enough for a 32-bit address space.
const maxSpan = 1 << 30

// path is the device node with the default filled in and the directory put in front.
func (s Source) path() string {
	switch {
	case s.Path == "" && s.Kind == DevMem:
		return "/dev/mem"
	case s.Path == "" || strings.HasPrefix(s.Path, "/"):
		return s.Path
	}
	return "/dev/" + s.Path
}

// node is the last element of the path, by which the device is known in /sys/class.
func (s Source) node() string {
	p := s.path()
	return p[strings.LastIndexByte(p, '/')+1:]
}

// String is the form that ParseSource reads.
func (s Source) String() string {
	var b strings.Builder
	b.WriteString(s.Kind.String())
	sep := ":"
	put := func(v string) {
		b.WriteString(sep)
		b.WriteString(v)
		sep = ","
	}
	if s.Path != "" {
		put(s.Path)
	}
	if s.Map != 0 {
		put("map=" + strconv.Itoa(s.Map))
	}
	for _, f := range []struct {
		name string
		v    uint64
	}{{"address", s.Address}, {"offset", s.Offset}, {"size", s.Size}} {
		if f.v != 0 {
			put(f.name + "=0x" + strconv.FormatUint(f.v, 16))
		}
	}
	if s.Type != AutoType {
		put("type=" + s.Type.String())
	}
	return b.String()
}

// ParseSource reads the form that String writes and that command lines use: the kind, then a colon, an optional path and
// name=value pairs, separated by commas. Numbers are decimal, or hexadecimal after 0x. Examples:
//
//	devmem:address=0xc9410000,size=0x10000
//	uio:uio0,map=1
//	udmabuf:udmabuf0
//	poll
func ParseSource(text string) (Source, error) {
	bad := func(format string, args ...any) (Source, error) {
		return Source{}, fmt.Errorf("mmio: %w: source %q: "+format, append([]any{hw.ErrConfig, text}, args...)...)
	}
	var s Source
	kind, rest, _ := strings.Cut(text, ":")
	for k, name := range kinds {
		if name == kind {
			s.Kind = Kind(k)
		}
	}
	if kinds[s.Kind] != kind {
		return bad("kind %q is not one of %s", kind, strings.Join(kinds, ", "))
	}
	if rest == "" {
		return s, nil
	}
	for i, part := range strings.Split(rest, ",") {
		name, value, isPair := strings.Cut(part, "=")
		if !isPair {
			if i != 0 || part == "" {
				return bad("%q is not name=value", part)
			}
			s.Path = part
			continue
		}
		if name == "type" {
			for t, n := range memoryTypes {
				if n == value {
					s.Type = MemoryType(t)
				}
			}
			if memoryTypes[s.Type] != value {
				return bad("type %q is not one of %s", value, strings.Join(memoryTypes, ", "))
			}
			continue
		}
		v, err := parseNumber(value)
		if err != nil {
			return bad("%s: %v", name, err)
		}
		switch name {
		case "map":
			if v > math.MaxInt32 {
				return bad("map: %d is too large", v)
			}
			s.Map = int(v)
		case "address":
			s.Address = v
		case "offset":
			s.Offset = v
		case "size":
			s.Size = v
		default:
			return bad("%q is not one of map, address, offset, size, type", name)
		}
	}
	return s, nil
}

// use is what a source is for.
type use uint8

const (
	forRegisters use = iota
	forMemory
	forInterrupt
)

// check says what is wrong with a source, without looking at the system.
func (s Source) check(u use) error {
	bad := func(format string, args ...any) error { return fmt.Errorf(format, args...) }
	allowed := map[use][]Kind{
		forRegisters: {DevMem, UIO},
		forMemory:    {DevMem, UIO, UDMABuf, SharedFile},
		forInterrupt: {UIO, Polling},
	}[u]
	ok := false
	names := make([]string, len(allowed))
	for i, k := range allowed {
		ok = ok || s.Kind == k
		names[i] = k.String()
	}
	if !ok {
		return bad("Kind is %v, want one of %s", s.Kind, strings.Join(names, ", "))
	}
	if s.Path == "" && s.Kind != DevMem && s.Kind != Polling {
		return bad("Path of the %v device is empty", s.Kind)
	}
	if u == forInterrupt {
		return nil
	}
	switch {
	case s.Kind == DevMem && s.Size == 0, s.Kind == SharedFile && s.Size == 0:
		return bad("Size is 0, and %v does not know it", s.Kind)
	case s.Size > maxSpan:
		return bad("Size is 0x%x, more than 0x%x", s.Size, uint64(maxSpan))
	case s.Address > math.MaxUint64-s.Size:
		return bad("Address 0x%x and Size 0x%x overflow", s.Address, s.Size)
	case s.Kind == DevMem && s.Offset != 0:
		return bad("Offset is 0x%x, but DevMem takes Address only", s.Offset)
	case (s.Kind == UIO || s.Kind == UDMABuf) && s.Address != 0:
		return bad("Address is 0x%x, but the system says where a %v device is", s.Address, s.Kind)
	case s.Offset > maxSpan && s.Kind != SharedFile, s.Offset > math.MaxInt64-maxSpan:
		return bad("Offset is 0x%x, too large", s.Offset)
	case s.Map < 0:
		return bad("Map is %d", s.Map)
	case int(s.Type) >= len(memoryTypes):
		return bad("Type is %v", s.Type)
	}
	return nil
}

// parseNumber reads what sysfs writes: decimal, or hexadecimal after 0x. A leading zero does not mean octal.
func parseNumber(text string) (uint64, error) {
	digits, base := text, 10
	if h, ok := strings.CutPrefix(strings.ToLower(text), "0x"); ok {
		digits, base = h, 16
	}
	v, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return v, nil
}
