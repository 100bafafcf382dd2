//go:build !linux

package board

import "dwnet/hw"

func openLine(chip string, line int, activeLow bool) (lineFile, error) { return nil, hw.ErrUnsupported }
