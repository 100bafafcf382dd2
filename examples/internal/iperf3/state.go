package iperf3

import "fmt"

// State is one byte on the control connection (iperf.h, "states").
type State int8

// The states that are sent on the wire. 3, 5, 6, 7, 8 and 15 exist in iperf.h and never travel.
const (
	TestStart       State = 1  // server: all streams are there, timers start
	TestRunning     State = 2  // server: data may flow
	TestEnd         State = 4  // client: time, bytes or blocks reached
	ParamExchange   State = 9  // server: send your parameters
	CreateStreams   State = 10 // server: open your streams
	ServerTerminate State = 11 // server: shutting down
	ClientTerminate State = 12 // client: interrupted
	ExchangeResults State = 13 // server: send your results
	DisplayResults  State = 14 // server: results are exchanged
	IperfDone       State = 16 // client: good-bye
	AccessDenied    State = -1 // server: busy, or a stream with a foreign cookie
	ServerErrorByte State = -2 // server: two big-endian int32 follow, see ServerError
)

var stateNames = map[State]string{
	TestStart: "TEST_START", TestRunning: "TEST_RUNNING", TestEnd: "TEST_END", ParamExchange: "PARAM_EXCHANGE",
	CreateStreams: "CREATE_STREAMS", ServerTerminate: "SERVER_TERMINATE", ClientTerminate: "CLIENT_TERMINATE",
	ExchangeResults: "EXCHANGE_RESULTS", DisplayResults: "DISPLAY_RESULTS", IperfDone: "IPERF_DONE",
	AccessDenied: "ACCESS_DENIED", ServerErrorByte: "SERVER_ERROR",
}

// String is the name that iperf.h gives the state.
func (s State) String() string {
	if n, ok := stateNames[s]; ok {
		return n
	}
	return fmt.Sprintf("state %d", int8(s))
}
