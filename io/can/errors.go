package can

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// State is the fault confinement state of a controller: ISO 11898-1.
type State uint8

// The states, in ascending severity.
const (
	Unknown State = iota // not reported; an interface without a controller, such as vcan, has no state
	Active               // error-active, the normal state
	Warning              // error-active with an error counter of 96 or more
	Passive              // error-passive, an error counter of 128 or more: sends no active error flags
	Off                  // bus-off, the transmit error counter above 255: sends and receives nothing
	Stopped              // the interface is down
)

// String returns the name that the Linux tools use, in lower case.
func (s State) String() string {
	names := [...]string{"no state", "error-active", "error-warning", "error-passive", "bus-off", "stopped"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Errors counts the error frames of a controller and its driver, and holds the state
// that the last of them reported: linux/can/error.h.
type Errors struct {
	State       State // last state reported; Unknown: none yet
	ByTx        bool  // the transmit error counter causes Warning or Passive
	ByRx        bool  // the receive error counter causes Warning or Passive
	HasCounters bool  // Tx and Rx were reported
	Tx, Rx      uint8 // transmit and receive error counters

	Frames uint64 // error frames; one frame may add to several of ErrorCounts

	ErrorCounts
}

// ErrorCounts counts each kind of error. The JSON keys are those of a report.
type ErrorCounts struct {
	Warnings uint64 `json:"warnings"` // transitions to Warning
	Passives uint64 `json:"passives"` // transitions to Passive
	Offs     uint64 `json:"offs"`     // transitions to Off
	Restarts uint64 `json:"restarts"` // restarts of the controller after bus-off

	Arbitration uint64 `json:"arbitration_lost"` // arbitrations lost to another sender; the controller tries again

	// bit of the frame at which the last arbitration was lost; 0: not reported
	LostBit int `json:"arbitration_lost_bit,omitempty"`

	NoAck uint64 `json:"no_acknowledgement"` // frames sent that no other node acknowledged

	// protocol violations, and bus errors without details
	Bus uint64 `json:"bus_errors"`

	TxTimeout   uint64 `json:"tx_timeouts"`             // transmissions that the driver gave up
	RxOverflow  uint64 `json:"controller_rx_overflows"` // overflows of the receive buffer; frames lost unknown
	TxOverflow  uint64 `json:"controller_tx_overflows"` // overflows of the transmit buffer
	Transceiver uint64 `json:"transceiver_errors"`      // wiring faults that the transceiver reported
}

// Add counts the error frame f; false means that f is not an error frame.
func (e *Errors) Add(f *Frame) bool {
	if f.ID&ERR == 0 || f.FD() || f.Len != 8 { // CAN_ERR_DLC
		return false
	}
	e.Frames++
	has := func(class uint32) bool { return f.ID&class != 0 }
	countIf(&e.Arbitration, has(unix.CAN_ERR_LOSTARB))
	countIf(&e.NoAck, has(unix.CAN_ERR_ACK))
	announced := has(unix.CAN_ERR_PROT) && f.Data[2] == unix.CAN_ERR_PROT_ACTIVE // error-active again, as usb_8dev says it
	countIf(&e.Bus, has(unix.CAN_ERR_BUSERROR) || has(unix.CAN_ERR_PROT) && !announced)
	countIf(&e.TxTimeout, has(unix.CAN_ERR_TX_TIMEOUT))
	countIf(&e.Transceiver, has(unix.CAN_ERR_TRX))
	countIf(&e.Restarts, has(unix.CAN_ERR_RESTARTED))
	if has(unix.CAN_ERR_LOSTARB) {
		e.LostBit = int(f.Data[0])
	}
	if has(unix.CAN_ERR_CNT) {
		e.HasCounters, e.Tx, e.Rx = true, f.Data[6], f.Data[7]
	}
	if has(unix.CAN_ERR_RESTARTED) || announced {
		e.State = Active
	}
	if has(unix.CAN_ERR_CRTL) {
		e.applyControllerStatus(f.Data[1])
	}
	if has(unix.CAN_ERR_BUSOFF) {
		e.enterState(Off, &e.Offs)
	}
	return true
}

// applyControllerStatus applies data[1] of a frame of the class CAN_ERR_CRTL.
func (e *Errors) applyControllerStatus(status byte) {
	countIf(&e.RxOverflow, status&unix.CAN_ERR_CRTL_RX_OVERFLOW != 0)
	countIf(&e.TxOverflow, status&unix.CAN_ERR_CRTL_TX_OVERFLOW != 0)
	const (
		passive  = unix.CAN_ERR_CRTL_TX_PASSIVE | unix.CAN_ERR_CRTL_RX_PASSIVE
		sends    = unix.CAN_ERR_CRTL_TX_PASSIVE | unix.CAN_ERR_CRTL_TX_WARNING
		receives = unix.CAN_ERR_CRTL_RX_PASSIVE | unix.CAN_ERR_CRTL_RX_WARNING
	)
	switch {
	case status&passive != 0:
		e.enterState(Passive, &e.Passives)
	case status&(sends|receives) != 0:
		e.enterState(Warning, &e.Warnings)
	case status&unix.CAN_ERR_CRTL_ACTIVE != 0:
		e.State = Active
	default:
		return
	}

	e.ByTx, e.ByRx = status&sends != 0, status&receives != 0
}

// enterState sets the state and counts the transition; controllers repeat their reports.
func (e *Errors) enterState(to State, n *uint64) {
	countIf(n, e.State != to)
	e.State = to
}

// countIf adds 1 to n if the condition holds.
func countIf(n *uint64, condition bool) {
	if condition {
		*n++
	}
}

// DialErrors opens a separate socket on the interface name that receives all error
// frames and no others. A flood of error frames costs no more than the caller's Recv;
// those not read in time are counted in Stats.RxOverflow.
func DialErrors(name string) (*Bus, error) {
	b, err := Dial(name, nil)
	if err != nil {
		return nil, err
	}
	b.errorsOnly = true
	if err := b.subscribeErrors(unix.CAN_ERR_MASK); err != nil {
		b.Close()
		return nil, fmt.Errorf("can: errors of %s: %w", name, err)
	}

	return b, nil
}

// subscribeErrors asks the kernel for error frames of the given classes.
func (b *Bus) subscribeErrors(classes int) error {
	err := unix.SetsockoptInt(b.fd, unix.SOL_CAN_RAW, unix.CAN_RAW_ERR_FILTER, classes)
	return os.NewSyscallError("setsockopt CAN_RAW_ERR_FILTER", err)
}
