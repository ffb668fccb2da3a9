package kernel

import (
	"math"
	"math/rand"
	"testing"
	"time"
)

// TestQuietTicksHaveTheBitsOfFullTicks compares random plants with and without quiet ticks. The
// commands hold, move, jump and stop clutches and freewheels; some inputs follow their own source for a while.
func TestQuietTicksHaveTheBitsOfFullTicks(t *testing.T) {
	rnd := rand.New(rand.NewSource(7))
	quiet, ticks, plants := 0, 0, 0
	for seed := range 120 {
		sys := randomRig(rnd).system()
		if seed == 0 {
			sys = powershift()
		}
		for i := range sys.Signals { // straight lines and levels, jumps between them
			if seed%4 == 3 && rnd.Intn(2) == 0 {
				sys.Signals[i].Source = randomTable(rnd)
			}
		}
		for i := range sys.Frictions {
			if seed%3 == 2 && rnd.Intn(2) == 0 {
				sys.Frictions[i].OneWay, sys.Frictions[i].Floor = true, 1e-6
			}
		}
		tables, err := Prepare(sys, Options{Period: 2 * time.Millisecond, Scheme: []Scheme{Complete, Papers}[seed%2]})
		if err != nil {
			t.Fatal(err)
		}
		if !tables.Quiet { // a spring too fast for one substep
			continue
		}
		full := *tables
		full.Quiet = false
		a, b := New(tables), New(&full)
		m, p := a.Dims()
		u, y, want := make([]float64, m), make([]float64, p), make([]float64, p)
		for i := range m {
			on := seed%4 < 3 || rnd.Intn(3) > 0
			a.Drive(i, on)
			b.Drive(i, on)
		}
		plants++
		for k := range 500 {
			for i := range u {
				switch rnd.Intn(60) {
				case 0:
					u[i] = 20 * math.Exp(2*rnd.NormFloat64())
				case 1:
					u[i] = 0
				case 2:
					u[i] *= 1 + 0.1*rnd.NormFloat64()
				case 3:
					on := rnd.Intn(2) == 0
					a.Drive(i, on)
					b.Drive(i, on)
				}
			}
			a.Step(y, u)
			b.Step(want, u)
			ticks++
			if a.held.isSet {
				quiet++
			}
			for i := range y {
				if math.Float64bits(y[i]) != math.Float64bits(want[i]) {
					t.Fatalf("plant %d, tick %d: output %s is %v, want %v as without quiet ticks", seed, k, tables.Outputs[i].Name, y[i], want[i])
				}
			}
		}
	}
	t.Logf("%d plants; %d of %d ticks are quiet", plants, quiet, ticks)
	if !(plants >= 20 && quiet >= ticks/3) {
		t.Errorf("%d plants have quiet ticks, %d of %d ticks are quiet; want 20 plants, a third of the ticks", plants, quiet, ticks)
	}
}

// TestOnlyPlantsWithoutOtherEventsHaveQuietTicks lists what a quiet tick does not check.
func TestOnlyPlantsWithoutOtherEventsHaveQuietTicks(t *testing.T) {
	for name, opt := range map[string]Options{
		"powershift":                  {Period: 5 * time.Millisecond},
		"in form held":                {Period: 5 * time.Millisecond, Form: Held},
		"without tables of its locks": {Period: 5 * time.Millisecond, Memory: 1},
	} {
		tables, err := Prepare(powershift(), opt)
		if err != nil {
			t.Fatal(err)
		}
		if want := name == "powershift"; tables.Quiet != want {
			t.Errorf("%s: quiet ticks %v, want %v", name, tables.Quiet, want)
		}
	}
}

// TestAQuietTickStopsAtACommandThatIsNotFinite: the fault does not depend on whether the ticks
// before it were quiet.
func TestAQuietTickStopsAtACommandThatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		k := start(t, powershift(), Options{Period: 5 * time.Millisecond, Driven: []bool{true, true, true, true, true, true, true, true}})
		copy(k.u, k.t.Start)
		for range 20 {
			k.step()
		}
		if !k.held.isSet {
			t.Fatal("the tick before the fault is not quiet")
		}
		k.u[3] = bad
		k.step()
		if !(k.faultOut() > 0) {
			t.Errorf("command %v: fault %v, want a state", bad, k.faultOut())
		}
	}
}
