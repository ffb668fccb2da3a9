package mechanics_test

import (
	"math"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model/modeltest"
)

// An exact source is followed to rounding; what drives it is the inertia times the
// acceleration.
func TestExactSpeedSourceIsFollowed(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2}
other: {type: inertia, J: 3}
gear: {type: ideal_gear, a: body, b: wheel, ratio: 2}
shaft: {type: spring_damper, a: wheel, b: other, c: 100, d: 1}
s: {type: speed, flange: body, exact: true, w_ref: {sum: [1, {sine: {amplitude: 3, f: 2}}]}}`,
		"w: {speed: body}\ntau: {torque: s}\nshaft: {torque: shaft}\na: {acceleration: body}\nphi: {angle: body}"), time.Millisecond)
	b.To(1.3, func(at float64) {
		p := 4 * math.Pi
		b.Is("w", 1+3*math.Sin(p*at), 1e-9)
		b.Is("a", 3*p*math.Cos(p*at), 1e-9)
		b.Is("phi", at+3*(1-math.Cos(p*at))/p, 1e-9)
		b.Is("tau", 2*3*p*math.Cos(p*at)-b.Get("shaft")/2, 1e-8)
	})
}

func TestExactPositionSourceIsFollowed(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: mass, m: 2, s_start: 0.5}
s: {type: position, flange: body, exact: true, s_ref: {sine: {amplitude: 0.1, f: 1, phase: pi/2, offset: 0.4}}}
other: {type: mass, m: 1}
link: {type: damper, a: body, b: other, d: 1}`, "s: {position: body}\nf: {force: s}\nl: {force: link}"), time.Millisecond)
	b.To(1.3, func(at float64) {
		p := 2 * math.Pi
		b.Is("s", 0.4+0.1*math.Cos(p*at), 1e-8)
		b.Is("f", -2*0.1*p*p*math.Cos(p*at)-b.Get("l"), 1e-7)
	})
}

// Filtered, a step of the speed is 1 - exp(-w_crit·t); the slip of a clutch on it is
// a state as any other.
func TestFilteredSpeedSourceLags(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2}
other: {type: inertia, J: 1}
grip: {type: clutch, a: body, b: other, mu: 1, cgeo: 1, fn: 1e4}
s: {type: speed, flange: body, f_crit: 5, w_ref: {step: {height: 3, startTime: 0.1}}}`,
		"w: {speed: body}\no: {speed: other}\ntau: {torque: grip}"), 5*time.Millisecond).To(0.2, nil)
	e := math.Exp(-2 * math.Pi * 5 * 0.1)
	b.Is("w", 3*(1-e), 1e-9)
	b.Is("o", 3*(1-e), 1e-9)
	b.Is("tau", -3*2*math.Pi*5*e, 1e-7)
}

func TestFilteredPositionSourceReachesItsReference(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2}
other: {type: inertia, J: 1}
soft: {type: damper, a: body, b: other, d: 1}
s: {type: position, flange: body, f_crit: 5, phi_ref: {step: {height: 3, startTime: 0.1}}}`, "phi: {angle: body}\nw: {speed: body}"), 5*time.Millisecond).To(1, nil)
	b.Is("phi", 3, 1e-6)
	b.Is("w", 0, 1e-5)
}

// A massless node between a spring and a damper makes a Maxwell element: the torque
// T of both follows T' = c·w - T·c/d.
func TestMasslessNodeBetweenSpringAndDamper(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 1e9, w_start: 2}
ground: {type: fixed}
c: {type: spring, a: ground, b: middle, c: 30}
d: {type: damper, a: middle, b: body, d: 5}`, "tau: {torque: d}\ntau_c: {torque: c}\nw: {speed: middle}\na: {acceleration: middle}"), 5*time.Millisecond).To(0.3, nil)
	want := 5 * 2 * (1 - math.Exp(-0.3*30/5))
	b.Is("tau", want, 1e-7)
	b.Is("tau_c", want, 1e-7)
	b.Is("w", 2*math.Exp(-0.3*6), 1e-7)
	b.Is("a", -12*math.Exp(-0.3*6), 1e-6)
}

// Two springs in a row are one of c1·c2/(c1 + c2), three as well. The deflection that the file gives
// one of them holds, and the balance of the massless nodes gives the others.
func TestMasslessNodesBetweenSprings(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2}
ground: {type: fixed}
c1: {type: spring, a: ground, b: m1, c: 60, phi_rel_start: 0.3}
c2: {type: spring, a: m1, b: m2, c: 30}
c3: {type: spring, a: m2, b: body, c: 20}`, "tau: {torque: c3}\nt1: {torque: c1}\nt2: {torque: c2}\nphi: {phi_rel: c2}"), 5*time.Millisecond)
	c := 1 / (1/60. + 1/30. + 1/20.)
	b.To(1.7, func(at float64) {
		want := 60 * 0.3 * math.Cos(math.Sqrt(c/2)*at)
		for _, name := range []string{"tau", "t1", "t2"} {
			b.Is(name, want, 1e-9)
		}
		b.Is("phi", want/30, 1e-9)
	})
}

