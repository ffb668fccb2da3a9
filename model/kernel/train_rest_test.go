package kernel

import (
	"math/rand/v2"
	"slices"
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

// tickWork counts what the ticks of a long train cost: derivatives of all states, iterations of the laws, and evaluations
// of the laws at the starts of substeps.
type tickWork struct{ derivatives, iterations, starts int }

// countWork returns the counters that the ticks of k increase.
func countWork(k *Kernel) *tickWork {
	n, inner := &tickWork{}, k.calls
	k.calls.derive = func(k *Kernel, dst, x, w, tau []float64) {
		n.derivatives++
		inner.derive(k, dst, x, w, tau)
	}
	k.calls.iterateLaws = func(k *Kernel, coarse bool) {
		before := k.iterations
		inner.iterateLaws(k, coarse)
		n.iterations += k.iterations - before
	}
	k.calls.setTorques = func(k *Kernel, x []float64) {
		n.starts++
		inner.setTorques(k, x)
	}
	return n
}

// With commands anywhere at each tick, a tick took up to 191 derivatives and 21 iterations of the laws when the torques
// that laws read did not answer to the laws within an iteration, and 123 and 12 when a substep that ends at an event had a
// polynomial of its own. With all commands at a limit by turns it took 127 and 11 when laws were extrapolated from what an
// iteration had left in a very short substep. From rest no substep of the first ticks has converged laws, as each ends at a
// coupler that leaves the border between two regions: the shares of brakes that alternated between two neighbouring
// numbers took up to 64 evaluations at the starts of substeps.
func TestTickOfALongTrainTakesFewDerivatives(t *testing.T) {
	sys, tables := commandedTrain(t, "train40")
	random := rand.New(rand.NewPCG(1, 2))
	commands := func(u []float64, part func() float64) {
		for j, in := range sys.Inputs {
			u[j] = in.Min + part()*(in.Max-in.Min)
		}
	}
	limits := func() float64 { return float64(random.IntN(2)) }
	rest := *tables
	rest.X0, rest.Start = make([]float64, tables.N), slices.Clone(tables.Start)
	for _, c := range []struct {
		name    string
		tables  *Tables
		prepare func(k *Kernel, u []float64, tick int)
		mean    [2]float64 // most derivatives and iterations in the mean of all ticks
		most    tickWork   // most of a tick
	}{
		{name: "random", tables: tables, mean: [2]float64{73, 8}, most: tickWork{100, 14, 18},
			prepare: func(_ *Kernel, u []float64, _ int) { commands(u, random.Float64) }},
		{name: "jump", tables: tables, mean: [2]float64{56, 4}, most: tickWork{86, 9, 14},
			prepare: func(_ *Kernel, u []float64, tick int) { commands(u, func() float64 { return float64(1 - tick%2) }) }},
		{name: "rest", tables: &rest, mean: [2]float64{73, 4}, most: tickWork{140, 14, 16},
			prepare: func(k *Kernel, u []float64, tick int) {
				switch tick % 4 {
				case 0:
					commands(u, limits)
					copy(rest.Start, u)
					k.Reset()
				case 2:
					commands(u, limits)
				}
			}},
	} {
		const ticks = 240
		k := New(c.tables)
		work := countWork(k)
		u, y := make([]float64, len(tables.Inputs)), make([]float64, len(tables.Outputs))
		all, most := tickWork{}, tickWork{}
		for tick := range ticks {
			c.prepare(k, u, tick)
			*work = tickWork{}
			k.Step(y, u)
			all.derivatives, all.iterations = all.derivatives+work.derivatives, all.iterations+work.iterations
			most = tickWork{max(most.derivatives, work.derivatives), max(most.iterations, work.iterations), max(most.starts, work.starts)}
		}
		mean, meanIterations := float64(all.derivatives)/ticks, float64(all.iterations)/ticks
		t.Logf("%s: derivatives of a tick %.1f, at most %d; iterations %.2f, at most %d; starts at most %d",
			c.name, mean, most.derivatives, meanIterations, most.iterations, most.starts)
		if !(mean <= c.mean[0] && meanIterations <= c.mean[1]) || most.derivatives > c.most.derivatives ||
			most.iterations > c.most.iterations || most.starts > c.most.starts || min(all.derivatives, all.iterations, most.starts) == 0 {
			t.Errorf("%s: %.1f derivatives in a tick and %.2f iterations, at most %+v; want at most %.0f and %.0f, at most %+v",
				c.name, mean, meanIterations, most, c.mean[0], c.mean[1], c.most)
		}
		if y[len(y)-1] != 0 || k.Unconverged() != 0 {
			t.Errorf("%s: fault %g, laws unconverged in %d substeps", c.name, y[len(y)-1], k.Unconverged())
		}
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
