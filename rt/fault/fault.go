package fault

import "lockstep/io/sigmap"

// The bounds of a Set.
const (
	Max      = 64   // faults at once: slots
	MaxSet   = 256  // inputs and signals set at once: StatusBlock.SetValues
	MaxDelay = 1000 // longest delay of a value or a frame, ticks
	// frames that a fault can hold back at once; further frames of a message without a cycle are
	// dropped
	MaxHeld  = 64
	MaxBurst = 64 // times that a frame can be repeated at its tick

	MaxGain   = 1000 // largest size of a gain
	MaxWidths = 100  // widths of a range by which a fault may leave it, at either end
	MaxValue  = 1e12 // largest size of a disturbed value without a range, SI or the own unit of a signal
)

// Limits returns the lowest and the highest value that a fault may give to a target whose range is
// lo to hi. Both are finite: a plant would make Inf or NaN of 1e308.
//
//go:nosplit
func Limits(lo, hi float64) (least, most float64) {
	beyond := float64(MaxWidths * (hi - lo))
	if least = lo - beyond; !finite(least) {
		least = -MaxValue
		if finite(lo) {
			least = min(lo, least)
		}
	}
	if most = hi + beyond; !finite(most) {
		most = MaxValue
		if finite(hi) {
			most = max(hi, most)
		}
	}
	return least, most
}

// Kind is what a fault does.
type Kind uint8

// The kinds. v is the value without the fault; A, B and N are the fields of Fault.
const (
	None Kind = iota

	// Of a value: Where is Input, Signal or ReceivedSignal.
	Stuck   // v = A
	Hold    // v at the start of the fault
	Offset  // v + A
	Gain    // v·A
	Noise   // v + A·n; n is random, of mean 0, deviation 1 and size at most 6: the sum of 12 uniform numbers
	Ramp    // v at the start of the fault, + A per second since then
	Drift   // v + A per second since the start of the fault
	Floor   // at least A
	Ceiling // at most A
	Leak    // follows (1-A)·v with the time constant B, s; starts from v
	Delay   // v of N ticks ago, limited to the time since the fault was armed. Also of a frame, see DelayFrame
	Open    // of a signal sent or received: all bits 1, not a value; of an input: the value nearest to 0 in its range
	Short   // the lowest value of the range if N is 0 (to ground), the highest if it is 1 (to supply)

	// Of a frame: Where is SentFrame or ReceivedFrame. A frame received is changed before it is decoded.
	Drop // sent: encoded, so its counters advance, but kept from the bus; received: not decoded
	// counters repeat those of the frame before the fault, with right checksums; afterwards those of
	// frames sent continue from there
	FreezeCounter
	ChecksumValue  // its checksums are N
	ChecksumFrozen // its checksums are those of the last frame before the fault; 0 if there was none
	ChecksumRandom // its checksums are random, and never the right ones
	ChecksumOffset // its checksums are the right ones + N, N not 0, modulo their width
	WrongLength    // it has N bytes: cut, or filled with zeros
	DelayFrame     // sent, or decoded, N ticks later; N at least 1
	Duplicate      // sent, or decoded, twice
	Burst          // repeated N times

	// Of a bus: Where is Bus.
	BusOff // no frame goes out or comes in; frames are encoded as usual

	kinds
)

// Where is the kind of target of a fault.
type Where uint8

// The kinds of target.
const (
	Input         Where = iota // entry of u
	Signal                     // field of a message sent
	SentFrame                  // message sent
	ReceivedFrame              // message received
	Bus
	ReceivedSignal // field of a message received; the fault changes its frames
	wheres
)

// Fault is a planned fault: plain data of a fixed size.
type Fault struct {
	Kind  Kind
	Where Where

	Bus     int // index of the map; not of Input
	Message int // of Signal and SentFrame: index in Map.Tx; of ReceivedSignal and ReceivedFrame: index in Map.Rx
	Field   int // of Signal: index in Tx.Fields; of ReceivedSignal: index in Rx.Fields
	Input   int // of Input: index in u

	// A and B, see Kind: in the unit of the port, SI, for an input and for a signal that a port
	// drives; in the signal's own unit for other signals. A share has no unit.
	A, B float64
	N    int64  // see Kind
	Seed uint64 // of Noise and ChecksumRandom

	Start    Trigger
	Duration int64 // duration, ticks; 0: until it is cleared
	Frames   bool  // Last counts frames of the message, not ticks
}

// Trigger starts a fault at the first tick at which all of its parts hold.
type Trigger struct {
	Tick int64      // first tick; 0: at once
	When Conditions // conditions; those not set hold
}

// Conditions hold together when each one that is set holds.
type Conditions [2]Condition

