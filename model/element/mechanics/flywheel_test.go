package mechanics_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"lockstep/model/modeltest"
)

// flywheel is the event-driven solution of two masses with arc springs under a constant torque on the first. In a
// stage and a direction the deflection is xe + A·cos(Ω·t) + B·sin(Ω·t); stages end at borders, directions where the
// slip is zero.
type flywheel struct {
	J1, J2, torque  float64
	c, borders, h   []float64 // of |x|: stiffness, borders and half the width of the loop of each stage
	stop, rebound   float64
	x, v            float64
	mean, meanSpeed float64 // angle and speed of the centre of both masses
	rubbed, struck  float64 // J
	impacts         int
}

// stage returns the stage of the deflection that follows x in the direction of dir.
func (f *flywheel) stage(dir float64) int {
	i := 0
	for i < len(f.borders) && (math.Abs(f.x) > f.borders[i] || math.Abs(f.x) == f.borders[i] && dir*f.x > 0) {
		i++
	}
	return i
}

// spring returns the torque of the springs at a deflection of stage i.
func (f *flywheel) spring(i int, x float64) float64 {
	sum, at := 0.0, 0.0
	for k := range i {
		sum += f.c[k] * (f.borders[k] - at)
		at = f.borders[k]
	}
	return math.Copysign(sum+f.c[i]*(math.Abs(x)-at), x)
}

// energy returns the energy of the springs.
func (f *flywheel) energy(x float64) float64 {
	sum, at := 0.0, 0.0
	for k, c := range f.c {
		end := math.Abs(x)
		if k < len(f.borders) {
			end = min(end, f.borders[k])
		}
		if end > at {
			sum += (f.spring(k, at) + c*(end-at)/2) * (end - at)
			at = end
		}
	}
	return sum
}

// advance moves the masses on by dt.
func (f *flywheel) advance(dt float64) {
	all := f.J1 + f.J2
	f.mean += (f.meanSpeed + f.torque/all*dt/2) * dt
	f.meanSpeed += f.torque / all * dt
	inverse := 1/f.J1 + 1/f.J2
	for left := dt; left > 0; {
		dir := 1.0
		if f.v < 0 {
			dir = -1
		}
		i := f.stage(dir)
		if f.v == 0 { // it goes on where the springs push it, or holds
			push := -inverse*f.spring(i, f.x) - f.torque/f.J1
			if math.Abs(push) <= inverse*f.h[i] {
				return
			}
			dir = math.Copysign(1, push)
			i = f.stage(dir)
		}
		// a = push - k·(x - x0)
		k := inverse * f.c[i]
		push := -inverse*(f.spring(i, f.x)+dir*f.h[i]) - f.torque/f.J1
		at := func(t float64) (x, v float64) {
			if k == 0 {
				return f.x + f.v*t + push*t*t/2, f.v + push*t
			}
			o := math.Sqrt(k)
			s, c := math.Sincos(o * t)
			return f.x + push/k*(1-c) + f.v/o*s, f.v*c + push/o*s
		}
		first, cause := left, ""
		earliest := func(t float64, what string) {
			if t > 1e-13 && t < first {
				first, cause = t, what
			}
		}
		for _, b := range f.borders {
			earliest(f.reach(k, push, b), "border")
			earliest(f.reach(k, push, -b), "border")
		}
		earliest(f.reach(k, push, f.stop), "stop")
		earliest(f.reach(k, push, -f.stop), "stop")
		earliest(f.rest(k, push), "rest")
		x, v := at(first)
		f.rubbed += f.h[i] * math.Abs(x-f.x)
		f.x, f.v = x, v
		switch cause {
		case "rest":
			f.v = 0
		case "border":
			for _, b := range f.borders {
				if math.Abs(math.Abs(f.x)-b) < 1e-10 {
					f.x = math.Copysign(b, f.x)
				}
			}
		case "stop":
			f.x = math.Copysign(f.stop, f.x)
			f.struck += (1 - f.rebound*f.rebound) * f.v * f.v / (2 * inverse)
			f.v *= -f.rebound
			f.impacts++
		}
		left -= first
	}
}

// reach returns the first time after which x has come to b, +Inf for never.
func (f *flywheel) reach(k, push, b float64) float64 {
	d := b - f.x
	if k == 0 {
		return firstPositive(roots(push/2, f.v, -d)...)
	}
	o := math.Sqrt(k)
	// d = push/k·(1 - cos) + v/o·sin
	R, phase := math.Hypot(push/k, f.v/o), math.Atan2(f.v/o, -push/k)
	c := (d - push/k) / R
	if math.Abs(c) > 1 {
		return math.Inf(1)
	}
	a := math.Acos(c)
	return firstPositive(positiveAngle(phase+a)/o, positiveAngle(phase-a)/o)
}

// rest returns the first time at which the slip is zero.
func (f *flywheel) rest(k, push float64) float64 {
	if k == 0 {
		return firstPositive(-f.v / push)
	}
	o := math.Sqrt(k)
	a := positiveAngle(math.Atan2(-f.v, push/o))
	if a > math.Pi+1e-12 {
		a -= math.Pi
	}
	return a / o
}

// positiveAngle returns an angle above 0 and up to a turn.
func positiveAngle(a float64) float64 {
	for a <= 1e-12 {
		a += 2 * math.Pi
	}
	for a > 2*math.Pi+1e-12 {
		a -= 2 * math.Pi
	}
	return a
}

func roots(a, b, c float64) []float64 {
	if a == 0 {
		return []float64{-c / b}
	}
	d := b*b - 4*a*c
	if d < 0 {
		return nil
	}
	return []float64{(-b + math.Sqrt(d)) / (2 * a), (-b - math.Sqrt(d)) / (2 * a)}
}

