package main

import "math"

// judderModel is the vehicle in minimal freedoms, in which the translational joints
// hold by themselves; it is written without anything of the kernel. It goes in steps of
// Runge and Kutta of order 4 that end where a contact sticks, breaks away or turns.
type judderModel struct {
	*juddering
	geometry
	t    float64 // s
	z    motion
	mode [rubbing]int // 0: sticks, otherwise the sign of its slip
	held posture      // of the last grid point, for perStep
	log  []judderEvent

	rate motion // z' at the last place asked for
	judderForces
}

// motion is a state: freedoms and their rates.
type motion struct{ q, v [freedoms]float64 }

// judderForces are those at the last place asked for.
type judderForces struct {
	load     [2]float64       // normal forces, N
	friction [rubbing]float64 // clutch: from flywheel to disc, N·m; tyres: forward on the vehicle, N
	slip     [rubbing]float64 // flywheel less disc, rad/s; axle less circumference, m/s
}

// judderEvent is a change of one contact.
type judderEvent struct {
	t        float64 // s
	element  int
	from, to int
}

func newJudder(c *juddering, g geometry) *judderModel {
	m := &judderModel{juddering: c, geometry: g}
	m.z.q, m.z.v = c.start()
	m.hold()
	m.settle()
	return m
}

// hold keeps the geometry for the next step of perStep.
func (m *judderModel) hold() { m.held = poseOf(&m.z.q, &m.z.v) }

// walk goes on to the time until, in steps of at most dt, s.
func (m *judderModel) walk(until, dt float64) {
	for until-m.t > 1e-12 {
		h := min(dt, until-m.t)
		next := m.step(h)
		if !m.crossed(&next) {
			m.z, m.t = next, m.t+h
			continue
		}
		low, high := 0.0, h
		for high-low > 1e-13 {
			mid := low + (high-low)/2
			if at := m.step(mid); m.crossed(&at) {
				high = mid
			} else {
				low = mid
			}
		}
		m.z, m.t = m.step(high), m.t+high
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
			m.log = append(m.log, judderEvent{m.t, i, before[i], m.mode[i]})
		}
	}
	m.eval(&m.z)
}
