package record

import (
	"fmt"

	"lockstep/io/can"
)

// Kind is the kind of an Entry; its values are those of the file.
type Kind uint8

// The kinds of an entry.
const (
	TickEntry Kind = 1 + iota
	FrameEntry
	EventEntry
)

// Entry is a tick, a frame or an event of a run. Only the field that Kind names is set.
type Entry struct {
	Kind  Kind
	Tick  Tick
	Frame Frame
	Event Event
}

// Tick is one step of the plant to a grid point.
type Tick struct {
	Index  int64     // index of the grid point
	Flags  Flags     // exceptional conditions
	U      []float64 // inputs of the step that ends at the grid point, one per Header.Inputs
	Y      []float64 // outputs at the grid point, one per Header.Outputs; also friction states, eta, lag
	Phases []int64   // durations of the phases of the tick, ns, one per Header.Phases
}

// Flags are exceptional conditions of a tick.
type Flags uint16

// The flags of a tick.
const (
	Missed Flags = 1 << iota // the tick was missed and computed later
	Late                     // the tick exceeded its budget
	Safe                     // the bus carried the safe values
)

// Frame is one frame on a bus.
type Frame struct {
	Bus  uint8 // index into Header.Buses
	Sent bool  // sent by the target; false: received
	Lost bool  // encoded, but not accepted by the bus: it was never on the bus
	Safe bool  // the frame carries the safe values of the bench, not the plant's

	// Other marks a frame of the bus monitor: the bench does not use its identifier, or another
	// sender used an identifier of the bench. It did not reach the plant; Sent, Lost, Safe,
	// Withheld and Copy are false.
	Other bool

	// Withheld and Copy mark faults. A delayed frame is withheld first and a copy later.
	//
	// Withheld, sent: encoded, but never on a bus. Withheld, received: on the bus, but not passed to
	// the plant.
	// Copy, sent: encoded earlier and sent again or only now. Copy, received: on the bus earlier and
	// passed to the plant only now.
	Withheld, Copy bool

	Tick int64 // tick that received or sent the frame; Other: a tick of about that time
	Time int64 // time of reception by the kernel or of sending, ns since 1970 UTC; 0 unknown
	Hard int64 // received: time stamp of the controller on its own clock, ns; 0 unknown
	can.Frame
}

// Event is a fault, an overrun, a change or another event of a run.
type Event struct {
	Kind  EventKind
	Tick  int64
	Time  int64  // ns since 1970 UTC; 0 unknown
	Count uint64 // number of items lost or damaged, else 0
	Text  string // one line of at most MaxText bytes
}

// MaxText is the longest text of an event, bytes; longer texts are truncated.
const MaxText = 4096

// EventKind is the kind of an event; the values are those of the file.
type EventKind uint8

// The kinds of events.
const (
	Note        EventKind = iota
	Fault                 // an injected fault: armed, active, over
	Overrun               // an entry of the overrun ledger
	BusState              // bus-off, error passive, down, up
	Parameter             // a value changed while running
	Lost                  // Count records are missing in the file
	Damage                // Count chunks of the file cannot be read; Reader makes this event
	Verdict               // an expectation, met or broken
	MonitorLost           // Count frames of the bus monitor were not received or not written
)

// String returns the name of the kind in events.csv.
func (k EventKind) String() string {
	names := [...]string{"note", "fault", "overrun", "bus", "parameter", "lost", "damage", "verdict", "not heard"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("event %d", uint8(k))
}
