package kernel

import (
	"math"
	"math/bits"
	"math/rand"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"lockstep/model"
)

// under is a powershift without drag, at rest, with constant capacities and a
// load on shaft 4 that drives it forward.
func under(capacity [8]float64, load model.Source) *model.System {
	s := frictionless(powershift())
	clear(s.X0)
	for c, v := range capacity {
		s.Signals[c].Source = always(v)
	}
	s.Signals[9].Source = load
	return s
}

// rankOf returns the number of independent rows of the radii of a set of clutches.
func rankOf(set uint32) int {
	if set == 0 {
		return 0
	}
	var rows []float64
	for c := range 8 {
		if set>>c&1 == 1 {
			rows = append(rows, psR[c][:]...)
		}
	}
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(bits.OnesCount32(set), 4, rows), mat.SVDNone) {
		return -1
	}
	return svd.Rank(1e-9)
}

// All 256 sets of clutches close at once with 100 kN each, from a moving start. Friction adds no
// energy, locked elements do not slip, and a set of full rank is at rest.
func TestEveryLockSetHoldsItsElementsOnly(t *testing.T) {
	for _, scheme := range bothSchemes {
		for _, form := range bothForms {
			sys := withAngles(frictionless(powershift()), 0, 3)
			k := start(t, sys, Options{Period: ms(5), Scheme: scheme, Form: form, Driven: allDriven})
			for set := range uint32(256) {
				k.Reset()
				k.Output(k.y)
				for c := range 8 {
					k.u[c] = 1e5 * float64(set>>c&1)
				}
				before := append([]float64(nil), k.y[:6]...)
				for range 100 {
					k.step()
					checkSet(t, k, set)
					if k.lagOut() > 0 {
						continue
					}
					x := k.y[:6]
					work := energy(sys, x) - energy(sys, before) - 250*(x[4]-before[4]) - 1500*(x[5]-before[5])
					if !(work <= 1e-8) {
						t.Fatalf("%s %s set %08b: friction does %g J in tick %d", scheme, form, set, work, k.tick)
					}
					copy(before, x)
				}
				for c := range 8 {
					if want := set>>c&1 == 1; (k.modeOf(c) == Stuck) != want {
						t.Fatalf("%s %s set %08b: clutch %d ends in mode %d", scheme, form, set, c+1, k.modeOf(c))
					}
				}
				if rest := rankOf(set) == 4; rest && !scalar.EqualWithinAbs(math.Abs(k.y[0])+math.Abs(k.y[3]), 0, 1e-9) {
					t.Fatalf("%s %s set %08b: speeds %v, want rest", scheme, form, set, k.y[:4])
				}
			}
		}
	}
}

// checkSet fails on values that are not finite or not possible in this tick.
func checkSet(t *testing.T, k *run, set uint32) {
	t.Helper()
	for i, v := range k.y {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Fatalf("set %08b: tick %d: %s = %g", set, k.tick, k.t.Outputs[i].Name, v)
		}
	}
	for c := range 8 {
		if k.modeOf(c) == Stuck && !scalar.EqualWithinAbs(k.slipOf(c), 0, 1e-9) {
			t.Fatalf("%s %s set %08b: tick %d: clutch %d is stuck and slips %g m/s", k.t.Scheme, k.t.Form, set, k.tick, c+1, k.slipOf(c))
		}
	}
}

