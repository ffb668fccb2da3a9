package mechanics_test

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// With damping the contact pushes only, and the energy falls; the two laws differ by
// the jump at the contact.
func TestDampedBacklashPushesOnly(t *testing.T) {
	for _, kind := range []string{"elasto_backlash", "elasto_backlash2"} {
		b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 2, w_start: 0.97}
ground: {type: fixed}
k: {type: `+kind+`, a: ground, b: a, c: 500, d: 5, backlash: 0.1}`, "w: {speed: a}\nphi: {phi_rel: k}\ntau: {torque: k}"), time.Millisecond)
		before, hit := 0.97*0.97, 0.0
		b.To(5, func(at float64) {
			w, phi, tau := b.Get("w"), b.Get("phi"), b.Get("tau")
			deep := max(0, math.Abs(phi)-0.05)
			if !(tau*phi >= -1e-9) || deep == 0 && !(math.Abs(tau) <= 1e-9) {
				t.Fatalf("%s: torque %g N·m at %g rad, %g s", kind, tau, phi, at)
			}
			if e := w*w + 250*deep*deep; !(e <= before+1e-9) {
				t.Fatalf("%s: energy rises from %g to %g J at %g s", kind, before, e, at)
			} else {
				before = e
			}
			if hit == 0 && deep > 0 {
				hit = tau
			}
		})
		if !(before < 0.85) {
			t.Errorf("%s: energy %g J is left of 0.94", kind, before)
		}
		if jump := kind == "elasto_backlash2"; jump != (hit > 4) {
			t.Errorf("%s: the torque after the contact is %g N·m", kind, hit)
		}
	}
}

// Two masses on a spring of rest length 0.2: the middle stays, they swing with
// sqrt(c·(1/m1 + 1/m2)).
func TestTranslationalSpringStartsFromThePositions(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
one: {type: mass, m: 2, s_start: 0}
two: {type: mass, m: 3, s_start: 0.5}
k: {type: spring, a: one, b: two, c: 120, s_rel0: 0.2}`, "gap: {s_rel: k}\nf: {force: k}\nv: {v_rel: k}\none: {force: k, onto: one}"), 5*time.Millisecond)
	w := math.Sqrt(120 * (1/2. + 1/3.))
	b.To(1.7, func(at float64) {
		b.Is("gap", 0.2+0.3*math.Cos(w*at), 1e-9)
		b.Is("f", 120*0.3*math.Cos(w*at), 1e-7)
		b.Is("one", 120*0.3*math.Cos(w*at), 1e-7)
		b.Is("v", -0.3*w*math.Sin(w*at), 1e-8)
	})
}

// A speed source on a moving support: the speed is relative, momentum is kept.
func TestSpeedSourceOnASupportKeepsMomentum(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
rotor: {type: inertia, J: 1, w_start: 2}
stator: {type: inertia, J: 4, w_start: 2}
s: {type: speed, flange: rotor, support: stator, exact: true, w_ref: {ramp: {height: 10, duration: 1}}}`,
		"r: {speed: rotor}\ns: {speed: stator}\ntau: {torque: s}"), 5*time.Millisecond).To(0.5, nil)
	b.Is("r", 2+5*0.8, 1e-9)
	b.Is("s", 2-5*0.2, 1e-9)
	b.Is("tau", 8, 1e-9) // of the rotor, against the stator
}

// A wheel on a moving belt: w·radius = v - v_belt.
func TestRollingWheelOnAMovingBelt(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
wheel: {type: inertia, J: 0.5}
car: {type: mass, m: 10, v_start: 4}
belt: {type: mass, m: 1000, v_start: 1}
tyre: {type: ideal_rolling_wheel, a: wheel, b: car, radius: 0.5, support_t: belt}`, "w: {speed: wheel}\nv: {speed: car}\nb: {speed: belt}"), 5*time.Millisecond).To(1, nil)
	b.Is("w", 6, 1e-12)
	b.Is("v", 4, 1e-12)
	b.Is("b", 1, 1e-12)
}

// C·T' = tau·w - G·(T - T_ambient): heat is stored in C or leaves through G.
func TestEddyBrakeHeatsAndCools(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1, w_start: 50}
e: {type: eddy_current_torque, flange: body, tau_nominal: 20, w_nominal: 10, C: 5, G: 0.5, T_ambient: 300 K, T_start: 300 K}`,
		"w: {speed: body}\nT: {state: e.T}\nP: {signal: e.lossPower}"), time.Millisecond)
	left, last := 0.0, 300.0
	b.To(10, func(float64) {
		T := b.Get("T")
		left += 0.5 * ((T+last)/2 - 300) * 0.001
		last = T
	})
	w := b.Get("w")
	if got, want := 5*(last-300)+left, 0.5*(50*50-w*w); !scalar.EqualWithinRel(got, want, 1e-6) {
		t.Errorf("heat %g J from %g J of motion", got, want)
	}
}

// As in the Modelica library, alpha20 holds at 20 degC and is converted to TRef: the resistance at
// 180 degC over that at 100 degC is (1 + alpha20*160)/(1 + alpha20*80).
func TestEddyBrakeConvertsItsTemperatureCoefficient(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1, w_start: 50}
e: {type: eddy_current_torque, flange: body, tau_nominal: 20, w_nominal: 10, alpha20: 4e-3, TRef: 100 degC, T_start: 180 degC}`,
		"tau: {torque: e}"), time.Millisecond)
	x := 5 / ((1 + 4e-3*160) / (1 + 4e-3*80))
	b.Is("tau", 2*20*x/(1+x*x), 1e-12)
}

// A filtered source starts at its own value, as in the Modelica library, unless the file gives the
// flange another one.
func TestFilteredSourcesStartAtTheirValue(t *testing.T) {
	b := modeltest.New(t, `plant: t
inputs: {v: {unit: rpm, default: 60}}
elements:
  a: {type: inertia, J: 1}
  d: {type: speed, flange: a, w_ref: 5 rad/s}
  b: {type: inertia, J: 1, w_start: 1}
  e: {type: speed, flange: b, w_ref: 5 rad/s}
  c: {type: inertia, J: 1}
  f: {type: speed, flange: c, w_ref: v}
  g: {type: inertia, J: 1}
  free: {type: inertia, J: 1}
  h: {type: position, flange: g, phi_ref: {sine: {amplitude: 1 rad, f: 1 Hz, phase: 90 deg}}}
outputs: {a: {speed: a}, b: {speed: b}, c: {speed: c}, g: {angle: g}}
`, time.Millisecond)
	b.Is("a", 5, 1e-12)
	b.Is("b", 1, 1e-12)
	b.Is("c", 2*math.Pi, 1e-12)
	b.Is("g", 1, 1e-12)
	b.To(0.1, nil)
	b.Is("a", 5, 1e-9)
	b.Is("c", 2*math.Pi, 1e-9)
}
