package kernel_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"lockstep/model/kernel"
)

// namedCase is a plant with an event that solvers often get wrong. want are the transitions that it
// must have, from closed forms.
type namedCase struct {
	name    string
	text    string
	seconds float64
	changes func(period float64) []change
	want    []refEvent
	never   []refEvent // transitions that must not happen; t is ignored
}

func TestNamedCasesAgreeWithTheReference(t *testing.T) {
	for _, c := range slices.Concat(breakCases(), splitCases(), freewheelCases(), capacityCases()) {
		for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
			for _, scheme := range []kernel.Scheme{kernel.Complete, kernel.Papers} {
				for memory, stepping := range []kernel.Stepping{"", "", kernel.Sparse} {
					t.Run(fmt.Sprintf("%s/%v/%s/%d", c.name, period, scheme, memory), func(t *testing.T) {
						c.run(t, period, kernel.Options{Scheme: scheme, Memory: memory, Stepping: stepping})
					})
				}
			}
		}
	}
}

func (c *namedCase) run(t *testing.T, period time.Duration, opt kernel.Options) {
	s := scenario{text: "plant: case\n" + c.text, period: period, options: opt,
		ticks: int(math.Round(c.seconds / period.Seconds()))}
	if c.changes != nil {
		s.changes = c.changes(period.Seconds())
	}
	var all tally
	w := s.play(t, &all)
	if all.cut > 0 {
		t.Errorf("on a knife's edge at %g s", w.ref.knife)
	}
	for _, e := range c.want {
		if !happens(w.log, e, 1e-8) {
			t.Errorf("no transition of friction %d from %d to %d at %.9g s in %v", e.friction, e.from, e.to, e.t, w.log)
		}
	}
	for _, e := range c.never {
		if happens(w.log, e, math.Inf(1)) {
			t.Errorf("friction %d went from %d to %d in %v", e.friction, e.from, e.to, w.log)
		}
	}
}

func happens(log []kernel.Event, e refEvent, within float64) bool {
	for _, l := range log {
		if l.Friction == e.friction && l.From == e.from && l.To == e.to && math.Abs(l.Time-e.t) <= within {
			return true
		}
	}
	return false
}

func breakCases() []namedCase {
	return []namedCase{
		{
			// A load of 6 N·m on J3 hangs through three locked clutches on the brake.
			// Their capacities fall through it at 21, 22.5 and 23.5 ms, the outer one
			// last: one step of 5 or 10 ms contains all three. A slipping clutch does not lock
			// again, as everything outside falls faster.
			name: "three clutches break in a cascade",
			text: `elements:
  J0: {type: inertia, J: 1}
  J1: {type: inertia, J: 1}
  J2: {type: inertia, J: 1}
  J3: {type: inertia, J: 1}
  b: {type: brake, flange: J0, mu: 1, cgeo: 1, fn: 100}
  c1: {type: clutch, a: J0, b: J1, mu: 1, cgeo: 1, fn: {table: [[0.02, 12], [0.022, 0]]}}
  c2: {type: clutch, a: J1, b: J2, mu: 1, cgeo: 1, fn: {table: [[0.02, 30], [0.0225, 0]]}}
  c3: {type: clutch, a: J2, b: J3, mu: 1, cgeo: 1, fn: {table: [[0.02, 60], [0.0235, 0]]}}
  load: {type: torque, flange: J3, tau: 6}
`,
			seconds: 0.1,
			want:    []refEvent{{0.021, 1, stuck, forward}},
		},
		{
			// J·Δω/τ: the slips of 10 rad/s close with 5/1 + (5+5)/2 = 10 rad/s².
			name: "two clutches lock at one instant",
			text: `elements:
  J0: {type: inertia, J: 2}
  J1: {type: inertia, J: 1, w_start: 10}
  J2: {type: inertia, J: 1, w_start: 10}
  c1: {type: clutch, a: J0, b: J1, mu: 1, cgeo: 1, fn: 5}
  c2: {type: clutch, a: J0, b: J2, mu: 1, cgeo: 1, fn: 5}
`,
			seconds: 1.1,
			want:    []refEvent{{1, 0, forward, stuck}, {1, 1, forward, stuck}},
		},
	}
}

