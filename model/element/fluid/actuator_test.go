package fluid_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// actuator returns a plant with an actuator of 20 bar/A and a brake.
func actuator(keys string) string {
	return `plant: t
inputs:
  i: {unit: A, min: 0, max: 1}
  line: {unit: bar, min: 0, max: 30}
elements:
  body: {type: inertia, J: 1, w_start: 100}
  valve: {type: hydraulic_actuator, current: i, line_pressure: line, pressure_map: [[0, 0], [1, 20 bar]], ` + keys + `}
  b: {type: brake, flange: body, mu: 0.1, cgeo: 1, area: 10 cm2, pressure: valve, p0: 1 bar}
outputs: {p: {signal: valve}, p_valve: {signal: valve.p_valve}, w: {speed: body}}
`
}

// While the current changes in one direction, the pressure approaches the map less or plus half the width:
// p = p∞ + (p0 - p∞)·e^(-t/lag). A change within the width moves nothing.
func TestActuatorPressureHasAHysteresisLoop(t *testing.T) {
	const lag, half = 0.02, 0.3e5
	b := modeltest.New(t, actuator("lag: 20 ms, hysteresis: 0.6 bar"), 5*time.Millisecond)
	b.Set("line", 30e5)
	p, at := 0.0, 0.0
	for _, c := range []struct{ current, until, end float64 }{
		{0.5, 0.1, 10e5 - half}, {0.49, 0.2, math.NaN()}, {0.2, 0.25, 4e5 + half}, {0.7, 0.26, 14e5 - half}, {0, 0.5, half},
	} {
		b.Set("i", c.current)
		b.To(c.until, func(now float64) {
			want := p
			if !math.IsNaN(c.end) {
				want = c.end + (p-c.end)*math.Exp(-(now-at)/lag)
			}
			b.Is("p", want, 1e-9)
		})
		p, at = b.Get("p"), c.until
	}
	n := b.Get("events")
	if b.To(3, nil); !(n <= 16 && b.Get("events") <= n+2) {
		t.Errorf("%g events, and %g at rest", n, b.Get("events")-n)
	}
}

// Up and down at a slow rate, the loop over the current is as wide as the key says, whatever the rate.
func TestActuatorLoopIsAsWideAtAnyRate(t *testing.T) {
	const lag, width, slope = 1e-3, 0.6e5, 20e5
	for _, rate := range []float64{1, 0.2} { // A/s
		b := modeltest.New(t, actuator("lag: 1 ms, hysteresis: 0.6 bar"), 5*time.Millisecond)
		b.Set("line", 30e5)
		up := math.NaN()
		h := float64(b.Tables.PeriodNs) * 1e-9
		n := int(math.Round(0.5 / rate / h))
		for k := 1; k <= 2*n; k++ { // a staircase: within a step the pressure comes to rest
			b.Set("i", min(float64(k), float64(2*n-k))*rate*h)
			b.To(float64(k)*h, nil)
			switch k {
			case n / 2:
				up = b.Get("p")
			case 2*n - n/2:
				// After a step the pressure lacks the part e^(-h/lag) of it, at rest of a sum of such parts.
				q := math.Exp(-h / lag)
				late := slope * rate * h * q / (1 - q)
				if got := b.Get("p") - up; !scalar.EqualWithinRel(got, width+2*late, 1e-9) {
					t.Errorf("at %g A/s the loop is %g Pa wide, want %g", rate, got, width+2*late)
				}
			}
		}
	}
}

// The line pressure limits the pressure behind the valve, and when it recovers the valve is open. The brake begins
// where the pressure passes p0, within a step, also where its own capacity is a law.
func TestLinePressureLimitsTheActuator(t *testing.T) {
	for _, mu := range []string{"mu: 0.1", "mu_pos: [[0, 0.1], [50, 0.1], [200, 0.1]]"} {
		b := modeltest.New(t, strings.Replace(actuator("lag: 20 ms"), "mu: 0.1", mu, 1), 5*time.Millisecond)
		b.Set("i", 0.5)
		b.Set("line", 6e5)
		limit := 0.02 * math.Log(1/(1-0.6)) // 10 bar·(1 - e^(-t/lag)) = 6 bar
		b.To(0.1, func(at float64) {
			b.Is("p", min(6e5, 10e5*(1-math.Exp(-at/0.02))), 1e-9)
		})
		// the brake takes 0.1·1·10 cm² times what exceeds 1 bar
		rise := func(t float64) float64 { return 10e5 * (t + 0.02*math.Exp(-t/0.02)) }
		begin := 0.02 * math.Log(1/(1-0.1))
		area := rise(limit) - rise(begin) - 1e5*(limit-begin) + 5e5*(0.1-limit)
		b.Is("w", 100-1e-4*area, 1e-7)
		b.Set("line", 30e5)
		b.To(0.105, nil)
		b.Is("p", 10e5*(1-math.Exp(-0.105/0.02)), 1e-9)
		b.Is("p_valve", b.Get("p"), 0)
	}
}

