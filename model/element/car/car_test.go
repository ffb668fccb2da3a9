package car_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/modeltest"
)

// The car of the tests, SI.
const (
	mass, jYaw, jRoll, jPitch     = 1500.0, 2500.0, 550.0, 2300.0
	height, front, rear           = 0.55, 1.2, 1.5
	halfTrack                     = 0.75
	cRoll, dRoll, cPitch, dPitch  = 85e3, 6e3, 170e3, 14e3
	share, gravity                = 0.58, 9.81
	radius, jWheel                = 0.3, 1.0
	sigmaX, sigmaY, damping, vLow = 0.3, 0.5, 0.005, 2.0
	nominal                       = 4000.0
	coefficients                  = "{PCX1: 1.6, PDX1: 1.1, PDX2: -0.1, PEX1: 0.2, PEX2: 0.1, PKX1: 25, PKX2: -0.5, PKX3: 0.2, RBX1: 12, RBX2: 10, RCX1: 1.1, REX1: 0.1, PCY1: 1.4, PDY1: 1, PDY2: -0.15, PEY1: -0.8, PEY2: -0.3, PKY1: -20, PKY2: 1.8, RBY1: 10, RBY2: 8, RBY3: 0, RCY1: 1.05, REY1: 0.1}"
)

var wheels = []string{"fl", "fr", "rl", "rr"}

// plant returns a car whose wheels have torques T_fl to T_rr and roads mu_fl to mu_rr; edits replace parts of the
// text.
func plant(v float64, edits ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plant: t\ninputs:\n  steer: {unit: rad, min: -0.6, max: 0.6}\n  slope: {unit: rad, min: -0.5, max: 0.5}\n")
	for _, w := range wheels {
		fmt.Fprintf(&b, "  T_%s: {unit: N.m, min: -3000, max: 3000}\n  mu_%s: {unit: 1, min: 0, max: 1, default: 1}\n", w, w)
	}
	fmt.Fprintf(&b, `elements:
  car: {type: planar_car, m: %g, J_yaw: %g, J_roll: %g, J_pitch: %g, h: %g, l_f: %g, l_r: %g, track_f: %g, track_r: %g,
    c_roll: %g, d_roll: %g, share_f: %g, c_pitch: %g, d_pitch: %g, slope: slope, v_x_start: %g}
  rack: {type: steering, car: car, angle: steer}
`, mass, jYaw, jRoll, jPitch, height, front, rear, 2*halfTrack, 2*halfTrack, cRoll, dRoll, share, cPitch, dPitch, v)
	for i, w := range wheels {
		steer := []string{"steer: rack.left, ", "steer: rack.right, ", "", ""}[i]
		fmt.Fprintf(&b, `  w_%[1]s: {type: inertia, J: %[2]g, w_start: %[3]g}
  t_%[1]s: {type: torque, flange: w_%[1]s, support: car.pitch, tau: T_%[1]s}
  %[1]s: {type: mf_tyre, a: w_%[1]s, b: car.%[1]s, radius: %[4]g, %[5]sfriction: mu_%[1]s, FNOMIN: %[6]g, relaxation_x: %[7]g, relaxation_y: %[8]g, damping: %[9]g, coefficients: COEFFICIENTS}
`, w, jWheel, v/radius, radius, steer, nominal, sigmaX, sigmaY, damping)
	}
	b.WriteString("outputs:\n  u: {speed: car.x}\n  v: {speed: car.y}\n  r: {speed: car.yaw}\n  p: {speed: car.roll}\n  q: {speed: car.pitch}\n" +
		"  roll: {angle: car.roll}\n  pitch: {angle: car.pitch}\n  psi: {signal: car.psi}\n  X: {signal: car.X}\n  Y: {signal: car.Y}\n  a_x: {signal: car.a_x}\n  a_y: {signal: car.a_y}\n")
	for _, w := range wheels {
		fmt.Fprintf(&b, "  w_%[1]s: {speed: w_%[1]s}\n  kappa_%[1]s: {signal: %[1]s.kappa}\n  alpha_%[1]s: {signal: %[1]s.alpha}\n  fx_%[1]s: {signal: %[1]s.f_x}\n  fy_%[1]s: {signal: %[1]s.f_y}\n  fn_%[1]s: {signal: %[1]s.fn}\n  u_%[1]s: {state: %[1]s.u}\n  v_%[1]s: {state: %[1]s.v}\n", w)
	}
	return strings.NewReplacer(edits...).Replace(strings.ReplaceAll(b.String(), "COEFFICIENTS", coefficients))
}

