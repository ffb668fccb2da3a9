package mechanics_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// steps are the periods at which events must be the same.
var steps = []time.Duration{time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond}

// A mass is thrown at an elastic stop against a constant force a and comes back within a substep:
// tan(omega·T/2) = u·omega/a for its speed u at the stop and the time T in contact. The stop is a
// contact, and then a table over the position.
func TestShortContactIsFound(t *testing.T) {
	const m, c, a, v, stop = 2.0, 200.0, 30.0, 3.0, 0.148
	omega, u := math.Sqrt(c/m), math.Sqrt(v*v-2*a*stop)
	length := (v-u)/a + 2/omega*math.Atan(u*omega/a)
	stops := map[string]string{
		"contact": fmt.Sprintf("pad: {type: elasto_gap, a: body, b: wall, s_rel0: 0, c: %g N/m, d: 0}", c),
		"table": fmt.Sprintf("pad: {type: position_table, flange: body, table: [[-1 m, 0], [0 m, 0], [1 m, %g]]}\n"+
			"  push: {type: force, flange: body, f: {product: [1 N, pad]}}", -c),
	}
	for name, pad := range stops {
		for _, shift := range []float64{0, 0.003, 0.011, 0.019, 0.027, 0.033, 0.041, 0.049} { // start of the flight, s
			for _, step := range steps {
				b := modeltest.New(t, fmt.Sprintf(`plant: bounce
elements:
  wall: {type: fixed, s0: 0}
  body: {type: mass, m: %g kg, s_start: %g m, v_start: %g m/s}
  pull: {type: force, flange: body, f: {step: {height: %g N, startTime: %g s}}}
  %s
outputs: {v: {speed: body}}
`, m, -stop-shift*v, v, -a*m, shift, pad), step)
				want := -u - a*(0.3-shift-length)
				if b.To(0.3, nil); !scalar.EqualWithinAbs(b.Get("v"), want, 2e-5) || b.Get("events") != 2 {
					t.Errorf("%s, shift %g s, %v: speed %.12g m/s after %g events, want %.12g after 2",
						name, shift, step, b.Get("v"), b.Get("events"), want)
				}
			}
		}
	}
}

// Bodies that swing with one frequency come to rest at one instant by plastic impacts, and then
// load no stop.
func TestImpactsAtEqualFrequenciesAreTheSameOnEveryGrid(t *testing.T) {
	const chain = `plant: chain
elements:
  wall: {type: fixed, s0: 0}
  m0: {type: mass, m: 3 kg, s_start: 0.1 m}
  m1: {type: mass, m: 1 kg, s_start: 0.2 m}
  m2: {type: mass, m: 2 kg, s_start: 0.3 m}
  s0: {type: spring, a: wall, b: m0, c: 300 N/m}
  s1: {type: spring, a: wall, b: m1, c: 100 N/m}
  s2: {type: spring, a: wall, b: m2, c: 200 N/m}
  g0: {type: clearance, a: wall, b: m0, s_min: 0, restitution: %[1]g}
  g1: {type: clearance, a: m0, b: m1, s_min: 0, restitution: %[1]g}
  g2: {type: clearance, a: m1, b: m2, s_min: 0, restitution: %[1]g}
outputs: {x: {position: m0}}
`
	for _, restitution := range []float64{0, 0.8, 1} {
		var first []string
		for _, step := range append(steps, 2*time.Millisecond, 7*time.Millisecond) {
			b := modeltest.New(t, fmt.Sprintf(chain, restitution), step)
			var log []string
			b.To(2.1, func(float64) {
				for _, e := range b.Kernel.Events() {
					element, from, to := b.Tables.EventNames(e)
					log = append(log, fmt.Sprintf("%.9f %s %s %s", e.Time, element, from, to))
				}
			})
			if first == nil {
				first = log
			}
			if len(log) < 6 || !slices.Equal(log, first) {
				t.Errorf("restitution %g, %v: events %q, at 1 ms %q", restitution, step, log, first)
			}
		}
	}
}

// The capacity of a brake is a force that another body's speed gives: fn = 4·w2 with w2 = 3 - 5·t,
// and then the same times a sine.
func TestCapacityOfALawBeginsAndEndsAtItsZeros(t *testing.T) {
	const J, end = 0.5, 2.0
	for _, c := range []struct {
		inputs, fn string
		at         func(t float64) float64
		tol        float64 // error as part of the change, at a period of 5 ms
	}{
		{"", "{product: [4 N.s/rad, w2]}", func(t float64) float64 { return 4 * (3 - 5*t) }, 1e-12},
		{"", "{product: [4 N.s/rad, w2, {sine: {amplitude: 1, f: 1.7}}]}",
			func(t float64) float64 { return 4 * (3 - 5*t) * math.Sin(2*math.Pi*1.7*t) }, 5e-9},
		{"inputs: {share: {unit: 1, min: 0, max: 1, default: 0.7}}", "{product: [{sine: {amplitude: 4 N, f: 1.7}}, share]}",
			func(t float64) float64 { return 4 * 0.7 * math.Sin(2*math.Pi*1.7*t) }, 5e-9},
	} {
		// the integral of max(0, fn) by the trapezoidal rule on a grid far finer than its zeros need
		want, n := 0.0, 1<<22
		for i := range n {
			want += max(0, c.at((float64(i)+0.5)*end/float64(n))) * end / float64(n)
		}
		for _, step := range steps {
			b := modeltest.New(t, fmt.Sprintf(`plant: law
%s
elements:
  body: {type: inertia, J: %g, w_start: 200 rad/s}
  brake: {type: brake, flange: body, mu: 1, cgeo: 1, fn: %s}
  other: {type: inertia, J: 1, w_start: 3 rad/s}
  pull: {type: torque, flange: other, tau: -5 N.m}
  w2: {type: speed_sensor, flange: other}
outputs: {w: {speed: body}}
`, c.inputs, J, c.fn), step)
			b.To(end, nil)
			order := math.Pow(step.Seconds()/5e-3, 4)
			if got := (200 - b.Get("w")) * J; !(math.Abs(got-want) <= max(1e-11, c.tol*order)*want) {
				t.Errorf("fn %s, %v: momentum lost %.14g, want %.14g N·m·s", c.fn, step, got, want)
			}
		}
	}
}
