package iperf3

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scale formats like upstream's unit_snprintf: three significant digits, at most four characters, and a prefix.
func scale(x, base float64, unit string) string {
	prefixes := [...]string{"", "K", "M", "G", "T"}
	i := 0
	for i < len(prefixes)-1 && x >= base {
		x /= base
		i++
	}
	format := "%4.0f %s%s"
	switch { // the limits keep rounding from adding a digit
	case x < 9.995:
		format = "%4.2f %s%s"
	case x < 99.95:
		format = "%4.1f %s%s"
	}
	return fmt.Sprintf(format, x, prefixes[i], unit)
}

// FormatBytes prints an amount in powers of 1024, such as "1.09 GBytes".
func FormatBytes(n float64) string { return scale(n, 1024, "Bytes") }

// formatRate prints bit/s in powers of 1000, such as " 941 Mbits/sec".
func formatRate(bps float64) string { return scale(bps, 1000, "bits/sec") }

// ErrRange is in the error of a number that is negative or too large.
var ErrRange = errors.New("is out of range")

// ParseRate reads a bit rate as iperf3's -b: a number with an optional k, m, g or t for powers of 1000. 0 means no limit.
func ParseRate(s string) (float64, error) { return parseUnit(s, 1000) }

// ParseSize reads a number of bytes as iperf3's -n, -l and -w: suffixes are powers of 1024.
func ParseSize(s string) (int64, error) {
	x, err := parseUnit(s, 1024)
	if err != nil {
		return 0, err
	}
	if x >= math.MaxInt64 {
		return 0, fmt.Errorf("%q %w", s, ErrRange)
	}
	return int64(x), nil
}

func parseUnit(s string, base float64) (float64, error) {
	number, factor := s, 1.0
	if s != "" {
		if i := strings.IndexByte("kmgt", s[len(s)-1]|0x20); i >= 0 {
			number, factor = s[:len(s)-1], math.Pow(base, float64(i+1))
		}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%q %w", s, ErrRange)
		}
		return 0, fmt.Errorf("%q is not a number with an optional suffix K, M, G or T", s)
	}
	x *= factor
	if !(x >= 0) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("%q %w", s, ErrRange)
	}
	return x, nil
}
