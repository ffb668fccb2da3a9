package record

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/model/units"
)

// Header is the start of a record. With the hand-over it suffices to repeat the run without any
// other file. Its field names are the keys of the JSON in the file.
type Header struct {
	Run string // name of the run; generated if empty

	Version    string // version of lockstep and of its build
	Host       string // name, kernel and processor of the host
	GOARCH     string // architecture of the run
	BestEffort bool   // the run had no real-time rights

	Period int64 // period of the grid, ns; > 0
	Start  int64 // grid point 0 on CLOCK_REALTIME, ns since 1970 UTC
	Mono   int64 // grid point 0 on CLOCK_MONOTONIC, ns

	Inputs  []Signal // inputs of the plant, in the order of Tick.U
	Outputs []Signal // outputs of the plant, in the order of Tick.Y
	Phases  []string // names of the phases, in the order of Tick.Phases
	Buses   []Bus    // buses, in the order of Frame.Bus

	Files  []File            // bench, plant, databases and scenario with their whole text
	Hashes map[string]string // hashes of derived data, such as the matrices
	Notes  map[string]string // further notes

	// Handover is the prepared data of the run, such as the matrices, in the encoding of the caller.
	// The file has it in its own chunk; Reader.Handover reads it.
	Handover       []byte `json:"-"`
	HandoverSHA256 string // hash of Handover, hexadecimal; set by the writer
}

// Signal is a column of the ticks. Its values are in Unit.
type Signal struct {
	Name     string
	Unit     string // SI
	Declared string // unit in which Export writes the values; "": Unit

	// Texts are the names of the values FirstText, FirstText+1 and so on, such as modes; nil: numbers.
	Texts     []string `json:",omitempty"`
	FirstText int      `json:",omitempty"`
}

// Wanted returns the unit in which people read the values.
func (s *Signal) Wanted() units.Wanted {
	w, err := units.ParseWanted(cmp.Or(s.Declared, s.Unit))
	if err != nil { // no unit of this program: the values stay
		return units.Wanted{Unit: units.Unit{Factor: 1}, Spelled: s.Unit}
	}
	return w
}

// DropDeclaredUnits makes Export write SI values.
func (h *Header) DropDeclaredUnits() {
	for _, list := range [...][]Signal{h.Inputs, h.Outputs} {
		for i := range list {
			list[i].Declared = ""
		}
	}
}

// Bus is a bus of the bench.
type Bus struct {
	Name      string    // name in the bench file
	Interface string    // network interface, such as can0
	Messages  []Message // messages of the signal map
	Database  string    // name of its database in Header.Files

	// Units are the units of signals in place of those of Database, by a unit of it or by MESSAGE.SIGNAL.
	Units map[string]string `json:",omitempty"`

	// Layout describes the messages of Database for the export as MDF4. It is not in the file: the caller
	// of Export sets it. nil: the export has frames only.
	Layout *messages.Database `json:"-"`
}

// Message names an identifier of a bus.
type Message struct {
	Name string
	ID   uint32 // identifier as in can.Frame
	Sent bool   // sent by the target
}

// File is a file the run was made from.
type File struct {
	Role   string // bench, plant, dbc or scenario
	Name   string // name as given
	Text   []byte
	SHA256 string // hash of Text, hexadecimal; set by the writer
}

// At returns the time of grid point k on CLOCK_REALTIME, ns since 1970 UTC.
func (h *Header) At(k int64) int64 { return h.Start + k*h.Period }

// wholeMillisecond returns Start without the part of a millisecond, which the heads of ASC and BLF do
// not hold, ns since 1970 UTC.
func (h *Header) wholeMillisecond() int64 { return h.Start - h.Start%1e6 }

// seconds formats the time of grid point k since the start of the run.
func (h *Header) seconds(k int64) string {
	return strconv.FormatFloat(float64(k*h.Period)/1e9, 'f', -1, 64) + " s"
}

// missingTicks describes the gap of ticks a to b.
func (h *Header) missingTicks(a, b int64) string {
	if a == b {
		return fmt.Sprintf("tick %d (%s), 1 row, is missing", a, h.seconds(a))
	}
	return fmt.Sprintf("ticks %d to %d (%s to %s), %d rows, are missing", a, b, h.seconds(a), h.seconds(b), b-a+1)
}

