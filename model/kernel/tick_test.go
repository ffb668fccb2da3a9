package kernel

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
)

// chatter is a rig with more events in a tick than any budget: six bodies on springs of 1.1 to 1.6
// kHz, each with a brake far too weak to stop it.
func chatter() rig {
	var r rig
	for i := range 6 {
		w := make([]float64, 6)
		w[i] = 1
		omega := 7000 + 600*float64(i) // rad/s
		r.J = append(r.J, 1)
		r.Springs = append(r.Springs, spring{-1, i, omega * omega, 0})
		r.Frictions = append(r.Frictions, contact{W: w, K: always(0.001 * omega * omega)})
	}
	r.X0 = make([]float64, 12)
	for i := range 6 {
		r.X0[6+i] = 1
	}
	return r
}

// busy returns plants and runs that reach every path of the tick.
func busy() map[string]struct {
	sys   *model.System
	ticks int
} {
	return map[string]struct {
		sys   *model.System
		ticks int
	}{
		"powershift": {powershift(), 700},
		"ramp":       {under([8]float64{5: 500, 6: 500, 7: 500}, table(0, 0, 3, 3000)), 320},
		"redundant":  {under([8]float64{400, 300, 200, 500, 300, 505, 30, 510}, table(0, 0, 0.2, 6000, 0.4, -6000)), 100},
		"chatter":    {chatter().system(), 4},
	}
}

func eachBusy(t *testing.T, fact func(t *testing.T, k *run, ticks int)) {
	for name, b := range busy() {
		for _, scheme := range bothSchemes {
			for kind, opt := range map[string]Options{"projected": {}, "held": {Form: Held}, "in place": {Memory: 1}, "sparse": {Stepping: Sparse}} {
				opt.Period, opt.Scheme = ms(5), scheme
				t.Run(fmt.Sprintf("%s/%s/%s", name, scheme, kind), func(t *testing.T) {
					fact(t, start(t, b.sys, opt), b.ticks)
				})
			}
		}
	}
}

// leastAllocations returns the smallest number of allocations over several runs. The count includes
// the other threads of the process, which do not allocate in every run.
func leastAllocations(run func()) float64 {
	least := math.Inf(1)
	for range 3 {
		least = min(least, testing.AllocsPerRun(1, run))
	}
	return least
}

func TestStepDoesNotAllocate(t *testing.T) {
	eachBusy(t, func(t *testing.T, k *run, ticks int) {
		least := leastAllocations(func() {
			k.Reset()
			for range ticks {
				k.step()
			}
		})
		if !(least == 0) {
			t.Errorf("%g allocations in %d ticks", least, ticks)
		}
		if !(k.transOut() >= 1) {
			t.Errorf("%g transitions: the run meets no event", k.transOut())
		}
	})
}

// record holds every bit of a run: all outputs and all events.
func record(k *run, ticks int) []uint64 {
	var out []uint64
	k.Reset()
	for range ticks {
		k.step()
		for _, v := range k.y {
			out = append(out, math.Float64bits(v))
		}
		for _, e := range k.Events() {
			out = append(out, math.Float64bits(e.Time), uint64(e.Friction), uint64(e.From), uint64(e.To))
		}
	}
	return out
}

func equal(t *testing.T, what string, a, b []uint64) {
	t.Helper()
	if len(a) != len(b) {
		t.Fatalf("%s: %d values, want %d", what, len(b), len(a))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("%s: value %d has other bits", what, i)
		}
	}
}

func TestSameTablesAndInputsGiveTheSameBits(t *testing.T) {
	eachBusy(t, func(t *testing.T, k *run, ticks int) {
		first := record(k, ticks)
		equal(t, "after Reset", first, record(k, ticks))
		twin := &run{Kernel: New(k.t), y: make([]float64, len(k.y)), u: k.u}
		equal(t, "another kernel", first, record(twin, ticks))

		var wire bytes.Buffer
		if err := gob.NewEncoder(&wire).Encode(k.t); err != nil {
			t.Fatal(err)
		}
		var tables Tables
		if err := gob.NewDecoder(&wire).Decode(&tables); err != nil {
			t.Fatal(err)
		}
		sent := &run{Kernel: New(&tables), y: make([]float64, len(k.y)), u: k.u}
		equal(t, "tables sent by gob", first, record(sent, ticks))
	})
}

