package bql_test

import (
	"fmt"

	"dwnet/bql"
)

// A producer that always has more to send, in front of a device that completes two frames at a time. The limit grows until
// the device never runs dry: here, three frames wait behind the two that it works on.
func Example() {
	lim, err := bql.New(bql.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	const frame = 1514
	ring := 0
	for pass := range 6 {
		for lim.Open() {
			lim.Account(frame) // before the device sees it
			ring++
		}
		fmt.Printf("pass %d: limit %5d, %d frames in the ring\n", pass, lim.Limit(), ring)
		done := min(ring, 2)
		ring -= done
		lim.Completed(lim.Generation(), done*frame)
	}
	// Output:
	// pass 0: limit     0, 1 frames in the ring
	// pass 1: limit  1514, 2 frames in the ring
	// pass 2: limit  4542, 4 frames in the ring
	// pass 3: limit  4542, 4 frames in the ring
	// pass 4: limit  6056, 5 frames in the ring
	// pass 5: limit  6056, 5 frames in the ring
}
