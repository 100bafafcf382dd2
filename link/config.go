package link

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/tcpip"

	"dwnet/hw"
)

// wishes is what callers want the MAC to be set to. Callers change it and wake the poll loop, which alone writes registers;
// so a call never waits for the device, and never meets a reset half-way.
type wishes struct {
	address     [6]byte
	promiscuous bool
	joined      bool // multicast is filtered: JoinMulticast was called
	groups      map[[6]byte]bool
}

// filter is the MAC's filter for w. Without JoinMulticast all multicast is passed: the stack does not tell which groups it
// has joined.
func (w *wishes) filter() hw.Filter {
	f := hw.Filter{Promiscuous: w.promiscuous, AllMulticast: !w.joined}
	for g := range w.groups {
		f.Multicast = append(f.Multicast, g)
	}
	return f
}

// change applies f to the wishes and has them carried out.
func (e *Endpoint) change(f func(*wishes)) {
	e.cfgMu.Lock()
	f(&e.cfg)
	e.cfgMu.Unlock()
	e.cfgChange.Store(true)
	e.irq.Wake()
}

// applyConfig writes changed wishes to the MAC. It runs in the poll loop.
func (e *Endpoint) applyConfig() {
	if !e.cfgChange.Swap(false) {
		return
	}
	e.cfgMu.Lock()
	address, filter := e.cfg.address, e.cfg.filter()
	e.cfgMu.Unlock()
	if address != e.mac.Address() {
		e.report("station address", e.mac.SetAddress(address))
	}
	e.report("filter", e.mac.SetFilter(filter))
}

// SetLinkAddress implements stack.LinkEndpoint. Anything but a unicast MAC address is ignored.
func (e *Endpoint) SetLinkAddress(a tcpip.LinkAddress) {
	if len(a) != 6 || a[0]&1 != 0 || a == "\x00\x00\x00\x00\x00\x00" {
		return
	}
	address := [6]byte([]byte(a))
	e.address.Store(addressBits(address))
	e.change(func(w *wishes) { w.address = address })
}

// SetPromiscuous passes or drops frames for other stations.
func (e *Endpoint) SetPromiscuous(on bool) {
	e.promiscuous.Store(on)
	e.change(func(w *wishes) { w.promiscuous = on })
}

// JoinMulticast has frames for a multicast address received. The first call switches from passing all multicast to passing
// the joined groups alone, so a stack with IPv6 must also join its all-nodes (33:33:00:00:00:01) and solicited-node groups.
func (e *Endpoint) JoinMulticast(group [6]byte) error {
	if group[0]&1 == 0 || group == broadcast {
		return fmt.Errorf("link: %w: % x is no multicast address", ErrOptions, group)
	}
	e.regroup(group, true)
	return nil
}

// LeaveMulticast undoes JoinMulticast. Leaving a group that was not joined changes nothing.
func (e *Endpoint) LeaveMulticast(group [6]byte) {
	e.regroup(group, false)
}

// regroup replaces the set of groups: the receive path reads the old one until then.
func (e *Endpoint) regroup(group [6]byte, join bool) {
	e.change(func(w *wishes) {
		if w.groups[group] == join && (w.joined || !join) {
			return
		}
		groups := make(map[[6]byte]bool, len(w.groups)+1)
		for g := range w.groups {
			groups[g] = true
		}
		if join {
			groups[group] = true
		} else {
			delete(groups, group)
		}
		w.joined, w.groups = true, groups
		e.groups.Store(&groups)
	})
}
