package main

import (
	"math"
	"sort"
)

// truth is the exact motion: closed forms between borders, borders located to rounding.
type truth struct {
	p      *problem
	list   []segment // one per stay in a region
	ranges vec       // largest less smallest value
}

// segment starts at t, s, with z in region r.
type segment struct {
	t float64
	z vec
	r int
}

// solve finds the motion until then, s.
func solve(p *problem, until float64) *truth {
	z := vec{p.x0, 0}
	s := &truth{p: p, list: []segment{{0, z, p.region(p.x0)}}}
	for {
		last := s.list[len(s.list)-1]
		next, ok := leave(p, last, until)
		if !ok {
			break
		}
		s.list = append(s.list, next)
	}
	low, high := z, z
	for i := range 3001 {
		z := s.at(until * float64(i) / 3000)
		for j := range z {
			low[j], high[j] = min(low[j], z[j]), max(high[j], z[j])
		}
	}
	s.ranges = vec{high[0] - low[0], high[1] - low[1]}
	return s
}

// leave is the next segment after s. The motion is cut into parts of at most look in
// which the speed keeps its sign, so that a border is passed at most once.
func leave(p *problem, s segment, until float64) (segment, bool) {
	const look = 0.05 // s, far below half a swing of the stiffest spring here, 0.7 s
	a := p.piece(s.r)
	low, high := p.limits(s.r)
	for t := 0.0; s.t+t < until; t += look {
		parts := []float64{t, t + look}
		if a.at(t, s.z)[1]*a.at(t+look, s.z)[1] < 0 {
			turn := root(func(t float64) float64 { return a.at(t, s.z)[1] }, t, t+look)
			parts = []float64{t, turn, t + look}
		}
		for i, end := range parts[1:] {
			x, side, border := a.at(end, s.z)[0], 1, high
			switch {
			case x < low:
				side, border = -1, low
			case x <= high:
				continue
			}
			at := root(func(t float64) float64 { return a.at(t, s.z)[0] - border }, parts[i], end)
			return segment{s.t + at, vec{border, a.at(at, s.z)[1]}, s.r + side}, s.t+at < until
		}
	}
	return segment{}, false
}

// root halves the interval from a to b, where f changes its sign, down to rounding.
func root(f func(float64) float64, a, b float64) float64 {
	for up := f(b) > 0; ; {
		mid := a + (b-a)/2
		if mid == a || mid == b {
			return b
		}
		if f(mid) > 0 == up {
			b = mid
		} else {
			a = mid
		}
	}
}

// at is the state at time t, s; >= 0.
func (s *truth) at(t float64) vec {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].t > t }) - 1
	l := s.list[max(i, 0)]
	return s.p.piece(l.r).at(t-l.t, l.z)
}

// off is how far z is from the truth at time t, as a part of its range; NaN stays NaN.
func (s *truth) off(t float64, z vec) float64 {
	want := s.at(t)
	return max(math.Abs(z[0]-want[0])/s.ranges[0], math.Abs(z[1]-want[1])/s.ranges[1])
}
