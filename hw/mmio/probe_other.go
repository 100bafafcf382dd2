//go:build !(linux && (amd64 || 386 || arm || arm64))

package mmio

// answers cannot tell here.
func answers(raw, int) error { return nil }
