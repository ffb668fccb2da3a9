package kernel

import (
	"bytes"
	"encoding/gob"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// trace advances k by ticks and returns the outputs of every tick.
func trace(k *run, ticks int) [][]float64 {
	var out [][]float64
	for range ticks {
		k.step()
		out = append(out, slices.Clone(k.y))
	}
	return out
}

// outputDifference returns the largest difference of the outputs from index from up to to, over
// their range.
func outputDifference(a, b [][]float64, from, to int) float64 {
	worst := 0.0
	for j := from; j < to; j++ {
		most, size := 0.0, 0.0
		for i := range a {
			most = max(most, math.Abs(a[i][j]-b[i][j]))
			size = max(size, math.Abs(a[i][j]))
		}
		if most != 0 {
			worst = max(worst, most/size)
		}
	}
	return worst
}

// Eight seconds of pulling, braking until all wheels lock, rolling on and braking to
// standstill: speeds of cars and wheels, in equal substeps.
func TestSparseStepsOfATrainMatchDenseOnes(t *testing.T) {
	for _, cars := range []int{1, 3} {
		sys := stopAndGo(cars, 0.05)
		dense := start(t, sys, Options{Period: ms(5), Stepping: Dense})
		sparse := start(t, sys, Options{Period: ms(5), Stepping: Sparse})
		sparse.t.Split, sparse.t.Delta = dense.t.Split, dense.t.Delta // the laws have the same error
		ticks := 1600
		if testing.Short() {
			ticks = 700
		}
		a, b := trace(dense, ticks), trace(sparse, ticks)
		worst := outputDifference(a, b, 0, 5*cars)
		t.Logf("%d cars, %g transitions: %.1e of the range", cars, sparse.transOut(), worst)
		if !(worst <= 1e-10) {
			t.Errorf("%d cars: sparse and dense are %.1e of the range apart", cars, worst)
		}
		if n := float64(12 * cars); !(sparse.transOut() >= n) || dense.transOut() != sparse.transOut() {
			t.Errorf("%d cars: %g and %g transitions, want as many, and at least %g", cars, dense.transOut(), sparse.transOut(), n)
		}
	}
}

// A tick that locates one event handles the others at the ends of their substeps, momentum
// kept: the motion of the train hardly changes.
func TestUnlocatedEventsHardlyChangeTheMotionOfATrain(t *testing.T) {
	sys := stopAndGo(3, 0.05)
	all := trace(start(t, sys, Options{Period: ms(5), Stepping: Sparse, EventBudget: 64}), 1600)
	one := trace(start(t, sys, Options{Period: ms(5), Stepping: Sparse, EventBudget: 1}), 1600)
	cars, wheels := outputDifference(all, one, 0, 3), outputDifference(all, one, 3, 15)
	t.Logf("cars %.1e, wheels %.1e of the range", cars, wheels)
	if !(cars <= 1e-5 && wheels <= 2e-3) {
		t.Errorf("cars %.1e and wheels %.1e of the range apart, want 1e-5 and 2e-3", cars, wheels)
	}
	if !(wheels > 0) {
		t.Error("nothing differs: no tick has more than one event, nothing is proved")
	}
}

// 70 bodies, each with its own brake: w falls by K/J·t and stays at 0.
func TestPlantsCanHaveMoreElementsThanALockSetHasBits(t *testing.T) {
	var r rig
	for i := range 70 {
		w := make([]float64, 70)
		w[i] = 1
		r.J = append(r.J, 1+float64(i%9))
		r.Frictions = append(r.Frictions, contact{W: w, K: always(2 + float64(i%7))})
		r.X0 = append(r.X0, 1+0.01*float64(i))
	}
	k := start(t, r.system(), Options{Period: ms(5)})
	if k.t.Sparse == nil || len(k.t.Blocks()) != 70 {
		t.Fatalf("%d blocks; 70 that are stepped sparse are wanted", len(k.t.Blocks()))
	}
	for tick := 1; tick <= 1600; tick++ {
		k.step()
		for i, j := range r.J {
			want := max(0, r.X0[i]-(2+float64(i%7))/j*float64(tick)*0.005)
			if !(math.Abs(k.y[i]-want) <= 1e-12) {
				t.Fatalf("tick %d: body %d turns at %g rad/s, want %g", tick, i, k.y[i], want)
			}
		}
	}
	for i := range r.J {
		if k.modeOf(i) != Stuck {
			t.Errorf("brake %d does not hold its body: mode %d", i, k.modeOf(i))
		}
	}
}

// Dense matrices are for small plants, and for those whose lock sets fit the table: one
// product with Phi advances such a plant by a whole substep.
func TestPlantsAreSteppedSparseWhereThatIsCheaper(t *testing.T) {
	chain := rig{J: make([]float64, 30), X0: make([]float64, 59)} // bodies on springs in a row, without friction
	for i := range chain.J {
		chain.J[i] = 1
		if i > 0 {
			chain.Springs = append(chain.Springs, spring{i - 1, i, 100, 1})
		}
	}
	for _, c := range []struct {
		sys    *model.System
		sparse bool
	}{
		{oscillator(1, 1, 0).system(), false}, {chain.system(), false},
		{stopAndGo(1, 0), true}, {stopAndGo(3, 0), true}, {stopAndGo(20, 0), true},
	} {
		tables, err := Prepare(c.sys, Options{Period: ms(5)})
		if err != nil {
			t.Fatal(err)
		}
		if got := tables.Sparse != nil; got != c.sparse {
			t.Errorf("%d states and %d friction elements are stepped sparse: %v", tables.N, tables.Mc, got)
		}
	}
}

// cpu returns the processor time of this thread.
func cpu(t *testing.T) time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		t.Fatal(err)
	}
	return time.Duration(at.Nano())
}

