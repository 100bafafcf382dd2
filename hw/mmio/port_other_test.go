//go:build !linux

package mmio

import (
	"testing"

	"dwnet/hw"
)

// Elsewhere everything says that it is not supported, and why.
func TestNotSupported(t *testing.T) {
	_, err := Open(Options{})
	wantError(t, err, hw.ErrUnsupported, "Linux")
	_, err = OpenWindow(System{}, Source{Kind: DevMem, Size: 4})
	wantError(t, err, hw.ErrUnsupported, "Linux")
	_, err = OpenInterrupt(System{}, Source{Kind: UIO, Path: "uio0"})
	wantError(t, err, hw.ErrUnsupported, "Linux")
}
