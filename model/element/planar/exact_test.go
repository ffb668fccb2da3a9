package planar_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"lockstep/model/modeltest"
)

// halfCar is a body on springs that pitches widely: spring dampers upwards at front and rear, one along x and one along
// a line to the ground, a mass that moves upwards with the front point, and a drive that acts on the body below its
// centre.
const halfCar = `
plant: t
elements:
  road: {type: fixed}
  mast: {type: body, dof: [], x_start: 0, y_start: 0, nodes: {top: [-3, 0.5]}}
  car: {type: body, m: 1400, J: 1200, g: 9.81, x_start: 0, y_start: 0.6, phi_start: 0.05, w_start: 0.4, v_x_start: 1,
        v_y_start: -0.2, KINEMATICS nodes: {front: [1, -0.2], rear: [-1.3, -0.25], low: [0.1, -0.5]}}
  front: {type: spring_damper, a: road, b: car.front.y, c: 50 kN/m, d: 4 kN.s/m, s_rel0: 0.55}
  rear: {type: spring_damper, a: road, b: car.rear.y, c: 44 kN/m, d: 3.6 kN.s/m, s_rel0: 0.5}
  hold: {type: spring_damper, a: road, b: car.front.x, c: 2 kN/m, d: 200 N.s/m, s_rel0: 1}
  rope: {type: line, a: mast.top, b: car.rear}
  stay: {type: spring_damper, a: road, b: rope, c: 8 kN/m, d: 300 N.s/m, s_rel0: 1.5}
  sprung: {type: mass, m: 80}
  tied: {type: force_sensor, a: sprung, b: car.front.y}
  push: {type: force, flange: car.low.x, f: {sine: {amplitude: 6 kN, f: 1.3 Hz}}}
outputs:
  x: {position: car.x}
  y: {position: car.y}
  phi: {angle: car.phi}
  w: {speed: car.phi}
  y_front: {position: car.front.y}
  v_low: {speed: car.low.x}
  F_front: {force: front}
  F_rear: {force: rear}
  F_stay: {force: stay}
  a_y: {acceleration: car.y}
`

// halfCarTruth integrates the nonlinear equations of halfCar by the method of Runge and Kutta with n steps of h. at gets
// the outputs of each step.
func halfCarTruth(h float64, n int, at func(k int, y map[string]float64)) {
	const m, J, g, extra = 1400, 1200, 9.81, 80
	type state [6]float64 // x, y, phi and their rates
	outputs := map[string]float64{}
	rates := func(t float64, q state) state {
		sin, cos := math.Sincos(q[2])
		// point returns position, rate, Jacobian by phi, and J'·w of a point.
		point := func(rx, ry float64) (p, v, jac, bend [2]float64) {
			jac = [2]float64{-rx*sin - ry*cos, rx*cos - ry*sin}
			p = [2]float64{q[0] + rx*cos - ry*sin, q[1] + rx*sin + ry*cos}
			v = [2]float64{q[3] + jac[0]*q[5], q[4] + jac[1]*q[5]}
			bend = [2]float64{(-rx*cos + ry*sin) * q[5] * q[5], (-rx*sin - ry*cos) * q[5] * q[5]}
			return
		}
		f, fv, fj, fb := point(1, -0.2)
		r, rv, rj, _ := point(-1.3, -0.25)
		_, lv, lj, _ := point(0.1, -0.5)
		front, rear := 50e3*(f[1]-0.55)+4e3*fv[1], 44e3*(r[1]-0.5)+3.6e3*rv[1]
		hold := 2e3*(f[0]-1) + 200*fv[0]
		dx, dy := r[0]+3, r[1]-0.5
		length := math.Hypot(dx, dy)
		stay := 8e3*(length-1.5) + 300*(dx*rv[0]+dy*rv[1])/length
		push := 6e3 * math.Sin(2*math.Pi*1.3*t)
		sx, sy := stay*dx/length, stay*dy/length
		force := []float64{push - hold - sx, -m*g - front - rear - sy,
			push*lj[0] - hold*fj[0] - front*fj[1] - rear*rj[1] - sx*rj[0] - sy*rj[1]}
		force[1] -= extra * fb[1]
		force[2] -= extra * fb[1] * fj[1]
		mass := mat.NewDense(3, 3, []float64{m, 0, 0, 0, m + extra, extra * fj[1], 0, extra * fj[1], J + extra*fj[1]*fj[1]})
		var a mat.VecDense
		if err := a.SolveVec(mass, mat.NewVecDense(3, force)); err != nil {
			panic(err)
		}
		outputs = map[string]float64{"x": q[0], "y": q[1], "phi": q[2], "w": q[5], "y_front": f[1], "v_low": lv[0],
			"F_front": front, "F_rear": rear, "F_stay": stay, "a_y": a.AtVec(1)}
		return state{q[3], q[4], q[5], a.AtVec(0), a.AtVec(1), a.AtVec(2)}
	}
	plus := func(q, d state, h float64) state {
		for i := range q {
			q[i] += h * d[i]
		}
		return q
	}
	q := state{0, 0.6, 0.05, 1, -0.2, 0.4}
	for k := range n {
		t := float64(k) * h
		d1 := rates(t, q)
		at(k, outputs)
		d2 := rates(t+h/2, plus(q, d1, h/2))
		d3 := rates(t+h/2, plus(q, d2, h/2))
		d4 := rates(t+h, plus(q, d3, h))
		for i := range q {
			q[i] += h / 6 * (d1[i] + 2*d2[i] + 2*d3[i] + d4[i])
		}
	}
}

