package kernel_test

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"lockstep/model"
	"lockstep/model/kernel"
)

// meter recomputes each tick of a kernel from the kernel's state at its start and the transitions
// it reports, and adds up the energy flows:
//
//	d(½xᵀEx)/dt = xᵀE·B·v - (-xᵀE·Bc·tau) - (-xᵀE·A·x)   in, friction, dampers
type meter struct {
	*reference
	in, friction, damper float64 // J, of the last tick
	size                 float64 // J, largest energy or transfer so far
	ea, eb, ec           []float64
}

func newMeter(sys *model.System, driven []bool, end float64) *meter {
	m := &meter{reference: newReference(sys, driven, end)}
	m.ea = multiply(sys.E, sys.A, m.n, m.n, m.n)
	m.eb = multiply(sys.E, sys.B, m.n, m.n, m.m)
	m.ec = multiply(sys.E, sys.Bc, m.n, m.n, m.mc)
	return m
}

func multiply(a, b []float64, r, k, c int) []float64 {
	out := make([]float64, r*c)
	for i := range r {
		for j := range c {
			for q := range k {
				out[i*c+j] += a[i*k+q] * b[q*c+j]
			}
		}
	}
	return out
}

func (m *meter) stored(x []float64) float64 {
	e := 0.0
	for i := range m.n {
		e += x[i] * dot(m.sys.E[i*m.n:(i+1)*m.n], x) / 2
	}
	return e
}

// tick integrates from x at time from to time to with commands u, starting in
// modes mode and with the kernel's transitions. It returns the part of the energy
// that is not accounted for.
func (m *meter) tick(t rapid.TB, from, to float64, x0, x1, u []float64, mode []int8, events []kernel.Event) float64 {
	m.in, m.friction, m.damper = 0, 0, 0
	copy(m.x, x0)
	copy(m.u, u)
	copy(m.mode, mode)
	m.t = from
	for i := 0; i <= len(events); i++ {
		until := to
		if i < len(events) {
			until = min(max(events[i].Time, m.t), to)
		}
		m.lock()
		m.between(t, until)
		if i < len(events) {
			m.mode[events[i].Friction] = events[i].To
		}
	}
	e0, e1 := m.stored(x0), m.stored(x1)
	m.size = max(m.size, e0, e1, math.Abs(m.in), m.friction, m.damper)
	return e1 - e0 - (m.in - m.friction - m.damper)
}

// between integrates to time until in fixed modes, from corner to corner.
func (m *meter) between(t rapid.TB, until float64) {
	for m.t < until {
		to := until
		if i, _ := slices.BinarySearch(m.corners, m.t+1e-13); i < len(m.corners) {
			to = min(to, m.corners[i])
		}
		m.segment = (m.t + to) / 2
		m.h = min(1e-3, to-m.t)
		for m.t < to {
			last := m.h >= to-m.t-1e-13
			h := m.h
			if last {
				h = to - m.t
			}
			m.rate(m.t, m.x)
			copy(m.k[0], m.f)
			x1, err := m.dormandPrince(h)
			next := slices.Clone(x1)
			m.h = h * min(4, max(0.2, 0.9*math.Pow(err+1e-10, -0.2)))
			if err > 1 && h > 1e-12 {
				continue
			}
			m.powers(h)
			copy(m.x, next)
			if m.t += h; last {
				m.t = to
			}
		}
	}
}

// powers adds the work of a step of length h, by Gauss's formula with 3 points.
func (m *meter) powers(h float64) {
	m.rate(m.t, m.x)
	copy(m.k[0], m.f)
	root := math.Sqrt(0.6) / 2
	for i, at := range [3]float64{0.5 - root, 0.5, 0.5 + root} {
		weight := h * [3]float64{5. / 18, 8. / 18, 5. / 18}[i]
		x := m.partial(at * h)
		m.rate(m.t+at*h, x)
		for r := range m.n {
			m.in += weight * x[r] * dot(m.eb[r*m.m:(r+1)*m.m], m.v)
			m.friction -= weight * x[r] * dot(m.ec[r*m.mc:(r+1)*m.mc], m.tau)
			m.damper -= weight * x[r] * dot(m.ea[r*m.n:(r+1)*m.n], x)
		}
	}
}