// Hold reports whether the conditions hold for outputs y and inputs u.
//
//go:nosplit
func (l *Conditions) Hold(y, u []float64) bool {
	for i := range l {
		c := &l[i]
		if !c.Set {
			continue
		}
		values := u
		if c.Output {
			values = y
		}
		if v := values[c.Index]; c.Above && !(v > c.Limit) || !c.Above && !(v < c.Limit) {
			return false
		}
	}

	return true
}

// Condition compares an input or output of the last tick, with all faults applied, with a limit.
// NaN fulfils no condition. An input that nothing drives has its start value.
type Condition struct {
	Set    bool
	Output bool // an entry of y; else of u
	Above  bool // holds for v > Limit; else for v < Limit
	Index  int
	Limit  float64 // in the unit of the port
}

// Plan holds the faults and stimuli declared before the first tick.
type Plan struct {
	Faults  []Fault // by slot, at most Max
	Stimuli []Stimulus
	Cycle   *Cycle       // nil: none
	Lane    *Lane        // nil: none
	Ranges  [][2]float64 // lowest and highest value of each input; nil: no input has a range
	States  []PlannedState
}

// PlannedState is a TakeSnapshot, Restore, SwitchIgnition or SwitchPower command at a grid point, before the step that
// begins there.
type PlannedState struct {
	Tick int64 // grid point; not before that of the entry before
	Op   Op
	Slot int // as in Command
}

// Stimulus is a waveform for an input that no bus drives, or for a signal sent that no output
// drives. The value of an input at k periods is held over the step that ends at tick k; a signal has
// this value in the frames of tick k.
type Stimulus struct {
	Where    Where           // Input or Signal
	Input    int             // of Input: index in u
	Bus      int             // of Signal: index of the map
	Message  int             // of Signal: index in Map.Tx
	Field    int             // of Signal: index in Tx.Fields
	Waveform sigmap.Waveform // values in SI units; of a signal in its own unit
}

// SetWaveforms makes the stimuli of signals the waveforms of the maps, one per bus. New does so, too.
func (p *Plan) SetWaveforms(maps []*sigmap.Map) {
	for i := range p.Stimuli {
		if s := &p.Stimuli[i]; s.Where == Signal {
			t := &maps[s.Bus].Tx[s.Message]
			t.Waveforms[t.Fields[s.Field].Waveform-1] = s.Waveform
		}
	}
}

// HoldValues makes Drive commands the values of the signals of the maps, one per bus.
func HoldValues(maps []*sigmap.Map, list []Command) {
	s := Set{System: System{Maps: maps}}
	for i := range list {
		if list[i].Fault.Where == Signal && s.checkTarget(&list[i].Fault) == nil && s.waveform(&list[i].Fault) != nil {
			s.drive(&list[i])
		}
	}
}

// State is the state of a fault.
type State uint8

// The states.
const (
	Free   State = iota // the slot is empty: the fault was cleared
	Armed               // the trigger has not held yet
	Active              // the fault acts
	Over                // the fault has ended; frames that it held back still go out when due
)

// String returns the state in one word, as records have it.
func (s State) String() string {
	if s > Over {
		return "unknown"
	}
	return [...]string{"cleared", "armed", "active", "over"}[s]
}

// Op is the operation of a Command.
type Op uint8

// The operations.
const (
	Put   Op = iota // arm Fault in Slot; replaces the slot's fault and drops the frames it holds back
	Clear           // free Slot
	// set an input that no bus drives, or a signal that no output drives, to Value from this tick on
	Drive
	Release    // return the input or signal to its own waveform or stimulus
	ReleaseAll // return all inputs and signals to their own waveforms or stimuli

	TakeSnapshot // store the state of the plant in Slot, from 0
	Restore      // continue from the state in Slot; -1: from the start
	DropSnapshot // forget the state in Slot

	StartRecord // a record starts: the loop copies its state
	EndRecord   // a record ends

	SwitchIgnition // enter state Slot of package network
	SwitchPower    // give the unit under test supply Slot of package network
)

// MaxSnapshots is the number of states of the plant that a run stores.
const MaxSnapshots = 8

// Command is a change during a run: plain data of a fixed size. A command that Check refuses
// changes nothing.
type Command struct {
	Op    Op
	Slot  int
	Fault Fault   // of Put; of Drive and Release for a signal: Where, Bus, Message and Field of the signal
	Input int     // of Drive and Release for an input: index in u
	Value float64 // SI; of a signal in its own unit
	Whole bool    // Raw has the value of a signal: a float64 is not exact beyond 2^53
	Raw   uint64  // raw bits
}

// Change is a change of a fault's state at the start of a tick.
type Change struct {
	Slot  int
	State State
	Count uint64 // ticks, or frames, disturbed so far
}