// timeOr returns at, or the time of the tick if at is 0, ns since 1970 UTC.
func (h *Header) timeOr(at, tick int64) int64 {
	if at != 0 {
		return at
	}
	return h.At(tick)
}

// busName returns the name of bus i for logs: its interface if the name is legal and unique,
// else "can" and i.
func (h *Header) busName(i uint8) string {
	if int(i) < len(h.Buses) {
		name := h.Buses[i].Interface
		same := func(b Bus) bool { return b.Interface == name }
		shared := slices.ContainsFunc(h.Buses[:i], same) || slices.ContainsFunc(h.Buses[i+1:], same)
		if can.LegalName(name) && !shared {
			return name
		}
	}

	return fmt.Sprintf("can%d", i)
}

// maxValues limits the columns of a tick, so that a tick always fits into a chunk.
const maxValues = 50_000

func (h *Header) validate() error {
	switch {
	case h.Period <= 0:
		return fmt.Errorf("record: header: period %d ns is not positive", h.Period)
	case len(h.Inputs)+len(h.Outputs)+len(h.Phases) > maxValues:
		return fmt.Errorf("record: header: %d values per tick, at most %d are possible",
			len(h.Inputs)+len(h.Outputs)+len(h.Phases), maxValues)
	case len(h.Handover) > maxHandover:
		return fmt.Errorf("record: hand-over: %d bytes, at most %d are possible", len(h.Handover), maxHandover)
	}

	return nil
}

// encode returns the payload of the header's chunk.
func (h *Header) encode() ([]byte, error) {
	for i := range h.Files {
		h.Files[i].SHA256 = fmt.Sprintf("%x", sha256.Sum256(h.Files[i].Text))
	}
	h.HandoverSHA256 = fmt.Sprintf("%x", sha256.Sum256(h.Handover))

	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("record: header: %w", err)
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("record: header: %d bytes, at most %d are possible", len(text), maxHeader)
	}
	return text, nil
}

func decodeHeader(text []byte) (h Header, err error) {
	if err := json.Unmarshal(text, &h); err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	if h.validate() != nil {
		return h, errors.New("header: values out of range")
	}
	return h, nil
}

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
	Missed   Flags = 1 << iota // the tick was missed and computed later
	Late                       // the tick exceeded its budget
	Safe                       // the bus carried the safe values
	AfterGap                   // ticks before this one are missing in the record; Export sets it
)

// Frame is one frame on a bus. With can.FlagLong it is a J1939 message of several frames, which the record
// has too; its data are the first 64 bytes.
type Frame struct {
	Bus  uint8 // index into Header.Buses
	Sent bool  // sent by the bench; false: received
	Lost bool  // encoded, but not accepted by the bus: it was never on the bus
	Safe bool  // the frame carries the safe values of the bench, not the plant's

	// Other marks a frame of the bus monitor: the bench does not use its identifier, or another
	// sender used an identifier of the bench. It did not reach the plant; Lost, Safe, Withheld and
	// Copy are false. Sent marks a frame that the supervisor's port has sent, not the target.
	Other bool

	// Withheld and Copy mark faults. A delayed frame is withheld first and a copy later, a received
	// frame that a fault changes is withheld first and a copy then.
	//
	// Withheld, sent: encoded, but never on a bus. Withheld, received: on the bus, but not passed to
	// the plant.
	// Copy, sent: encoded earlier and sent again or only now. Copy, received: passed to the plant again,
	// only now, or changed in place of a frame withheld.
	Withheld, Copy bool

	Tick int64 // tick that received or sent the frame; Other: a tick of about that time
	Time int64 // time of reception by the kernel or of sending, ns since 1970 UTC; 0 unknown
	Hard int64 // received: time stamp of the controller on its own clock, ns; 0 unknown

	// Acts is the instant from which the values of a received frame act on the plant, inside of a step, ns
	// after grid point 0; 0: from the start of the step.
	Acts int64
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
