package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// vec is the state of the mass: where it is, m, and how fast, m/s.
type vec [2]float64

// affine is the mass on one region of its spring: m·v' = -c·x - o - d·v.
type affine struct {
	m float64 // kg; > 0
	d float64 // N·s/m; >= 0
	c float64 // N/m; >= 0
	o float64 // N
}

// at is the state t after z, by the exponential of a 2×2 matrix in closed form.
func (a affine) at(t float64, z vec) vec {
	if a.c == 0 { // a free mass, pushed by -o
		k, g1, g2 := a.d/a.m, t, t*t/2
		if k > 0 {
			g1 = -math.Expm1(-k*t) / k
			g2 = (t - g1) / k
		}

		f := -a.o / a.m
		return vec{z[0] + g1*z[1] + g2*f, z[1]*(1-k*g1) + g1*f}
	}

	half, stiff := a.d/(2*a.m), a.c/a.m
	cos, sin := 1.0, t // sin is divided by its frequency
	switch w2 := stiff - half*half; {
	case w2 > 0:
		w := math.Sqrt(w2)
		cos, sin = math.Cos(w*t), math.Sin(w*t)/w
	case w2 < 0:
		w := math.Sqrt(-w2)
		cos, sin = math.Cosh(w*t), math.Sinh(w*t)/w
	}

	rest := -a.o / a.c
	y, v, e := z[0]-rest, z[1], math.Exp(-half*t)
	return vec{rest + e*((cos+half*sin)*y+sin*v), e * ((cos-half*sin)*v - stiff*sin*y)}
}

// rate is the derivative of the state.
func (a affine) rate(z vec) vec { return vec{z[1], -(a.c*z[0] + a.o + a.d*z[1]) / a.m} }

// force is affine in regions of a place or a speed, and odd.
type force struct {
	slopes  []float64 // of the regions from the middle, N/m or N·s/m; of a spring > 0
	borders []float64 // between them, m or m/s; > 0, increasing
	jump    float64   // N, from -jump to jump at 0: dry friction; >= 0
}

// line is slope·z + offset.
type line struct{ slope, offset float64 }

// whole are the borders and regions from the left to the right. But for the jump it is
// continuous.
func (f force) whole() (borders []float64, lines []line) {
	l := line{f.slopes[0], f.jump}
	lines = []line{l}
	if f.jump > 0 {
		borders, lines = []float64{0}, []line{{l.slope, -l.offset}, l}
	}
	for i, b := range f.borders {
		l = line{f.slopes[i+1], l.offset + (l.slope-f.slopes[i+1])*b}
		borders = slices.Concat([]float64{-b}, borders, []float64{b})
		lines = slices.Concat([]line{{l.slope, -l.offset}}, lines, []line{l})
	}

	return borders, lines
}

// problem is a mass let go at x0 on a spring and a damper, and pushed.
type problem struct {
	name     string
	embedded string  // plant of package plants that is the same; "": none
	m, x0    float64 // kg, m
	spring   force
	damper   force
	// stiffness of the linear part where a method wants one, N/m; > 0. 000 gives none: the stiffest here
	inner       float64
	push, omega float64 // N, rad/s, of push·sin(omega·t)
	lasts       float64 // s, how long it is followed; 0: as long as the others
}

// The problems of 000. Tables 6 and 10 have no border; 0.15 m is that of its table 5. Table
// 9 has no start; 0.3 m is that of the others. What differs at the start of table 10 is 800
// times as large after 10 s and five million times after 30 s.
var (
	viscous  = force{slopes: []float64{0.5}}
	undamped = force{slopes: []float64{0}}
	table2   = problem{
		name: "table 2", embedded: "oscillator", m: 1, x0: 0.3, inner: 10, damper: viscous,
		spring: force{slopes: []float64{0.05, 1, 2, 10}, borders: []float64{0.05, 0.1, 0.15}},
	}
	table3 = problem{
		name: "table 3", m: 1, x0: 0.3, inner: 10, spring: table2.spring,
		damper: force{slopes: []float64{0.025, 0.5, 1, 5}, borders: []float64{0.1, 0.3, 0.5}},
	}
	table5 = problem{
		name: "table 5", m: 1, x0: 0.3, inner: 20, damper: viscous,
		spring: force{slopes: []float64{0.1, 20}, borders: []float64{0.15}},
	}
	table6 = problem{
		name: "table 6", m: 1, x0: 0.3, inner: 20, damper: viscous,
		spring: force{slopes: []float64{1, 20}, borders: []float64{0.15}},
	}
	table9 = problem{
		name: "table 9", m: 1, x0: 0.3, inner: 20, damper: force{slopes: []float64{0.05}, jump: 0.05},
		spring: force{slopes: []float64{1, 10, 20}, borders: []float64{0.1, 0.2}},
	}
	table10 = problem{
		name: "table 10", m: 1, x0: 0.1, inner: 1000, damper: undamped, push: 1, omega: 1, lasts: 10,
		spring: force{slopes: []float64{1, 1000}, borders: []float64{0.15}},
	}
	lasting = problem{
		name: "table 6 without damper", m: 1, x0: 0.3, inner: 20, spring: table6.spring, damper: undamped,
	}
)

