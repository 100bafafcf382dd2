package iperf3

import (
	"errors"
	"fmt"
	"syscall"
)

// Sentinels that errors of this package match with errors.Is.
var (
	ErrBusy          = errors.New("the server is busy running a test. try again later")
	ErrTerminated    = errors.New("the server has terminated")
	ErrClientStopped = errors.New("the client has terminated")
	ErrControlClosed = errors.New("control socket has closed unexpectedly")
	ErrTimeout       = errors.New("timed out")
	ErrOptions       = errors.New("invalid option")
	errStopped       = errors.New("server is shutting down")
)

// Code is iperf3's i_errno: the reason that follows SERVER_ERROR on the wire. The client has its own text for each.
type Code int32

// Codes that this package sends (iperf_api.h, enum starting at IENONE).
const (
	CodeDuration         Code = 5   // IEDURATION
	CodeNumStreams       Code = 6   // IENUMSTREAMS
	CodeBlockSize        Code = 7   // IEBLOCKSIZE
	CodeBufSize          Code = 8   // IEBUFSIZE
	CodeMSS              Code = 10  // IEMSS
	CodeOmit             Code = 12  // IEOMIT
	CodeBurst            Code = 15  // IEBURST
	CodeUDPBlockSize     Code = 20  // IEUDPBLOCKSIZE
	CodeBadTOS           Code = 21  // IEBADTOS
	CodeTotalRate        Code = 27  // IETOTALRATE
	CodeMaxDuration      Code = 37  // IEMAXSERVERTESTDURATIONEXCEEDED
	CodeReceiveCookie    Code = 106 // IERECVCOOKIE
	CodeControlClosed    Code = 109 // IECTRLCLOSE
	CodeMessage          Code = 110 // IEMESSAGE
	CodeReceiveParams    Code = 114 // IERECVPARAMS
	CodeReceiveResults   Code = 117 // IERECVRESULTS
	CodeProtocol         Code = 131 // IEPROTOCOL
	CodeNoData           Code = 144 // IENOMSG
	CodeDurationExpired  Code = 160 // IESERVERTESTDURATIONEXPIRED
	CodeCreateStream     Code = 200 // IECREATESTREAM
	CodeStreamConnection Code = 203 // IESTREAMCONNECT
)

var codeTexts = map[Code]string{
	CodeDuration:         "test duration too long (maximum = 86400 seconds)",
	CodeNumStreams:       "number of parallel streams out of range (1 to 128)",
	CodeBlockSize:        "block size too large (maximum = 1048576 bytes)",
	CodeBufSize:          "socket buffer size too large (maximum = 512 MiB)",
	CodeMSS:              "TCP MSS too large (maximum = 9216 bytes)",
	CodeOmit:             "bogus value for --omit (0 to 600 seconds)",
	CodeBurst:            "invalid burst count (maximum = 1000)",
	CodeUDPBlockSize:     "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)",
	CodeBadTOS:           "bad TOS value",
	CodeTotalRate:        "total required bandwidth is larger than server limit",
	CodeMaxDuration:      "requested duration exceeds the server's limit",
	CodeReceiveCookie:    "unable to receive cookie at server",
	CodeControlClosed:    "control socket has closed unexpectedly",
	CodeMessage:          "received an unknown control message",
	CodeReceiveParams:    "unable to receive parameters from client",
	CodeReceiveResults:   "unable to receive results",
	CodeProtocol:         "protocol does not exist",
	CodeNoData:           "idle timeout for receiving data",
	CodeDurationExpired:  "server test duration expired",
	CodeCreateStream:     "unable to create a new stream",
	CodeStreamConnection: "unable to connect stream",
	142:                  "test authorization failed",
}

// ServerError is a failure that the server reports to its client with SERVER_ERROR, and what a client gets to see of it.
type ServerError struct {
	Code   Code          // i_errno
	Errno  syscall.Errno // the server's errno, 0: none. The number is Linux's whatever the machine
	Detail string        // what exactly was wrong; stays on the side that found it
}

// Error is the text of the code and, where known, the detail.
func (e *ServerError) Error() string {
	t, ok := codeTexts[e.Code]
	if !ok {
		t = fmt.Sprintf("int_errno=%d", int32(e.Code))
	}
	if e.Detail != "" {
		t += ": " + e.Detail
	}
	return t
}

// fail makes the error for a code with a detail in the manner of Sprintf.
func fail(c Code, format string, args ...any) error {
	return &ServerError{Code: c, Detail: fmt.Sprintf(format, args...)}
}

// codeOf is the code that tells a peer about err, or fallback if err carries none.
func codeOf(err error, fallback Code) Code {
	if e, ok := errors.AsType[*ServerError](err); ok {
		return e.Code
	}
	return fallback
}
