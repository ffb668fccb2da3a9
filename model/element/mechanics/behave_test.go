package mechanics_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// A torque on J = 1 integrates to the speed.
func TestSourcesIntegrateToTheirArea(t *testing.T) {
	for _, c := range []struct {
		name, source string
		area         float64 // over 2 s, N·m·s
	}{
		{"constant", "{constant: 3 N.m}", 6},
		{"step", "{step: {height: 2, offset: 1, startTime: 0.5}}", 5},
		{"ramp", "{ramp: {height: 4, duration: 1, offset: 1, startTime: 0.5}}", 2 + 2 + 2},
		{"sine from its start", "{sine: {amplitude: 2, f: 1 Hz, offset: 1, startTime: 0.25}}", 2 + 2*(1-math.Cos(2*math.Pi*1.75))/(2*math.Pi)},
		{"cosine from its start", "{cosine: {amplitude: 2, f: 1 Hz, phase: 0.3 rad, offset: 1, startTime: 0.25}}", 2 + 2*(math.Sin(2*math.Pi*1.75+0.3)-math.Sin(0.3))/(2*math.Pi)},
		{"damped sine", "{exp_sine: {amplitude: 2, f: 3 Hz, phase: 0.4, damping: 1.5, offset: 1, startTime: 0.25}}", 2 + dampedArea(2, 3, 0.4, 1.5, 1.75)},
		{"decay without a frequency", "{exp_sine: {amplitude: 2, f: 0, phase: 90 deg, damping: 4 1/s}}", 2 * (1 - math.Exp(-8)) / 4},
		{"sine without damping", "{exp_sine: {amplitude: 2, f: 1 Hz, damping: 0, startTime: 0.25}}", 2 * (1 - math.Cos(2*math.Pi*1.75)) / (2 * math.Pi)},
		{"sawtooth", "{sawtooth: {amplitude: 3, period: 0.5, offset: 1, startTime: 0.25}}", 2 + 3*0.5/2*3.25},
		{"sawtooth that ends", "{sawtooth: {amplitude: 3, period: 0.5, nperiod: 2, startTime: 0.1}}", 3 * 0.5 / 2 * 2},
		{"pulse", "{pulse: {amplitude: 3, width: 20, period: 0.5, offset: 1, startTime: 0.25}}", 2 + 3*0.1*4},
		{"pulse that ends", "{pulse: {amplitude: 3, width: 20 %, period: 0.5, nperiod: 2}}", 0.6},
		{"trapezoid", "{trapezoid: {amplitude: 2, rising: 0.1, width: 0.2, falling: 0.3, period: 1, startTime: 0.5}}", 0.8 + 2*(0.05+0.2+0.2-0.2*0.2/0.6)},
		{"table", "{table: [[0, 0], [1, 2], [1, 5]]}", 1 + 5},
		{"held table", "{table: [[0, 1], [0.75, 2], [1.25, -1]], held: true}", 0.75 + 1 - 0.75},
		{"periodic table", "{table: [[0, 0], [0.25, 1], [0.5, 0]], period: 0.5}", 4 * 0.25},
		{"periodic table later", "{table: [[0, 1], [0.5, 1], [0.5, 3], [1, 3]], period: 1, startTime: 0.5}", 0.5 + 0.5 + 1.5 + 0.5},
		{"sum", "{sum: [1, {step: {height: 2, startTime: 1}}]}", 4},
		{"product", "{product: [2, {ramp: {height: 1, duration: 2}}, {ramp: {height: 1, duration: 2}}]}", 2 * 2. / 3},
		{"product of sums", "{product: [{sum: [1, 1]}, {sum: [{ramp: {height: 1, duration: 2}}, 1]}]}", 2*1 + 2*2},
		{"a signal", "{sum: [1, {product: [0, feel]}, {product: [{ramp: {height: 1, duration: 2}}, one, 2]}]}", 4},
	} {
		b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1}
feel: {type: angle_sensor, flange: body}
turn: {type: speed, flange: free, w_ref: 1, exact: true}
wheel: {type: inertia, J: 1}
slip: {type: damper, a: free, b: wheel, d: 0}
one: {type: speed_sensor, flange: free}
push: {type: torque, flange: body, tau: `+c.source+`}`, "w: {speed: body}"), 5*time.Millisecond).To(2, nil)
		if got := b.Get("w"); !scalar.EqualWithinAbs(got, c.area, 1e-6) {
			t.Errorf("%s: area %.9g N·m·s, want %.9g", c.name, got, c.area)
		}
	}
}

// dampedArea is the integral of a·exp(-d·t)·sin(2·pi·f·t + phase) from 0 to T: the imaginary part of that of an exponential.
func dampedArea(a, f, phase, d, T float64) float64 {
	rate := complex(-d, 2*math.Pi*f)
	return imag(complex(a, 0) * cmplx.Exp(complex(0, phase)) * (cmplx.Exp(rate*complex(T, 0)) - 1) / rate)
}

// A speed that follows a damped sine exactly, also where its derivative begins.
func TestExactSpeedFollowsADampedSine(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
wheel: {type: inertia, J: 2}
other: {type: inertia, J: 1}
turn: {type: speed, flange: wheel, w_ref: {exp_sine: {amplitude: 3, f: 2 Hz, damping: 1.2, startTime: 0.2}}, exact: true}
`, "w: {speed: wheel}\ntau: {torque: turn}"), 5*time.Millisecond)
	b.To(2, func(s float64) {
		if s -= 0.2; s < 1e-6 {
			return
		}
		rate := 2 * math.Pi * 2
		b.Is("w", 3*math.Exp(-1.2*s)*math.Sin(rate*s), 1e-6)
		b.Is("tau", 2*3*math.Exp(-1.2*s)*(rate*math.Cos(rate*s)-1.2*math.Sin(rate*s)), 1e-5)
	})
}

