package fluid_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// Defaults of the element.
const (
	discharge  = 0.7
	density    = 1050.0 // kg/m3
	transition = 1e5    // Pa
)

// through returns the flow through an opening, m3/s, laminar below the transition pressure.
func through(area, dp, transition float64) float64 {
	return discharge * area * math.Sqrt(2/density) * dp / math.Pow(dp*dp+transition*transition, 0.25)
}

// wheelBrake returns a plant with one wheel brake and with more inputs, keys and elements.
func wheelBrake(inputs, keys, more string) string {
	return `
plant: t
inputs:
  master: {unit: Pa, min: 0, max: 2e7}
  in: {unit: "1", min: 0, max: 1, delay: 3 ms}
  out: {unit: "1", min: 0, max: 1}
` + inputs + `
elements:
  wheel: {type: inertia, J: 1}
  brake: {type: wheel_brake_circuit, master: master, inlet: in, outlet: out, A_inlet: 0.05 mm2, A_outlet: 0.08 mm2, ` + keys + `}
` + more + `
outputs:
  p: {signal: brake}
  V: {state: brake.V}
  Q_in: {signal: brake.Q_in}
  Q_out: {signal: brake.Q_out}
`
}

// A volume far below those of the rows has its pressure to the last digits: the first line of the table is not computed
// from a point far away.
func TestPressureOfASmallVolumeHasAllItsDigits(t *testing.T) {
	b := modeltest.New(t, wheelBrake("", "p_V: [[0, 0], [0.3 cm3, 2 bar], [4 cm3, 5 bar], [6 cm3, 30 bar]], V_start: 1e-9 cm3", ""), time.Millisecond)
	b.Is("p", 1e-15*2e5/0.3e-6, 1e-18)
}

// An outlet alone: where the flow is turbulent throughout, sqrt(p) falls on a straight
// line, sqrt(p0) - stiffness·C_d·A·sqrt(2/rho)/2·t.
func TestOutletEmptiesTheCaliperOnAParabola(t *testing.T) {
	b := modeltest.New(t, wheelBrake("", "stiffness: 7e12 Pa/m3, V_start: 1 cm3, p_transition: 1000 Pa", ""), time.Millisecond)
	b.Set("in", 1)
	b.Set("out", 1)
	b.To(0.005, nil)
	p0, slope := math.Sqrt(b.Get("p")), 7e12*discharge*0.08e-6*math.Sqrt(2/density)/2
	b.To(0.28, func(at float64) {
		if root := p0 - slope*(at-0.005); root > math.Sqrt(1e5) {
			b.Is("p", root*root, 2e-5) // the laminar part: (1 + (1000 Pa/p)²)^(-1/4) of the flow
		}
	})
	if p := b.Get("p"); !(p < 1e5 && p > 0) {
		t.Errorf("%g Pa are left", p)
	}
}

