package can

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// State is how a controller stands to its bus: ISO 11898-1, fault confinement.
type State uint8

// The states, the worse the higher.
const (
	Unknown State = iota // nobody has said; an interface without a controller, as of vcan, has none
	Active               // error-active, as it should be
	Warning              // still active; one of its error counters is at 96 or more
	Passive              // one is at 128 or more: it may no longer destroy a frame that it finds wrong
	Off                  // its transmit counter has passed 255: it sends and receives nothing
	Stopped              // its interface is down
)

// String is the state as the tools of Linux call it, in lower case.
func (s State) String() string {
	names := [...]string{"no state", "error-active", "error-warning", "error-passive", "bus-off", "stopped"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Errors counts what a controller and its driver have said in error frames, and keeps
// how the controller stands by the last of them: linux/can/error.h.
type Errors struct {
	State    State // Unknown: no frame has told yet
	Sends    bool  // Warning or Passive is it by what it sends
	Receives bool  // and by what it receives
	Counted  bool  // its error counters were told:
	Tx, Rx   uint8 // of what it sends, and of what it receives

	Frames uint64 // error frames; one may say several of what follows

	Warnings uint64 // it went to the state Warning
	Passives uint64 // likewise
	Offs     uint64 // likewise
	Restarts uint64 // its driver has brought it back to the bus

	Arbitration uint64 // it lost the arbitration to another sender, and tries again
	LostBit     int    // the bit of the frame at which, the last time; 0: not told
	NoAck       uint64 // nobody acknowledged what it sent
	Bus         uint64 // what was on the bus is no frame: violations of the protocol, and bus errors without more
	TxTimeout   uint64 // its driver gave up on what it was to send
	RxOverflow  uint64 // its own receive buffer was full: frames are lost that no one counts
	TxOverflow  uint64 // its send buffer was full
	Transceiver uint64 // the transceiver says there is something wrong with the wires
}

// Add takes in an error frame and tells whether it was one.
func (e *Errors) Add(f *Frame) bool {
	if f.ID&ERR == 0 || f.FD() || f.Len != 8 { // CAN_ERR_DLC
		return false
	}
	e.Frames++
	has := func(class uint32) bool { return f.ID&class != 0 }
	count := func(n *uint64, class uint32) {
		if has(class) {
			*n++
		}
	}
	count(&e.Arbitration, unix.CAN_ERR_LOSTARB)
	count(&e.NoAck, unix.CAN_ERR_ACK)
	count(&e.Bus, unix.CAN_ERR_PROT|unix.CAN_ERR_BUSERROR)
	count(&e.TxTimeout, unix.CAN_ERR_TX_TIMEOUT)
	count(&e.Transceiver, unix.CAN_ERR_TRX)
	count(&e.Restarts, unix.CAN_ERR_RESTARTED)
	if has(unix.CAN_ERR_LOSTARB) {
		e.LostBit = int(f.Data[0])
	}
	if has(unix.CAN_ERR_CNT) {
		e.Counted, e.Tx, e.Rx = true, f.Data[6], f.Data[7]
	}
	if has(unix.CAN_ERR_RESTARTED) {
		e.State = Active
	}
	if has(unix.CAN_ERR_CRTL) {
		e.controller(f.Data[1])
	}
	if has(unix.CAN_ERR_BUSOFF) {
		e.goes(Off, &e.Offs)
	}
	return true
}

// controller takes in what a frame of the class CAN_ERR_CRTL says.
func (e *Errors) controller(says byte) {
	if says&unix.CAN_ERR_CRTL_RX_OVERFLOW != 0 {
		e.RxOverflow++
	}
	if says&unix.CAN_ERR_CRTL_TX_OVERFLOW != 0 {
		e.TxOverflow++
	}
	const passive, warning = unix.CAN_ERR_CRTL_TX_PASSIVE | unix.CAN_ERR_CRTL_RX_PASSIVE, unix.CAN_ERR_CRTL_TX_WARNING | unix.CAN_ERR_CRTL_RX_WARNING
	switch {
	case says&passive != 0:
		e.goes(Passive, &e.Passives)
	case says&warning != 0:
		e.goes(Warning, &e.Warnings)
	case says&unix.CAN_ERR_CRTL_ACTIVE != 0:
		e.State = Active
	default:
		return
	}
	e.Sends = says&(unix.CAN_ERR_CRTL_TX_PASSIVE|unix.CAN_ERR_CRTL_TX_WARNING) != 0
	e.Receives = says&(unix.CAN_ERR_CRTL_RX_PASSIVE|unix.CAN_ERR_CRTL_RX_WARNING) != 0
}

// goes counts a change to a state. A controller repeats what it has said.
func (e *Errors) goes(to State, n *uint64) {
	if e.State != to {
		*n++
	}
	e.State = to
}

// DialErrors opens a socket of its own on the interface name that receives all error
// frames and nothing else. Recv, and Stats.RxOverflow of what was not read in time,
// bound what a flood of them costs.
func DialErrors(name string) (*Bus, error) {
	b, err := Dial(name, nil)
	if err != nil {
		return nil, err
	}
	b.listens = true
	if err := b.hear(unix.CAN_ERR_MASK); err != nil {
		b.Close()
		return nil, fmt.Errorf("can: errors of %s: %w", name, err)
	}
	return b, nil
}

// hear asks the kernel for error frames of these classes.
func (b *Bus) hear(classes int) error {
	return os.NewSyscallError("setsockopt CAN_RAW_ERR_FILTER", unix.SetsockoptInt(b.fd, unix.SOL_CAN_RAW, unix.CAN_RAW_ERR_FILTER, classes))
}
