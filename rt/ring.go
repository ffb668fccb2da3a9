package rt

import (
	"math"
	"sync/atomic"

	"lockstep/io/can"
	"lockstep/rt/fault"
	"lockstep/sched"
)

// ringWords is the room of the ring: 8 MiB, some 25 s of a bench with 100 values
// and ten frames per tick of 5 ms.
const ringWords = 1 << 20

// ring carries what happened from the loop to whoever records it: entries of words,
// one after the other. One process writes and one reads. What finds no room is lost
// and counted; the loop never waits.
type ring struct {
	head  atomic.Uint64 // words written, counted on
	tail  atomic.Uint64 // words read
	lost  atomic.Uint64 // entries that found no room
	on    atomic.Uint64 // not 0: somebody reads
	words [ringWords]uint64
}

// Kind says what an Entry is.
type Kind uint8

// The kinds.
const (
	KindStep    Kind = iota + 1 // one step of the plant: Tick, Inputs, Outputs
	KindFrame                   // a frame: Tick, Bus, Fate, Message, Stamp, Frame
	KindTiming                  // a tick's timing: Tick, At, Spent, Lost
	KindFault                   // a fault changes its state: Tick, Slot, State, Count; before the frames and the step of its tick
	KindCommand                 // commands take effect: Tick, Batch; before all else of their tick
)

// Fate is what became of a frame.
type Fate uint8

// The fates.
const (
	Received Fate = iota
	Sent
	Dropped // encoded, but the bus did not take it
	Refused // a signal was no number: not encoded
	Unsent  // due at a lost grid point
)

// Entry is one entry of the ring, decoded. Its slices are used again by the next
// one.
type Entry struct {
	Kind     Kind
	Tick     int64
	Safe     bool          // of a frame: it carries the safe values
	Slot     int           // of a fault
	State    fault.State   // of a fault
	Count    uint64        // of a fault: ticks, or frames, that it has disturbed so far
	Batch    uint64        // of commands, see Page.Post
	Bus      int           // of a frame
	Copy     bool          // of a frame: it was made, or read, before, and goes out, or comes in, again or only now
	Fate     Fate          // of a frame
	Withheld bool          // of a frame: a fault keeps it from the bus, although it is Sent; or from the plant
	Message  int           // of a frame: index in Map.Rx or Map.Tx, -1 unknown
	Stamp    can.Stamp     // of a frame: when it came in, or went out
	At       int64         // of a timing: the wake-up, ns on CLOCK_MONOTONIC
	Lost     int64         // of a timing: grid points lost before this one
	Spent    [phases]int64 // of a timing, ns
	Frame    can.Frame     // of a frame; without data where it is Unsent or Refused
	U, Y     []float64     // of a step
}

// put starts an entry of n words besides its first; false: there is no room, or
// nobody reads.
//
//go:nosplit
func (r *ring) put(k Kind, n int, flags uint64) (at uint64, ok bool) {
	if r.on.Load() == 0 {
		return 0, false
	}
	at = r.head.Load()
	if at+uint64(n)+1-r.tail.Load() > ringWords {
		r.lost.Store(r.lost.Load() + 1)
		return 0, false
	}
	r.words[at%ringWords] = uint64(k)<<56 | uint64(n)<<32 | flags
	return at + 1, true
}

// step enters a step of the plant.
//
//go:nosplit
func (r *ring) step(tick int64, u, y []float64) {
	at, ok := r.put(KindStep, 1+len(u)+len(y), uint64(len(u)))
	if !ok {
		return
	}
	r.words[at%ringWords] = uint64(tick)
	at++
	for _, v := range u {
		r.words[at%ringWords] = math.Float64bits(v)
		at++
	}
	for _, v := range y {
		r.words[at%ringWords] = math.Float64bits(v)
		at++
	}
	r.head.Store(at)
}

// frameWords is the size of a frame's entry without its data.
const frameWords = 4

// note is what the loop notes about a frame.
type note struct {
	tick         int64
	bus, message int // message -1: unknown
	fate         Fate
	safe         bool
	copy         bool
	withheld     bool
	stamp        can.Stamp // of a frame received
}

//go:nosplit
func (e *note) set(tick int64, bus, message int) {
	e.tick, e.bus, e.message, e.copy, e.withheld = tick, bus, message, false, false
}