// At a constant difference dp the piston fills in V/Q(dp), Q = flow/sqrt(1 bar)·dp/(dp² + r²)^(1/4), r = flow_range.
// From the kiss point on the difference falls by stiffness·Q, so that
//
//	F(dp) = 2·u + sqrt(r)·(ln((u - sqrt(r))/(u + sqrt(r)))/2 - atan(u/sqrt(r))), u = (dp² + r²)^(1/4)
//
// falls at a constant rate. The brake has no torque before the kiss point.
func TestActuatorFillsFromALimitedLine(t *testing.T) {
	const flow, stiff, r, volume, kiss = 2e-4, 2e10, 1e4, 4e-5, 1e5
	b := modeltest.New(t, actuator("fill_volume: 40 cm3, fill_pressure: 1 bar, kiss_pressure: 1 bar, stiffness: 2e10, flow: 2e-4, flow_range: 0.1 bar"),
		5*time.Millisecond)
	b.Set("i", 0.9)
	b.Set("line", 8e5)
	k, first := flow/math.Sqrt(1e5), 8e5-kiss
	filled := volume / (k * first / math.Sqrt(math.Hypot(first, r)))
	F := func(dp float64) float64 {
		u, v := math.Sqrt(math.Hypot(dp, r)), math.Sqrt(r)
		return 2*u + v*(math.Log((u-v)/(u+v))/2-math.Atan(u/v))
	}
	before, after := 0, 0
	b.To(0.12, func(at float64) {
		if at < filled {
			before++
			b.Is("p", kiss, 1e-9)
			b.Is("w", 100, 1e-12)
			return
		}
		if dp := 8e5 - b.Get("p"); dp > 1e3 {
			after++
			fallen, want := F(first)-F(dp), stiff*k*(at-filled)
			if !scalar.EqualWithinAbs(fallen, want, 1e-5*F(first)) {
				t.Errorf("at %g s F has fallen by %.9g, want %.9g", at, fallen, want)
			}
		}
	})
	if before < 3 || after < 3 {
		t.Errorf("%d rows before and %d after the kiss point", before, after)
	}
}

// With p_start valve and piston are at rest at the start, also below the kiss point; at rest nothing is an event.
func TestActuatorStartsAndRestsAtAPressure(t *testing.T) {
	for _, c := range []struct {
		keys    string
		current float64
	}{{"8 bar", 0.4}, {"1.5 bar", 0.075}, {"0.5 bar", 0.025}} {
		b := modeltest.New(t, actuator("lag: 20 ms, fill_volume: 40 cm3, fill_pressure: 1 bar, kiss_pressure: 2 bar, stiffness: 2e10, flow: 2e-4, flow_range: 0.5 bar, p_start: "+c.keys),
			5*time.Millisecond)
		b.Set("i", c.current) // 20 bar/A
		b.Set("line", 10e5)
		b.To(2, func(float64) {
			b.Is("p", 20e5*c.current, 1e-3)
			b.Is("p_valve", 20e5*c.current, 1e-3)
		})
		if events := b.Get("events"); events > 3 {
			t.Errorf("p_start %s: %g events at rest", c.keys, events)
		}
	}
}

func TestActuatorRefusesBadValues(t *testing.T) {
	const old = "lag: 20 ms"
	for _, c := range [][2]string{
		{"«hysteresis: 1 bar»", `element "valve": hysteresis goes with lag above 0`},
		{"lag: 20 ms, hysteresis: «-1 bar»", `element "valve": hysteresis -100000 Pa is negative (width of the loop over the current, with lag)`},
		{"«flow: 1e-4»", `element "valve": flow goes with fill_volume`},
		{"«p_start: 1 bar»", `element "valve": p_start goes with lag above 0 or fill_volume`},
	} {
		modeltest.Refuse(t, actuator(old), old, c[0], c[1])
	}
	modeltest.Refuse(t, actuator(old), "line_pressure: line", "line_pressure: «-1 bar»",
		`element "valve": line_pressure can be -100000 Pa; it must not be negative (pressure before the valve)`)
}
