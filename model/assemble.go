package model

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Assemble eliminates the rigid gears and builds the matrices of System.
//
// With w = N·x₁ (N from the gears), twists x₂ of the springs and G their relative
// speeds:
//
//	M = Nᵀ·diag(J)·N      x₂' = G·N·x₁
//	M·x₁' = -Nᵀ·Gᵀ·(diag(c)·x₂ + diag(d)·G·N·x₁) + Nᵀ·F·v - Wᵀ·tau
//	E = diag(M, diag(c))  Bc = -M⁻¹·Wᵀ
//
// An error names the element and the place in the file.
func (p *Plant) Assemble() (*System, error) {
	b, err := p.reduce()
	if err != nil {
		return nil, err
	}
	x0, err := p.start(b)
	if err != nil {
		return nil, err
	}
	a := assembly{Plant: p, basis: b}
	if err := a.forms(); err != nil {
		return nil, err
	}
	inverse, mass, err := a.mass()
	if err != nil {
		return nil, err
	}
	sys := a.ports()
	sys.X0 = append(x0, sys.X0...)
	a.fill(sys, inverse, mass)
	a.measure(sys)
	return sys, a.finite(sys)
}

// assembly holds what the steps of Assemble share.
type assembly struct {
	*Plant
	*basis
	links     [][]float64 // relative speed of each link in the free speeds
	frictions [][]float64
	twist     []int // state of each link's twist; -1 without spring
	n         int   // states
}

// forms expresses what acts in the free speeds, and counts the states.
func (a *assembly) forms() error {
	a.n = len(a.free)
	for _, k := range a.Plant.links {
		f := a.form(k.rel)
		if largest(f) == 0 {
			return a.errorf(k.at, "element %q: its ends turn together rigidly, it does nothing; remove it", k.name)
		}
		a.links = append(a.links, f)
		state := -1
		if k.c > 0 {
			state = a.n
			a.n++
		}
		a.twist = append(a.twist, state)
	}
	for _, k := range a.Plant.frictions {
		f := a.form(k.rel)
		if largest(f) == 0 {
			return a.errorf(k.at, "element %q: its sides turn together rigidly, it can never slip; remove it", k.name)
		}
		a.frictions = append(a.frictions, f)
	}
	return nil
}

// mass returns M⁻¹ and M. Rows and columns are scaled by powers of two, so that
// inertias of very different size do not look singular.
func (a *assembly) mass() (inverse, mass *mat.Dense, err error) {
	k := len(a.free)
	mass, inverse = mat.NewDense(k, k, nil), mat.NewDense(k, k, nil)
	for q, n := range a.nodes {
		for i, u := range a.rows[q] {
			for j, v := range a.rows[q] {
				mass.Set(i, j, mass.At(i, j)+n.J*(u*v))
			}
		}
	}
	scale := make([]float64, k)
	for i := range k {
		_, e := math.Frexp(mass.At(i, i))
		scale[i] = math.Ldexp(1, -e/2)
	}
	scaling := func(i, j int, v float64) float64 { return scale[i] * v * scale[j] }
	inverse.Apply(scaling, mass)
	if err := inverse.Inverse(inverse); err != nil {
		return nil, nil, a.errorf(pos{1, 1}, "inertias and gear ratios differ too much in size to be solved together")
	}
	inverse.Apply(scaling, inverse)
	return inverse, mass, nil
}

// ports fills names, signals, friction laws and the start of the twists.
func (a *assembly) ports() *System {
	inf := math.Inf(1)
	sys := &System{Name: a.Name}
	for _, f := range a.free {
		sys.States = append(sys.States, Port{a.nodes[f].name + ".w", "rad/s", -inf, inf})
	}
	for _, k := range a.Plant.links {
		if k.c > 0 {
			sys.States = append(sys.States, Port{k.name + ".twist", "rad", -inf, inf})
			sys.X0 = append(sys.X0, k.phi0-k.rest)
		}
	}
	for _, s := range a.signals {
		sys.Signals = append(sys.Signals, Signal{s.name, s.source})
	}
	for i, port := range a.inputs {
		sys.Inputs = append(sys.Inputs, Input{port, i})
	}
	for _, k := range a.Plant.frictions {
		sys.Frictions = append(sys.Frictions, Friction{k.name, k.signal, k.gain, k.offset, k.peak})
	}
	for _, o := range a.outputs {
		sys.Outputs = append(sys.Outputs, o.Port)
	}
	return sys
}

// fill computes A, B, Bc, W and E.
func (a *assembly) fill(sys *System, inverse, mass *mat.Dense) {
	n, m, mc, k := a.n, len(a.signals), len(a.frictions), len(a.free)
	sys.A, sys.E = make([]float64, n*n), make([]float64, n*n)
	sys.B, sys.Bc, sys.W = make([]float64, n*m), make([]float64, n*mc), make([]float64, mc*n)
	for i := range k {
		for j := range k {
			sys.E[i*n+j] = mass.At(i, j)
		}
	}
	// column adds scale·M⁻¹·f to column j of dst.
	column := func(dst []float64, cols, j int, scale float64, f []float64) {
		for r := range k {
			sum := 0.0
			for i, v := range f {
				sum += inverse.At(r, i) * v
			}
			dst[r*cols+j] += scale * sum
		}
	}
	for i, l := range a.Plant.links {
		for j, g := range a.links[i] {
			if l.d*g != 0 {
				column(sys.A, n, j, -l.d*g, a.links[i])
			}
		}
		if s := a.twist[i]; s >= 0 {
			column(sys.A, n, s, -l.c, a.links[i])
			copy(sys.A[s*n:], a.links[i])
			sys.E[s*n+s] = l.c
		}
	}
	for _, t := range a.torques {
		column(sys.B, m, t.signal, 1, a.form(t.row))
	}
	for i, f := range a.frictions {
		column(sys.Bc, mc, i, -1, f)
		copy(sys.W[i*n:], f)
	}
}

// measure computes C, D and Dc.
func (a *assembly) measure(sys *System) {
	n, m, mc, p := a.n, len(a.signals), len(a.frictions), len(a.outputs)
	sys.C, sys.D, sys.Dc = make([]float64, p*n), make([]float64, p*m), make([]float64, p*mc)
	for i, o := range a.outputs {
		c := sys.C[i*n : (i+1)*n]
		speeds := func(scale float64, f []float64) {
			for j, v := range f {
				c[j] += scale * v
			}
		}
		for _, t := range o.terms {
			switch t.kind {
			case ofSpeed:
				speeds(t.coef, a.rows[t.index])
			case ofLinkRel:
				speeds(t.coef, a.links[t.index])
			case ofFrictionRel:
				speeds(t.coef, a.frictions[t.index])
			case ofLinkTwist:
				c[a.twist[t.index]] += t.coef
			case ofLinkTorque:
				l := a.Plant.links[t.index]
				speeds(t.coef*l.d, a.links[t.index])
				if s := a.twist[t.index]; s >= 0 {
					c[s] += t.coef * l.c
				}
			case ofFriction:
				sys.Dc[i*mc+t.index] += t.coef
			case ofSignal:
				sys.D[i*m+t.index] += t.coef
			}
		}
	}
}

// finite refuses matrices that overflowed.
func (a *assembly) finite(sys *System) error {
	for _, list := range [][]float64{sys.A, sys.B, sys.Bc, sys.W, sys.E, sys.C, sys.D, sys.Dc, sys.X0} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return a.errorf(pos{1, 1}, "the matrices are not finite; parameters differ too much in size")
			}
		}
	}
	return nil
}
