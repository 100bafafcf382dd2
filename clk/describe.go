package clk

import (
	"fmt"
	"strings"
)

// Info is what one part of a tree is and does now.
type Info struct {
	Name     string `json:"name"`
	Kind     string `json:"kind"`               // "mux", "divider", "factor", "gate", "mpll", "pll", "fixed" or "clock"
	Rate     Hz     `json:"rate_hz,omitempty"`  // zero if Error is set
	Setting  string `json:"setting,omitempty"`  // decoded, such as "/2" or "input 1 of 2"
	Register string `json:"register,omitempty"` // with bits
	Off      bool   `json:"off,omitempty"`      // a gate that is closed
	Error    string `json:"error,omitempty"`    // why there is no rate
}

// Inspect reads c, its parent, and so on to the source, in this order. Parts that cannot be read say so in Error; the walk
// ends at a mux whose input is unknown.
func Inspect(c Clock) []Info {
	if isNil(c) {
		return nil
	}
	chain, err := chainOf(c)
	infos := make([]Info, len(chain))
	for i, c := range chain {
		infos[i] = inspect(c)
	}
	if last := &infos[len(infos)-1]; err != nil && last.Error == "" {
		last.Error = err.Error()
	}
	return infos
}

func inspect(c Clock) Info {
	in := Info{Name: c.Name(), Kind: "clock"}
	fail := func(err error) {
		if err != nil && in.Error == "" {
			in.Error = err.Error()
		}
	}
	switch c := c.(type) {
	case *Fixed:
		in.Kind = "fixed"
	case *PLL:
		in.Kind, in.Register = "pll", c.c.M.String()
		v, err := c.params()
		fail(err)
		in.Setting = fmt.Sprintf("M %d N %d OD %d", v.m, v.n, v.od)
		if c.c.Frac.present() {
			in.Setting += fmt.Sprintf(" frac %d/%d", v.frac, 1<<c.c.Frac.Width)
		}
	case *MPLL:
		in.Kind, in.Register = "mpll", c.c.N2.Reg.Name
		n2, sdm, err := c.Params()
		fail(err)
		in.Setting = fmt.Sprintf("N2 %d SDM %d", n2, sdm)
	case *Mux:
		in.Kind, in.Register = "mux", c.c.Field.String()
		i, err := c.Input()
		fail(err)
		if err == nil {
			in.Setting = fmt.Sprintf("input %d of %d", i, len(c.c.Inputs))
		}
	case *Divider:
		in.Kind, in.Register = "divider", c.c.Field.String()
		div, err := c.Div()
		fail(err)
		if err == nil {
			in.Setting = fmt.Sprintf("/%d", div)
		}
	case *Factor:
		in.Kind, in.Setting = "factor", fmt.Sprintf("*%d/%d", c.c.Mult, c.c.Div)
	case *Gate:
		in.Kind, in.Register = "gate", c.c.Field.String()
		on, err := c.Enabled()
		fail(err)
		in.Setting = "on"
		if in.Off = !on && err == nil; in.Off {
			in.Setting = "off"
		}
	}
	r, err := rateOf(c)
	fail(err)
	if in.Error == "" {
		in.Rate = r
	}
	return in
}

// Describe prints a clock and what it is made from, one part a line, the source last: name, rate, setting, register.
func Describe(c Clock) string {
	infos := Inspect(c)
	var name, rate, setting int
	rates := make([]string, len(infos))
	for i, in := range infos {
		rates[i] = in.Rate.String()
		if in.Error != "" {
			rates[i] = "?"
		}
		name, rate, setting = max(name, i+len(in.Name)), max(rate, len(rates[i])), max(setting, len(in.Setting))
	}
	var b strings.Builder
	for i, in := range infos {
		line := fmt.Sprintf("%s%-*s  %*s  %-*s  %s", strings.Repeat(" ", i), name-i, in.Name, rate, rates[i], setting, in.Setting, in.Register)
		if in.Error != "" {
			line += "  " + in.Error
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
