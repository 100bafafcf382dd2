package mmio

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// System is the operating system as this package sees it. The zero value is the real one. Root and Open exist for tests and
// for programs that look at a copy of another machine's /sys.
type System struct {
	// Root is put in front of every path.
	Root string
	// Open opens a file, nil meaning open(2). flags are those of package os and golang.org/x/sys/unix. Everything that is
	// read, written, mapped and polled goes through it; only directories are listed without.
	Open func(path string, flags int) (File, error)
}

// File is an open file or device. Read and Write may be short and may fail with EINTR and EAGAIN, as the system calls.
type File interface {
	io.Reader
	io.Writer
	io.Closer
	// Map maps length bytes at offset, both multiples of the page size, shared, for reading and writing. The mapping
	// outlives Close. The package unmaps it.
	Map(offset int64, length int) ([]byte, error)
	// Fd is the descriptor to poll for interrupts.
	Fd() int
}

// interruptedRetries is how often a system call is made again after EINTR before the caller has another look around.
const interruptedRetries = 64

// path is where the file is.
func (s System) path(name string) string {
	if s.Root == "" {
		return name
	}
	return path.Join(s.Root, name)
}

func (s System) open(name string, flags int) (File, error) {
	open := s.Open
	if open == nil {
		open = openFile
	}
	var f File
	err := error(syscall.EINTR)
	for try := 0; try < interruptedRetries && errors.Is(err, syscall.EINTR); try++ {
		f, err = open(s.path(name), flags)
	}
	return f, err
}

// read is the content of a small file, at most limit bytes. It takes short reads and interruptions as they come.
func (s System) read(name string, limit int) ([]byte, error) {
	f, err := s.open(name, readFlags)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var content []byte
	buf := make([]byte, 4096)
	for interrupted := 0; ; {
		n, err := f.Read(buf)
		content = append(content, buf[:max(n, 0)]...)
		switch {
		case errors.Is(err, syscall.EINTR) && interrupted < interruptedRetries:
			interrupted++
		case err == io.EOF, err == nil && n <= 0:
			return content, nil
		case err != nil:
			return nil, err
		case len(content) > limit:
			return nil, syscall.EFBIG
		}
	}
}

// maxAttribute is the largest attribute that sysfs can show: one page.
const maxAttribute = 4096

// attribute is the content of a file in /sys, without the line feed.
func (s System) attribute(name string) (string, error) {
	b, err := s.read(name, maxAttribute)
	if err != nil {
		e := &Error{Op: "read", Path: s.path(name), Err: err}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			e.Err = errors.Join(ErrAttribute, err)
		case errors.Is(err, fs.ErrPermission):
			e.Remedy = "run as root until everything is open"
		}
		return "", e
	}
	return strings.TrimSpace(string(b)), nil
}

// number is an attribute that is a number.
func (s System) number(name string) (uint64, error) {
	text, err := s.attribute(name)
	if err != nil {
		return 0, err
	}
	v, err := parseNumber(text)
	if err != nil {
		return 0, attributeError(s.path(name), "%.40q is not a number", text)
	}
	return v, nil
}

// optionalNumber is a number that older drivers do not show; ok is false then.
func (s System) optionalNumber(name string) (v uint64, ok bool, err error) {
	v, err = s.number(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	return v, err == nil, err
}

// exists reports whether there is such a file or directory.
func (s System) exists(name string) bool {
	_, err := os.Stat(s.path(name))
	return err == nil
}

// list is the names in a directory, sorted; none if there is no such directory.
func (s System) list(name string) []string {
	entries, err := os.ReadDir(s.path(name))
	if err != nil {
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// link is the last element of where a symbolic link leads, "" if there is none.
func (s System) link(name string) string {
	to, err := os.Readlink(s.path(name))
	if err != nil {
		return ""
	}
	return path.Base(to)
}
