package mechanics_test

import (
	"math"
)

// referenceTeeth solves the engagement of teeth independently of the kernel: a particle with two masses in
// the plane of tangential position u and stroke s, between the edges of a row of teeth. The position is not
// taken modulo the pitch, each edge is a segment, and each motion is a parabola under constant forces.
type referenceTeeth struct {
	edges       []edge
	mass, force [2]float64 // along u and s, kg and N
	mu          float64
	restitution float64

	t    float64
	p, v [2]float64
	on   int // edge in contact; -1: none

	first     float64 // time of the first contact; NaN: none yet
	firstAt   [2]float64
	contacts  int
	stuck     bool    // at rest on a face, held by friction
	ended     bool    // at the end of the stroke
	frictions float64 // work of the friction, J
	impacts   float64 // energy lost in impacts, J
}

// edge is a segment from a on, of a length along tangent t, with the normal n to the free side.
type edge struct {
	a, t, n [2]float64
	length  float64
	stop    bool
}

// corner is the distance from the end of an edge at which rounding decides, m.
const corner = 1e-12

func dot(a, b [2]float64) float64 { return a[0]*b[0] + a[1]*b[1] }

func (r *referenceTeeth) addEdge(a, b [2]float64, stop bool) {
	d := [2]float64{b[0] - a[0], b[1] - a[1]}
	l := math.Hypot(d[0], d[1])
	t := [2]float64{d[0] / l, d[1] / l}
	r.edges = append(r.edges, edge{a: a, t: t, n: [2]float64{t[1], -t[0]}, length: l, stop: stop})
}

// addTeeth adds the outlines of teeth around pitches -count to count; each begins in the gap before it.
func (r *referenceTeeth) addTeeth(count int, pitch, play, flat, chamfer, tip, end, taper float64) {
	deep := end + 1e-3
	under := (deep - tip - chamfer) * math.Tan(taper)
	for i := -count; i <= count; i++ {
		left, right := float64(i)*pitch+play, float64(i+1)*pitch-play
		from, to := float64(i)*pitch+pitch/2-flat, float64(i)*pitch+pitch/2+flat
		points := [][2]float64{{left + under, deep}, {left, tip + chamfer}, {from, tip}, {to, tip}, {right, tip + chamfer},
			{right - under, deep}}
		for j := 1; j < len(points); j++ {
			if points[j] != points[j-1] {
				r.addEdge(points[j-1], points[j], false)
			}
		}
	}
	r.addEdge([2]float64{-float64(count) * pitch, end}, [2]float64{float64(count) * pitch, end}, true)
}

// accel returns the acceleration, and the force along the normal of the edge in contact.
func (r *referenceTeeth) accel() (a [2]float64, n float64) {
	free := [2]float64{r.force[0] / r.mass[0], r.force[1] / r.mass[1]}
	if r.on < 0 {
		return free, 0
	}
	e := &r.edges[r.on]
	d := 0.0
	if vt := dot(r.v, e.t); vt != 0 {
		d = math.Copysign(1, vt)
	} else if ft := r.slideForce(e); ft != 0 {
		d = math.Copysign(1, ft)
	}
	push := [2]float64{e.n[0] - d*r.mu*e.t[0], e.n[1] - d*r.mu*e.t[1]}
	by := [2]float64{push[0] / r.mass[0], push[1] / r.mass[1]}
	n = -dot(e.n, free) / dot(e.n, by)
	if n <= 0 {
		return free, n
	}
	return [2]float64{free[0] + n*by[0], free[1] + n*by[1]}, n
}

// slideForce returns the tangential force that friction does not hold on an edge at rest; 0 where it holds.
func (r *referenceTeeth) slideForce(e *edge) float64 {
	along, n := dot(r.force, e.t), -dot(r.force, e.n)
	if math.Abs(along) <= r.mu*n {
		return 0
	}
	return along
}

