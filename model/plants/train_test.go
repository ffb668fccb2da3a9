package plants_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// trainSystem is a train of that name, with replacements in its text.
func trainSystem(t *testing.T, name string, replace ...string) *model.System {
	t.Helper()
	data, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load(name+".yaml", []byte(strings.NewReplacer(replace...).Replace(string(data))), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

func trainKernel(t *testing.T, sys *model.System, opt kernel.Options) (*kernel.Kernel, *kernel.Tables) {
	t.Helper()
	opt.Period = 5 * time.Millisecond
	tables, err := kernel.Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return kernel.New(tables), tables
}

func TestTrainsHaveTheNumberOfCarsInTheirName(t *testing.T) {
	for _, cars := range []int{1, 3, 20} {
		sys := trainSystem(t, fmt.Sprintf("train%d", cars))
		speeds, wheels := 0, 0
		for _, s := range sys.States {
			if strings.HasSuffix(s.Name, ".v") || strings.HasSuffix(s.Name, ".w") {
				speeds++
			}
			if strings.HasSuffix(s.Name, ".wheel.w") {
				wheels++
			}
		}
		if speeds != 17*cars || wheels != 4*cars || len(sys.Switches) != cars-1 || len(sys.Inputs) != 4*cars+2 {
			t.Errorf("%d cars: %d degrees of freedom, %d wheelsets, %d couplers, %d inputs", cars, speeds, wheels, len(sys.Switches), len(sys.Inputs))
		}
	}
	for _, name := range []string{"train0", "train41", "train03", "train3x", "train"} {
		if _, err := plants.Read(name); err == nil {
			t.Errorf("%s is embedded", name)
		}
	}
}

// Pulling, taking up the slack, braking until the wheels of the first car lock, rolling
// on: speeds and places of cars, wheels, forces on wheels and in couplers.
func TestTrainOfThreeCarsAgreesWithDenseMatrices(t *testing.T) {
	sys := trainSystem(t, "train3")
	sparse, tables := trainKernel(t, sys, kernel.Options{Stepping: kernel.Sparse})
	dense, _ := trainKernel(t, sys, kernel.Options{Stepping: kernel.Dense})
	ticks := 1500
	if testing.Short() {
		ticks = 300
	}
	p := len(sys.Outputs)
	a, b := make([]float64, len(tables.Outputs)), make([]float64, len(tables.Outputs))
	apart, size := make([]float64, p), make([]float64, p)
	for range ticks {
		sparse.Step(a, tables.Start)
		dense.Step(b, tables.Start)
		for j := range p {
			apart[j] = max(apart[j], math.Abs(a[j]-b[j]))
			size[j] = max(size[j], math.Abs(b[j]))
		}
	}
	worst, at := 0.0, 0
	for j := range p {
		if e := apart[j] / size[j]; apart[j] != 0 && !(e <= worst) && !math.IsNaN(worst) {
			worst, at = e, j
		}
	}
	n := len(a)
	t.Logf("%g transitions: %.1e of the range apart (%s)", a[n-2], worst, sys.Outputs[at].Name)
	if !(worst <= 1e-7) {
		t.Errorf("%s is %.1e of its range apart", sys.Outputs[at].Name, worst)
	}
	if a[n-2] != b[n-2] || !testing.Short() && !(a[n-2] >= 60) || a[n-1] != 0 {
		t.Errorf("%g and %g transitions, fault %g", a[n-2], b[n-2], a[n-1])
	}
}
