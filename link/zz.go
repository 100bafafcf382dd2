package link
import (
 _ "gvisor.dev/gvisor/pkg/tcpip/stack"
 _ "gvisor.dev/gvisor/pkg/tcpip/stack/gro"
 _ "gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
 _ "gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
 _ "gvisor.dev/gvisor/pkg/tcpip/transport/udp"
 _ "gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
 _ "gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
 _ "gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
 _ "gvisor.dev/gvisor/pkg/tcpip/network/arp"
 _ "gvisor.dev/gvisor/pkg/refs"
 _ "golang.org/x/sys/unix"
 _ "github.com/google/go-cmp/cmp"
)
