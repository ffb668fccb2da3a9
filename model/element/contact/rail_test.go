package contact_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// wheelOnRail is a driven wheel of radius 0.5 m under an axle with the mass of its load.
func wheelOnRail(contact, tau string, v float64) string {
	return fmt.Sprintf(`plant: t
elements:
  axle: {type: mass, m: 8000, v_start: %g}
  wheel: {type: inertia, J: 50, w_start: %g}
  drive: {type: torque, flange: wheel, tau: %s}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, %s}
outputs:
  v: {speed: axle}
  w: {speed: wheel}
  s: {position: axle}
  slip: {v_rel: contact}
  f: {force: contact}
  fn: {signal: contact.fn}
`, v, v/0.5, tau, contact)
}

// Each law follows its published formula while the wheel spins and is then braked to a slip in the
// other direction.
func TestAdhesionFollowsItsLaw(t *testing.T) {
	const fn = 80e3
	swing := "{table: [[0, 0], [1, 8000], [2, 8000], [4, -14000], [5, 0]]}"
	falling := func(mu0, A, x float64) float64 { return mu0 * ((1-A)*math.Exp(-x) + A) }
	creep := func(slip, T float64) float64 { return min(max(slip/T, -1), 1) }
	for _, c := range []struct {
		name, contact string
		want          func(slip, v float64) float64
	}{
		{"gyebroszki", "law: gyebroszki, fn: 80 kN, mu0: 0.1, A: 0.2, v_star: 5 m/s, T_sgn: 0.05 m/s", func(slip, v float64) float64 {
			return creep(slip, 0.05) * falling(0.1, 0.2, math.Abs(slip)/5) * fn
		}},
		{"curtius_kniffler", "law: curtius_kniffler, fn: 80 kN, T_sgn: 0.1 m/s, friction: 0.5", func(slip, v float64) float64 {
			return creep(slip, 0.1) * (7.5/(3.6*math.Abs(v)+44) + 0.161) * fn / 2
		}},
		{"polach", "law: polach, fn: 80 kN, mu0: 0.3, A: 0.4, B: 0.2 s/m, C: 2e13 N/m3, a_ellipse: 6 mm, b_ellipse: 5 mm, k_A: 0.5, k_S: 0.2, v_low: 4 m/s", func(slip, v float64) float64 {
			w := math.Abs(slip)
			mu := falling(0.3, 0.4, 0.2*w)
			e := 2. / 3 * 2e13 * math.Pi * 0.006 * 0.006 * 0.005 * (w / max(math.Abs(v), 4)) / (fn * mu)
			return math.Copysign(2*fn*mu/math.Pi*(0.5*e/(1+0.25*e*e)+math.Atan(0.2*e)), slip)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := modeltest.New(t, wheelOnRail(c.contact, swing, 3), 5*time.Millisecond)
			low, high, largest := 0.0, 0.0, 0.0
			b.To(6, func(at float64) {
				slip := b.Get("slip")
				want := c.want(slip, b.Get("v"))
				if f := b.Get("f"); !scalar.EqualWithinAbs(f, want, 1e-6*fn) {
					t.Fatalf("at %g s the slip is %g m/s and the force %.9g N, want %.9g", at, slip, f, want)
				}
				low, high, largest = min(low, slip), max(high, slip), max(largest, math.Abs(want))
			})
			if !(low < -0.5 && high > 0.05 && largest > 5e3) {
				t.Errorf("the slip goes from %g to %g m/s, the force to %g N: the law is not tried", low, high, largest)
			}
			// Axle and wheel exchange momentum: m·v + J·w/r changes by the drive alone.
			p := 8000*b.Get("v") + 50*b.Get("w")/0.5
			area := 8000*0.5 + 8000*1 + 2*(8000-14000)*0.5 - 14000*0.5
			if want := 8000*3.0 + 50*3/0.25 + area/0.5; !scalar.EqualWithinRel(p, want, 1e-9) {
				t.Errorf("the momentum is %.12g N.s, want %.12g", p, want)
			}
		})
	}
}

// Without T_sgn the contact locks a rolling wheel: below mu0·fn there is no slip, and the break-away
// is one event.
func TestRollingWheelHasNoSlipWithoutThreshold(t *testing.T) {
	b := modeltest.New(t, wheelOnRail("law: gyebroszki, fn: 80 kN, mu0: 0.1, A: 0.2, v_star: 5 m/s", "{ramp: {height: 8000, duration: 2}}", 3), 5*time.Millisecond)
	// In rolling the mass of axle and wheel is m + J/r². The force of the rail is tau/r less the
	// inertia force of the wheel: f = tau/r·m/(m + J/r²).
	breaks := 0.1 * 80e3 / (4000 / 0.5 * 8000 / (8000 + 50/0.25))
	at := math.NaN()
	b.To(1.5, func(now float64) {
		for _, e := range b.Kernel.Events() {
			at = e.Time
		}
		if s := b.Get("slip"); !(now >= breaks) && !(math.Abs(s) <= 1e-12) {
			t.Fatalf("at %g s the slip is %g m/s", now, s)
		}
	})
	if !scalar.EqualWithinAbs(at, breaks, 1e-9) || !(b.Get("slip") > 0.1) {
		t.Errorf("the wheel breaks away at %.12g s, want %.12g; the slip is then %g m/s", at, breaks, b.Get("slip"))
	}
}

