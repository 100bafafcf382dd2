package bql

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// model is the same promise written from the other end: instead of counters and differences between them it keeps every
// piece of data in flight, with the number of the completion after which it was sent, and the surplus found by every
// completion. It is slow, nothing in it wraps, and it was not derived from the code under test.
type model struct {
	lo, hi int64
	hold   time.Duration

	limit   int64
	fifo    []piece // in flight, oldest first
	round   int     // completions so far
	last    int64   // size of the frame sent last
	held    int64   // what the previous completion found beyond a limit that still holds
	heldBy  int64   // size of the frame that was then the last
	slacks  []int64 // surplus found by the completions of this hold time
	since   time.Duration
	waiting bool // the producer found the queue closed
}

type piece struct {
	bytes int64
	round int
}

func newModel(o Options) *model {
	o = o.withDefaults()
	return &model{lo: int64(o.Min), hi: int64(o.Max), hold: o.Hold, limit: int64(o.Min)}
}

func (m *model) inFlight() (n int64) {
	for _, p := range m.fifo {
		n += p.bytes
	}
	return n
}

// old is what is left in flight of the data that the previous completion left there.
func (m *model) old() (n int64) {
	for _, p := range m.fifo {
		if p.round < m.round {
			n += p.bytes
		}
	}
	return n
}

func (m *model) available() int64 { return m.limit - m.inFlight() }

// send returns false if the frame is refused.
func (m *model) send(n int64) bool {
	const mostFrame, mostInFlight = 1<<28 - 1, 1<<31 - 1
	if n < 1 || n > mostFrame || m.inFlight() > mostInFlight-n {
		return false
	}
	m.fifo = append(m.fifo, piece{n, m.round})
	m.last = n
	return true
}

func (m *model) open() bool {
	m.waiting = m.available() < 0 || m.waiting
	return m.available() >= 0
}

// take removes n bytes from the head and returns how many of them are younger than the previous completion.
func (m *model) take(n int64) (young int64) {
	for n > 0 {
		k := min(n, m.fifo[0].bytes)
		if m.fifo[0].round == m.round {
			young += k
		}
		m.fifo[0].bytes -= k
		n -= k
		if m.fifo[0].bytes == 0 {
			m.fifo = m.fifo[1:]
		}
	}
	return young
}

// complete returns whether the producer is to be woken.
func (m *model) complete(n int64, at time.Duration) bool {
	n = min(n, m.inFlight())
	if n == 0 {
		return false
	}
	held := max(-m.available(), 0)
	oldBefore := m.old()
	young := m.take(n)
	oldAfter, empty := m.old(), len(m.fifo) == 0

	limit := m.limit
	switch {
	case held > 0 && empty: // it ran dry with data waiting outside
		fallthrough
	case m.held > 0 && oldAfter == 0 && !(young == 0 && empty): // it may have run dry before the young data came
		limit += young + m.held
		m.slacks, m.since = nil, at
	case oldBefore > 0 && oldAfter > 0: // it was busy throughout
		unused := int64(0)
		if m.held > 0 {
			unused = m.heldBy - m.held
		}
		m.slacks = append(m.slacks, max(0, limit+m.held-2*n, unused))
		if at > m.since+m.hold {
			limit = max(limit-slices.Min(m.slacks), 0)
			m.slacks, m.since = nil, at
		}
	}
	limit = max(m.lo, min(m.hi, limit))
	m.held, m.heldBy = held, m.last
	if limit != m.limit {
		m.limit, m.held = limit, 0
	}
	m.round++

	wake := m.waiting && m.available() >= 0
	m.waiting = m.waiting && !wake
	return wake
}

func (m *model) reset(at time.Duration) {
	*m = model{lo: m.lo, hi: m.hi, hold: m.hold, limit: m.lo, since: at}
}

// pair drives a Limiter and the model with the same calls and compares all that can be seen after each.
type pair struct {
	t     testing.TB
	clock *fakeClock
	start time.Time
	l     *Limiter
	m     *model
	steps int
}

func newPair(t testing.TB, o Options, base uint32) *pair {
	p := &pair{t: t, clock: newFakeClock()}
	p.start = p.clock.t
	p.l, p.m = mustNew(t, p.clock.options(o)), newModel(o)
	startAt(p.l, base)
	return p
}

func (p *pair) at() time.Duration { return p.clock.t.Sub(p.start) }

func (p *pair) check(op string, n int) {
	p.t.Helper()
	p.steps++
	if int64(p.l.Limit()) != p.m.limit || int64(p.l.InFlight()) != p.m.inFlight() || int64(p.l.Available()) != p.m.available() {
		p.t.Fatalf("step %d, %s(%d): limit %d in flight %d available %d; model %d %d %d", p.steps, op, n,
			p.l.Limit(), p.l.InFlight(), p.l.Available(), p.m.limit, p.m.inFlight(), p.m.available())
	}
}

func (p *pair) queue(n int) {
	p.t.Helper()
	err, ok := p.l.Account(n), p.m.send(int64(n))
	if (err == nil) != ok {
		p.t.Fatalf("step %d: Account(%d): %v, model accepts: %v", p.steps, n, err, ok)
	}
	p.check("Account", n)
	if a, b := p.l.Open(), p.m.open(); a != b {
		p.t.Fatalf("step %d: Open %v, model %v", p.steps, a, b)
	}
}

