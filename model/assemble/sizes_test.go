package assemble_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// The force of a spring presses the wheel; the file does not give its size. The slope
// of the contact is then 5e3 1/s. At 5 ms the motion equals that of short steps, both with a spring
// that starts loaded and with one that starts relaxed and is loaded later.
func TestContactUnderASpringIsAccurateAtEveryPeriod(t *testing.T) {
	for relaxed, bound := range map[string]float64{"0.0981": 1e-9, "0": 2e-6} {
		v, w := sprung(t, relaxed, 5*time.Millisecond)
		short, turns := sprung(t, relaxed, 100*time.Microsecond)
		if !(math.Abs(v-short) <= bound && math.Abs(w-turns) <= bound) {
			t.Errorf("relaxed at %s m axle and wheel do %.12g m/s and %.12g rad/s at 5 ms, %.12g and %.12g at 0.1 ms", relaxed, v, w, short, turns)
		}
	}
}

// sprung returns the speeds of axle and wheel after 2 s.
func sprung(t *testing.T, relaxed string, step time.Duration) (v, w float64) {
	b := modeltest.New(t, fmt.Sprintf(`plant: t
elements:
  road: {type: fixed}
  load: {type: mass, m: 10 t, s_start: 0}
  weight: {type: force, flange: load, f: -98.1 kN}
  spring: {type: spring_damper, a: road, b: load, c: 1e6, d: 1e4, s_rel0: %s}
  axle: {type: mass, m: 10 t, v_start: 3}
  wheel: {type: inertia, J: 100, w_start: 6}
  drive: {type: torque, flange: wheel, tau: {table: [[0, 0], [0.5, 4000]]}}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.1, A: 0.2, v_star: 5, T_sgn: 0.01, fn: {product: [-1, spring.f]}}
outputs:
  v: {speed: axle}
  w: {speed: wheel}
`, relaxed), step).To(2, nil)
	return b.Get("v"), b.Get("w")
}

// J·w' = tau - c·w²: from 100 rad/s without torque w falls as 1/(1/w + c·t/J), from rest it
// approaches the root of tau/c as tanh. Sensors start at 100 rad/s, or give their range.
func TestProductOfSensorsIsAccurateAsItGrows(t *testing.T) {
	const drag = `plant: t
elements:
  fan: {type: inertia, J: 1, w_start: %g}
  w: {type: speed_sensor, flange: fan%s}
  air: {type: torque, flange: fan, tau: {product: [-5, w, w]}}
  motor: {type: torque, flange: fan, tau: %g}
outputs: {w: {speed: fan}}
`
	for _, c := range []struct {
		name, text string
		want       func(t float64) float64
	}{
		{"falling", fmt.Sprintf(drag, 100., "", 0.), func(t float64) float64 { return 1 / (0.01 + 5*t) }},
		{"rising", fmt.Sprintf(drag, 0., ", range: 100 rad/s", 5e4), func(t float64) float64 { return 100 * math.Tanh(500*t) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := modeltest.New(t, c.text, 5*time.Millisecond)
			b.To(0.1, func(at float64) {
				if w := b.Get("w"); !(math.Abs(w-c.want(at)) <= 1e-4*100) {
					t.Fatalf("at %g s it does %g rad/s, want %g", at, w, c.want(at))
				}
			})
		})
	}
}

// Friction that lifts its own wheel, or presses it down, has a closed form while it does
// not jam: f = mu·N/(1 ± mu·gain), 0.7 and 1.7 times mu·N here.
func TestSelfEnergisingFrictionFollowsItsBalance(t *testing.T) {
	for _, gain := range []float64{2, -2} {
		b := modeltest.New(t, fmt.Sprintf(`plant: t
elements:
  axle: {type: mass, m: 1000, v_start: 30}
  wheel: {type: inertia, J: 50}
  lock: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: 1e6}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 1, v_star: 1, fn: {sum: [10 kN, {product: [%g, contact.f]}]}}
outputs:
  v: {speed: axle}
  f: {force: contact}
`, gain), 5*time.Millisecond)
		f := 0.2 * 10e3 / (1 + 0.2*gain)
		b.To(1, func(at float64) {
			b.Is("f", -f, 1e-9)
			b.Is("v", 30-f/1000*at, 1e-9)
		})
	}
}
