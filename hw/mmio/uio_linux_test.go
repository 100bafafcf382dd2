package mmio

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// uioNode writes the sysfs directory of a UIO device with its maps.
func uioNode(tr *tree, node, name string, maps ...UIOMap) {
	dir := uioClass + "/" + node
	tr.files(dir, map[string]string{"name": name + "\n", "version": "devicetree\n"})
	for i, m := range maps {
		tr.files(fmt.Sprintf("%s/maps/map%d", dir, i), map[string]string{
			"name": m.Name + "\n", "addr": fmt.Sprintf("0x%08x\n", m.Address),
			"size": fmt.Sprintf("0x%08x\n", m.Size), "offset": fmt.Sprintf("0x%x\n", m.Offset),
		})
	}
}

// Kernels show a region that does not start at a page in two ways. PRG_ETH0 of the S805, four bytes at 0xc1108140, in both.
func TestUIOMapSpan(t *testing.T) {
	const page = 4096
	for _, c := range []struct {
		name     string
		m        UIOMap
		in, size uint64
		bad      bool
	}{
		{name: "whole pages", m: UIOMap{Address: 0xC9410000, Size: 0x10000}, size: 0x10000},
		{name: "older kernel", m: UIOMap{Address: 0xC1108140, Size: 4, Offset: 0x140}, in: 0x140, size: 4},
		{name: "older kernel without offset", m: UIOMap{Address: 0xC1108140, Size: 4}, in: 0x140, size: 4},
		{name: "newer kernel", m: UIOMap{Address: 0xC1108000, Size: 0x1000, Offset: 0x140}, in: 0x140, size: 0xEC0},
		{name: "across a page", m: UIOMap{Address: 0xC1108FFC, Size: 8}, in: 0xFFC, size: 8},
		{name: "above 4 GiB", m: UIOMap{Address: 0xF_0000_0000, Size: page}, size: page},
		{name: "offset beyond the map", m: UIOMap{Address: 0xC1108000, Size: 0x100, Offset: 0x140}, bad: true},
		{name: "offset beyond the page", m: UIOMap{Address: 0xC1108000, Size: 0x4000, Offset: 0x1000}, bad: true},
		{name: "offset against address", m: UIOMap{Address: 0xC1108140, Size: 4, Offset: 0x144}, bad: true},
		{name: "empty", m: UIOMap{Address: 0xC1108000}, bad: true},
		{name: "huge", m: UIOMap{Address: 0, Size: 1 << 40}, bad: true},
		{name: "end of the world", m: UIOMap{Address: ^uint64(0xFFF), Size: 0x2000}, bad: true},
		{name: "not allocated", m: UIOMap{Address: ^uint64(0), Size: 0x1000, Offset: 0xFFF}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, size, err := c.m.span(page)
			if (err != nil) != c.bad || in != c.in || size != c.size {
				t.Errorf("got 0x%x, 0x%x, %v", in, size, err)
			}
		})
	}
}

