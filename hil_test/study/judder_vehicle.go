package main

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// juddering is the vehicle of the judder paper with one of its cases: a body on two wheels in translational
// joints, with the driveline of figure 2 in front. Forces are positive forward and up. Wheels and
// shafts turn positive when driving forward, the body counter-clockwise, nose up. Parameters that
// the judder paper does not print are those of E1_case1.json.
type juddering struct {
	name           string
	muStatic, mu   float64 // static and sliding friction between tyre and road, 1
	static, slides float64 // static capacity and sliding torque of the clutch, N·m
	stribeck       float64 // speed of the Stribeck effect, rad/s; 0: Coulomb
	engine         float64 // torque, N·m
	harmonics      bool    // harmonics of the engine torque (the judder paper, section 4)
	v              float64 // speed at the start, m/s
}

// Parameters of the judder paper, section 4; the mass of the tyre and the unloaded length of the
// suspension are not printed.
const (
	bodyMass, bodyJ     = 1400.0, 1200.0 // kg, kg·m²
	wheelMass, wheelJ   = 30.0, 2.0      // kg, kg·m²
	arm                 = 1.0            // distance from the centre of mass to an axle, m
	wheelRadius         = 0.25           // m
	suspension, damping = 25e3, 3500.0   // N/m, N·s/m
	engineJ             = 0.6            // kg·m²
	flywheelJ           = 0.2            // kg·m²
	discJ               = 0.28           // kg·m²
	inputC, inputD      = 77e3, 1.76     // N·m/rad, N·m·s/rad, engine to flywheel
	shaftC, shaftD      = 16e3, 0.12     // clutch disc to driven wheel
	tyreC               = 150e3          // N/m
	rollingArm          = 0.005          // lever arm of the rolling resistance, m
	gravity             = 9.81           // m/s²
	standing            = 0.6            // height of the centre of mass at rest, m
	axleLoad            = bodyMass * gravity / 2
	wheelLoad           = axleLoad + wheelMass*gravity
	stroke              = standing - wheelRadius + wheelLoad/tyreC // length of the suspension at rest, m: 0.397742
	unloaded            = stroke + axleLoad/suspension             // unloaded length: 0.672422 m
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

// posture is the geometry of the wheels.
type posture struct {
	jx, jy [2][4]float64 // Jacobians of wheel i in x and y over (x, y, phi, s_i)
	bx, by [2]float64    // velocity-dependent acceleration of wheel i, m/s²
}

// offset returns the distance of axle i ahead of the centre of mass, m: the driven wheel is in
// front.
func offset(i int) float64 { return arm * float64(1-2*i) }

// poseOf returns the posture at q with speeds v. Wheel i is at (x + l·cos + s·sin, y + l·sin -
// s·cos), sine and cosine of phi.
func poseOf(q, v *[freedoms]float64) *posture {
	p := &posture{}
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

// height returns the height of axle i over the road, m.
func height(i int, q *[freedoms]float64) float64 {
	l, s := offset(i), q[qS1+i]
	sin, cos := math.Sincos(q[qPhi])
	return q[qY] + l*sin - s*cos
}

// along returns the speed of axle i in the direction of its Jacobian j, m/s.
func along(j *[2][4]float64, i int, v *[freedoms]float64) float64 {
	return j[i][0]*v[qX] + j[i][1]*v[qY] + j[i][2]*v[qPhi] + j[i][3]*v[qS1+i]
}

// torque returns the engine torque at an angle, N·m. The paper prints sin(2·theta'·t), which is read as
// sin(2·theta).
func (c *juddering) torque(angle float64) float64 {
	if !c.harmonics {
		return c.engine
	}
	return c.engine * (1 + 1.8*math.Sin(2*angle) + 0.7*math.Sin(4*angle))
}

// sliding returns the torque of the slipping clutch, N·m, at a slip, rad/s.
func (c *juddering) sliding(slip float64) float64 {
	if c.stribeck == 0 {
		return c.slides
	}
	return c.slides + (c.static-c.slides)*math.Exp(-math.Pow(math.Abs(slip)/c.stribeck, 0.6))
}

// start returns the vehicle in vertical equilibrium, rolling at its speed.
func (c *juddering) start() (q, v [freedoms]float64) {
	q[qY], q[qS1], q[qS2] = standing, stroke, stroke
	v[qX] = c.v
	for i := qWheel1; i <= qEngine; i++ {
		v[i] = c.v / wheelRadius
	}
	return q, v
}

// judderModel is the vehicle in minimal coordinates, which satisfy the translational joints. It
// shares no code with the kernel. It integrates with Runge-Kutta of order 4; steps end where a
// contact locks, breaks away or reverses.
type judderModel struct {
	*juddering
	held    *posture // held geometry; nil: the current one
	t       float64  // s
	z       motion
	mode    [rubbing]int     // 0: locked, otherwise the sign of the slip
	changed [rubbing]float64 // time of the last transition of each contact, s
	changes int              // transitions of all contacts

	// Results of the last eval.
	rate     motion           // z'
	load     [2]float64       // normal forces, N
	friction [rubbing]float64 // clutch: from flywheel to disc, N·m; tyres: forward on the vehicle, N
	slip     [rubbing]float64 // flywheel less disc, rad/s; axle less circumference, m/s
}

// motion is a state: coordinates and their rates.
type motion struct{ q, v [freedoms]float64 }

func newJudder(c *juddering) *judderModel {
	m := &judderModel{juddering: c}
	m.z.q, m.z.v = c.start()
	m.resolveModes()
	return m
}

// advance integrates to the time until, s, in steps of at most dt, s.
func (m *judderModel) advance(until, dt float64) {
	for until-m.t > 1e-12 {
		h := min(dt, until-m.t)
		next := m.step(h)
		if !m.crossed(&next) {
			m.z, m.t = next, m.t+h
			continue
		}

		_, h = bisect(0, h, 1e-13, func(part float64) bool {
			at := m.step(part)
			return m.crossed(&at)
		})
		m.z, m.t = m.step(h), m.t+h
		m.resolveModes()
	}

	m.eval(&m.z)
}

// step returns the state h later without a transition of a contact.
func (m *judderModel) step(h float64) motion {
	at := func(k *motion, c float64) (z motion) {
		for i := range freedoms {
			z.q[i], z.v[i] = m.z.q[i]+c*k.q[i], m.z.v[i]+c*k.v[i]
		}
		return z
	}

	zero := motion{}
	k1 := m.derive(at(&zero, 0))
	k2 := m.derive(at(&k1, h/2))
	k3 := m.derive(at(&k2, h/2))
	k4 := m.derive(at(&k3, h))
	var sum motion
	for i := range freedoms {
		sum.q[i] = k1.q[i] + 2*k2.q[i] + 2*k3.q[i] + k4.q[i]
		sum.v[i] = k1.v[i] + 2*k2.v[i] + 2*k3.v[i] + k4.v[i]
	}

	return at(&sum, h/6)
}

func (m *judderModel) derive(z motion) motion {
	m.eval(&z)
	return m.rate
}

// still is the slip below which a contact counts as at rest, rad/s and m/s: far above the errors of
// rounding and event location, far below any slip.
const still = 1e-9

// crossed reports whether a contact has a transition on the way to z.
func (m *judderModel) crossed(z *motion) bool {
	m.eval(z)
	for i, mode := range m.mode {
		if mode != 0 && m.slip[i]*float64(mode) < -still || mode == 0 && m.over(i) > 0 {
			return true
		}
	}

	return false
}

// over returns the friction of a locked contact less its static capacity, N·m or N.
func (m *judderModel) over(i int) float64 { return math.Abs(m.friction[i]) - m.capacity(i, true) }

// capacity returns the capacity of contact i, static (sticks) or sliding, N·m or N.
func (m *judderModel) capacity(i int, sticks bool) float64 {
	switch {
	case i == clutch && sticks:
		return m.static
	case i == clutch:
		return m.sliding(m.slip[clutch])
	case sticks:
		return m.muStatic * m.load[i-front]
	}

	return m.mu * m.load[i-front]
}

// resolveModes finds consistent modes. It locks all contacts at rest and releases the most
// overloaded one until none is overloaded.
func (m *judderModel) resolveModes() {
	before := m.mode
	m.eval(&m.z)
	for i := range m.mode {
		if math.Abs(m.slip[i]) <= 2*still {
			m.mode[i] = 0
		}
	}

	for range rubbing {
		m.eval(&m.z)
		worst, most := -1, 0.0
		for i, mode := range m.mode {
			if share := m.over(i) / (1e-300 + m.capacity(i, true)); mode == 0 && share > max(most, -1e-12) {
				worst, most = i, max(share, 0)
			}
		}

		if worst < 0 {
			break
		}
		m.mode[worst] = 1
		if m.friction[worst] > 0 != (worst == clutch) {
			m.mode[worst] = -1 // the tyre force opposes the slip, the clutch torque has its sign
		}
	}

	for i := range m.mode {
		if m.mode[i] != before[i] {
			m.changed[i] = m.t
			m.changes++
		}
	}

	m.eval(&m.z)
}

// unknowns is the number of accelerations and contact frictions.
const unknowns = freedoms + rubbing

// eval computes rates, forces and slips at z, by one linear system for all unknowns:
//
//	M·v' - sum of W_i·friction_i = Q
//	W_i·v' = -b_i for a locked contact, friction_i = its capacity for a slipping one
func (m *judderModel) eval(z *motion) {
	p := m.held
	if p == nil {
		p = poseOf(&z.q, &z.v)
	}
	m.slips(p, z)
	var a [unknowns][unknowns]float64
	var b [unknowns]float64
	force := m.smooth(p, z)
	copy(b[:], force[:])
	m.inertia(p, &a, &b)
	m.contacts(p, &a, &b)

	var flat [unknowns * unknowns]float64
	for i, row := range a {
		copy(flat[i*unknowns:], row[:])
	}
	var pivots [unknowns]int
	matrix := blas64.General{Rows: unknowns, Cols: unknowns, Stride: unknowns, Data: flat[:]}
	lapack64.Getrf(matrix, pivots[:])
	lapack64.Getrs(blas.NoTrans, matrix, blas64.General{Rows: unknowns, Cols: 1, Stride: 1, Data: b[:]}, pivots[:])
	m.rate.q = z.v
	copy(m.rate.v[:], b[:freedoms])
	copy(m.friction[:], b[freedoms:])
}

// slips sets the slips of the contacts and the normal forces.
func (m *judderModel) slips(p *posture, z *motion) {
	m.slip[clutch] = z.v[qFlywheel] - z.v[qDisc]
	for i := range 2 {
		m.slip[front+i] = along(&p.jx, i, &z.v) - wheelRadius*z.v[qWheel1+i]
		depth := wheelRadius - height(i, &z.q)
		m.load[i] = 0
		if depth > 0 {
			m.load[i] = max(0, tyreC*depth-tyreD*along(&p.jy, i, &z.v))
		}
	}
}

// smooth returns the generalised forces without contact friction.
func (m *judderModel) smooth(p *posture, z *motion) (f [freedoms]float64) {
	q, v := &z.q, &z.v
	f[qY] = -bodyMass * gravity
	for i := range 2 {
		up := m.load[i] - wheelMass*gravity
		f[qX] += up * p.jy[i][0]
		f[qY] += up * p.jy[i][1]
		f[qPhi] += up * p.jy[i][2]
		f[qS1+i] += up*p.jy[i][3] + suspension*(unloaded-q[qS1+i]) - damping*v[qS1+i]
		f[qWheel1+i] -= rollingArm * m.load[i] * math.Copysign(1, v[qWheel1+i])
	}

	drive := m.torque(q[qEngine])
	f[qPhi] += drive
	input := inputC*(q[qEngine]-q[qFlywheel]) + inputD*(v[qEngine]-v[qFlywheel])
	shaft := shaftC*(q[qDisc]-q[qWheel1]) + shaftD*(v[qDisc]-v[qWheel1])
	f[qEngine] += drive - input
	f[qFlywheel] += input
	f[qDisc] -= shaft
	f[qWheel1] += shaft
	return f
}

// inertia adds the mass matrix to a and subtracts the velocity-dependent inertia forces from f.
func (m *judderModel) inertia(p *posture, a *[unknowns][unknowns]float64, f *[unknowns]float64) {
	for k, v := range [freedoms]float64{bodyMass, bodyMass, bodyJ, 0, 0, wheelJ, wheelJ, discJ, flywheelJ, engineJ} {
		a[k][k] = v
	}
	for i := range 2 {
		at := [4]int{qX, qY, qPhi, qS1 + i}
		for j, row := range at {
			f[row] -= wheelMass * (p.jx[i][j]*p.bx[i] + p.jy[i][j]*p.by[i])
			for k, column := range at {
				a[row][column] += wheelMass * (p.jx[i][j]*p.jx[i][k] + p.jy[i][j]*p.jy[i][k])
			}
		}
	}
}

// contacts adds the friction of each contact: the clutch acts on the disc and against the flywheel,
// a tyre forward on the axle. The slip acceleration of a tyre is w·v' + p.bx.
func (m *judderModel) contacts(p *posture, a *[unknowns][unknowns]float64, b *[unknowns]float64) {
	var w [rubbing][freedoms]float64
	w[clutch][qDisc], w[clutch][qFlywheel] = 1, -1
	for i := range 2 {
		for j, k := range [4]int{qX, qY, qPhi, qS1 + i} {
			w[front+i][k] = p.jx[i][j]
		}
		w[front+i][qWheel1+i] = -wheelRadius
		b[freedoms+front+i] = -p.bx[i]
	}

	for i, mode := range m.mode {
		row := freedoms + i
		for k, v := range w[i] {
			a[k][row] = -v
		}
		if mode == 0 {
			copy(a[row][:], w[i][:])
			continue
		}

		a[row][row], b[row] = 1, m.capacity(i, false)*float64(mode)
		if i != clutch {
			b[row] = -b[row]
		}
	}
}
