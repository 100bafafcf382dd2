//go:build !(arm && arm.6)

package mmio

// armBarrier is what GOARM=5 has; other machines do not ask.
const armBarrier = armBarrierNone