// controls are the inputs at a time.
type controls struct {
	steer, slope float64
	torque, road [4]float64
}

// state is u, v, r, p, q, roll, pitch, psi, X, Y, then w, deflections u and v of the wheels.
type state [22]float64

// magic returns the forces of a tyre after eq. 4.E9 to 4.E67, written from the book.
func magic(kappa, alpha, fz, mu float64) (fx, fy float64) { return skewed(kappa, alpha, fz, mu, 0, 0) }

// skewed returns the same with PEY3 and RBY3.
func skewed(kappa, alpha, fz, mu, pey3, rby3 float64) (fx, fy float64) {
	if !(fz > 0) {
		return 0, 0
	}
	curve := func(c, x, e float64) float64 { return c * math.Atan(x-e*(x-math.Atan(x))) }
	df := fz/nominal - 1
	dx := (1.1 - 0.1*df) * fz * mu
	kx := fz * (25 - 0.5*df) * math.Exp(0.2*df)
	fx = dx * math.Sin(curve(1.6, kx/(1.6*dx)*kappa, 0.2+0.1*df))
	fx *= math.Cos(curve(1.1, 12*math.Cos(math.Atan(10*kappa))*alpha, 0.1))
	dy := (1 - 0.15*df) * fz * mu
	ky := -20 * nominal * math.Sin(2*math.Atan(fz/(1.8*nominal)))
	fy = dy * math.Sin(curve(1.4, ky/(1.4*dy)*alpha, (-0.8-0.3*df)*(1-pey3*math.Copysign(1, alpha))))
	fy *= math.Cos(curve(1.05, 10*math.Cos(math.Atan(8*(alpha-rby3)))*kappa, 0.1))
	return fx, fy
}

// rate is the derivative of the state.
func (s state) rate(c controls) (d state) {
	u, v, r, p, q := s[0], s[1], s[2], s[3], s[4]
	var fx, fy, mz, mx, my float64
	rollTorque, pitchTorque := cRoll*s[5]+dRoll*p, cPitch*s[6]+dPitch*q
	length := front + rear
	for i := range 4 {
		x, y, part := front, halfTrack, share
		sign := 1.0 // of the load from pitch
		static := mass * gravity * math.Cos(c.slope) * rear / length / 2
		if i >= 2 {
			x, part, sign, static = -rear, 1-share, -1, mass*gravity*math.Cos(c.slope)*front/length/2
		}
		side := -1.0
		if i%2 == 1 {
			y, side = -y, 1
		}
		fz := static + sign*pitchTorque/(2*length) + side*part*rollTorque/(2*halfTrack)
		delta := 0.0
		if i < 2 {
			delta = math.Atan(math.Tan(c.steer) / (1 + side*halfTrack/length*math.Tan(c.steer)))
		}
		along, across := u+(radius-height)*q-y*r, v+height*p+x*r
		vx, vy := along*math.Cos(delta)+across*math.Sin(delta), across*math.Cos(delta)-along*math.Sin(delta)
		w, du, dv := s[10+i], s[14+i], s[18+i]
		slip := vx - radius*w
		uRate := -slip - max(math.Abs(vx), math.Abs(slip)/10)*du/sigmaX
		vRate := vy - max(math.Abs(vx), math.Abs(vy)/10)*dv/sigmaY
		t := damping / 2 * (1 + math.Cos(math.Pi*min(1, math.Abs(vx)/vLow)))
		Fx, Fy := magic((du+t*uRate)/sigmaX, (dv+t*vRate)/sigmaY, fz, c.road[i])
		d[10+i], d[14+i], d[18+i] = (c.torque[i]-radius*Fx)/jWheel, uRate, vRate
		bx, by := Fx*math.Cos(delta)-Fy*math.Sin(delta), Fx*math.Sin(delta)+Fy*math.Cos(delta)
		fx, fy, mz = fx+bx, fy+by, mz+x*by-y*bx
		mx += height * by
		my += (radius-height)*bx - c.torque[i]
	}
	weight := mass * gravity * math.Sin(c.slope)
	d[0] = (fx-weight*math.Cos(s[7]))/mass + v*r
	d[1] = (fy+weight*math.Sin(s[7]))/mass - u*r
	d[2] = mz / jYaw
	d[3] = (mx - rollTorque + mass*gravity*height*s[5]) / jRoll
	d[4] = (my - pitchTorque + mass*gravity*height*s[6]) / jPitch
	d[5], d[6], d[7] = p, q, r
	d[8], d[9] = u*math.Cos(s[7])-v*math.Sin(s[7]), u*math.Sin(s[7])+v*math.Cos(s[7])
	return d
}

