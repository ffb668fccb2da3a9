package fault

import (
	"fmt"

	"lockstep/io/sigmap"
)

// Driver is a plant whose inputs can be taken from their own sources.
type Driver interface {
	Drive(i int, on bool) // from the next step on input i follows u; or its own source
	Own(i int) float64    // what its own source gives in the middle of the next step
}

// System is what a Set works on.
type System struct {
	PeriodNs int64         // of a tick; > 0
	M, P     int           // len(u), len(y)
	Maps     []*sigmap.Map // one per bus
	Plant    Driver        // nil: its inputs cannot be taken from their sources
}

// Set is the engine: what there is of faults, courses and live values, and what they do
// at a tick. At each tick Do is called for the commands that have come, then Begin;
// after it, in the order of the tick, Arrived and Late for frames received, Inputs
// before the step, Signals after it, and Before, Sent and Held for frames to be sent.
// None of these allocates or grows the stack.
//
// The same calls with the same arguments have the same results.
type Set struct {
	System
	h      float64      // period, s
	ranges [][2]float64 // of inputs
	slots  []slot       // Max
	on     [wheres]list // slots that are Active, and those that look on while Armed
	bus    []bool       // by input: a bus drives it
	course []int        // by input: 1 + entry of courses; 0: none
	set    []bool       // by input: it has a live value,
	value  []float64    // this one
	driven []bool       // by input: the plant was told to follow u
	u      []float64    // inputs of the last step
	seen   []int64      // by input: the tick for which u is its value already
	stim   []Stimulus
	first  []int     // per bus, entry of sent of its first message
	sent   []message // bus after bus

	changes [4 * Max]Change
	made    int   // of them, since Begin of
	read    int   // and how many were read
	tick    int64 // the last Begin
	frame   frameOut
	waiting int  // frames held back
	used    int  // slots from here on have never had a fault
	dirty   bool // on and driven do not hold any more
}

// list is some slots in their order.
type list struct {
	n  int
	at [Max]uint8
}

// slot is a fault at work.
type slot struct {
	Fault
	state  State
	fresh  bool   // it has not worked on a value yet
	count  uint64 // see Change
	began  int64  // tick at which it became active
	value  float64
	share  float64 // of a Leak: what it comes nearer in a tick
	random uint64

	past  [MaxDelay]float64 // of a Delay: values of the last ticks, by tick,
	since int64             // from this one on; 0: there is none yet

	held  [MaxHeld]heldFrame // a queue
	first int                // of it
	n     int                // frames in it
}

// New returns the Set of a plan, with all faults armed.
func New(p Plan, sys System) (*Set, error) {
	s := &Set{System: sys, h: float64(sys.PeriodNs) * 1e-9, ranges: p.Ranges, stim: p.Stimuli, slots: make([]slot, Max), dirty: true}
	m := sys.M
	s.bus, s.course, s.set, s.value = make([]bool, m), make([]int, m), make([]bool, m), make([]float64, m)
	s.driven, s.u, s.seen = make([]bool, m), make([]float64, m), make([]int64, m)
	for _, mp := range sys.Maps {
		s.first = append(s.first, len(s.sent))
		s.sent = append(s.sent, make([]message, len(mp.Tx))...)
		for _, rx := range mp.Rx {
			for _, f := range rx.Fields {
				s.bus[f.Index] = true
			}
		}
	}
	if len(p.Faults) > Max {
		return nil, fmt.Errorf("fault: %d faults, %d are possible at once", len(p.Faults), Max)
	}
	clear(s.slots) // touches the memory now, not in a tick
	for i := range p.Faults {
		c := Command{Op: Put, Slot: i, Fault: p.Faults[i]}
		if why := s.refuse(&c); why != accepted {
			return nil, fmt.Errorf("fault: fault %d: %w", i+1, why)
		}
		s.Do(&c)
	}
	for i := range p.Stimuli {
		if err := s.stimulus(i); err != nil {
			return nil, fmt.Errorf("fault: stimulus %d: %w", i+1, err)
		}
	}
	return s, nil
}

func (s *Set) stimulus(i int) error {
	st := &s.stim[i]
	c := Command{Op: Release, Input: st.Input}
	if why := s.refuse(&c); why != accepted {
		return why
	}
	if s.course[st.Input] != 0 {
		return fmt.Errorf("input %d has one already", st.Input)
	}
	s.course[st.Input] = 1 + i
	return st.Course.Check()
}

