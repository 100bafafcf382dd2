package phy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dwnet/hw"
)

// ResetTiming is how long a PHY's reset line is held and how long the PHY is left alone after it.
type ResetTiming struct {
	Assert time.Duration // 0: 10 ms. Less than 10 ms is taken as 10 ms
	Settle time.Duration // before the first access; 0: 80 ms. Less than 30 ms is taken as 30 ms
}

// Timing of the RTL8211F, as reset-assert-us and reset-deassert-us of device trees have it: Linux meson8b-odroidc1.dts has the
// defaults, meson-gxbb-odroidc2.dts the shortest times in use.
const (
	DefaultAssert = 10 * time.Millisecond
	DefaultSettle = 80 * time.Millisecond
	MinAssert     = 10 * time.Millisecond
	MinSettle     = 30 * time.Millisecond
	// MaxReset is the longest time that either may take. A longer one is a mistake of units.
	MaxReset = 10 * time.Second
)

// Validate checks the times. The error matches [hw.ErrConfig].
func (t ResetTiming) Validate() error {
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"Assert", t.Assert}, {"Settle", t.Settle}} {
		if f.d < 0 || f.d > MaxReset {
			return configError("ResetTiming."+f.name, "%v is not from 0 to %v", f.d, MaxReset)
		}
	}
	return nil
}

// Effective is the times that [HardReset] keeps: the defaults for zero and never less than the minimum.
func (t ResetTiming) Effective() ResetTiming {
	at := func(d, def, least time.Duration) time.Duration {
		if d == 0 {
			return def
		}
		return max(d, least)
	}
	return ResetTiming{at(t.Assert, DefaultAssert, MinAssert), at(t.Settle, DefaultSettle, MinSettle)}
}

// ResetLine is the line to a PHY's reset pin, whatever its polarity.
type ResetLine interface {
	// SetReset holds the PHY in reset or lets go of it.
	SetReset(held bool) error
}

// HardReset pulses a PHY's reset line and waits until the PHY may be spoken to. When it returns the line is let go, also when
// ctx ended meanwhile or the line failed.
func HardReset(ctx context.Context, c hw.Clock, line ResetLine, t ResetTiming) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("reset PHY: %w", err)
	}
	t = t.Effective()
	err := line.SetReset(true)
	if err == nil {
		err = sleep(ctx, c, t.Assert)
	}
	if err = errors.Join(err, line.SetReset(false)); err == nil {
		err = sleep(ctx, c, t.Settle)
	}
	if err != nil {
		return fmt.Errorf("reset PHY: %w", err)
	}
	return nil
}

// sleep waits on the clock until d has passed or ctx ends.
func sleep(ctx context.Context, c hw.Clock, d time.Duration) error {
	if ctx.Done() == nil {
		c.Sleep(d)
		return nil
	}
	passed := make(chan struct{})
	timer := c.AfterFunc(d, func() { close(passed) })
	select {
	case <-passed:
		return nil
	case <-ctx.Done():
		timer.Stop()
		return ctx.Err()
	}
}
