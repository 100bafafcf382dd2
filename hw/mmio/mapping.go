package mmio

import (
	"fmt"
	"math"
	"runtime"
	"sync"
)

// mapping is whole pages of a device in the address space.
type mapping struct {
	pages raw
	mem   raw // what was asked for, inside pages

	mu     sync.Mutex
	closed bool
}

// pageSpan widens size bytes that begin skip bytes after start to whole pages: where they start, how far in the range
// begins, and how long they are. page is a power of two.
func pageSpan(start, skip, size uint64, page int) (base uint64, in, length int, err error) {
	mask := uint64(page) - 1
	if size == 0 || size > maxSpan || skip > maxSpan || start > math.MaxInt64-2*maxSpan-2*mask {
		return 0, 0, 0, addressError("range", start, size, "empty or too large")
	}
	base = start &^ mask
	first := start&mask + skip
	total := (first + size + mask) &^ mask
	if total > maxSpan {
		return 0, 0, 0, addressError("range", start, size, "too large to map")
	}
	return base, int(first), int(total), nil
}

// mapRange maps size bytes that begin skip bytes after start of a file, and the rest of the pages from start on.
func mapRange(f File, start, skip, size uint64, page int) (*mapping, error) {
	base, in, length, err := pageSpan(start, skip, size, page)
	if err != nil {
		return nil, err
	}
	b, err := f.Map(int64(base), length)
	if err != nil {
		return nil, err
	}
	if len(b) != length {
		return nil, fmt.Errorf("%d bytes were mapped instead of %d", len(b), length)
	}
	m := &mapping{pages: rawOf(b)}
	m.mem = m.pages.sub(in, int(size))
	return m, nil
}

// close takes the device away. The address range is given back when nobody can reach the mapping any more.
func (m *mapping) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if err := unmapDevice(m.pages); err != nil {
		return err
	}
	m.closed = true
	runtime.AddCleanup(m, unmap, m.pages)
	return nil
}
