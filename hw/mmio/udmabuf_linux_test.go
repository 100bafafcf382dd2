package mmio

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// udmabufNode writes the sysfs directory of a buffer.
func udmabufNode(tr *tree, class, node string, attributes map[string]string) {
	all := map[string]string{"phys_addr": "0x5c000000\n", "size": "4194304\n", "sync_mode": "1\n", "dma_coherent": "0\n",
		"quirk_mmap_mode": "2\n"}
	for k, v := range attributes {
		all[k] = v
	}
	tr.files(class+"/"+node, all)
	for k, v := range attributes {
		if v == "" {
			tr.remove(class + "/" + node + "/" + k)
		}
	}
}

// What the driver does with O_SYNC decides how the memory may be copied, and whether it may be used.
func TestUDMABufMemoryType(t *testing.T) {
	for _, c := range []struct {
		mode     string
		coherent string
		quirk    string
		want     MemoryType
	}{
		{"0", "0", "2", WriteBack},
		{"1", "0", "2", Device},
		{"2", "0", "2", NonCacheable},
		{"3", "0", "2", NonCacheable},
		{"4", "0", "2", WriteBack},
		{"5", "0", "2", Device},
		{"6", "1", "2", NonCacheable},
		{"7", "1", "2", NonCacheable},
		{"0", "0", "1", NonCacheable}, // the kernel maps it as it should be
		{"0", "1", "1", WriteBack},
		{"1", "", "", Device}, // older driver
	} {
		tr := newTree(t)
		udmabufNode(tr, udmabufClasses[0], "udmabuf0", map[string]string{"sync_mode": c.mode, "dma_coherent": c.coherent, "quirk_mmap_mode": c.quirk})
		p, err := locate(tr.sys(), Source{Kind: UDMABuf, Path: "udmabuf0"})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if p.typ != c.want || p.coherent != (c.coherent == "1") {
			t.Errorf("%+v: %v, coherent %v", c, p.typ, p.coherent)
		}
	}
}

func TestListUDMABuf(t *testing.T) {
	tr := newTree(t)
	udmabufNode(tr, udmabufClasses[0], "udmabuf1", map[string]string{"phys_addr": "0x000000005c400000", "sync_mode": "2", "dma_coherent": "1"})
	udmabufNode(tr, udmabufClasses[0], "udmabuf0", nil)
	udmabufNode(tr, udmabufClasses[0], "broken", map[string]string{"size": ""})
	udmabufNode(tr, udmabufClasses[1], "old", map[string]string{"dma_coherent": "", "quirk_mmap_mode": ""})
	got, err := ListUDMABuf(tr.sys())
	wantError(t, err, ErrAttribute, "broken/size")
	want := []UDMABufDevice{
		{Node: "/dev/udmabuf0", Address: 0x5C000000, Size: 4 << 20, SyncMode: 1, Quirk: 2},
		{Node: "/dev/udmabuf1", Address: 0x5C400000, Size: 4 << 20, SyncMode: 2, Coherent: true, Quirk: 2},
		{Node: "/dev/old", Address: 0x5C000000, Size: 4 << 20, SyncMode: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLocateUDMABuf(t *testing.T) {
	for _, class := range udmabufClasses {
		tr := newTree(t)
		udmabufNode(tr, class, "udmabuf0", nil)
		p, err := locate(tr.sys(), Source{Kind: UDMABuf, Path: "/dev/udmabuf0", Offset: 0x100000, Size: 0x80000})
		if err != nil {
			t.Fatal(err)
		}
		if p.address != 0x5C100000 || p.start != 0x100000 || p.size != 0x80000 || p.path != "/dev/udmabuf0" {
			t.Errorf("%s: got %+v", class, p)
		}
	}
	for _, c := range []struct {
		name       string
		attributes map[string]string
		src        Source
		want       error
		say        string
	}{
		{"no such buffer", nil, Source{Path: "udmabuf7"}, ErrAttribute, "load the u-dma-buf module"},
		{"the kernel's own", nil, Source{Path: "/dev/udmabuf"}, ErrAttribute, "kernel's own udmabuf"},
		{"no address", map[string]string{"phys_addr": ""}, Source{}, ErrAttribute, "phys_addr"},
		{"no size", map[string]string{"size": ""}, Source{}, ErrAttribute, "udmabuf0/size"},
		{"size 0", map[string]string{"size": "0"}, Source{}, ErrAttribute, "udmabuf0/size"},
		{"size of the world", map[string]string{"size": "0xffffffffffffffff"}, Source{}, ErrAttribute, "udmabuf0/size"},
		{"no mode", map[string]string{"sync_mode": ""}, Source{}, ErrAttribute, "sync_mode"},
		{"unknown mode", map[string]string{"sync_mode": "8"}, Source{}, ErrAttribute, "8 is not 0..7"},
		{"bad coherence", map[string]string{"dma_coherent": "yes"}, Source{}, ErrAttribute, "dma_coherent"},
		{"bad quirk", map[string]string{"quirk_mmap_mode": "x"}, Source{}, ErrAttribute, "quirk_mmap_mode"},
		{"address overflows", map[string]string{"phys_addr": "0xfffffffffffff000"}, Source{}, ErrAttribute, "overflow"},
		{"offset outside", nil, Source{Offset: 4 << 20}, ErrAddress, "outside"},
		{"too much", nil, Source{Size: 4<<20 + 1}, ErrAddress, "only 0x400000 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t)
			udmabufNode(tr, udmabufClasses[0], "udmabuf0", c.attributes)
			c.src.Kind = UDMABuf
			if c.src.Path == "" {
				c.src.Path = "udmabuf0"
			}
			_, err := locate(tr.sys(), c.src)
			wantError(t, err, c.want, c.say)
		})
	}
}