// Clutches 6, 7 and 8 hold shaft 4 against 1500 N·m, shaft 3 carries nothing:
//
//	lambda6 + lambda7 + lambda8 = 0       4·lambda6 + 2·lambda7 + lambda8 = 1500
//
// so lambda7 = 1500 - 3·lambda6 and lambda8 = 2·lambda6 - 1500. The split of
// smallest norm is (536, -107, -429); the capacities 505, 30, 510 admit 495 to
// 505 for lambda6 only.
func TestLocksHoldWhereAnAdmissibleSplitExists(t *testing.T) {
	for _, scheme := range bothSchemes {
		for _, form := range bothForms {
			for _, load := range []float64{1500, -1500} {
				k := start(t, under([8]float64{5: 505, 6: 30, 7: 510}, always(load)), Options{Period: ms(5), Scheme: scheme, Form: form})
				for range 400 {
					k.step()
					if !scalar.EqualWithinAbs(k.y[3], 0, 1e-12) || !scalar.EqualWithinAbs(k.y[2], 0, 1e-12) || k.transOut() != 0 || k.lagOut() != 0 {
						t.Fatalf("%s %s load %g: tick %d: w3 = %g, w4 = %g rad/s, %g transitions, lag %g s",
							scheme, form, load, k.tick, k.y[2], k.y[3], k.transOut(), k.lagOut())
					}
					if l6, l7, l8 := k.tauOf(5), k.tauOf(6), k.tauOf(7); !(math.Abs(l6) <= 505) || !(math.Abs(l7) <= 30) || !(math.Abs(l8) <= 510) ||
						!scalar.EqualWithinAbs(l6+l7+l8, 0, 1e-9) || !scalar.EqualWithinAbs(4*l6+2*l7+l8, load, 1e-9) {
						t.Fatalf("%s %s load %g: split %g, %g, %g N", scheme, form, load, l6, l7, l8)
					}
				}
			}
		}
	}
}

// With 480, 30 and 500 there is none (lambda7 = 1500 - 3·480 = 60). Clutch 7
// stays: w3 = -2·w4, so slip6 = 2·w4 > 0 gives 480 and slip8 = -w4 < 0 gives
// -500. With a = w4': 0.5·(-2a) = -(480 + lambda7 - 500), so lambda7 = 20 + a;
// 2500·a = 1500 - 4·480 - 2·lambda7 + 500, so a = 40/2502, lambda7 below 30.
func TestLocksSlipWhereNoAdmissibleSplitExists(t *testing.T) {
	const a = 40. / 2502
	for _, scheme := range bothSchemes {
		for _, form := range bothForms {
			k := start(t, under([8]float64{5: 480, 6: 30, 7: 500}, always(1500)), Options{Period: ms(5), Scheme: scheme, Form: form})
			for range 400 {
				k.step()
				at := float64(k.tick) * k.h
				if !scalar.EqualWithinAbs(k.y[3], a*at, 1e-10) || !scalar.EqualWithinAbs(k.y[2], -2*a*at, 1e-10) || k.transOut() != 0 {
					t.Fatalf("%s %s: w3(%g s) = %.12g, w4 = %.12g rad/s, want %.12g and %.12g; %g transitions",
						scheme, form, at, k.y[2], k.y[3], -2*a*at, a*at, k.transOut())
				}
			}
			if k.modeOf(5) != Forward || k.modeOf(6) != Stuck || k.modeOf(7) != Backward || !scalar.EqualWithinAbs(k.tauOf(6), 20+a, 1e-9) {
				t.Errorf("%s %s: modes %v, tau7 = %g N, want 1, 0, -1 and %g", scheme, form, k.mode[5:], k.tauOf(6), 20+a)
			}
		}
	}
}

// With 500 each, the clutches hold a load up to 1500 N·m (lambda 500, 0, -500). The load rises by
// 1000 N·m per second.
func TestRampThroughTheLimitBreaksRedundantLocksInTime(t *testing.T) {
	for _, scheme := range bothSchemes {
		for _, period := range []int{1, 5, 10} {
			k := start(t, under([8]float64{5: 500, 6: 500, 7: 500}, table(0, 0, 3, 3000)), Options{Period: ms(period), Scheme: scheme})
			off, spent := math.Inf(1), 0
			for range 2000 / period {
				k.step()
				for _, e := range k.Events() {
					off = min(off, e.Time)
					spent++
				}
				if !(k.lagOut() <= 0) && scheme == Complete {
					t.Fatalf("%s %d ms: lag %g s at tick %d", scheme, period, k.lagOut(), k.tick)
				}
			}
			if !scalar.EqualWithinAbs(off, 1.5, k.h) || spent > 3 {
				t.Errorf("%s %d ms: breaks at %g s, want 1.5; %d transitions", scheme, period, off, spent)
			}
			if !(k.y[3] > 0) {
				t.Errorf("%s %d ms: w4 = %g rad/s under a load beyond the limit", scheme, period, k.y[3])
			}
			t.Logf("%-8s %2d ms: breaks %.2g s off, %d transitions", scheme, period, off-1.5, spent)
		}
	}
}

