package main

import (
	"math"
	"slices"
	"sort"
)

// truth is the exact motion: closed forms between borders, borders located to rounding.
type truth struct {
	p       *problem
	regions regions
	list    []segment // one per stay in a region
	ranges  vec       // largest less smallest value
}

// segment starts at t, s, with z in region w.
type segment struct {
	t     float64
	z     vec
	w     where
	stuck bool
}

// solve finds the motion until then, s.
func solve(p *problem, until float64) *truth {
	z := vec{p.x0, 0}
	s := &truth{p: p, regions: p.regions()}
	s.list = []segment{{z: z, w: s.regions.of(z)}}
	for {
		next, ok := s.leave(s.list[len(s.list)-1], until)
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

// leave is the next segment after l. The motion is cut into parts in which neither the
// speed nor the acceleration changes its sign, so that a border is passed at most once.
func (s *truth) leave(l segment, until float64) (next segment, ok bool) {
	const look = 0.01 // s, far below half a swing of the stiffest spring here, 0.1 s
	low, high := s.regions.limits(l.w)
	for t := 0.0; l.t+t < until && !l.stuck; t += look {
		cuts := []float64{t, t + look}
		for _, f := range []func(float64) float64{
			func(t float64) float64 { return s.in(l, t)[1] },
			func(t float64) float64 { return s.accel(l, t) },
		} {
			if f(t)*f(t+look) < 0 {
				cuts = append(cuts, root(f, t, t+look))
			}
		}
		slices.Sort(cuts)
		for i, end := range cuts[1:] {
			first := math.Inf(1)
			for j, x := range s.in(l, end) {
				side, border := 1, high[j]
				if x < low[j] {
					side, border = -1, low[j]
				} else if x <= high[j] {
					continue
				}
				at := root(func(t float64) float64 { return s.in(l, t)[j] - border }, cuts[i], end)
				if at < first {
					first = at
					next = segment{t: l.t + at, z: s.in(l, at), w: l.w}
					next.z[j] = border
					next.w[j] += side
					next.stuck = j == 1 && border == 0 && s.p.sticks(&s.regions, next.z[0])
				}
			}
			if first <= end {
				return next, next.t < until
			}
		}
	}
	return next, false
}

// in is the state t after the begin of a segment.
func (s *truth) in(l segment, t float64) vec {
	if l.stuck {
		return l.z
	}
	a := &s.regions.pieces[s.regions.index(l.w)]
	before, after := s.swing(a, l.t), s.swing(a, l.t+t)
	z := a.at(t, vec{l.z[0] - before[0], l.z[1] - before[1]})
	return vec{z[0] + after[0], z[1] + after[1]}
}

// accel is its acceleration.
func (s *truth) accel(l segment, t float64) float64 {
	a := s.regions.pieces[s.regions.index(l.w)].pushed(s.p.input(l.t + t))
	return a.rate(s.in(l, t))[1]
}

// swing is a motion at time t that the input makes in a region; without a damper at its
// own frequency it grows with time.
func (s *truth) swing(a *affine, t float64) vec {
	w := s.p.omega
	sin, cos := math.Sincos(w * t)
	stiff, damp := a.c-a.m*w*w, a.d*w
	switch size := stiff*stiff + damp*damp; {
	case s.p.push == 0:
		return vec{}
	case size > 0:
		f := s.p.push / size
		return vec{f * (stiff*sin - damp*cos), f * w * (stiff*cos + damp*sin)}
	}
	f := s.p.push / (2 * a.m * w)
	return vec{-f * t * cos, -f * (cos - w*t*sin)}
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
	return s.in(l, t-l.t)
}

// off is how far z is from the truth at time t, as a part of its range; NaN stays NaN.
func (s *truth) off(t float64, z vec) float64 {
	want := s.at(t)
	return max(math.Abs(z[0]-want[0])/s.ranges[0], math.Abs(z[1]-want[1])/s.ranges[1])
}
