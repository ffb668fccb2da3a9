package kernel

// Change is a set of tables for a run from a grid point on.
type Change struct {
	Tick   int64
	Tables *Tables
}

// MaxWait is the number of grid points for which a change waits until it can take effect.
const MaxWait = 100

// Sequence is a plant whose tables change during a run. It is stepped as a Kernel is.
//
// A phase of the run is the number of changes that are in effect: phase 0 is before the first. A set of
// kernels has one for each phase. The first set is that of the run; the others, in slots, are offered.
type Sequence struct {
	kernels []*Kernel // set after set, in each by phase
	ticks   []int64   // grid point of each change
	set     int       // index in kernels of the set in use
	phase   int
	active  int    // index in kernels: set + phase
	next    int    // change that comes next
	refused uint64 // changes that could not take effect, as bits
	reached int64  // grid point of the state

	offered  int      // index in kernels of the set that waits to take over; 0: none
	since    int64    // grid point of the offer
	obstacle Obstacle // why the last offer was refused

	tables     int        // number of the tables in use: 1 before any change
	snapshots  []snapshot // by slot
	checkpoint *Kernel    // the state of SaveState; nil: it has no room
	driven     []bool     // inputs: scratch of Restore
	lastInputs []float64  // inputs: scratch of Restore

	// Indirect calls as in calls.
	// limit: Step, writeOutputs, writePlantOutputs, setSignalsNow, a law
	step func(k *Kernel, y, u []float64)
	// share: Step, TakeOver, freeMoving
	takeOver func(k, from *Kernel, u []float64) bool
	// share: Restore, Reset, settle
	reset func(k *Kernel)
	// share: Restore, restore, copyState
	restore func(k, from *Kernel)
}

// NewSequence returns a plant on tables t with changes in the order of their grid points. Each table
// must follow t.
func NewSequence(t *Tables, changes []Change) *Sequence {
	s := &Sequence{kernels: []*Kernel{New(t)}, tables: 1, driven: make([]bool, len(t.Inputs)), lastInputs: make([]float64, len(t.Inputs)),
		step: (*Kernel).Step, takeOver: (*Kernel).TakeOver, reset: (*Kernel).Reset, restore: (*Kernel).restore}
	for i := range changes {
		s.kernels = append(s.kernels, New(changes[i].Tables))
		s.ticks = append(s.ticks, changes[i].Tick)
	}
	return s
}

// Step is Kernel.Step. A change of grid point k takes effect before the step from k, or within
// MaxWait later grid points where the plant owes time; then it is refused.
//
//go:nosplit
func (s *Sequence) Step(y, u []float64) {
	for s.next < len(s.ticks) && s.ticks[s.next] <= s.reached {
		if s.takeOver(s.kernels[s.set+s.next+1], s.kernels[s.active], u) {
			s.phase = s.next + 1
			s.active, s.tables = s.set+s.phase, s.tables+1
		} else if s.reached-s.ticks[s.next] < MaxWait {
			break
		} else {
			s.refused |= 1 << s.next
		}
		s.next++
	}
	if s.offered != 0 {
		if k := s.kernels[s.offered+s.phase]; s.takeOver(k, s.kernels[s.active], u) {
			s.set, s.active, s.tables = s.offered, s.offered+s.phase, s.tables+1
			s.offered, s.obstacle = 0, NoObstacle
		} else if s.reached-s.since >= MaxWait {
			s.obstacle, s.offered = k.obstacle(s.kernels[s.active]), 0
		}
	}

	s.step(s.kernels[s.active], y, u)
	s.reached++
}

// UseSlots gives the sequence the sets that Offer offers, slot after slot. It may replace kernels that are
// neither offered nor in use. Another process may write a kernel before it is offered, except its calls:
// its tables follow those of the sequence, and it is as New returns it. A kernel of a phase that is over
// may be nil.
func (s *Sequence) UseSlots(kernels []*Kernel) {
	for _, k := range kernels {
		if k != nil {
			k.calls = s.kernels[0].calls
		}
	}
	s.kernels = append(s.kernels[:s.SetSize()], kernels...)
}

// SetSize returns the number of kernels in a set.
func (s *Sequence) SetSize() int { return 1 + len(s.ticks) }

// Phase returns the phase of the run.
func (s *Sequence) Phase() int { return s.phase }

// Offer makes the set in a slot take over at the next step at which it can, within MaxWait grid points; then
// it is refused. It discards an offer that is not decided yet.
//
//go:nosplit
func (s *Sequence) Offer(slot int) {
	s.offered, s.since = (1+slot)*(1+len(s.ticks)), s.reached
}

// Offered reports whether the last offer waits. If it does not, obstacle is the Obstacle for which the
// offer was refused; NoObstacle: it is in effect.
//
//go:nosplit
func (s *Sequence) Offered() (waits bool, obstacle int) { return s.offered != 0, int(s.obstacle) }

// Obstacle returns what would keep a set of kernels, whose tables follow those of the sequence, from taking
// over at the next step; NoObstacle: nothing.
func (s *Sequence) Obstacle(set []*Kernel) Obstacle {
	from, phase := s.kernels[s.active], s.phase
	for i := s.next; i < len(s.ticks) && s.ticks[i] <= s.reached; i++ { // as in Step
		if s.kernels[s.set+i+1].obstacle(from) == NoObstacle {
			phase = i + 1
		} else if s.reached-s.ticks[i] < MaxWait {
			break
		}
	}
	return set[phase].obstacle(from)
}

// Changes returns the number of changes decided so far, and those that were refused, as bits.
//
//go:nosplit
func (s *Sequence) Changes() (decided int, refused uint64) { return s.next, s.refused }

// Reset returns the plant to time 0 and its initial state before any change. It drops the snapshots.
func (s *Sequence) Reset() {
	s.kernels[0].Reset()
	s.set, s.phase, s.active, s.next, s.refused, s.reached, s.offered, s.tables = 0, 0, 0, 0, 0, 0, 0, 1
	for i := range s.snapshots {
		s.snapshots[i].tables = 0
	}
}

// Dims returns the lengths of u and y.
func (s *Sequence) Dims() (m, p int) { return s.kernels[0].Dims() }

// Drive is Kernel.Drive.
//
//go:nosplit
func (s *Sequence) Drive(i int, on bool) { s.kernels[s.active].Drive(i, on) }

// Change is Kernel.Change.
//
//go:nosplit
func (s *Sequence) Change(i int, at, value, slope float64) {
	s.kernels[s.active].Change(i, at, value, slope)
}

// Own is Kernel.Own.
//
//go:nosplit
func (s *Sequence) Own(i int) float64 { return s.kernels[s.active].Own(i) }

// Driven is Kernel.Driven.
func (s *Sequence) Driven(i int) bool { return s.kernels[s.active].Driven(i) }

// Output is Kernel.Output.
func (s *Sequence) Output(y []float64) { s.kernels[s.active].Output(y) }

// Events is Kernel.Events.
func (s *Sequence) Events() []Event { return s.kernels[s.active].Events() }

// Unconverged is Kernel.Unconverged.
func (s *Sequence) Unconverged() uint64 { return s.kernels[s.active].Unconverged() }