func splitCases() []namedCase {
	return []namedCase{
		{
			// Of 9 and 2 N·m the split of smallest norm gives each half the load and
			// overloads the second from 4 N·m on; Morselli, eq. 18 would let it slip only
			// where no split holds: from 11 N·m on, at 0.11 s.
			name: "redundant locks hold while an admissible split exists",
			text: `elements:
  J: {type: inertia, J: 1}
  b1: {type: brake, flange: J, mu: 1, cgeo: 1, fn: 9}
  b2: {type: brake, flange: J, mu: 1, cgeo: 1, fn: 2}
  load: {type: torque, flange: J, tau: {table: [[0, 0], [0.2, 20]]}}
`,
			seconds: 0.15,
			want:    []refEvent{{0.11, 0, stuck, forward}, {0.11, 1, stuck, forward}},
		},
		{
			// The same around a loop with a gear: three clutches on two shafts.
			name: "a loop of locks holds 10 N·m with 9 and 2",
			text: `elements:
  A: {type: inertia, J: 1}
  B: {type: inertia, J: 0.5}
  g: {type: ideal_gear, a: A, b: wheel, ratio: 1}
  b1: {type: brake, flange: B, mu: 1, cgeo: 1, fn: 9}
  b2: {type: brake, flange: A, mu: 1, cgeo: 1, fn: 2}
  c: {type: clutch, a: wheel, b: B, mu: 1, cgeo: 1, fn: 20}
  load: {type: torque, flange: A, tau: {table: [[0, 0], [0.01, 10]]}}
`,
			seconds: 0.1,
			never:   []refEvent{{0, 0, stuck, forward}, {0, 1, stuck, forward}, {0, 2, stuck, forward}, {0, 2, stuck, backward}},
		},
		{
			// Two brakes more than needed on one shaft, one brake and a clutch that
			// begins to bite on the other: there load and capacities meet at
			// 0.1 + 140·(t - 0.044) + 0.105 = 0.5 + 25·(t - 0.044), t = 46.565 ms.
			// Found by the random plants: one of the two stayed stuck without a load.
			name: "redundant locks on one shaft, two that break together on the other",
			text: `elements:
  J0: {type: inertia, J: 0.1}
  J1: {type: inertia, J: 0.1}
  J2: {type: inertia, J: 0.1}
  f1: {type: clutch, a: J0, b: J1, mu: 1, cgeo: 1, fn: {table: [[0.034, -0.5], [0.044, 0], [0.054, 0.25]]}}
  f2: {type: clutch, a: J1, b: J2, mu: 1, cgeo: 1, fn: 0.2015}
  f3: {type: brake, flange: J0, mu: 1, cgeo: 1, fn: 0.2}
  f4: {type: brake, flange: J0, mu: 1, cgeo: 1, fn: 0.2028}
  f5: {type: brake, flange: J0, mu: 1, cgeo: 1, fn: 0.2035}
  f6: {type: brake, flange: J1, mu: 1, cgeo: 1, fn: 0.5}
  t1: {type: torque, flange: J1, tau: {table: [[0.044, 0.1], [0.049, 0.8]]}}
  t2: {type: torque, flange: J2, tau: 0.105}
`,
			seconds: 0.06,
			want:    []refEvent{{0.044 + 0.295/115, 0, stuck, forward}, {0.044 + 0.295/115, 5, stuck, forward}},
		},
	}
}

