package fluid_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// cylinder is a brake cylinder with an input for every signal.
const cylinder = `
plant: t
inputs:
  demand: {unit: Pa, min: 0, max: 6e5}
  hold: {unit: "1", min: 0, max: 1, delay: 7 ms}
  vent: {unit: "1", min: 0, max: 1}
elements:
  wheel: {type: inertia, J: 1}
  brake: {type: brake_cylinder, demand: demand, hold: hold, vent: vent, T_fill: 0.4 s, T_vent: 0.2 s, T_release: 0.3 s}
  free: {type: brake_cylinder, demand: demand, T_fill: 0.4 s, T_vent: 0.2 s, p_start: 1 bar}
outputs:
  p: {signal: brake}
  p_free: {signal: free}
  p_state: {state: brake.p}
`

// The cylinder is filled, held after the dead time of the valve, vented, filled again and released.
// Each phase is part of an exponential.
func TestBrakeCylinderFollowsItsTimeConstants(t *testing.T) {
	for _, c := range []struct {
		period time.Duration
		tol    float64
	}{{time.Millisecond, 1e-9}, {5 * time.Millisecond, 1e-9}, {50 * time.Millisecond, 2e-6}} { // a law is a parabola over a substep
		b := modeltest.New(t, cylinder, c.period)
		b.Set("demand", 4e5)
		b.To(0.5, nil)
		p := 4e5 * (1 - math.Exp(-0.5/0.4))
		b.Is("p", p, c.tol)
		b.Is("p_free", 4e5-3e5*math.Exp(-0.5/0.4), c.tol)

		b.Set("hold", 1)
		b.To(1, nil)
		p = 4e5 - (4e5-p)*math.Exp(-0.007/0.4)
		b.Is("p", p, c.tol)

		b.Set("vent", 1)
		b.To(1.1, nil)
		p *= math.Exp(-0.1 / 0.2)
		b.Is("p", p, c.tol)

		b.Set("vent", 0)
		b.Set("hold", 0.25) // a duty cycle
		b.To(1.5, nil)
		p = 4e5 - (4e5-p)*math.Exp(-0.75*(0.4-0.007)/0.4)
		b.Is("p", p, c.tol)

		b.Set("demand", 1e5)
		b.Set("hold", 0)
		b.To(2, nil)
		p = 1e5 + (p-1e5)*math.Exp(-(0.5-0.25*0.007)/0.3)
		b.Is("p", p, c.tol)
		b.Is("p_state", p, c.tol)
	}
}

// T_release is T_vent if omitted. At the demanded pressure the pressure is constant.
func TestBrakeCylinderReleasesAsItVents(t *testing.T) {
	b := modeltest.New(t, cylinder, 5*time.Millisecond)
	b.Set("demand", 0.5e5)
	b.To(0.3, nil)
	b.Is("p_free", 0.5e5+0.5e5*math.Exp(-0.3/0.2), 1e-7)
	b.To(10, nil)
	b.Is("p_free", 0.5e5, 1e-9)
	b.Is("p", 0.5e5, 1e-9)
}

// On a slope over the distance, m·v'= -m·g·rise(s), the sum of kinetic and potential energy is
// constant. The table is constant beyond its ends.
func TestSlopeOfAPositionTablePreservesTheEnergy(t *testing.T) {
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		b := modeltest.New(t, modeltest.PlantOf(`
car: {type: mass, m: 40000, v_start: 20}
rise: {type: position_table, flange: car, table: [[10 m, 0], [20 m, 0.03], [60 m, 0.03], [70 m, -0.01]]}
gravity: {type: force, flange: car, f: {product: [-40000*9.81 N, rise]}}
`, `
v: {speed: car}
s: {position: car}
rise: {signal: rise}
`), period)
		rise := func(s float64) float64 {
			switch {
			case s < 10:
				return 0
			case s < 20:
				return 0.003 * (s - 10)
			case s < 60:
				return 0.03
			case s < 70:
				return 0.03 - 0.004*(s-60)
			}
			return -0.01
		}
		height := func(s float64) float64 {
			h := 0.0
			for i := range 4000 { // exact except in substeps with a breakpoint
				h += rise((float64(i)+0.5)*s/4000) * s / 4000
			}
			return h
		}
		worst := 0.0
		b.To(6, func(float64) {
			s, v := b.Get("s"), b.Get("v")
			b.Is("rise", rise(s), 1e-9)
			worst = max(worst, math.Abs(v*v/2+9.81*height(s)-200))
			if math.IsNaN(v) {
				t.Fatal("no number")
			}
		})
		if s := b.Get("s"); !(worst < 2e-5*200) || !(s > 100) {
			t.Errorf("period %v: energy off by %g J/kg of 200, %g m", period, worst, s)
		}
		t.Logf("period %v: energy within %.2g of it", period, worst/200)
	}
}