// Do carries out a command, with effect from the next Begin on.
//
//go:nosplit
func (s *Set) Do(c *Command) {
	if s.refuse(c) != accepted {
		return
	}
	s.dirty = true
	switch c.Op {
	case Put:
		x := &s.slots[c.Slot]
		if x.state == Armed || x.state == Active {
			s.change(c.Slot, Free)
		}
		s.end(x)
		s.waiting -= x.n
		x.Fault = c.Fault
		s.used = max(s.used, c.Slot+1)
		x.count, x.n, x.since, x.fresh, x.random = 0, 0, 0, true, c.Fault.Seed
		s.change(c.Slot, Armed)
	case Clear:
		x := &s.slots[c.Slot]
		if x.state != Free {
			s.change(c.Slot, Free)
		}
		s.end(x)
	case Drive:
		s.set[c.Input], s.value[c.Input] = true, c.Value
	case Release:
		s.set[c.Input] = false
	}
}

// end takes back what a fault has left.
//
//go:nosplit
func (s *Set) end(x *slot) {
	if x.Where == Signal && x.Kind != None {
		s.Maps[x.Bus].Tx[x.Message].Fields[x.Field].Force = sigmap.NoForce
	}
}

//go:nosplit
func (s *Set) change(slot int, to State) {
	x := &s.slots[slot]
	x.state = to
	s.dirty = true
	if s.made < len(s.changes) {
		s.changes[s.made] = Change{slot, to, x.count}
		s.made++
	}
}

// Change reads the changes of state, one after the other, that the last Begin and the
// commands before it have made; false: there are no more. It is to be called until
// then.
//
//go:nosplit
func (s *Set) Change(c *Change) bool {
	if s.read >= s.made {
		s.made, s.read = 0, 0
		return false
	}
	*c = s.changes[s.read]
	s.read++
	return true
}

// Used is how many slots, from the first on, have ever had a fault.
//
//go:nosplit
func (s *Set) Used() int { return s.used }

// State says how the fault in a slot stands.
//
//go:nosplit
func (s *Set) State(slot int) (State, uint64) { return s.slots[slot].state, s.slots[slot].count }

// Begin starts tick k, the next one; y are the outputs of the tick before.
//
//go:nosplit
func (s *Set) Begin(k int64, y []float64) {
	for i := range s.slots[:s.used] {
		switch x := &s.slots[i]; x.state {
		case Armed:
			if s.triggered(&x.Start, k, y) {
				x.began = k
				s.change(i, Active)
			}
		case Active:
			if x.Last > 0 && (x.Frames && x.count >= uint64(x.Last) || !x.Frames && k-x.began >= x.Last) {
				s.end(x)
				s.change(i, Over)
			}
		}
	}
	s.tick = k
	if s.dirty {
		s.dirty = false
		s.arrange()
	}
	for w := range s.on {
		l := &s.on[w]
		for i := range l.n {
			if x := &s.slots[l.at[i]]; x.state == Active && !x.byFrame() {
				x.count++
			}
		}
	}
}

// byFrame says that the fault counts frames, not ticks.
//
//go:nosplit
func (x *slot) byFrame() bool { return x.Where == SentFrame || x.Where == ReceivedFrame || x.Frames }

// triggered says that a fault is to start at tick k. Before tick 2 there are no inputs
// and outputs that a condition could be on.
//
//go:nosplit
func (s *Set) triggered(t *Trigger, k int64, y []float64) bool {
	if k < t.Tick {
		return false
	}
	for i := range t.When {
		c := &t.When[i]
		if !c.Set {
			continue
		}
		v := 0.0
		if c.Output {
			v = y[c.Index]
		} else {
			v = s.u[c.Index]
		}
		if k < 2 || c.Above && !(v > c.Limit) || !c.Above && !(v < c.Limit) {
			return false
		}
	}
	return true
}

// arrange lists the slots by what they are on, and tells the plant which inputs are
// taken from their sources.
//
//go:nosplit
func (s *Set) arrange() {
	for w := range s.on {
		s.on[w].n = 0
	}
	for i := range s.slots[:s.used] {
		x := &s.slots[i]
		if x.state == Active || x.state == Armed && x.Kind == Delay {
			l := &s.on[x.Where]
			l.at[l.n] = uint8(i)
			l.n++
		}
	}
	for i := range s.driven {
		if s.bus[i] {
			continue
		}
		on := s.set[i] || s.course[i] > 0
		l := &s.on[Input]
		for j := range l.n {
			x := &s.slots[l.at[j]]
			on = on || x.Input == i && x.state == Active
		}
		if on != s.driven[i] {
			s.driven[i] = on
			s.Plant.Drive(i, on)
		}
	}
}