// A torque on a massless node with a damper moves it at once.
func TestTorqueOnAMasslessNodeWithADamper(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
body: {type: inertia, J: 2}
d: {type: damper, a: loose, b: body, d: 4}
push: {type: torque, flange: loose, tau: 6}`, "w: {speed: loose}\nb: {speed: body}"), 5*time.Millisecond).To(1, nil)
	b.Is("b", 3, 1e-12)
	b.Is("w", 3+1.5, 1e-12)
}

// Gears in a consistent loop are one too many and do no harm.
func TestConsistentGearLoopsAreAccepted(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 1}
b: {type: inertia, J: 1}
c: {type: inertia, J: 1}
ab: {type: ideal_gear, a: a, b: b, ratio: 2}
bc: {type: ideal_gear, a: b, b: c, ratio: 3}
ac: {type: ideal_gear, a: a, b: c, ratio: 6}
push: {type: torque, flange: a, tau: 1 + 1/4 + 1/36}`, "a: {speed: a}\nc: {speed: c}"), 5*time.Millisecond).To(1, nil)
	b.Is("a", 1, 1e-12)
	b.Is("c", 1./6, 1e-12)
}

// Angles follow the gears from where they are given.
func TestAnglesStartAtTheGivenValues(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
a: {type: inertia, J: 1, phi_start: 90 deg, w_start: 2}
g: {type: ideal_gear, a: a, b: out, ratio: 2}
b: {type: inertia, J: 1e9, phi_start: 0}
k: {type: spring, a: b, b: out, c: 1e-9}
e: {type: angle_sensor, flange: a, support: b}`, "phi: {angle: a}\nout: {angle: out}\nrel: {phi_rel: k}\ns: {signal: e}"), 5*time.Millisecond).To(1, nil)
	b.Is("phi", math.Pi/2+2, 1e-9)
	b.Is("out", math.Pi/4+1, 1e-9)
	b.Is("rel", math.Pi/4+1, 1e-9)
	b.Is("s", math.Pi/2+2, 1e-9)
}

// A car of four wheel ends, each used with its own parameters, is the car written out.
func TestAssembliesEqualTheirElementsWrittenOut(t *testing.T) {
	used := `
plant: t
parameters: {J: 2 kg.m2}
inputs: {press: {unit: bar, default: 3}}
assemblies:
  hub:
    flanges: [axle]
    elements:
      rim: {type: inertia, J: J}
      hold: {type: spring, a: axle, b: rim, c: 100}
  wheel_end:
    parameters: {mu: 0.4, area:, scale: 2}
    signals: [p]
    flanges: [axle]
    elements:
      hub: {type: hub, axle: axle}
      brake: {type: brake, flange: hub.rim, mu: mu, cgeo: scale*0.1 m, area: area, pressure: p}
      drag: {type: damper, a: hub.rim, b: loose, d: 1}
      more: {type: damper, a: loose, b: axle, d: 1}
elements:
  axle: {type: inertia, J: 1, w_start: 10}
  left: {type: wheel_end, axle: axle, p: press, area: 10 cm2}
  right: {type: wheel_end, axle: axle, p: {product: [0.5, press]}, area: 20 cm2, mu: 0.2}
  link: {type: damper, a: left.hub.rim, b: right.loose, d: 0.5}
outputs:
  l: {speed: left.hub.rim}
  r: {speed: right.hub.rim}
  tau: {torque: right.brake}
  hold: {phi_rel: left.hub.hold}
`
	flat := modeltest.PlantOf(`
axle: {type: inertia, J: 1, w_start: 10}
lr: {type: inertia, J: 2}
lh: {type: spring, a: axle, b: lr, c: 100}
lb: {type: brake, flange: lr, mu: 0.4, cgeo: 0.2, area: 10 cm2, pressure: 3 bar}
ld: {type: damper, a: lr, b: ll, d: 1}
lm: {type: damper, a: ll, b: axle, d: 1}
rr: {type: inertia, J: 2}
rh: {type: spring, a: axle, b: rr, c: 100}
rb: {type: brake, flange: rr, mu: 0.2, cgeo: 0.2, area: 20 cm2, pressure: 1.5 bar}
rd: {type: damper, a: rr, b: rl, d: 1}
rm: {type: damper, a: rl, b: axle, d: 1}
link: {type: damper, a: lr, b: rl, d: 0.5}`, "l: {speed: lr}\nr: {speed: rr}\ntau: {torque: rb}\nhold: {phi_rel: lh}")
	one, two := modeltest.New(t, used, 5*time.Millisecond).To(0.4, nil), modeltest.New(t, flat, 5*time.Millisecond).To(0.4, nil)
	for _, name := range []string{"l", "r", "tau", "hold"} {
		if a, b := one.Get(name), two.Get(name); !scalar.EqualWithinAbsOrRel(a, b, 1e-10, 1e-10) {
			t.Errorf("%s is %.12g in assemblies and %.12g written out", name, a, b)
		}
	}
	if one.Get("right.brake.mode") != two.Get("rb.mode") {
		t.Error("the brakes are in different states")
	}
}

// A bar is shaken at one end for minutes. The difference between a sine and its parabolas causes no
// drift.
func TestExactPositionDoesNotDriftAway(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
bar: {type: body, m: 20, J: 3, dof: [y, phi], nodes: {rear: [-0.6, 0.2], front: [0.6, 0.2]}}
shaker: {type: position, flange: bar.front.y, exact: true, s_ref: {sine: {amplitude: 10 mm, f: 2 Hz}}}
spring: {type: spring_damper, a: ground, b: bar.rear.y, c: 5e3, d: 10}
`, "s: {position: bar.front.y}"), 10*time.Millisecond)
	b.To(300, func(at float64) { b.Is("s", 0.01*math.Sin(4*math.Pi*at), 2e-8) })
}
