package mmio

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dwnet/hw"
)

func TestParseSource(t *testing.T) {
	for text, want := range map[string]Source{
		"devmem:address=0xc9410000,size=0x10000":                     {Kind: DevMem, Address: 0xC9410000, Size: 0x10000},
		"devmem:/dev/mem2,address=4096,size=010":                     {Kind: DevMem, Path: "/dev/mem2", Address: 4096, Size: 10},
		"uio:uio0,map=1":                                             {Kind: UIO, Path: "uio0", Map: 1},
		"uio:/dev/uio3,offset=0x140,size=4":                          {Kind: UIO, Path: "/dev/uio3", Offset: 0x140, Size: 4},
		"udmabuf:udmabuf0,type=non-cacheable":                        {Kind: UDMABuf, Path: "udmabuf0", Type: NonCacheable},
		"file:/dev/shm/ram,address=0x1000000,offset=16777216,size=4": {Kind: SharedFile, Path: "/dev/shm/ram", Address: 1 << 24, Offset: 1 << 24, Size: 4},
		"poll": {Kind: Polling},
		"none": {},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseSource(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := ParseSource(got.String())
			if err != nil || again != got {
				t.Errorf("%q reads back as %+v, %v", got, again, err)
			}
		})
	}
}

func TestParseSourceSaysWhatIsWrong(t *testing.T) {
	for text, say := range map[string]string{
		"":                                `kind ""`,
		"pci:0":                           `kind "pci"`,
		"uio:uio0,uio1":                   `"uio1" is not name=value`,
		"uio:,map=1":                      `"" is not name=value`,
		"uio:uio0,map=x":                  `map: "x" is not a number`,
		"uio:uio0,map=0x80000000":         "too large",
		"uio:uio0,colour=1":               `"colour" is not one of`,
		"devmem:size=-1":                  `"-1" is not a number`,
		"devmem:size=0x":                  `"0x" is not a number`,
		"udmabuf:u,type=shiny":            `type "shiny"`,
		"devmem:size=0x10000000000000000": "is not a number",
	} {
		_, err := ParseSource(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
			continue
		}
		wantError(t, err, hw.ErrConfig, say)
	}
}

// What ParseSource accepts it writes in a form that it reads the same.
func FuzzParseSource(f *testing.F) {
	f.Add("devmem:address=0xc9410000,size=0x10000")
	f.Add("uio:uio0,map=1,offset=0x140")
	f.Add("poll")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSource(text)
		if err != nil {
			return
		}
		again, err := ParseSource(s.String())
		if err != nil || again != s {
			t.Errorf("%q is %+v, and %q is %+v, %v", text, s, s.String(), again, err)
		}
		for u := forRegisters; u <= forInterrupt; u++ {
			_ = s.check(u)
		}
	})
}

func TestSourceCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		src  Source
		use  use
		say  string // "": fine
	}{
		{"registers through /dev/mem", Source{Kind: DevMem, Address: 0xC9410000, Size: 0x10000}, forRegisters, ""},
		{"registers from UIO", Source{Kind: UIO, Path: "uio0"}, forRegisters, ""},
		{"memory from u-dma-buf", Source{Kind: UDMABuf, Path: "udmabuf0"}, forMemory, ""},
		{"polling", Source{Kind: Polling}, forInterrupt, ""},
		{"nothing", Source{}, forRegisters, "Kind is none"},
		{"registers in a DMA buffer", Source{Kind: UDMABuf, Path: "udmabuf0"}, forRegisters, "want one of devmem, uio"},
		{"interrupt of /dev/mem", Source{Kind: DevMem, Size: 4}, forInterrupt, "want one of uio, poll"},
		{"unknown kind", Source{Kind: 77}, forMemory, "Kind(77)"},
		{"no path", Source{Kind: UIO}, forRegisters, "Path"},
		{"no size", Source{Kind: DevMem, Address: 4096}, forMemory, "Size is 0"},
		{"file without size", Source{Kind: SharedFile, Path: "/x"}, forMemory, "Size is 0"},
		{"huge", Source{Kind: DevMem, Size: maxSpan + 1}, forMemory, "more than"},
		{"wraps around", Source{Kind: DevMem, Address: math.MaxUint64 - 10, Size: 4096}, forMemory, "overflow"},
		{"offset of /dev/mem", Source{Kind: DevMem, Size: 4096, Offset: 4}, forMemory, "Offset"},
		{"address of UIO", Source{Kind: UIO, Path: "uio0", Address: 1}, forMemory, "Address"},
		{"huge offset", Source{Kind: UIO, Path: "uio0", Offset: math.MaxUint64}, forMemory, "Offset"},
		{"huge file offset", Source{Kind: SharedFile, Path: "/x", Size: 4, Offset: math.MaxUint64}, forMemory, "Offset"},
		{"negative map", Source{Kind: UIO, Path: "uio0", Map: -1}, forRegisters, "Map"},
		{"unknown type", Source{Kind: UIO, Path: "uio0", Type: 9}, forRegisters, "Type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.src.check(c.use)
			if (err == nil) != (c.say == "") || err != nil && !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, want %q", err, c.say)
			}
		})
	}
}

func TestSourcePaths(t *testing.T) {
	for _, c := range []struct {
		src        Source
		path, node string
	}{
		{Source{Kind: DevMem}, "/dev/mem", "mem"},
		{Source{Kind: UIO, Path: "uio0"}, "/dev/uio0", "uio0"},
		{Source{Kind: UIO, Path: "/dev/uio7"}, "/dev/uio7", "uio7"},
		{Source{Kind: UDMABuf, Path: "/dev/u-dma-buf0"}, "/dev/u-dma-buf0", "u-dma-buf0"},
	} {
		if c.src.path() != c.path || c.src.node() != c.node {
			t.Errorf("%v: path %q, node %q", c.src, c.src.path(), c.src.node())
		}
	}
}
