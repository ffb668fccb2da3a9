package main

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
)

// vec is the state of the mass: position, m, and speed, m/s.
type vec [2]float64

// affine is the mass in a region of its spring: m·v' = -c·x - o - d·v.
type affine struct {
	m float64 // kg; > 0
	d float64 // N·s/m; >= 0
	c float64 // N/m; >= 0
	o float64 // N
}

// at returns the state at time t after z, by the exponential of a 2×2 matrix in closed form.
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

// rate returns the derivative of the state.
func (a affine) rate(z vec) vec { return vec{z[1], -(a.c*z[0] + a.o + a.d*z[1]) / a.m} }

// force is an odd function of position or speed that is affine in regions.
type force struct {
	slopes  []float64 // slopes of the regions from the middle, N/m or N·s/m; of a spring > 0
	borders []float64 // boundaries between the regions, m or m/s; > 0, increasing
	jump    float64   // dry friction: jump from -jump to jump at 0, N; >= 0
}

// line is slope·z + offset.
type line struct{ slope, offset float64 }

// whole returns the boundaries and regions from left to right. The force is continuous except for
// the jump.
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

// problem is a mass released at x0, with a spring, a damper and a force.
type problem struct {
	name     string
	embedded string  // equal plant of package plants; "": none
	m, x0    float64 // kg, m
	spring   force
	damper   force
	// inner stiffness of the linear part of a method, N/m; > 0. 000 prints none: here the stiffest
	// region
	inner       float64
	push, omega float64 // N, rad/s: force push·sin(omega·t)
	lasts       float64 // length of the motion, s; 0: that of the study
}

// The problems of 000. Tables 6 and 10 print no boundary: here 0.15 m of table 5. Table 9 prints no
// start: here 0.3 m of the other tables. In table 10 an initial difference grows 800 times in 10 s
// and five million times in 30 s.
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

// span returns the length of the motion, s, at most until.
func (p *problem) span(until float64) float64 {
	if p.lasts > 0 {
		return min(p.lasts, until)
	}
	return until
}

// input returns the external force at time t, N.
func (p *problem) input(t float64) float64 { return p.push * math.Sin(p.omega*t) }

// regions are the regions in which a problem is affine.
type regions struct {
	borders [2][]float64 // boundaries of position, m, and of speed, m/s
	pieces  []affine     // by position, then by speed
}

// where is a region: its index in position and in speed.
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

// of returns the region of z.
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

// limits returns the limits of region w.
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

// locks reports whether dry friction locks the mass at rest in x.
func (p *problem) locks(r *regions, x float64) bool {
	a := &r.pieces[r.index(r.of(vec{x, 0}))] // region of a speed below 0
	return p.damper.jump > 0 && math.Abs(a.c*x+a.o+p.damper.jump) <= p.damper.jump
}

// energy returns the energy of mass and spring, J.
func (p *problem) energy(z vec) float64 {
	x, c := math.Abs(z[0]), p.spring.slopes
	e := p.m*z[1]*z[1]/2 + c[0]*x*x/2
	for i, b := range p.spring.borders {
		e += (c[i+1] - c[i]) * max(0, x-b) * max(0, x-b) / 2
	}
	return e
}

// plant returns the problem as a plant file.
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

// truth is the exact motion: closed forms inside regions, boundaries located to rounding.
type truth struct {
	p       *problem
	regions regions
	list    []segment // one per stay in a region
	ranges  vec       // maximum less minimum of position and speed
}

// segment is a stay in region w from time t, s, and state z.
type segment struct {
	t      float64
	z      vec
	w      where
	locked bool
}

// solve computes the motion until a time, s.
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

// leave returns the segment after l. It divides the motion into parts in which neither speed nor
// acceleration changes its sign, so that each part crosses a boundary at most once.
func (s *truth) leave(l segment, until float64) (next segment, ok bool) {
	const look = 0.01 // length of a part, s: far below half a period of the stiffest spring, 0.1 s
	low, high := s.regions.limits(l.w)
	for t := 0.0; l.t+t < until && !l.locked; t += look {
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
				side, boundary := 1, high[j]
				if x < low[j] {
					side, boundary = -1, low[j]
				} else if x <= high[j] {
					continue
				}

				at := root(func(t float64) float64 { return s.in(l, t)[j] - boundary }, cuts[i], end)
				if at < first {
					first = at
					next = segment{t: l.t + at, z: s.in(l, at), w: l.w}
					next.z[j] = boundary
					next.w[j] += side
					next.locked = j == 1 && boundary == 0 && s.p.locks(&s.regions, next.z[0])
				}
			}

			if first <= end {
				return next, next.t < until
			}
		}
	}

	return next, false
}

// in returns the state at time t after the start of a segment.
func (s *truth) in(l segment, t float64) vec {
	if l.locked {
		return l.z
	}
	a := &s.regions.pieces[s.regions.index(l.w)]
	before, after := s.swing(a, l.t), s.swing(a, l.t+t)
	z := a.at(t, vec{l.z[0] - before[0], l.z[1] - before[1]})
	return vec{z[0] + after[0], z[1] + after[1]}
}

// accel returns the acceleration at time t after the start of a segment.
func (s *truth) accel(l segment, t float64) float64 {
	a := s.regions.pieces[s.regions.index(l.w)].pushed(s.p.input(l.t + t))
	return a.rate(s.in(l, t))[1]
}

// swing returns the particular motion at time t due to the input in a region. At resonance without
// a damper it grows with time.
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

// root returns the zero of f between a and b by bisection to rounding.
func root(f func(float64) float64, a, b float64) float64 {
	up := f(b) > 0
	_, at := bisect(a, b, 0, func(at float64) bool { return f(at) > 0 == up })
	return at
}

// at returns the state at time t, s; >= 0.
func (s *truth) at(t float64) vec {
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].t > t }) - 1
	l := s.list[max(i, 0)]
	return s.in(l, t-l.t)
}

// off returns the error of z at time t, as a part of the range; NaN stays NaN.
func (s *truth) off(t float64, z vec) float64 {
	want := s.at(t)
	return max(math.Abs(z[0]-want[0])/s.ranges[0], math.Abs(z[1]-want[1])/s.ranges[1])
}
