package iperf3

import "time"

// cpuMeter measures the processor time of the process against the machine's clock, whatever clock the test runs on.
type cpuMeter struct {
	at           time.Time
	user, system time.Duration
}

func (m *cpuMeter) start() {
	m.at = time.Now()
	m.user, m.system = cpuTimes()
}

func (m *cpuMeter) percent() CPU {
	wall := time.Since(m.at).Seconds()
	if m.at.IsZero() || wall <= 0 {
		return CPU{}
	}
	user, system := cpuTimes()
	c := CPU{User: 100 * (user - m.user).Seconds() / wall, System: 100 * (system - m.system).Seconds() / wall}
	c.Total = c.User + c.System
	return c
}
