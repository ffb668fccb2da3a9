package signal_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// reference solves x' = rate(mode, t, x) independently of the kernel: by extrapolation of order 8, with a mode that
// changes where an indicator becomes negative. Each period is divided into parts; the rates must be smooth within a
// part.
type reference struct {
	rate       func(mode int, t float64, x []float64) []float64
	indicators func(mode int, t float64, x []float64) []float64
	next       func(mode, indicator int) int // the mode after an indicator has become negative
	parts      int

	mode int
	t    float64
	x    []float64
}

// step advances by h with Gragg's modified midpoint rule, extrapolated in h²: Hairer, Nørsett, Wanner, II.9.
func (r *reference) step(h float64) []float64 {
	n := len(r.x)
	var table [4][]float64
	for j := range table {
		parts := 2 * (j + 1)
		d := h / float64(parts)
		before, now := r.x, make([]float64, n)
		for i, v := range r.rate(r.mode, r.t, r.x) {
			now[i] = r.x[i] + d*v
		}
		for k := 1; k < parts; k++ {
			next := make([]float64, n)
			for i, v := range r.rate(r.mode, r.t+float64(k)*d, now) {
				next[i] = before[i] + 2*d*v
			}
			before, now = now, next
		}
		for i, v := range r.rate(r.mode, r.t+h, now) { // smoothing
			now[i] = (before[i] + now[i] + d*v) / 2
		}
		table[j] = now
		for k := j - 1; k >= 0; k-- {
			ratio := float64((j + 1) * (j + 1) * 1.0)
			ratio /= float64((k + 1) * (k + 1))
			for i := range n {
				table[k][i] = table[k+1][i] + (table[k+1][i]-table[k][i])/(ratio-1)
			}
		}
	}
	return table[0]
}

// crossed returns the first indicator that is negative after a step of h; -1: none.
func (r *reference) crossed(h float64) int {
	for i, g := range r.indicators(r.mode, r.t+h, r.step(h)) {
		if g < 0 {
			return i
		}
	}
	return -1
}

// to advances to a time on the grid of periods h.
func (r *reference) to(t, h float64) {
	d := h / float64(r.parts)
	for n := int(math.Round((t - r.t) / d)); n > 0; n-- {
		end := r.t + d
		for r.indicators != nil && r.crossed(end-r.t) >= 0 {
			low, high := 0.0, end-r.t
			for range 60 {
				if mid := (low + high) / 2; r.crossed(mid) >= 0 {
					high = mid
				} else {
					low = mid
				}
			}
			which := r.crossed(high)
			r.x, r.t = r.step(high), r.t+high
			r.mode = r.next(r.mode, which)
		}
		r.x, r.t = r.step(end-r.t), end
	}
	r.t = t
}

// compared is an output, its size, and its value in a state of the reference.
type compared struct {
	name  string
	size  float64
	value func(x []float64) float64
}

// follow steps a bench and the reference to a time, s, and compares outputs; tol is the largest error over the size.
func follow(t *testing.T, b *modeltest.Bench, r *reference, end, tol float64, outputs ...compared) {
	t.Helper()
	worst := make([]float64, len(outputs))
	b.To(end, func(s float64) {
		r.to(s, float64(b.Tables.PeriodNs)*1e-9)
		for i, o := range outputs {
			want := o.value(r.x)
			err := math.Abs(b.Get(o.name)-want) / o.size
			if worst[i] = max(worst[i], err); !(err <= tol) {
				t.Fatalf("%s is %.12g at %g s, want %.12g", o.name, b.Get(o.name), s, want)
			}
		}
	})
	for i, o := range outputs {
		t.Logf("steps of %v: largest error of %s %.1g of %g", time.Duration(b.Tables.PeriodNs), o.name, worst[i], o.size)
	}
}

// state returns the value of a state of the reference.
func state(i int) func(x []float64) float64 { return func(x []float64) float64 { return x[i] } }

// Modelica.Blocks.Examples.PID_Controller: a PI controller in its limits drives two inertias with a spring between
// them along a speed profile. The limited output is a law: a parabola over a substep, whose error falls with the step.
func TestPIDControllerOfTheLibrary(t *testing.T) {
	comparePIDController(t, 5*time.Millisecond, 2e-6)
	comparePIDController(t, time.Millisecond, 1e-7)
}

