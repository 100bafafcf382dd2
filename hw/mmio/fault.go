package mmio

import (
	"runtime"
	"runtime/debug"
)

// nilFault is what the runtime makes of a fault without an address, or with one in the first page. Buses that report late,
// and emulators, give no address.
const nilFault = "runtime error: invalid memory address or nil pointer dereference"

// isFault reports whether a recovered panic is an access to memory that did not answer (SIGBUS, SIGSEGV), as it becomes
// under debug.SetPanicOnFault.
func isFault(v any) bool {
	e, ok := v.(runtime.Error)
	if !ok {
		return false
	}
	_, ok = e.(interface{ Addr() uintptr })
	return ok || e.Error() == nilFault
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
