package fqcodel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// model is fq_codel written down from the RFCs with nothing in mind but their text: packets are lists of frame sizes, flows
// are looked for one by one, bytes are summed when they are needed, CoDel's dequeue loops over drops.
type model struct {
	cfg     Config
	flows   map[uint32]*modelFlow
	newL    []*modelFlow
	oldL    []*modelFlow
	control *modelFlow
	credit  int
	inHand  *modelPacket
}

type modelFlow struct {
	index   int // of its queue: decides between equally fat flows
	packets []*modelPacket
	deficit int
	first   int64 // first_above_time, 0 if below
	next    int64
	count   uint32
	last    uint32
	drops   bool
}

type modelPacket struct {
	id       int
	frames   []int
	enqueued int64
	ect      bool
	started  bool
	aborted  bool
}

func newModel(cfg Config) *model {
	cfg, _ = cfg.withDefaults()
	return &model{cfg: cfg, flows: map[uint32]*modelFlow{}, control: &modelFlow{}, credit: 4 * cfg.Quantum}
}

func (f *modelFlow) bytes() (n int) {
	for _, p := range f.packets {
		if !p.aborted {
			for _, b := range p.frames {
				n += b
			}
		}
	}
	return n
}

func (m *model) all() []*modelFlow {
	all := []*modelFlow{m.control}
	for _, f := range m.flows {
		all = append(all, f)
	}
	return all
}

func (m *model) bytes() (n int) {
	for _, f := range m.all() {
		n += f.bytes()
	}
	return n
}

func (m *model) packets() (n int) {
	for _, f := range m.all() {
		for _, p := range f.packets {
			if !p.aborted {
				n++
			}
		}
	}
	return n
}

// push returns the ids of what is dropped.
func (m *model) push(hash uint32, isControl bool, p *modelPacket) (dropped []int) {
	f := m.flows[hash]
	if isControl {
		f = m.control
	}
	f.packets = append(f.packets, p)
	loose := func(p *modelPacket) bool { return !p.started && p != m.inHand && !p.aborted }
	drop := func(f *modelFlow, i int) {
		dropped = append(dropped, f.packets[i].id)
		f.packets = slices.Delete(f.packets, i, i+1)
	}
	steps := 0
	if isControl && len(f.packets) > controlPackets {
		drop(f, slices.IndexFunc(f.packets, loose))
		steps++
	}
	for ; steps < m.cfg.DropBatch && (m.bytes() > m.cfg.MemoryLimit || m.packets() > m.cfg.PacketLimit); steps++ {
		if m.packets() == 1 {
			break
		}
		var fat *modelFlow
		for _, g := range m.flows {
			if g.bytes() > 0 && (fat == nil || g.bytes() > fat.bytes() || g.bytes() == fat.bytes() && g.index < fat.index) {
				fat = g
			}
		}
		own := len(f.packets) - 1
		if fat == nil || steps == m.cfg.DropBatch-1 && m.bytes() > m.cfg.MemoryLimit*5/4 {
			drop(f, own)
			return dropped
		}
		i := slices.IndexFunc(fat.packets, loose)
		switch {
		case i >= 0 && fat == f && i == own:
			drop(f, own)
			return dropped
		case i >= 0:
			drop(fat, i)
		default:
			fat.packets[0].aborted = true
		}
	}
	if f != m.control && !slices.Contains(m.newL, f) && !slices.Contains(m.oldL, f) {
		f.deficit = m.cfg.Quantum
		m.newL = append(m.newL, f)
	}
	return dropped
}

// choose is RFC 8290 section 4.2.
func (m *model) choose() *modelFlow {
	if len(m.control.packets) > 0 && (m.credit > 0 || len(m.newL)+len(m.oldL) == 0) {
		return m.control
	}
	for {
		l := &m.newL
		if len(m.newL) == 0 {
			if l = &m.oldL; len(m.oldL) == 0 {
				break
			}
		}
		f := (*l)[0]
		if f.deficit > 0 && len(f.packets) > 0 {
			return f
		}
		*l = (*l)[1:]
		switch {
		case f.deficit <= 0:
			f.deficit += m.cfg.Quantum
			m.oldL = append(m.oldL, f)
		default:
			f.first, f.drops = 0, false
			if l == &m.newL && len(m.oldL) > 0 {
				m.oldL = append(m.oldL, f)
			}
		}
	}
	if len(m.control.packets) > 0 {
		return m.control
	}
	return nil
}

