package main

import "math"

// juddering is the vehicle of 001 with one of its cases: a body on two wheels in
// translational joints, the driveline of figure 2 in front. Forces are positive forward
// and up, wheels and shafts turn positive where that drives forward, the body
// counter-clockwise, which lifts its nose. What 001 leaves open is as in E1_case1.json.
type juddering struct {
	name           string
	muStatic, mu   float64 // between tyre and road
	delta          float64 // rolling resistance, m; >= 0
	static, slides float64 // torque that the clutch holds, and that it transmits slipping, N·m
	stribeck       float64 // speed of the Stribeck effect, rad/s; 0: Coulomb
	engine         float64 // N·m
	harmonics      bool    // of the engine (001 section 4)
	reaction       float64 // 1: the engine's torque acts back on the body; 0: it does not
	v              float64 // at the start, m/s
}

// Parameters of 001 section 4; the mass of the tyre and the unloaded length of the
// suspension are not printed.
const (
	bodyMass, bodyJ     = 1400.0, 1200.0 // kg, kg·m²
	wheelMass, wheelJ   = 30.0, 2.0      // kg, kg·m²
	arm                 = 1.0            // from the centre of mass to an axle, m
	wheelRadius         = 0.25           // m
	suspension, damping = 25e3, 3500.0   // N/m, N·s/m
	engineJ             = 0.6            // kg·m²
	flywheelJ           = 0.2            // kg·m²
	discJ               = 0.28           // kg·m²
	inputC, inputD      = 77e3, 1.76     // N·m/rad, N·m·s/rad, engine to flywheel
	shaftC, shaftD      = 16e3, 0.12     // clutch disc to driven wheel
	tyreC               = 150e3          // N/m
	gravity             = 9.81           // m/s²
	standing            = 0.6            // height of the centre of mass at rest, m
	axleLoad            = bodyMass * gravity / 2
	wheelLoad           = axleLoad + wheelMass*gravity
	stroke              = standing - wheelRadius + wheelLoad/tyreC // of the suspension at rest, m: 0.397742
	unloaded            = stroke + axleLoad/suspension             // 0.672422 m
	clutch, front, rear = 0, 1, 2                                  // friction elements
	freedoms, rubbing   = 10, 3
)

// tyreD is 2·zeta·sqrt(m_t·K) with m_t = 30 kg and zeta = 0.05, N·s/m.
var tyreD = 2 * 0.05 * math.Sqrt(30*tyreC)

// Coordinates: body, strokes of the suspensions, wheels, clutch disc, flywheel, engine.
const (
	qX = iota
	qY
	qPhi
	qS1
	qS2
	qWheel1
	qWheel2
	qDisc
	qFlywheel
	qEngine
)

// geometry is how the lean of the body enters.
type geometry int

const (
	anyAngle   geometry = iota // as it is
	linearised                 // about the standing vehicle
	uncoupled                  // the same without the moment of the loads on legs that lean
	perStep                    // levers and inertia of the last grid point, held over the step
)

// posture is what the equations need of the geometry: for wheel i its Jacobian in x and
// y over (x, y, phi, s_i), and what its acceleration has beside that.
type posture struct {
	jx, jy [2][4]float64
	bx, by [2]float64
}

// offset is where the axle i stands before the centre of mass, m: the driven wheel leads.
func offset(i int) float64 { return arm * float64(1-2*i) }

// poseOf is the posture of the vehicle at q with speeds v: wheel i is at
// (x + l·cos + s·sin, y + l·sin - s·cos) of phi.
func poseOf(q, v *[freedoms]float64) (p posture) {
	sin, cos := math.Sincos(q[qPhi])
	w := v[qPhi]
	for i := range 2 {
		l, s, rate := offset(i), q[qS1+i], v[qS1+i]
		p.jx[i] = [4]float64{1, 0, -l*sin + s*cos, sin}
		p.jy[i] = [4]float64{0, 1, l*cos + s*sin, -cos}
		p.bx[i] = -w*w*(l*cos+s*sin) + 2*rate*w*cos
		p.by[i] = w*w*(s*cos-l*sin) + 2*rate*w*sin
	}
	return p
}

// upright is the posture of the standing vehicle.
func upright() posture {
	q, v := [freedoms]float64{qS1: stroke, qS2: stroke}, [freedoms]float64{}
	return poseOf(&q, &v)
}

// height is that of axle i over the road, m.
func (m *judderModel) height(i int, q *[freedoms]float64) float64 {
	l, s := offset(i), q[qS1+i]
	if m.geometry == linearised || m.geometry == uncoupled {
		return q[qY] + l*q[qPhi] - s
	}
	sin, cos := math.Sincos(q[qPhi])
	return q[qY] + l*sin - s*cos
}

// along is the speed in one direction of axle i with its Jacobian j.
func along(j *[2][4]float64, i int, v *[freedoms]float64) float64 {
	return j[i][0]*v[qX] + j[i][1]*v[qY] + j[i][2]*v[qPhi] + j[i][3]*v[qS1+i]
}

// torque is that of the engine at its angle and speed: 001 has sin(2·theta'·t), which
// is read as sin(2·theta).
func (c *juddering) torque(angle float64) float64 {
	if !c.harmonics {
		return c.engine
	}
	return c.engine * (1 + 1.8*math.Sin(2*angle) + 0.7*math.Sin(4*angle))
}

// sliding is what the clutch transmits at a slip, N·m.
func (c *juddering) sliding(slip float64) float64 {
	if c.stribeck == 0 {
		return c.slides
	}
	return c.slides + (c.static-c.slides)*math.Exp(-math.Pow(math.Abs(slip)/c.stribeck, 0.6))
}

// start is the standing vehicle that rolls at its speed.
func (c *juddering) start() (q, v [freedoms]float64) {
	q[qY], q[qS1], q[qS2] = standing, stroke, stroke
	v[qX] = c.v
	for i := qWheel1; i <= qEngine; i++ {
		v[i] = c.v / wheelRadius
	}
	return q, v
}
