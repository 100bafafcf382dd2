package fqcodel

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestZeroConfigHasTheRFCsDefaults(t *testing.T) {
	got, err := Config{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Flows: 1024, Quantum: 1514, Target: 5 * time.Millisecond, Interval: 100 * time.Millisecond, MaxFrame: 1538,
		MemoryLimit: 4 << 20, PacketLimit: 10240, DropBatch: 64, CatchUp: time.Millisecond,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !mustNew[int](t, Config{}).params.ecn {
		t.Error("ECN is off by default")
	}
}

func TestErrorsNameTheField(t *testing.T) {
	for _, tt := range []struct {
		field string
		cfg   Config
	}{
		{"Flows", Config{Flows: 1000}},
		{"Flows", Config{Flows: -8}},
		{"Flows", Config{Flows: 1 << 17}},
		{"Quantum", Config{Quantum: 1}},
		{"Quantum", Config{Quantum: -1}},
		{"Target", Config{Target: -1}},
		{"Target", Config{Target: time.Second}},
		{"Target", Config{Interval: -time.Second}},
		{"Interval", Config{Interval: time.Hour}},
		{"Interval", Config{Target: 1, Interval: 2}},
		{"MaxFrame", Config{MaxFrame: 59}},
		{"MaxFrame", Config{MaxFrame: 1 << 20}},
		{"MemoryLimit", Config{MemoryLimit: 1537}},
		{"MemoryLimit", Config{MemoryLimit: 1<<30 + 1}},
		{"MemoryLimit", Config{MemoryLimit: -1}},
		{"PacketLimit", Config{PacketLimit: -1}},
		{"DropBatch", Config{DropBatch: -1}},
		{"ShapeRate", Config{ShapeRate: 999}},
		{"ShapeRate", Config{ShapeRate: -1}},
		{"ShapeOverhead", Config{ShapeOverhead: -39}},
		{"FlowRate", Config{FlowRate: 1e13}},
		{"CatchUp", Config{CatchUp: time.Minute}},
	} {
		_, err := New[int](tt.cfg, 0)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.field+":") {
			t.Errorf("%+v: error is %v, want ErrConfig naming %s", tt.cfg, err, tt.field)
		}
	}
}

func TestSmallestConfigsWork(t *testing.T) {
	for _, cfg := range []Config{
		{Flows: 1}, {Flows: 2}, {Flows: 4}, {Flows: 8}, {Flows: 16}, {PacketLimit: 1}, {MemoryLimit: 1538}, {DropBatch: 1},
		{Quantum: 64}, {Target: 1, Interval: time.Millisecond}, {FIFO: true, Flows: 16, FlowRate: 1e6},
	} {
		q := mustNew[int](t, cfg)
		for i := range 20 {
			q.Push(large(uint32(i), 2, 700), i, 0, nil)
			q.check(t)
		}
		if n := pump(q, ms, 100, nil); n == 0 || q.Len() != 0 || q.Bytes() != 0 {
			t.Errorf("%+v: %d frames sent, %d packets of %d bytes left", cfg, n, q.Len(), q.Bytes())
		}
		q.check(t)
	}
}
