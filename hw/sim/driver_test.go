package sim

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"dwnet/hw"
)

// hangGuard is how long a test waits for what must come; only a broken simulator reaches it.
const hangGuard = 20 * time.Second

// testDriver is the least that can drive a board: one transmit and one receive ring, buffer per descriptor. It is written
// from the register documentation alone.
type testDriver struct {
	t    testing.TB
	b    *Board
	port hw.Port
	r    hw.Registers
	irq  hw.Interrupt

	n        int // entries of each ring
	bufBytes int
	txRing   hw.Memory
	rxRing   hw.Memory
	txBuf    hw.Memory
	rxBuf    hw.Memory
	txProd   int
	txCons   int
	rxCons   int
	enhanced bool
	atds     bool
	cic      uint32
	icEvery  int
	opMode   uint32
	config   uint32
	deadline time.Time
}

type driverOptions struct {
	ring   int
	config uint32 // more bits of the MAC configuration
	opMode uint32 // more bits of the operation mode
	speed  int
	mask   uint32 // interrupts to enable
	atds   bool
	buf    int
}

const testIntMask = stTI | stRI | stRU | stFBI | stUNF | stOVF | stNIS | stAIS

// openDriver brings a board up with the receiver and the transmitter running.
func openDriver(t testing.TB, b *Board, o driverOptions) *testDriver {
	t.Helper()
	d := &testDriver{t: t, b: b, n: o.ring, icEvery: 1, bufBytes: 1536}
	if d.n == 0 {
		d.n = 64
	}
	if o.buf != 0 {
		d.bufBytes = o.buf
	}
	d.port = b.Port()
	d.r = d.port.Registers()
	d.irq = d.port.Interrupt()
	d.enhanced = d.r.Load32(regFeature)&featEnhanced != 0
	d.atds = o.atds
	d.resetMAC()
	d.allocate()
	d.setUp(o)
	return d
}

func (d *testDriver) resetMAC() {
	d.t.Helper()
	d.r.Store32(regBusMode, busSWR)
	for i := 0; d.r.Load32(regBusMode)&busSWR != 0; i++ {
		if i > 10000 {
			d.t.Fatal("software reset does not end")
		}
		d.pause(time.Microsecond)
	}
}

// pause lets simulated time pass.
func (d *testDriver) pause(p time.Duration) {
	if c, ok := d.port.Clock().(*SteppedClock); ok {
		c.Advance(p)
		return
	}
	d.port.Clock().Sleep(p)
}

func (d *testDriver) stride() int {
	if d.atds {
		return 32
	}
	return 16
}

func (d *testDriver) allocate() {
	d.t.Helper()
	alloc := func(n int) hw.Memory {
		m, err := d.port.Alloc(n, 64)
		if err != nil {
			d.t.Fatal(err)
		}
		return m
	}
	d.txRing, d.rxRing = alloc(d.n*d.stride()), alloc(d.n*d.stride())
	d.txBuf, d.rxBuf = alloc(d.n*2048), alloc(d.n*d.rxStride())
}

// rxStride is the distance between receive buffers.
func (d *testDriver) rxStride() int { return max(2048, d.bufBytes) }

func (d *testDriver) setUp(o driverOptions) {
	r := d.r
	mode := uint32(busUSP | bus8xPBL | 4<<busPBL | 4<<busRPBL)
	if d.atds {
		mode |= busATDS
	}
	r.Store32(regBusMode, mode)
	r.Store32(regMMCMaskRX, all32)
	r.Store32(regMMCMaskTX, all32)
	r.Store32(regIPCMask, all32)
	r.Store32(regIntMask, 0x60F)
	for i := range d.n {
		d.armRX(i)
	}
	r.Store32(regRXBase, d.rxRing.Bus())
	r.Store32(regTXBase, d.txRing.Bus())
	a := d.port.Info().Address
	r.Store32(regAddress0, 1<<31&^(1<<31)|uint32(binary.LittleEndian.Uint16(a[4:])))
	r.Store32(regAddress0+4, binary.LittleEndian.Uint32(a[:4]))
	r.Store32(regFilter, filterPM)
	r.Store32(regStatus, 0x1FFFF)
	if o.mask == 0 {
		o.mask = testIntMask
	}
	r.Store32(regIntEnable, o.mask)
	d.opMode = opRSF | opTSF | opOSF | opSR | opST | o.opMode
	r.Store32(regOpMode, d.opMode)
	d.config = o.config | cfgDM | cfgJD | cfgRE | cfgTE
	switch o.speed {
	case 100:
		d.config |= cfgPS | cfgFES
	case 10:
		d.config |= cfgPS
	}
	r.Store32(regConfig, d.config)
}

func (d *testDriver) armRX(i int) {
	at := i * d.stride()
	size := uint32(d.bufBytes)
	if d.enhanced {
		if i == d.n-1 {
			size |= erRER
		}
	} else if i == d.n-1 {
		size |= nrRER
	}
	d.rxRing.Store32(at+8, d.rxBuf.Bus()+uint32(i*d.rxStride()))
	d.rxRing.Store32(at+12, 0)
	d.rxRing.Store32(at+4, size)
	d.rxRing.Barrier()
	d.rxRing.Store32(at, descOWN)
}

// queue puts a frame into the ring without a kick. It returns false if the ring is full.
func (d *testDriver) queue(p []byte) bool {
	if d.txProd-d.txCons == d.n {
		d.reclaim()
		if d.txProd-d.txCons == d.n {
			return false
		}
	}
	i := d.txProd % d.n
	d.txBuf.CopyIn(i*2048, p)
	d.fillTX(i, len(p), (d.txProd+1)%d.icEvery == 0, true)
	d.txProd++
	return true
}

