//go:build unix

package iperf3

import (
	"syscall"
	"time"
)

// cpuTimes is the processor time that this process has used (getrusage, RUSAGE_SELF).
func cpuTimes() (user, system time.Duration) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	return time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())
}