func comparePIDController(t *testing.T, step time.Duration, tol float64) {
	t.Helper()
	b := modeltest.New(t, modeltest.PlantOf(`
inertia1: {type: inertia, J: 1 kg.m2}
inertia2: {type: inertia, J: 2 kg.m2}
spring: {type: spring_damper, a: inertia1, b: inertia2, c: 10 kN.m/rad, d: 100 N.m.s/rad, phi_rel_start: 0}
load: {type: torque, flange: inertia2, tau: 10 N.m}
w: {type: speed_sensor, flange: inertia1}
reference: {type: integrator, u: {table: [[0, 0], [0.5, 0], [0.5, 1 rad/s2], [1.5, 1], [1.5, 0], [2.07, 0], [2.07, -1], [3.07, -1], [3.07, 0]]}}
control: {type: lim_pid, u_s: reference, u_m: w, k: 100 N.m.s/rad, Ti: 0.1 s, yMax: 12 N.m, Ni: 0.1, xi_start: 0.05 rad/s}
drive: {type: torque, flange: inertia1, tau: control}
`, "w1: {speed: inertia1}\nw2: {speed: inertia2}\ntwist: {phi_rel: spring}\ntau: {signal: control}\nxi: {state: control.xi}"), step)
	profile := func(s float64) float64 {
		return max(0, min(s-0.5, 1)) - max(0, min(s-2.07, 1))
	}
	const high, w1, w2, twist, xi = 12, 0, 1, 2, 3
	raw := func(s float64, x []float64) float64 { return 100 * (profile(s) - x[w1] + x[xi]) }
	output := func(mode int, s float64, x []float64) float64 {
		if mode != 0 {
			return float64(mode) * high
		}
		return raw(s, x)
	}
	r := &reference{parts: int(step / (500 * time.Microsecond)), x: []float64{0, 0, 0, 0.05},
		rate: func(mode int, s float64, x []float64) []float64 {
			y, shaft := output(mode, s, x), 1e4*x[twist]+100*(x[w2]-x[w1])
			return []float64{y + shaft, (10 - shaft) / 2, x[w2] - x[w1],
				(profile(s) - x[w1] + (y-raw(s, x))/(100*0.1)) / 0.1}
		},
		indicators: func(mode int, s float64, x []float64) []float64 {
			if v := raw(s, x); mode == 0 {
				return []float64{high - v, high + v}
			} else {
				return []float64{float64(mode)*v - high}
			}
		},
		next: func(mode, indicator int) int {
			if mode != 0 {
				return 0
			}
			return 1 - 2*indicator
		},
	}
	limited := 0
	follow(t, b, r, 3.5, tol, compared{"w1", 1, state(w1)}, compared{"w2", 1, state(w2)}, compared{"twist", 1e-3, state(twist)},
		compared{"xi", 0.1, state(xi)}, compared{"tau", high, func(x []float64) float64 {
			if r.mode != 0 {
				limited++
			}
			return output(r.mode, r.t, x)
		}})
	if limited == 0 {
		t.Error("the controller never reaches its limits")
	}
}