// The brake agrees with Runge-Kutta in small steps: build-up through a gap, dead time of the inlet,
// dump into an accumulator until it is full, and a pump that empties the accumulator.
func TestWheelBrakeFollowsItsEquations(t *testing.T) {
	text := wheelBrake(`  pump: {unit: "1", min: 0, max: 1}`, "p_V: [[0, 0], [0.3 cm3, 1 bar], [1.5 cm3, 90 bar], [2 cm3, 150 bar]], drain: store, A_check: 0.1 mm2, p_check: 0.2 bar",
		"  store: {type: low_pressure_accumulator, p_V: [[0, 0], [0.1 cm3, 2 bar], [3 cm3, 6 bar]], pump: pump, flow: 3 cm3/s}")
	text += "  p_s: {signal: store}\n  V_s: {state: store.V}\n"
	curve := func(x, z []float64) func(float64) float64 {
		return func(v float64) float64 {
			i := 0
			for i < len(x)-2 && v > x[i+1] {
				i++
			}
			return z[i] + (z[i+1]-z[i])/(x[i+1]-x[i])*(v-x[i])
		}
	}
	caliper := curve([]float64{0, 0.3e-6, 1.5e-6, 2e-6}, []float64{0, 1e5, 90e5, 150e5})
	store := curve([]float64{0, 0.1e-6, 3e-6}, []float64{0, 2e5, 6e5})
	u := struct{ master, in, out, pump float64 }{}
	rate := func(x [2]float64) [2]float64 {
		p, s := caliper(x[0]), store(x[1])
		out := through(0.08e-6*u.out, p-s, transition)
		in := through(0.05e-6*(1-u.in), u.master-p, transition) - through(0.1e-6, max(0, p-u.master-0.2e5), transition)
		return [2]float64{in - out, out - 3e-6*u.pump*min(1, max(0, s/1e5))}
	}
	for _, period := range []time.Duration{time.Millisecond, 5 * time.Millisecond} {
		b := modeltest.New(t, text, period)
		x, fine := [2]float64{}, 1e-5
		commands := func(at float64) (master, in, out, pump float64) {
			switch {
			case at < 0.1:
				return 120e5, 0, 0, 0
			case at < 0.15:
				return 120e5, 1, 0, 0
			case at < 0.2:
				return 120e5, 1, 1, 0.5
			case at < 0.3:
				return 120e5, 0.6, 0, 1
			case at < 0.4:
				return 10e5, 1, 0, 1
			}
			return 0, 0, 1, 0
		}
		worst, worstStore := 0.0, 0.0
		steps := int(math.Round(period.Seconds() / fine))
		for k := range int(math.Round(0.5 / period.Seconds())) {
			at := float64(k) * period.Seconds()
			master, in, out, pump := commands(at + 1e-9)
			b.Set("master", master)
			b.Set("in", in)
			b.Set("out", out)
			b.Set("pump", pump)
			for i := range steps {
				u.master, u.out, u.pump = master, out, pump
				_, u.in, _, _ = commands(max(0, at+float64(i)*fine-0.003+1e-9))
				x = rungeKutta(rate, x, fine)
			}
			b.To(at+period.Seconds(), nil)
			worst = max(worst, math.Abs(b.Get("p")-caliper(x[0])))
			worstStore = max(worstStore, math.Abs(b.Get("V_s")-x[1]))
			if math.IsNaN(worst + worstStore) {
				t.Fatalf("no number at %g s", at)
			}
		}
		t.Logf("%v: pressure within %.2g of 120 bar, accumulator within %.2g of 3 cm3", period, worst/120e5, worstStore/3e-6)
		if !(worst <= 1e-8*120e5) || !(worstStore <= 1e-8*3e-6) {
			t.Errorf("%v: pressure %g Pa off, accumulator %g m3", period, worst, worstStore)
		}
	}
}

// rungeKutta is one classical step.
func rungeKutta(rate func([2]float64) [2]float64, x [2]float64, h float64) [2]float64 {
	add := func(a, b [2]float64, s float64) [2]float64 { return [2]float64{a[0] + s*b[0], a[1] + s*b[1]} }
	k1 := rate(x)
	k2 := rate(add(x, k1, h/2))
	k3 := rate(add(x, k2, h/2))
	k4 := rate(add(x, k3, h))
	return add(add(add(add(x, k1, h/6), k2, h/3), k3, h/3), k4, h/6)
}

// In a minute of constant pressure the check valve and equal pressures cause no events.
func TestWheelBrakeAtRestHasNoEvents(t *testing.T) {
	for _, in := range []float64{0, 1} {
		b := modeltest.New(t, wheelBrake("", "stiffness: 7e12 Pa/m3, A_check: 0.1 mm2", ""), 5*time.Millisecond)
		b.Set("master", 5e6)
		b.To(1, nil)
		b.Set("in", in)
		b.Set("master", 1e6)
		b.To(10, nil)
		before := b.Get("events")
		b.To(60, nil)
		if more := b.Get("events") - before; more != 0 {
			t.Errorf("inlet %g: %g events at rest", in, more)
		}
		b.Is("p", 1e6+in*1e4, 1)
	}
}
