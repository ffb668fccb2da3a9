package check

import (
	"slices"
	"testing"

	"lockstep/rt/bench"
)

func TestEveryTickOfTheExercisesHasOneLockSet(t *testing.T) {
	b, err := bench.Load("powershift-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	w, err := MeasureWorstTick(h, nil)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for _, e := range w.Exercises {
		ticks += e.Ticks
	}
	for name, groups := range map[string][]LockCost{"classes": w.Classes, "sets": w.Sets} {
		sum, worst, sets := 0, int64(0), 0
		for _, g := range groups {
			sum, worst, sets = sum+g.Ticks, max(worst, g.WorstNs), sets+g.Sets
			if !(g.P50 > 0 && g.P50 <= g.WorstNs) || g.Under == "" || !(g.Share > 0 && g.Share <= w.Share) {
				t.Errorf("%s: %+v", name, g)
			}
			if g.Locked != nil && len(g.Locked) != g.Held {
				t.Errorf("%s: %d elements are locked, %q are named", name, g.Held, g.Locked)
			}
		}
		if sum != ticks || worst != w.WorstNs || sets != len(w.Sets) {
			t.Errorf("%s: %d ticks of %d sets, worst %d ns; want %d of %d, %d ns", name, sum, sets, worst, ticks, len(w.Sets), w.WorstNs)
		}
	}
	if w.More != 0 || len(w.Sets) < 100 || len(w.Elements) != 8 || w.Under == "" {
		t.Errorf("%d lock sets of 8 clutches, %d more, worst under %q", len(w.Sets), w.More, w.Under)
	}
	if !slices.IsSortedFunc(w.Sets, func(a, b LockCost) int { return int(b.WorstNs - a.WorstNs) }) {
		t.Error("the worst lock set is not the first")
	}
}
