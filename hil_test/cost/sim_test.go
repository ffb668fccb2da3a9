package cost

import (
	"math"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
	"lockstep/rt/virtual"
)

// simBound is the time of a tick of sim that writes nothing over that of the table kernel alone. Most ticks
// of powershift are quiet: two readings of the clock and the counters cost as much as its kernel.
var simBound = map[string]float64{"coupled-clutches": 2, "powershift": 3}

// Both run the same ticks with the plant's own waveforms, one after the other, many times; the
// fastest of each counts. A short simulation is subtracted: it is the time to load the plant.
func TestSimThatWritesNothingCostsLittleMoreThanItsKernel(t *testing.T) {
	lab.RequireLong(t, "measures")
	const (
		period = 5 * time.Millisecond
		ticks  = 100_000
		tries  = 6
	)
	simulate := func(plant string, n int) float64 {
		began := time.Now()
		if _, err := (virtual.Simulation{Plant: plant, For: time.Duration(n) * period, Step: period, Every: 1}).Run(); err != nil {
			t.Fatal(err)
		}
		return float64(time.Since(began).Nanoseconds())
	}
	for plant, bound := range simBound {
		r := rig.Prepare(t, plant, kernel.Options{Period: period}, false)
		load, whole, alone := math.Inf(1), math.Inf(1), math.Inf(1)
		for range tries {
			load = min(load, simulate(plant, 1))
			whole = min(whole, simulate(plant, 1+ticks))
			alone = min(alone, r.RunCost(ticks, 1, nil))
		}
		tick := (whole - load) / ticks
		t.Logf("%s: a tick of sim takes %.0f ns, of the kernel %.0f ns: ratio %.2f", plant, tick, alone, tick/alone)
		if !(tick <= bound*alone) {
			t.Errorf("%s: a tick of sim takes %.2f times the time of its kernel, want at most %g", plant, tick/alone, bound)
		}
	}
}
