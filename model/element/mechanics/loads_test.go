package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// rungeKutta integrates w' = f(w) over a time in steps of h, by the method of 4th order.
func rungeKutta(w, seconds, h float64, f func(w float64) float64) float64 {
	for range int(math.Round(seconds / h)) {
		k1 := f(w)
		k2 := f(w + h/2*k1)
		k3 := f(w + h/2*k2)
		k4 := f(w + h*k3)
		w += h / 6 * (k1 + 2*k2 + 2*k3 + k4)
	}
	return w
}

// regularised holds the equations of Modelica.Mechanics.Rotational.Sources.SignTorque over x = w/w0.
var regularised = map[string]func(x float64) float64{
	"Exp":    func(x float64) float64 { return math.Tanh(x / 0.02) },
	"Sine":   func(x float64) float64 { return math.Sin(math.Pi / 2 * inside(x)) },
	"Linear": inside,
	"CoSine": func(x float64) float64 { return math.Copysign(1-math.Cos(math.Pi/2*inside(x)), x) },
}

// inside returns x between -1 and 1.
func inside(x float64) float64 { return max(-1, min(x, 1)) }

// A sign_torque pulls against the speed or along it with one size. A push of 1 N.m takes the body through
// standstill. The speed is that of an independent integration.
func TestSignTorqueIsMadeRegularAroundStandstill(t *testing.T) {
	for reg, value := range regularised {
		for _, c := range []struct{ nominal, start float64 }{{-2, 3}, {-0.5, -2}, {1.5, 0.05}} {
			law := func(w float64) float64 { return c.nominal * value(w/0.5) }
			b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
body: {type: inertia, J: 1, w_start: %g}
push: {type: torque, flange: body, tau: 1}
load: {type: sign_torque, flange: body, tau_nominal: %g, reg: %s, w0: 0.5}
sled: {type: mass, m: 1 kg, v_start: %[1]g}
pull: {type: force, flange: sled, f: 1}
drag: {type: sign_force, flange: sled, f_nominal: %[2]g, reg: %[3]s, v0: 0.5}`, c.start, c.nominal, reg),
				"w: {speed: body}\ntau: {torque: load}\nv: {speed: sled}\nf: {force: drag}"), time.Millisecond)
			w := c.start
			for _, at := range []float64{0, 0.5, 1, 2.5} {
				if at > 0 {
					w = rungeKutta(c.start, at, 1e-4, func(w float64) float64 { return 1 + law(w) })
					b.To(at, nil)
				}
				b.Is("w", w, 1e-6)
				b.Is("tau", law(w), 2e-5)
				b.Is("v", b.Get("w"), 1e-12)
				b.Is("f", b.Get("tau"), 1e-9)
			}
			if t.Failed() {
				t.Fatalf("%s, tau_nominal %g N.m", reg, c.nominal)
			}
		}
	}
}

// Without the key reg a sign_torque has the regularisation Exp, and without w0 it is 0.1 rad/s.
func TestSignTorqueHasTheDefaultsOfTheLibrary(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1, w_start: 0.001}
load: {type: sign_torque, flange: body, tau_nominal: -2}`, "tau: {torque: load}"), time.Millisecond)
	b.Is("tau", -2*math.Tanh(0.5), 1e-12)
}

