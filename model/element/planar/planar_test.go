package planar_test

import (
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// A bar on two springs at its ends: with a symmetric bar heave and pitch are two
// oscillators, 2·c/m and 2·c·l²/J.
func TestBarOnTwoSpringsHeavesAndPitchesAsTwoOscillators(t *testing.T) {
	const m, J, l, c = 20.0, 3.0, 0.6, 5e3
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
bar: {type: body, m: 20, J: 3, dof: [y, phi], nodes: {rear: [-0.6, 0.2], front: [0.6, 0.2]}, y_start: 0.01, phi_start: 0.02}
left: {type: spring, a: ground, b: bar.rear.y, c: 5e3, s_rel0: 0.2}
right: {type: spring, a: ground, b: bar.front.y, c: 5e3, s_rel0: 0.2}
`, `
y: {position: bar.y}
phi: {angle: bar.phi}
front: {position: bar.front.y}
over: {position: bar.front.x}
`), 5*time.Millisecond)
	heave, pitch := math.Sqrt(2*c/m), math.Sqrt(2*c*l*l/J)
	b.To(2, func(at float64) {
		y, phi := 0.01*math.Cos(heave*at), 0.02*math.Cos(pitch*at)
		b.Is("y", y, 1e-13)
		b.Is("phi", phi, 1e-13)
		b.Is("front", 0.2+y+l*phi, 1e-13)
		b.Is("over", -0.2*phi, 1e-13)
	})
}

// A flywheel on a body adds its inertia J₁ to that of the body, whichever the file gives first: with its springs on a
// wall both swing with the frequency √(c/(J + J₁)), and the energy of the body is that of its own inertia.
func TestFlywheelAddsItsInertiaToThatOfABody(t *testing.T) {
	const bar, dmf = "bar: {type: body, m: 20, J: 3, dof: [phi]}\n",
		"dmf: {type: dual_mass_flywheel, a: bar.phi, b: wall, J_primary: 2, J_secondary: 1, c: [20, 20], borders: [9]}\n"
	for _, elements := range []string{bar + dmf, dmf + bar} {
		b := modeltest.New(t, modeltest.PlantOf(elements+"wall: {type: fixed}\npush: {type: torque, flange: bar.phi, tau: 10}",
			"w: {speed: bar.phi}\nE: {energy: bar}"), 5*time.Millisecond)
		frequency := math.Sqrt(20. / (3 + 2))
		b.To(2, func(at float64) {
			w := 10 / (5 * frequency) * math.Sin(frequency*at)
			b.Is("w", w, 1e-12)
			b.Is("E", 3*w*w/2, 1e-11)
		})
	}
}

// For a force beside the centre of a free body, the centre moves by F·t²/(2m) and the body turns by
// F·a·t²/(2J). Both are exact to 1e-11 although all eigenvalues are zero.
func TestFreeBodyUnderAForceBesideItsCentreMovesAndTurns(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: body, m: 4, J: 2, nodes: {side: [0.3, -0.5]}, v_x_start: 1.5}
push: {type: force, flange: body.side.x, f: 8}
lift: {type: force, flange: body.side.y, f: -2}
`, `
x: {position: body.x}
y: {position: body.y}
phi: {angle: body.phi}
w: {speed: body.phi}
a: {acceleration: body.side.x}
`), 10*time.Millisecond)
	torque := 0.5*8 - 0.3*2 // x·F_y - y·F_x
	b.To(3, func(at float64) {
		b.Is("x", 1.5*at+8./4*at*at/2, 1e-11)
		b.Is("y", -2./4*at*at/2, 1e-11)
		b.Is("phi", torque/2*at*at/2, 1e-11)
		b.Is("w", torque/2*at, 1e-11)
		b.Is("a", 8./4+0.5*torque/2, 1e-11)
	})
}

