package main

// mode is a region with its transition over one step.
type mode struct {
	affine
	phi       *matrix
	low, high float64 // m
}

// modes are all regions on a grid of h, the middle one at len(p.borders).
func modes(p *problem, h float64) []mode {
	var list []mode
	for i, a := range pieces(p) {
		low, high := p.limits(i - len(p.borders))
		list = append(list, mode{a, transition(a, h), low, high})
	}
	return list
}

// step: the state is shifted to where the region's force is c·x, and back after it.
// Eq. 81 to 83 print the shift with the wrong sign and divided by the mass.
func (m *mode) step(z vec) vec {
	shift := m.o / m.c
	next := m.phi.times(vec{z[0] + shift, z[1]})
	next[0] -= shift
	return next
}

// fixed takes every step in the region in which it begins.
func fixed(p *problem, h float64) func(vec) vec {
	all, middle := modes(p, h), len(p.borders)
	return func(z vec) vec { return all[middle+p.region(z[0])].step(z) }
}

// part goes t on in a mode, by some other means than phi; delta is a whole step's.
type part func(m *mode, t, h float64, z, delta vec) vec

func byPower(m *mode, t, _ float64, z, _ vec) vec { return powered(&m.affine, 10, t, z) }
func byExact(m *mode, t, _ float64, z, _ vec) vec { return m.at(t, z) }
func byDelta(_ *mode, t, h float64, z, delta vec) vec {
	return vec{z[0] + t/h*delta[0], z[1] + t/h*delta[1]}
}

// adjusted ends a step where the straight line of a whole step meets a border, and makes
// the next one longer by what is missing, at most 3 steps.
func adjusted(over part) func(*problem, float64) runner {
	return func(p *problem, h float64) runner {
		all, middle := modes(p, h), len(p.borders)
		first := middle + p.region(p.x0)
		r, lag := first, 0.0
		step := func(z vec) (vec, float64) {
			m, length := &all[r], h+lag
			end := m.step(z)
			delta := vec{end[0] - z[0], end[1] - z[1]}
			next, border := r, 0.0
			switch x := z[0] + length/h*delta[0]; {
			case x > m.high:
				next, border = r+1, m.high
			case x < m.low:
				next, border = r-1, m.low
			}
			if next != r && lag < 3*h {
				t := max(0, h*(border-z[0])/delta[0])
				lag, r = length-t, next
				return over(m, t, h, z, delta), t
			}
			if lag != 0 {
				end = over(m, length, h, z, delta)
			}
			lag, r = 0, middle+p.region(end[0])
			return end, length
		}
		return runner{step, func() { r, lag = first, 0 }}
	}
}
