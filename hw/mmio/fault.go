package mmio

import (
	"runtime"
	"runtime/debug"
)

// isFault reports whether a recovered panic is an access to memory that did not answer (SIGBUS, SIGSEGV), as it becomes
// under debug.SetPanicOnFault.
func isFault(v any) bool {
	e, ok := v.(runtime.Error)
	if !ok {
		return false
	}
	_, ok = e.(interface{ Addr() uintptr })
	return ok
}

// guarded calls f and reports whether every access that it made was answered.
func guarded(f func()) (ok bool) {
	defer func(old bool) {
		debug.SetPanicOnFault(old)
		if v := recover(); v != nil {
			if !isFault(v) {
				panic(v)
			}
			ok = false
		}
	}(debug.SetPanicOnFault(true))
	f()
	return true
}
