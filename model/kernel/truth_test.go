package kernel

import (
	"math"
	"regexp"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/hil_test/truth"
)

// The reference solution is accurate to 1e-9.
func TestPowershiftFollowsTheReferenceOnEveryGrid(t *testing.T) {
	table := powershiftTruth(t)
	rows, span := table.Rows, table.Spans()[1:]
	for _, period := range []int{1, 5, 10} {
		for _, scheme := range bothSchemes {
			k := start(t, powershift(), Options{Period: ms(period), Scheme: scheme})
			worst, behind, lagMax := 0.0, 0, 0.0
			for i := period; i <= 3500; i += period {
				k.step()
				lagMax = max(lagMax, k.lagOut())
				if k.lagOut() > 0 {
					behind++
				}
				for j, w := range rows[i][1:] {
					if !scalar.EqualWithinAbs(k.y[j], w, 1e-9*span[j]) {
						t.Fatalf("%d ms %s: t = %g s: w%d = %.12g, want %.12g rad/s", period, scheme, rows[i][0], j+1, k.y[j], w)
					}
					worst = max(worst, math.Abs(k.y[j]-w)/span[j])
				}
			}
			if k.lagOut() != 0 || scheme == Complete && behind > 0 || scheme == Papers && lagMax == 0 {
				t.Errorf("%d ms %s: lag %g s at the end, > 0 in %d rows, at most %g s", period, scheme, k.lagOut(), behind, lagMax)
			}
			t.Logf("%2d ms %-8s: worst %.1e of the range; %d rows with lag, at most %.3g s", period, scheme, worst, behind, lagMax)
		}
	}
}

// The error of the papers' form, which holds the lock torque over a step. The bounds are
// the issue's.
func TestHeldFormEndsNearTheReference(t *testing.T) {
	rows := powershiftTruth(t).Rows
	for period, tol := range map[int]float64{5: 1e-4, 1: 1e-6} {
		for _, scheme := range bothSchemes {
			k := start(t, powershift(), Options{Period: ms(period), Scheme: scheme, Form: Held})
			for range 3500 / period {
				k.step()
			}
			worst := 0.0
			for j, w := range rows[3500][1:] {
				if !scalar.EqualWithinRel(k.y[j], w, tol) {
					t.Errorf("%d ms %s: w%d ends at %.9g, want %.9g rad/s", period, scheme, j+1, k.y[j], w)
				}
				worst = max(worst, math.Abs(k.y[j]/w-1))
			}
			t.Logf("%d ms %-8s: %.1e relative at the end", period, scheme, worst)
		}
	}
}

// happening is a lock, a break-away or a crossing of one clutch.
type happening struct {
	kind   string // lock, unlock, cross
	clutch int
	t      float64 // s
}

func readHappenings(t *testing.T) (out []happening) {
	t.Helper()
	name := regexp.MustCompile(`^(lock|unlock|cross)(\d)$`)
	for _, e := range truth.ReadEvents(t, "testdata/H_powershift_events.csv") {
		if f := name.FindStringSubmatch(e.Name); f != nil {
			out = append(out, happening{f[1], int(f[2][0] - '1'), e.Time})
		}
	}
	if len(out) != 13 { // zero4_free is none: the clutch has no capacity then
		t.Fatalf("events file has %d locks, break-aways and crossings, want 13", len(out))
	}
	return out
}

// observe turns transitions into happenings. Gaining or losing capacity is not one, except that a
// lock whose capacity went to zero has broken away.
func observe(e Event) (happening, bool) {
	h := happening{clutch: e.Friction, t: e.Time}
	switch {
	case e.To == Stuck:
		h.kind = "lock"
	case e.From == Stuck:
		h.kind = "unlock"
	case e.From != Free && e.To != Free:
		h.kind = "cross"
	default:
		return h, false
	}
	return h, true
}

func TestOnlyTheReferenceLocksAndBreakawaysOccur(t *testing.T) {
	want := readHappenings(t)
	for _, period := range []int{1, 5, 10} {
		for _, scheme := range bothSchemes {
			for _, form := range bothForms {
				tol := 1e-8 // s
				if form == Held {
					tol = float64(period) * 1e-3
				}
				compareHappenings(t, want, start(t, powershift(), Options{Period: ms(period), Scheme: scheme, Form: form}), tol)
			}
		}
	}
}

func compareHappenings(t *testing.T, want []happening, k *run, tol float64) {
	t.Helper()
	left := append([]happening(nil), want...)
	worst := 0.0
	for range int(3.5/k.h + 0.5) {
		k.step()
		for _, e := range k.Events() {
			h, ok := observe(e)
			if !ok {
				continue
			}
			found := false
			for i, w := range left {
				if w.kind == h.kind && w.clutch == h.clutch && scalar.EqualWithinAbs(w.t, h.t, tol) {
					worst = max(worst, math.Abs(h.t-w.t))
					left = append(left[:i], left[i+1:]...)
					found = true
					break
				}
			}
			if !found && !(k.t.Form == Held && h.kind == "cross") {
				t.Errorf("%g s %s %s: %s%d at %.9g s is not in the file", k.h, k.t.Scheme, k.t.Form, h.kind, h.clutch+1, h.t)
			}
		}
	}
	for _, w := range left {
		t.Errorf("%g s %s %s: %s%d at %.9g s was not found", k.h, k.t.Scheme, k.t.Form, w.kind, w.clutch+1, w.t)
	}
	t.Logf("%5g s %-8s %-9s: times within %.1e s", k.h, k.t.Scheme, k.t.Form, worst)
}

