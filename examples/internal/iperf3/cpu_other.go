//go:build !unix

package iperf3

import "time"

// cpuTimes is not known here.
func cpuTimes() (user, system time.Duration) { return 0, 0 }