// to solves up to time t.
func (r *referenceTeeth) to(t float64) {
	for range 10000 {
		if r.stuck || r.ended || !(t > r.t) {
			return
		}
		a, n := r.accel()
		if r.on >= 0 && n <= 0 {
			r.on = -1
			continue
		}
		if r.on >= 0 && dot(r.v, r.edges[r.on].t) == 0 && r.slideForce(&r.edges[r.on]) == 0 {
			r.stuck = true
			return
		}
		left, next := t-r.t, -1 // -1: none, -2: the end of the edge, -3: the slip ends
		if r.on >= 0 {
			e := &r.edges[r.on]
			x, vt, at := dot([2]float64{r.p[0] - e.a[0], r.p[1] - e.a[1]}, e.t), dot(r.v, e.t), dot(a, e.t)
			for _, end := range []float64{0, e.length} {
				out := 1.0
				if end == 0 {
					out = -1
				}
				if d := firstRoot(out*(end-x), -out*vt, -out*at/2); d < left {
					left, next = d, -2
				}
			}
			if r.mu > 0 && vt*at < 0 && -vt/at < left {
				left, next = -vt/at, -3
			}
		}
		for i := range r.edges {
			e := &r.edges[i]
			if i == r.on {
				continue
			}
			g := dot([2]float64{r.p[0] - e.a[0], r.p[1] - e.a[1]}, e.n)
			d := firstRoot(g, dot(r.v, e.n), dot(a, e.n)/2)
			if !(d < left) {
				continue
			}
			at := [2]float64{r.p[0] + r.v[0]*d + a[0]*d*d/2 - e.a[0], r.p[1] + r.v[1]*d + a[1]*d*d/2 - e.a[1]}
			if x := dot(at, e.t); x > corner && x < e.length-corner {
				left, next = d, i
			}
		}
		if r.on >= 0 {
			e := &r.edges[r.on]
			vt, at := dot(r.v, e.t), dot(a, e.t)
			r.frictions += r.mu * n * math.Abs(vt*left+at*left*left/2)
		}
		for q := range 2 {
			r.p[q] += r.v[q]*left + a[q]*left*left/2
			r.v[q] += a[q] * left
		}
		r.t += left
		switch {
		case next == -1:
			return
		case next == -2:
			r.on = -1
		case next == -3:
			r.v = [2]float64{}
		default:
			r.strike(next)
		}
	}
}

// strike lets the particle strike an edge.
func (r *referenceTeeth) strike(i int) {
	if math.IsNaN(r.first) {
		r.first, r.firstAt = r.t, r.p
	}
	r.contacts++
	e := &r.edges[i]
	if e.stop {
		r.ended = true
		return
	}
	before := r.mass[0]*r.v[0]*r.v[0]/2 + r.mass[1]*r.v[1]*r.v[1]/2
	vn := dot(r.v, e.n)
	by := [2]float64{e.n[0] / r.mass[0], e.n[1] / r.mass[1]}
	impulse := -(1 + r.restitution) * vn / dot(e.n, by)
	for q := range 2 {
		r.v[q] += impulse * by[q]
	}
	r.impacts += before - r.mass[0]*r.v[0]*r.v[0]/2 - r.mass[1]*r.v[1]*r.v[1]/2
	r.on = -1
	free := [2]float64{r.force[0] / r.mass[0], r.force[1] / r.mass[1]}
	if back := dot(r.v, e.n); 2*back < -1e-9*dot(free, e.n) || back < 1e-9 { // s, m/s: as in the kernel
		for q := range 2 {
			r.v[q] -= back * by[q] / dot(e.n, by)
		}
		r.on = i
	}
}

// firstRoot returns the first t > 0 at which g + v·t + a·t² falls to 0; +Inf without one. g of rounding is 0.
func firstRoot(g, v, a float64) float64 {
	if math.Abs(g) < 1e-13 {
		if t := -v / a; v > 0 && t > 0 {
			return t
		}
		if v < 0 {
			return 0
		}
		return math.Inf(1)
	}
	d := v*v - 4*a*g
	if d < 0 {
		return math.Inf(1)
	}
	q := -(v + math.Copysign(math.Sqrt(d), v)) / 2
	best := math.Inf(1)
	for _, t := range []float64{q / a, g / q} {
		if t > 0 && t < best && v+2*a*t <= 0 { // from behind the line of an edge it first comes out beside the edge
			best = t
		}
	}
	return best
}
