package iperf3

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
)

// fields is a JSON object from a peer. Names are compared without regard to case, as cJSON does; values of an
// unexpected type count as absent.
type fields map[string]any

// parseFields decodes a JSON object. Its numbers become float64: peers print large ones with an exponent (3.2 to 3.11)
// and -1 as 18446744073709551615 (3.12, 3.13), neither of which fits an int64.
func parseFields(text []byte) (fields, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return toFields(v)
}

func toFields(v any) (fields, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	f := make(fields, len(m))
	for k, v := range m {
		f[strings.ToLower(k)] = v
	}
	return f, nil
}

// number is the value of a number field; false if it is absent or something else.
func (f fields) number(name string) (float64, bool) {
	n, ok := f[name].(float64)
	return n, ok
}

// flag is the value of a field that peers send as true or 1.
func (f fields) flag(name string) bool {
	switch v := f[name].(type) {
	case bool:
		return v
	case float64:
		return v != 0
	}
	return false
}

// text is the value of a string field, cut to a length that is fit for display.
func (f fields) text(name string) string {
	s, _ := f[name].(string)
	const longest = 256
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "")
	}
	return s
}

// toInt64 converts, limiting what does not fit.
func toInt64(n float64) int64 {
	switch {
	case n != n:
		return 0
	case n >= math.MaxInt64:
		return math.MaxInt64
	case n <= math.MinInt64:
		return math.MinInt64
	}
	return int64(n)
}

// signed converts a number that may be -1 printed as an unsigned 64-bit number, as 3.12 and 3.13 do.
func signed(n float64) int64 {
	if n >= 1<<63 {
		return -1
	}
	return toInt64(n)
}
