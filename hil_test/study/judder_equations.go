package main

import "math"

// eval computes rates, forces and slips at z:
//
//	M·v' = Q + sum of W_i·friction_i,  W_i·v' + b_i = 0 of those that stick
func (m *judderModel) eval(z *motion) {
	p := m.posture(z)
	m.slips(&p, z)
	force := m.smooth(&p, z)
	var matrix [freedoms][freedoms]float64
	m.inertia(&p, &matrix, &force)
	var w [rubbing][freedoms]float64
	bias := m.directions(&p, &w)
	for i, mode := range m.mode {
		if mode != 0 {
			m.friction[i] = m.capacity(i, false) * float64(mode)
			if i != clutch {
				m.friction[i] = -m.friction[i]
			}
			for k := range force {
				force[k] += w[i][k] * m.friction[i]
			}
		}
	}
	factor(&matrix)
	free := force
	solveIn(&matrix, &free)
	m.lock(&matrix, &w, &free, &bias)
	m.rate = motion{z.v, free}
}

// posture is the geometry at z.
func (m *judderModel) posture(z *motion) posture {
	switch m.geometry {
	case linearised, uncoupled:
		p := upright()
		return p
	case perStep:
		return m.held
	}
	return poseOf(&z.q, &z.v)
}

// slips are the speeds in the contacts and the normal forces.
func (m *judderModel) slips(p *posture, z *motion) {
	m.slip[clutch] = z.v[qFlywheel] - z.v[qDisc]
	for i := range 2 {
		m.slip[front+i] = along(&p.jx, i, &z.v) - wheelRadius*z.v[qWheel1+i]
		depth := wheelRadius - m.height(i, &z.q)
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
		f[qWheel1+i] -= m.delta * m.load[i] * math.Copysign(1, v[qWheel1+i])
		if m.geometry == linearised {
			f[qPhi] += axleLoad * stroke * q[qPhi] // of legs that lean under the load at rest
		}
	}
	drive := m.torque(q[qEngine])
	f[qPhi] += m.reaction * drive
	input := inputC*(q[qEngine]-q[qFlywheel]) + inputD*(v[qEngine]-v[qFlywheel])
	shaft := shaftC*(q[qDisc]-q[qWheel1]) + shaftD*(v[qDisc]-v[qWheel1])
	f[qEngine] += drive - input
	f[qFlywheel] += input
	f[qDisc] -= shaft
	f[qWheel1] += shaft
	return f
}

// inertia adds up the mass matrix, and takes from the forces what the speeds ask for.
func (m *judderModel) inertia(p *posture, matrix *[freedoms][freedoms]float64, f *[freedoms]float64) {
	for k, v := range [freedoms]float64{bodyMass, bodyMass, bodyJ, 0, 0, wheelJ, wheelJ, discJ, flywheelJ, engineJ} {
		matrix[k][k] = v
	}
	for i := range 2 {
		at := [4]int{qX, qY, qPhi, qS1 + i}
		for j, a := range at {
			f[a] -= wheelMass * (p.jx[i][j]*p.bx[i] + p.jy[i][j]*p.by[i])
			for k, b := range at {
				matrix[a][b] += wheelMass * (p.jx[i][j]*p.jx[i][k] + p.jy[i][j]*p.jy[i][k])
			}
		}
	}
}

// directions are those in which the contacts act: the clutch on disc against flywheel,
// a tyre forward on the axle. bias is what their slip accelerations have beside w·v'.
func (m *judderModel) directions(p *posture, w *[rubbing][freedoms]float64) (bias [rubbing]float64) {
	w[clutch][qDisc], w[clutch][qFlywheel] = 1, -1
	for i := range 2 {
		for j, a := range [4]int{qX, qY, qPhi, qS1 + i} {
			w[front+i][a] = p.jx[i][j]
		}
		w[front+i][qWheel1+i] = -wheelRadius
		bias[front+i] = p.bx[i]
	}
	return bias
}

// lock adds to the accelerations a what keeps the stuck contacts stuck.
func (m *judderModel) lock(matrix *[freedoms][freedoms]float64, w *[rubbing][freedoms]float64, a *[freedoms]float64, bias *[rubbing]float64) {
	var set []int
	for i, mode := range m.mode {
		if mode == 0 {
			set = append(set, i)
		}
	}
	if len(set) == 0 {
		return
	}
	var effect [rubbing][freedoms]float64 // of a unit in each contact
	var gram [freedoms][freedoms]float64
	var want [freedoms]float64
	for r, i := range set {
		effect[i] = w[i]
		solveIn(matrix, &effect[i])
		want[r] = -bias[i] - dot(&w[i], a)
	}
	for r, i := range set {
		for c, j := range set {
			gram[r][c] = dot(&w[i], &effect[j])
		}
	}
	for k := len(set); k < freedoms; k++ {
		gram[k][k] = 1
	}
	factor(&gram)
	solveIn(&gram, &want)
	for r, i := range set {
		m.friction[i] = want[r]
		for k := range a {
			a[k] += effect[i][k] * want[r]
		}
	}
}

func dot(a, b *[freedoms]float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

// factor is Cholesky's, in place; solveIn solves with it.
func factor(a *[freedoms][freedoms]float64) {
	for j := range freedoms {
		for k := range j {
			a[j][j] -= a[j][k] * a[j][k]
		}
		a[j][j] = math.Sqrt(a[j][j])
		for i := j + 1; i < freedoms; i++ {
			for k := range j {
				a[i][j] -= a[i][k] * a[j][k]
			}
			a[i][j] /= a[j][j]
		}
	}
}

func solveIn(l *[freedoms][freedoms]float64, b *[freedoms]float64) {
	for i := range freedoms {
		for k := range i {
			b[i] -= l[i][k] * b[k]
		}
		b[i] /= l[i][i]
	}
	for i := freedoms - 1; i >= 0; i-- {
		for k := i + 1; k < freedoms; k++ {
			b[i] -= l[k][i] * b[k]
		}
		b[i] /= l[i][i]
	}
}
