//go:build !linux

package mmio

import "time"

// waker is not there: Open fails before it could be used.
type waker struct{}

func newWaker() (*waker, error)                      { return nil, supported() }
func (*waker) wake()                                 {}
func (*waker) signal()                               {}
func (*waker) take() bool                            { return false }
func (*waker) pending() bool                         { return false }
func (*waker) wait(int, time.Duration) (bool, error) { return true, supported() }
func (*waker) close()                                {}