// okToDrop looks at the first frame of a flow, which RFC 8289 has taken out at this point.
func (m *model) okToDrop(f *modelFlow, now int64) bool {
	if len(f.packets) == 0 {
		f.first = 0
		return false
	}
	p := f.packets[0]
	switch {
	case now-p.enqueued < int64(m.cfg.Target) || f.bytes()-p.frames[0] <= m.cfg.MaxFrame:
		f.first = 0
	case f.first == 0:
		f.first = now + int64(m.cfg.Interval)
	default:
		return now >= f.first
	}
	return false
}

// skip takes the first frame out.
func (f *modelFlow) skip() {
	p := f.packets[0]
	p.started = true
	if p.frames = p.frames[1:]; len(p.frames) == 0 {
		f.packets = f.packets[1:]
	}
}

func (m *model) law(f *modelFlow, from int64) {
	f.next = from + int64(float64(m.cfg.Interval)/math.Sqrt(float64(f.count)))
}

// dequeue takes frames until there is one to send. It returns what happened, one line a frame, and the flow to send from.
func (m *model) dequeue(now int64) (log []string, from *modelFlow) {
	m.inHand = nil
	for {
		f := m.choose()
		if f == nil {
			return append(log, "nothing"), nil
		}
		if f.packets[0].aborted {
			log = append(log, fmt.Sprint("abort ", f.packets[0].id))
			f.packets = f.packets[1:]
			continue
		}
		marked := false
		hit := func() { // mark or drop
			if marked = f.packets[0].ect && !m.cfg.NoECN; !marked {
				log = append(log, fmt.Sprint("drop ", f.packets[0].id))
				f.skip()
			}
		}
		if f != m.control {
			ok := m.okToDrop(f, now)
			switch {
			case !ok:
				f.drops = false
			case f.drops && now-f.next > 16*int64(m.cfg.Interval):
				f.drops, f.count, f.last, f.next, f.first = false, 0, 0, 0, now+int64(m.cfg.Interval)
			case f.drops:
				for f.drops && now >= f.next && !marked {
					f.count++
					if hit(); marked || m.okToDrop(f, now) {
						m.law(f, f.next)
					} else {
						f.drops = false
					}
				}
			default:
				if hit(); !marked {
					m.okToDrop(f, now)
				}
				f.drops = true
				delta := f.count - f.last
				f.count = 1
				if delta > 1 && now-f.next < 16*int64(m.cfg.Interval) {
					f.count = delta
				}
				m.law(f, now)
				f.last = f.count
			}
		}
		if len(f.packets) == 0 { // CoDel has dropped all there was
			f.drops = false
			continue
		}
		m.inHand = f.packets[0]
		verb := "send "
		if marked {
			verb = "mark "
		}
		return append(log, fmt.Sprint(verb, m.inHand.id, " size ", m.inHand.frames[0])), f
	}
}

func (m *model) done(f *modelFlow, size int) {
	if f == m.control {
		m.credit = max(m.credit-size, -m.cfg.Quantum)
	} else {
		m.credit = min(m.credit+max(size/8, 1), 4*m.cfg.Quantum)
		f.deficit -= size
	}
	f.skip()
	m.inHand = nil
}

// script is a run of the queue and the model side by side, decided by bytes.
type script struct {
	t    testing.TB
	data []byte
	now  int64
	id   int
	q    *Queue[int]
	m    *model
	seen map[string]int // kinds of events
}

func (s *script) byte() int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b)
}

func (s *script) push() {
	hash, frames := uint32(s.byte()%20), 1+s.byte()%50
	size := 64 + s.byte()*6
	p := Packet{Hash: hash, Frames: frames, FrameBytes: size, Bytes: size*(frames-1) + 1 + s.byte()*size/256, ECT: hash%3 == 0}
	if hash%2 == 1 { // equally fat flows are to be had, too
		frames, size = 1+frames%2, 701
		p.Frames, p.FrameBytes, p.Bytes = frames, size, frames*size
	}
	if hash == 19 {
		p = Packet{Bytes: size, Frames: 1, Control: true}
	}
	mp := &modelPacket{id: s.id, enqueued: s.now, ect: p.ECT}
	for left := p.Bytes; left > 0; left -= size {
		mp.frames = append(mp.frames, min(size, left))
	}
	dropped, ok := s.q.Push(p, s.id, s.now, nil)
	if s.m.flows[hash] == nil && !p.Control {
		f, found := s.q.Find(hash)
		if !found {
			s.t.Fatalf("flow %d not found after a push", hash)
		}
		s.m.flows[hash] = &modelFlow{index: int(f)}
	}
	want := s.m.push(hash, p.Control, mp)
	if !slices.Equal(want, dropped) {
		s.t.Fatalf("push %d: dropped %v, want %v", s.id, dropped, want)
	}
	if ok == slices.Contains(dropped, s.id) {
		s.t.Fatalf("push %d: ok %v, dropped %v", s.id, ok, dropped)
	}
	s.id++
	s.seen["overflow"] += len(dropped)
}

