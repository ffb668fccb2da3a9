package kernel

import (
	"testing"
	"time"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// A locomotive pulls at a train of forty cars that stands with all brakes locked. The torques of the brakes, which
// laws read, fade along the train to 1e-180 N·m.
func TestLawsDoNotFollowTorquesBelowRounding(t *testing.T) {
	text, err := plants.Read("train40")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load("train40.yaml", text, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	sys, err := assemble.System(p)
	if err != nil {
		t.Fatal(err)
	}
	driven := make([]bool, len(sys.Inputs))
	for i := range driven {
		driven[i] = true
	}
	tables, err := Prepare(sys, Options{Period: 5 * time.Millisecond, Driven: driven})
	if err != nil {
		t.Fatal(err)
	}
	clear(tables.X0)
	k := New(tables)
	most, iterate := 0, k.calls.iterateLaws
	k.calls.iterateLaws = func(k *Kernel, coarse bool) {
		iterate(k, coarse)
		most = max(most, k.iterations)
	}
	u, y := make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
	for i, in := range sys.Inputs {
		u[i] = in.Max
	}
	k.Step(y, u)
	if most == 0 || most > 8 {
		t.Errorf("the laws of a substep took up to %d iterations; want 1 to 8", most)
	}
}
