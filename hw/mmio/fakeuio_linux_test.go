package mmio

import (
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// fakeUIO is a UIO device with a level-triggered line, as uio_pdrv_genirq: it masks itself when it fires, counts, and fires
// at once when it is unmasked while the level is up.
type fakeUIO struct {
	r, w int // a pipe of counts, so that poll works
	mu   sync.Mutex
	up   bool
	mask bool
	n    uint32
	log  []string
	fail error // of a write
	buf  [4]byte
}

func newFakeUIO(t *testing.T) *fakeUIO {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_NONBLOCK|unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	u := &fakeUIO{r: p[0], w: p[1], log: make([]string, 0, 4096)}
	t.Cleanup(func() { unix.Close(p[0]); unix.Close(p[1]) })
	return u
}

// fire is the kernel's handler; mu is held.
func (u *fakeUIO) fire() {
	if u.up && !u.mask {
		u.mask = true
		u.n++
		u.log = append(u.log, "fire")
		putWord(u.buf[:], u.n)
		unix.Write(u.w, u.buf[:])
	}
}

// set is the device's level.
func (u *fakeUIO) set(up bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.up = up
	u.fire()
}

// Fd, Read, Write, Map and Close are the file.
func (u *fakeUIO) Fd() int { return u.r }

func (u *fakeUIO) Read(p []byte) (int, error) {
	n, err := unix.Read(u.r, p)
	if n > 0 {
		u.note("read")
	}
	return n, err
}

func (u *fakeUIO) note(what string) {
	u.mu.Lock()
	u.log = append(u.log, what)
	u.mu.Unlock()
}

func (u *fakeUIO) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fail != nil {
		return -1, u.fail
	}
	v := word(p)
	if len(p) != 4 || v > 1 {
		return -1, unix.EINVAL
	}
	u.log = append(u.log, [...]string{"write 0", "write 1"}[v])
	u.mask = v == 0
	u.fire()
	return 4, nil
}

func (u *fakeUIO) Map(int64, int) ([]byte, error) { return nil, unix.EINVAL }
func (u *fakeUIO) Close() error {
	u.note("close")
	return nil
}

// events is what happened since the last call.
func (u *fakeUIO) events() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	log := u.log
	u.log = nil
	return log
}
