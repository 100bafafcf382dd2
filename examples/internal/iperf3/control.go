package iperf3

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of messages. A parameters object of today's clients has 300 bytes; 3.18 and later refuse more than 8192. Results
// grow with the number of streams and with the server's output, so their bound is wider.
const (
	cookieSize    = 37 // 36 characters and a NUL
	maxParamsJSON = 8192
	maxResults    = 1 << 20
)

// cookie identifies a test. It is opaque: clients up to 3.1 put host name and time into it.
type cookie [cookieSize]byte

// cookieAlphabet is iperf3's: 32 characters, so that five random bits choose one without bias.
const cookieAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

func newCookie() cookie {
	var c cookie
	rand.Read(c[:cookieSize-1]) // never fails
	for i := range c[:cookieSize-1] {
		c[i] = cookieAlphabet[c[i]%byte(len(cookieAlphabet))]
	}
	return c
}

// String is the cookie without its NUL, unprintable bytes replaced.
func (c cookie) String() string {
	b, _, _ := bytes.Cut(c[:], []byte{0})
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, b))
}

// control is one side of the control connection. One goroutine reads and one writes at a time.
type control struct {
	conn  net.Conn
	clock Clock
	// interrupted makes every bounded operation fail with errStopped. See interrupt.
	interrupted atomic.Bool

	mu      sync.Mutex
	resumed bool
}

// interrupt ends the operation in progress and those to come with errStopped. It may be called from anywhere.
func (c *control) interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.resumed {
		c.interrupted.Store(true)
		c.conn.SetDeadline(past)
	}
}

// resume undoes interrupt once and for all, for a last word to the peer.
func (c *control) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resumed = true
	c.interrupted.Store(false)
	c.conn.SetDeadline(time.Time{})
}

// within runs f, which reads or writes the connection, and interrupts it after d.
func (c *control) within(d time.Duration, what string, f func() error) error {
	var (
		mu          sync.Mutex
		done, fired bool
	)
	t := c.clock.AfterFunc(d, func() {
		mu.Lock()
		defer mu.Unlock()
		if !done {
			fired = true
			c.conn.SetDeadline(past)
		}
	})
	if c.interrupted.Load() {
		c.conn.SetDeadline(past)
	}
	err := f()
	t.Stop()
	mu.Lock()
	done = true
	expired := fired
	mu.Unlock()
	if c.interrupted.Load() {
		return errStopped
	}
	if expired {
		c.conn.SetDeadline(time.Time{})
		if c.interrupted.Load() { // it came in between and must not be undone
			c.conn.SetDeadline(past)
			return errStopped
		}
		if err != nil {
			return fmt.Errorf("%s: %w after %v", what, ErrTimeout, d)
		}
	}
	return err
}

// readState reads one state. An end of the connection is ErrControlClosed.
func (c *control) readState() (State, error) {
	var b [1]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return 0, closedError(err)
	}
	return State(int8(b[0])), nil
}

// closedError turns an end of file into ErrControlClosed and leaves other errors as they are.
func closedError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrControlClosed
	}
	return err
}

// writeStates sends states in one write.
func (c *control) writeStates(states ...State) error {
	b := make([]byte, len(states))
	for i, s := range states {
		b[i] = byte(s)
	}
	_, err := c.conn.Write(b)
	return err
}

// writeServerError sends SERVER_ERROR with its two numbers. The second, an errno, is 0: ours would mean nothing.
func (c *control) writeServerError(code Code) error {
	var b [9]byte
	b[0] = 0xFE // SERVER_ERROR, -2
	binary.BigEndian.PutUint32(b[1:], uint32(code))
	_, err := c.conn.Write(b[:])
	return err
}

// readServerError reads what follows SERVER_ERROR. Servers from 3.9 to 3.19 leave out the second number at times.
func (c *control) readServerError() (code Code, errno int32, err error) {
	var b [8]byte
	n, err := io.ReadFull(c.conn, b[:])
	if n < 4 {
		return 0, 0, closedError(err)
	}
	code = Code(int32(binary.BigEndian.Uint32(b[:])))
	if n == len(b) {
		errno = int32(binary.BigEndian.Uint32(b[4:]))
	}
	return code, errno, nil
}

// readMessage reads a JSON message: a big-endian length and that many bytes. Lengths of 0 or above limit are refused
// before anything is allocated.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, closedError(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > uint32(limit) {
		return nil, fmt.Errorf("JSON message of %d bytes, allowed are 1 to %d", n, limit)
	}
	// Grow with what arrives, not with what is announced.
	var buf bytes.Buffer
	buf.Grow(min(int(n), 4096))
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return nil, closedError(err)
	}
	// Some peers count a terminating NUL.
	return bytes.TrimRight(buf.Bytes(), "\x00"), nil
}

// writeMessage sends a JSON message in one write.
func writeMessage(w io.Writer, text []byte) error {
	b := make([]byte, 4+len(text))
	binary.BigEndian.PutUint32(b, uint32(len(text)))
	copy(b[4:], text)
	_, err := w.Write(b)
	return err
}

// lingerClose closes a connection so that what was sent last arrives: half-close, then read until the peer closes, but
// at most d. A plain close with unread data resets the connection and may destroy what is still on its way; netstack
// drops even what was not sent yet.
func lingerClose(conn net.Conn, clock Clock, d time.Duration) {
	defer conn.Close()
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	conn.SetReadDeadline(time.Now().Add(hangGuard))
	t := clock.AfterFunc(d, func() { conn.SetReadDeadline(past) })
	defer t.Stop()
	var buf [2048]byte
	for {
		if _, err := conn.Read(buf[:]); err != nil {
			return
		}
	}
}

// isTimeout reports whether err comes from a deadline.
func isTimeout(err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}