func firstPositive(times ...float64) float64 {
	first := math.Inf(1)
	for _, t := range times {
		if t > 1e-13 && t < first {
			first = t
		}
	}
	return first
}

// The plant follows the event-driven solution through free play, two stages, friction and stops, and its energy is
// the work less what friction and impacts take.
func TestFlywheelFollowsItsEventDrivenSolution(t *testing.T) {
	for _, c := range []struct {
		name, keys string
		f          flywheel
	}{
		{"two stages", "c: [300, 2000], borders: [0.3], hysteresis: [8, 30]",
			flywheel{c: []float64{300, 2000}, borders: []float64{0.3}, h: []float64{4, 15}, stop: math.Inf(1)}},
		{"two stages without friction", "c: [300, 2000], borders: [0.3]",
			flywheel{c: []float64{300, 2000}, borders: []float64{0.3}, h: []float64{0, 0}, stop: math.Inf(1)}},
		{"play, two stages, stops", "c: [0, 300, 600], borders: [0.05, 0.3], hysteresis: [2, 8, 30], phi_stop: 0.32, restitution: 0.7",
			flywheel{c: []float64{0, 300, 600}, borders: []float64{0.05, 0.3}, h: []float64{1, 4, 15}, stop: 0.32, rebound: 0.7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := modeltest.New(t, modeltest.PlantOf(`
crank: {type: inertia, J: 0.1, w_start: 130}
turbine: {type: inertia, J: 0.02, w_start: 100}
push: {type: torque, flange: crank, tau: 60}
dmf: {type: dual_mass_flywheel, a: crank, b: turbine, J_primary: 0.05, J_secondary: 0.06, `+c.keys+`}`,
				"x: {phi_rel: dmf}\nv: {w_rel: dmf}\nw: {speed: crank}\nE: {energy: dmf}\nEa: {energy: crank}\nEb: {energy: turbine}\nW: {work: push}"+
					map[bool]string{true: "\nD: {dissipated: dmf}"}[c.f.h[0] > 0]), time.Millisecond)
			f := c.f
			f.J1, f.J2, f.torque, f.v = 0.15, 0.08, 60, -30
			f.meanSpeed = (0.15*130 + 0.08*100) / 0.23
			start := b.Get("E") + b.Get("Ea") + b.Get("Eb")
			stages, crossings := 0, map[int]bool{}
			b.To(0.5, func(at float64) {
				f.advance(0.001)
				b.Is("x", f.x, 1e-9)
				b.Is("v", f.v, 1e-8*30)
				b.Is("w", f.meanSpeed-0.08/0.23*f.v, 1e-9)
				if f.h[0] > 0 {
					b.Is("D", f.rubbed+f.struck, 1e-6) // the integral of a law
				}
				w1, w2 := b.Get("w"), b.Get("w")+b.Get("v")
				b.Is("E", 0.05/2*w1*w1+0.06/2*w2*w2+f.energy(f.x), 1e-8)
				b.Is("W", b.Get("E")+b.Get("Ea")+b.Get("Eb")-start+f.rubbed+f.struck, 1e-6)
				crossings[f.stage(1)] = true
				stages = len(crossings)
			})
			if stages < len(f.c) || !math.IsInf(f.stop, 1) && f.impacts < 2 {
				t.Errorf("%d stages, %d impacts", stages, f.impacts)
			}
		})
	}
}

// With friction by the centrifugal force, a deflection from 0 loses half the width of the loop times the deflection.
func TestCentrifugalFrictionOfAFlywheelGrowsWithItsSpeed(t *testing.T) {
	for _, w := range []float64{0, 100, 300} {
		b := modeltest.New(t, modeltest.PlantOf(fmt.Sprintf(`
crank: {type: inertia, J: 1e6, w_start: %g}
turbine: {type: inertia, J: 0.02, w_start: %g}
dmf: {type: dual_mass_flywheel, a: crank, b: turbine, J_primary: 0.05, J_secondary: 0.06, c: [300, 2000], borders: [0.3],
      hysteresis: 4, hysteresis_w2: 2e-4}`, w, w+20), "x: {phi_rel: dmf}\nv: {w_rel: dmf}\nD: {dissipated: dmf}"), time.Millisecond)
		rows, turned := 0, false
		b.To(0.05, func(float64) {
			if !turned && b.Get("v") > 0 {
				rows++
				b.Is("D", (2+1e-4*w*w)*b.Get("x"), 1e-6)
			} else if rows < 10 {
				t.Fatalf("at %g rad/s it turns back after %d rows", w, rows)
			} else {
				turned = true
			}
		})
	}
}

func TestBadFlywheelIsRefused(t *testing.T) {
	const old = "  drag: {type: damper, a: frame, b: wheel, d: 0.01}"
	const good = "  drag: {type: dual_mass_flywheel, a: frame, b: wheel, "
	for _, c := range [][2]string{
		{"J_primary: «0», J_secondary: 1, c: [1], borders: []", `J_primary 0 kg.m2 is not positive (moment of inertia on the side of a)`},
		{"J_primary: 1, J_secondary: 1, c: [1, 2], borders: [0.1], «restitution: 0.5»", `restitution goes with phi_stop`},
		{"J_primary: 1, J_secondary: 1, c: [1, 2], borders: [0.1], «w_max: 500»", `w_max goes with hysteresis_w2 above 0`},
		{"J_primary: 1, J_secondary: 1, c: [1, 2], borders: [0.1], «heat_port: x»", `heat_port goes with hysteresis or d`},
		{"J_primary: 1, J_secondary: 1, c: «[1, 2]», borders: [0.1, 0.2]", `c has 2 values; 2 borders make 3 regions`},
	} {
		modeltest.Refuse(t, modeltest.Train, old, good+c[0]+"}", `element "drag": `+c[1])
	}
}
