package sim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"dwnet/hw"

	"golang.org/x/sys/unix"
)

// inNamespace runs f in a network namespace of its own, on a thread that is thrown away with it.
func inNamespace(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	done := make(chan string)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			done <- err.Error()
			return
		}
		if _, err := os.Stat(tunDevice); err != nil {
			done <- err.Error()
			return
		}
		defer close(done)
		f(t)
	}()
	if why := <-done; why != "" {
		t.Skip("needs root and TUN/TAP: ", why)
	}
}

func interfaceExists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

func TestTAPLifeCycle(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		a, err := OpenTAP(TAPOptions{Name: "tap7"})
		if err != nil {
			t.Error(err)
			return
		}
		i, err := net.InterfaceByName("tap7")
		if err != nil || i.MTU != 1500 || i.Flags&net.FlagUp == 0 {
			t.Errorf("interface %+v, %v", i, err)
		}
		if addrs, _ := i.Addrs(); len(addrs) > 1 { // a link-local one may be there
			t.Errorf("addresses %v", addrs)
		}
		if _, err := OpenTAP(TAPOptions{Name: "tap7"}); !errors.Is(err, unix.EBUSY) || !oneLine(err, "tap7") {
			t.Errorf("a second user: %v", err)
		}
		for range 2 {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
		if interfaceExists("tap7") {
			t.Error("the interface outlives its user")
		}
		if _, err := OpenTAP(TAPOptions{Name: "lo"}); !errors.Is(err, unix.EINVAL) || !oneLine(err, "not a TAP") {
			t.Errorf("the loopback interface: %v", err)
		}
		b, err := OpenTAP(TAPOptions{Name: "tap7"})
		if err != nil {
			t.Error(err)
			return
		}
		b.Close()
	})
}

func oneLine(err error, part string) bool {
	return err != nil && strings.Contains(err.Error(), part) && !strings.Contains(err.Error(), "\n")
}

func TestTAPNames(t *testing.T) {
	for _, name := range []string{"", "a/b", "tap%d", "with blank", "sixteen-bytes-xx", ".", ".."} {
		if _, err := OpenTAP(TAPOptions{Name: name}); !errors.Is(err, hw.ErrConfig) || !oneLine(err, "TAP interface") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// arp is a request for an IPv4 address.
func arp(from [6]byte, ip, want [4]byte) []byte {
	p := bytes.Repeat([]byte{0xFF}, 6)
	p = append(p, from[:]...)
	p = append(p, 0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1)
	p = append(p, from[:]...)
	p = append(p, ip[:]...)
	p = append(p, make([]byte, 6)...)
	p = append(p, want[:]...)
	return append(p, make([]byte, minFrame-len(p))...)
}

// TestTAPCarriesFrames asks the machine for its address over a cable and gets the answer, padded as Ethernet wants it.
func TestTAPCarriesFrames(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		tap, err := OpenTAP(TAPOptions{Name: "tap7"})
		if err != nil {
			t.Error(err)
			return
		}
		defer tap.Close()
		mine, theirs := [4]byte{192, 168, 77, 2}, [4]byte{192, 168, 77, 1}
		if err := setAddress("tap7", theirs); err != nil {
			t.Error(err)
			return
		}
		answers := make(chan []byte, 16)
		b, err := NewBoard(Options{})
		if err != nil {
			t.Error(err)
			return
		}
		defer b.Close()
		c, err := Connect(b, tap, CableOptions{SpeedMbps: 1000})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		d := openDriver(t, b, driverOptions{})
		d.linkUp()
		mac := d.port.Info().Address
		d.send(arp(mac, mine, theirs))
		deadline := time.Now().Add(hangGuard)
		for len(answers) == 0 && time.Now().Before(deadline) {
			r := d.next()
			if p := r.frame(); binary.BigEndian.Uint16(p[12:]) == 0x0806 && p[21] == 2 {
				answers <- p
			}
		}
		p := <-answers
		if len(p) != minFrame || !bytes.Equal(p[:6], mac[:]) || !bytes.Equal(p[28:32], theirs[:]) {
			t.Errorf("answer %x", p)
		}
		noViolations(t, b)
	})
}

// setAddress gives an interface an IPv4 address of a /24.
func setAddress(name string, ip [4]byte) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	for _, x := range []struct {
		req  uint
		addr [4]byte
	}{{unix.SIOCSIFADDR, ip}, {unix.SIOCSIFNETMASK, [4]byte{255, 255, 255, 0}}} {
		ifr, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := ifr.SetInet4Addr(x.addr[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, x.req, ifr); err != nil {
			return err
		}
	}
	return nil
}

// TestTAPFloodIsHeld: what the wire cannot take yet waits in the kernel, and nothing hangs or grows.
func TestTAPFloodIsHeld(t *testing.T) {
	inNamespace(t, func(t *testing.T) {
		tap, err := OpenTAP(TAPOptions{Name: "tap7"})
		if err != nil {
			t.Error(err)
			return
		}
		defer tap.Close()
		if err := setAddress("tap7", [4]byte{192, 168, 77, 1}); err != nil {
			t.Error(err)
			return
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer unix.Close(s)
		if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
			t.Error(err)
			return
		}
		const n = 600 // more than the queue
		for i := range n {
			p := make([]byte, 100)
			binary.BigEndian.PutUint32(p, uint32(i))
			to := &unix.SockaddrInet4{Port: 9, Addr: [4]byte{192, 168, 77, 255}}
			if err := unix.Sendto(s, p, 0, to); err != nil {
				t.Error(err)
				return
			}
		}
		got := make(chan uint32, n)
		h := NewHost(func(p []byte) {
			if len(p) == 142 && binary.BigEndian.Uint16(p[12:]) == typeIPv4 && p[23] == protoUDP {
				got <- binary.BigEndian.Uint32(p[42:])
			}
		})
		c, err := Connect(tap, h, CableOptions{SpeedMbps: 1000, BackPressure: true})
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		guard := time.After(hangGuard)
		for i := range uint32(n) {
			select {
			case v := <-got:
				if v != i {
					t.Errorf("datagram %d came as number %d", v, i)
					return
				}
			case <-guard:
				t.Errorf("only %d of %d datagrams came", i, n)
				return
			}
		}
	})
}
