package rt

import (
	"sync/atomic"
	"unsafe"

	"lockstep/io/can"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/sched"
)

// ringWords is the size of the ring: 8 MiB, some 25 s of a bench with 100 values and ten frames per
// tick of 5 ms.
const ringWords = 1 << 20

// ring carries entries from the loop to the recorder, with one writer and one reader. An entry that
// finds no room is dropped and counted; the loop never waits.
type ring struct {
	head  atomic.Uint64 // words written since the start
	tail  atomic.Uint64 // words read since the start
	lost  atomic.Uint64 // entries that found no room
	on    atomic.Uint64 // not 0: a reader exists
	words [ringWords]uint64
}

// Kind is the kind of an Entry.
type Kind uint8

// The kinds.
const (
	KindStep   Kind = iota + 1 // one step of the plant: Tick, Inputs, Outputs
	KindFrame                  // a frame: Tick, Bus, Fate, Message, Stamp, Frame
	KindTiming                 // a tick's timing: Tick, At, Spent, Lost

	// a fault changes its state: Tick, Slot, State, Count; before the frames and the step of its
	// tick
	KindFault

	// commands take effect, or are refused: Tick, Batch, Refused, Obstacle; before all other entries of their tick
	KindCommand

	// other parameters of the plant take effect, or are refused: Tick, Slot, Refused, Batch, Obstacle; before the step of
	// their tick, the first that they act on
	KindChange

	// the scenario stores or restores a state of the plant: Tick, Slot, Refused, Obstacle; before the changes of faults, the
	// frames and the step of its tick
	KindState

	// ignition, network management or power change: Tick, Network; before the changes of faults of its tick
	KindNetwork
)

// Fate is the outcome of a frame.
type Fate uint8

// The fates.
const (
	Received Fate = iota
	Sent
	Dropped // encoded, but the bus did not take it
	Refused // not encoded: a signal was NaN
	Unsent  // due at a missed grid point
)

// Entry is one decoded entry of the ring. The next entry reuses its slices.
type Entry struct {
	Kind     Kind
	Tick     int64
	Safe     bool        // of a frame: it carries the safe values
	Slot     int         // of a fault; of a change known before the run, or a state, its number; -1: of an offer
	Refused  bool        // of a change or commands: they did not take effect
	Obstacle int         // of an offer or commands: why they did not take effect, see ParameterChanger; 0: they did
	State    fault.State // of a fault
	Network  network.Change
	Count    uint64        // of a fault: ticks, or frames, that it has disturbed so far
	Batch    uint64        // of commands: their batch, see StatusBlock.Post; of an offer: its number
	Bus      int           // of a frame
	Copy     bool          // of a frame: sent or decoded late or again by a fault
	Fate     Fate          // of a frame
	Withheld bool          // of a frame: a fault keeps a Sent frame from the bus, a Received one from the plant
	Message  int           // of a frame: index in Map.Rx or Map.Tx; -1: unknown
	Stamp    can.Stamp     // of a frame: when it came in or went out
	Acts     int64         // of a received frame: instant from which its values act, ns since grid point 0; OnGrid: see Inputs
	At       int64         // of a timing: the wake-up, ns on CLOCK_MONOTONIC
	Lost     int64         // of a timing: grid points missed before this one
	Spent    [phases]int64 // of a timing, ns
	Frame    can.Frame     // of a frame; without data if it is Unsent or Refused
	U, Y     []float64     // of a step

	words []uint64 // backing array of U and Y
}

// enter appends an entry: a header word with the kind, then head, u and y. Without a reader, or
// without room, it appends nothing.
//
//go:nosplit
func (r *ring) enter(k Kind, flags uint64, head, u, y []uint64) {
	if r.on.Load() == 0 {
		return
	}
	n, at := uint64(len(head)+len(u)+len(y)), r.head.Load()
	if at+n+1-r.tail.Load() > ringWords {
		r.lost.Store(r.lost.Load() + 1)
		return
	}

	r.words[at%ringWords] = uint64(k)<<56 | n<<32 | flags
	at = r.copyWords(at+1, head)
	at = r.copyWords(at, u)
	r.head.Store(r.copyWords(at, y))
}

