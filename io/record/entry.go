package record

import (
	"fmt"

	"lockstep/io/can"
)

// Kind says which of the three an Entry is; the values are those of the file.
type Kind uint8

// The kinds of an entry.
const (
	TickEntry Kind = 1 + iota
	FrameEntry
	EventEntry
)

// Entry is one thing that happened. Only the field that Kind names is set.
type Entry struct {
	Kind  Kind
	Tick  Tick
	Frame Frame
	Event Event
}

// Tick is one grid point the plant was stepped to.
type Tick struct {
	Index  int64     // of the grid point
	Flags  Flags     // what was unusual
	U      []float64 // inputs of the step that ends here, one per Header.Inputs
	Y      []float64 // outputs here, one per Header.Outputs: also friction states, eta and lag
	Phases []int64   // where the time of the tick went, ns, one per Header.Phases
}

// Flags say what was unusual about a tick.
type Flags uint16

// The flags of a tick.
const (
	Missed Flags = 1 << iota // the grid point was lost and stepped over afterwards
	Late                     // it was served, past its budget
	Safe                     // the bus carried the safe values
)

// Frame is one frame on a bus.
type Frame struct {
	Bus  uint8 // index into Header.Buses
	Sent bool  // by the target; else received
	Lost bool  // made to be sent, but the bus did not take it: it never was on one
	Safe bool  // it carries the safe values of the bench, not the plant's

	// Other: it was on the bus beside what the target received and sent: the bench has no
	// use for its identifier, or another sender uses one of the bench's. It never reached
	// the plant, and Sent, Lost, Safe, Withheld and Copy are not set.
	Other bool

	// Of faults on purpose. A frame that is held back is withheld first and a copy later.
	Withheld bool // sent: made, but never on a bus; received: it was on the bus, but did not reach the plant
	Copy     bool // sent: made before, and sent again or only now; received: it was on the bus before, and reaches the plant only now

	Tick int64 // received: the tick that read it; sent: the tick that sent it; Other: one of about that time
	Time int64 // when the kernel saw it, sent: when it was handed to the kernel; ns since 1970 UTC; 0 unknown
	Hard int64 // received: when the controller saw it, ns on a clock of its own; 0 unknown
	can.Frame
}

// Event is anything else worth knowing.
type Event struct {
	Kind  EventKind
	Tick  int64
	Time  int64  // ns since 1970 UTC; 0 unknown
	Count uint64 // of what is lost or damaged, else 0
	Text  string // one line of at most MaxText bytes
}

// MaxText bounds the text of an event, bytes; what is longer is cut.
const MaxText = 4096

// EventKind is the kind of an event; the values are those of the file.
type EventKind uint8

// The kinds of events.
const (
	Note      EventKind = iota
	Fault               // a fault on purpose: armed, active, over
	Overrun             // an entry of the overrun ledger
	BusState            // bus-off, error passive, down, up
	Parameter           // a value changed while running
	Lost                // Count records never came to be in the file
	Damage              // Count chunks of the file cannot be read: made by Reader
	Verdict             // an expectation, held or broken
	Unheard             // Count frames that would have been Other were not heard, or not kept: nothing that reached the plant
)

// String is the kind in one word.
func (k EventKind) String() string {
	names := [...]string{"note", "fault", "overrun", "bus", "parameter", "lost", "damage", "verdict", "not heard"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}