// J·w' = -k·w with a sensor in the torque is exponential decay.
func TestSensorFeedsBack(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2, w_start: 5}
w: {type: speed_sensor, flange: body}
push: {type: torque, flange: body, tau: {sum: [1, {product: [-1 N.m.s/rad, w]}]}}
back: {type: linear_speed_dependent_torque, flange: body, tau_nominal: -4, w_nominal: 2, TorqueDirection: false}`,
		"w: {speed: body}\nsame: {signal: w}\nP: {power: back}"), 5*time.Millisecond).To(1, nil)
	want := 1./3 + (5-1./3)*math.Exp(-1.5)
	b.Is("w", want, 1e-10)
	b.Is("same", want, 1e-10)
	b.Is("P", -2*want*want, 1e-9)
}

// A steep feedback through a sensor takes short pieces, and is then as exact.
func TestSteepFeedbackIsStable(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 0.5, w_start: 1}
w: {type: speed_sensor, flange: body}
back: {type: torque, flange: body, tau: {product: [-200 N.m.s/rad, w]}}`, "w: {speed: body}"), 10*time.Millisecond)
	b.To(0.05, func(at float64) { b.Is("w", math.Exp(-400*at), 1e-4) })
	b.To(1, nil)
	b.Is("w", 0, 1e-12)
}

// (J + m·r²)·w' = tau; the wheel turns r times slower than the road moves.
func TestRollingWheelJoinsMassAndInertia(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
wheel: {type: inertia, J: 2}
car: {type: mass, m: 100 kg, s_start: 7}
tyre: {type: ideal_rolling_wheel, a: wheel, b: car, radius: 0.3}
push: {type: torque, flange: wheel, tau: 22}
pull: {type: force, flange: car, f: -20}`,
		"v: {speed: car}\ns: {position: car}\nw: {speed: wheel}\nF: {force: pull, onto: car}\na: {acceleration: car}"), 5*time.Millisecond).To(2, nil)
	a := (22 - 20*0.3) / (2 + 100*0.09)
	b.Is("w", a*2, 1e-12)
	b.Is("v", a*2*0.3, 1e-12)
	b.Is("s", 7+a*0.3*2, 1e-12)
	b.Is("a", a*0.3, 1e-12)
	b.Is("F", -20, 0)
}

func TestGearR2TWithSupportTurnsWithIt(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
nut: {type: inertia, J: 1}
rod: {type: mass, m: 3, v_start: 2}
screw: {type: ideal_gear_r2t, a: nut, b: rod, ratio: 20 rad/m}`, "w: {speed: nut}\nv: {speed: rod}"), 5*time.Millisecond).To(1, nil)
	b.Is("w", 40, 1e-12)
	b.Is("v", 2, 1e-12)
}

