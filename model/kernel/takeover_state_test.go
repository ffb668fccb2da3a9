package kernel

import (
	"math"
	"slices"
	"testing"

	"lockstep/model"
)

// A plant follows another one only if every part of its form agrees.
func TestTablesThatDifferInOneRespectDoNotFollow(t *testing.T) {
	sys := brake(1, always(3), always(1)).system()
	sys.Inputs[0].Delay = 0.02
	table := start(t, sys, Options{Period: period(0.01), Places: 2, Driven: []bool{true, true}, Ramped: []bool{true, false}}).t
	if err := table.Follows(table); err != nil {
		t.Fatal(err)
	}
	flip := func(list []bool) []bool {
		list = slices.Clone(list)
		list[0] = !list[0]
		return list
	}
	for name, change := range map[string]func(o *Tables){
		"partition":   func(o *Tables) { o.Partition = &Partition{} },
		"states":      func(o *Tables) { o.StateName = append(slices.Clone(o.StateName), "x") },
		"frictions":   func(o *Tables) { o.Frictions = []string{"another"} },
		"switches":    func(o *Tables) { o.Switches = append(slices.Clone(o.Switches), Switch{}) },
		"inputs":      func(o *Tables) { o.Inputs = slices.Clone(o.Inputs[:1]) },
		"outputs":     func(o *Tables) { o.Outputs = slices.Clone(o.Outputs[1:]) },
		"period":      func(o *Tables) { o.PeriodNs++ },
		"scheme":      func(o *Tables) { o.Scheme = Papers },
		"form":        func(o *Tables) { o.Form = Held },
		"sparse":      func(o *Tables) { o.Sparse = &SparseTables{} },
		"places":      func(o *Tables) { o.Places++ },
		"signals":     func(o *Tables) { o.M++ },
		"affine":      func(o *Tables) { o.FirstAffine++ },
		"laws":        func(o *Tables) { o.FirstLaw++ },
		"history":     func(o *Tables) { o.History++ },
		"indicators":  func(o *Tables) { o.Indicators = slices.Grow(o.Indicators, 1)[:len(o.Indicators)+1] },
		"sensors":     func(o *Tables) { o.Pulses = append(slices.Clone(o.Pulses), model.Pulses{}) },
		"input lines": func(o *Tables) { o.InputSignal = slices.Clone(o.InputSignal[:1]) },
		"dead times":  func(o *Tables) { o.Delay = slices.Repeat([]float64{0.01}, len(o.Delay)) },
		"ramps":       func(o *Tables) { o.Ramped = flip(o.Ramped) },
	} {
		other := *table
		change(&other)
		if other.Follows(table) == nil || table.Follows(&other) == nil {
			t.Errorf("tables with other %s follow", name)
		}
	}
}

// A count that a prediction has published is not taken back by a change of tables, which meets the plant
// on the grid.
func TestPublishedCountIsNotTakenBackByAChange(t *testing.T) {
	r := rig{J: []float64{1}, X0: []float64{10}}
	one := start(t, r.sensed(model.Pulses{Teeth: 48}), Options{Period: period(0.005)})
	for range 100 {
		one.step()
	}
	count, _, _ := one.gives(0)
	one.publishedCount[0]++ // as a prediction leaves it whose edge the motion has not passed
	next := New(one.t)
	if !next.TakeOver(one.Kernel, one.u) {
		t.Fatal("refused")
	}
	one.Kernel = next
	if one.Output(one.y); count == 0 || one.y[one.t.Pulses[0].Output] != count+1 {
		t.Errorf("%g edges after the change, want the %g that were published", one.y[one.t.Pulses[0].Output], count+1)
	}
}

// The events of the step before a change are not those of the step after it.
func TestEventsBeforeAChangeAreNotThoseOfTheStepAfterIt(t *testing.T) {
	one := start(t, brake(1, always(3), always(0)).system(), Options{Period: period(0.01)})
	for len(one.Events()) == 0 { // until the brake has locked
		one.step()
	}
	next := New(one.t)
	if !next.TakeOver(one.Kernel, one.u) {
		t.Fatal("refused")
	}
	one.Kernel = next
	if one.step(); len(one.Events()) != 0 {
		t.Errorf("events %v in a step without any", one.Events())
	}
}

// Inputs that are not finite stop a plant at the step of a change as at any other, and the change does not
// act on the rest of the inputs.
func TestInputsThatAreNotFiniteStopThePlantAtAChange(t *testing.T) {
	sys := rig{
		J: []float64{1, 2}, X0: []float64{3, 1},
		Frictions: []contact{{W: []float64{1, 0}, K: always(0)}, {W: []float64{0, 1}, K: always(0)}},
	}.system()
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		for _, places := range []int{0, 3} {
			opt := Options{Period: period(0.01), Driven: []bool{true, true}, Places: places}
			one, several := start(t, sys, opt), start(t, sys, opt)
			one.step()
			several.step()
			copy(one.u, []float64{5, bad})
			copy(several.u, one.u)
			next := New(several.t)
			if !next.TakeOver(several.Kernel, several.u) {
				t.Fatal("refused")
			}
			several.Kernel = next
			one.step()
			several.step()
			if one.faultOut() != 2 {
				t.Errorf("%g: fault %g, want that of the second state", bad, one.faultOut())
			}
			for i, want := range one.y {
				if math.Float64bits(several.y[i]) != math.Float64bits(want) {
					t.Errorf("%g, %d places: output %d is %g after a change, %g without", bad, places, i, several.y[i], want)
				}
			}
		}
	}
}

// A capacity jumps at a grid point that is late in a run: the rounding of the instants is above the smallest
// tolerance of time. The capacity after the jump holds the load with the new gain, that before it would not.
func TestChangeAtAJumpLateInARunTakesTheValueAfterIt(t *testing.T) {
	const h, at = 0.001, 100_000_003
	jump := math.Nextafter(float64(at)*h, math.Inf(1)) // one rounding late
	r := brake(0, table(0, 5, jump, 5, jump, 50), always(2))
	one := start(t, r.system(), Options{Period: period(h)})
	one.tick = at - 1
	if one.step(); one.modeOf(0) != Stuck {
		t.Fatalf("mode %d before the change, want a lock", one.modeOf(0))
	}
	r.Frictions[0].Gain = 0.2
	next := start(t, r.system(), Options{Period: period(h)})
	if !next.TakeOver(one.Kernel, one.u) {
		t.Fatal("refused")
	}
	if next.step(); next.modeOf(0) != Stuck || next.transOut() != one.transOut() {
		t.Errorf("mode %d, %g transitions after the change, %g before it; want the lock", next.modeOf(0), next.transOut(), one.transOut())
	}
}
