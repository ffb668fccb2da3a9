package sigmap

import (
	"errors"
	"fmt"
)

// Spec is the input of Bind: the signals, messages and timing of one bus of a bench file.
type Spec struct {
	Receive    []Link
	Send       []Link
	Sendings   []Sending
	Receptions []Reception // expectations of received messages; others have the defaults of a Reception
	Addresses  []uint8     // J1939 addresses of the bench on this bus
	PeriodNs   int64       // period of the tick, ns, > 0
}

// Link binds a signal to a port of the plant.
type Link struct{ Message, Signal, Port string }

// PortOf returns the port to which a signal is bound, "" if none is.
func PortOf(list []Link, message, signal string) string {
	for _, l := range list {
		if l.Message == message && l.Signal == signal {
			return l.Port
		}
	}

	return ""
}

// FreePhase as a phase lets Bind choose the phase that minimizes the peak load of the bus.
const FreePhase = -1

// Sending says when a message is sent and with which values. A cyclic message is sent at
// the ticks at PhaseNs plus a multiple of CycleNs.
type Sending struct {
	Message             string
	Source, Destination Address // addresses of a J1939 message
	Send                SendType
	CycleNs             int64  // cycle, ns, a multiple of the period, > 0; not used if OnChange
	PhaseNs             int64  // phase, ns, a multiple of the period, 0 <= phase < cycle; or FreePhase
	GapNs               int64  // minimum time before a frame sent on change, ns, a multiple of the period
	Repeats             int    // repetitions of a frame sent on change; another change restarts them
	EveryNs             int64  // time between repetitions, ns, a multiple of the period; 0: GapNs
	Counter             string // signal that counts the frames, "" for none
	Values              []Constant
	Mux                 *Rotation        // pages of a multiplexed message, sent in turn; nil: one page
	Protect             []ProtectionSpec // protections, applied in this order
	Restbus             bool             // all signals without a port become fields, not only those in Values
}

// Rotation selects pages of a multiplexed message. Each frame is the next page.
type Rotation struct {
	Values []string // values of the multiplexor: numbers or value texts; empty: all that select a signal
}

// Constant is the value of a signal that no port drives. A signal without one carries the
// start value of the database, or raw 0, which is its Offset; in a J1939 message all ones,
// "not available".
type Constant struct {
	Signal   string
	Text     string    // value text of the signal, or a quantity
	Waveform *Waveform // instead of Text: values over time in the signal's unit; nil: none
}

// Reception is the timing and protection expected of a received message.
type Reception struct {
	Message           string
	From, Destination Address // addresses of a J1939 message: sender and addressed node
	CycleNs           int64   // expected cycle, ns; 0: the cycle of the database, if any
	TimeoutNs         int64   // longest time without a valid frame, ns; DefaultTimeout: three cycles, if any; 0: none
	FirstNs           int64   // timeout of the first frame, ns from the start, while the sender boots; 0: TimeoutNs
	DLC               int     // exact length of a frame, bytes; 0: at least the length of the message
	BRS               bool    // a frame without bit rate switch has the wrong format
	Protect           []ProtectionSpec
	OnTimeout         ReactionSpec // reaction from the timeout to the next valid frame
	OnError           ReactionSpec // reaction while the window is INVALID; without Protect it counts formats and lengths
	Rule              RangeRule
	Invalid           []InvalidSpec
}

// RangeRule is what a signal out of its range makes invalid.
type RangeRule uint8

const (
	RangeDefault RangeRule = iota // RangeFrame if the message is protected, else RangeSignal
	RangeFrame                    // the whole frame is rejected
	RangeSignal                   // only the signal: it keeps its last value
)

// DefaultTimeout as a timeout means three cycles.
const DefaultTimeout = -1

// ReactionSpec is the reaction to a message that is missing or not valid.
type ReactionSpec struct {
	Action Action
	Values []PortValue // for Substitute: values of ports that the message drives; other ports hold
}

// PortValue is an input of the plant and its value as a quantity.
type PortValue struct{ Port, Text string }

// InvalidSpec lists the raw values with which a signal signals "no value": numbers, ranges
// "250-255", or value texts of the signal. With an empty list every raw value is valid; for
// a J1939 signal that replaces the codes for "error" and "not available".
type InvalidSpec struct {
	Signal string
	Values []string
}

// Lists of a Spec, for Place.List.
const (
	InReceive    = "receive"
	InSend       = "send"
	InSendings   = "sendings"
	InReceptions = "receptions"
)

// Place is the location of an entry in a Spec.
type Place struct {
	List  string // list of the Spec, such as InReceive
	Index int    // index in the list
	Part  string // part of a Sending or Reception: "values", "protect", "invalid", "on_timeout", "on_error" or ""
	Item  int    // index in the part
}

// SpecError is an error of Bind about one entry of the Spec.
type SpecError struct {
	Place
	Err error
}

func (e *SpecError) Error() string { return "sigmap: " + e.Err.Error() }
func (e *SpecError) Unwrap() error { return e.Err }

// refusal is the panic value with which Bind and NewProtection refuse a specification.
type refusal struct{ error }

// refuse stops Bind or NewProtection with an error.
func refuse(format string, args ...any) { panic(refusal{fmt.Errorf(format, args...)}) }

// try runs do and returns the error with which it refused, nil if it did not.
func try(do func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			err = r.error
		default:
			panic(r)
		}
	}()

	do()
	return nil
}

// inContext runs do and prefixes its error with where.
func inContext(where string, do func()) {
	if err := try(do); err != nil {
		refuse("%s: %w", where, err)
	}
}

// eachItem runs do for each item in a part of a Sending or Reception.
func eachItem[T any](part string, items []T, do func(*T)) {
	for i := range items {
		if err := try(func() { do(&items[i]) }); err != nil {
			panic(refusal{&SpecError{Place{Part: part, Item: i}, err}})
		}
	}
}

// bindEach runs bind for each entry of a list of the Spec.
func bindEach[T interface{ describe() string }](list string, entries []T, bind func(*T)) {
	for i := range entries {
		if err := try(func() { bind(&entries[i]) }); err != nil {
			s := &SpecError{Err: err}
			errors.As(err, &s)
			s.List, s.Index, s.Err = list, i, fmt.Errorf("%s: %w", entries[i].describe(), s.Err)
			panic(refusal{s})
		}
	}
}