// worstOf returns the largest error of each output of halfCar over its range, in 5 s.
func worstOf(t *testing.T, kinematics string) map[string]float64 {
	t.Helper()
	const micro, ticks = 20, 1000
	var truth []map[string]float64
	halfCarTruth(5e-3/micro, ticks*micro+1, func(k int, y map[string]float64) {
		if k%micro == 0 {
			truth = append(truth, y)
		}
	})
	b := modeltest.New(t, strings.Replace(halfCar, "KINEMATICS", kinematics, 1), 5*time.Millisecond)
	worst, low, high := map[string]float64{}, map[string]float64{}, map[string]float64{}
	for name, v := range truth[0] {
		low[name], high[name] = v, v
	}
	b.To(5, func(float64) {
		for name, want := range truth[b.Ticks] {
			low[name], high[name] = min(low[name], want), max(high[name], want)
			worst[name] = max(worst[name], math.Abs(b.Get(name)-want))
		}
	})
	for name := range worst {
		worst[name] /= high[name] - low[name]
	}
	if !(high["phi"]-low["phi"] > 0.1) {
		t.Errorf("it pitches by %g rad only", high["phi"]-low["phi"])
	}
	return worst
}

func TestExactKinematicsMatchesANonlinearHalfCar(t *testing.T) {
	exact, linear := worstOf(t, "kinematics: exact,"), worstOf(t, "")
	if len(exact) != 10 {
		t.Errorf("%d outputs are compared, want 10", len(exact))
	}
	var seen []string
	for name, e := range exact {
		if !(e <= 3e-9) { // an acceleration was off by 3e-7 when its law was evaluated once at the start of a substep
			t.Errorf("%s is off by %.2g of its range", name, e)
		}
		seen = append(seen, fmt.Sprintf("%s %.1e (linear %.1e)", name, e, linear[name]))
	}
	if !(linear["F_rear"] > 1e-4) {
		t.Errorf("linear kinematics is off by %.2g only; the test shows nothing", linear["F_rear"])
	}
	t.Logf("error over range: %s", strings.Join(seen, ", "))
}

func TestExactLineRefusesAnAngle(t *testing.T) {
	text := strings.Replace(halfCar, "KINEMATICS", "kinematics: exact,", 1)
	modeltest.Refuse(t, text, "b: car.rear}", "b: car.rear, «angle: 10 deg»}", "element \"rope\": angle goes with kinematics: linear; the line follows its points")
}
