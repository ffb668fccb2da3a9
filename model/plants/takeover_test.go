package plants_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/plants"
)

// A kernel that takes over with the same tables continues the motion: to the bit in most plants, and
// truck within the tolerance of its laws, which are iterated anew.
func TestKernelThatTakesOverWithoutAChangeContinuesTheMotion(t *testing.T) {
	for _, e := range plants.List() {
		if e.Kind != "plant" || e.Name == "train20" { // train3 is stepped sparse, too
			continue
		}
		sys := load(t, e.Name)
		for _, scheme := range []kernel.Scheme{kernel.Papers, kernel.Complete} {
			t.Run(fmt.Sprint(e.Name, " ", scheme), func(t *testing.T) {
				tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Scheme: scheme})
				if err != nil {
					t.Fatal(err)
				}
				exact := e.Name != "truck"
				one, now, spare := kernel.New(tables), kernel.New(tables), kernel.New(tables)
				random := rand.New(rand.NewPCG(1, 2))
				want, got := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Outputs))
				largest, taken := make([]float64, len(want)), 0
				for k := range 400 {
					if random.IntN(3) == 0 && spare.TakeOver(now) {
						now, spare, taken = spare, now, taken+1
					}
					one.Step(want, tables.Start)
					now.Step(got, tables.Start)
					for i := range want {
						largest[i] = max(largest[i], math.Abs(want[i]))
						same := math.Float64bits(want[i]) == math.Float64bits(got[i])
						near := math.Abs(want[i]-got[i]) <= 1e-10*(1+largest[i]) || tables.Outputs[i].Name == "events"
						if !same && (exact || !near) {
							t.Fatalf("tick %d after %d changes: %s is %.17g, want %.17g", k+1, taken, tables.Outputs[i].Name, got[i], want[i])
						}
					}
				}
				if taken < 50 {
					t.Errorf("%d changes in 400 ticks, want at least 50", taken)
				}
			})
		}
	}
}
