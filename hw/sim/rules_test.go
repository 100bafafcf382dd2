package sim

import (
	"strings"
	"testing"
	"time"

	"dwnet/hw"

	"github.com/google/go-cmp/cmp"
)

// breaches has for each rule a way to break it, and for some a neighbour that must not be reported.
var breaches = []struct {
	rule Rule
	name string
	do   func(x *bench)
	fine bool // not a breach
}{
	{RuleLostKick, "OWN without a poll demand", func(x *bench) {
		x.queue(makeFrame(hostMAC, x.mac(), 60))
		x.clock.Advance(LostKickTime + time.Millisecond)
	}, false},
	{RuleLostKick, "poll demand before OWN", func(x *bench) {
		x.kick()
		x.clock.Advance(time.Millisecond)
		x.queue(makeFrame(hostMAC, x.mac(), 60))
		x.clock.Advance(2 * LostKickTime)
	}, false},
	{RuleLostKick, "poll demand just in time", func(x *bench) {
		x.queue(makeFrame(hostMAC, x.mac(), 60))
		x.clock.Advance(LostKickTime - time.Millisecond)
		x.kick()
		x.clock.Advance(2 * LostKickTime)
	}, true},
	{RuleLostKick, "poll demands for nothing", func(x *bench) {
		for range 5 {
			x.kick()
			x.r.Store32(regRXPoll, 1)
			x.clock.Advance(LostKickTime)
		}
	}, true},
	{RuleOwnedStore, "transmit", func(x *bench) {
		x.send(makeFrame(hostMAC, x.mac(), 60))
		x.clock.Advance(time.Microsecond / 2)
		x.txRing.Store32(4, 0)
	}, false},
	{RuleOwnedStore, "receive", func(x *bench) { x.rxRing.Store32(16, descOWN) }, false},
	{RuleOwnedStore, "by a copy", func(x *bench) { x.rxRing.CopyIn(8, make([]byte, 4)) }, false},
	{RuleOwnedStore, "while stopped", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opSR)
		x.rxRing.Store32(16, 0)
	}, true},
	{RuleOwnedStore, "of one's own", func(x *bench) {
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
		x.rxRing.Store32(4, 1536)
	}, true},
	{RuleWriteTooFast, "filter at 1000", func(x *bench) {
		x.r.Store32(regFilter, 0)
		x.clock.Advance(31)
		x.r.Store32(regFilter, 0)
	}, false},
	{RuleWriteTooFast, "filter at 1000 in time", func(x *bench) {
		x.r.Store32(regFilter, 0)
		x.clock.Advance(32)
		x.r.Store32(regFilter, 0)
	}, true},
	{RuleWriteTooFast, "configuration at 10", func(x *bench) {
		x.r.Store32(regConfig, x.config|cfgPS)
		x.clock.Advance(1599)
		x.r.Store32(regConfig, x.config|cfgPS)
	}, false},
	{RuleWriteTooFast, "configuration at 100 in time", func(x *bench) {
		x.r.Store32(regConfig, x.config|cfgPS|cfgFES)
		x.clock.Advance(160)
		x.r.Store32(regConfig, x.config|cfgPS|cfgFES)
	}, true},
	{RuleWriteTooFast, "different registers", func(x *bench) {
		x.r.Store32(regHashHigh, 0)
		x.r.Store32(regHashLow, 0)
	}, true},
	{RuleStartOrder, "RE before SR", func(x *bench) {
		x.resetMAC()
		x.r.Store32(regConfig, cfgRE)
	}, false},
	{RuleStartOrder, "TE before ST", func(x *bench) {
		x.resetMAC()
		x.r.Store32(regConfig, cfgTE)
	}, false},
	{RuleStartOrder, "ST without a list", func(x *bench) {
		x.resetMAC()
		x.r.Store32(regOpMode, opST)
	}, false},
	{RuleBaseWhileRunning, "transmit", func(x *bench) { x.r.Store32(regTXBase, x.txRing.Bus()) }, false},
	{RuleBaseWhileRunning, "receive", func(x *bench) { x.r.Store32(regRXBase, x.rxRing.Bus()) }, false},
	{RuleBaseWhileRunning, "stopped", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opST)
		x.r.Store32(regTXBase, x.txRing.Bus())
	}, true},
	{RuleTSFWhileRunning, "off", func(x *bench) { x.r.Store32(regOpMode, x.opMode&^opTSF) }, false},
	{RuleTSFWhileRunning, "stopped", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opST)
		x.r.Store32(regOpMode, x.opMode&^(opST|opTSF))
	}, true},
	{RuleUseAfterClose, "register read", func(x *bench) { x.port.Close(); x.r.Load32(regVersion) }, false},
	{RuleUseAfterClose, "register write", func(x *bench) { x.port.Close(); x.r.Store32(regTXPoll, 0) }, false},
	{RuleUseAfterClose, "memory load", func(x *bench) { x.port.Close(); x.txRing.Load32(0) }, false},
	{RuleUseAfterClose, "memory store", func(x *bench) { x.port.Close(); x.txRing.Store32(0, 0) }, false},
	{RuleUseAfterClose, "copy in", func(x *bench) { x.port.Close(); x.txBuf.CopyIn(0, []byte{1}) }, false},
	{RuleUseAfterClose, "copy out", func(x *bench) { x.port.Close(); x.txBuf.CopyOut(make([]byte, 1), 0) }, false},
	{RuleUseAfterClose, "freed block", func(x *bench) { x.port.Free(x.txBuf); x.txBuf.CopyOut(make([]byte, 1), 0) }, false},
	{RuleUseAfterClose, "Wake and Wait", func(x *bench) {
		x.port.Close()
		x.irq.Wake()
		x.irq.Wait(0)
		x.irq.Enable()
		x.port.Free(x.txBuf)
		x.port.Close()
	}, true},
	{RuleUnknownRegister, "read", func(x *bench) { x.r.Load32(0x3000) }, false},
	{RuleReadOnlyWrite, "version", func(x *bench) { x.r.Store32(regVersion, 0) }, false},
	{RuleReservedBits, "interrupt enable", func(x *bench) { x.r.Store32(regIntEnable, 1<<11) }, false},
	{RuleReservedBits, "mode", func(x *bench) { x.r.Store32(regOpMode, x.opMode|1<<17) }, false},
	{RuleReservedBits, "status takes anything", func(x *bench) { x.r.Store32(regStatus, all32) }, true},
	{RuleReservedBits, "MMC masks take anything", func(x *bench) { x.r.Store32(regMMCMaskRX, all32) }, true},
	{RuleMDIOBusy, "command", func(x *bench) { x.r.Store32(regMIIAddress, 4<<miiCR|miiGB); x.r.Store32(regMIIAddress, 4<<miiCR|miiGB) }, false},
	{RuleMDIOBusy, "data write", func(x *bench) { x.r.Store32(regMIIAddress, 4<<miiCR|miiGB); x.r.Store32(regMIIData, 0) }, false},
	{RuleMDIOBusy, "data read", func(x *bench) { x.r.Store32(regMIIAddress, 4<<miiCR|miiGB); x.r.Load32(regMIIData) }, false},
	{RuleMDIOBusy, "polling", func(x *bench) { x.r.Store32(regMIIAddress, 4<<miiCR|miiGB); x.r.Load32(regMIIAddress) }, true},
	{RuleMDC, "CR 1", func(x *bench) { x.r.Store32(regMIIAddress, 1<<miiCR|miiGB) }, false},
	{RuleMDC, "CR 5", func(x *bench) { x.r.Store32(regMIIAddress, 5<<miiCR|miiGB) }, true},
	{RuleMDC, "reserved CR", func(x *bench) { x.r.Store32(regMIIAddress, 6<<miiCR|miiGB) }, false},
	{RuleFlushBusy, "mode", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode|opFTF)
		x.r.Store32(regOpMode, x.opMode)
	}, false},
	{RuleFlushBusy, "mode afterwards", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode|opFTF)
		x.clock.Advance(10 * time.Microsecond)
		x.r.Store32(regOpMode, x.opMode)
	}, true},
	{RuleResetBusy, "write", func(x *bench) { x.r.Store32(regBusMode, busSWR); x.r.Store32(regFilter, 0) }, false},
	{RuleResetBusy, "poll demand", func(x *bench) { x.r.Store32(regBusMode, busSWR); x.r.Store32(regTXPoll, 0) }, false},
	{RuleResetBusy, "reset while running", func(x *bench) { x.resetMAC() }, true},
	{RuleMixedChain, "in one descriptor", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | ntLS | ntTCH | ntTER | 60, x.txBuf.Bus(), x.txRing.Bus()})
	}, false},
	{RuleMixedChain, "in one list", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | ntLS | ntTCH | 60, x.txBuf.Bus(), x.txRing.Bus() + 16},
			[4]uint32{descOWN, ntFS | ntLS | 60, x.txBuf.Bus(), 0})
	}, false},
	{RuleBufferSize, "receive size odd", func(x *bench) { x.rxWord(1, 1530) }, false},
	{RuleBufferSize, "receive size zero", func(x *bench) { x.rxWord(1, 0) }, false},
	{RuleBufferSize, "receive buffer 2 in a chain", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opSR)
		x.rxRing.Store32(12, x.rxRing.Bus())
		x.rxWord(1, 1536|64<<ntSize2|nrRCH)
	}, false},
	{RuleBufferSize, "transmit size zero", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | ntLS | 60<<ntSize2, x.txBuf.Bus(), x.txBuf.Bus()})
	}, false},
	{RuleFrameSize, "13 bytes", func(x *bench) { x.txWords([4]uint32{descOWN, ntFS | ntLS | 13, x.txBuf.Bus(), 0}) }, false},
	{RuleFrameSize, "14 bytes", func(x *bench) { x.txWords([4]uint32{descOWN, ntFS | ntLS | 14, x.txBuf.Bus(), 0}) }, true},
	{RuleDMAAddress, "transmit buffer", func(x *bench) { x.txWords([4]uint32{descOWN, ntFS | ntLS | 60, 0x1000, 0}) }, false},
	{RuleDMAAddress, "transmit buffer over its block's end", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | ntLS | 60, x.txBuf.Bus() + uint32(x.txBuf.Size()) - 59, 0})
	}, false},
	{RuleDMAAddress, "receive buffer", func(x *bench) { x.rxWord(2, 0) }, false},
	{RuleDMAAddress, "receive list", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opSR)
		x.r.Store32(regRXBase, 0x100)
		x.r.Store32(regOpMode, x.opMode)
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
	}, false},
	{RuleDMAAddress, "freed buffers", func(x *bench) {
		x.port.Free(x.rxBuf)
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
	}, false},
	{RuleDMAAddress, "closed without stopping", func(x *bench) {
		x.port.Close()
		x.hostSend(makeFrame(x.b.opts.Address, hostMAC, 60))
	}, false},
	{RuleOwnOrder, "first before second", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | 60, x.txBuf.Bus(), 0}, [4]uint32{0, ntLS | 60, x.txBuf.Bus(), 0})
	}, false},
	{RuleFirstLast, "no FS", func(x *bench) { x.txWords([4]uint32{descOWN, ntLS | 60, x.txBuf.Bus(), 0}) }, false},
	{RuleFirstLast, "FS twice", func(x *bench) {
		x.txWords([4]uint32{descOWN, ntFS | 60, x.txBuf.Bus(), 0}, [4]uint32{descOWN, ntFS | ntLS | 60, x.txBuf.Bus(), 0})
	}, false},
	{RuleStaleDescriptor, "transmit", func(x *bench) { x.txWords([4]uint32{descOWN | 1, ntFS | ntLS | 60, x.txBuf.Bus(), 0}) }, false},
	{RuleStaleDescriptor, "receive", func(x *bench) { x.rxWord(0, descOWN|rxLS) }, false},
	{RuleNoBarrier, "transmit", func(x *bench) {
		x.send(makeFrame(hostMAC, x.mac(), 60)) // the engine now knows the ring
		x.sent()
		x.txRing.Store32(16+8, x.txBuf.Bus())
		x.txRing.Store32(16+4, ntFS|ntLS|60)
		x.txRing.Store32(16, descOWN)
		x.kick()
	}, false},
	{RuleNoBarrier, "receive", func(x *bench) {
		x.hostSend(makeFrame(x.mac(), hostMAC, 60))
		x.rxRing.Store32(4, 1536)
		x.rxRing.Store32(0, descOWN)
	}, false},
	{RulePBL, "PBL 3", func(x *bench) { x.r.Store32(regBusMode, 3<<busPBL) }, false},
	{RulePBL, "PBL 0", func(x *bench) { x.r.Store32(regBusMode, 0) }, false},
	{RulePBL, "RPBL 64", func(x *bench) { x.r.Store32(regBusMode, busUSP|4<<busPBL|63<<busRPBL) }, false},
	{RulePBL, "RPBL without USP", func(x *bench) { x.r.Store32(regBusMode, 4<<busPBL) }, true},
	{RuleMisalignedBase, "transmit", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opST)
		x.r.Store32(regTXBase, x.txRing.Bus()+4)
	}, false},
	{RuleCICWithoutTSF, "CIC 1", func(x *bench) {
		x.r.Store32(regOpMode, x.opMode&^opST)
		x.r.Store32(regOpMode, x.opMode&^(opST|opTSF))
		x.r.Store32(regOpMode, x.opMode&^opTSF)
		x.txWords([4]uint32{descOWN, ntFS | ntLS | 1<<ntCIC | 60, x.txBuf.Bus(), 0})
	}, false},
	{RuleChecksumTooBig, "64 beats", func(x *bench) {
		x.r.Store32(regBusMode, bus8xPBL|8<<busPBL)
		x.txWords([4]uint32{descOWN, ntFS | ntLS | 3<<ntCIC | 1512, x.txBuf.Bus(), 0})
	}, false},
	{RuleChecksumTooBig, "64 beats, a byte less", func(x *bench) {
		x.r.Store32(regBusMode, bus8xPBL|8<<busPBL)
		x.txWords([4]uint32{descOWN, ntFS | ntLS | 3<<ntCIC | 1511, x.txBuf.Bus(), 0})
	}, true},
	{RuleFlowThreshold, "RFA 3 with 4 KiB", func(x *bench) { x.r.Store32(regOpMode, x.opMode|opEFC|3<<opRFA|3<<opRFD) }, false},
	{RuleFlowThreshold, "RFD below RFA", func(x *bench) { x.r.Store32(regOpMode, x.opMode|opEFC|2<<opRFA|1<<opRFD) }, false},
	{RuleFlowThreshold, "RFA 1 RFD 2", func(x *bench) { x.r.Store32(regOpMode, x.opMode|opEFC|1<<opRFA|2<<opRFD) }, true},
	{RuleAddressOrder, "high half alone", func(x *bench) {
		x.r.Store32(regConfig, x.config&^cfgRE)
		x.clock.Advance(time.Microsecond)
		x.r.Store32(regAddress0+8, 0)
		x.r.Store32(regConfig, x.config)
	}, false},
	{RuleAddressOrder, "both halves", func(x *bench) {
		x.r.Store32(regConfig, x.config&^cfgRE)
		x.clock.Advance(time.Microsecond)
		x.r.Store32(regAddress0+8, 0)
		x.r.Store32(regAddress0+12, 0)
		x.r.Store32(regConfig, x.config)
	}, true},
	{RuleAccessMode, "register", func(x *bench) { x.r.Load32(2) }, false},
	{RuleAccessMode, "memory", func(x *bench) { x.txBuf.Load32(2) }, false},
}