func (p *pair) complete(n int) {
	p.t.Helper()
	excess := int64(n) > p.m.inFlight()
	resume, err := p.l.Completed(p.l.Generation(), n)
	if (err != nil) != excess {
		p.t.Fatalf("step %d: Completed(%d) with %d in flight: %v", p.steps, n, p.m.inFlight(), err)
	}
	if want := p.m.complete(int64(n), p.at()); resume != want {
		p.t.Fatalf("step %d: Completed(%d): resume %v, model %v", p.steps, n, resume, want)
	}
	p.check("Completed", n)
}

func (p *pair) reset() {
	p.t.Helper()
	if _, err := p.l.Reset(int(p.m.inFlight())); err != nil {
		p.t.Fatalf("step %d: Reset: %v", p.steps, err)
	}
	p.m.reset(p.at())
	p.check("Reset", 0)
}

// Random producers and completers, from well-behaved to rude, anywhere on the counters' circle: the Limiter and the model
// never differ.
func TestAgainstModel(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 60
	}
	bases := []uint32{0, 0xFFFFFF00, 0xFFFFFFFF, 0x7FFFFFF0, 0x80000000}
	var grown, shrunk, stops, resumes uint64
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 17))
		o := Options{Hold: time.Duration(1+r.IntN(40)) * time.Millisecond}
		if r.IntN(3) == 0 {
			o.Min = r.IntN(5000)
			o.Max = o.Min + 1 + r.IntN(30000)
		}
		biggest := 1514
		switch seed % 10 {
		case 7:
			biggest = 65536
		case 8, 9:
			biggest = MaxFrame
		}
		heeds := r.IntN(4) != 0
		most := 1 + r.IntN(8) // frames per turn
		p := newPair(t, o, bases[seed%len(bases)])
		for range 400 {
			for range r.IntN(most + 1) {
				if heeds && p.m.available() < 0 {
					break
				}
				n := 1 + r.IntN(biggest)
				if r.IntN(3) == 0 {
					n = biggest // full frames tie where random ones never do
				}
				p.queue(n)
			}
			p.clock.advance(time.Duration(r.IntN(3000)) * time.Microsecond)
			in := int(p.m.inFlight())
			switch k := r.IntN(20); {
			case k == 0 && in > 0:
				p.complete(in)
			case k == 1:
				p.complete(min(in, MaxLimit) + 1 + r.IntN(1000))
			case k == 2 && r.IntN(20) == 0:
				p.reset()
			case k < 12: // whole frames, as a ring does
				n := 0
				for i := range min(len(p.m.fifo), 1+r.IntN(most)) {
					n += int(p.m.fifo[i].bytes)
				}
				p.complete(n)
			case in > 0:
				p.complete(1 + r.IntN(in))
			}
		}
		s := p.l.Stats()
		grown, shrunk, stops, resumes = grown+s.Grown, shrunk+s.Shrunk, stops+s.Stops, resumes+s.Resumes
	}
	if grown < 100 || shrunk < 100 || stops < 100 || resumes < 100 {
		t.Errorf("the runs were too tame to say much: grown %d shrunk %d stops %d resumes %d", grown, shrunk, stops, resumes)
	}
}

// FuzzLimiter reads the input as a list of calls and compares each with the model.
func FuzzLimiter(f *testing.F) {
	f.Add([]byte{0, 0, 0x05, 0xEA, 1, 0x05, 0xEA})
	f.Add([]byte{2, 0, 0x05, 0xEA, 0, 0x05, 0xEA, 0, 0x05, 0xEA, 1, 0x05, 0xEA, 3, 0xFF, 0xFF, 1, 0x05, 0xEA, 1, 0x05, 0xEA})
	f.Add([]byte{1, 4, 0xFF, 0xFF, 4, 0xFF, 0xFF, 5, 0, 1, 6, 0, 0, 4, 0, 9, 7, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > 3000 {
			return
		}
		bases := []uint32{0, 0xFFFFFF00, 0x7FFFFFF0, 0x80000000}
		o := Options{Hold: time.Millisecond}
		if data[0]&4 != 0 {
			o.Min, o.Max = 1500, 20000
		}
		p := newPair(t, o, bases[data[0]%4])
		for data = data[1:]; len(data) >= 3; data = data[3:] {
			n := int(data[1])<<8 | int(data[2])
			switch data[0] % 8 {
			case 0:
				p.queue(n)
			case 1:
				p.complete(n)
			case 2:
				p.complete(int(p.m.inFlight()))
			case 3:
				p.clock.advance(time.Duration(n) * time.Microsecond)
			case 4:
				p.queue(n << 12)
			case 5:
				p.complete(n << 14)
			case 6:
				p.reset()
			case 7:
				if _, err := p.l.Completed(p.l.Generation()+Generation(1+n), 1+n); err == nil {
					t.Fatal("a stale completion was taken")
				}
				p.check("stale", n)
			}
		}
	})
}
