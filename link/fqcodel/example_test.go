package fqcodel_test

import (
	"fmt"
	"sync"

	"dwnet/link/fqcodel"
)

// A pump that cuts packets into frames while others push. Here a packet is its name, and cutting it is printing.
func Example() {
	q, err := fqcodel.New[string](fqcodel.Config{}, 42) // the seed should be random
	if err != nil {
		fmt.Println(err)
		return
	}
	var mu sync.Mutex
	push := func(name string, p fqcodel.Packet) {
		mu.Lock()
		dropped, _ := q.Push(p, name, 0, nil)
		mu.Unlock()
		for _, name := range dropped {
			fmt.Println("overflow:", name)
		}
	}
	push("bulk", fqcodel.Packet{Hash: 1, Bytes: 4 * 1538, Frames: 4, FrameBytes: 1538})
	push("ping", fqcodel.Packet{Hash: 2, Bytes: 122, Frames: 1})
	push("arp", fqcodel.Packet{Control: true, Bytes: 84, Frames: 1})

	frames := map[string]int{"bulk": 4, "ping": 1, "arp": 1}
	step := func(c fqcodel.Cut) (fqcodel.Head[string], bool) {
		mu.Lock()
		defer mu.Unlock()
		return q.Step(c, 1000)
	}
	h, ok := step(fqcodel.Cut{})
	for ok {
		fmt.Printf("%s %d: %v %d bytes\n", h.Item, h.Frame, h.Action, h.Bytes) // outside the lock
		h, ok = step(fqcodel.Cut{Flow: h.Flow, Bytes: h.Bytes, Last: h.Frame == frames[h.Item]-1, Sent: true})
	}
	// Output:
	// arp 0: send 84 bytes
	// bulk 0: send 1538 bytes
	// ping 0: send 122 bytes
	// bulk 1: send 1538 bytes
	// bulk 2: send 1538 bytes
	// bulk 3: send 1538 bytes
}
