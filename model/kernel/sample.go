package kernel

import (
	"fmt"
	"math"

	"lockstep/model"
)

// A sample sets a state at the start of a tick, from the inputs of the tick and the states. Between ticks the
// plant moves as any other: a held state has the rate 0. A delay keeps the values of the last ticks in a ring.
// While the plant owes time, a sample reads its state at the plant time.

// Sample is a model.Sample on the grid.
type Sample struct {
	State   int
	Value   model.Program
	Every   int64 // ticks between two samples, >= 1
	Initial bool
	Refresh bool

	Ring  int     // first entry in Kernel.delayed
	Back  int64   // ticks, the delay rounded up, and the entries of the ring; 0: no delay
	Ahead float64 // ticks by which Back exceeds the delay, 0 to 1
	Rate  int     // of a delay: state that is the rate of State
}

// gridTol is the part of a tick by which a time may miss the grid.
const gridTol = 1e-6

// maxDelayed is the largest number of values that all delays keep: a change of tables copies them in a tick.
const maxDelayed = 65536

// bindSamples puts the samples on the grid.
func bindSamples(t *Tables, sys *model.System) {
	h := float64(t.PeriodNs) * 1e-9
	for _, s := range sys.Samples {
		out := Sample{State: s.State, Value: s.Value, Every: max(1, int64(math.Round(s.Period/h))), Initial: s.Initial,
			Refresh: s.Refresh, Ring: t.delayedValues(), Rate: s.Rate}
		if s.Period > 0 && !(math.Abs(s.Period/h-float64(out.Every)) < gridTol) {
			panic(refusal{s.Place, fmt.Errorf("element %q: samplePeriod %.9g s is not a multiple of the step %.9g s",
				s.Name, s.Period, h)})
		}
		if s.Delay > 0 {
			ticks := s.Delay / h
			if !(ticks > 1-gridTol) {
				panic(refusal{s.Place, fmt.Errorf("element %q: a delay of %.9g s is shorter than the step %.9g s", s.Name, s.Delay, h)})
			}
			if !(ticks <= float64(maxDelayed-t.delayedValues())) {
				panic(refusal{s.Place, fmt.Errorf("element %q: a delay of %.9g s: all delays together keep more than %d values, "+
					"one for each step of %.9g s; take a longer step", s.Name, s.Delay, maxDelayed, h)})
			}
			if whole := math.Round(ticks); math.Abs(ticks-whole) < gridTol {
				ticks = whole
			}
			out.Back = int64(math.Ceil(ticks))
			out.Ahead = float64(out.Back) - ticks
		}
		t.Samples = append(t.Samples, out)
	}
}

// delayedValues returns the number of entries of all rings.
func (t *Tables) delayedValues() (n int) {
	for i := range t.Samples {
		n += int(t.Samples[i].Back)
	}
	return n
}

// sample sets the states of the samples due at this tick; with start the initial states instead.
//
//go:nosplit
func (k *Kernel) sample(start bool) {
	copy(k.sidesKept, k.side)
	k.setSignalsNow(k.x)
	k.followSides()
	for i := range k.t.Samples {
		s := &k.t.Samples[i]
		if start && !s.Initial || !start && k.tick%s.Every != 0 {
			continue
		}
		if s.Refresh {
			k.evaluateLaws(k.w[:k.t.M], k.x)
			k.followSides()
		}
		v := k.evaluateProgram(k.indicatorProgram(len(k.t.Indicators)+i), k.x, k.w[:k.t.M])
		if s.Back > 0 && !start {
			k.delay(s, v)
		} else {
			k.x[s.State] = v
		}
	}
	copy(k.side, k.sidesKept)
}

// followSides evaluates the laws on the sides that their values have, in k.w: an input may have changed at the
// tick. The substep that follows locates the event of a change.
//
//go:nosplit
func (k *Kernel) followSides() {
	for range k.side { // the side of one law may follow from another
		if !k.calls.updateSides(k, k.x, k.w[:k.t.M]) {
			return
		}
		k.evaluateLaws(k.w[:k.t.M], k.x)
	}
}

// delay stores the value of this tick and sets the rate by which the state has the delayed value at the next tick.
//
//go:nosplit
func (k *Kernel) delay(s *Sample, v float64) {
	k.delayed[s.Ring+int(k.tick%s.Back)] = v
	from := k.tick + 1 - s.Back
	a := k.delayed[s.Ring+int(max(from, 0)%s.Back)]
	b := k.delayed[s.Ring+int(min(max(from+1, 0), k.tick)%s.Back)]
	k.x[s.Rate] = (a + float64(s.Ahead*(b-a)) - k.x[s.State]) / (k.h + k.lag)
}