// Two bodies that a spring along an inclined line holds together keep their momentum and
// their angular momentum about the origin, and without a damper their energy.
func TestLineBetweenBodiesKeepsMomentumAndEnergy(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
one: {type: body, m: 2, J: 0.1, x_start: 0, y_start: 0, nodes: {hook: [0.1, 0.05]}, v_y_start: 0.01}
two: {type: body, m: 3, J: 0.3, x_start: 1, y_start: 0.5, nodes: {hook: [-0.2, 0.1]}, w_start: 0.02}
link: {type: line, a: one.hook, b: two.hook}
spring: {type: spring_damper, a: ground, b: link, c: 400, d: 0, s_rel0: 0.85}
`, `
length: {position: link}
vx1: {speed: one.x}
vy1: {speed: one.y}
w1: {speed: one.phi}
vx2: {speed: two.x}
vy2: {speed: two.y}
w2: {speed: two.phi}
f: {force: spring}
`), time.Millisecond)
	dx, dy := 1-0.2-0.1, 0.5+0.1-0.05
	b.Is("length", math.Hypot(dx, dy), 1e-14)
	b.Is("f", 400*(math.Hypot(dx, dy)-0.85), 1e-10)
	sums := func() (px, py, spin, energy float64) {
		px, py = 2*b.Get("vx1")+3*b.Get("vx2"), 2*b.Get("vy1")+3*b.Get("vy2")
		spin = 0.1*b.Get("w1") + 0.3*b.Get("w2") + 3*(1*b.Get("vy2")-0.5*b.Get("vx2"))
		s := b.Get("length") - 0.85
		energy = 200*s*s + 1*(b.Get("vx1")*b.Get("vx1")+b.Get("vy1")*b.Get("vy1")) +
			1.5*(b.Get("vx2")*b.Get("vx2")+b.Get("vy2")*b.Get("vy2")) + 0.05*b.Get("w1")*b.Get("w1") + 0.15*b.Get("w2")*b.Get("w2")
		return
	}
	px, py, spin, energy := sums()
	least, most := b.Get("length"), b.Get("length")
	b.To(5, func(float64) {
		x, y, s, e := sums()
		for _, v := range [][2]float64{{x, px}, {y, py}, {s, spin}, {e, energy}} {
			if !(math.Abs(v[0]-v[1]) <= 1e-12) {
				t.Fatalf("momentum %g, %g, angular %g, energy %g; at the start %g, %g, %g, %g", x, y, s, e, px, py, spin, energy)
			}
		}
		least, most = min(least, b.Get("length")), max(most, b.Get("length"))
	})
	if !(most-least > 0.05) {
		t.Errorf("the length goes from %g to %g m only: nothing moved", least, most)
	}
}

// A wheel in a vertical guide below a body that pitches: the guide turns with the body,
// so the wheel at the distance d below it moves by d·phi, and a force on the wheel pitches
// the body.
func TestGuideTurnsWithItsBody(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
car: {type: body, m: 10, J: 4, x_start: 0, y_start: 0.6, nodes: {front: [1, 0]}}
wheel: {type: body, m: 1, J: 0.1, x_start: 1, y_start: 0.2}
guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}
strut: {type: spring_damper, a: wheel.y, b: car.front.y, c: 100, d: 1, s_rel0: 0.4}
pull: {type: force, flange: wheel.x, f: {sine: {amplitude: 3 N, f: 1 Hz, phase: 90 deg}}}
`, `
xc: {position: car.x}
phi: {angle: car.phi}
xw: {position: wheel.x}
ax: {acceleration: wheel.x}
guided: {force: guide}
`), time.Millisecond)
	// M over (x, phi): wheel.x = x + 0.4·phi, wheel.y and what the strut does leave x alone;
	// at the start the strut is relaxed.
	m11, m12, m22 := 11.0, 0.4, 4+0.16
	det := m11*m22 - m12*m12
	ax, aphi := (3*m22-3*0.4*m12)/det, (3*0.4*m11-3*m12)/det
	b.Is("ax", ax+0.4*aphi, 1e-12)
	b.Is("guided", 1*(ax+0.4*aphi)-3, 1e-12) // a gets it along -x, the wheel against that
	drift := 0.0
	b.To(20, func(float64) {
		drift = max(drift, math.Abs(b.Get("xw")-1-b.Get("xc")-0.4*b.Get("phi")))
	})
	if !(drift <= 1e-12) {
		t.Errorf("the wheel leaves its guide by %g m in 20 s", drift)
	}
	t.Logf("the wheel leaves its guide by %.1e m at most", drift)
}

