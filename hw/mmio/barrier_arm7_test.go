//go:build arm && arm.7

package mmio

const armBarrier = "DSB SY"
