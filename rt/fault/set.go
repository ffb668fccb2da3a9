package fault

import (
	"errors"
	"fmt"

	"lockstep/io/can"
	"lockstep/io/sigmap"
)

// Driver is a plant whose inputs can be switched from their own waveforms to u.
type Driver interface {
	Drive(i int, on bool) // on: from the next step on input i follows u; off: its own waveform
	Own(i int) float64    // value of the input's own waveform in the middle of the next step
}

// Restorer is a plant whose state can be stored in a slot, and restored: see kernel.Sequence.
type Restorer interface {
	TakeSnapshot(slot int)
	Carries(slot int) bool
	Restore(slot int) (obstacle int)
}

// System describes the plant and buses of a Set.
type System struct {
	PeriodNs int64         // period of a tick, ns; > 0
	M, P     int           // len(u), len(y)
	Maps     []*sigmap.Map // one per bus
	Plant    Driver        // nil: inputs cannot be switched from their own waveforms
}

// Set holds faults, waveforms and live values and applies them at each tick. Call, in this order:
// Apply for each command, BeginTick, FilterReceived and NextDelayed for frames received,
// DisturbInputs before the step, DisturbSignals after it, and PrepareCounters, DisturbFrame and
// NextHeld for frames to be sent. None of these allocates or grows the stack.
//
// The same calls with the same arguments have the same results.
type Set struct {
	System `checkpoint:"-"`

	Copied can.Frame // see FilterReceived

	Carried  bool // the last Restore carried the state over to other parameters
	Obstacle int  // why the plant refused the last Restore; 0: it did not

	Restorer Restorer // stores states of the plant: New takes the plant if it can; nil: nothing does

	h      float64      // period, s
	ranges [][2]float64 `checkpoint:"-"` // lowest and highest value of each input
	slots  []slot       // len Max
	on     [wheres]list // slots that are Active, and Delay faults that are Armed
	inputs []input
	u      []float64      // inputs of the last step
	stim   []Stimulus     `checkpoint:"-"`
	cycle  *cycleDriver   // nil: none
	lane   *laneDriver    // nil: none
	states []PlannedState `checkpoint:"-"`
	next   int            // index in states of the next one

	messages []message // messages sent and received
	firstTx  []int     `checkpoint:"-"` // per bus, index in messages of its first message sent
	firstRx  []int     `checkpoint:"-"` // per bus, index in messages of its first message received

	changes [4 * Max]Change
	made    int   // changes since the last BeginTick
	read    int   // changes read by NextChange
	tick    int64 // tick of the last BeginTick
	frame   frameEffects
	waiting int  // frames held back
	used    int  // slots from here on were never used
	dirty   bool // on and driven must be recomputed
}

// input is the state of an input of the plant.
type input struct {
	bus      bool    // a bus drives the input
	stimulus bool    // the input follows a stimulus or a driver
	set      bool    // the input has a live value
	value    float64 // the live value
	driven   bool    // the plant follows u for this input
	faulty   bool    // a fault acts on the input
	seen     int64   // last tick with the value of its own waveform in u
}

// list holds slot numbers in ascending order.
type list struct {
	n  int
	at [Max]uint8
}

// slot is a fault and its state.
type slot struct {
	Fault
	state  State
	unused bool    // the fault has not acted on a value yet
	count  uint64  // ticks or frames disturbed: Change.Count
	began  int64   // first active tick
	value  float64 // for Hold, Leak and Ramp: held or start value
	share  float64 // for Leak: share of the remaining distance per tick, 0 to 1
	random uint64  // state of the random numbers

	past  [MaxDelay + 1]float64 `checkpoint:"-"` // for Delay: values of the last ticks, by tick modulo its length
	since int64                 // first tick in past; 0: none yet
	last  int64                 // for Delay and Leak: tick of the last value

	held  [MaxHeld]heldFrame `checkpoint:"-"` // ring buffer of frames held back
	first int                // index of the oldest frame
	n     int                // frames held back
}

