package sim

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

const (
	tunDevice = "/dev/net/tun"
	tapMTU    = 1500
	// tapQueueLength is the interface's queue in packets. gVisor's and Linux's TCP may have 4 MiB and more in flight, which
	// the default of 1000 packets does not hold.
	tapQueueLength = 10000
)

// openTAP opens, creates and sets up an interface (Linux Documentation/networking/tuntap.rst).
func openTAP(name string) (fd int, err error) {
	_, err = net.InterfaceByName(name)
	existed := err == nil
	fd, err = unix.Open(tunDevice, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", tunDevice, err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return -1, err
	}
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return -1, explainTAP(err, existed)
	}
	if err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, 0); err != nil {
		return -1, fmt.Errorf("switch offloads off: %w", err)
	}
	if err = setUpInterface(name); err != nil {
		return -1, err
	}
	return fd, nil
}

// explainTAP adds what an errno of TUNSETIFF means.
func explainTAP(err error, existed bool) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("no permission (needs CAP_NET_ADMIN): %w", err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("in use by another program: %w", err)
	case existed && errors.Is(err, unix.EINVAL):
		return fmt.Errorf("exists and is not a TAP interface: %w", err)
	}
	return err
}

// setUpInterface sets MTU and queue length and brings the interface up (netdevice(7)).
func setUpInterface(name string) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	set := func(what string, req uint, v uint32) error {
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		ifr.SetUint32(v)
		if err := unix.IoctlIfreq(s, req, ifr); err != nil {
			return fmt.Errorf("set %s: %w", what, err)
		}
		return nil
	}
	if err := set("MTU", unix.SIOCSIFMTU, tapMTU); err != nil {
		return err
	}
	if err := set("queue length", unix.SIOCSIFTXQLEN, tapQueueLength); err != nil {
		return err
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCGIFFLAGS, ifr); err != nil {
		return fmt.Errorf("get flags: %w", err)
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("bring up: %w", err)
	}
	return nil
}

// writeTAP hands a frame to the interface.
func writeTAP(fd int, p []byte) error {
	for {
		_, err := unix.Write(fd, p)
		if err != unix.EINTR {
			return err
		}
	}
}
