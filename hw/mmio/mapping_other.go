//go:build !linux

package mmio

func unmapDevice(raw) error { return supported() }
func unmap(raw)             {}
