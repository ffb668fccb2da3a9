package main

import (
	"fmt"
	"math"
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

// problem is a mass let go at x0 on a spring with regions, symmetric about 0.
type problem struct {
	name     string
	embedded string    // plant of package plants that is the same; "": none
	m, d, x0 float64   // kg, N·s/m, m
	c        []float64 // of the regions from the middle, N/m; > 0
	borders  []float64 // between them, m; > 0, increasing
	inner    float64   // stiffness of the linear part where a method wants one, N/m; > 0. 000 gives none: the stiffest here
}

// The problems of 000. Table 6 has no border; 0.15 m is that of its table 5.
var (
	linear  = problem{name: "table 1, linear", m: 1, d: 0.5, x0: 0.3, c: []float64{10}, inner: 10}
	table2  = problem{name: "table 2", embedded: "oscillator", m: 1, d: 0.5, x0: 0.3, c: []float64{0.05, 1, 2, 10}, borders: []float64{0.05, 0.1, 0.15}, inner: 10}
	table5  = problem{name: "table 5", m: 1, d: 0.5, x0: 0.3, c: []float64{0.1, 20}, borders: []float64{0.15}, inner: 20}
	table6  = problem{name: "table 6", m: 1, d: 0.5, x0: 0.3, c: []float64{1, 20}, borders: []float64{0.15}, inner: 20}
	lasting = problem{name: "table 6 without damper", m: 1, x0: 0.3, c: []float64{1, 20}, borders: []float64{0.15}, inner: 20}
)

// region counts the borders between 0 and x; left of 0 it is negative.
func (p *problem) region(x float64) int {
	r := 0
	for r < len(p.borders) && math.Abs(x) > p.borders[r] {
		r++
	}
	if x < 0 {
		return -r
	}
	return r
}

// piece is the mass in region r: the offset makes the force continuous.
func (p *problem) piece(r int) affine {
	n, sign := r, 1.0
	if r < 0 {
		n, sign = -r, -1
	}
	a := affine{m: p.m, d: p.d, c: p.c[n]}
	for i := range n {
		a.o += sign * (p.c[i] - p.c[i+1]) * p.borders[i]
	}
	return a
}

// limits are the ends of region r, m.
func (p *problem) limits(r int) (low, high float64) {
	border := func(n int) float64 {
		if n >= len(p.borders) {
			return math.Inf(1)
		}
		return p.borders[n]
	}
	switch {
	case r > 0:
		return border(r - 1), border(r)
	case r < 0:
		return -border(-r), -border(-r - 1)
	}
	return -border(0), border(0)
}

// energy of mass and spring, J.
func (p *problem) energy(z vec) float64 {
	x := math.Abs(z[0])
	e := p.m*z[1]*z[1]/2 + p.c[0]*x*x/2
	for i, b := range p.borders {
		e += (p.c[i+1] - p.c[i]) * max(0, x-b) * max(0, x-b) / 2
	}
	return e
}

// plant is the file of the problem as the product takes it.
func (p *problem) plant() string {
	list := func(v []float64) string { return strings.ReplaceAll(fmt.Sprint(v), " ", ", ") }
	return fmt.Sprintf(`plant: study
elements:
  ground: {type: fixed}
  body: {type: mass, m: %g}
  spring: {type: affine_spring, a: ground, b: body, c: %s, borders: %s, s_rel_start: %g}
  damper: {type: damper, a: ground, b: body, d: %g}
outputs:
  x: {s_rel: spring}
  v: {speed: body}
`, p.m, list(p.c), list(p.borders), p.x0, p.d)
}
