package sim

import (
	"bufio"
	"encoding/binary"
	"io"
)

// The classic pcap format with nanoseconds (draft-ietf-opsawg-pcap).
const (
	pcapMagicNano    = 0xA1B23C4D
	pcapMajor        = 2
	pcapMinor        = 4
	pcapSnapLen      = 1 << 18
	linkTypeEthernet = 1
	pcapBuffer       = 1 << 16
)

// capture writes frames to a pcap file. It is used by one goroutine at a time.
type capture struct {
	w     *bufio.Writer
	clock simClock
	err   error
	dirty bool
}

func newCapture(w io.Writer, clock simClock) *capture {
	c := &capture{w: bufio.NewWriterSize(w, pcapBuffer), clock: clock, dirty: true}
	var h [24]byte
	binary.LittleEndian.PutUint32(h[0:], pcapMagicNano)
	binary.LittleEndian.PutUint16(h[4:], pcapMajor)
	binary.LittleEndian.PutUint16(h[6:], pcapMinor)
	binary.LittleEndian.PutUint32(h[16:], pcapSnapLen)
	binary.LittleEndian.PutUint32(h[20:], linkTypeEthernet)
	c.write(h[:])
	return c
}

func (c *capture) write(p []byte) {
	if _, err := c.w.Write(p); err != nil && c.err == nil {
		c.err = err
	}
}

// frame adds a frame that was put on the wire at a time of the clock.
func (c *capture) frame(d []byte, at int64) {
	if c.err != nil {
		return
	}
	t := c.clock.wall(at)
	var h [16]byte
	binary.LittleEndian.PutUint32(h[0:], uint32(t.Unix()))
	binary.LittleEndian.PutUint32(h[4:], uint32(t.Nanosecond()))
	binary.LittleEndian.PutUint32(h[8:], uint32(len(d)))
	binary.LittleEndian.PutUint32(h[12:], uint32(len(d)))
	c.write(h[:])
	c.write(d)
	c.dirty = true
}

func (c *capture) flush() {
	if !c.dirty {
		return
	}
	c.dirty = false
	if err := c.w.Flush(); err != nil && c.err == nil {
		c.err = err
	}
}