// Willis, with the torques that keep a held set in balance.
func TestPlanetarySetsSatisfyTheWillisEquation(t *testing.T) {
	for planets, g := range map[string]float64{"single": 2.5, "double": -2.5} {
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
sun: {type: inertia, J: 1, w_start: 3}
ring: {type: inertia, J: 2, w_start: -4}
carrier: {type: inertia, J: 0.5}
set: {type: ideal_planetary, sun: sun, carrier: carrier, ring: ring, ratio: 2.5, planets: %s}
push: {type: torque, flange: carrier, tau: 6}`, planets), "s: {speed: sun}\nr: {speed: ring}\nc: {speed: carrier}"), 5*time.Millisecond).To(1, nil)
		s, r, c := b.Get("s"), b.Get("r"), b.Get("c")
		if !scalar.EqualWithinAbs((1+g)*c, s+g*r, 1e-10) {
			t.Errorf("%s: (1+g)·%g is not %g + g·%g", planets, c, s, r)
		}
		// tau_ring = g·tau_sun: the impulses on ring and sun are in that ratio.
		if !scalar.EqualWithinAbs(2*(r+4), g*(s-3), 1e-9) {
			t.Errorf("%s: impulses %g on the ring and %g on the sun", planets, 2*(r+4), s-3)
		}
	}
}

func TestRavigneauxEqualsTwoPlanetarySets(t *testing.T) {
	body := `
small: {type: inertia, J: 0.1, w_start: 10}
large: {type: inertia, J: 0.2}
carrier: {type: inertia, J: 0.3, w_start: 2}
ring: {type: inertia, J: 0.4}
`
	out := "s: {speed: small}\nl: {speed: large}\nc: {speed: carrier}\nr: {speed: ring}"
	one := modeltest.New(t, modeltest.PlantOf(body+"rav: {type: ravigneaux, sun_small: small, sun_large: large, carrier: carrier, ring: ring, ratio_small: 3, ratio_large: 1.6}", out), 5*time.Millisecond)
	two := modeltest.New(t, modeltest.PlantOf(body+`p1: {type: ideal_planetary, sun: small, carrier: carrier, ring: ring, ratio: 3, planets: double}
p2: {type: ideal_planetary, sun: large, carrier: carrier, ring: ring, ratio: 1.6}`, out), 5*time.Millisecond)
	for _, name := range []string{"s", "l", "c", "r"} {
		two.Is(name, one.Get(name), 1e-12)
	}
}

// Both wheels get half the torque; the drive turns with their mean.
func TestDifferentialSplitsTheTorque(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
left: {type: inertia, J: 1}
right: {type: inertia, J: 4}
diff: {type: differential, drive: shaft, left: left, right: right, ratio: 4}
push: {type: torque, flange: shaft, tau: 10}`, "l: {speed: left}\nr: {speed: right}\nd: {speed: shaft}"), 5*time.Millisecond).To(1, nil)
	b.Is("l", 20, 1e-12)
	b.Is("r", 5, 1e-12)
	b.Is("d", 50, 1e-12)
}

// A freewheel carries b when a is faster and lets it run ahead.
func TestFreewheelTransmitsInOneDirectionOnly(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 1}
b: {type: inertia, J: 3}
f: {type: freewheel, a: a, b: b}
push: {type: torque, flange: a, tau: {table: [[0, 4], [1, 4], [1, -4]]}}`, "a: {speed: a}\nb: {speed: b}\ntau: {torque: f}"), 5*time.Millisecond).To(1, nil)
	b.Is("a", 1, 1e-9)
	b.Is("b", 1, 1e-9)
	b.To(2, nil)
	b.Is("a", -3, 1e-8)
	b.Is("b", 1, 1e-8)
	b.Is("tau", 0, 0)
}

// A freewheel that starts against its direction closes with a plastic impact, with any other slipping
// element. A damper is then in the region of the speed after the impact.
func TestFreewheelStartedBackwardCloses(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 3, w_start: 12}
b: {type: inertia, J: 1, w_start: -16}
f: {type: freewheel, a: a, b: b}
ground: {type: fixed}
hold: {type: brake, flange: b, mu: 1, cgeo: 1, fn: 2}
drag: {type: affine_damper, a: ground, b: b, d: [1, 10], borders: [8]}`, "a: {speed: a}\nb: {speed: b}"), 5*time.Millisecond)
	b.To(2, func(at float64) {
		w := 7*math.Exp(-at/4) - 2 // from 5 rad/s on 4 w' = -2 - w
		b.Is("a", w, 1e-11)
		b.Is("b", w, 1e-11)
		b.Is("drag.region", 1, 0)
	})
}