func TestLockedGuideHoldsTheRotationToo(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
car: {type: body, m: 10, J: 4, x_start: 0, y_start: 0}
slide: {type: body, m: 1, J: 1, x_start: 2, y_start: 0}
guide: {type: translational_joint, a: car, b: slide, angle: 0, rotation: locked}
turn: {type: torque, flange: car.phi, tau: 6}
`, `
w: {speed: car.phi}
ws: {speed: slide.phi}
vy: {speed: slide.y}
vc: {speed: car.y}
`), time.Millisecond)
	// About the common centre: J + J + m1·m2/(m1 + m2)·2².
	b.To(1, nil)
	w := 6 / (4 + 1 + 10./11*4)
	b.Is("w", w, 1e-11)
	b.Is("ws", w, 1e-11)
	b.Is("vy", b.Get("vc")+2*w, 1e-11)
}

// The flanges and points of a body in an assembly, or passed to an assembly, are names after a dot.
func TestAssembliesAcceptNamesOfBodies(t *testing.T) {
	b := modeltest.New(t, `plant: t
assemblies:
  bogie:
    flanges: [car]
    parameters: {c: 100 N/m}
    elements:
      frame: {type: body, m: 2, dof: [x]}
      pivot: {type: spring, a: frame.x, b: car.x, c: c}
      line: {type: line, a: frame, b: car, angle: 0}
elements:
  body: {type: body, m: 5, J: 1, dof: [x, phi], nodes: {rear: [-1, -0.5]}, v_x_start: 1}
  bogie: {type: bogie, car: body.rear}
outputs:
  v: {speed: bogie.line}
  w: {speed: body.phi}
  p: {speed: body.x, factor: 5}
  q: {speed: bogie.frame.x, factor: 2}
`, time.Millisecond)
	b.To(3, func(float64) {
		b.Is("v", b.Get("p")/5+0.5*b.Get("w")-b.Get("q")/2, 1e-12)
		b.Is("p", 5-b.Get("q"), 1e-12)
	})
	if !(math.Abs(b.Get("w")) > 1e-3) {
		t.Errorf("the body turns with %g rad/s; the pivot is below its centre", b.Get("w"))
	}
}

// A body falls, and a body lies on a spring. The weight m·g acts only if g is given.
func TestWeightActsIfGIsGiven(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
stone: {type: body, m: 3, dof: [y], y_start: -0.3, g: 9.81}
soil: {type: spring_damper, a: ground, b: stone.y, c: 98.1, d: 0}
`, `
y: {position: stone.y}
`), time.Millisecond)
	b.To(2, func(float64) { b.Is("y", -0.3, 1e-13) })
}