// after is the state h later, by Runge and Kutta; at gives the controls.
func (s state) after(t, h float64, at func(t float64) controls) state {
	plus := func(a state, f float64) state {
		out := s
		for i := range out {
			out[i] += f * a[i]
		}
		return out
	}
	middle := at(t + h/2)
	k1 := s.rate(at(t))
	k2 := plus(k1, h/2).rate(middle)
	k3 := plus(k2, h/2).rate(middle)
	k4 := plus(k3, h).rate(at(t + h))
	for i := range s {
		s[i] += h / 6 * (k1[i] + 2*k2[i] + 2*k3[i] + k4[i])
	}
	return s
}

// ramp is a table through points [t, value, t, value, ...].
func ramp(t float64, points ...float64) float64 {
	n := len(points)
	for i := 0; i+3 < n; i += 2 {
		if t0, t1 := points[i], points[i+2]; t <= t1 {
			return points[i+1] + (points[i+3]-points[i+1])*max(0, t-t0)/(t1-t0)
		}
	}
	return points[n-1]
}

// text returns the points as a default of an input.
func text(points []float64) string {
	var rows []string
	for i := 0; i < len(points); i += 2 {
		rows = append(rows, fmt.Sprintf("[%g s, %g]", points[i], points[i+1]))
	}
	return "default: {table: [" + strings.Join(rows, ", ") + "]}"
}

// Step steer, double lane change and braking on split friction agree with Runge and Kutta at 0.2 ms, written from
// the equations, within 1e-6 of the range of each quantity. No wheel leaves the road or locks.
func TestManoeuvresAgreeWithASecondSolver(t *testing.T) {
	zero := []float64{0, 0, 9, 0}
	for _, m := range []struct {
		name              string
		v, length, lowest float64 // lowest: a_y must be beyond
		steer, torque     []float64
		left              float64 // road on the left
	}{
		{"step steer", 25, 2, 5, []float64{0, 0, 0.5, 0, 0.7, 0.035, 9, 0.035}, zero, 1},
		{"lane change", 22, 3.5, 5, []float64{0, 0, 0.5, 0, 0.8, 0.06, 1.4, -0.06, 1.9, 0, 2.3, -0.06, 2.9, 0.06, 3.2, 0, 9, 0}, zero, 1},
		{"split braking", 28, 1.5, 0.5, []float64{0, 0, 1, 0, 2, -0.03, 9, -0.03}, []float64{0, 0, 0.5, 0, 0.6, -250, 9, -250}, 0.4},
	} {
		t.Run(m.name, func(t *testing.T) {
			edits := []string{"steer: {unit: rad, min: -0.6, max: 0.6}", "steer: {unit: rad, min: -0.6, max: 0.6, " + text(m.steer) + "}"}
			for _, w := range wheels {
				old := "T_" + w + ": {unit: N.m, min: -3000, max: 3000"
				edits = append(edits, old, old+", "+text(m.torque))
			}
			for _, w := range []string{"fl", "rl"} {
				old := "mu_" + w + ": {unit: 1, min: 0, max: 1, default: 1"
				edits = append(edits, old, fmt.Sprintf("mu_%s: {unit: 1, min: 0, max: 1, default: %g", w, m.left))
			}
			at := func(now float64) (c controls) {
				c.steer = ramp(now, m.steer...)
				for i := range 4 {
					c.torque[i] = ramp(now, m.torque...)
				}
				c.road = [4]float64{m.left, 1, m.left, 1}
				return c
			}
			s := state{0: m.v}
			for i := range 4 {
				s[10+i] = m.v / radius
			}
			names := []string{"u", "v", "r", "p", "q", "roll", "pitch", "psi", "X", "Y", "w_fl", "w_fr", "w_rl", "w_rr",
				"u_fl", "u_fr", "u_rl", "u_rr", "v_fl", "v_fr", "v_rl", "v_rr"}
			worst, low, high := map[string]float64{}, state{}, state{}
			b := newOwn(t, plant(m.v, edits...), 5*time.Millisecond)
			most := 0.0
			const h = 2e-4
			b.To(m.length, func(now float64) {
				for j := range 25 {
					s = s.after(now-5e-3+float64(j)*h, h, at)
				}
				for i, name := range names {
					worst[name] = max(worst[name], math.Abs(b.Get(name)-s[i]))
					low[i], high[i] = min(low[i], s[i]), max(high[i], s[i])
				}
				most = max(most, math.Abs(b.Get("a_y")))
				for _, w := range wheels {
					if !(b.Get("fn_"+w) > 0) {
						t.Fatalf("%s leaves the road at %g s", w, now)
					}
				}
			})
			for i, name := range names {
				e := worst[name] / (high[i] - low[i])
				t.Logf("%s: off by %.1e of its range", name, e)
				if high[i]-low[i] > 1e-9 && !(e <= 1e-6) {
					t.Errorf("%s is off by %.2g of its range %g", name, e, high[i]-low[i])
				}
			}
			if !(most > m.lowest) {
				t.Errorf("nothing happened: at most %g m/s2 to the side", most)
			}
		})
	}
}