// The clutch beside the freewheel holds up to its capacity, slips forward beyond it,
// and never slips backward.
func TestOneWayClutchNeverSlipsBackward(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 1}
b: {type: inertia, J: 1}
f: {type: one_way_clutch, a: a, b: b, mu: 0.5, cgeo: 1, fn: 2, peak: 1}
push: {type: torque, flange: b, tau: {sine: {amplitude: 5, f: 2}}}`, "a: {speed: a}\nb: {speed: b}"), time.Millisecond)
	slipped := false
	b.To(2, func(at float64) {
		slip := b.Get("f.w_rel")
		slipped = slipped || slip > 0.1
		if !(slip > -1e-9) {
			t.Fatalf("slips by %g rad/s at %g s", slip, at)
		}
		if tau := b.Get("f.tau"); !(tau <= 1+1e-9) {
			t.Fatalf("carries %g N·m forward at %g s, more than 1", tau, at)
		}
	})
	if !slipped {
		t.Error("never slipped forward")
	}
}

// mu = 0.1 + 0.02·w: J·w' = -(0.1 + 0.02·w)·fn is exponential until it stops.
func TestFrictionOverSlipFollowsItsTable(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 2, w_start: 10}
f: {type: brake, flange: a, mu_pos: [[0, 0.1], [5, 0.2], [20, 0.5]], cgeo: 0.5, fn: 40}`, "a: {speed: a}"), 5*time.Millisecond)
	rate := 0.02 * 20 / 2
	stop := math.Log((10+5)/5.) / rate
	b.To(5, func(at float64) {
		want := max(0, 15*math.Exp(-rate*at)-5)
		if at > stop {
			want = 0
		}
		if got := b.Get("a"); !scalar.EqualWithinAbs(got, want, 1e-6) {
			t.Fatalf("speed is %.9g at %g s, want %.9g", got, at, want)
		}
	})
	b.To(6, nil)
	b.Is("a", 0, 1e-12)
	b.Is("f.mode", 0, 0)
}

// J·w' = -C - p·w stops at t = J/p·ln(1 + p·w0/C), and holds up to peak·C.
func TestBearingFrictionStopsAndHolds(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 2, w_start: 10}
f: {type: bearing_friction, flange: a, tau_Coulomb: 3, tau_prop: 0.5, peak: 1.5}
push: {type: torque, flange: a, tau: {table: [[8, 0], [18, 10]]}}`, "a: {speed: a}\ntau: {torque: f}\nphi: {angle: a}"), 5*time.Millisecond)
	b.To(1, nil)
	b.Is("a", 16*math.Exp(-0.25)-6, 1e-9)
	b.Is("tau", 3+0.5*b.Get("a"), 1e-9)
	b.To(8, nil)
	b.Is("a", 0, 1e-12)
	b.To(12.495, nil)
	b.Is("a", 0, 1e-12)
	b.To(12.6, nil)
	if !(b.Get("a") > 0) {
		t.Errorf("still held at %g N·m", 4.6)
	}
}

// Friction only takes energy: a Stribeck brake stops the mass on the way that its
// force integrates to.
func TestStribeckFrictionStopsTheMass(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
m: {type: mass, m: 2, v_start: 1}
f: {type: support_friction, flange: m, f_Coulomb: 1, f_Stribeck: 2, fexp: 3}`, "v: {speed: m}\ns: {position: m}"), time.Millisecond).To(4, nil)
	b.Is("v", 0, 1e-12)
	way, n := 0.0, 100000 // m·v·dv = -F·ds
	for i := range n {
		v := (float64(i) + 0.5) / float64(n)
		way += 2 * v / (1 + 2*math.Exp(-3*v)) / float64(n)
	}
	b.Is("s", way, 1e-7)
}

