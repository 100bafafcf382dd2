package iperf3

import "time"

// pacer holds a sender to its rate. It goes by the average since the stream began: a block is due as soon as no more
// than rate times elapsed has been sent. So one block is the most that it is ever ahead, and it does not drift.
type pacer struct {
	r     *run
	rate  float64 // bit/s; 0: no limit
	start time.Time
	alarm *alarm
}

func (r *run) newPacer() *pacer {
	return &pacer{r: r, rate: r.params.rate(), start: r.clock.Now(), alarm: newAlarm(r.clock)}
}

// wait returns true when the next block is due after sent bytes, false when the test is stopped.
func (p *pacer) wait(sent int64) bool {
	if p.r.stopping() {
		return false
	}
	if p.rate <= 0 {
		return true
	}
	due := p.start.Add(seconds(float64(sent) * 8 / p.rate))
	for {
		d := due.Sub(p.r.clock.Now())
		if d <= 0 {
			return true
		}
		if !p.pause(d) {
			return false
		}
	}
}

// pause returns true after about d, false when the test is stopped.
func (p *pacer) pause(d time.Duration) bool {
	p.alarm.Set(d)
	select {
	case <-p.alarm.C:
		return true
	case <-p.r.stop:
		return false
	}
}

func (p *pacer) stop() { p.alarm.Stop() }

// seconds converts, limiting what does not fit.
func seconds(s float64) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	if !(s < longest.Seconds()) {
		return longest
	}
	return time.Duration(s * float64(time.Second))
}
