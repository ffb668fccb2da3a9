package main

import "math"

// mode is a region with its transition over one step.
type mode struct {
	affine
	phi       *matrix
	low, high vec
}

// modes are all regions on a grid of h.
func (r *regions) modes(h float64) []mode {
	all := make([]mode, len(r.pieces))
	for x := range len(r.borders[0]) + 1 {
		for v := range len(r.borders[1]) + 1 {
			i := r.index(where{x, v})
			low, high := r.limits(where{x, v})
			all[i] = mode{r.pieces[i], transition(r.pieces[i], h), low, high}
		}
	}
	return all
}

// step: the state is shifted to where the region's force is c·x, and back after it; u is
// the input, held. Eq. 81 to 83 print the shift with the wrong sign and divided by the mass.
func (m *mode) step(u float64, z vec) vec {
	shift := (m.o - u) / m.c
	next := m.phi.times(vec{z[0] + shift, z[1]})
	next[0] -= shift
	return next
}

// fixed takes every step in the region in which it begins.
func fixed(p *problem, h float64) advance {
	r := p.regions()
	all := r.modes(h)
	return func(t float64, z vec) vec { return all[r.index(r.of(z))].step(p.input(t), z) }
}

// part goes t on in a region, by some other means than phi; delta is a whole step's.
type part func(a affine, t, h float64, z, delta vec) vec

func byPower(a affine, t, _ float64, z, _ vec) vec { return a.powered(10, t, z) }
func byExact(a affine, t, _ float64, z, _ vec) vec { return a.at(t, z) }
func byDelta(_ affine, t, h float64, z, delta vec) vec {
	return vec{z[0] + t/h*delta[0], z[1] + t/h*delta[1]}
}

// adjusted ends a step where the straight line of a whole step first meets a border, of
// the place or of the speed (chapter 3.2.4), and makes the next one longer by what is
// missing, at most 3 steps. At the border of dry friction the mass may stick.
func adjusted(over part) func(*problem, float64) runner {
	return func(p *problem, h float64) runner {
		r := p.regions()
		all := r.modes(h)
		first := r.of(vec{p.x0, 0})
		w, lag, stuck := first, 0.0, false
		step := func(t float64, z vec) (vec, float64) {
			m, length := &all[r.index(w)], h+lag
			if stuck {
				lag = 0
				return z, length
			}
			u := p.input(t)
			end := m.step(u, z)
			delta := vec{end[0] - z[0], end[1] - z[1]}
			if at, next := m.meets(w, z, delta, length/h); next != w && lag < 3*h {
				end = over(m.pushed(u), at*h, h, z, delta)
				if next[1] != w[1] && p.sticks(&r, end[0]) {
					end[1], stuck = 0, true
				}
				lag, w = length-at*h, next
				return end, at * h
			}
			if lag != 0 {
				end = over(m.pushed(u), length, h, z, delta)
			}
			lag, w = 0, r.of(end)
			return end, length
		}
		return runner{step, func() { w, lag, stuck = first, 0, false }}
	}
}

// meets is the first border that z + s·delta meets for s up to most, and the region
// behind it; w where there is none.
func (m *mode) meets(w where, z, delta vec, most float64) (s float64, next where) {
	s, next = most, w
	for j := range z {
		border, side := m.high[j], 1
		if delta[j] < 0 {
			border, side = m.low[j], -1
		}
		if at := (border - z[j]) / delta[j]; at < s {
			s, next = math.Max(0, at), w
			next[j] += side
		}
	}
	return s, next
}