// Without damping an elastic gap keeps the energy: the speed in the gap comes back.
func TestBacklashWithoutDampingKeepsTheEnergy(t *testing.T) {
	for _, kind := range []string{"elasto_backlash", "elasto_backlash2"} {
		b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 2, w_start: 1}
ground: {type: fixed}
k: {type: `+kind+`, a: ground, b: a, c: 500, d: 0, backlash: 0.1}`, "w: {speed: a}\nphi: {phi_rel: k}\ntau: {torque: k}"), time.Millisecond)
		contact := math.Pi * math.Sqrt(2./500)                   // half a period
		period := 2 * (contact + 0.1)                            // and twice through the gap
		crossings := int(math.Floor((10 - 0.05) / (period / 2))) // sides that were hit
		b.To(10, func(at float64) {
			w, phi := b.Get("w"), b.Get("phi")
			deep := max(0, math.Abs(phi)-0.05)
			if e := w*w + 250*deep*deep; !scalar.EqualWithinAbs(e, 1, 2e-6) {
				t.Fatalf("%s: energy %g J at %g s, want 1", kind, e, at)
			}
		})
		if crossings < 10 {
			t.Error("too few contacts for a test")
		}
	}
}

func TestElastoGapPushesOnly(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
m: {type: mass, m: 1, s_start: 1, v_start: -2}
wall: {type: fixed}
g: {type: elasto_gap, a: wall, b: m, c: 1e4, d: 0}`, "v: {speed: m}\ns: {s_rel: g}\nf: {force: g}"), time.Millisecond)
	b.To(2, func(at float64) {
		if f := b.Get("f"); !(f <= 1e-9) {
			t.Fatalf("pulls with %g N at %g s", f, at)
		}
	})
	// there in 0.5 s, back after half a period of 100 rad/s
	b.Is("v", 2, 1e-5)
	b.Is("s", 2*(2-0.5-math.Pi/100), 1e-5)
}

// m·v' = -k·v²: v = v0/(1 + k·v0·t/m).
func TestQuadraticLoadSlowsDown(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
m: {type: mass, m: 10, v_start: -20}
f: {type: quadratic_speed_dependent_force, flange: m, f_nominal: -50, v_nominal: 10, ForceDirection: false}`, "v: {speed: m}\nf: {force: f}"), 10*time.Millisecond).To(3, nil)
	v := -20 / (1 + 0.5*20*3./10)
	b.Is("v", v, 1e-8)
	b.Is("f", 0.5*v*v, 1e-8)
}

// As in the Modelica library, a load keeps its sign at any direction of the speed unless
// TorqueDirection is false. Under a push of 1 N.m the bodies pass standstill; the speed follows
// w' = 1 + k·|w|, w' = 1 + k·w, w' = 1 + k·w² and w' = 1 + k·w·|w|.
func TestSpeedDependentTorqueHasADirection(t *testing.T) {
	for name, load := range map[string]string{
		"line": "linear", "lineBoth": "linear", "square": "quadratic", "squareBoth": "quadratic",
	} {
		both := strings.HasSuffix(name, "Both")
		direction := ""
		if both {
			direction = ", TorqueDirection: false"
		}
		for _, w0 := range []float64{-0.5, 2} {
			for period, tol := range map[time.Duration]float64{time.Millisecond: 1e-9, 10 * time.Millisecond: 1e-6} {
				b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
body: {type: inertia, J: 1, w_start: %g}
push: {type: torque, flange: body, tau: 1}
load: {type: %s_speed_dependent_torque, flange: body, tau_nominal: -2, w_nominal: 2%s}`, w0, load, direction),
					"w: {speed: body}\ntau: {torque: load}"), period)
				law := func(w float64) float64 {
					part := w / 2
					if load == "quadratic" {
						part *= w / 2
					}
					if back := w < 0 && (load == "linear") != both; back {
						part = -part
					}
					return -2 * part
				}
				w, h := w0, 1e-4
				b.Is("tau", law(w), 1e-9)
				for range 15000 { // Runge and Kutta, 4th order; the corner at 0 costs h² at most
					f := func(w float64) float64 { return 1 + law(w) }
					k1 := f(w)
					k2 := f(w + h/2*k1)
					k3 := f(w + h/2*k2)
					k4 := f(w + h*k3)
					w += h / 6 * (k1 + 2*k2 + 2*k3 + k4)
				}
				b.To(1.5, nil)
				b.Is("w", w, max(tol, 1e-8))
				if t.Failed() {
					t.Fatalf("%s from %g rad/s at %v", name, w0, period)
				}
			}
		}
	}
}