// truthGears are the four gears of the truth and their ratios.
var truthGears = []struct {
	clutch gear
	ratio  float64
}{{gear{0, 2, 5}, 48}, {gear{1, 2, 5}, 32}, {gear{0, 4, 5}, 24}, {gear{1, 3, 6}, 12}}

func TestLockedGearHasItsExactRatio(t *testing.T) {
	for _, scheme := range bothSchemes {
		for _, form := range bothForms {
			k := start(t, powershift(), Options{Period: ms(5), Scheme: scheme, Form: form})
			seen := [4]int{}
			for range 700 {
				k.step()
				for g, want := range truthGears {
					if k.modeOf(want.clutch[0]) != Stuck || k.modeOf(want.clutch[1]) != Stuck || k.modeOf(want.clutch[2]) != Stuck {
						continue
					}
					seen[g]++
					if r := k.y[0] / -k.y[3]; !scalar.EqualWithinAbs(r, want.ratio, 1e-9) {
						t.Fatalf("%s %s: tick %d: ratio %.15g, want %g", scheme, form, k.tick, r, want.ratio)
					}
				}
			}
			for g, n := range seen {
				if n < 50 {
					t.Errorf("%s %s: ratio %g held at %d steps only", scheme, form, truthGears[g].ratio, n)
				}
			}
		}
	}
}

// The plant has no drag and has the angles of shafts 1 and 4 as states. The work of the sources is
// exactly 250·dtheta1 + 1500·dtheta4; the rest of the change of energy is the work of friction.
// 1e-8 J is the rounding of an energy of 1e5 J; 1e-5 J is the limit for the lock torque held over a
// step.
func TestFrictionNeverCreatesEnergy(t *testing.T) {
	for _, period := range []int{1, 5, 10} {
		for _, scheme := range bothSchemes {
			for form, tol := range map[Form]float64{Projected: 1e-8, Held: 1e-5} {
				sys := withAngles(frictionless(powershift()), 0, 3)
				k := start(t, sys, Options{Period: ms(period), Scheme: scheme, Form: form})
				before, worst, total := append([]float64(nil), k.y[:6]...), math.Inf(-1), 0.0
				for range 3500 / period {
					k.step()
					x := k.y[:6]
					work := energy(sys, x) - energy(sys, before) - 250*(x[4]-before[4]) - 1500*(x[5]-before[5])
					if !(work <= tol) && (form == Projected || period <= 5) {
						t.Errorf("%d ms %s %s: friction does %g J up to tick %d", period, scheme, form, work, k.tick)
					}
					worst, total = max(worst, work), total+work
					copy(before, x)
				}
				if !(total < -1e4) {
					t.Errorf("%d ms %s %s: friction takes %g J in all, want more than 1e4", period, scheme, form, -total)
				}
				t.Logf("%2d ms %-8s %-9s: at most %.2g J in a step, %.6g J in all", period, scheme, form, worst, total)
			}
		}
	}
}

// The plant as it is, drag included: over a step without an event the drag takes
// h/2·(f0+f1) + h²/12·(f0'-f1') with f = sum of b·w², good to 1e-9 J here.
func TestHeldLockTorqueDoesAlmostNoWork(t *testing.T) {
	for form, tol := range map[Form]float64{Projected: 1e-8, Held: 1e-5} {
		sys := withAngles(powershift(), 0, 3)
		k := start(t, sys, Options{Period: ms(5), Form: form})
		drag := func(at float64, x []float64) (f, rate float64) {
			k.setSignals(x, at-k.gridTime(), 0)
			k.setInstant(0)
			mul(k.xd, k.t.Modes[k.kappa[0]].A, x)
			mulAdd(k.xd, k.t.Modes[k.kappa[0]].B, k.w)
			for i, b := range psB {
				f += b * x[i] * x[i]
				rate += 2 * b * x[i] * k.xd[i]
			}
			return f, rate
		}
		before, worst, steps := append([]float64(nil), k.y[:6]...), math.Inf(-1), 0
		for range 700 {
			k.step()
			x := k.y[:6]
			if len(k.Events()) == 0 {
				f0, r0 := drag(float64(k.tick-1)*k.h, before)
				f1, r1 := drag(float64(k.tick)*k.h, x)
				work := energy(sys, x) - energy(sys, before) - 250*(x[4]-before[4]) - 1500*(x[5]-before[5]) +
					k.h/2*(f0+f1) + k.h*k.h/12*(r0-r1)
				if !(work <= tol) {
					t.Errorf("%s: friction does %g J in tick %d", form, work, k.tick)
				}
				worst = max(worst, work)
				steps++
			}
			copy(before, x)
		}
		if steps < 600 {
			t.Errorf("%s: only %d steps without an event", form, steps)
		}
		t.Logf("%-9s: at most %.2g J in a step", form, worst)
	}
}