// New returns the Set of a plan, with all faults armed.
func New(p Plan, sys System) (*Set, error) {
	s := &Set{
		System: sys, h: float64(float64(sys.PeriodNs) * 1e-9), ranges: p.Ranges,
		slots: make([]slot, Max), inputs: make([]input, sys.M), u: make([]float64, sys.M), dirty: true,
	}
	s.Restorer, _ = sys.Plant.(Restorer)
	for _, mp := range sys.Maps {
		s.firstTx = append(s.firstTx, len(s.messages))
		s.firstRx = append(s.firstRx, len(s.messages)+len(mp.Tx))
		s.messages = append(s.messages, make([]message, len(mp.Tx)+len(mp.Rx))...)
		for _, rx := range mp.Rx {
			for _, f := range rx.Fields {
				s.inputs[f.Index].bus = true
			}
		}
	}

	if len(p.Faults) > Max {
		return nil, fmt.Errorf("fault: %d faults, at most %d are possible at once", len(p.Faults), Max)
	}
	clear(s.slots) // touch the memory now, not in a tick
	for i := range p.Faults {
		c := Command{Op: Put, Slot: i, Fault: p.Faults[i]}
		if err := s.Check(&c); err != nil {
			return nil, fmt.Errorf("fault: fault %d: %w", i+1, err)
		}
		s.Apply(&c)
	}

	for i := range p.Stimuli {
		if err := s.addStimulus(&p.Stimuli[i]); err != nil {
			return nil, fmt.Errorf("fault: stimulus %d: %w", i+1, err)
		}
	}

	if p.Cycle != nil {
		if err := s.addCycle(p.Cycle); err != nil {
			return nil, fmt.Errorf("fault: cycle: %w", err)
		}
	}
	if p.Lane != nil {
		if err := s.addLane(p.Lane); err != nil {
			return nil, fmt.Errorf("fault: lane: %w", err)
		}
	}
	s.states = p.States

	p.SetWaveforms(sys.Maps)
	return s, nil
}

// CheckStates returns why the snapshots and resets of the plan are impossible. Call it when Restorer is that of the run,
// before the first tick.
func (s *Set) CheckStates() error {
	for i := range s.states {
		c := Command{Op: s.states[i].Op, Slot: s.states[i].Slot}
		if err := s.Check(&c); err != nil {
			return fmt.Errorf("fault: state %d: %w", i+1, err)
		}
	}
	return nil
}

// addStimulus checks a stimulus and notes its input.
func (s *Set) addStimulus(st *Stimulus) error {
	signal := Fault{Where: st.Where, Bus: st.Bus, Message: st.Message, Field: st.Field}
	c := Command{Op: Release, Input: st.Input, Fault: signal}
	if err := errors.Join(s.Check(&c), st.Waveform.Check()); err != nil {
		return err
	}
	if st.Where == Signal {
		return nil
	}
	if err := s.addInput(st.Input); err != nil {
		return err
	}
	s.stim = append(s.stim, *st)
	return nil
}

// addInput notes that an input which no bus drives follows a stimulus or a cycle.
func (s *Set) addInput(i int) error {
	if err := s.Check(&Command{Op: Release, Input: i}); err != nil {
		return err
	}
	if s.inputs[i].stimulus {
		return fmt.Errorf("input %d has a stimulus already", i)
	}
	s.inputs[i].stimulus = true
	return nil
}

// Apply applies a command, with effect from the next BeginTick on; false: Check refuses it.
//
//go:nosplit
func (s *Set) Apply(c *Command) bool {
	if s.Check(c) != nil {
		return false
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
		x.count, x.n, x.since, x.unused, x.random = 0, 0, 0, true, c.Fault.Seed
		s.change(c.Slot, Armed)
	case Clear:
		x := &s.slots[c.Slot]
		if x.state != Free {
			s.change(c.Slot, Free)
		}
		s.end(x)
	case Drive, Release:
		s.drive(c)
	case ReleaseAll:
		s.releaseAll()
	case TakeSnapshot:
		s.Restorer.TakeSnapshot(c.Slot)
	case Restore:
		s.Carried = s.Restorer.Carries(c.Slot)
		s.Obstacle = s.Restorer.Restore(c.Slot)
	}
	return true
}

// NextPlanned makes c the next planned command before the step to tick k; false: there is none. Call it, and
// Apply, before BeginTick.
//
//go:nosplit
func (s *Set) NextPlanned(k int64, c *Command) bool {
	if s.next >= len(s.states) || s.states[s.next].Tick >= k {
		return false
	}
	c.Op, c.Slot = s.states[s.next].Op, s.states[s.next].Slot
	s.next++
	return true
}

// Delays reports whether a fault delays a value or a frame. A checkpoint has no room for what it holds back.
//
//go:nosplit
func (s *Set) Delays() bool {
	for i := range s.slots[:s.used] {
		if x := &s.slots[i]; x.n > 0 || (x.Kind == Delay || x.Kind == DelayFrame) && (x.state == Armed || x.state == Active) {
			return true
		}
	}
	return false
}

