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

// A kernel that takes over with the same tables continues the motion to the bit.
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
				one, now, spare := kernel.New(tables), kernel.New(tables), kernel.New(tables)
				random := rand.New(rand.NewPCG(1, 2))
				want, got := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Outputs))
				taken := 0
				for k := range 400 {
					if random.IntN(3) == 0 && spare.TakeOver(now, tables.Start) {
						now, spare, taken = spare, now, taken+1
					}
					one.Step(want, tables.Start)
					now.Step(got, tables.Start)
					for i := range want {
						if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
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

// The same holds where commands come, go, jump and ramp inside of the steps, with and without dead times.
// Changes that were announced before the change of tables act after it.
func TestKernelThatTakesOverKeepsItsCommands(t *testing.T) {
	for seed, name := range []string{"powershift", "automatic4", "hybrid", "coupled-clutches", "car-abs", "truck", "train3"} {
		for n, scheme := range []kernel.Scheme{kernel.Papers, kernel.Complete} {
			t.Run(fmt.Sprint(name, " ", scheme), func(t *testing.T) {
				sys := load(t, name)
				random := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
				m := len(sys.Inputs)
				opt := kernel.Options{Period: 5 * time.Millisecond, Scheme: scheme, Places: 3, Driven: make([]bool, m), Ramped: make([]bool, m)}
				for i := range m {
					opt.Driven[i], opt.Ramped[i] = random.IntN(2) == 0, random.IntN(2) == 0
					if n == 1 {
						sys.Inputs[i].Delay = []float64{0, 0.003, 0.0121}[random.IntN(3)]
					}
				}
				tables, err := kernel.Prepare(sys, opt)
				if err != nil {
					t.Fatal(err)
				}
				one, now, spare := kernel.New(tables), kernel.New(tables), kernel.New(tables)
				want, got, u := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Outputs)), make([]float64, m)
				copy(u, tables.Start)
				taken, changes := 0, 0
				for k := range 300 {
					for i := range u {
						value := tables.Start[i] * (1 + 0.2*random.NormFloat64())
						switch random.IntN(20) {
						case 0:
							u[i] = value
						case 1:
							on := random.IntN(2) == 0
							one.Drive(i, on)
							now.Drive(i, on)
						case 2:
							at, slope := 0.006*random.Float64(), 0.0
							if opt.Ramped[i] {
								slope = tables.Start[i] * random.NormFloat64()
							}
							one.Change(i, at, value, slope)
							now.Change(i, at, value, slope)
							changes++
						}
					}
					if random.IntN(3) == 0 && spare.TakeOver(now, u) {
						now, spare, taken = spare, now, taken+1
					}
					one.Step(want, u)
					now.Step(got, u)
					for i := range want {
						if math.Float64bits(want[i]) != math.Float64bits(got[i]) {
							t.Fatalf("tick %d after %d changes: %s is %.17g, want %.17g", k+1, taken, tables.Outputs[i].Name, got[i], want[i])
						}
					}
				}
				if taken < 30 || m > 0 && changes < 10 {
					t.Errorf("%d changes of tables and %d of commands in 300 ticks, want at least 30 and 10", taken, changes)
				}
			})
		}
	}
}
