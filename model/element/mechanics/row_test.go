package mechanics_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// randomRow is the same row as a plant and for the solver of this test.
func randomRow(rnd *rand.Rand) (r *springRow, elements, outputs string) {
	n := 2 + rnd.IntN(3)
	r = &springRow{brake: rnd.IntN(n), pushed: rnd.IntN(n), region: make([]int, n), x: make([]float64, n), v: make([]float64, n), m: make([]float64, n)}
	r.hold = math.Exp(2*rnd.Float64() - 1)
	slope := 20*rnd.Float64() - 10 // a ramp is exact on any step
	r.push = func(t float64) float64 { return slope * t }
	elements = fmt.Sprintf("g: {type: fixed}\nb: {type: brake, flange: m%d, mu: 1, fn: %.17g}\np: {type: force, flange: m%d, f: {ramp: {height: %.17g, duration: 10}}}\n", r.brake, r.hold, r.pushed, 10*slope)
	for i := range n {
		r.m[i], r.v[i] = math.Exp(3*rnd.Float64()-1.5), 2*rnd.Float64()-1
		s := rowSpring{d: 0.5 * rnd.Float64()}
		at := -0.1 * rnd.Float64()
		for range 1 + rnd.IntN(4) {
			s.borders = append(s.borders, at)
			at += 0.01 + 0.1*rnd.Float64()
		}
		for range len(s.borders) + 1 {
			s.c = append(s.c, 300*rnd.Float64())
		}
		s.offsets = make([]float64, len(s.c))
		s.offsets[0] = s.c[0] * 0.02
		for k, b := range s.borders {
			s.offsets[k+1] = s.offsets[k] + (s.c[k]-s.c[k+1])*b
		}
		if rnd.IntN(4) == 0 {
			r.x[i] = s.borders[0] // it starts on a border
		}
		for r.region[i] < len(s.borders) && r.x[i] >= s.borders[r.region[i]] {
			r.region[i]++
		}
		from, start := "g", r.x[i]
		if i > 0 {
			from = fmt.Sprintf("m%d", i-1)
			r.x[i] += r.x[i-1]
			low, high, e := min(0, start)-0.005-0.1*rnd.Float64(), max(0, start)+0.005+0.1*rnd.Float64(), []float64{0, 0.6 * rnd.Float64()}[rnd.IntN(2)]
			r.stops = append(r.stops, rowStop{a: i - 1, b: i, sign: 1, limit: low, e: e}, rowStop{a: i - 1, b: i, sign: -1, limit: high, e: e})
			elements += fmt.Sprintf("s%d: {type: clearance, a: %s, b: m%d, s_min: %.17g, s_max: %.17g, s_rel_start: %.17g, restitution: %.17g}\n", i, from, i, low, high, start, e)
		}
		r.springs = append(r.springs, s)
		elements += fmt.Sprintf("m%d: {type: mass, m: %.17g, v_start: %.17g}\n", i, r.m[i], r.v[i])
		elements += fmt.Sprintf("k%d: {type: affine_spring, a: %s, b: m%d, symmetric: false, c: [%s], borders: [%s], offsets: [%s], s_rel_start: %.17g}\n", i, from, i, list(s.c), list(s.borders), list(s.offsets), start)
		elements += fmt.Sprintf("d%d: {type: damper, a: %s, b: m%d, d: %.17g}\n", i, from, i, s.d)
		outputs += fmt.Sprintf("v%d: {speed: m%d}\nz%d: {s_rel: k%d}\n", i, i, i, i)
	}
	r.contact = make([]bool, len(r.stops))
	r.sliding = math.Copysign(1, r.v[r.brake])
	return r, elements, outputs
}

func list(v []float64) string {
	var out []string
	for _, x := range v {
		out = append(out, fmt.Sprintf("%.17g", x))
	}
	return strings.Join(out, ", ")
}

// Random rows of affine springs, stops on both sides and a brake go as a solver says that
// knows nothing of the kernel, on any step and in either scheme.
func TestRandomRowsOfRegionsAndStopsAgreeWithAnotherSolver(t *testing.T) {
	impacts := 0
	for seed := range 16 {
		rnd := rand.New(rand.NewPCG(uint64(seed), 21))
		r, elements, outputs := randomRow(rnd)
		var benches []*modeltest.Bench
		for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond} {
			for _, scheme := range []kernel.Scheme{kernel.Complete, kernel.Papers} {
				benches = append(benches, modeltest.NewWith(t, modeltest.PlantOf(elements, outputs), kernel.Options{Period: period, Scheme: scheme}))
			}
		}
		for tick := range 200 {
			at := float64(tick+1) * 0.01
			if r.solveUntil(at); r.gaveUp {
				t.Fatalf("plant %d: the other solver does not get on at %g s", seed, r.t)
			}
			for _, b := range benches {
				if b.To(at, nil); b.Get("lag") != 0 {
					continue
				}
				for i := range r.m {
					z, _ := r.stretch(i)
					b.Is(fmt.Sprintf("v%d", i), r.v[i], 1e-8)
					b.Is(fmt.Sprintf("z%d", i), z, 1e-8)
				}
			}
			if t.Failed() {
				t.Fatalf("plant %d:\n%s", seed, elements)
			}
		}
		impacts += r.impacts
	}
	if impacts < 500 {
		t.Errorf("only %d impacts", impacts)
	}
}