// feasible reports whether torques within slack times the capacities hold the load on shaft 4:
// R^T·lambda = (0, 0, 0, load). If a solution exists, a vertex is one. In a vertex all torques
// except as many as there are equations are at their bound. feasible tries all vertices.
func feasible(set uint32, capacity [8]float64, load, slack float64) bool {
	var clutch []int
	for c := range 8 {
		if set>>c&1 == 1 {
			clutch = append(clutch, c)
		}
	}
	rank := rankOf(set)
	for basis := range uint32(1) << len(clutch) {
		if bits.OnesCount32(basis) != rank {
			continue
		}
		for bound := range uint32(1) << len(clutch) {
			if bound&basis == 0 && vertex(clutch, basis, bound, capacity, load, slack) {
				return true
			}
		}
	}
	return false
}

func vertex(clutch []int, basis, bound uint32, capacity [8]float64, load, slack float64) bool {
	rhs := [4]float64{0, 0, 0, load}
	var cols []int
	for i, c := range clutch {
		if basis>>i&1 == 1 {
			cols = append(cols, c)
			continue
		}
		for s := range 4 {
			rhs[s] -= (2*float64(bound>>i&1) - 1) * capacity[c] * slack * psR[c][s]
		}
	}
	a := mat.NewDense(4, len(cols), nil)
	for j, c := range cols {
		for s := range 4 {
			a.Set(s, j, psR[c][s])
		}
	}
	var x mat.VecDense
	if x.SolveVec(a, mat.NewVecDense(4, rhs[:])) != nil {
		return false
	}
	var back mat.VecDense
	back.MulVec(a, &x)
	for s := range 4 {
		if !scalar.EqualWithinAbs(back.AtVec(s), rhs[s], 1e-6) {
			return false
		}
	}
	for j, c := range cols {
		if !(math.Abs(x.AtVec(j)) <= capacity[c]*slack) {
			return false
		}
	}
	return true
}

// Sets with one, two and three redundant locks and random capacities carry a load on shaft 4. They
// hold exactly if a vertex of the admissible splits exists. Cases within 0.1 % of the limit are
// skipped.
func TestRedundantLocksHoldExactlyIfALinearProgramIsFeasible(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	held, moved := 0, 0
	for _, load := range []float64{1500, -1500} {
		sys := under([8]float64{}, always(load))
		k := start(t, sys, Options{Period: ms(5), Driven: allDriven})
		for _, set := range []uint32{0b11100000, 0b11111000, 0b11111100, 0b11110100, 0b01111100} {
			for range 150 {
				var capacity [8]float64
				for c := range 8 {
					if set>>c&1 == 1 {
						capacity[c] = 1200 * rnd.Float64()
					}
				}
				hold := feasible(set, capacity, load, 1)
				if feasible(set, capacity, load, 0.999) != feasible(set, capacity, load, 1.001) {
					continue
				}
				k.Reset()
				copy(k.u, capacity[:])
				k.step()
				engaged := k.transOut()
				for range 40 {
					k.step()
				}
				still := scalar.EqualWithinAbs(k.y[1], 0, 1e-12) && scalar.EqualWithinAbs(k.y[2], 0, 1e-12) && scalar.EqualWithinAbs(k.y[3], 0, 1e-12)
				if still != hold || still && k.transOut() != engaged {
					t.Errorf("set %08b capacities %.5g load %.5g: admissible split %t, speeds %v, %g transitions more",
						set, capacity, load, hold, k.y[1:4], k.transOut()-engaged)
				}
				if hold {
					held++
				} else {
					moved++
				}
			}
		}
	}
	if held < 200 || moved < 200 {
		t.Errorf("%d cases hold and %d move: too few to tell", held, moved)
	}
	t.Logf("%d hold, %d move", held, moved)
}
