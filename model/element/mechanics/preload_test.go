package mechanics_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// preload is the example PreLoad of Modelica.Mechanics.Translational with the coordinates of the
// centres of its masses: a spool between two spring plates, held by four stiff contacts.
const preload = `
wall: {type: fixed, s0: -0.0955}
housing: {type: fixed, s0: -0.065}
spool: {type: mass, m: 150 g, s_start: 0.01475}
plate_a: {type: mass, m: 10 g, s_start: -0.093}
plate_b: {type: mass, m: 10 g, s_start: -0.06925}
inner_a: {type: elasto_gap, a: spool, b: plate_a, c: 1e6, d: 250, s_rel0: -0.10775}
inner_b: {type: elasto_gap, a: plate_b, b: spool, c: 1e6, d: 250, s_rel0: 0.08225}
outer_a: {type: elasto_gap, a: wall, b: plate_a, c: 1e6, d: 250, s_rel0: 0.0025}
outer_b: {type: elasto_gap, a: plate_b, b: housing, c: 1e6, d: 250, s_rel0: 0.0025}
spring: {type: spring, a: plate_a, b: plate_b, c: 20e3, s_rel0: 0.027}
friction: {type: damper, a: wall, b: spool, d: 2500}
force: {type: force, flange: spool, f: 150 N}
`

// The contacts of PreLoad close, slip between their three laws and rebound. The motion equals that
// of small explicit steps of the equations, whatever the period, and no substep iterates a law.
func TestStiffContactsFollowTheirEquations(t *testing.T) {
	push := func(e, v float64) float64 { // on the right body; v is the rate of e
		if e <= 0 {
			return 0
		}
		return max(0, 1e6*e+min(1e6*e, 250*v))
	}
	rates := func(x [6]float64) (d [6]float64) { // positions and speeds of spool, plate a, plate b
		s, a, b, vs, va, vb := x[0], x[1], x[2], x[3], x[4], x[5]
		innerA := push(-0.10775-(a-s), vs-va)
		innerB := push(0.08225-(s-b), vb-vs)
		outerA := push(0.0025-(a+0.0955), -va)
		outerB := push(0.0025-(-0.065-b), vb)
		spring := 20e3 * (b - a - 0.027)
		copy(d[:3], x[3:])
		d[3] = (150 - 2500*vs - innerA + innerB) / 0.15
		d[4] = (innerA + outerA + spring) / 0.01
		d[5] = (-innerB - outerB - spring) / 0.01
		return d
	}
	const h = 1e-7
	along := func(x, d [6]float64, h float64) [6]float64 {
		for i := range x {
			x[i] += h * d[i]
		}
		return x
	}
	var want [][6]float64 // each 1 ms
	x := [6]float64{0.01475, -0.093, -0.06925}
	for i := range 200_001 {
		if i%10_000 == 0 {
			want = append(want, x)
		}
		k1 := rates(x)
		k2 := rates(along(x, k1, h/2))
		k3 := rates(along(x, k2, h/2))
		k4 := rates(along(x, k3, h))
		for j := range x {
			x[j] += h / 6 * (k1[j] + 2*k2[j] + 2*k3[j] + k4[j])
		}
	}

	for _, period := range []time.Duration{time.Millisecond, 250 * time.Microsecond} {
		b := modeltest.New(t, modeltest.PlantOf(preload, "s: {position: spool}\na: {position: plate_a}\nb: {position: plate_b}"), period)
		b.To(0.02, func(at float64) {
			ms := at * 1e3
			if i := int(math.Round(ms)); math.Abs(ms-float64(i)) < 1e-6 {
				for j, name := range []string{"s", "a", "b"} {
					b.Is(name, want[i][j], 2e-11)
				}
			}
		})
		if bounds := b.Tables.Bounds(); bounds.Iterations != 0 {
			t.Errorf("%v: up to %d iterations of laws in a substep; the contacts need none", period, bounds.Iterations)
		}
	}
}
