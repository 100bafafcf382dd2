package board

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"dwnet/hw"
	"dwnet/hw/phy"
)

// FromDeviceTree is the description that a device tree gives, such as Linux's own:
//
//	b, err := board.FromDeviceTree(os.DirFS("/sys/firmware/devicetree/base"))
//
// A board that is known keeps what a device tree does not say, its pins and traces. Of another one the SoC is enough; it has
// no PHY reset line then, and where the tree leaves a direction without any delay, the traces are taken to make it.
//
// As in Linux, amlogic,tx-delay-ns is 2 if it is missing, and does not apply where the PHY delays. The error matches
// [hw.ErrUnsupported] without a MAC that is known, and [hw.ErrConfig] for properties that make no sense, with the values allowed.
//
// Sources: Linux Documentation/devicetree/bindings/net/amlogic,meson-dwmac.yaml, ethernet-controller.yaml, ethernet-phy.yaml.
func FromDeviceTree(tree fs.FS) (Board, error) {
	t, err := scanTree(tree)
	if err != nil {
		return Board{}, fmt.Errorf("board: device tree: %w", err)
	}
	b, err := t.board()
	if err != nil {
		return Board{}, err
	}
	return b, b.Validate()
}

// Limits of a device tree that is read: the largest in use have a few thousand nodes.
const (
	maxNodes    = 1 << 16
	maxProperty = 1 << 16
)

// deviceTree is a tree with the nodes that matter.
type deviceTree struct {
	fs   fs.FS
	root map[string]bool // compatible of the root
	mac  string          // path of the MAC's node
	soc  SoC
	// phandles are the paths of nodes by their phandle.
	phandles map[uint32]string
}

func scanTree(tree fs.FS) (*deviceTree, error) {
	t := &deviceTree{fs: tree, root: map[string]bool{}, phandles: map[uint32]string{}}
	compat, _, err := t.strings(".", "compatible")
	if err != nil {
		return nil, err
	}
	for _, c := range compat {
		t.root[c] = true
	}
	nodes := 0
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if nodes++; nodes > maxNodes {
			return fmt.Errorf("more than %d nodes", maxNodes)
		}
		if h, ok, err := t.cell(p, "phandle"); err != nil {
			return err
		} else if ok {
			t.phandles[h] = p
		}
		return t.consider(p)
	})
	return t, err
}

// consider takes a node for the MAC's if it is enabled and of a kind that is known.
func (t *deviceTree) consider(node string) error {
	compat, ok, err := t.strings(node, "compatible")
	if err != nil || !ok || t.mac != "" {
		return err
	}
	for _, s := range SoCs() {
		if !slices.Contains(compat, s.Compatible) {
			continue
		}
		status, ok, err := t.strings(node, "status")
		if err != nil {
			return err
		}
		if !ok || len(status) > 0 && (status[0] == "okay" || status[0] == "ok") {
			t.mac, t.soc = node, s
		}
		return nil
	}
	return nil
}

func (t *deviceTree) board() (Board, error) {
	if t.mac == "" {
		var known []string
		for _, s := range SoCs() {
			known = append(known, s.Compatible)
		}
		return Board{}, &hw.Error{Op: "read device tree", Err: hw.ErrUnsupported,
			Hint: "no enabled node is compatible with " + strings.Join(known, ", ")}
	}
	b := Board{Name: t.soc.Name, SoC: t.soc}
	known := false
	for _, k := range Boards() {
		if t.root[k.Compatible] && k.SoC.Compatible == t.soc.Compatible {
			b, known = k, true
		}
	}
	r := reader{t: t, node: t.mac}
	if s, ok, err := t.strings(".", "model"); err == nil && ok && !known {
		b.Name = s[0]
	}
	mode, err := r.mode()
	if err != nil {
		return b, err
	}
	b.Mode = mode
	r.delays(&b, known)
	if n, ok := r.number("rx-fifo-depth"); ok {
		b.SoC.RXFIFO = int(n)
	}
	if n, ok := r.number("tx-fifo-depth"); ok {
		b.SoC.TXFIFO = int(n)
	}
	for _, name := range []string{"local-mac-address", "mac-address"} {
		if v, ok := r.bytes(name); ok && len(v) == len(b.Address) {
			copy(b.Address[:], v)
		}
	}
	if v, ok := r.cells("snps,reset-delays-us", 3); ok {
		b.ResetTiming = phy.ResetTiming{Assert: microseconds(v[1]), Settle: microseconds(v[2])}
	}
	if h, ok := r.number("phy-handle"); ok && r.err == nil {
		node, ok := t.phandles[h]
		if !ok {
			return b, treeError("phy-handle", "no node has the phandle 0x%x", h)
		}
		p := reader{t: t, node: node}
		p.phy(&b)
		r.err = p.err
	}
	return b, r.err
}

// reader reads properties of a node and keeps the first error.
type reader struct {
	t    *deviceTree
	node string
	err  error
}

