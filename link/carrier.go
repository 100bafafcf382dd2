package link

import (
	"errors"
	"log/slog"
	"time"

	"dwnet/hw"
)

const (
	// carrierUp and carrierDown are how often the PHY is asked: a look takes six MDIO transactions, about 250 µs.
	carrierUp   = time.Second
	carrierDown = 20 * time.Millisecond

	// A completion interrupt is asked for at least this often, in wire time: often enough that the ring's state is known
	// within one full frame at 100 Mbit/s, seldom enough not to interrupt for each at 1000.
	icSpacingSlow = 120 * time.Microsecond
	icSpacingFast = 300 * time.Microsecond
)

// carrier is what the poll loop knows of the link.
type carrier struct {
	link   hw.Link
	next   time.Time
	hasPHY bool // a PHY has answered
}

// LinkState is the state of the link: speed and duplex mode in use, and whether there is a link at all.
func (e *Endpoint) LinkState() (l hw.Link, up bool) {
	return hw.Link{Speed: int(e.stats.linkSpeed.Load()), FullDuplex: e.stats.linkDuplex.Load()}, e.linkUp.Load()
}

// checkCarrier asks the PHY and follows a change. A board on which no PHY ever answered is taken to be wired to a switch chip
// or another MAC, at the speed that its wiring is for. A PHY that no longer answers leaves the link as it was.
func (e *Endpoint) checkCarrier() {
	l, up := e.opts.Link, true
	if l.Speed == 0 {
		var err error
		l, up, err = e.mac.LinkStatus()
		if err == nil {
			e.carrier.hasPHY = true
		} else if errors.Is(err, hw.ErrNoPHY) && !e.carrier.hasPHY {
			l, up = e.mac.Link(), true
		} else if err != nil {
			e.report("PHY", err)
			up = e.linkUp.Load()
			l = e.carrier.link
		}
	}
	interval := carrierUp
	if !up {
		interval = carrierDown
	}
	e.carrier.next = e.clock.Now().Add(interval)
	if up && (l != e.carrier.link || !e.linkUp.Load()) {
		if err := e.mac.SetLink(l); err != nil {
			e.report("link speed", err)
			return
		}
		e.carrier.link = l
		e.stats.linkSpeed.Store(int32(l.Speed))
		e.stats.linkDuplex.Store(l.FullDuplex)
		spacing := icSpacingFast
		if l.Speed < 1000 {
			spacing = icSpacingSlow
		}
		e.icBytes.Store(int32(time.Duration(l.Speed) * spacing / (8 * time.Microsecond)))
		e.setGSO(l.Speed)
	}
	if was := e.linkUp.Swap(up); was != up {
		e.stats.linkChanges.Add(1)
		e.log(slog.LevelInfo, "link", "up", up, "speed", l.Speed, "fullDuplex", l.FullDuplex)
		e.pending.Store(true) // what TCP queued meanwhile can go
	}
}