// The chatter has about 16 events in each of six elements per tick, more than any budget. In both
// schemes the lag stays bounded, and friction of 0.001 of the amplitude stops the bodies within
// 1000 half cycles.
func TestLagStaysBelowItsBoundAndReturnsToZero(t *testing.T) {
	for name, b := range busy() {
		for _, scheme := range bothSchemes {
			for _, opt := range []Options{{}, {EventBudget: 1, LagBound: ms(5)}} {
				opt.Period, opt.Scheme = ms(5), scheme
				k := start(t, b.sys, opt)
				for range b.ticks * 20 {
					k.step()
					if !(k.lagOut() <= k.t.LagBound) || !(k.lagOut() >= 0) || k.faultOut() != 0 {
						t.Fatalf("%s %s: tick %d: lag %g s, its bound is %g s; fault %g", name, scheme, k.tick, k.lagOut(), k.t.LagBound, k.faultOut())
					}
				}
				if k.lagOut() != 0 {
					t.Errorf("%s %s: lag %g s long after the last event", name, scheme, k.lagOut())
				}
				if left := energy(b.sys, k.x); name == "chatter" && !(left < 1e-4*energy(b.sys, b.sys.X0)) {
					t.Errorf("%s %s: %g J are left", name, scheme, left)
				}
			}
		}
	}
}

// After 28 hours an instant is accurate to 1.5e-11 s. The powershift with all its sources delayed by
// this time moves as from zero.
func TestMotionIsTheSameAfterADayOfSimulatedTime(t *testing.T) {
	const day = 20_000_000 // ticks of 5 ms
	late := powershift()
	for i := range late.Signals {
		src := &late.Signals[i].Source
		for j := range src.T {
			src.T[j] += day * 0.005
		}
	}
	for _, scheme := range bothSchemes {
		k := start(t, late, Options{Period: ms(5), Scheme: scheme})
		k.tick, k.nextBreakpoint = day, 0
		now := start(t, powershift(), Options{Period: ms(5), Scheme: scheme})
		for range 700 {
			k.step()
			now.step()
			for j := range 4 {
				if now.lagOut() == 0 && k.lagOut() == 0 && !scalar.EqualWithinAbsOrRel(k.y[j], now.y[j], 1e-6, 1e-6) {
					t.Fatalf("%s: tick %d: w%d = %.12g rad/s, want %.12g", scheme, now.tick, j+1, k.y[j], now.y[j])
				}
			}
		}
		if k.transOut() != now.transOut() || k.lagOut() != 0 {
			t.Errorf("%s: %g transitions, want %g; lag %g s", scheme, k.transOut(), now.transOut(), k.lagOut())
		}
	}
}

// Clutch 2 locks at 0.7157743641 s, inside the tick that ends at 0.720 s. The state stops at the
// lock; the outputs are exact at 0.720 s.
func TestOutputsAreThePredictionWhileThereIsLag(t *testing.T) {
	const lock, at = 0.7157743641328, 720 // s, ms
	table := powershiftTruth(t)
	rows, span := table.Rows, table.Spans()[1:]
	k := start(t, powershift(), Options{Period: ms(5), Scheme: Papers})
	for range at / 5 {
		k.step()
	}
	if !scalar.EqualWithinAbs(k.lagOut(), 0.720-lock, 1e-10) || !scalar.EqualWithinAbs(k.y[k.tail()], (lock-0.715)/0.005, 1e-7) {
		t.Errorf("lag %g s, eta %g after the lock, want %g and %g", k.lagOut(), k.y[k.tail()], 0.720-lock, (lock-0.715)/0.005)
	}
	for j := range 4 {
		if !scalar.EqualWithinAbs(k.y[j], rows[at][j+1], 1e-9*span[j]) {
			t.Errorf("w%d = %.12g at 0.720 s, want %.12g rad/s", j+1, k.y[j], rows[at][j+1])
		}
		if scalar.EqualWithinAbs(k.x[j], rows[at][j+1], 1e-6*span[j]) {
			t.Errorf("state w%d = %.12g is that of 0.720 s: it did not stop at the lock", j+1, k.x[j])
		}
	}
	k.step()
	if k.lagOut() != 0 || !scalar.EqualWithinAbs(k.y[0], rows[at+5][1], 1e-9*span[0]) {
		t.Errorf("a tick later: lag %g s, w1 = %.12g, want 0 and %.12g", k.lagOut(), k.y[0], rows[at+5][1])
	}
}

