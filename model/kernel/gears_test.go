package kernel

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

// Command of each clutch that is to lock, N (from the reference solution).
var psFull = [8]float64{900, 1200, 3500, 3500, 3500, 9000, 9000, 9000}

// gear is a choice of one clutch on each pair of shafts.
type gear [3]int

// allGears are the 18 gears: {1,2} × {3,4,5} × {6,7,8}.
func allGears() (out []gear) {
	for _, a := range []int{0, 1} {
		for _, b := range []int{2, 3, 4} {
			for _, c := range []int{5, 6, 7} {
				out = append(out, gear{a, b, c})
			}
		}
	}
	return out
}

// ratio is w1 over -w4.
func (g gear) ratio() float64 {
	r := 1.0
	for shaft, clutch := range g {
		r *= psR[clutch][shaft+1] / psR[clutch][shaft]
	}
	return r
}

func (g gear) has(clutch int) bool { return clutch == g[0] || clutch == g[1] || clutch == g[2] }

// locked reports whether exactly the clutches of g are locked.
func (k *run) locked(g gear) bool {
	for c := range 8 {
		if (k.modeOf(c) == Stuck) != g.has(c) {
			return false
		}
	}
	return true
}

// shift commands a change of gear, s seconds after its start. Opening clutches are free after
// 0.06 s; closing clutches have full capacity after 0.2 s.
func (k *run) shift(from, to gear, s float64) {
	for c := range 8 {
		switch {
		case from.has(c) && to.has(c):
			k.u[c] = psFull[c]
		case from.has(c):
			k.u[c] = psFull[c] * max(0, 1-s/0.06)
		case to.has(c):
			k.u[c] = psFull[c] * min(1, s/0.2)
		default:
			k.u[c] = 0
		}
	}
	k.step()
}

// engage shifts until the gear is locked and checks its exact ratio for another 0.1 s. It returns the
// number of ticks until the lock.
func (k *run) engage(t *testing.T, from, to gear) int {
	t.Helper()
	const most, hold = 1000, 20 // ticks of 5 ms
	took := 0
	for i := 0; i < most; i++ {
		k.shift(from, to, float64(i+1)*k.h)
		for j := range 4 {
			if !(math.Abs(k.y[j]) < 1e4) {
				t.Fatalf("%v to %v: w%d = %g rad/s", from, to, j+1, k.y[j])
			}
		}
		switch {
		case i < 40 || took == 0 && (!k.locked(to) || k.lagOut() > 0):
			continue
		case took == 0:
			took = i + 1
		}
		if !k.locked(to) || !scalar.EqualWithinAbsOrRel(k.y[0], -to.ratio()*k.y[3], 1e-9, 1e-12) {
			t.Fatalf("%v to %v: modes %v, w1 = %.15g, w4 = %.15g rad/s, want the ratio %g", from, to, k.mode, k.y[0], k.y[3], to.ratio())
		}
		if i+1 == took+hold {
			return took
		}
	}
	t.Fatalf("%v to %v: not locked after %d ticks; modes %v, speeds %v", from, to, most, k.mode, k.y[:4])
	return 0
}

// allDriven marks the capacities of a powershift as commanded by a control unit.
var allDriven = []bool{true, true, true, true, true, true, true, true}

func TestEveryGearEngagesAndEveryShiftLocksAtItsRatio(t *testing.T) {
	list := allGears()
	for _, scheme := range bothSchemes {
		for _, form := range bothForms {
			k := start(t, powershift(), Options{Period: ms(5), Scheme: scheme, Form: form, Driven: allDriven})
			shifts, longest, first := 0, 0, gear{0, 2, 5}
			for i, a := range list {
				for j, b := range list {
					if i == j {
						continue
					}
					k.Reset()
					k.engage(t, first, a)
					longest = max(longest, k.engage(t, a, b))
					shifts++
				}
			}
			if shifts != 2*153 {
				t.Errorf("%d shifts, want 153 in both directions", shifts)
			}
			t.Logf("%-8s %-9s: %d shifts, the longest takes %d ticks of 5 ms", scheme, form, shifts, longest)
		}
	}
}
