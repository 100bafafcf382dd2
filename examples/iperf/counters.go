package main

import (
	"fmt"
	"io"
	"strings"

	"dwnet/link"
)

// counters are a driver's counters by name.
func counters(s link.Stats) map[string]uint64 {
	m := make(map[string]uint64)
	s.Each(func(name string, value uint64) { m[name] = value })
	return m
}

// printCounters prints those counters that are not zero: of the endpoint and, with all, also of the hardware below it.
func printCounters(w io.Writer, title string, s link.Stats, all bool) {
	fmt.Fprintf(w, "Counters of the %s\n", title)
	s.Each(func(name string, value uint64) {
		if value != 0 && (all || !strings.Contains(name, ".")) {
			fmt.Fprintf(w, "  %-28s %d\n", name, value)
		}
	})
}