// copyWords copies words to the ring from position at on and returns the position behind them.
//
//go:nosplit
func (r *ring) copyWords(at uint64, words []uint64) uint64 {
	for _, w := range words {
		r.words[at%ringWords] = w
		at++
	}

	return at
}

// bits returns values as words.
//
//go:nosplit
func bits(v []float64) []uint64 {
	return *(*[]uint64)(unsafe.Pointer(&v)) // unsafe.Slice would check, and could panic
}

// enterStep enters a step of the plant.
//
//go:nosplit
func (r *ring) enterStep(tick int64, u, y []float64) {
	head := [...]uint64{uint64(tick)}
	r.enter(KindStep, uint64(len(u)), head[:], bits(u), bits(y))
}

// frameWords is a frame as words; the first one holds all but its data.
type frameWords [unsafe.Sizeof(can.Frame{}) / 8]uint64

// beginFrame starts the entry of a frame; message -1: unknown.
//
//go:nosplit
func (e *Entry) beginFrame(tick int64, bus, message int) {
	e.Tick, e.Bus, e.Message, e.Copy, e.Withheld, e.Acts = tick, bus, message, false, false, OnGrid
}

// The flags of a frame's entry, besides its bus, fate and message.
const (
	flagSafe     = 1 << 31
	flagWithheld = 1 << 30
	flagCopy     = 1 << 29
)

// enterFrame enters frame f with the details in e. A received frame has its own stamp; a sent one
// gets the present instant, on the same clock.
//
//go:nosplit
func (r *ring) enterFrame(e *Entry, f *can.Frame) {
	if r.on.Load() == 0 {
		return
	}
	if e.Fate != Received {
		e.Stamp.Soft, e.Stamp.Hard = sched.Realtime(), 0
	}
	r.enterStamped(e, f)
}

// enterStamped enters a stamped frame. It is a separate function because the clock and the words
// would exceed the stack together.
//
//go:nosplit
//go:noinline
func (r *ring) enterStamped(e *Entry, f *can.Frame) {
	flags := uint64(e.Bus)<<24 | uint64(e.Fate)<<16 | uint64(uint16(e.Message))
	if e.Safe {
		flags |= flagSafe
	}
	if e.Withheld {
		flags |= flagWithheld
	}
	if e.Copy {
		flags |= flagCopy
	}
	head := [...]uint64{uint64(e.Tick), uint64(e.Stamp.Soft), uint64(e.Stamp.Hard), uint64(e.Acts)}
	words := (*frameWords)(unsafe.Pointer(f))
	r.enter(KindFrame, flags, head[:], words[:1+min(f.Len+7, 64)/8], nil)
}

// enterTiming enters a tick's timing.
//
//go:nosplit
func (r *ring) enterTiming(e *LateTick) {
	head := [...]uint64{uint64(e.Tick), uint64(e.At), uint64(e.Lost)}
	spent := (*[phases]uint64)(unsafe.Pointer(&e.Spent))
	r.enter(KindTiming, 0, head[:], spent[:], nil)
}

// enterFault enters a change of a fault's state.
//
//go:nosplit
func (r *ring) enterFault(tick int64, c *fault.Change) {
	head := [...]uint64{uint64(tick), c.Count}
	r.enter(KindFault, uint64(c.Slot)<<8|uint64(c.State), head[:], nil, nil)
}

// enterCommand enters that a batch of commands takes effect; obstacle is not 0: the plant has refused it.
//
//go:nosplit
func (r *ring) enterCommand(tick int64, batch, obstacle uint64) {
	head := [...]uint64{uint64(tick), batch, obstacle}
	r.enter(KindCommand, 0, head[:], nil, nil)
}

// enterState enters that planned state i is stored or restored; obstacle is not 0: the plant has refused it.
//
//go:nosplit
func (r *ring) enterState(tick int64, i int, obstacle uint64) {
	head := [...]uint64{uint64(tick), uint64(i), obstacle}
	r.enter(KindState, 0, head[:], nil, nil)
}

