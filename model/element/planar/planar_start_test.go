package planar_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// Two places in a joint are apart; neither body has turned for that. The spring under the
// angle is relaxed, and nothing moves.
func TestBodyWithoutAnAngleIsUpright(t *testing.T) {
	for _, first := range []string{"car", "wheel"} {
		car := "car: {type: body, m: 10, J: 4, x_start: 0, y_start: 0.6, nodes: {front: [1, 0.3]}}\n"
		wheel := "wheel: {type: body, m: 1, J: 0.1, x_start: 2, y_start: 0.9}\n"
		bodies := car + wheel
		if first == "wheel" {
			bodies = wheel + car // the last one depends on the first
		}
		b := modeltest.New(t, modeltest.PlantOf("\n"+bodies+`
guide: {type: translational_joint, a: car.front, b: wheel, angle: 0}
ground: {type: fixed}
spring: {type: spring, a: ground, b: car.phi, c: 10}
`, `
phi: {angle: car.phi}
turned: {angle: wheel.phi}
y: {position: wheel.y}
front: {position: car.front.y}
torque: {torque: spring}
`), 5*time.Millisecond)
		b.To(1, func(float64) {
			b.Is("phi", 0, 1e-15)
			b.Is("turned", 0, 1e-15)
			b.Is("y", 0.9, 1e-14)
			b.Is("front", 0.9, 1e-14)
			b.Is("torque", 0, 1e-14)
		})
	}
}

// A mass that a sensor joins to a hook starts at the hook, not at the centre of the body. The spring
// behind the mass has its written stretch.
func TestMassAtAHookStartsAtTheHook(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
car: {type: body, m: 10, dof: [x], x_start: 5, y_start: 0, nodes: {hook: [-1, 0]}}
load: {type: force_sensor, a: car.hook.x, b: drawbar}
drawbar: {type: mass, m: 2}
wall: {type: fixed, s0: 1}
rope: {type: spring, a: wall, b: drawbar, c: 120, s_rel0: 2.5}
`, `
at: {position: drawbar}
rope: {force: rope}
hook: {position: car.hook.x}
load: {signal: load}
`), 5*time.Millisecond)
	b.To(2, func(at float64) {
		x := 0.5 * math.Cos(math.Sqrt(120./12)*at)
		b.Is("at", 3.5+x, 1e-12)
		b.Is("hook", 3.5+x, 1e-12)
		b.Is("rope", 120*x, 1e-10)
		b.Is("load", 10*120*x/12, 1e-10) // force of the car on the mass
	})
}

// A joint to a fixed base holds a slide along two of its coordinates without a fault. The slide
// oscillates along the base, and the joint carries its weight.
func TestSlideOnAFixedBaseOscillatesAlongTheBase(t *testing.T) {
	for _, angle := range []float64{0, 30, 90} {
		for _, rotation := range []string{"free", "locked"} {
			s, c := math.Sincos(angle * math.Pi / 180)
			b := modeltest.New(t, modeltest.PlantOf(`
base: {type: body, dof: [], x_start: 1, y_start: 2}
ground: {type: fixed}
slide: {type: body, m: 2, J: 1, g: 9.81, x_start: 1, y_start: 2, nodes: {lug: [0.2, 0.1]}}
guide: {type: translational_joint, a: base, b: slide, angle: `+fmt.Sprint(angle)+` deg, rotation: `+rotation+`}
along: {type: line, a: base, b: slide, angle: `+fmt.Sprint(angle)+` deg}
spring: {type: spring, a: ground, b: along, c: 200}
`, `
x: {position: slide.x}
y: {position: slide.y}
lug: {position: slide.lug.y}
phi: {angle: slide.phi}
held: {force: guide}
`), 5*time.Millisecond)
			b.To(2, func(at float64) {
				d := -2 * 9.81 * s / 200 * (1 - math.Cos(10*at))
				b.Is("x", 1+c*d, 1e-12)
				b.Is("y", 2+s*d, 1e-12)
				b.Is("lug", 2.1+s*d, 1e-12)
				b.Is("phi", 0, 1e-13)
				b.Is("held", -2*9.81*c, 1e-11) // upwards on the slide
			})
		}
	}
}

// The joint between two levers that only turn reports a force, not a torque.
func TestJointBetweenLeversReportsAForce(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
one: {type: body, J: 3, dof: [phi], x_start: 0, y_start: 0, nodes: {end: [1, 0]}}
two: {type: body, J: 5, dof: [phi], x_start: 3, y_start: 0, nodes: {end: [-1, 0]}}
guide: {type: translational_joint, a: one.end, b: two.end, angle: 0}
turn: {type: torque, flange: one.phi, tau: 2}
`, `
one: {speed: one.phi}
two: {speed: two.phi}
held: {force: guide}
`), 5*time.Millisecond)
	// The joint turns with lever one: its point at two is 2 m from the pivot of one.
	a := 2 / (3 + 5*4.)
	b.To(1, func(at float64) {
		b.Is("one", a*at, 1e-13)
		b.Is("two", -2*a*at, 1e-13)
		b.Is("held", -5*2*a, 1e-12) // upwards on the end of lever two
	})
}