// Body 0 locks after 2.5 ms and the plant stops there. Body 1 locks after 3.3 ms; only the
// prediction reaches this lock.
func TestPredictionIncludesTheEventsOfTheLag(t *testing.T) {
	r := rig{
		J: []float64{1, 0.001}, X0: []float64{10, 10.01},
		Frictions: []contact{{W: []float64{1, 0}, K: always(4000)}, {W: []float64{0, 1}, K: always(3)}},
	}
	k := start(t, r.system(), Options{Period: ms(5), Scheme: Papers})
	k.step()
	if !(k.lagOut() > 2e-3) || k.mode[0] != Stuck || k.mode[1] != Forward || k.transOut() != 1 || len(k.Events()) != 1 {
		t.Fatalf("lag %g s, modes %v, %g transitions: want the first lock only", k.lagOut(), k.mode, k.transOut())
	}
	if k.modeOf(1) != Stuck || !scalar.EqualWithinAbs(k.y[1], 0, 1e-12) {
		t.Errorf("body 1 is predicted in mode %d at %g rad/s, want stuck at 0", k.modeOf(1), k.y[1])
	}
	k.step()
	if k.mode[1] != Stuck || k.transOut() != 2 || len(k.Events()) != 1 {
		t.Errorf("a tick later: modes %v, %g transitions: want the second lock, once", k.mode, k.transOut())
	}
}

// The brake of body 0 locks 1.2 ms after the start of the tick; the torque on body 1 jumps from 1
// to 5 after 7 ms.
func TestPredictionFollowsTheSources(t *testing.T) {
	r := rig{
		J: []float64{1, 1}, X0: []float64{0.012, 0},
		Frictions: []contact{{W: []float64{1, 0}, K: always(10)}},
		Torques:   []torque{{1, table(0.007, 1, 0.007, 5)}},
	}
	k := start(t, r.system(), Options{Period: ms(10), Scheme: Papers})
	k.step()
	if !scalar.EqualWithinAbs(k.lagOut(), 0.0088, 1e-12) || !scalar.EqualWithinAbs(k.y[1], 0.007+5*0.003, 1e-15) {
		t.Errorf("lag %g s, body 1 is predicted at %g rad/s, want 0.0088 and 0.022", k.lagOut(), k.y[1])
	}
}

func TestInputThatIsNotFiniteSetsFaultAndHoldsThePlant(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for input := range 2 {
			for _, scheme := range bothSchemes {
				r := brake(10, always(1), always(0))
				k := start(t, r.system(), Options{Period: ms(5), Scheme: scheme, Driven: []bool{true, true}})
				k.u[0], k.u[1] = 1, 2
				k.step()
				w := k.y[0]
				k.u[input] = bad
				for range 5 {
					k.step()
					if bad < 0 && input == 0 { // a capacity below zero counts as zero
						continue
					}
					if k.faultOut() != 1 || k.y[0] != w {
						t.Errorf("%s: input %d = %g: fault %g, w = %g rad/s, want 1 and %g", scheme, input, bad, k.faultOut(), k.y[0], w)
					}
				}
				for i, v := range k.y {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						t.Errorf("%s: input %d = %g: %s = %g", scheme, input, bad, k.t.Outputs[i].Name, v)
					}
				}
			}
		}
	}
}

// Redundant locks share a load. No idle share may keep the NaN of a command.
func TestFaultUnderRedundantLocksLeavesFiniteOutputs(t *testing.T) {
	for input := range 8 {
		k := start(t, under([8]float64{5: 505, 6: 30, 7: 510}, always(1500)), Options{Period: ms(5), Driven: allDriven})
		k.step()
		for i := range k.u {
			k.u[i] += 100 // other clutches engage in the same tick
		}
		k.u[input] = math.NaN()
		for range 3 {
			k.step()
		}
		for i, v := range k.y {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("input %d: %s = %g", input, k.t.Outputs[i].Name, v)
			}
		}
		if !(k.faultOut() > 0) {
			t.Errorf("input %d: no fault", input)
		}
	}
}

// Body 2 is unstable with 1e5 1/s. Its state is not finite after two ticks, and the fault names
// this state, not state 0.
func TestFaultNamesTheStateThatDiverged(t *testing.T) {
	r := rig{J: []float64{1, 1, 1}, X0: []float64{1, 1, 1}, Drag: []float64{0, 0, -5e4}}
	k := start(t, r.system(), Options{Period: ms(5)})
	for range 10 {
		k.step()
	}
	if k.faultOut() != 3 || k.y[0] != 1 || !(k.y[2] < math.MaxFloat64) {
		t.Errorf("fault %g, w1 = %g, w3 = %g rad/s; want 3, 1 and a number", k.faultOut(), k.y[0], k.y[2])
	}
	k.Reset()
	if k.Output(k.y); k.faultOut() != 0 || k.y[2] != 1 {
		t.Errorf("after Reset: fault %g, w3 = %g rad/s", k.faultOut(), k.y[2])
	}
}

func TestWrongLengthsPanic(t *testing.T) {
	k := start(t, powershift(), Options{Period: ms(5)})
	for _, short := range [][2]int{{1, 0}, {0, 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Step takes %d outputs and %d inputs too few", short[0], short[1])
				}
			}()
			k.Step(k.y[short[0]:], k.u[short[1]:])
		}()
	}
}
