package rt

import (
	"math"

	"lockstep/io/sigmap"
	"lockstep/rt/fault"
)

// MaxPlaces is how many instants inside of a step its inputs change at; of more the last counts.
const MaxPlaces = 4

// InputPlan says when the values of received frames act on the plant. The zero plan is the grid: a
// value acts from the start of the step in which its frame arrives.
type InputPlan struct {
	AtArrival bool    // a value acts from the arrival of its frame, inside of the step
	RampNs    []int64 // per input: length of the straight line to a new value, ns; 0: a jump; nil: all 0
}

// IsTimed reports whether inputs change inside of a step.
func (p *InputPlan) IsTimed() bool {
	if p.AtArrival {
		return true
	}
	for _, ns := range p.RampNs {
		if ns > 0 {
			return true
		}
	}
	return false
}

// Changer is a Plant whose inputs can change inside of a step; see kernel.Kernel.Change.
type Changer interface {
	Change(i int, at, value, slope float64)
}

// maxChanges bounds the received values that wait for their step. Beyond it, a new
// value replaces the waiting value of its input; an input without one acts as on the grid.
const maxChanges = 128

// Inputs turns the values of received frames into the inputs of the steps, as an InputPlan says. For a
// tick call, in this order: Receive for each valid frame, Advance, Set.DisturbInputs, Command, and
// Plant.Step. Instants are ns since grid point 0. The same calls have the same results: a replay makes
// them from a record.
type Inputs struct {
	Merged uint64 // instants beyond MaxPlaces in their step

	plan   InputPlan
	timed  []int         // inputs that change inside of a step: those that frames drive, or with a ramp
	of     [][][]int     // per bus and message: the inputs of timed that it drives
	lines  []inputLine   // per input
	step   int64         // period, ns
	plant  Changer       // of the steps
	queue  []inputChange // values that wait, by rising time
	u, end []float64     // inputs of a step at its start and at its end, without faults
	start  []float64     // inputs of a step at its start

	instant  [MaxPlaces]int64 // instants of changes in the step
	instants int              // instants in use
}

// inputLine is a command over time: value at the instant from, then value + slope·t until the
// instant end, from which on it is target.
type inputLine struct {
	from, end     int64
	value, target float64
	slope         float64 // per s
	seen          float64 // value of the last frame, or that replaced it
}

// inputChange is a value of an input from an instant on.
type inputChange struct {
	at    int64
	input int
	value float64
}

// NewInputs returns the inputs of a run that begin with start. plant is nil, or lacks Change, only if the plan
// is the grid.
func NewInputs(plan InputPlan, maps []*sigmap.Map, periodNs int64, start []float64, plant Changer) *Inputs {
	s := &Inputs{plan: plan, step: periodNs, plant: plant}
	if !plan.IsTimed() {
		return s
	}
	m := len(start)
	s.lines, s.u, s.end, s.start = make([]inputLine, m), make([]float64, m), make([]float64, m), make([]float64, m)
	s.queue = make([]inputChange, 0, maxChanges)
	driven := make([]bool, m)
	for _, mp := range maps {
		list := make([][]int, len(mp.Rx))
		for i := range mp.Rx {
			for _, f := range mp.Rx[i].Fields {
				if plan.AtArrival || plan.RampNs[f.Index] > 0 {
					list[i] = append(list[i], f.Index)
					driven[f.Index] = true
				}
			}
		}
		s.of = append(s.of, list)
	}
	for i, v := range start {
		s.lines[i] = inputLine{value: v, target: v, seen: v}
		if driven[i] {
			s.timed = append(s.timed, i)
		}
	}
	return s
}

// IsTimed reports whether inputs change inside of a step.
//
//go:nosplit
func (s *Inputs) IsTimed() bool { return s.timed != nil }

// OnGrid is the instant of a value that acts from the start of the next step, because its frame has no
// known arrival.
const OnGrid = 0

// Receive notes the values in u of a valid frame of message i on bus b that acts from an instant on.
//
//go:nosplit
func (s *Inputs) Receive(b, i int, at int64, u []float64) {
	if s.timed == nil {
		return
	}
	if !s.plan.AtArrival {
		at = OnGrid
	}
	for _, j := range s.of[b][i] {
		if l := &s.lines[j]; s.ramp(j) > 0 || !sameBits(u[j], l.seen) {
			if s.enqueue(at, j, u[j]) {
				l.seen = u[j]
			}
		}
	}
}

// ramp returns the length of the ramp of input j, ns.
//
//go:nosplit
func (s *Inputs) ramp(j int) int64 {
	if s.plan.RampNs == nil {
		return 0
	}
	return s.plan.RampNs[j]
}

