package kernel

import (
	"math/rand/v2"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
)

// commandedTrain returns a train, commanded at each tick of 5 ms.
func commandedTrain(t *testing.T, name string) (*model.System, *Tables) {
	t.Helper()
	text, err := plants.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load(name+".yaml", text, library.Elements())
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
	return sys, tables
}

// A locomotive pulls at a train of forty cars that stands with all brakes locked. The torques of the brakes, which
// laws read, fade along the train to 1e-180 N·m.
func TestLawsDoNotFollowTorquesBelowRounding(t *testing.T) {
	sys, tables := commandedTrain(t, "train40")
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

// A train that stands with its brakes at their limits, other ones each time. No substep of its first ticks may have
// converged laws: each ends at a coupler that leaves the border between two regions. A share of a brake that alternated
// between two neighbouring numbers took up to 64 evaluations of all laws at the starts of substeps.
func TestLawsAtTheStartOfASubstepNeedFewEvaluations(t *testing.T) {
	sys, tables := commandedTrain(t, "train40")
	clear(tables.X0)
	k := New(tables)
	evaluations, setTorques := 0, k.calls.setTorques
	k.calls.setTorques = func(k *Kernel, x []float64) {
		evaluations++
		setTorques(k, x)
	}
	random := rand.New(rand.NewPCG(1, 2))
	u, y := make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
	most := 0
	for tick := range 240 {
		if tick%2 == 0 {
			for j, in := range sys.Inputs {
				if u[j] = in.Min; random.IntN(2) == 0 {
					u[j] = in.Max
				}
			}
		}
		if tick%4 == 0 {
			copy(tables.Start, u)
			k.Reset()
		}
		evaluations = 0
		k.Step(y, u)
		most = max(most, evaluations)
	}
	if most == 0 || most > 16 {
		t.Errorf("laws were evaluated up to %d times in a tick at the starts of substeps; want 1 to 16", most)
	}
}

// The derivatives of all states and the evaluations of all laws are what a tick of a long train costs. With the commands
// of all brakes anywhere at each tick, a tick took up to 191 derivatives and 21 iterations of the laws, 120 and 10.6 in
// the mean, when the torques that laws read did not answer to the laws within an iteration, and each event took a pass more.
func TestTickOfALongTrainTakesFewDerivatives(t *testing.T) {
	sys, tables := commandedTrain(t, "train40")
	k := New(tables)
	derivatives, iterations := 0, 0
	derive, iterate := k.calls.derive, k.calls.iterateLaws
	k.calls.derive = func(k *Kernel, dst, x, w, tau []float64) {
		derivatives++
		derive(k, dst, x, w, tau)
	}
	k.calls.iterateLaws = func(k *Kernel, coarse bool) {
		before := k.iterations
		iterate(k, coarse)
		iterations += k.iterations - before
	}
	const ticks = 300
	u, y := make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
	random := rand.New(rand.NewPCG(1, 2))
	var all, allIterations, most, mostIterations int
	for range ticks {
		for j, in := range sys.Inputs {
			u[j] = in.Min + random.Float64()*(in.Max-in.Min)
		}
		derivatives, iterations = 0, 0
		k.Step(y, u)
		all, allIterations = all+derivatives, allIterations+iterations
		most, mostIterations = max(most, derivatives), max(mostIterations, iterations)
	}
	mean, meanIterations := float64(all)/ticks, float64(allIterations)/ticks
	t.Logf("derivatives of a tick %.1f, at most %d; iterations %.2f, at most %d", mean, most, meanIterations, mostIterations)
	if !(mean <= 90 && most <= 130 && meanIterations <= 8 && mostIterations <= 14) || all == 0 || allIterations == 0 {
		t.Errorf("%.1f derivatives in a tick, at most %d, and %.2f iterations, at most %d; want at most 90, 130, 8 and 14",
			mean, most, meanIterations, mostIterations)
	}
	if y[len(y)-1] != 0 || k.Unconverged() != 0 {
		t.Errorf("fault %g, laws unconverged in %d substeps", y[len(y)-1], k.Unconverged())
	}
}

// The noise of an event indicator and its nearness to zero follow from its largest value. Laws that are extrapolated over a
// substep may end anywhere, by up to 650 times what they ever are.
func TestExtrapolatedLawsDoNotScaleIndicators(t *testing.T) {
	sys, tables := commandedTrain(t, "train3")
	k := New(tables)
	random := rand.New(rand.NewPCG(1, 2))
	u, y := make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
	for range 400 {
		for j, in := range sys.Inputs {
			if random.IntN(20) == 0 {
				u[j] = in.Min + random.Float64()*(in.Max-in.Min)
			}
		}
		k.Step(y, u)
	}
	for n, i := range tables.LawPressed {
		got, law := k.indicatorMax[tables.PressedBy[n]], k.lawMax[tables.Friction[i].Signal-tables.FirstLaw]
		if !(got > 0 && got <= 1.1*law) {
			t.Errorf("%s: largest value of its event indicator %g N, of its law %g N", tables.Friction[i].Name, got, law)
		}
	}
}
