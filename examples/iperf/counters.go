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

// damagedFrames is the counter of frames whose checksum was wrong on arrival.
const damagedFrames = "MAC.RXCRCError"

// hostStall is by how much this machine was too slow for the wire.
type hostStall struct {
	Seconds float64 `json:"seconds"`
	Percent float64 `json:"percent"` // of the time that passed on the wire
}

// stallLimit is the percentage of host stall beyond which figures say more about this machine than about the driver.
const stallLimit = 1

func (b *bench) stall() (s hostStall) {
	s.Seconds, s.Percent = b.HostStall()
	return s
}

func (s hostStall) print(w io.Writer, indent string) {
	fmt.Fprintf(w, "%shost_stall %.3f s (%.2f %%)", indent, s.Seconds, s.Percent)
	if s.Percent > stallLimit {
		fmt.Fprint(w, ": this machine was too slow for the wire, the figures are void")
	}
	fmt.Fprintln(w)
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