// span is how long a problem is followed where others are until then, s.
func (p *problem) span(until float64) float64 {
	if p.lasts > 0 {
		return min(p.lasts, until)
	}
	return until
}

// input is the force that pushes at time t.
func (p *problem) input(t float64) float64 { return p.push * math.Sin(p.omega*t) }

// regions are the pieces in which a problem is affine.
type regions struct {
	borders [2][]float64 // of place and speed, m and m/s
	pieces  []affine     // by place, then by speed
}

// where is the region of place and of speed.
type where [2]int

func (p *problem) regions() (r regions) {
	var springs, dampers []line
	r.borders[0], springs = p.spring.whole()
	r.borders[1], dampers = p.damper.whole()
	for _, s := range springs {
		for _, d := range dampers {
			r.pieces = append(r.pieces, affine{m: p.m, c: s.slope, d: d.slope, o: s.offset + d.offset})
		}
	}

	return r
}

func (r *regions) index(w where) int { return w[0]*(len(r.borders[1])+1) + w[1] }

// of is the region in which z lies.
func (r *regions) of(z vec) (w where) {
	for j, list := range r.borders {
		for _, b := range list {
			if z[j] > b {
				w[j]++
			}
		}
	}

	return w
}

// limits are the ends of region w.
func (r *regions) limits(w where) (low, high vec) {
	for j, list := range r.borders {
		low[j], high[j] = math.Inf(-1), math.Inf(1)
		if w[j] > 0 {
			low[j] = list[w[j]-1]
		}
		if w[j] < len(list) {
			high[j] = list[w[j]]
		}
	}

	return low, high
}

// sticks reports whether the mass, at rest in x, is held by dry friction.
func (p *problem) sticks(r *regions, x float64) bool {
	a := &r.pieces[r.index(r.of(vec{x, 0}))] // that of a speed below 0
	return p.damper.jump > 0 && math.Abs(a.c*x+a.o+p.damper.jump) <= p.damper.jump
}

// energy of mass and spring, J.
func (p *problem) energy(z vec) float64 {
	x, c := math.Abs(z[0]), p.spring.slopes
	e := p.m*z[1]*z[1]/2 + c[0]*x*x/2
	for i, b := range p.spring.borders {
		e += (c[i+1] - c[i]) * max(0, x-b) * max(0, x-b) / 2
	}
	return e
}

// plant is the file of the problem as the product takes it.
func (p *problem) plant() string {
	list := func(v []float64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
	damper := fmt.Sprintf("type: damper, a: ground, b: body, d: %g", p.damper.slopes[0])
	if len(p.damper.borders) > 0 {
		damper = fmt.Sprintf("type: affine_damper, a: ground, b: body, d: %s, borders: %s",
			list(p.damper.slopes), list(p.damper.borders))
	}

	return fmt.Sprintf(`plant: study
elements:
  ground: {type: fixed}
  body: {type: mass, m: %g}
  spring: {type: affine_spring, a: ground, b: body, c: %s, borders: %s, s_rel_start: %g}
  damper: {%s}
  friction: {type: brake, flange: body, mu: 1, fn: %g}
  push: {type: force, flange: body, f: {sine: {amplitude: %.17g, f: %.17g}}}
outputs:
  x: {s_rel: spring}
  v: {speed: body}
`, p.m, list(p.spring.slopes), list(p.spring.borders), p.x0, damper, p.damper.jump, p.push, p.omega/(2*math.Pi))
}

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

	x, v := newSpan(), newSpan()
	for i := range 3001 {
		z := s.at(until * float64(i) / 3000)
		x.add(z[0])
		v.add(z[1])
	}

	s.ranges = vec{x.width(), v.width()}
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
	up := f(b) > 0
	_, at := bisect(a, b, 0, func(at float64) bool { return f(at) > 0 == up })
	return at
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