func (d *testDriver) fillTX(i, n int, ic, own bool) {
	at := i * d.stride()
	d.txRing.Store32(at+8, d.txBuf.Bus()+uint32(i*2048))
	d.txRing.Store32(at+12, 0)
	w0, w1 := uint32(0), uint32(n)
	if own {
		w0 = descOWN
	}
	if d.enhanced {
		w0 |= etFS | etLS | d.cic<<etCIC
		if ic {
			w0 |= etIC
		}
		if i == d.n-1 {
			w0 |= etTER
		}
	} else {
		w1 |= ntFS | ntLS | d.cic<<ntCIC
		if ic {
			w1 |= ntIC
		}
		if i == d.n-1 {
			w1 |= ntTER
		}
	}
	d.txRing.Store32(at+4, w1)
	d.txRing.Barrier()
	d.txRing.Store32(at, w0)
}

func (d *testDriver) kick() {
	d.txRing.Barrier()
	d.r.Store32(regTXPoll, 1)
}

// reclaim takes back what was sent and returns the status words of the frames.
func (d *testDriver) reclaim() []uint32 {
	var st []uint32
	for d.txCons != d.txProd {
		w := d.txRing.Load32(d.txCons % d.n * d.stride())
		if w&descOWN != 0 {
			break
		}
		st = append(st, w&txStatusMask)
		d.txCons++
	}
	return st
}

// send sends one frame.
func (d *testDriver) send(p []byte) {
	d.t.Helper()
	if !d.queue(p) {
		d.t.Fatal("transmit ring full")
	}
	d.kick()
}

// received is a frame as it was found in memory, with its FCS.
type received struct {
	status uint32
	ext    uint32
	data   []byte
}

func (r received) frame() []byte { return r.data[:len(r.data)-fcsBytes] }

// poll takes one frame out of the receive ring.
func (d *testDriver) poll() (received, bool) {
	i := d.rxCons % d.n
	at := i * d.stride()
	st := d.rxRing.Load32(at)
	if st&descOWN != 0 {
		return received{}, false
	}
	r := received{status: st, data: make([]byte, min(int(st>>rxFL&0x3FFF), d.bufBytes))}
	if d.atds {
		r.ext = d.rxRing.Load32(at + 16)
	}
	d.rxBuf.CopyOut(r.data, i*d.rxStride())
	d.armRX(i)
	d.rxCons++
	return r, true
}

// progress puts the hang guard off.
func (d *testDriver) progress() { d.deadline = time.Now().Add(hangGuard) }

// wait serves interrupts until done says so.
func (d *testDriver) wait(what string, done func() bool) {
	d.t.Helper()
	d.progress()
	for !done() {
		if time.Now().After(d.deadline) {
			d.t.Fatalf("%s: no %s; status 0x%08x stats %+v violations %v", d.b.Name(), what, d.r.Load32(regStatus), d.b.Stats(), d.b.Violations())
		}
		if c, ok := d.port.Clock().(*SteppedClock); ok {
			c.Advance(10 * time.Microsecond)
			d.r.Store32(regStatus, d.r.Load32(regStatus)&0x1FFFF)
			continue
		}
		if _, err := d.irq.Wait(10 * time.Millisecond); err != nil {
			d.t.Fatal(err)
		}
		d.r.Store32(regStatus, d.r.Load32(regStatus)&0x1FFFF)
		if err := d.irq.Enable(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// next waits for a frame.
func (d *testDriver) next() received {
	d.t.Helper()
	var r received
	d.wait("frame", func() (ok bool) {
		r, ok = d.poll()
		if ok {
			d.r.Store32(regRXPoll, 1)
		}
		return ok
	})
	return r
}

// sent waits until everything was sent and returns the status words.
func (d *testDriver) sent() []uint32 {
	d.t.Helper()
	var st []uint32
	d.wait("completion", func() bool {
		st = append(st, d.reclaim()...)
		return d.txCons == d.txProd
	})
	return st
}

// linkUp waits for the link.
func (d *testDriver) linkUp() {
	d.t.Helper()
	for i := 0; d.r.Load32(regRGMIIStatus)&rgmiiUp == 0; i++ {
		if i > 100000 {
			d.t.Fatal("no link")
		}
		d.pause(20 * time.Microsecond)
	}
}

// makeFrame is a frame of n bytes to a destination, with a recognisable body.
func makeFrame(to, from [6]byte, n int) []byte {
	p := make([]byte, n)
	copy(p, to[:])
	copy(p[6:], from[:])
	binary.BigEndian.PutUint16(p[12:], 0x88B5) // local experimental EtherType 1 (IEEE 802)
	for i := 14; i < n; i++ {
		p[i] = byte(i*7 + n)
	}
	return p
}

func newBoard(t testing.TB, o Options) *Board {
	t.Helper()
	b, err := NewBoard(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func connect(t testing.TB, a, b End, o CableOptions) *Cable {
	t.Helper()
	c, err := Connect(a, b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func noViolations(t testing.TB, boards ...*Board) {
	t.Helper()
	for _, b := range boards {
		for _, v := range b.Violations() {
			t.Errorf("violation: %v", v)
		}
	}
}

func equalFrame(t testing.TB, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("frame of %d bytes arrived as %d bytes:\n got %x\nwant %x", len(want), len(got), got, want)
	}
}