// drive sets an input or a signal to a value, or releases it.
//
//go:nosplit
func (s *Set) drive(c *Command) {
	if c.Fault.Where == Input {
		s.inputs[c.Input].set, s.inputs[c.Input].value = c.Op == Drive, c.Value
		return
	}
	w := s.waveform(&c.Fault)
	w.Held, w.HeldValue = c.Op == Drive, c.Value
	w.HeldWhole, w.HeldRaw = c.Whole, c.Raw
}

// releaseAll ends the live values of all inputs and signals.
//
//go:nosplit
func (s *Set) releaseAll() {
	for i := range s.inputs {
		s.inputs[i].set = false
	}
	for _, m := range s.Maps {
		for i := range m.Tx {
			for j := range m.Tx[i].Waveforms {
				m.Tx[i].Waveforms[j].Held = false
			}
		}
	}
}

// end removes the forced value of a fault's signal.
//
//go:nosplit
func (s *Set) end(x *slot) {
	if x.Where == Signal && x.Kind != None {
		s.Maps[x.Bus].Tx[x.Message].Fields[x.Field].Force = sigmap.NoForce
	}
}

// change sets the state of a slot and reports the change.
//
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

// NextChange returns, one by one, the state changes made by the last BeginTick and the commands
// before it; false: there are no more. Call it until it returns false.
//
//go:nosplit
func (s *Set) NextChange(c *Change) bool {
	if s.read >= s.made {
		s.made, s.read = 0, 0
		return false
	}

	*c = s.changes[s.read]
	s.read++
	return true
}

// UsedSlots returns how many slots, from the first on, were ever used.
//
//go:nosplit
func (s *Set) UsedSlots() int { return s.used }

// State returns the state of the fault in a slot and its count.
//
//go:nosplit
func (s *Set) State(slot int) (State, uint64) { return s.slots[slot].state, s.slots[slot].count }

// Began returns the first tick in which the fault in a slot, which is no longer armed, was active.
//
//go:nosplit
func (s *Set) Began(slot int) int64 { return s.slots[slot].began }

// BeginTick starts tick k, the next one; y are the outputs of the previous tick.
//
//go:nosplit
func (s *Set) BeginTick(k int64, y []float64) {
	for i := range s.slots[:s.used] {
		switch x := &s.slots[i]; x.state {
		case Armed:
			if s.triggered(&x.Start, k, y) {
				x.began = k
				s.change(i, Active)
			}
		case Active:
			if x.Duration > 0 && (x.Frames && x.count >= uint64(x.Duration) || !x.Frames && k-x.began >= x.Duration) {
				s.end(x)
				s.change(i, Over)
			}
		}
	}

	s.tick = k
	if s.cycle != nil {
		s.stepCycle(k, y)
	}
	if s.lane != nil {
		s.stepLane(k, y)
	}
	if s.dirty {
		s.dirty = false
		s.updateActive()
	}

	for w := range s.on {
		l := &s.on[w]
		for i := range l.n {
			if x := &s.slots[l.at[i]]; x.state == Active && !x.countsFrames() {
				x.count++
			}
		}
	}
}

// countsFrames reports whether the fault counts frames, not ticks.
//
//go:nosplit
func (x *slot) countsFrames() bool {
	return x.Where == SentFrame || x.Where == ReceivedFrame || x.Where == ReceivedSignal || x.Frames
}

// triggered reports whether a fault starts at tick k. Before tick 2 there are no inputs and outputs
// for a condition.
//
//go:nosplit
func (s *Set) triggered(t *Trigger, k int64, y []float64) bool {
	if k < t.Tick || k < 2 && (t.When[0].Set || t.When[1].Set) {
		return false
	}
	return t.When.Hold(y, s.u)
}

// Overrides reports whether a fault, a stimulus or a live value sets input i in this tick.
//
//go:nosplit
func (s *Set) Overrides(i int) bool {
	in := &s.inputs[i]
	return in.set || in.stimulus || in.faulty
}

// updateActive lists the active slots by target and switches the plant's inputs between u and their
// own waveforms.
//
//go:nosplit
func (s *Set) updateActive() {
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

	for i := range s.inputs {
		in := &s.inputs[i]
		in.faulty = false
		l := &s.on[Input]
		for j := range l.n {
			x := &s.slots[l.at[j]]
			in.faulty = in.faulty || x.Input == i && x.state == Active
		}

		if on := s.Overrides(i); !in.bus && on != in.driven {
			in.driven = on
			s.Plant.Drive(i, on)
		}
	}
}
