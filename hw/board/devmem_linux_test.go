package board

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"dwnet/hw/mmio"
)

func TestDevMem(t *testing.T) {
	root := t.TempDir()
	m := DevMem{mmio.System{Root: root}}
	if _, err := Read(OdroidC1(), m); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no /dev/mem: %v", err)
	}
	if testing.Short() {
		t.Skip("makes a sparse file of 3 GiB")
	}
	// A sparse file stands for physical memory.
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(root, "dev", "mem"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for addr, v := range right(t, OdroidC1()).words {
		if _, err := f.WriteAt(binary.NativeEndian.AppendUint32(nil, v), int64(addr)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint32(nil, 0x00800000), c1GPIOIn); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(0xc1200000); err != nil {
		t.Fatal(err)
	}
	st, err := Read(OdroidC1(), m)
	if err != nil {
		t.Fatal(err)
	}
	if st.PRG != 0x1501 || st.TXClockHz != 124999102 {
		t.Errorf("%v", st)
	}
	if l := st.Diagnose(); l != nil {
		t.Errorf("%v", l)
	}
}
