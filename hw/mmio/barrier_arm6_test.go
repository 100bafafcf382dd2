//go:build arm && arm.6 && !arm.7

package mmio

const armBarrier = "DSB by CP15 c7, c10, 4"