// Modelica.Thermal.HeatTransfer.Examples.TwoMasses.
func TestTwoMassesOfTheLibrary(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
idle: {type: inertia, J: 1}
mass1: {type: heat_capacitor, C: 15 J/K, T_start: 373.15 K}
mass2: {type: heat_capacitor, C: 15 J/K, T_start: 273.15 K}
conduction: {type: thermal_conductor, port_a: mass1, port_b: mass2, G: 10 W/K}
`, "T1: {signal: mass1}\nT2: {signal: mass2}"), period)
	b.To(1, func(s float64) { // T_final_K = 323.15 K
		b.Is("T1", 323.15+50*math.Exp(-2*10./15*s), 1e-12)
		b.Is("T2", 323.15-50*math.Exp(-2*10./15*s), 1e-12)
	})
}

// Modelica.Thermal.HeatTransfer.Examples.ControlledTemperature: a switch heats a resistor, whose resistance grows
// with the temperature, between two thresholds around a ramp.
func TestControlledTemperatureOfTheLibrary(t *testing.T) {
	const ambient, wide, alpha = 293.15, 2.0, 1. / 255
	b := modeltest.New(t, modeltest.PlantOf(`
idle: {type: inertia, J: 1}
body: {type: heat_capacitor, C: 1 J/K, T_start: 20 degC}
wall: {type: thermal_conductor, port_a: body, port_b: 20 degC, G: 0.1 W/K}
wanted: {type: gain, k: 1, u: {ramp: {offset: 298.15 K, height: 25 K, duration: 6 s, startTime: 2 s}}}
excess: {type: sum, u: [body, wanted], k: [1, -1]}
too_hot: {type: hysteresis, u: excess, uLow: -1 K, uHigh: 1 K}
rise: {type: sum, u: [body, 20 degC], k: [1, -1]}
grown: {type: gain, k: 0.00392156862745098 1/K, u: rise}
resistance: {type: limiter, u: {sum: [1, grown]}, uMax: 3, uMin: 0.5}
full: {type: division, u1: 10 W, u2: resistance}
power: {type: switch, u1: 0 W, u2: too_hot, u3: full}
heater: {type: prescribed_heat_flow, port: body, Q_flow: power}
`, "T: {signal: body}\nhot: {signal: too_hot}"), period)
	wanted := func(s float64) float64 { return 298.15 + 25*max(0, min((s-2)/6, 1)) }
	switches := 0
	r := &reference{parts: 5, mode: 0, x: []float64{ambient},
		rate: func(mode int, _ float64, x []float64) []float64 {
			p := 10 / (1 + alpha*(x[0]-ambient)) // (10 V)² over 10 ohm
			return []float64{p*float64(1-mode) - 0.1*(x[0]-ambient)}
		},
		indicators: func(mode int, s float64, x []float64) []float64 {
			excess := x[0] - wanted(s)
			if mode == 0 {
				return []float64{wide/2 - excess}
			}
			return []float64{wide/2 + excess}
		},
		next: func(mode, _ int) int { switches++; return 1 - mode },
	}
	follow(t, b, r, 10, 1e-9, compared{"T", 1, state(0)},
		compared{"hot", 1, func([]float64) float64 { return float64(r.mode) }})
	if switches < 5 {
		t.Errorf("%d switches", switches)
	}
}

// Modelica.Thermal.HeatTransfer.Examples.Motor: a duty cycle of losses that depend on the temperature heats winding
// and core, in steps of 1 s.
func TestMotorOfTheLibrary(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
idle: {type: inertia, J: 1}
winding: {type: heat_capacitor, C: 2500 J/K, T_start: 20 degC}
core: {type: heat_capacitor, C: 25000 J/K, T_start: 20 degC}
winding2core: {type: thermal_conductor, port_a: winding, port_b: core, G: 10 W/K}
convection: {type: convection, solid: core, fluid: 20 degC, Gc: 25 W/K}
winding_rise: {type: sum, u: [winding, 95 degC], k: [1, -1]}
core_rise: {type: sum, u: [core, 55 degC], k: [1, -1]}
winding_loss: {type: product, u: [{pulse: {offset: 100 W, amplitude: 900 W, width: 40 %, period: 600 s, startTime: 360 s}},
  {sum: [1, {product: [0.00303 1/K, winding_rise]}]}]}
core_loss: {type: gain, k: 500 W, u: {sum: [1, {product: [-0.00134 1/K, core_rise]}]}}
heat1: {type: prescribed_heat_flow, port: winding, Q_flow: winding_loss}
heat2: {type: prescribed_heat_flow, port: core, Q_flow: core_loss}
`, "T_winding: {signal: winding}\nT_core: {signal: core}"), time.Second)
	var r *reference
	r = &reference{parts: 1, x: []float64{293.15, 293.15},
		rate: func(_ int, _ float64, x []float64) []float64 {
			loss := 100.0
			if math.Mod(r.t, 600) >= 360 { // r.t is the start of the step of 1 s; the loss jumps at whole seconds
				loss = 1000
			}
			winding := loss * (1 + 0.00303*(x[0]-368.15))
			core := 500 * (1 - 0.00134*(x[1]-328.15))
			flow := 10 * (x[0] - x[1])
			return []float64{(winding - flow) / 2500, (core + flow - 25*(x[1]-293.15)) / 25000}
		},
	}
	follow(t, b, r, 3600, 1e-9, compared{"T_winding", 1, state(0)}, compared{"T_core", 1, state(1)})
}

// Modelica.Blocks.Examples.LogicalNetwork1: a latch of not, and, or and pre. The pre is a unit delay of one step.
func TestLogicalNetworkOfTheLibrary(t *testing.T) {
	b := modeltest.New(t, "inputs: {table1: {unit: 1, flag: true}, table2: {unit: 1, flag: true}}\n"+modeltest.PlantOf(`
idle: {type: inertia, J: 1}
not1: {type: not, u: table1}
and1: {type: and, u1: not1, u2: pre1}
or1: {type: or, u1: table2, u2: and1}
pre1: {type: unit_delay, u: or1}
`, "y: {signal: or1}"), period)
	y := 0.0
	for k := range 200 {
		// the tables change every 0.2 s: table2 is true from 0.1 s on, table1 from 0.2 s on, each half of the time
		set, clear := math.Mod(math.Floor(float64(k+20)/40+0.5), 2), math.Mod(math.Floor(float64(k)/40), 2)
		b.Set("table1", clear)
		b.Set("table2", set)
		if set == 1 {
			y = 1
		} else if clear == 1 {
			y = 0
		}
		b.To(float64(k+1)*h, nil).Is("y", y, 0)
	}
}
