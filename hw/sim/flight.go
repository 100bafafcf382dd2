package sim

import (
	"encoding/binary"
	"hash/crc32"
)

// flight is a frame on its way through a lane. Its buffer is used again and again.
type flight struct {
	buf    []byte
	n      int  // bytes without FCS
	fcsBad bool // the FCS that follows is wrong

	ready, end int64 // when it can leave, and when it has left
	aborted    bool  // flushed or reset away: guarded by the source's lock
	fate       fate
	drawn      bool // the cable has decided about damage and loss
	lost       bool // by the cable

	// A board's frame: where its status goes.
	desc    *block
	descAt  int
	descBus uint32
	d0      uint32
	ic      bool
	status  uint32
	epoch   uint32
}

// fate says where a frame that leaves its source goes.
type fate uint8

const (
	fateSent    fate = iota // onto the cable
	fateLoop                // back into the board that sent it
	fateAborted             // nowhere: flushed
	fateNoLink              // nowhere: the link is down
	fateSpeed               // nowhere: MAC and PHY disagree about the speed
)

// smallBuffer holds any frame of a normal Ethernet; bigger ones get their own.
const smallBuffer = 2048

func (f *flight) reset() {
	f.n, f.fcsBad, f.aborted, f.status, f.desc = 0, false, false, 0, nil
	f.ready, f.end = 0, never
	f.fate, f.drawn, f.lost = fateSent, false, false
}

// append adds data to the frame, up to the longest that a MAC sends.
func (f *flight) append(p []byte) {
	p = p[:min(len(p), longestFrame-f.n)]
	f.grow(f.n + len(p))
	f.n += copy(f.buf[f.n:], p)
}

func (f *flight) grow(n int) {
	if n <= len(f.buf) {
		return
	}
	size := max(smallBuffer, len(f.buf))
	for size < n {
		size *= 2
	}
	buf := make([]byte, size)
	copy(buf, f.buf[:f.n])
	f.buf = buf
}

// pad lengthens the frame with zeros.
func (f *flight) pad(n int) {
	f.grow(n)
	clear(f.buf[f.n:n])
	f.n = n
}

func (f *flight) data() []byte { return f.buf[:f.n] }

// takeFCS takes the last four bytes as the frame's own FCS.
func (f *flight) takeFCS() {
	if f.n < fcsBytes {
		f.fcsBad = true
		return
	}
	f.n -= fcsBytes
	if binary.LittleEndian.Uint32(f.buf[f.n:]) != crc32.ChecksumIEEE(f.data()) {
		f.fcsBad = true
	}
}
