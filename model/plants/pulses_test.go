package plants_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
	"lockstep/model/kernel"
	"lockstep/model/plants"
	"lockstep/model/units"
)

// A sensor only looks: with one on every state the other outputs of each embedded plant,
// laws, tyres and impacts among them, have the same bits.
func TestSensorsChangeNoPlant(t *testing.T) {
	for _, e := range plants.List() {
		if e.Kind != "plant" {
			continue
		}
		for _, scheme := range []kernel.Scheme{kernel.Complete, kernel.Papers} {
			sys := load(t, e.Name)
			with := *sys
			p, n := len(sys.Outputs), len(sys.X0)
			for i := range n {
				with.Pulses = append(with.Pulses, model.Pulses{Output: p + 3*i, State: i, Teeth: 48, Runout: 0.2})
			}
			with.Outputs = append(slices.Clone(sys.Outputs), make([]units.Port, 3*n)...)
			with.C = append(slices.Clone(sys.C), make([]float64, 3*n*n)...)
			with.D = append(slices.Clone(sys.D), make([]float64, 3*n*len(sys.Signals))...)
			with.Dc = append(slices.Clone(sys.Dc), make([]float64, 3*n*len(sys.Frictions))...)
			step := func(sys *model.System) (func() []float64, *kernel.Kernel) {
				tables, err := kernel.Prepare(sys, kernel.Options{Period: 5 * time.Millisecond, Scheme: scheme})
				if err != nil {
					t.Fatal(err)
				}
				k := kernel.New(tables)
				m, p := k.Dims()
				u, y := make([]float64, m), make([]float64, p)
				copy(u, tables.Start)
				return func() []float64 { k.Step(y, u); return y }, k
			}
			one, _ := step(sys)
			other, _ := step(&with)
			edges := 0.0
			for tick := range 300 {
				y, got := one(), other()
				rest := slices.Concat(got[:p], got[p+3*n:])
				for i, v := range y {
					if math.Float64bits(v) != math.Float64bits(rest[i]) {
						t.Fatalf("%s, %s: tick %d: output %d is %g with sensors, %g without", e.Name, scheme, tick, i, rest[i], v)
					}
				}
				edges = 0
				for i := range n {
					edges += got[p+3*i]
				}
			}
			if edges == 0 {
				t.Errorf("%s, %s: no edge was counted", e.Name, scheme)
			}
		}
	}
}

// What a sensor gives does not depend on the step: on a gearbox that shifts, a car with
// laws and a wheel that slips the same edges at the same times, at 10 ms as at 1 ms.
func TestPulsesAreTheSameOnEveryGrid(t *testing.T) {
	const tolerance = 1e-9 // s
	for _, c := range []struct{ plant, node string }{
		{"powershift", "shaft4"}, {"automatic4", "crank"}, {"automatic4", "turbine"}, {"hybrid-tyre", "wheel"},
	} {
		text := varied(t, c.plant, "\noutputs:\n", "\noutputs:\n  sensor: {pulses: "+c.node+", teeth: 48, runout: 0.1}\n")
		fine := edgesOf(t, text, time.Millisecond)
		coarse := edgesOf(t, text, 10*time.Millisecond)
		worst, compared := 0.0, 0
		for i, y := range fine {
			if y[0] != coarse[i][0] { // an edge on the grid point: its age tells
				if late := max(coarse[i][1], y[1]); !scalar.EqualWithinAbs(y[0], coarse[i][0], 1) || !(min(coarse[i][1], y[1]) < tolerance) {
					t.Fatalf("%s, %s: row %d: %g edges at 1 ms and %g at 10 ms, ages up to %g s", c.plant, c.node, i, y[0], coarse[i][0], late)
				}
				continue
			}
			for q := 1; q <= 2; q++ {
				d := math.Abs(y[q] - coarse[i][q])
				if !(d <= tolerance) {
					t.Fatalf("%s, %s: row %d: %.12g s at 1 ms and %.12g s at 10 ms", c.plant, c.node, i, y[q], coarse[i][q])
				}
				worst = max(worst, d)
			}
			compared++
		}
		if last := fine[len(fine)-1][0]; compared < 50 || !(last >= 100) {
			t.Errorf("%s, %s: %d rows, %g edges", c.plant, c.node, compared, last)
		}
		t.Logf("%s, %s: %g edges, times within %.2g s", c.plant, c.node, fine[len(fine)-1][0], worst)
	}
}

// edgesOf runs a plant for 5 s and returns its first three outputs every 10 ms.
func edgesOf(t *testing.T, text string, step time.Duration) (out [][]float64) {
	t.Helper()
	tables, err := kernel.Prepare(assembled(t, "t.yaml", []byte(text)), kernel.Options{Period: step})
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(tables)
	y, u := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Inputs))
	for at := step; at <= 5*time.Second; at += step {
		if k.Step(y, u); at%(10*time.Millisecond) == 0 {
			out = append(out, slices.Clone(y[:3]))
		}
	}
	return out
}