// dequeue sends a frame; some more packets are pushed while it is being cut.
func (s *script) dequeue() {
	var log []string
	h, ok := s.q.Step(Cut{}, s.now)
	for ok && (h.Aborted || h.Action == Drop) {
		c := Cut{Flow: h.Flow, Bytes: h.Bytes, Last: h.Aborted || s.q.framesLeft(h.Flow) == 1}
		if h.Aborted {
			log = append(log, fmt.Sprint("abort ", h.Item))
		} else {
			log = append(log, fmt.Sprint("drop ", h.Item))
		}
		h, ok = s.q.Step(c, s.now)
	}
	if ok {
		log = append(log, fmt.Sprint(h.Action, " ", h.Item, " size ", h.Bytes))
	} else {
		log = append(log, "nothing")
	}
	want, f := s.m.dequeue(s.now)
	if d := cmp.Diff(want, log); d != "" {
		s.t.Fatalf("at %d (-want +got):\n%s", s.now, d)
	}
	for _, l := range log {
		s.seen[l[:4]]++
	}
	if !ok {
		return
	}
	for range s.byte() % 4 {
		s.push()
	}
	s.q.Done(h.Flow, h.Bytes, s.q.framesLeft(h.Flow) == 1, true)
	s.m.done(f, h.Bytes)
}

// look asks for the next frame and does nothing about it.
func (s *script) look() {
	h, ok := s.q.Next(s.now)
	s.m.inHand = nil
	f := s.m.choose()
	if ok != (f != nil) {
		s.t.Fatalf("Next says %v", ok)
	}
	if ok {
		s.m.inHand = f.packets[0]
		if h.Item != s.m.inHand.id {
			s.t.Fatalf("Next says %d, want %d", h.Item, s.m.inHand.id)
		}
	}
}

func runScript(t testing.TB, data []byte, check bool) *script {
	s := &script{t: t, data: data, now: 1, seen: map[string]int{}}
	cfg := Config{
		Flows:       []int{1024, 64}[s.byte()%2], // room for 20 flows; few enough to be looked through one by one, or not
		MemoryLimit: []int{4 << 20, 5000, 50000, 400000}[s.byte()%4],
		PacketLimit: []int{10240, 5, 40, 300}[s.byte()%4],
		DropBatch:   []int{64, 1, 2, 7}[s.byte()%4],
		Quantum:     []int{1514, 300, 9000, 1514}[s.byte()%4],
		NoECN:       s.byte()%4 == 1,
	}
	s.q, s.m = mustNew[int](t, cfg), newModel(cfg)
	gap := int64(s.byte()) * 10_000
	for len(s.data) > 0 {
		switch op := s.byte() % 16; {
		case op < 4:
			s.push()
		case op < 14:
			s.dequeue()
			s.now += gap
		case op == 14:
			b := int64(s.byte())
			s.now += b * b * 10_000
		default:
			s.look()
		}
		if check {
			s.q.check(t)
		}
	}
	s.q.check(t)
	if s.q.Bytes() != s.m.bytes() || s.q.Len() != s.m.packets() {
		t.Fatalf("%d bytes, %d packets; want %d, %d", s.q.Bytes(), s.q.Len(), s.m.bytes(), s.m.packets())
	}
	return s
}

func TestQueueEqualsTheModel(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 15
	}
	seen := map[string]int{}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		data := make([]byte, 6000)
		for i := range data {
			data[i] = byte(rnd.Uint32())
		}
		for kind, n := range runScript(t, data, seed%10 == 0).seen {
			seen[kind] += n
		}
	}
	for _, kind := range []string{"send", "mark", "drop", "abor", "noth", "over"} {
		if kind == "over" {
			kind = "overflow"
		}
		if seen[kind] < runs/3 {
			t.Errorf("the test shows little: %d × %s", seen[kind], kind)
		}
	}
	t.Log(seen)
}
