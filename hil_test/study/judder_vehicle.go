package main

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// juddering is the vehicle of 001 with one of its cases: a body on two wheels in
// translational joints, the driveline of figure 2 in front. Forces are positive forward
// and up, wheels and shafts turn positive where that drives forward, the body
// counter-clockwise, which lifts its nose. What 001 leaves open is as in E1_case1.json.
type juddering struct {
	name           string
	muStatic, mu   float64 // between tyre and road
	static, slides float64 // torque that the clutch holds, and that it transmits slipping, N·m
	stribeck       float64 // speed of the Stribeck effect, rad/s; 0: Coulomb
	engine         float64 // N·m
	harmonics      bool    // of the engine (001 section 4)
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
	rollingArm          = 0.005          // of the rolling resistance, m
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

// height is that of axle i over the road, m.
func height(i int, q *[freedoms]float64) float64 {
	l, s := offset(i), q[qS1+i]
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

// judderModel is the vehicle in minimal freedoms, in which the translational joints
// hold by themselves; it is written without anything of the kernel. It goes in steps of
// Runge and Kutta of order 4 that end where a contact sticks, breaks away or turns.
type judderModel struct {
	*juddering
	held    *posture // that of another time; nil: as the vehicle stands
	t       float64  // s
	z       motion
	mode    [rubbing]int     // 0: sticks, otherwise the sign of its slip
	changed [rubbing]float64 // s, when each contact last changed
	changes int              // of all contacts

	// At the last place asked for.
	rate     motion           // z'
	load     [2]float64       // normal forces, N
	friction [rubbing]float64 // clutch: from flywheel to disc, N·m; tyres: forward on the vehicle, N
	slip     [rubbing]float64 // flywheel less disc, rad/s; axle less circumference, m/s
}

// motion is a state: freedoms and their rates.
type motion struct{ q, v [freedoms]float64 }

func newJudder(c *juddering) *judderModel {
	m := &judderModel{juddering: c}
	m.z.q, m.z.v = c.start()
	m.settle()
	return m
}

// walk goes on to the time until, in steps of at most dt, s.
func (m *judderModel) walk(until, dt float64) {
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
		m.settle()
	}

	m.eval(&m.z)
}

// step is where the vehicle is h later if no contact changes.
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

// still is a slip that counts as none, rad/s and m/s: far above what rounding and the
// search for an event leave, far below any slip.
const still = 1e-9

// crossed tells whether a contact would have changed on the way to z.
func (m *judderModel) crossed(z *motion) bool {
	m.eval(z)
	for i, mode := range m.mode {
		if mode != 0 && m.slip[i]*float64(mode) < -still || mode == 0 && m.over(i) > 0 {
			return true
		}
	}

	return false
}

// over is by how much a stuck contact is overloaded, N·m or N.
func (m *judderModel) over(i int) float64 { return math.Abs(m.friction[i]) - m.capacity(i, true) }

// capacity is what contact i can bear.
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

// settle finds modes that fit the state: what is at rest sticks if it can, the most
// overloaded goes first, as many as it takes.
func (m *judderModel) settle() {
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
			m.mode[worst] = -1 // the tyre's force is against its slip, the clutch's along it
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

// unknowns are the accelerations, and the friction in each contact.
const unknowns = freedoms + rubbing

// eval computes rates, forces and slips at z, by one linear system for all unknowns:
//
//	M·v' - sum of W_i·friction_i = Q
//	W_i·v' = -b_i of a contact that sticks, friction_i = its capacity of one that slips
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

// slips are the speeds in the contacts and the normal forces.
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

// smooth are the forces without friction in contacts, along the freedoms.
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

// inertia adds up the mass matrix, and takes from the forces what the speeds ask for.
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

// contacts adds the friction in each contact: of the clutch on disc against flywheel, of a
// tyre forward on the axle. Its slip acceleration has p.bx beside w·v'.
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
