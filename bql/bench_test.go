package bql

import (
	"runtime"
	"sync"
	"testing"
)

// One frame through an open queue: what a driver pays per frame.
func BenchmarkAccountOpen(b *testing.B) {
	l := mustNew(b, Options{Min: 1 << 20})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if l.Open() {
			l.Account(1514)
		}
		if i%64 == 63 { // keep it open
			l.Completed(0, l.InFlight())
		}
	}
}

// A completion of eight frames, with the clock read.
func BenchmarkEightFramesAndCompletion(b *testing.B) {
	l := mustNew(b, Options{Min: 16 << 10})
	b.ReportAllocs()
	for b.Loop() {
		for range 8 {
			l.Account(1514)
			l.Open()
		}
		l.Completed(0, 8*1514)
	}
}

// A queue that opens and closes with every frame.
func BenchmarkStopResume(b *testing.B) {
	l := mustNew(b, Options{Max: 1514})
	mustQueue(b, l, 1514)
	mustQueue(b, l, 1514)
	b.ReportAllocs()
	for b.Loop() {
		l.Account(1514)
		l.Open()
		l.Completed(0, 1514)
	}
}

// A producer and a completer on two processors, per frame; the completer takes what it finds.
func BenchmarkTwoSides(b *testing.B) { benchmarkTwoSides(b, noLock{}) }

// The same with a lock that both sides take, for comparison.
func BenchmarkTwoSidesLocked(b *testing.B) { benchmarkTwoSides(b, &sync.Mutex{}) }

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

func benchmarkTwoSides(b *testing.B, mu sync.Locker) {
	l := mustNew(b, Options{Min: 64 << 10})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock()
			l.Completed(0, l.InFlight())
			mu.Unlock()
			runtime.Gosched() // look once in a while, as a poll loop does
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		mu.Lock()
		for !l.Open() {
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
		}
		l.Account(1514)
		mu.Unlock()
	}
	close(stop)
	<-stopped
}

// Nothing on the way of a frame allocates.
func TestNoAllocation(t *testing.T) {
	l := mustNew(t, Options{})
	if n := testing.AllocsPerRun(1000, func() {
		for range 4 {
			l.Account(1514)
			l.Open()
		}
		l.Completed(0, 4*1514)
		l.Stalled()
		l.Stats()
	}); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