// trainCost returns the mean of the quiet ticks of a train and its worst tick, in which all wheels
// lock, and all slip again; each tick at its fastest of three runs.
func trainCost(t *testing.T, cars int) (quiet, worst float64) {
	k := start(t, stopAndGo(cars, 0), Options{Period: ms(5), Stepping: Sparse})
	least := slices.Repeat([]time.Duration{time.Hour}, 500)
	for range 3 {
		k.Reset()
		for i := range least {
			from := cpu(t)
			k.step()
			least[i] = min(least[i], cpu(t)-from)
		}
		if want := float64(8 * cars); k.transOut() != want || k.lagOut() != 0 {
			t.Errorf("%d cars: %g transitions, want %g; lag %g s", cars, k.transOut(), want, k.lagOut())
		}
	}
	for _, d := range least[100:250] {
		quiet += d.Seconds() / 150
	}
	return quiet, slices.Max(least).Seconds()
}

// The cost of a train is proportional to its cars. Full matrices would cost
// N², and every wheel that locks by itself would cost a factorisation of the whole train.
func TestCostOfATrainGrowsWithItsLength(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cars := []int{1, 3, 5, 10, 20}
	var quiet, worst []float64
	for _, n := range cars {
		q, d := trainCost(t, n)
		quiet, worst = append(quiet, q), append(worst, d)
		t.Logf("%2d cars: quiet %7.1f us, %4.1f %% of 5 ms; worst %7.1f us, %4.1f %%", n, q*1e6, q/5e-5, d*1e6, d/5e-5)
	}
	for _, c := range []struct {
		what string
		cost []float64
	}{{"quiet", quiet}, {"worst", worst}} {
		order := math.Log(c.cost[4]/c.cost[1]) / math.Log(20./3)
		t.Logf("%s tick: cars^%.2f from 3 to 20 cars", c.what, order)
		if !(order <= 1.3) {
			t.Errorf("the cost of a %s tick grows with cars^%.2f, want about 1", c.what, order)
		}
	}
}

func TestMemoryOfATrainGrowsWithItsLength(t *testing.T) {
	size := func(cars int) float64 {
		k := start(t, stopAndGo(cars, 0), Options{Period: ms(5), Stepping: Sparse})
		var wire bytes.Buffer
		if err := gob.NewEncoder(&wire).Encode(k.t); err != nil {
			t.Fatal(err)
		}
		return float64(wire.Len())
	}
	ten, twenty := size(10), size(20)
	t.Logf("tables of 10 cars %.0f bytes, of 20 cars %.2f times as much", ten, twenty/ten)
	if !(twenty <= 2.1*ten) {
		t.Errorf("the tables of 20 cars take %.2f times those of 10", twenty/ten)
	}
}

// A law continues on the parabola of the step before. One that reads a speed under a ramp is such a
// parabola: from the second step on it needs no iteration.
func TestLawOnAParabolaNeedsNoIteration(t *testing.T) {
	sys := rig{J: []float64{2, 1}, X0: []float64{0, 1}, Torques: []torque{{1, table(0, 1, 1, 31)}}}.system()
	addLaw(sys, proportional(4, 0, 1), map[int]float64{0: 0.5})
	k := start(t, sys, Options{Period: ms(10), Stepping: Sparse})
	for range 50 {
		k.step()
		if k.tick > 1 && k.iterations != 0 {
			t.Fatalf("tick %d: %d iterations, want none", k.tick, k.iterations)
		}
	}
	if now := float64(k.tick) * k.h; !scalar.EqualWithinRel(k.y[0], 2*(now+now*now/2+5*now*now*now), 1e-10) {
		t.Errorf("w = %.12g rad/s at %g s", k.y[0], now)
	}
}

// A law c·w of the speed that it drives, with a slope of at most 3·|c|, answers to its own change by c/J
// per second. Two iterations give that factor; from then on one iteration is exact.
func TestIterationOfALinearLawIsExactOnceItsFactorIsKnown(t *testing.T) {
	const J = 2.0
	for _, c := range []float64{-20, 20, -33} {
		sys, law := rig{J: []float64{J}, X0: []float64{3}}.system(), proportional(c, 1)
		law.Slopes = []float64{3 * math.Abs(c)}
		addLaw(sys, law, map[int]float64{0: 1 / J})
		k := start(t, sys, Options{Period: ms(10), Stepping: Sparse})
		for range 40 {
			k.step()
			if k.tick > 3 && k.iterations != 1 {
				t.Fatalf("c = %g, tick %d: %d iterations, want 1", c, k.tick, k.iterations)
			}
		}
		if got := k.lawTrend[2]; !scalar.EqualWithinRel(got, c/J, 1e-6) {
			t.Errorf("c = %g: the law answers to its change by %g per second, want %g", c, got, c/J)
		}
	}
}
