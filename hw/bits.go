package hw

import (
	"fmt"
	"strings"
)

// A field names one bit or a run of bits of a register, for the String methods.
type field struct {
	hi, lo uint8
	name   string
	vals   []string // names of the values of a run; nil: a number, shown when it is not zero
}

// bit names a single bit, shown when it is set.
func bit(n uint8, name string) field { return field{hi: n, lo: n, name: name} }

// bits names a run of bits. With vals the value is shown by name, always; without, as a number, when it is not zero.
func bits(hi, lo uint8, name string, vals ...string) field {
	return field{hi: hi, lo: lo, name: name, vals: vals}
}

func (f field) mask() uint32 { return uint32(1<<(f.hi-f.lo+1)-1) << f.lo }

// decode prints v by its fields, lowest first, and what no field covers as a number. A word without anything set is "0".
func decode(v uint32, fields []field) string {
	var b strings.Builder
	put := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, format, args...)
	}
	rest := v
	for _, f := range fields {
		n := (v & f.mask()) >> f.lo
		rest &^= f.mask()
		switch {
		case f.vals != nil && int(n) < len(f.vals) && f.vals[n] != "":
			put("%s=%s", f.name, f.vals[n])
		case n == 0:
		case f.hi == f.lo:
			put("%s", f.name)
		case f.hi-f.lo < 8:
			put("%s=%d", f.name, n)
		default:
			put("%s=0x%x", f.name, n)
		}
	}
	if rest != 0 {
		put("+0x%x", rest)
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}
