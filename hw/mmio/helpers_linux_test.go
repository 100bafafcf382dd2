package mmio

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// tree is a root file system for tests: real files for /sys and /proc, and devices that tests make up. Opens are recorded.
type tree struct {
	t       *testing.T
	root    string
	devices map[string]func(flags int) (File, error)

	mu    sync.Mutex
	opens []opened
}

type opened struct {
	path  string
	flags int
}

func newTree(t *testing.T) *tree {
	return &tree{t: t, root: t.TempDir(), devices: map[string]func(int) (File, error){}}
}

// file writes an attribute.
func (tr *tree) file(path, content string) *tree {
	tr.t.Helper()
	full := filepath.Join(tr.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		tr.t.Fatal(err)
	}
	return tr
}

func (tr *tree) files(dir string, attributes map[string]string) *tree {
	tr.t.Helper()
	for name, content := range attributes {
		tr.file(filepath.Join(dir, name), content)
	}
	return tr
}

// symlink makes the link that /sys has from a device to its driver.
func (tr *tree) symlink(path, to string) *tree {
	tr.t.Helper()
	full := filepath.Join(tr.root, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.Symlink(to, full); err != nil {
		tr.t.Fatal(err)
	}
	return tr
}

func (tr *tree) remove(path string) *tree {
	tr.t.Helper()
	if err := os.RemoveAll(filepath.Join(tr.root, path)); err != nil {
		tr.t.Fatal(err)
	}
	return tr
}

// device puts a stand-in at a path.
func (tr *tree) device(path string, open func(flags int) (File, error)) *tree {
	tr.devices[path] = open
	return tr
}

// memory puts a memfd of size bytes at a path and returns it mapped, to see and to be what is behind the device.
func (tr *tree) memory(path string, size int64) *memfd {
	tr.t.Helper()
	m := newMemfd(tr.t, size)
	tr.device(path, func(int) (File, error) { return m.open() })
	return m
}

// sys is the tree as a System.
func (tr *tree) sys() System {
	return System{Root: tr.root, Open: func(path string, flags int) (File, error) {
		name := strings.TrimPrefix(path, tr.root)
		tr.mu.Lock()
		tr.opens = append(tr.opens, opened{name, flags})
		tr.mu.Unlock()
		if open, ok := tr.devices[name]; ok {
			return open(flags)
		}
		if strings.HasPrefix(name, "/dev/") {
			return nil, unix.ENOENT
		}
		return openFile(path, flags)
	}}
}

// opened reports with what flags a path was opened, last; ok is false if it was not.
func (tr *tree) opened(path string) (flags int, ok bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, o := range tr.opens {
		if o.path == path {
			flags, ok = o.flags, true
		}
	}
	return flags, ok
}

// memfd is memory that stands in for a device's.
type memfd struct {
	t  *testing.T
	fd int
}

func newMemfd(t *testing.T, size int64) *memfd {
	t.Helper()
	fd, err := unix.MemfdCreate("mmio-test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	return &memfd{t, fd}
}

func (m *memfd) open() (File, error) {
	fd, err := unix.Dup(m.fd)
	if err != nil {
		return nil, err
	}
	return osFile(fd), nil
}

// word reads a word of the file behind the mapping.
func (m *memfd) word(off int64) uint32 {
	m.t.Helper()
	var b [4]byte
	if _, err := unix.Pread(m.fd, b[:], off); err != nil {
		m.t.Fatal(err)
	}
	return word(b[:])
}

func (m *memfd) setWord(off int64, v uint32) {
	m.t.Helper()
	var b [4]byte
	putWord(b[:], v)
	if _, err := unix.Pwrite(m.fd, b[:], off); err != nil {
		m.t.Fatal(err)
	}
}

func (m *memfd) bytes(off int64, n int) []byte {
	m.t.Helper()
	b := make([]byte, n)
	if _, err := unix.Pread(m.fd, b, off); err != nil {
		m.t.Fatal(err)
	}
	return b
}

// scripted is a file whose reads and writes follow a script; then those of File.
type scripted struct {
	File
	mu     sync.Mutex
	reads  []any // an error, an int (so many bytes at most), or a string (these bytes)
	writes []any
	mapErr error
}

func (s *scripted) next(script *[]any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(*script) == 0 {
		return nil
	}
	step := (*script)[0]
	*script = (*script)[1:]
	return step
}

func (s *scripted) Read(p []byte) (int, error) {
	switch step := s.next(&s.reads).(type) {
	case error:
		return -1, step
	case int:
		return s.File.Read(p[:min(step, len(p))])
	case string:
		return copy(p, step), nil
	}
	return s.File.Read(p)
}

func (s *scripted) Write(p []byte) (int, error) {
	switch step := s.next(&s.writes).(type) {
	case error:
		return -1, step
	case int:
		return step, nil
	}
	return s.File.Write(p)
}

func (s *scripted) Map(offset int64, length int) ([]byte, error) {
	if s.mapErr != nil {
		return nil, s.mapErr
	}
	return s.File.Map(offset, length)
}
