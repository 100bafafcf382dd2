package mmio

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// boardIOMem is /proc/iomem as on a board with the MAC, a reserved region left out of RAM and a kernel driver bound.
const boardIOMem = `40000000-5fffffff : System RAM
  40008000-40ffffff : Kernel code
62000000-7fffffff : System RAM
c9410000-c941ffff : c9410000.ethernet
  c9410000-c941ffff : c9410000.ethernet ethernet@c9410000
`

func TestParseIOMem(t *testing.T) {
	got, err := parseIOMem(boardIOMem)
	if err != nil {
		t.Fatal(err)
	}
	want := []IORange{
		{0x40000000, 0x5FFFFFFF, "System RAM", 0},
		{0x40008000, 0x40FFFFFF, "Kernel code", 1},
		{0x62000000, 0x7FFFFFFF, "System RAM", 0},
		{0xC9410000, 0xC941FFFF, "c9410000.ethernet", 0},
		{0xC9410000, 0xC941FFFF, "c9410000.ethernet ethernet@c9410000", 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOverlap(t *testing.T) {
	ranges, err := parseIOMem(boardIOMem)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		start, size uint64
		ram, inside bool
		claimant    string
	}{
		{0x60000000, 0x2000000, false, false, ""},
		{0x5FFFF000, 0x1000, true, true, "40000000-5fffffff : System RAM"},
		{0x5FFFF000, 0x1001, true, false, "40000000-5fffffff : System RAM"},
		{0x61FFFFFF, 2, true, false, "62000000-7fffffff : System RAM"},
		{0x40008000, 4, true, true, "40008000-40ffffff : Kernel code"},
		{0xC9411014, 4, false, false, "c9410000-c941ffff : c9410000.ethernet ethernet@c9410000"},
		{0xC9420000, 4, false, false, ""},
		{0x40000000, 0, false, false, ""},
	} {
		if got := ramIn(ranges, c.start, c.size) != nil; got != c.ram {
			t.Errorf("%s in RAM: %v", span(c.start, c.size), got)
		}
		if got := insideRAM(ranges, c.start, c.size); got != c.inside {
			t.Errorf("%s inside RAM: %v", span(c.start, c.size), got)
		}
		if got := claimant(ranges, c.start, c.size); got != c.claimant {
			t.Errorf("%s belongs to %q, want %q", span(c.start, c.size), got, c.claimant)
		}
	}
}

// A list that is hidden, missing or forbidden is not taken for an empty one; a broken one is an error that names the line.
func TestReadIOMem(t *testing.T) {
	const hidden = "00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n"
	for _, c := range []struct {
		name, content string
		open          error
		want          error
		say           string
		unknown       bool // Open goes on without
	}{
		{name: "hidden", content: hidden, want: fs.ErrPermission, say: "hidden", unknown: true},
		{name: "missing", open: unix.ENOENT, want: fs.ErrNotExist, unknown: true},
		{name: "forbidden", open: unix.EACCES, want: fs.ErrPermission, unknown: true},
		{name: "no range", content: "40000000 : System RAM\n", want: ErrAttribute, say: "line 1"},
		{name: "no name", content: "0-1 : a\n40000000-5fffffff\n", want: ErrAttribute, say: "line 2"},
		{name: "backwards", content: "5-4 : System RAM\n", want: ErrAttribute, say: "line 1"},
		{name: "not hexadecimal", content: "x-y : System RAM\n", want: ErrAttribute, say: "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t).file(iomemPath, c.content)
			if c.open != nil {
				tr.device(iomemPath, func(int) (File, error) { return nil, c.open })
			}
			_, err := ReadIOMem(tr.sys())
			wantError(t, err, c.want, iomemPath, c.say)
			ranges, err := knownRAM(tr.sys())
			if (err == nil) != c.unknown || ranges != nil {
				t.Errorf("knownRAM gives %v, %v", ranges, err)
			}
		})
	}
}

func FuzzParseIOMem(f *testing.F) {
	f.Add(boardIOMem)
	f.Add("0-ffffffffffffffff : all\n")
	f.Fuzz(func(t *testing.T, text string) {
		ranges, err := parseIOMem(text)
		if err != nil {
			return
		}
		for _, r := range ranges {
			if r.End < r.Start || r.Depth < 0 {
				t.Fatalf("%+v of %q", r, text)
			}
			if who := claimant(ranges, r.Start, 1); who == "" {
				t.Fatalf("nobody has the start of %v", r)
			}
		}
	})
}
