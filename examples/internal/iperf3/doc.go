// Package iperf3 speaks the protocol of esnet's iperf3 on both ends: a [Server] that the stock client measures against,
// and a client, [Run].
//
// It works over any [net.Listener], [net.PacketConn] and dial function, so that the same code serves the host's sockets
// and a network stack inside the process. What net.Conn has no method for (retransmit counts, buffer sizes, TOS) is
// reached through [Sockets]; time comes from a [Clock], so that a test may last ten simulated seconds. The deadlines of
// net.Conn run on the host's clock and are used only to interrupt a blocked call.
//
// The protocol has no document of its own; the source of esnet/iperf (iperf_api.c, iperf_server_api.c, iperf_tcp.c,
// iperf_udp.c, tags 3.1 to 3.21) defines it. In short: one TCP control connection, opened by the client with a 37-byte
// cookie, carries one-byte states and two JSON exchanges (parameters, results). Each TCP data stream is a connection to
// the same port that begins with the same cookie; each UDP stream begins with a four-byte datagram and its reply. The
// client alone decides when a test ends, whichever side sends.
//
// The server runs one test at a time. It trusts nothing that a peer sends: every read is bounded in length and in time,
// nothing a peer does ends the process or another peer's test, and each test starts from fresh state.
package iperf3