// frame enters a frame with what e says of it. A frame received has its stamp; one
// to be sent has the present instant, on the same clock.
//
//go:nosplit
func (r *ring) frame(e *note, f *can.Frame) {
	n := uint64(f.Len+7) / 8
	flags := uint64(e.bus)<<24 | uint64(e.fate)<<16 | uint64(uint16(e.message))
	if e.safe {
		flags |= 1 << 31
	}
	if e.withheld {
		flags |= 1 << 30
	}
	if e.copy {
		flags |= 1 << 29
	}
	at, ok := r.put(KindFrame, int(frameWords+n), flags)
	if !ok {
		return
	}
	if e.fate != Received {
		e.stamp.Soft, e.stamp.Hard = sched.Realtime(), 0
	}
	r.words[at%ringWords] = uint64(e.tick)
	r.words[(at+1)%ringWords] = uint64(e.stamp.Soft)
	r.words[(at+2)%ringWords] = uint64(e.stamp.Hard)
	r.words[(at+3)%ringWords] = uint64(f.ID)<<32 | uint64(f.Len)<<8 | uint64(f.Flags)
	at += frameWords
	for i := range n {
		w := uint64(0)
		for j := range uint64(8) {
			w |= uint64(f.Data[(8*i+j)&63]) << (8 * j)
		}
		r.words[at%ringWords] = w
		at++
	}
	r.head.Store(at)
}

// timing enters a tick's timing.
//
//go:nosplit
func (r *ring) timing(e *Late) {
	at, ok := r.put(KindTiming, 3+int(phases), 0)
	if !ok {
		return
	}
	r.words[at%ringWords] = uint64(e.Tick)
	r.words[(at+1)%ringWords] = uint64(e.At)
	r.words[(at+2)%ringWords] = uint64(e.Lost)
	at += 3
	for _, ns := range e.Spent {
		r.words[at%ringWords] = uint64(ns)
		at++
	}
	r.head.Store(at)
}

// fault enters a change of a fault's state.
//
//go:nosplit
func (r *ring) fault(tick int64, c *fault.Change) {
	r.pair(KindFault, uint64(c.Slot)<<8|uint64(c.State), uint64(tick), c.Count)
}

// command enters that a batch of commands takes effect.
//
//go:nosplit
func (r *ring) command(tick int64, batch uint64) { r.pair(KindCommand, 0, uint64(tick), batch) }

// pair enters two words.
//
//go:nosplit
func (r *ring) pair(k Kind, flags, a, b uint64) {
	at, ok := r.put(k, 2, flags)
	if !ok {
		return
	}
	r.words[at%ringWords], r.words[(at+1)%ringWords] = a, b
	r.head.Store(at + 2)
}

// Listen makes the loop enter what happens from now on; what an earlier reader has
// left is thrown away.
func (p *Page) Listen() {
	p.ring.tail.Store(p.ring.head.Load())
	p.ring.on.Store(1)
}

// Overflow returns how many entries have found no room so far.
func (p *Page) Overflow() uint64 { return p.ring.lost.Load() }

// Next reads the oldest entry to e; false: there is none.
func (p *Page) Next(e *Entry) bool {
	r := &p.ring
	at := r.tail.Load()
	if at == r.head.Load() {
		return false
	}
	word := func() (w uint64) {
		w = r.words[at%ringWords]
		at++
		return w
	}
	first := word()
	end := at + first>>32&(1<<24-1)
	u, y := e.U[:0], e.Y[:0]
	*e = Entry{Kind: Kind(first >> 56), Tick: int64(word())}
	switch e.Kind {
	case KindStep:
		for n := first & (1<<32 - 1); at < end; {
			if v := math.Float64frombits(word()); uint64(len(u)) < n {
				u = append(u, v)
			} else {
				y = append(y, v)
			}
		}
	case KindFrame:
		e.Safe, e.Withheld, e.Copy = first>>31&1 == 1, first>>30&1 == 1, first>>29&1 == 1
		e.Bus, e.Fate, e.Message = int(first>>24&31), Fate(first>>16), int(int16(first))
		e.Stamp.Soft, e.Stamp.Hard = int64(word()), int64(word())
		head := word()
		e.Frame.ID, e.Frame.Len, e.Frame.Flags = uint32(head>>32), uint8(head>>8), uint8(head)
		for i := 0; at < end; i += 8 {
			for j, w := 0, word(); j < 8 && i < 64; j++ {
				e.Frame.Data[i+j] = byte(w >> (8 * j))
			}
		}
	case KindTiming:
		e.At, e.Lost = int64(word()), int64(word())
		for i := range e.Spent {
			e.Spent[i] = int64(word())
		}
	case KindFault:
		e.Slot, e.State, e.Count = int(first>>8&0xFF), fault.State(first), word()
	case KindCommand:
		e.Batch = word()
	}
	e.U, e.Y = u, y
	r.tail.Store(end)
	return true
}

// exchange follows the frames of a tick from their arrival to the answer.
type exchange struct {
	n  int
	at [MaxRecv]int64 // when they came in, ns on CLOCK_REALTIME
}

// add notes a frame that the kernel has stamped.
//
//go:nosplit
func (x *exchange) add(at int64) {
	if at != 0 && x.n < len(x.at) {
		x.at[x.n] = at
		x.n++
	}
}

// answer records, for each frame noted, the time from its arrival until now, when
// the frames of the tick are out.
//
//go:nosplit
func (x *exchange) answer(h *sched.Histogram) {
	if x.n == 0 {
		return
	}
	now := sched.Realtime()
	for _, at := range x.at[:x.n] {
		h.Record(now - at)
	}
	x.n = 0
}