// A lever only turns: its end does not move along the lever.
func TestLeverMovesPerpendicularToItselfOnly(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
lever: {type: body, J: 2, dof: [phi], phi_start: 0.1, nodes: {tip: [0.5, 0]}}
up: {type: spring, a: ground, b: lever.tip.y, c: 800}
`, `
phi: {angle: lever.phi}
tip: {position: lever.tip.y}
across: {position: lever.tip.x}
`), 5*time.Millisecond)
	b.To(1, func(at float64) {
		b.Is("phi", 0.1*math.Cos(10*at), 1e-13)
		b.Is("tip", 0.05*math.Cos(10*at), 1e-13)
		b.Is("across", 0, 0)
	})
}

// A progressive spring s·d² between two bodies is a linear spring of a·s plus the difference, fed
// back from the deflection (Gyebroszki, eq. 4.2.1 to 4.2.5). In the paper this force is a step late;
// here it has no delay for any step.
func TestFeedbackOfADeflectionHasNoDelay(t *testing.T) {
	const s, m1, m2, pull = 4e5, 300.0, 200.0, 2000.0
	rate := func(d, v float64) float64 { return pull/m2 - (1/m1+1/m2)*(s*d*d+300*v) }
	for _, c := range []struct {
		period time.Duration
		tol    float64
	}{{time.Millisecond, 1e-9}, {5 * time.Millisecond, 1e-7}, {10 * time.Millisecond, 3e-7}} {
		b := modeltest.New(t, modeltest.PlantOf(`
one: {type: body, m: 300, J: 50, nodes: {seat: [0, 0.4]}}
two: {type: body, m: 200, dof: [y], nodes: {seat: [0, -0.3]}}
linear: {type: spring_damper, a: one.seat.y, b: two.seat.y, c: 3e4, d: 300}
d: {type: position_sensor, flange: two.seat.y, support: one.seat.y}
feedback: {type: force, flange: two.seat.y, support: one.seat.y, f: {sum: [{product: [-4e5 N/m2, d, d]}, {product: [3e4 N/m, d]}]}}
pull: {type: force, flange: two.y, f: 2000}
`, `
d: {signal: d}
v1: {speed: one.y}
v2: {speed: two.y}
`), c.period)
		d, v, h, worst := 0.0, 0.0, 1e-5, 0.0
		b.To(2, func(at float64) {
			for range int(math.Round(c.period.Seconds() / h)) { // Runge and Kutta, order 4
				k1, a1 := v, rate(d, v)
				k2, a2 := v+h/2*a1, rate(d+h/2*k1, v+h/2*a1)
				k3, a3 := v+h/2*a2, rate(d+h/2*k2, v+h/2*a2)
				k4, a4 := v+h*a3, rate(d+h*k3, v+h*a3)
				d, v = d+h/6*(k1+2*k2+2*k3+k4), v+h/6*(a1+2*a2+2*a3+a4)
			}
			worst = max(worst, math.Abs(b.Get("d")-d)/0.1)
			b.Is("d", d, 0.1*c.tol)
			b.Is("v2", b.Get("v1")+v, c.tol)
			if momentum := m1*b.Get("v1") + m2*b.Get("v2"); !(math.Abs(momentum-pull*at) <= 1e-10*(1+pull*at)) {
				t.Fatalf("momentum %.15g at %g s, want %g", momentum, at, pull*at)
			}
		})
		t.Logf("%v: within %.1e of 0.1 m", c.period, worst)
	}
}

// A body that falls on springs keeps its energy, that of its weight included; with exact kinematics, too.
func TestEnergyOfABodyAndItsSpringsIsKept(t *testing.T) {
	for _, c := range []struct {
		kinematics string
		tol        float64
	}{{"", 1e-9}, {", kinematics: exact", 1e-6}} {
		b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
bar: {type: body, m: 20, J: 3, g: 9.81, dof: [y, phi], nodes: {rear: [-0.6, 0.2], front: [0.6, 0.2]}, y_start: 0.05, phi_start: 0.02, w_start: 0.3`+c.kinematics+`}
left: {type: spring, a: ground, b: bar.rear.y, c: 5e3, s_rel0: 0.2}
right: {type: spring, a: ground, b: bar.front.y, c: 7e3, s_rel0: 0.2}`,
			"E: {sum: [{energy: bar}, {energy: left}, {energy: right}]}\nbar: {energy: bar}\ny: {position: bar.y}\nv: {speed: bar.y}\nw: {speed: bar.phi}"),
			time.Millisecond)
		start := b.Get("E")
		b.To(1, func(float64) {
			v, w := b.Get("v"), b.Get("w")
			b.Is("bar", 10*v*v+1.5*w*w+20*9.81*b.Get("y"), 1e-12)
			b.Is("E", start, c.tol)
		})
	}
}
