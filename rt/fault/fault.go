package fault

import "lockstep/io/sigmap"

// The bounds of a Set.
const (
	Max      = 64   // faults at once: slots
	MaxDelay = 1000 // ticks that a value or a frame can be delayed
	MaxHeld  = 64   // frames that a fault can hold back at once; one more, of a message without a cycle, is dropped
	MaxBurst = 64   // times that a frame can be sent again at its tick
)

// Kind is what a fault does.
type Kind uint8

// The kinds. v is the value without the fault; A, B and N are the fault's.
const (
	None Kind = iota

	// Of a value: Where is Input or Signal.
	Stuck   // v = A
	Hold    // v as it was when the fault began
	Offset  // v + A
	Gain    // v·A
	Noise   // v + A·n; n is random, of mean 0, deviation 1 and size at most 6: the sum of 12 uniform numbers
	Ramp    // v as it was when the fault began, + A per second since
	Drift   // v + A per second since the fault began
	Floor   // at least A
	Ceiling // at most A
	Leak    // follows (1-A)·v with the time constant B, s; from v on
	Delay   // v of N ticks ago; what was before the fault was armed counts as what it was then. Also of a frame, see DelayFrame
	Open    // of a signal: all ones, which is no value; of an input: the value nearest to 0 in its range
	Short   // the lowest value of the range if N is 0 (to ground), the highest if it is 1 (to supply)

	// Of a frame sent: Where is SentFrame. Drop and DelayFrame also ReceivedFrame.
	Drop           // made, and kept from the bus: its counters advance; received: not decoded
	FreezeCounter  // its counters are those of the frame before the fault, its checksums right; afterwards they go on from there
	ChecksumValue  // its checksums are N
	ChecksumFrozen // they are those of the last frame before the fault; 0 if there was none
	ChecksumRandom // they are random, and never the right ones
	ChecksumOffset // they are the right ones + N, N not 0, modulo their width
	WrongLength    // it has N bytes: it is cut, or zeros follow
	DelayFrame     // sent, or decoded, N ticks later as it was made; N at least 1
	Duplicate      // sent twice
	Burst          // sent N more times

	// Of a bus: Where is Bus.
	BusOff // nothing goes out and nothing comes in; frames are made as ever

	kinds
)

// Where is what a fault is on.
type Where uint8

// The places.
const (
	Input         Where = iota // entry of u
	Signal                     // field of a message sent
	SentFrame                  // message sent
	ReceivedFrame              // message received
	Bus
	wheres
)

// Fault is a fault on purpose: plain data of a fixed size.
type Fault struct {
	Kind  Kind
	Where Where

	Bus     int // of Signal, SentFrame, ReceivedFrame and Bus: index of the map
	Message int // of Signal and SentFrame: index in Map.Tx; of ReceivedFrame: in Map.Rx
	Field   int // of Signal: index in Tx.Fields
	Input   int // of Input: index in u

	// A and B, see Kind: in the unit of the port, SI, of an input and of a signal that a
	// port drives; in the signal's own where none does. A share has no unit.
	A, B float64
	N    int64  // see Kind
	Seed uint64 // of Noise and ChecksumRandom

	Start  Trigger
	Last   int64 // how long it is active, ticks; 0: until it is cleared
	Frames bool  // Last counts the frames of that message, not ticks
}

// Trigger says when a fault starts: at the first tick at which all of it holds.
type Trigger struct {
	Tick int64        // not before; 0: at once
	When [2]Condition // those that are set
}

// Condition compares an input or output of the last tick, as it was with all faults,
// with a limit. NaN fulfils none. An input that nothing drives has its start value.
type Condition struct {
	Set    bool
	Output bool // of y; else of u
	Above  bool // > Limit; else < Limit
	Index  int
	Limit  float64 // unit of the port
}

// Plan is what is known before the first tick.
type Plan struct {
	Faults  []Fault // by slot, Max at most
	Stimuli []Stimulus
	Ranges  [][2]float64 // lowest and highest value of each input; nil: none has a range
}

// Stimulus is what an input follows that no bus drives: at tick k the course at k
// periods, held over the step that ends there.
type Stimulus struct {
	Input  int
	Course sigmap.Course // SI
}

// State says where a fault is.
type State uint8

// The states.
const (
	Free   State = iota // there is none in the slot: it was cleared
	Armed               // its trigger has not come yet
	Active              // it disturbs
	Over                // it is done; what it held back still goes out in its time
)

// String is the state in one word, as a record has it.
func (s State) String() string {
	if s > Over {
		return "unknown"
	}
	return [...]string{"cleared", "armed", "active", "over"}[s]
}

// Op is what a Command does.
type Op uint8

// The operations.
const (
	Put     Op = iota // arm Fault in Slot, in the place of what is there and of what it holds back
	Clear             // free Slot
	Drive             // Input, which no bus drives, is Value from this tick on
	Release           // Input follows its own source or stimulus again
)

// Command is a change while running: plain data of a fixed size. One that Check
// refuses changes nothing.
type Command struct {
	Op    Op
	Slot  int
	Fault Fault
	Input int
	Value float64 // SI
}

// Change is a change of state, at the start of a tick.
type Change struct {
	Slot  int
	State State
	Count uint64 // ticks that the fault has disturbed so far, or frames
}
