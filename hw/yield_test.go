package hw

import "runtime"

// osyield lets the other goroutines run.
func osyield() { runtime.Gosched() }
