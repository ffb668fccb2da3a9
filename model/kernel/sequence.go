package kernel

// Change is a set of tables for a run from a grid point on.
type Change struct {
	Tick   int64
	Tables *Tables
}

// MaxWait is the number of grid points for which a change waits until it can take effect.
const MaxWait = 100

// Sequence is a plant whose tables change during a run. It is stepped as a Kernel is.
type Sequence struct {
	kernels []*Kernel // before any change, then by change, then by slot
	ticks   []int64   // grid point of each change
	active  int       // index in kernels
	next    int       // change that comes next
	refused uint64    // changes that could not take effect, as bits
	reached int64     // grid point of the state

	offered  int      // index in kernels of the kernel that waits to take over; 0: none
	since    int64    // grid point of the offer
	obstacle Obstacle // why the last offer was refused

	// Indirect calls as in calls.
	// limit: Step, writeOutputs, writePlantOutputs, setSignalsNow, a law
	step func(k *Kernel, y, u []float64)
	// share: Step, TakeOver, freeMoving
	takeOver func(k, from *Kernel, u []float64) bool
}

// NewSequence returns a plant on tables t with changes in the order of their grid points. Each table
// must follow t.
func NewSequence(t *Tables, changes []Change) *Sequence {
	s := &Sequence{kernels: []*Kernel{New(t)}, step: (*Kernel).Step, takeOver: (*Kernel).TakeOver}
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
		if s.takeOver(s.kernels[s.next+1], s.kernels[s.active], u) {
			s.active = s.next + 1
		} else if s.reached-s.ticks[s.next] < MaxWait {
			break
		} else {
			s.refused |= 1 << s.next
		}
		s.next++
	}
	if s.offered != 0 {
		if s.takeOver(s.kernels[s.offered], s.kernels[s.active], u) {
			s.active, s.offered, s.obstacle = s.offered, 0, NoObstacle
		} else if s.reached-s.since >= MaxWait {
			s.obstacle, s.offered = s.kernels[s.offered].obstacle(s.kernels[s.active]), 0
		}
	}

	s.step(s.kernels[s.active], y, u)
	s.reached++
}

// UseSlots gives the sequence the kernels that Offer offers, by slot. It may replace kernels that are
// neither offered nor in use. Another process may write a kernel before it is offered, except its calls:
// its tables follow those of the sequence, and it is as New returns it.
func (s *Sequence) UseSlots(kernels []*Kernel) {
	for _, k := range kernels {
		k.calls = s.kernels[0].calls
	}
	s.kernels = append(s.kernels[:1+len(s.ticks)], kernels...)
}

// Offer makes the kernel in a slot take over at the next step at which it can, within MaxWait grid
// points; then it is refused. It discards an offer that is not decided yet.
//
//go:nosplit
func (s *Sequence) Offer(slot int) { s.offered, s.since = 1+len(s.ticks)+slot, s.reached }

// Offered reports whether the last offer waits. If it does not, obstacle is the Obstacle for which the
// offer was refused; NoObstacle: it is in effect.
//
//go:nosplit
func (s *Sequence) Offered() (waits bool, obstacle int) { return s.offered != 0, int(s.obstacle) }

// Obstacle returns what would keep k, whose tables follow those of the sequence, from taking over at the next
// step; NoObstacle: nothing.
func (s *Sequence) Obstacle(k *Kernel) Obstacle { return k.obstacle(s.kernels[s.active]) }

// Changes returns the number of changes decided so far, and those that were refused, as bits.
//
//go:nosplit
func (s *Sequence) Changes() (decided int, refused uint64) { return s.next, s.refused }

// Reset returns the plant to time 0 and its initial state before any change.
func (s *Sequence) Reset() {
	s.kernels[0].Reset()
	s.active, s.next, s.refused, s.reached, s.offered = 0, 0, 0, 0, 0
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
