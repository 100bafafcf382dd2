package link

import (
	"runtime"
	"time"
)

const (
	// tick is how often the poll loop looks after what no interrupt tells: the watchdog, counters that wrap.
	tick = 100 * time.Millisecond
	// safetyPoll bounds how long a completion or a frame whose interrupt was lost lies around while frames are in the ring.
	safetyPoll = 10 * time.Millisecond
	// maxSpin is how many busy turns the loop makes before it lets others run and looks at timers.
	maxSpin = 16
)

// run is the poll loop: wait for the interrupt, which masks itself; acknowledge what the MAC reports, and only then look at
// the rings, so that nothing that happens after the look goes unnoticed; work until both are idle; unmask and wait. An
// event that came in between is latched in the status register and fires as soon as the line is unmasked.
func (e *Endpoint) run() {
	e.loop.Store(goroutineID())
	defer e.shutdown()
	e.nextTick = e.clock.Now().Add(tick)
	for {
		woken, err := e.irq.Wait(e.patience())
		if err != nil || e.stopping.Load() {
			e.report("interrupt", err)
			return
		}
		e.stats.wakeups[woken].Add(1)
		e.serve()
		if e.stopping.Load() {
			return
		}
		e.housekeeping()
		if err := e.irq.Enable(); err != nil {
			e.report("interrupt", err)
			return
		}
	}
}

// patience is how long to wait for an interrupt. With frames in the ring a lost one must not matter for long.
func (e *Endpoint) patience() time.Duration {
	next := e.nextTick
	if e.carrier.next.Before(next) {
		next = e.carrier.next
	}
	d := max(next.Sub(e.clock.Now()), 0)
	if e.mac.TX().Pending() > 0 {
		d = min(d, safetyPoll)
	}
	return d
}

// serve works until there is nothing to do.
func (e *Endpoint) serve() {
	for spin := 1; ; spin++ {
		e.applyConfig()
		if c := e.mac.Interrupts(); c != 0 {
			e.handle(c)
		}
		busy := e.turnTX()
		received := e.receive()
		// What the stack wrote while frames were delivered was left for this.
		if received > 0 || e.pending.Load() {
			busy = e.turnTX() || busy
		}
		if e.stopping.Load() || received < rxBudget && !busy && !e.pending.Load() {
			return
		}
		if spin == maxSpin {
			runtime.Gosched() // one core must be able to run the receivers of all this
			if !e.clock.Now().Before(e.nextTick) {
				// What is left in the rings was acknowledged already, so no interrupt will tell of it.
				e.irq.Wake()
				return
			}
			spin = 0
		}
	}
}

// housekeeping is what happens by the clock.
func (e *Endpoint) housekeeping() {
	now := e.clock.Now()
	if !now.Before(e.carrier.next) {
		e.checkCarrier()
	}
	if !now.Before(e.nextTick) {
		e.nextTick = now.Add(tick)
		e.watchTX(now)
		e.watchRX(now)
	}
	if e.pending.Load() || e.cfgChange.Load() {
		e.irq.Wake() // the link is back, or the MAC
	}
}