// As the threshold goes to zero, the motion converges to that of the locked wheel.
func TestThresholdGoingToZeroLeadsToRolling(t *testing.T) {
	const law = "law: gyebroszki, fn: 80 kN, mu0: 0.1, A: 0.2, v_star: 5 m/s"
	drive := "{table: [[0, 0], [0.5, 6000], [1, -2000], [2, -2000]]}"
	held := modeltest.New(t, wheelOnRail(law, drive, 3), 5*time.Millisecond).To(2, nil).Get("s")
	before := math.Inf(1)
	for _, T := range []float64{0.1, 0.05, 0.025} {
		off := math.Abs(modeltest.New(t, wheelOnRail(fmt.Sprintf("%s, T_sgn: %g", law, T), drive, 3), 5*time.Millisecond).To(2, nil).Get("s") - held)
		if !(off <= 0.6*before && off > 0) {
			t.Errorf("with T_sgn %g m/s the way is off by %g m, before by %g m", T, off, before)
		}
		before = off
	}
}

// A locked wheel slides from dry to wet rail: v² falls by 2·mu·g per metre.
func TestTrackConditionFollowsTheDistance(t *testing.T) {
	b := modeltest.New(t, `plant: t
elements:
  axle: {type: mass, m: 8000, v_start: 10, s_start: -5}
  wheel: {type: inertia, J: 50}
  lock: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 1e6}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 1, v_star: 1, fn: 80 kN, way: [[10, 1], [10.5, 0.25], [20, 0.25]]}
outputs:
  v: {speed: axle}
  s: {position: axle}
  f: {force: contact}
`, 5*time.Millisecond)
	g := 0.2 * 80e3 / 8000
	b.To(3, func(at float64) {
		s := b.Get("s")
		fall := min(s, 10) + 5
		if x := min(max(s-10, 0), 0.5); x > 0 {
			fall += x - 0.75*x*x // factor 1 - 1.5·x
		}
		fall += 0.25 * max(0, s-10.5)
		b.Is("v", math.Sqrt(100-2*g*fall), 1e-8)
	})
	b.Is("f", -0.25*0.2*80e3, 1e-9)
}

// The normal force can depend on forces of elements and on the used share of a brake's capacity.
// Here the brake block lifts the locked, sliding wheel by its own force: f = mu·(N - f).
func TestNormalForceReadsForcesAndShares(t *testing.T) {
	b := modeltest.New(t, `plant: t
inputs: {block: {unit: N, default: 30 kN}}
elements:
  ground: {type: fixed}
  axle: {type: mass, m: 8000, v_start: 10}
  bob: {type: mass, m: 1000, s_start: 0.01}
  hang: {type: spring, a: bob, b: ground, c: 1e6}
  wheel: {type: inertia, J: 50}
  brake: {type: brake, flange: wheel, mu: 1, cgeo: 0.5, fn: block}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 1, v_star: 1, T_sgn: 0.01, fn: {sum: [80 kN, hang.f, {product: [block, -1, brake.share]}]}}
outputs:
  slip: {v_rel: contact}
  f: {force: contact}
  fn: {signal: contact.fn}
  hang: {signal: hang.f}
  share: {signal: brake.share}
`, 5*time.Millisecond)
	b.To(2, func(at float64) {
		hang := -1e4 * math.Cos(math.Sqrt(1e3)*at)
		f := 0.2 * (80e3 + hang) / (1 + 0.2)
		b.Is("hang", hang, 1e-9)
		b.Is("f", -f, 1e-9)
		b.Is("share", f*0.5/(30e3*0.5), 1e-9)
	})
}

// A lifted wheel transmits no force; after touch-down it does.
func TestLiftedWheelTransmitsNothing(t *testing.T) {
	for _, threshold := range []string{"", ", T_sgn: 0.05"} {
		b := modeltest.New(t, wheelOnRail("law: curtius_kniffler, fn: {sine: {amplitude: 80 kN, f: 1 Hz, offset: 20 kN}}"+threshold, "500", 3), 5*time.Millisecond)
		lifted := 0
		b.To(3, func(at float64) {
			if b.Get("fn") < -1 {
				lifted++
				b.Is("f", 0, 1e-9)
			}
		})
		if lifted < 200 {
			t.Errorf("the wheel is lifted for %d ticks only", lifted)
		}
		if f := b.To(3.25, nil).Get("f"); !(f > 100) {
			t.Errorf("back on the rail the force is %g N", f)
		}
	}
}