// enterNetwork enters a change of ignition, network management or power.
//
//go:nosplit
func (r *ring) enterNetwork(tick int64, c *network.Change) {
	head := [...]uint64{uint64(tick)}
	r.enter(KindNetwork, uint64(c.Topic)<<24|uint64(c.Bus)<<16|uint64(c.Value), head[:], nil, nil)
}

// enterChange enters that change i of the plant's parameters takes effect; refused is not 0: it does not.
// Change -i is offer i.
//
//go:nosplit
func (r *ring) enterChange(tick, i int64, refused uint64) {
	head := [...]uint64{uint64(tick), uint64(i), refused}
	r.enter(KindChange, 0, head[:], nil, nil)
}

// OpenRing starts the entries: the loop enters what happens from now on. Entries that an earlier
// reader has left are discarded.
func (p *StatusBlock) OpenRing() {
	p.ring.tail.Store(p.ring.head.Load())
	p.ring.on.Store(1)
}

// LostEntries returns how many entries have found no room so far.
func (p *StatusBlock) LostEntries() uint64 { return p.ring.lost.Load() }

// NextEntry reads the oldest entry into e; false: there is none.
func (p *StatusBlock) NextEntry(e *Entry) bool {
	r := &p.ring
	at := r.tail.Load()
	if at == r.head.Load() {
		return false
	}
	first := r.words[at%ringWords]
	at++
	end := at + first>>32&(1<<24-1)
	list := e.words[:0]
	for ; at < end; at++ {
		list = append(list, r.words[at%ringWords])
	}
	r.tail.Store(end)

	*e = Entry{Kind: Kind(first >> 56), Tick: int64(list[0]), words: list}
	switch list = list[1:]; e.Kind {
	case KindStep:
		m := first & (1<<32 - 1)
		e.U, e.Y = values(list[:m]), values(list[m:])
	case KindFrame:
		e.Safe, e.Withheld, e.Copy = first&flagSafe != 0, first&flagWithheld != 0, first&flagCopy != 0
		e.Bus, e.Fate, e.Message = int(first>>24&31), Fate(first>>16), int(int16(first))
		e.Stamp.Soft, e.Stamp.Hard, e.Acts = int64(list[0]), int64(list[1]), int64(list[2])
		copy((*frameWords)(unsafe.Pointer(&e.Frame))[:], list[3:])
		e.Frame.Res0, e.Frame.Res1 = 0, 0
	case KindTiming:
		e.At, e.Lost = int64(list[0]), int64(list[1])
		copy((*[phases]uint64)(unsafe.Pointer(&e.Spent))[:], list[2:])
	case KindFault:
		e.Slot, e.State, e.Count = int(first>>8&0xFF), fault.State(first), list[0]
	case KindCommand:
		e.Batch, e.Obstacle, e.Refused = list[0], int(list[1]), list[1] != 0
	case KindState:
		e.Slot, e.Obstacle, e.Refused = int(list[0]), int(list[1]), list[1] != 0
	case KindNetwork:
		e.Network = network.Change{Topic: network.Topic(first >> 24), Bus: uint8(first >> 16), Value: uint16(first)}
	case KindChange:
		e.Slot, e.Batch, e.Obstacle, e.Refused = int(list[0]), 0, int(list[1]), list[1] != 0
		if e.Slot < 0 {
			e.Slot, e.Batch = -1, uint64(-e.Slot)
		}
	}

	return true
}

// values returns words as values.
func values(words []uint64) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(words))), len(words))
}

// responseTimer measures the time from the arrival of frames until their tick is answered.
type responseTimer struct {
	n  int
	at [MaxRecv]int64 // arrivals, ns on CLOCK_REALTIME
}

// noteArrival notes a frame with the kernel's stamp at, ns; 0: no stamp.
//
//go:nosplit
func (x *responseTimer) noteArrival(at int64) {
	if at != 0 && x.n < len(x.at) {
		x.at[x.n] = at
		x.n++
	}
}

// record records, for each frame noted, the time from its arrival until now. Call it when the
// frames of the tick are out.
//
//go:nosplit
func (x *responseTimer) record(h *sched.Histogram) {
	if x.n == 0 {
		return
	}
	now := sched.Realtime()
	for _, at := range x.at[:x.n] {
		h.Record(now - at)
	}
	x.n = 0
}
