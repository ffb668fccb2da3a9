// Package uds owns the diagnosis of a control unit by a tester: the client of ISO 14229-1 (UDS) over package
// isotp, the requests to all units of SAE J1979 (OBD), and the images that a tester writes into a unit's memory.
//
// A Client has no goroutine, no clock and no bus, like isotp.Link: frames and instants (ns on any one clock) go in,
// frames, deadlines and exchanges come out. A Task runs a procedure of several requests on a client as straight
// code: the procedure stops in Tester.Ask until the answer is there.
//
// Reading order: uds.go (services, negative responses), client.go (Client: one request at a time), task.go (Task,
// Tester), services.go (a method of Tester for each service), dtc.go (trouble codes), flash.go and image.go (writing
// memory), obd.go (Group: requests to all units).
package uds

import (
	"errors"
	"fmt"
)

// Services of ISO 14229-1.
const (
	SessionControl       = 0x10
	ECUReset             = 0x11
	ClearDTC             = 0x14
	ReadDTC              = 0x19
	ReadData             = 0x22
	SecurityAccess       = 0x27
	CommunicationControl = 0x28
	WriteData            = 0x2E
	InputOutputControl   = 0x2F
	RoutineControl       = 0x31
	RequestDownload      = 0x34
	TransferData         = 0x36
	TransferExit         = 0x37
	TesterPresent        = 0x3E
	ControlDTCSetting    = 0x85

	negative      = 0x7F
	positive      = 0x40 // added to the service in a positive response
	suppress      = 0x80 // of a sub-function: no positive response
	pendingAnswer = 0x78
)

// service is how the answers of a service are checked.
type service struct {
	name     string
	function bool // byte 1 is a sub-function
	echo     int  // bytes after the service that the answer repeats
	min, max int  // bytes of a positive answer; max 0: no limit
}

var services = map[byte]service{
	SessionControl:       {"DiagnosticSessionControl", true, 1, 2, 6},
	ECUReset:             {"ECUReset", true, 1, 2, 3},
	ClearDTC:             {"ClearDiagnosticInformation", false, 0, 1, 1},
	ReadDTC:              {"ReadDTCInformation", true, 1, 3, 0},
	ReadData:             {"ReadDataByIdentifier", false, 2, 4, 0},
	SecurityAccess:       {"SecurityAccess", true, 1, 2, 0},
	CommunicationControl: {"CommunicationControl", true, 1, 2, 2},
	WriteData:            {"WriteDataByIdentifier", false, 2, 3, 3},
	InputOutputControl:   {"InputOutputControlByIdentifier", false, 2, 4, 0},
	RoutineControl:       {"RoutineControl", true, 3, 4, 0},
	RequestDownload:      {"RequestDownload", false, 0, 3, 0},
	TransferData:         {"TransferData", false, 1, 2, 0},
	TransferExit:         {"RequestTransferExit", false, 0, 1, 0},
	TesterPresent:        {"TesterPresent", true, 1, 2, 2},
	ControlDTCSetting:    {"ControlDTCSetting", true, 1, 2, 2},
}

// ServiceName returns "0x22 ReadDataByIdentifier".
func ServiceName(id byte) string {
	if s, ok := services[id]; ok {
		return fmt.Sprintf("0x%02X %s", id, s.name)
	}
	return fmt.Sprintf("0x%02X", id)
}

// Negative response codes: ISO 14229-1, annex A.
var negativeNames = map[byte]string{
	0x10: "generalReject", 0x11: "serviceNotSupported", 0x12: "subFunctionNotSupported",
	0x13: "incorrectMessageLengthOrInvalidFormat", 0x14: "responseTooLong", 0x21: "busyRepeatRequest",
	0x22: "conditionsNotCorrect", 0x24: "requestSequenceError", 0x25: "noResponseFromSubnetComponent",
	0x26: "failurePreventsExecutionOfRequestedAction", 0x31: "requestOutOfRange", 0x33: "securityAccessDenied",
	0x34: "authenticationRequired", 0x35: "invalidKey", 0x36: "exceededNumberOfAttempts",
	0x37: "requiredTimeDelayNotExpired", 0x70: "uploadDownloadNotAccepted", 0x71: "transferDataSuspended",
	0x72: "generalProgrammingFailure", 0x73: "wrongBlockSequenceCounter",
	0x78: "requestCorrectlyReceived-ResponsePending", 0x7E: "subFunctionNotSupportedInActiveSession",
	0x7F: "serviceNotSupportedInActiveSession", 0x81: "rpmTooHigh", 0x82: "rpmTooLow", 0x83: "engineIsRunning",
	0x84: "engineIsNotRunning", 0x85: "engineRunTimeTooLow", 0x86: "temperatureTooHigh", 0x87: "temperatureTooLow",
	0x88: "vehicleSpeedTooHigh", 0x89: "vehicleSpeedTooLow", 0x8A: "throttle/PedalTooHigh",
	0x8B: "throttle/PedalTooLow", 0x8C: "transmissionRangeNotInNeutral", 0x8D: "transmissionRangeNotInGear",
	0x8F: "brakeSwitchesNotClosed", 0x90: "shifterLeverNotInPark", 0x91: "torqueConverterClutchLocked",
	0x92: "voltageTooHigh", 0x93: "voltageTooLow",
}

// Negative is a negative response of the unit.
type Negative struct{ Service, Code byte }

func (n *Negative) Error() string {
	name := negativeNames[n.Code]
	if name == "" {
		name = "a code without a name"
	}
	return fmt.Sprintf("the unit refuses %s: negative response 0x%02X %s", ServiceName(n.Service), n.Code, name)
}

// ErrSilent is the error of a request that the unit has not answered in time.
var ErrSilent = errors.New("the unit does not answer")

// errWrong is the error of an answer that does not belong to its request.
func errWrong(request, answer []byte, why string) error {
	return fmt.Errorf("answer %s to request %s: %s", Bytes(answer), Bytes(request), why)
}

// mostBytes is how many bytes of a message a text has.
const mostBytes = 24

// Bytes formats a message for people: "62 10 01 5A", with dots after 24 bytes.
func Bytes(data []byte) string {
	if len(data) > mostBytes {
		return fmt.Sprintf("% X ... (%d bytes)", data[:mostBytes], len(data))
	}
	return fmt.Sprintf("% X", data)
}

// checkAnswer checks a positive answer against its request: service, length and the repeated bytes.
func checkAnswer(request, answer []byte) error {
	if answer[0] != request[0]|positive {
		return errWrong(request, answer, "it answers another service")
	}
	s, known := services[request[0]]
	switch n := len(answer); {
	case !known:
		return nil
	case n < s.min:
		return errWrong(request, answer, fmt.Sprintf("%d bytes are too short for %s, which has at least %d", n, ServiceName(request[0]), s.min))
	case s.max > 0 && n > s.max:
		return errWrong(request, answer, fmt.Sprintf("%d bytes are too long for %s, which has at most %d", n, ServiceName(request[0]), s.max))
	}
	for i := 1; i <= min(s.echo, len(request)-1); i++ {
		want := request[i]
		if i == 1 && s.function {
			want &^= suppress
		}
		if answer[i] != want {
			return errWrong(request, answer, fmt.Sprintf("byte %d is 0x%02X, want 0x%02X of the request", i, answer[i], want))
		}
	}
	return nil
}
