package hw

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The order of Stop (as documented for this core and as Linux does it): interrupts masked, ST off, transmitter drained, RE and
// TE off in one write, receiver drained, SR off, and the states prove it.
func TestStopOrder(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.stopDelay = 20 * time.Microsecond
	mark := b.mac.mark()
	if err := b.m.Stop(); err != nil {
		t.Fatal(err)
	}
	var got []string
	var last uint32
	for _, a := range b.mac.log[mark:] {
		switch {
		case a.write:
			got = append(got, fmt.Sprintf("%04x=%08x", a.off, a.v))
		case a.off != last || len(got) > 0 && strings.Contains(got[len(got)-1], "="):
			got = append(got, fmt.Sprintf("%04x", a.off))
		}
		last = a.off
	}
	want := []string{
		"101c=00000000", "1018=02201306", "1014", "0024", "0000=00610c00", "0024", "1018=02201304", "1014",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if err := b.m.Stop(); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	b.checkRules()
}

// LIFE-01: frames in flight at Stop do not come back: after Start all slots are free, whatever was under way, a thousand times.
func TestLIFE01_StopStart(t *testing.T) {
	b := newBench(t, Config{TXSlots: 8, RXSlots: 4})
	for i := range 1000 {
		for k := range i % 9 {
			b.send(frame(60, k), TXFlags{})
		}
		for range i % 3 {
			b.dma.sendOne()
		}
		b.dma.receive(frame(60, i), rdFT)
		if err := b.m.Stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		if b.m.TX().Free() != 8 || b.m.TX().Pending() != 0 {
			t.Fatalf("round %d: %d free", i, b.m.TX().Free())
		}
		b.dma.sent = nil
		b.dma.sendAll()
		if len(b.dma.sent) != 0 {
			t.Fatalf("round %d: old frames went out", i)
		}
		if d := b.m.TX().Reclaim(); d != (TXDone{}) {
			t.Fatalf("round %d: reclaimed %+v", i, d)
		}
		b.send(frame(70, i), TXFlags{})
		b.dma.sendAll()
		b.checkSent(frame(70, i))
		b.m.TX().Reclaim()
	}
	b.checkRules()
}

// LNK-06: at 10 Mbit/s the transmitter gets the time that its FIFO takes, more than 2.5 ms, before TE goes off and before
// anything is flushed.
func TestLNK06_StopWaitsForSlowWire(t *testing.T) {
	for _, busy := range []time.Duration{0, 2500 * time.Microsecond, 10 * time.Millisecond} {
		b := newBench(t, Config{})
		if err := b.m.SetLink(Link{Speed: 10}); err != nil {
			t.Fatal(err)
		}
		b.mac.drainAt = b.clk.Now().Add(busy)
		mark := b.mac.mark()
		if err := b.m.Stop(); err != nil {
			t.Fatal(err)
		}
		for _, a := range b.mac.writes(mark) {
			if a.off == 0x1018 && a.v&(1<<20) != 0 {
				t.Errorf("busy for %v: flushed", busy)
			}
			if a.off == 0 && a.at.Before(b.mac.drainAt) {
				t.Errorf("busy for %v: TE off too early", busy)
			}
		}
	}
}

// A transmitter that the peer holds with PAUSE frames is flushed, and the register is not written while that goes on:
// Linux once polled the flush by writing.
func TestStopFlushesAHeldTransmitter(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.drainAt = b.clk.Now().Add(time.Hour)
	mark := b.mac.mark()
	if err := b.m.Stop(); err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, a := range b.mac.writes(mark) {
		if a.off == 0x1018 {
			ops = append(ops, OperationMode(a.v).String())
		}
	}
	want := []string{"SR OSF EFC RFA=1 RFD=2 TSF RSF", "SR OSF EFC RFA=1 RFD=2 FTF TSF RSF", "OSF EFC RFA=1 RFD=2 TSF RSF"}
	if d := cmp.Diff(want, ops); d != "" {
		t.Error(d)
	}
	b.checkRules()
}

// Engines that do not stop are reset, and everything is restored for the next Start.
func TestStopFallsBackToReset(t *testing.T) {
	b := newBench(t, Config{})
	_ = b.m.SetLink(Link{Speed: 100, FullDuplex: true, RXPause: true, TXPause: true})
	_ = b.m.SetFilter(Filter{Promiscuous: true})
	b.mac.stopDelay = time.Hour
	if err := b.m.Stop(); err != nil {
		t.Fatal(err)
	}
	b.mac.stopDelay = 0
	for off, want := range map[uint32]uint32{
		0: 0x0061CC00, 4: 0x81, 0x18: 0xFFFF0006, 0x40: 0x80000100, 0x44: 0xC1061E00, 0x10C: 0xFFFFFFFF, 0x110: 0xFFFFFFFF,
		0x200: 0xFFFFFFFF, 0x3C: 0x60F, 0x1000: 0x01880400, 0x1018: 0x02201304, 0x101C: 0,
	} {
		if v := b.mac.get(off); v != want {
			t.Errorf("0x%x holds 0x%x, want 0x%x", off, v, want)
		}
	}
	b.start()
	b.dma.receive(frame(60, 1), rdFT)
	if len(good(b.drain())) != 1 {
		t.Error("nothing received after that")
	}
	b.checkRules()
}

// A reset wipes every register; Reset brings back address, filters, speed, pause, masks and
// empty rings, and leaves the MAC stopped.
func TestResetRestoresEverything(t *testing.T) {
	b := newBench(t, Config{TXSlots: 4, RXWatchdog: 0x20})
	l := Link{Speed: 100, FullDuplex: true, RXPause: true}
	f := Filter{Multicast: [][6]byte{{0x01, 0, 0x5E, 0, 0, 1}}, Unicast: [][6]byte{{2, 0, 0, 0, 0, 9}}}
	if err := errors.Join(b.m.SetLink(l), b.m.SetFilter(f)); err != nil {
		t.Fatal(err)
	}
	before := map[uint32]uint32{}
	for _, r := range RegisterTable() {
		before[r.Offset] = b.mac.get(r.Offset)
	}
	b.send(frame(60, 1), TXFlags{})
	b.dma.receive(frame(60, 1), rdFT)
	b.m.EnableInterrupts()
	if err := b.m.Reset(); err != nil {
		t.Fatal(err)
	}
	for off, v := range before {
		want := v
		switch off {
		case 0:
			want &^= 3 << 2
		case 0x1018:
			want &^= 1<<1 | 1<<13
		case 0x10, 0x14:
			continue
		}
		if got := b.mac.get(off); got != want {
			t.Errorf("0x%04x holds 0x%08x, want 0x%08x", off, got, want)
		}
	}
	if b.m.TX().Pending() != 0 || b.m.TX().Stats().Flushed != 1 || b.m.Link() != l {
		t.Errorf("%d pending, link %v", b.m.TX().Pending(), b.m.Link())
	}
	if d := cmp.Diff(f, b.m.Filter()); d != "" {
		t.Error(d)
	}
	if _, ok := b.m.RX().Next(); ok {
		t.Error("a frame from before the reset")
	}
	b.start()
	b.dma.receive(frame(61, 1), rdFT)
	if g := good(b.drain()); len(g) != 1 || len(g[0]) != 61 {
		t.Error("nothing received after that")
	}
	b.checkRules()
}

// A second MAC configuration write comes at least four cycles of the slowest clock after the first, and one that changes nothing
// does not come at all: two in a row have left the transmitter of Amlogic parts dead.
func TestConfigurationIsWrittenOnce(t *testing.T) {
	b := newBench(t, Config{})
	mark := b.mac.mark()
	for range 3 {
		_ = b.m.SetLink(Link{Speed: 1000, FullDuplex: true})
	}
	if w := b.mac.writes(mark); len(w) != 0 {
		t.Errorf("written without need: %v", trace(w))
	}
	for _, s := range []int{100, 10, 1000, 10, 100} {
		_ = b.m.SetLink(Link{Speed: s, FullDuplex: s != 10, RXPause: s == 100})
	}
	var at []time.Time
	for _, a := range b.mac.writes(mark) {
		if a.off == 0 {
			at = append(at, a.at)
		}
	}
	if len(at) != 5 {
		t.Fatalf("%d writes for 5 changes", len(at))
	}
	for i := 1; i < len(at); i++ {
		if d := at[i].Sub(at[i-1]); d < 2*time.Microsecond {
			t.Errorf("write %d comes %v after the one before", i, d)
		}
	}
	b.checkRules()
}

// LIFE-03: Close ends with the engines stopped and the MAC off before memory goes, and afterwards nothing touches the device
// or the memory.
func TestLIFE03_Close(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.stopDelay = 100 * time.Microsecond
	b.m.EnableInterrupts()
	b.send(frame(60, 1), TXFlags{})
	b.dma.receive(frame(60, 1), rdFT)
	b.m.RX().Next()
	b.mac.set(0x118, 7)
	if err := b.m.Close(); err != nil {
		t.Fatal(err)
	}
	if len(b.blocks) != 0 || b.mac.rxState|b.mac.txState != 0 || b.mac.get(0x101C) != 0 ||
		b.mac.get(0x1018)&(1<<1|1<<13) != 0 || b.mac.get(0)&(3<<2) != 0 {
		t.Errorf("%d blocks, operation mode %v, configuration %v", len(b.blocks), OperationMode(b.mac.get(0x1018)), MACConfig(b.mac.get(0)))
	}
	if !slices.Equal(b.order[2:], []string{"free 2", "free 1"}) {
		t.Errorf("memory: %v", b.order)
	}
	mark := b.mac.mark()
	tx, rx := b.m.TX(), b.m.RX()
	tx.Write(0, frame(60, 1))
	if err := tx.Commit(60, TXFlags{}); !errors.Is(err, ErrClosed) {
		t.Errorf("Commit: %v", err)
	}
	tx.Kick()
	if d := tx.Reclaim(); d != (TXDone{}) {
		t.Errorf("Reclaim: %+v", d)
	}
	_, _, _ = tx.Free(), tx.Pending(), tx.Stats()
	if _, ok := rx.Next(); ok {
		t.Error("Next finds a frame")
	}
	rx.CopyOut(make([]byte, 60))
	rx.Release()
	rx.Resume()
	_ = rx.Stats()
	if !b.m.Interrupts().Gone() {
		t.Error("Interrupts")
	}
	b.m.EnableInterrupts()
	b.m.DisableInterrupts()
	_, _, _ = b.m.TXState(), b.m.RXState(), b.m.Debug()
	if b.m.Debug().PausedByPeer() {
		t.Error("a closed MAC is paused by its peer")
	}
	if b.m.Dump() != nil || b.m.DumpAll() != nil {
		t.Error("Dump")
	}
	if c := b.m.Counters(); c.TXFramesGB != 7 {
		t.Errorf("counters: %d", c.TXFramesGB)
	}
	_, err1 := b.m.ReadPHY(0, 0)
	_, _, err2 := b.m.ScanPHY()
	_, up, err3 := b.m.LinkStatus()
	for i, err := range []error{
		err1, err2, err3, b.m.WritePHY(0, 0, 0), b.m.Start(), b.m.Stop(), b.m.Reset(), b.m.RestartTX(),
		b.m.SetLink(Link{Speed: 100}), b.m.SetFilter(Filter{}), b.m.SetAddress([6]byte{2}),
	} {
		if !errors.Is(err, ErrClosed) || up {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if err := b.m.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if n := b.mac.mark() - mark; n != 0 {
		t.Errorf("%d register accesses after Close", n)
	}
	b.checkRules()
}

// A device that cannot be proven to have stopped keeps its memory: freeing it would let the DMA write into somebody else's.
func TestLIFE03_CloseOfADeviceThatDoesNotStop(t *testing.T) {
	b := newBench(t, Config{})
	b.mac.stopDelay = time.Hour
	b.mac.frozen[0x1000] = 1
	if err := b.m.Close(); !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "memory is kept") || len(b.blocks) != 2 {
		t.Errorf("%v, %d blocks", err, len(b.blocks))
	}
	b = newBench(t, Config{})
	b.mac.stopDelay = time.Hour // the reset helps
	if err := b.m.Close(); err != nil || len(b.blocks) != 0 {
		t.Errorf("%v, %d blocks", err, len(b.blocks))
	}
	b = newBench(t, Config{})
	b.mac.gone = true
	if err := b.m.Close(); !errors.Is(err, ErrGone) || len(b.blocks) != 2 {
		t.Errorf("%v, %d blocks", err, len(b.blocks))
	}
}

// A device that is gone is an error at once, not after a time-out, and never a panic.
func TestGone(t *testing.T) {
	b := newBench(t, Config{})
	b.send(frame(60, 1), TXFlags{})
	b.mac.gone = true
	start := b.clk.Now()
	if c := b.m.Interrupts(); !c.Gone() || c.BusError() != "" {
		t.Errorf("cause %v", c)
	}
	b.m.TX().Kick()
	b.m.RX().Resume()
	_, err1 := b.m.ReadPHY(0, 1)
	_, _, err2 := b.m.LinkStatus()
	for i, err := range []error{err1, err2, b.m.SetLink(Link{Speed: 100}), b.m.RestartTX(), b.m.Stop(), b.m.Reset(), b.m.Start()} {
		if !errors.Is(err, ErrGone) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if c := b.m.Counters(); c != (Counters{}) {
		t.Error("counters of a device that is gone")
	}
	_ = b.m.Dump()
	if d := b.clk.Now().Sub(start); d > time.Millisecond {
		t.Errorf("took %v", d)
	}
}

// COE-06: store and forward is on in both directions whenever checksums are inserted, in every state of the MAC.
func TestCOE06_StoreAndForward(t *testing.T) {
	b := newBench(t, Config{})
	_ = b.m.RestartTX()
	_ = b.m.Stop()
	_ = b.m.Reset()
	for _, a := range b.mac.writes(0) {
		if a.off == 0x1018 && a.v != 0 && a.v&(1<<21|1<<25) != 1<<21|1<<25 {
			t.Errorf("operation mode %v", OperationMode(a.v))
		}
	}
}

// COE-03: what limits checksum insertion, by burst and bus (TI's rule: frame below FIFO - (beats + 3) words), and the MTU.
func TestCOE03_Limits(t *testing.T) {
	for _, c := range []struct{ beats, bus, want int }{
		{8, 4, 2003}, {16, 4, 1971}, {32, 4, 1907}, {64, 4, 1779}, {128, 4, 1523},
		{8, 8, 1959}, {16, 8, 1895}, {32, 8, 1767}, {64, 8, 1511}, {128, 8, 999},
	} {
		p := newFakePort(t)
		p.info.BusBytes = c.bus
		b := p.bench(Config{BurstBeats: c.beats, TXSlotBytes: 2032})
		tx := b.m.TX()
		if tx.MaxChecksum() != c.want {
			t.Errorf("%d beats of %d bytes: %d, want %d", c.beats, c.bus, tx.MaxChecksum(), c.want)
		}
		for n, want := range map[int]error{c.want: nil, c.want + 1: ErrConfig} {
			tx.Write(0, make([]byte, n))
			if err := tx.Commit(n, TXFlags{Checksum: CICFull}); !errors.Is(err, want) {
				t.Errorf("%d beats of %d bytes, frame of %d: %v", c.beats, c.bus, n, err)
			}
		}
	}
	for _, c := range []struct{ slot, fifo, want int }{{1536, 2048, 1514}, {2032, 2048, 2010}, {8176, 2048, 2026}, {8176, 1024, 1006}} {
		p := enhancedPort(t)
		p.info.TXFIFOBytes = c.fifo
		if got := p.open(Config{RXSlotBytes: c.slot}).MaxMTU(); got != c.want {
			t.Errorf("slot %d, FIFO %d: MTU %d, want %d", c.slot, c.fifo, got, c.want)
		}
	}
}

// COE-09: lengths on the wire.
func TestCOE09_MaxFrame(t *testing.T) {
	for _, c := range []struct {
		mtu  int
		vlan bool
		want int
	}{{1500, false, 1518}, {1500, true, 1522}, {1982, false, 2000}, {46, false, 64}} {
		if got := MaxFrame(c.mtu, c.vlan); got != c.want {
			t.Errorf("MaxFrame(%d, %v) = %d, want %d", c.mtu, c.vlan, got, c.want)
		}
	}
}

// LIFE-08: two MACs in one process know nothing of each other; closing one leaves the other as it was.
func TestLIFE08_TwoMACs(t *testing.T) {
	a, b := newBench(t, Config{TXSlots: 4}), newBench(t, Config{TXSlots: 4, Address: [6]byte{2}})
	for i := range 20 {
		if i == 5 {
			if err := a.m.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if i < 5 {
			a.send(frame(60, i), TXFlags{})
			a.dma.sendAll()
			a.m.TX().Reclaim()
		}
		b.send(frame(61, i), TXFlags{})
		b.dma.sendAll()
		b.m.TX().Reclaim()
		b.dma.receive(frame(62, i), rdFT)
		if len(good(b.drain())) != 1 {
			t.Fatalf("frame %d was not received", i)
		}
	}
	if len(a.dma.sent) != 5 || len(b.dma.sent) != 20 || b.m.Address() != [6]byte{2} {
		t.Errorf("%d and %d sent", len(a.dma.sent), len(b.dma.sent))
	}
}
