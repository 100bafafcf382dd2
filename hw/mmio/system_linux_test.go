package mmio

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// openScripted gives a file of the tree with a script in front.
func openScripted(tr *tree, path string, s *scripted) func(int) (File, error) {
	return func(flags int) (File, error) {
		f, err := openFile(tr.root+path, flags)
		s.File = f
		return s, err
	}
}

// Attributes are read whole however the kernel hands them out.
func TestAttributeOfShortAndInterruptedReads(t *testing.T) {
	const path = "/sys/class/uio/uio0/maps/map0/addr"
	for name, reads := range map[string][]any{
		"at once":      nil,
		"byte by byte": {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		"interrupted":  {unix.EINTR, 4, unix.EINTR, unix.EINTR, 3},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t).file(path, "0xc9410000\n")
			tr.device(path, openScripted(tr, path, &scripted{reads: reads}))
			got, err := tr.sys().number(path)
			if err != nil || got != 0xC9410000 {
				t.Errorf("got 0x%x, %v", got, err)
			}
		})
	}
}

func TestAttributeErrorsNameTheFile(t *testing.T) {
	const path = "/sys/class/u-dma-buf/udmabuf0/size"
	interrupted := make([]any, 1000)
	for i := range interrupted {
		interrupted[i] = unix.EINTR
	}
	for _, c := range []struct {
		name    string
		content string
		script  *scripted
		open    error
		want    error
		say     string
	}{
		{name: "missing", open: unix.ENOENT, want: ErrAttribute},
		{name: "not allowed", open: unix.EACCES, want: fs.ErrPermission, say: "run as root"},
		{name: "not allowed by policy", open: unix.EPERM, want: fs.ErrPermission, say: "run as root"},
		{name: "fails to read", script: &scripted{reads: []any{unix.EIO}}, want: syscall.EIO},
		{name: "interrupted for ever", script: &scripted{reads: interrupted}, want: syscall.EINTR},
		{name: "empty", content: "\n", want: ErrAttribute, say: `"" is not a number`},
		{name: "no number", content: "lots\n", want: ErrAttribute, say: `"lots" is not a number`},
		{name: "negative", content: "-4096\n", want: ErrAttribute},
		{name: "too many bits", content: "0x10000000000000000\n", want: ErrAttribute},
		{name: "two numbers", content: "1 2\n", want: ErrAttribute},
		{name: "zero byte", content: "1\x00\n", want: ErrAttribute},
		{name: "no end", content: strings.Repeat("7", 3*maxAttribute), want: syscall.EFBIG},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := newTree(t).file(path, c.content)
			if c.open != nil {
				tr.device(path, func(int) (File, error) { return nil, c.open })
			} else if c.script != nil {
				tr.device(path, openScripted(tr, path, c.script))
			}
			_, err := tr.sys().number(path)
			wantError(t, err, c.want, path, c.say)
		})
	}
}

// A device that is interrupted while it opens is opened again.
func TestOpenIsTriedAgainAfterEINTR(t *testing.T) {
	tr := newTree(t)
	m := newMemfd(t, 4096)
	tries := 0
	tr.device("/dev/uio0", func(int) (File, error) {
		if tries++; tries < 4 {
			return nil, unix.EINTR
		}
		return m.open()
	})
	f, err := tr.sys().open("/dev/uio0", deviceFlags)
	if err != nil || tries != 4 {
		t.Fatalf("%d tries, %v", tries, err)
	}
	f.Close()
}

func TestOpenErrorsHaveRemedies(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		err  error
		say  string
	}{
		{DevMem, unix.ENOENT, "CONFIG_DEVMEM"},
		{DevMem, unix.EPERM, "CAP_SYS_RAWIO"},
		{DevMem, unix.EACCES, "mode of the node"},
		{UIO, unix.ENOENT, "uio_pdrv_genirq"},
		{UIO, unix.EPERM, "mode of the node"},
		{UDMABuf, unix.ENOENT, "u-dma-buf module"},
	} {
		err := openError("/dev/x", c.kind, c.err)
		wantError(t, err, c.err, "/dev/x", c.say)
	}
}

func TestListOfDirectory(t *testing.T) {
	sys := newTree(t).file("/sys/class/uio/uio1/name", "b").file("/sys/class/uio/uio0/name", "a").sys()
	if diff := cmp.Diff([]string{"uio0", "uio1"}, sys.list("/sys/class/uio")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := sys.list("/sys/class/nothing"); got != nil {
		t.Errorf("list of nothing is %q", got)
	}
}
