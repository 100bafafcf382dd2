package iperf3

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// Nothing that a server or a client started outlives them.
func TestNoGoroutineIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("use", func(t *testing.T) { // its server is closed at the end of it
		s := startServer(t, ServerOptions{})
		for _, p := range []Params{
			{Bytes: 1 << 20, Parallel: 8}, {Bytes: 1 << 20, Bidirectional: true}, {UDP: true, Bytes: 1 << 16, Length: 1000, Bidirectional: true},
			{Bytes: 1 << 20, Reverse: true},
		} {
			s.run(t, ClientOptions{Params: p})
		}
		ctx, cancel := context.WithCancel(context.Background())
		Run(ctx, ClientOptions{Dial: KernelDialer(s.addr), Interval: 10 * time.Millisecond, OnInterval: func(Interval) { cancel() }})
		for range 5 { // the server has seen them all
			s.report(t)
		}
		s.peer(t).running(plainParams)
		s.dial(t)
	})
	for i := 0; ; i++ {
		runtime.GC()
		after := runtime.NumGoroutine()
		if after <= before {
			return
		}
		if i > 500 {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, after, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond) // polls for a state
	}
}

// The receive path of UDP handles each datagram without allocating.
func TestDatagramsDoNotAllocate(t *testing.T) {
	p := Params{UDP: true, Parallel: 1, Burst: 1, Length: 100}
	r := newRun(SystemClock(), NoSockets{}, p, true)
	s := new(stream)
	r.addStream(s)
	r.begin()
	b := make([]byte, p.Length)
	seq := int64(0)
	if n := testing.AllocsPerRun(1000, func() {
		seq++
		putDatagram(b, r.wireTime(), seq, false)
		r.datagram(s, b)
	}); n != 0 {
		t.Errorf("%v allocations for a datagram", n)
	}
	if s.loss.Packets != seq || s.loss.Lost != 0 {
		t.Errorf("after %d datagrams: %+v", seq, s.loss)
	}
}

func BenchmarkTCP(b *testing.B) {
	for name, reverse := range map[string]bool{"upload": false, "download": true} {
		b.Run(name, func(b *testing.B) {
			s := startServer(b, ServerOptions{})
			b.SetBytes(DefaultTCPBlockSize)
			b.ReportAllocs()
			s.run(b, ClientOptions{Params: Params{Blocks: int64(b.N), Reverse: reverse}})
		})
	}
}

func BenchmarkUDP(b *testing.B) {
	s := startServer(b, ServerOptions{})
	b.SetBytes(1400)
	b.ReportAllocs()
	s.run(b, ClientOptions{Params: Params{UDP: true, Length: 1400, Blocks: int64(b.N)}})
}
