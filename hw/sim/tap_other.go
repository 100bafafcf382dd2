//go:build !linux

package sim

import (
	"fmt"

	"dwnet/hw"
)

func openTAP(string) (int, error) {
	return -1, fmt.Errorf("TAP interfaces need Linux: %w", hw.ErrUnsupported)
}

func writeTAP(int, []byte) error { return hw.ErrUnsupported }