//go:nosplit
func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// enqueue adds a value to the queue; false: it is full.
//
//go:nosplit
func (s *Inputs) enqueue(at int64, input int, value float64) bool {
	n := len(s.queue)
	if n == maxChanges {
		for i := n - 1; i >= 0; i-- {
			if c := &s.queue[i]; c.input == input {
				c.value = value
				return true
			}
		}
		return false
	}

	s.queue = s.queue[:n+1]
	for ; n > 0 && s.queue[n-1].at > at; n-- {
		s.queue[n] = s.queue[n-1]
	}
	s.queue[n] = inputChange{at, input, value}
	return true
}

// Advance begins the step to grid point k and announces its changes to the plant, for inputs that no
// fault, stimulus or live value in set overrides. u are the values that frames and their reactions have
// brought; a value that no frame has brought acts from the start of the step. It returns the inputs at
// the end of the step, on the grid u itself, valid until the next call.
//
//go:nosplit
func (s *Inputs) Advance(k int64, u []float64, set *fault.Set) []float64 {
	if s.timed == nil {
		return u
	}
	from := (k - 1) * s.step
	to := from + s.step
	s.instants = 0
	for _, j := range s.timed {
		if !sameBits(u[j], s.lines[j].seen) {
			s.replace(j, from, u[j])
		}
	}

	n := 0
	for n < len(s.queue) && s.queue[n].at <= from {
		s.apply(&s.queue[n], from)
		n++
	}
	for _, j := range s.timed {
		l := &s.lines[j]
		s.u[j] = l.at(from)
		switch {
		case l.end <= from:
			l.slope = 0
		case l.slope != 0:
			s.announce(j, from, from, set)
		}
	}

	for n < len(s.queue) && s.queue[n].at < to {
		c := &s.queue[n]
		s.announceEnd(c.input, from, c.at, set)
		s.apply(c, c.at)
		s.announce(c.input, from, c.at, set)
		n++
	}
	s.queue = s.queue[:copy(s.queue, s.queue[n:])]

	copy(s.end, u)
	for _, j := range s.timed {
		s.announceEnd(j, from, to, set)
		s.end[j] = s.lines[j].at(to)
	}
	return s.end
}

// Command returns the inputs at the start of the step that Advance has begun. disturbed are those at its
// end, after Set.DisturbInputs. An input that is overridden has its value of the end for the whole step.
//
//go:nosplit
func (s *Inputs) Command(disturbed []float64, set *fault.Set) []float64 {
	if s.timed == nil {
		return disturbed
	}
	copy(s.start, disturbed)
	for _, j := range s.timed {
		if !set.Overrides(j) {
			s.start[j] = s.u[j]
		}
	}
	return s.start
}

// at returns the value of a line at an instant.
//
//go:nosplit
func (l *inputLine) at(t int64) float64 {
	if l.slope == 0 || t >= l.end {
		return l.target
	}
	return l.value + float64(l.slope*float64(float64(t-l.from)*1e-9))
}

// replace sets input j to a value from an instant on, without a ramp.
//
//go:nosplit
func (s *Inputs) replace(j int, from int64, value float64) {
	l := &s.lines[j]
	l.from, l.end, l.value, l.target, l.slope, l.seen = from, from, value, value, 0, value
	n := 0
	for i := range s.queue {
		if s.queue[i].input != j {
			s.queue[n] = s.queue[i]
			n++
		}
	}
	s.queue = s.queue[:n]
}

// apply begins the line to a received value.
//
//go:nosplit
func (s *Inputs) apply(c *inputChange, at int64) {
	l, ramp := &s.lines[c.input], s.ramp(c.input)
	value := l.at(at)
	l.from, l.end, l.value, l.target, l.slope = at, at, c.value, c.value, 0
	if ramp > 0 && value != c.value {
		l.end, l.value, l.slope = at+ramp, value, (c.value-value)/float64(float64(ramp)*1e-9)
	}
}

// announceEnd announces the end of a ramp of input j before an instant.
//
//go:nosplit
func (s *Inputs) announceEnd(j int, from, before int64, set *fault.Set) {
	if l := &s.lines[j]; l.slope != 0 && l.end < before {
		l.from, l.value, l.slope = l.end, l.target, 0
		s.announce(j, from, l.from, set)
	}
}

// announce announces to the plant that input j follows its line from an instant on, in the step that
// begins at from.
//
//go:nosplit
func (s *Inputs) announce(j int, from, at int64, set *fault.Set) {
	if set.Overrides(j) {
		return
	}
	l, seen := &s.lines[j], at == from
	for i := range s.instants {
		seen = seen || s.instant[i] == at
	}
	switch {
	case seen:
	case s.instants < MaxPlaces:
		s.instant[s.instants] = at
		s.instants++
	default:
		s.Merged++
	}
	s.plant.Change(j, float64(float64(at-from)*1e-9), l.at(at), l.slope)
}