// A drive of constant power: w² = w_start² + 2·P·t/J, and below w0 a constant torque, or one that is proportional
// to the speed.
func TestInverseLoadHasConstantPower(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2, w_start: 3}
back: {type: inertia, J: 2, w_start: -3}
slow: {type: inertia, J: 2, w_start: 0.5}
down: {type: inertia, J: 2, w_start: 4}
a: {type: inverse_speed_dependent_torque, flange: body, tau_nominal: 10 N.m, w_nominal: 4 rad/s, w0: 1 rad/s}
b: {type: inverse_speed_dependent_torque, flange: back, tau_nominal: 10, w_nominal: 4, w0: 1, TorqueDirection: false}
c: {type: inverse_speed_dependent_torque, flange: slow, tau_nominal: 10, w_nominal: 4, w0: 4, TorqueDirection: false}
d: {type: inverse_speed_dependent_torque, flange: down, tau_nominal: -10, w_nominal: 4, w0: 2}
sled: {type: mass, m: 2 kg, v_start: 3}
e: {type: inverse_speed_dependent_force, flange: sled, f_nominal: 10, v_nominal: 4, v0: 1}
`, "w: {speed: body}\nback: {speed: back}\nslow: {speed: slow}\ndown: {speed: down}\nv: {speed: sled}\nP: {power: a}\nPb: {power: b}"),
		5*time.Millisecond)
	b.Is("P", 40, 1e-12)
	b.Is("Pb", 40, 1e-12)
	b.To(1.5, func(s float64) {
		w := math.Sqrt(9 + 40*s)
		b.Is("w", w, 1e-9)
		b.Is("back", -w, 1e-9)
		b.Is("v", w, 1e-9)
		b.Is("P", 40, 1e-9)

		// w' = w·10/4/2 up to 4 rad/s, then constant power
		reach := math.Log(8) / 1.25
		slow := 0.5 * math.Exp(1.25*s)
		if s > reach {
			slow = math.Sqrt(16 + 40*(s-reach))
		}
		b.Is("slow", slow, 1e-7)

		// to 2 rad/s in 0.3 s, then -20 N.m on J = 2, through standstill
		down := 2 - 10*(s-0.3)
		if s < 0.3 {
			down = math.Sqrt(16 - 40*s)
		} else if down < -2 {
			down = -math.Sqrt(4 + 40*(s-0.7))
		}
		b.Is("down", down, 1e-7)
	})
}

// Where w0 is not w_nominal, the value jumps at w0, as in the Modelica library: -10·v/v0 below, -10·4/v above.
func TestInverseLoadJumpsAtItsRegularisation(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
sled: {type: mass, m: 2 kg, v_start: 3}
e: {type: inverse_speed_dependent_force, flange: sled, f_nominal: -10, v_nominal: 4, v0: 1, ForceDirection: false}
`, "v: {speed: sled}\nf: {force: e}"), 5*time.Millisecond)
	b.To(0.8, func(s float64) { // m/2·v² falls by 40 W, to 1 m/s in 0.2 s; then v falls by 5/s
		v := math.Sqrt(max(1, 9-40*s))
		if s > 0.2 {
			v = math.Exp(-5 * (s - 0.2))
		}
		b.Is("v", v, 1e-7)
	})
}

// A moving eddy current brake is the turning one.
func TestEddyForceIsTheEddyTorqueAlongAPath(t *testing.T) {
	const keys = "C: 5, G: 0.5, T_ambient: 300 K, T_start: 320 K, alpha20: 4e-3, excitation: {ramp: {height: 1, duration: 1}}"
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1, w_start: 50}
e: {type: eddy_current_torque, flange: body, tau_nominal: 20, w_nominal: 10, `+keys+`}
sled: {type: mass, m: 1 kg, v_start: 50}
f: {type: eddy_current_force, flange: sled, f_nominal: 20 N, v_nominal: 10 m/s, `+keys+`}
`, "w: {speed: body}\nT: {state: e.T}\nv: {speed: sled}\nTf: {signal: f.T}\nf: {force: f}\nloss: {signal: f.lossPower}"), time.Millisecond)
	b.To(2, nil)
	b.Is("v", b.Get("w"), 1e-12)
	b.Is("Tf", b.Get("T"), 1e-12)
	x := b.Get("v") / (10 * (1 + 4e-3*(b.Get("T")-293.15)))
	b.Is("f", 2*20*x/(1+x*x), 1e-9)
	b.Is("loss", b.Get("f")*b.Get("v"), 1e-9)
}

func TestBadLoadsAreRefused(t *testing.T) {
	const old = "  drag: {type: damper, a: frame, b: wheel, d: 0.01}"
	for _, c := range [][2]string{
		{"type: sign_torque, flange: wheel, tau_nominal: 1, reg: «Cosine»", `reg: "Cosine" is none of CoSine, Exp, Linear, Sine (did you mean CoSine?)`},
		{"type: sign_torque, flange: wheel, tau_nominal: 1, w0: «0»", "w0 0 rad/s is not positive (speed below which the value is made regular)"},
		{"type: inverse_speed_dependent_torque, flange: wheel, tau_nominal: 1, w_nominal: «-3 rad/s»", "w_nominal -3 rad/s is not positive (nominal speed)"},
	} {
		modeltest.Refuse(t, modeltest.Train, old, "  drag: {"+c[0]+"}", `element "drag": `+c[1])
	}
}

// Without mu and cgeo friction has those of the Modelica library, mu_pos = [0, 0.5] and cgeo = 1.
func TestFrictionHasTheDefaultsOfTheLibrary(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 1, w_start: 10}
b: {type: inertia, J: 1, w_start: 10}
m: {type: mass, m: 1, v_start: 10}
ground: {type: fixed}
clutch: {type: clutch, a: ground, b: a, fn: 6 N}
brake: {type: brake, flange: b, fn_max: 10 N, f_normalized: 0.2}
shoe: {type: brake, flange: m, fn: 3 N}
`, "clutch_tau: {torque: clutch}\nbrake_tau: {torque: brake}\nshoe_f: {force: shoe}"), 5*time.Millisecond)
	b.Is("clutch_tau", 3, 1e-12)
	b.Is("brake_tau", 1, 1e-12)
	b.Is("shoe_f", 1.5, 1e-12)
}