// mode is the wiring. Linux takes either name of the property.
func (r *reader) mode() (hw.InterfaceMode, error) {
	for _, name := range []string{"phy-mode", "phy-connection-type"} {
		v, ok, err := r.t.strings(r.node, name)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		for _, m := range []hw.InterfaceMode{hw.ModeRGMII, hw.ModeRGMIIID, hw.ModeRGMIIRXID, hw.ModeRGMIITXID, hw.ModeRMII} {
			if len(v) > 0 && v[0] == m.String() {
				return m, nil
			}
		}
		return 0, treeError(name, "%q is not rgmii, rgmii-id, rgmii-rxid, rgmii-txid or rmii", strings.Join(v, ", "))
	}
	return 0, treeError("phy-mode", "is missing")
}

// delays takes over the MAC's delays as Linux's glue does.
func (r *reader) delays(b *Board, known bool) {
	if !rgmii(b.Mode) {
		b.TXDelay, b.RXDelay = AutoDelay, AutoDelay
		return
	}
	tx, ok := r.number("amlogic,tx-delay-ns")
	if !ok {
		tx = wantDelay / 1000
	}
	rx, ok := r.number("rx-internal-delay-ps")
	if !ok {
		ns, _ := r.number("amlogic,rx-delay-ns")
		rx = min(ns, maxCell/1000) * 1000
	}
	ptx, prx := phyDelays(b.Mode)
	set := func(d *Delay, trace *int, ps, phy uint32) {
		*d = NoDelay
		switch {
		case phy != 0: // what the property says does not apply
			*trace = 0
		case ps != 0:
			*d, *trace = Picoseconds(int(min(ps, maxCell))), 0
		case !known:
			*trace = wantDelay
		}
	}
	set(&b.TXDelay, &b.TraceTX, min(tx, maxCell/1000)*1000, uint32(ptx))
	set(&b.RXDelay, &b.TraceRX, rx, uint32(prx))
}

// maxCell bounds what a delay may be before its unit is changed; it is far beyond what is allowed.
const maxCell = 1 << 30

// phy reads the PHY's node.
func (r *reader) phy(b *Board) {
	if n, ok := r.number("reg"); ok {
		b.PHYAddr = hw.PHYAt(int(min(n, maxCell)))
		if n > 31 {
			r.fail(treeError("reg", "PHY address %d is not from 0 to 31", n))
		}
	}
	compat, _, err := r.t.strings(r.node, "compatible")
	r.fail(err)
	b.PHYID = 0
	for _, c := range compat {
		var hi, lo uint32
		if n, err := fmt.Sscanf(c, "ethernet-phy-id%04x.%04x", &hi, &lo); err != nil || n != 2 {
			continue
		}
		if b.PHYID = phy.ID(hi<<16 | lo); !b.PHYID.Valid() {
			r.fail(treeError("compatible", "%q names an identifier that no PHY has", c))
		}
	}
	if n, ok := r.number("reset-assert-us"); ok {
		b.ResetTiming.Assert = microseconds(n)
	}
	if n, ok := r.number("reset-deassert-us"); ok {
		b.ResetTiming.Settle = microseconds(n)
	}
	for _, e := range []struct {
		name string
		mode phy.EEEModes
	}{{"eee-broken-100tx", phy.EEE100TX}, {"eee-broken-1000t", phy.EEE1000T}} {
		if _, ok := r.bytes(e.name); ok {
			b.EEEBroken |= e.mode
		}
	}
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) bytes(name string) ([]byte, bool) {
	v, ok, err := r.t.property(r.node, name)
	r.fail(err)
	return v, ok && err == nil
}

// cells reads a property of at least n cells.
func (r *reader) cells(name string, n int) ([]uint32, bool) {
	v, ok := r.bytes(name)
	if !ok {
		return nil, false
	}
	if len(v)%4 != 0 || len(v) < 4*n {
		r.fail(treeError(name, "has %d bytes, not %d cells of 4", len(v), n))
		return nil, false
	}
	var c []uint32
	for ; len(v) > 0; v = v[4:] {
		c = append(c, binary.BigEndian.Uint32(v))
	}
	return c, true
}

func (r *reader) number(name string) (uint32, bool) {
	c, ok := r.cells(name, 1)
	if !ok {
		return 0, false
	}
	return c[0], true
}

// property is the raw value of a property, false if the node does not have it.
func (t *deviceTree) property(node, name string) ([]byte, bool, error) {
	f, err := t.fs.Open(path.Join(node, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.IsDir() {
		return nil, false, err // a node may have the name of a property
	}
	v, err := io.ReadAll(io.LimitReader(f, maxProperty+1))
	if err == nil && len(v) > maxProperty {
		err = treeError(name, "has more than %d bytes", maxProperty)
	}
	return v, true, err
}

// strings is a property that is a list of strings.
func (t *deviceTree) strings(node, name string) ([]string, bool, error) {
	v, ok, err := t.property(node, name)
	if err != nil || !ok {
		return nil, ok, err
	}
	return strings.Split(strings.TrimRight(string(v), "\x00"), "\x00"), true, nil
}

// cell is a property of one cell, false if it is something else.
func (t *deviceTree) cell(node, name string) (uint32, bool, error) {
	v, ok, err := t.property(node, name)
	if err != nil || !ok || len(v) != 4 {
		return 0, false, err
	}
	return binary.BigEndian.Uint32(v), true, nil
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }

func treeError(name, format string, args ...any) error {
	return &hw.Error{Op: "read device tree", Err: hw.ErrConfig, Hint: name + ": " + fmt.Sprintf(format, args...)}
}
