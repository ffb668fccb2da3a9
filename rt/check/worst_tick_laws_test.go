package check

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/rt/bench"
)

// At rest the laws of tyres and valves are nothing but rounding, and all of them begin to grow at once.
func TestLawsOfTheCarInThePlaneConvergeInEveryExercise(t *testing.T) {
	b, err := bench.Load("esc-bench")
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newCheckedBench(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		tables, err := kernel.Prepare(p.sys, kernel.Options{Period: period})
		if err != nil {
			t.Fatal(err)
		}
		list, err := (&checkedPlant{sys: p.sys, tables: tables}).exercises(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if e.prepareTick == nil {
				continue
			}
			ticks := 200
			if e == list[len(list)-1] { // from rest
				ticks = 4000
			}
			k, random := kernel.New(e.tables), rand.New(rand.NewPCG(1, 2))
			u, y := slices.Clone(e.tables.Start), make([]float64, len(e.tables.Outputs))
			for i := range ticks {
				e.prepareTick(k, u, i, random)
				k.Step(y, u)
			}
			if n := k.Unconverged(); n != 0 {
				t.Errorf("%v, %s: laws do not converge in %d substeps of %d ticks", period, e.Name, n, ticks)
			}
		}
	}
}