func freewheelCases() []namedCase {
	return []namedCase{
		{
			// The freewheel carries 4 N·m, overruns from 0.1 s on when the load pulls,
			// the clutch closes at 0.2 s and holds both ways.
			name: "freewheel parallel to a clutch",
			text: `inputs:
  c1: {unit: N, min: 0, max: 100}
elements:
  J0: {type: inertia, J: 1}
  J1: {type: inertia, J: 0.7}
  f: {type: freewheel, a: J0, b: J1}
  c: {type: clutch, a: J0, b: J1, mu: 1, cgeo: 1, fn: c1}
  drive: {type: torque, flange: J0, tau: {table: [[0, 4], [0.1, 4], [0.1, -3], [0.3, -3], [0.35, 5]]}}
  load: {type: torque, flange: J1, tau: {table: [[0, 0], [0.25, 0], [0.3, 6]]}}
`,
			seconds: 0.6,
			changes: func(period float64) []change {
				at := func(t float64) int { return int(math.Round(t / period)) }
				return []change{{at(0.2), 0, 8}, {at(0.5), 0, 1.5}}
			},
			want:  []refEvent{{0.1, 0, stuck, forward}, {0.2, 1, free, forward}},
			never: []refEvent{{0, 0, stuck, backward}, {0, 0, forward, backward}},
		},
		{
			// The smallest torque releases a freewheel on its own.
			name: "freewheel lets go when the torque turns",
			text: `elements:
  J0: {type: inertia, J: 1}
  J1: {type: inertia, J: 1}
  f: {type: freewheel, a: J0, b: J1}
  load: {type: torque, flange: J1, tau: {table: [[0, -5], [0.1, 5], [0.2, -5]]}}
`,
			seconds: 0.4,
			want:    []refEvent{{0.05, 0, stuck, forward}},
		},
	}
}

func capacityCases() []namedCase {
	return []namedCase{
		{
			// 10 N·m at 10 ms fall to 0 at 20 ms through the load of 5: at 15 ms.
			name: "a capacity falls through the load",
			text: `elements:
  J: {type: inertia, J: 0.5}
  b: {type: brake, flange: J, mu: 1, cgeo: 1, fn: {table: [[0.01, 10], [0.02, 0]]}}
  load: {type: torque, flange: J, tau: 5}
`,
			seconds: 0.06,
			want:    []refEvent{{0.015, 0, stuck, forward}, {0.02, 0, forward, free}},
		},
		{
			// As before with peak 1.25: 12.5·(1 - (t - 10 ms)/10 ms) = 5 at 16 ms.
			name: "a capacity with a peak falls through the load",
			text: `elements:
  J: {type: inertia, J: 0.5}
  b: {type: brake, flange: J, mu: 1, cgeo: 1, peak: 1.25, fn: {table: [[0.01, 10], [0.02, 0]]}}
  load: {type: torque, flange: J, tau: 5}
`,
			seconds: 0.06,
			want:    []refEvent{{0.016, 0, stuck, forward}},
		},
		{
			// The capacity of b begins to grow at 12.3 ms from 0 under a load: it slips
			// at once. The capacity of c grows without motion or load: it sticks.
			name: "engagement from zero capacity",
			text: `elements:
  J: {type: inertia, J: 0.5}
  K: {type: inertia, J: 0.5}
  b: {type: brake, flange: J, mu: 1, cgeo: 1, fn: {table: [[0.0123, 0], [0.03, 20]]}}
  c: {type: brake, flange: K, mu: 1, cgeo: 1, fn: {table: [[0.0123, 0], [0.03, 20]]}}
  load: {type: torque, flange: J, tau: 5}
`,
			seconds: 0.1,
			want:    []refEvent{{0.0123, 0, free, forward}, {0.0123, 1, free, stuck}},
		},
		{
			// The spring pulls J back and forth through zero slip under a brake too weak
			// to hold it, until it does.
			name: "an oscillation dies in a brake",
			text: `elements:
  ground: {type: fixed}
  J: {type: inertia, J: 0.01, w_start: 10}
  s: {type: spring, a: ground, b: J, c: 100}
  b: {type: brake, flange: J, mu: 1, cgeo: 1, fn: 0.7}
`,
			seconds: 0.5,
		},
	}
}
