package link

import (
	"context"
	"log/slog"
	"time"

	"dwnet/hw"
)

// watchdog is what the poll loop knows of the MAC's health.
type watchdog struct {
	lastTX   time.Time // when a frame last left the ring, or the ring was last empty
	kicked   bool      // stage one was tried since
	rebuilt  bool      // stage two was tried since
	lastRX   time.Time // when a frame was last received, or none was missed
	rxFrames uint64
	rxLost   uint64
	broken   bool      // the last reset failed
	retry    time.Time // when to try again
}

// progress notes that the transmitter is alive.
func (w *watchdog) progress(now time.Time) {
	w.lastTX, w.kicked, w.rebuilt = now, false, false
}

// handle acts on the causes of an interrupt that need more than a look at the rings.
func (e *Endpoint) handle(c hw.Cause) {
	if c.Gone() {
		e.stats.gone.Add(1)
		e.breakDown("device does not answer")
		return
	}
	if c.TXUnderflow() {
		e.stats.txUnderflows.Add(1)
		e.mac.TX().Kick() // the engine is suspended until it is told to go on
	}
	if c.RXOverflow() {
		e.stats.rxOverflows.Add(1)
	}
	if c.RXUnavailable() {
		e.stats.rxUnavailable.Add(1)
		// The engine may have met a slot just before it was given back, and suspended after Resume had looked.
		e.mac.RX().Resume()
	}
	if c.Fatal() && !e.watch.broken {
		e.stats.fatalErrors.Add(1)
		e.log(slog.LevelWarn, "bus error", "cause", c.String(), "kind", c.BusError())
		e.reset("bus error")
	}
}

// watchTX tells a transmitter that is idle, paused by the peer or merely slow from one that is dead, and repairs a dead one
// in stages: poll demand, restart of the engine, full reset.
func (e *Endpoint) watchTX(now time.Time) {
	w := &e.watch
	if w.broken {
		if !now.Before(w.retry) {
			e.reset("retry")
		}
		return
	}
	tx := e.mac.TX()
	switch idle := now.Sub(w.lastTX); {
	case tx.Pending() == 0 || !e.linkUp.Load():
		w.lastTX = now // but no progress: a restart empties the ring, which proves nothing
	case idle < e.opts.HangTime/2:
	case e.mac.Debug().PausedByPeer():
		e.stats.txPaused.Add(1)
		w.progress(now)
	case !w.kicked && !w.rebuilt:
		w.kicked = true
		e.stats.txRekicks.Add(1)
		tx.Kick()
	case idle < e.opts.HangTime:
	case !w.rebuilt:
		w.rebuilt = true
		e.restartTX()
	default: // silent after a restart as well
		e.reset("transmitter is stuck")
	}
}

// rxDeadLosses is how many frames must have been missed, with none received, for the receiver to be taken for dead.
const rxDeadLosses = 4

// watchRX finds a receive engine that is dead after an overflow: frames are counted as missed, the ring has room, and none
// arrives. An idle link misses nothing.
func (e *Endpoint) watchRX(now time.Time) {
	w := &e.watch
	if w.broken {
		return
	}
	c := e.mac.Counters()
	lost := c.RXMissed + overflows(c, e.mac.Feature())
	frames := e.stats.rxPackets.Load() + e.mac.RX().Stats().Frames + e.mac.RX().Stats().Errors
	if frames != w.rxFrames || lost == w.rxLost {
		w.lastRX, w.rxFrames, w.rxLost = now, frames, lost
		return
	}
	if lost < w.rxLost+rxDeadLosses {
		w.lastRX = now
		return
	}
	if now.Sub(w.lastRX) >= e.opts.HangTime/2 {
		e.stats.rxDead.Add(1)
		e.reset("receiver is dead")
		w.lastRX, w.rxFrames, w.rxLost = now, frames, lost
	}
}

// overflows is the number of frames lost in the receive FIFO. The DMA's own counter also counts runts that the MAC dropped,
// which say nothing about the driver, so it only stands in where there are no MMC counters.
func overflows(c hw.Counters, f hw.Feature) uint64 {
	if f == 0 || f.Has(hw.FeatMMC) {
		return c.RXFIFOOverflow
	}
	return c.RXOverflow
}

// restartTX restarts the transmit engine alone. Frames in the ring are lost; TCP sends them again.
func (e *Endpoint) restartTX() {
	e.pause(true)
	flushed := e.mac.TX().Stats().Flushed
	err := e.mac.RestartTX()
	e.pause(false)
	lost := e.mac.TX().Stats().Flushed - flushed
	e.stats.txRestarts.Add(1)
	e.stats.txFlushed.Add(lost)
	e.log(slog.LevelWarn, "transmit engine restarted", "lost", lost, "err", err)
	if err != nil {
		e.reset("transmit engine does not restart")
	}
}

// reset resets the whole MAC and restores its state. Connections live on: what was in the rings is lost like frames on a
// bad wire, what waits in the queue is sent afterwards.
func (e *Endpoint) reset(why string) {
	e.pause(true)
	flushed := e.mac.TX().Stats().Flushed
	err := e.mac.Reset()
	if err == nil {
		err = e.mac.Start()
	}
	lost := e.mac.TX().Stats().Flushed - flushed
	e.stats.resets.Add(1)
	e.stats.txFlushed.Add(lost)
	e.log(slog.LevelWarn, "MAC reset", "why", why, "lost", lost, "err", err)
	if err != nil {
		e.stats.resetsFailed.Add(1)
		e.breakDown(err.Error())
		return
	}
	e.watch.broken = false
	e.watch.progress(e.clock.Now())
	e.mac.EnableInterrupts()
	e.cfgChange.Store(true) // wishes that came while the registers did not hold
	e.pause(false)
}

// breakDown leaves the transmitter paused and has the reset tried again later. Packets are still queued, up to the limit.
func (e *Endpoint) breakDown(why string) {
	if !e.watch.broken {
		e.pause(true)
		e.log(slog.LevelError, "MAC is out of order", "why", why)
	}
	e.watch.broken = true
	e.watch.retry = e.clock.Now().Add(e.opts.HangTime)
}

// pause keeps writers off the ring while it is rebuilt. The lock is not held meanwhile.
func (e *Endpoint) pause(on bool) {
	e.txmu.Lock()
	e.paused = on
	e.txmu.Unlock()
	if !on {
		e.pending.Store(true)
	}
}

// report logs an error that nobody is waiting for, and counts it.
func (e *Endpoint) report(what string, err error) {
	if err == nil || e.stopping.Load() {
		return
	}
	e.stats.hardwareErrors.Add(1)
	e.log(slog.LevelWarn, what, "err", err)
}

func (e *Endpoint) log(level slog.Level, msg string, args ...any) {
	if e.opts.Logger != nil {
		e.opts.Logger.Log(context.Background(), level, msg, append([]any{"port", e.port.Info().Name}, args...)...)
	}
}