func TestListUIO(t *testing.T) {
	tr := newTree(t)
	mac := UIOMap{Index: 0, Name: "ethernet", Address: 0xC9410000, Size: 0x10000}
	glue := UIOMap{Index: 1, Address: 0xC1108000, Size: 0x1000, Offset: 0x140}
	uioNode(tr, "uio10", "phy-irq")
	uioNode(tr, "uio2", "ethernet", mac, glue)
	tr.symlink(uioClass+"/uio2/device/driver", "../../bus/platform/drivers/uio_pdrv_genirq")
	got, err := ListUIO(tr.sys())
	if err != nil {
		t.Fatal(err)
	}
	want := []UIODevice{
		{Node: "/dev/uio2", Name: "ethernet", Version: "devicetree", Driver: "uio_pdrv_genirq", Maps: []UIOMap{mac, glue}},
		{Node: "/dev/uio10", Name: "phy-irq", Version: "devicetree"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListUIOKeepsDevicesBesideABrokenOne(t *testing.T) {
	tr := newTree(t)
	uioNode(tr, "uio0", "broken", UIOMap{Address: 4096, Size: 4096})
	uioNode(tr, "uio1", "fine", UIOMap{Address: 8192, Size: 4096})
	tr.file(uioClass+"/uio0/maps/map0/size", "many\n")
	got, err := ListUIO(tr.sys())
	wantError(t, err, ErrAttribute, "uio0/maps/map0/size", "many")
	if len(got) != 2 || got[0].Node != "/dev/uio0" || len(got[1].Maps) != 1 {
		t.Errorf("got %+v", got)
	}
	if none, err := ListUIO(newTree(t).sys()); len(none) != 0 || err != nil {
		t.Errorf("without UIO: %v, %v", none, err)
	}
}

func TestLocateUIO(t *testing.T) {
	tr := newTree(t)
	uioNode(tr, "uio0", "ethernet", UIOMap{Address: 0xC9410000, Size: 0x10000}, UIOMap{Address: 0xC1108000, Size: 0x4000, Offset: 0x140})
	sys := tr.sys()
	p, err := locate(sys, Source{Kind: UIO, Path: "uio0", Map: 1, Offset: 4, Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	if p.address != 0xC1108144 || p.size != 4 || p.skip != 0x144 || p.start != uint64(p.page) || p.typ != Device {
		t.Errorf("got %+v", p)
	}
	if p, err = locate(sys, Source{Kind: UIO, Path: "uio0", Map: 0}); err != nil || p.size != 0x10000 || p.start != 0 {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, c := range []struct {
		name string
		src  Source
		want error
		say  string
	}{
		{"no such device", Source{Kind: UIO, Path: "uio9"}, ErrAttribute, "uio9/maps/map0"},
		{"no such map", Source{Kind: UIO, Path: "uio0", Map: 2}, ErrAttribute, "only map0, map1"},
		{"offset outside", Source{Kind: UIO, Path: "uio0", Offset: 0x10000}, ErrAddress, "outside"},
		{"more than there is", Source{Kind: UIO, Path: "uio0", Offset: 0x100, Size: 0xFF01}, ErrAddress, "only 0xff00 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := locate(sys, c.src)
			wantError(t, err, c.want, c.say)
		})
	}
	tr.remove(uioClass + "/uio0/maps/map0/addr")
	_, err = locate(sys, Source{Kind: UIO, Path: "uio0"})
	wantError(t, err, ErrAttribute, "uio0/maps/map0/addr")
	tr.file(uioClass+"/uio0/maps/map1/offset", "0x5000\n")
	_, err = locate(sys, Source{Kind: UIO, Path: "uio0", Map: 1})
	wantError(t, err, ErrAttribute, "uio0/maps/map1", "offset 0x5000")
}

// A kernel from before the offset attribute is fine.
func TestUIOWithoutOffsetAttribute(t *testing.T) {
	tr := newTree(t)
	uioNode(tr, "uio0", "glue", UIOMap{Address: 0xC1108140, Size: 4})
	tr.remove(uioClass + "/uio0/maps/map0/offset")
	p, err := locate(tr.sys(), Source{Kind: UIO, Path: "uio0"})
	if err != nil || p.address != 0xC1108140 || p.skip != 0x140 || p.size != 4 {
		t.Errorf("got %+v, %v", p, err)
	}
}

// uio_dmem_genirq allocates when it is opened, so its address is read with the device open, and it is closed again whatever
// happens next.
func TestUIOMemoryThatIsAllocatedByOpen(t *testing.T) {
	tr := newTree(t)
	uioNode(tr, "uio0", "dma", UIOMap{Address: 0xFFFFFFFF, Size: 0x10000})
	tr.symlink(uioClass+"/uio0/device/driver", "../../drivers/"+dmemDriver)
	m := newMemfd(t, 0x10000)
	closes := 0
	tr.device("/dev/uio0", func(int) (File, error) {
		uioNode(tr, "uio0", "dma", UIOMap{Address: 0x50000000, Size: 0x10000})
		f, err := m.open()
		return &closeCounter{File: f, n: &closes}, err
	})
	p, err := locate(tr.sys(), Source{Kind: UIO, Path: "uio0"})
	if err != nil || p.address != 0x50000000 || closes != 0 {
		t.Fatalf("got %+v, %v, closed %d times", p, err, closes)
	}
	p.release()
	_, err = locate(tr.sys(), Source{Kind: UIO, Path: "uio0", Map: 3})
	wantError(t, err, ErrAttribute, "map3")
	if closes != 2 {
		t.Errorf("closed %d times after two opens", closes)
	}
	tr.device("/dev/uio0", func(int) (File, error) { return nil, unix.EACCES })
	_, err = locate(tr.sys(), Source{Kind: UIO, Path: "uio0"})
	wantError(t, err, unix.EACCES, "/dev/uio0")
}

type closeCounter struct {
	File
	n *int
}

func (c *closeCounter) Close() error {
	*c.n++
	return c.File.Close()
}