// The plane vehicle drifts out of none of its joints: a frame between two guides that turn
// with it, one of them locked, with heavy and light bodies and a lever of 1 mm.
func TestChainOfJointsDoesNotDrift(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
ground: {type: fixed}
light: {type: body, m: 0.2, J: 1e-4, x_start: 4, y_start: 1.001, nodes: {pin: [0, -1 mm]}, v_x_start: 3}
frame: {type: body, m: 3000, J: 2500, x_start: 0, y_start: 0, nodes: {front: [1.3, 1]}, w_start: 0.02, v_x_start: 2}
axle: {type: body, m: 1500, J: 80, x_start: -1.3, y_start: -0.4, v_x_start: 2}
rail: {type: translational_joint, a: frame.front, b: light.pin, angle: 0}
box: {type: translational_joint, a: frame, b: axle, angle: `+fmt.Sprint(math.Atan2(-0.4, -1.3))+`, rotation: locked}
soft: {type: spring_damper, a: frame.front.x, b: light.x, c: 50, d: 0, s_rel0: 2.5}
way: {type: line, a: frame, b: axle}
primary: {type: spring_damper, a: ground, b: way, c: 1e6, d: 100, s_rel0: 1.3}
road: {type: spring_damper, a: ground, b: axle.y, c: 2e6, d: 500, s_rel0: -0.41}
wheel: {type: spring_damper, a: ground, b: frame.y, c: 1e5, d: 50}
push: {type: force, flange: axle.x, f: {sine: {amplitude: 2 kN, f: 0.7 Hz}}}
`, `
xf: {position: frame.x}
yf: {position: frame.y}
phi: {angle: frame.phi}
xl: {position: light.x}
yl: {position: light.pin.y}
xa: {position: axle.x}
ya: {position: axle.y}
turn: {angle: axle.phi}
`), 5*time.Millisecond)
	rail, box, turn, moved := 0.0, 0.0, 0.0, 0.0
	l := math.Hypot(1.3, 0.4)
	b.To(20, func(float64) {
		phi := b.Get("phi")
		rail = max(rail, math.Abs(b.Get("yl")-1-b.Get("yf")-4*phi))
		across := (0.4*(b.Get("xa")+1.3-b.Get("xf")) - 1.3*(b.Get("ya")+0.4-b.Get("yf"))) / l
		box = max(box, math.Abs(across-l*phi))
		turn = max(turn, math.Abs(b.Get("turn")-phi))
		moved = max(moved, math.Abs(phi))
	})
	t.Logf("drift in 20 s: %.1e m, %.1e m, %.1e rad; turned by %.2g rad", rail, box, turn, moved)
	if !(rail <= 1e-12 && box <= 1e-12 && turn <= 1e-12) || !(moved > 1e-4) {
		t.Errorf("drift in 20 s: %g m, %g m, %g rad; turned by %g rad", rail, box, turn, moved)
	}
}

// Two force sensors, along x and y, pin two points together: levers on a pivot, whose
// coordinates along x are held.
func TestForceSensorsPinLeversTogether(t *testing.T) {
	b := modeltest.New(t, modeltest.PlantOf(`
base: {type: body, dof: [], x_start: 0, y_start: 0}
one: {type: body, m: 3, J: 0.4, x_start: 0.5, y_start: 0, nodes: {l: [-0.5, 0], r: [0.5, 0]}}
two: {type: body, m: 2, J: 0.3, x_start: 1.6, y_start: 0, nodes: {l: [-0.6, 0], r: [0.6, 0]}}
ax: {type: force_sensor, a: base.x, b: one.l.x}
ay: {type: force_sensor, a: base.y, b: one.l.y}
bx: {type: force_sensor, a: one.r.x, b: two.l.x}
by: {type: force_sensor, a: one.r.y, b: two.l.y}
push: {type: force, flange: one.r.y, f: 10}
`, `
one: {speed: one.phi}
two: {speed: two.phi}
tip: {position: two.r.y}
pivot: {signal: ay}
pin: {signal: by}
`), 5*time.Millisecond)
	// Over both angles: 0.4 + 3·0.5² + 2·1², 2·0.6 and 0.3 + 2·0.6².
	const m11, m12, m22 = 3.15, 1.2, 1.02
	a1, a2 := 10*m22/(m11*m22-m12*m12), -10*m12/(m11*m22-m12*m12)
	y2 := a1 + 0.6*a2
	b.To(0.5, func(at float64) {
		b.Is("one", a1*at, 1e-12)
		b.Is("two", a2*at, 1e-12)
		b.Is("tip", (a1+1.2*a2)*at*at/2, 1e-12)
		b.Is("pin", 2*y2, 1e-11)
		b.Is("pivot", 2*y2+3*0.5*a1-10, 1e-11)
	})
}