// newOwn prepares a plant whose inputs follow their own waveforms.
func newOwn(t *testing.T, text string, period time.Duration) *modeltest.Bench {
	t.Helper()
	return modeltest.NewUndriven(t, text, kernel.Options{Period: period})
}

// On a road without friction a car without damping keeps its energy while it turns, rolls and pitches.
func TestCarThatSlidesKeepsItsEnergy(t *testing.T) {
	b := modeltest.New(t, plant(20, "d_roll: 6000", "d_roll: 1e-6", "d_pitch: 14000", "d_pitch: 1e-6", "outputs:\n", "outputs:\n  E: {energy: car}\n"),
		time.Millisecond)
	for _, w := range wheels {
		b.Set("mu_"+w, 1)
		b.Set("T_"+w, -300)
	}
	b.Set("steer", 0.05)
	b.To(0.5, nil)
	for _, w := range wheels {
		b.Set("mu_"+w, 0)
		b.Set("T_"+w, 0)
	}
	b.To(0.6, nil)
	start, most := b.Get("E"), 0.0
	b.To(1.5, func(float64) {
		b.Is("E", start, 1e-7)
		tilt := cRoll/2*b.Get("roll")*b.Get("roll") + cPitch/2*b.Get("pitch")*b.Get("pitch")
		most = max(most, tilt)
	})
	if u := b.Get("u"); !(start > mass/2*u*u && most > 50) {
		t.Errorf("%g J at %g m/s; at most %g J in the suspension", start, u, most)
	}
}

// A flywheel on the yaw node adds to the moment of inertia of the car, whether it is read before the car or after it: a
// torque T turns both with T/(J_yaw + J_primary). Each stores its own energy.
func TestInertiaOfAnElementAddsToThatOfTheCar(t *testing.T) {
	const car = "  car: {type: planar_car, m: 1500, J_yaw: 2500, J_roll: 550, J_pitch: 2300, h: 0.55, l_f: 1.2, l_r: 1.5, track_f: 1.5, track_r: 1.5, c_roll: 85e3, d_roll: 6e3, c_pitch: 170e3, d_pitch: 14e3}\n"
	const flywheel = "  dmf: {type: dual_mass_flywheel, a: car.yaw, b: rotor, J_primary: 500, J_secondary: 1, c: [0, 10], borders: [1000]}\n"
	for _, order := range []string{car + flywheel, flywheel + car} {
		b := modeltest.New(t, "plant: t\nelements:\n"+order+
			"  rotor: {type: inertia, J: 1}\n  push: {type: torque, flange: car.yaw, tau: 300 N.m}\n"+
			"outputs: {r: {speed: car.yaw}, E: {energy: car}, D: {energy: dmf}}\n", 5*time.Millisecond)
		b.To(2, nil)
		b.Is("r", 300./3000*2, 1e-12)
		b.Is("E", 2500./2*0.04, 1e-9)
		b.Is("D", 500./2*0.04, 1e-9)
	}
}
