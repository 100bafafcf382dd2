package mmio

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

const (
	iomemPath  = "/proc/iomem"
	maxIOMem   = 1 << 20
	systemRAM  = "System RAM"
	iomemDepth = 2 // spaces per level
)

// errHidden says that the kernel shows zeroes instead of addresses, as it does to processes without CAP_SYS_ADMIN.
var errHidden = errors.New("addresses are hidden from this process")

// IORange is one line of /proc/iomem: addresses and who has them.
type IORange struct {
	Start, End uint64 // both inclusive
	Name       string
	Depth      int // 0 for what is in no other range
}

// ReadIOMem reads /proc/iomem. It needs CAP_SYS_ADMIN, without which the kernel hides the addresses.
func ReadIOMem(sys System) ([]IORange, error) {
	b, err := sys.read(iomemPath, maxIOMem)
	if err != nil {
		return nil, &Error{Op: "read", Path: sys.path(iomemPath), Err: err}
	}
	ranges, err := parseIOMem(string(b))
	switch {
	case errors.Is(err, errHidden):
		return nil, &Error{Op: "read", Path: sys.path(iomemPath), Err: fmt.Errorf("%w: %w", errHidden, fs.ErrPermission),
			Remedy: "run as root until everything is open"}
	case err != nil:
		return nil, attributeError(sys.path(iomemPath), "%v", err)
	}
	return ranges, nil
}

func parseIOMem(text string) ([]IORange, error) {
	var ranges []IORange
	shown := false
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		trimmed := strings.TrimLeft(line, " ")
		var r IORange
		addresses, name, ok := strings.Cut(trimmed, " : ")
		start, end, ok2 := strings.Cut(addresses, "-")
		if !ok || !ok2 {
			return nil, fmt.Errorf("line %d: %.60q is not a range", i+1, line)
		}
		var err1, err2 error
		r.Start, err1 = parseNumber("0x" + start)
		r.End, err2 = parseNumber("0x" + end)
		if err1 != nil || err2 != nil || r.End < r.Start {
			return nil, fmt.Errorf("line %d: %.60q is not a range", i+1, line)
		}
		r.Name = name
		r.Depth = (len(line) - len(trimmed)) / iomemDepth
		shown = shown || r.End != 0
		ranges = append(ranges, r)
	}
	if len(ranges) > 0 && !shown {
		return nil, errHidden
	}
	return ranges, nil
}

func (r IORange) String() string { return fmt.Sprintf("%08x-%08x : %s", r.Start, r.End, r.Name) }

// overlapping are the ranges that have an address in common with size bytes from start on; start+size does not overflow.
func overlapping(ranges []IORange, start, size uint64) []IORange {
	var hits []IORange
	for _, r := range ranges {
		if size > 0 && r.Start <= start+size-1 && start <= r.End {
			hits = append(hits, r)
		}
	}
	return hits
}

// claimant is the innermost range that overlaps, "" if there is none.
func claimant(ranges []IORange, start, size uint64) string {
	var best IORange
	found := false
	for _, r := range overlapping(ranges, start, size) {
		if !found || r.Depth >= best.Depth {
			best, found = r, true
		}
	}
	if !found {
		return ""
	}
	return best.String()
}

// ramIn is a range of system RAM that overlaps, nil if there is none.
func ramIn(ranges []IORange, start, size uint64) *IORange {
	for _, r := range overlapping(ranges, start, size) {
		if r.Name == systemRAM {
			return &r
		}
	}
	return nil
}

// insideRAM reports whether size bytes from start on are all in one range of system RAM.
func insideRAM(ranges []IORange, start, size uint64) bool {
	r := ramIn(ranges, start, size)
	return r != nil && r.Start <= start && start+size-1 <= r.End
}
