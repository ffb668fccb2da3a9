package sigmap

import (
	"errors"
	"fmt"

	"lockstep/io/messages"
)

// Spec says which signals go where: the map of a bench file, for one bus.
type Spec struct {
	Receive    []Link
	Send       []Link
	Sendings   []Sending
	Receptions []Reception // of messages that are watched; what it does not name has the defaults of a Reception
	PeriodNs   int64       // the grid, > 0
}

// Link joins a signal and a port.
type Link struct{ Message, Signal, Port string }

// FreePhase as a phase leaves it to Bind: the one at which the bus has the least to
// carry in any tick.
const FreePhase = -1

// Sending says when a message is sent: at the ticks where the time is PhaseNs
// more than a multiple of CycleNs.
type Sending struct {
	Message string
	Send    SendType
	CycleNs int64  // a multiple of the period, > 0; not used OnChange
	PhaseNs int64  // a multiple of the period, 0 <= phase < cycle; or FreePhase
	GapNs   int64  // least time from one frame to the next that a change brings about, a multiple of the period
	Repeats int    // frames that follow one that a change brought about; another change begins anew
	EveryNs int64  // time from one of them to the next, a multiple of the period; 0: GapNs
	Counter string // signal that counts the frames, "" for none
	Values  []Constant
	Protect []messages.ProtectionSpec // in this order
}

// Constant is what a signal carries that no port drives. Without one it carries the
// database's start value, or raw 0, which is its Offset; in a J1939 message, "not
// available": all ones.
type Constant struct {
	Signal string
	Text   string  // a text of the signal's values, or a quantity
	Course *Course // a course over time instead; its values are in the signal's unit
}

// Reception says what is expected of a received message.
type Reception struct {
	Message   string
	CycleNs   int64 // 0: the database's, if it has one
	TimeoutNs int64 // without a valid frame; DefaultTimeout: three cycles, or none without a cycle; 0: none
	FirstNs   int64 // the timeout of the first frame, from the start on, while the sender boots; 0: TimeoutNs
	DLC       int   // bytes a frame must have, exactly; 0: at least those of the message
	Protect   []messages.ProtectionSpec
	OnTimeout ReactionSpec // once the timeout has passed, until the next valid frame
	OnError   ReactionSpec // while a protected group's window is INVALID
	Invalid   []InvalidSpec
}

// DefaultTimeout stands for three cycles.
const DefaultTimeout = -1

// ReactionSpec says what follows when a message is not to be relied upon.
type ReactionSpec struct {
	Action Action
	Values []PortValue // of Substitute: ports that the message drives; the others hold
}

// PortValue is an input of the plant and a quantity.
type PortValue struct{ Port, Text string }

// InvalidSpec lists the raw values of a signal that say that there is none: numbers,
// ranges "250-255", or texts of the signal's values. An empty list means that all are
// values, of a signal of J1939 too, where the codes for "error" and "not available"
// are understood otherwise.
type InvalidSpec struct {
	Signal string
	Values []string
}

// Parts of a Spec that a SpecError can be about.
const (
	InReceive    = "receive"
	InSend       = "send"
	InSendings   = "sendings"
	InReceptions = "receptions"
)

// SpecError is an error of Bind about one entry of the Spec.
type SpecError struct {
	List  string // one of the above
	Index int    // in that list
	Part  string // of a Sending or Reception: "values", "protect", "invalid", "on_timeout", "on_error" or ""
	Item  int    // in that part
	Err   error
}

func (e *SpecError) Error() string { return "sigmap: " + e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }

// partError is an error about an entry of a part of a Sending or Reception.
type partError struct {
	part string
	item int
	err  error
}

func (e *partError) Error() string { return e.err.Error() }
func (e *partError) Unwrap() error { return e.err }

// specError says where in the Spec an error is.
func specError(list string, index int, message string, err error) error {
	s := &SpecError{List: list, Index: index, Err: fmt.Errorf("message %s: %w", message, err)}
	var p *partError
	if errors.As(err, &p) {
		s.Part, s.Item = p.part, p.item
	}
	return s
}