// rxWord changes a word of the first receive descriptor while the engine is stopped, and lets a frame arrive.
func (x *bench) rxWord(w int, v uint32) {
	x.r.Store32(regOpMode, x.opMode&^opSR)
	x.rxRing.Store32(w*4, v)
	x.r.Store32(regRXBase, x.rxRing.Bus())
	x.r.Store32(regOpMode, x.opMode)
	x.hostSend(makeFrame(x.b.opts.Address, hostMAC, 60))
}

func TestEachRuleFires(t *testing.T) {
	fired := map[Rule]bool{}
	for _, c := range breaches {
		t.Run(c.rule.String()+"/"+c.name, func(t *testing.T) {
			var told []Violation
			var x *bench
			x = newBench(t, Options{OnViolation: func(v Violation) {
				told = append(told, v)
				x.b.Stats() // hangs if a lock is held
				x.b.Violations()
			}}, driverOptions{}, gigabit())
			x.clock.Advance(time.Millisecond)
			noViolations(t, x.b)
			c.do(x)
			x.clock.Advance(time.Millisecond)
			got := x.b.Violations()
			if c.fine {
				if len(got) != 0 {
					t.Errorf("reported: %v", got)
				}
				return
			}
			fired[c.rule] = true
			if len(got) != 1 || got[0].Rule != c.rule {
				t.Fatalf("reported %v, want one of %v", got, c.rule)
			}
			if !strings.HasPrefix(got[0].Detail, x.b.Name()+": ") || got[0].Time.IsZero() || got[0].String() == "" {
				t.Errorf("incomplete: %+v", got[0])
			}
			if d := cmp.Diff(got, told); d != "" {
				t.Errorf("OnViolation was told otherwise: %s", d)
			}
			if n := x.b.Stats().Violations; n != 1 {
				t.Errorf("%d counted", n)
			}
			x.b.ClearViolations()
			noViolations(t, x.b)
		})
	}
	for _, r := range Rules() {
		if !fired[r] {
			t.Errorf("no test breaks %v", r)
		}
		if strings.HasPrefix(r.String(), "rule ") {
			t.Errorf("%v has no name", r)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	b, _ := stepped(t, Options{MaxViolations: 3})
	r := b.Port().Registers()
	for range 10 {
		r.Load32(0x3000)
	}
	if n, all := len(b.Violations()), b.Stats().Violations; n != 3 || all != 10 {
		t.Errorf("%d kept, %d counted", n, all)
	}
}

// TestMemoryPanicsOutsideItsBlock: as a slice would, and as hw.Memory says.
func TestMemoryPanicsOutsideItsBlock(t *testing.T) {
	b, _ := stepped(t, Options{})
	m, err := b.Port().Alloc(64, 64)
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(){
		"load":  func() { m.Load32(64) },
		"store": func() { m.Store32(-4, 0) },
		"in":    func() { m.CopyIn(60, make([]byte, 5)) },
		"out":   func() { m.CopyOut(make([]byte, 5), 60) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s outside the block does not panic", name)
				}
			}()
			f()
		}()
	}
	_ = hw.Memory(m)
}
