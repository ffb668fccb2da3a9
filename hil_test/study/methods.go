package main

import (
	"math"
	"slices"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// method is a method to step the mass from tick to tick.
type method struct {
	name   string
	source string // place in Reiter
	order  int    // theoretical order of the error; 0: the method does not converge; exact: rounding only
	colour string // colour in the plots
	start  func(p *problem, h float64) runner
}

// runner has a problem on a grid of h.
type runner struct {
	// step advances z from time t, s, by one tick; took is the simulated time, s, which differs
	// from h if the method adjusts steps.
	step  func(t float64, z vec) (next vec, took float64)
	reset func() // back to the start
}

// Names that tests and tables refer to.
const (
	nLinear  = "linear system"
	nEuler   = "Euler"
	nPower2  = "matrix exponential, N = 2"
	nPower   = "matrix exponential, N = 10"
	nPower99 = "matrix exponential, N = 100"
	nTaylor  = "Taylor, order 2"
	nMisp    = "Taylor, as printed"
	nFree    = "external force"
	nInner   = "external force, inner stiffness"
	nPrinted = "coordinates, as printed"
	nShifted = "coordinates, shifted back"
	nFixed   = "switching, fixed steps"
	nAdjust  = "switching, adjusted steps, N = 10"
	nDelta   = "switching, adjusted steps, linear delta"
	nExact   = "switching, adjusted steps, exact parts"
	nOurs    = "lockstep"
)

const exact = -1

// methods lists the methods in the order of the tables. The linear system is not a solution: it is
// the reference of the costs.
var methods = []method{
	{nLinear, "eq. 25", 0, "#bbbbbb", plain(linearStep)},
	{nEuler, "eq. 43", 1, "#e69f00", plain(euler)},
	{nPower2, "eq. 47", 1, "#8c510a", plain(power(2))},
	{nPower, "eq. 47", 1, "#d55e00", plain(power(10))},
	{nPower99, "eq. 47", 1, "#7f0000", plain(power(100))},
	{nTaylor, "eq. 53, 56", 2, "#f0c000", plain(taylor(1))},
	{nMisp, "eq. 57", 1, "#b0a060", plain(taylor(-1))},
	{nFree, "eq. 67", 1, "#cc79a7", plain(external(false))},
	{nInner, "eq. 72", 1, "#882255", plain(external(true))},
	{nPrinted, "eq. 78", 0, "#999999", plain(coordinates(false))},
	{nShifted, "eq. 78, 83", 1, "#555555", plain(coordinates(true))},
	{nFixed, "eq. 82", 2, "#56b4e9", plain(fixed)},
	{nAdjust, "eq. 90, 47", 2, "#0072b2", adjusted(byPower)},
	{nDelta, "eq. 90, 141", 2, "#332288", adjusted(byDelta)},
	{nExact, "eq. 90, 66", 4, "#000000", adjusted(byExact)},
	{nOurs, "the kernel", exact, "#009e73", ours},
}

// named returns the method with a name.
func named(name string) *method { return &methods[index(name)] }

// index returns the index of the method with a name.
func index(name string) int {
	return slices.IndexFunc(methods, func(m method) bool { return m.name == name })
}

// advance steps z from time t by one step, without a memory.
type advance func(t float64, z vec) vec

// plain returns a method without a memory whose steps are all h long.
func plain(prepare func(p *problem, h float64) advance) func(*problem, float64) runner {
	return func(p *problem, h float64) runner {
		next := prepare(p, h)
		return runner{func(t float64, z vec) (vec, float64) { return next(t, z), h }, func() {}}
	}
}

// find returns the function that gives the affine system of the region of z, with the input held at
// its value at time t. It is the nonlinear function of every method.
func find(p *problem) func(t float64, z vec) affine {
	r := p.regions()
	return func(t float64, z vec) affine { return r.pieces[r.index(r.of(z))].pushed(p.input(t)) }
}

// pushed returns a with an additional force u.
func (a affine) pushed(u float64) affine {
	a.o -= u
	return a
}

func linearStep(p *problem, h float64) advance {
	phi := transition(affine{p.m, p.damper.slopes[0], p.inner, 0}, h)
	return func(_ float64, z vec) vec { return phi.times(z) }
}

// euler: x+ = x + h·f(x).
func euler(p *problem, h float64) advance {
	at := find(p)
	return func(t float64, z vec) vec {
		f := at(t, z).rate(z)
		return vec{z[0] + h*f[0], z[1] + h*f[1]}
	}
}

// power: x+ = x + w, where (w 1) = (I + Z/N)^N·(0 1) and Z = h·(J f; 0 0).
func power(n int) func(*problem, float64) advance {
	return func(p *problem, h float64) advance {
		at := find(p)
		return func(t float64, z vec) vec { return at(t, z).powered(n, h, z) }
	}
}

func (a affine) powered(n int, h float64, z vec) (next vec) {
	f, hk := a.rate(z), h/float64(n)
	j0, j1 := a.c/a.m, a.d/a.m
	var w vec
	for range n {
		w = vec{w[0] + hk*(w[1]+f[0]), w[1] + hk*(-j0*w[0]-j1*w[1]+f[1])}
	}
	return vec{z[0] + w[0], z[1] + w[1]}
}

// taylor: x+ = x + h·f + h²/2·J·f. Eq. 57 prints the force of the spring in the second term with
// the wrong sign, -1.
func taylor(sign float64) func(*problem, float64) advance {
	return func(p *problem, h float64) advance {
		at := find(p)
		return func(t float64, z vec) vec {
			a := at(t, z)
			f := a.rate(z)
			pull := -sign*(a.c*z[0]+a.o)/a.m - a.d/a.m*z[1]
			second := vec{pull, -a.c/a.m*f[0] - a.d/a.m*pull}
			return vec{z[0] + h*f[0] + h*h/2*second[0], z[1] + h*f[1] + h*h/2*second[1]}
		}
	}
}

// lacking returns the difference of the true force to that of the linear system with stiffness
// inner.
func (a affine) lacking(p *problem, inner float64, z vec) float64 {
	return -(a.c-inner)*z[0] - a.o - (a.d-p.damper.slopes[0])*z[1]
}

// external: a linear system with the missing force of the spring as an input held over the step.
// Without inner stiffness the whole force of the spring is missing.
func external(stiff bool) func(*problem, float64) advance {
	return func(p *problem, h float64) advance {
		l, inner := affine{m: p.m, d: p.damper.slopes[0]}, 0.0
		if stiff {
			inner = p.inner
		}
		l.c = inner
		at, phi, one := find(p), transition(l, h), l.pushed(1).at(h, vec{}) // effect of 1 N over a step
		return func(t float64, z vec) vec {
			zeta := at(t, z).lacking(p, inner, z)
			next := phi.times(z)
			return vec{next[0] + one[0]*zeta, next[1] + one[1]*zeta}
		}
	}
}

// coordinates: a linear system, shifted to where its spring has the true force. Eq. 78 does not
// shift back; back does.
func coordinates(back bool) func(*problem, float64) advance {
	return func(p *problem, h float64) advance {
		at, phi := find(p), transition(affine{p.m, p.damper.slopes[0], p.inner, 0}, h)
		return func(t float64, z vec) vec {
			shift := -at(t, z).lacking(p, p.inner, z) / p.inner
			next := phi.times(vec{z[0] + shift, z[1]})
			if back {
				next[0] -= shift
			}
			return next
		}
	}
}

// matrix is 2×2.
type matrix [4]float64

func (m *matrix) times(z vec) vec { return vec{m[0]*z[0] + m[1]*z[1], m[2]*z[0] + m[3]*z[1]} }

// transition returns e^(A·h).
func transition(a affine, h float64) *matrix {
	a.o = 0
	x, v := a.at(h, vec{1, 0}), a.at(h, vec{0, 1})
	return &matrix{x[0], v[0], x[1], v[1]}
}

// mode is a region with its transition over one step.
type mode struct {
	affine
	phi       *matrix
	low, high vec
}

// modes returns all regions with their transitions over h.
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

// step shifts the state to where the force of the region is c·x, steps it, and shifts it back. u is
// the input, held. Eq. 81 to 83 print the shift with the wrong sign and divided by the mass.
func (m *mode) step(u float64, z vec) vec {
	shift := (m.o - u) / m.c
	next := m.phi.times(vec{z[0] + shift, z[1]})
	next[0] -= shift
	return next
}

// fixed takes every whole step in the region of its start.
func fixed(p *problem, h float64) advance {
	r := p.regions()
	all := r.modes(h)
	return func(t float64, z vec) vec { return all[r.index(r.of(z))].step(p.input(t), z) }
}

// part advances z by a time t in a region, without phi; delta is the change over a whole step h.
type part func(a affine, t, h float64, z, delta vec) vec

func byPower(a affine, t, _ float64, z, _ vec) vec { return a.powered(10, t, z) }
func byExact(a affine, t, _ float64, z, _ vec) vec { return a.at(t, z) }
func byDelta(_ affine, t, h float64, z, delta vec) vec {
	return vec{z[0] + t/h*delta[0], z[1] + t/h*delta[1]}
}

// adjusted ends a step where the straight line of a whole step first meets a boundary of position
// or speed (chapter 3.2.4). The next step is longer by the missing time, at most 3 steps. At the
// boundary of dry friction the mass may lock.
func adjusted(over part) func(*problem, float64) runner {
	return func(p *problem, h float64) runner {
		r := p.regions()
		all := r.modes(h)
		first := r.of(vec{p.x0, 0})
		w, lag, locked := first, 0.0, false
		step := func(t float64, z vec) (vec, float64) {
			m, length := &all[r.index(w)], h+lag
			if locked {
				lag = 0
				return z, length
			}

			u := p.input(t)
			end := m.step(u, z)
			delta := vec{end[0] - z[0], end[1] - z[1]}
			if at, next := m.meets(w, z, delta, length/h); next != w && lag < 3*h {
				end = over(m.pushed(u), at*h, h, z, delta)
				if next[1] != w[1] && p.locks(&r, end[0]) {
					end[1], locked = 0, true
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

		return runner{step, func() { w, lag, locked = first, 0, false }}
	}
}

// meets returns the first boundary that z + s·delta meets for s up to most, and the region behind
// it; w: there is none.
func (m *mode) meets(w where, z, delta vec, most float64) (s float64, next where) {
	s, next = most, w
	for j := range z {
		boundary, side := m.high[j], 1
		if delta[j] < 0 {
			boundary, side = m.low[j], -1
		}
		if at := (boundary - z[j]) / delta[j]; at < s {
			s, next = math.Max(0, at), w
			next[j] += side
		}
	}

	return s, next
}

// ours is the kernel with the same mass and spring, as the embedded plant if there is one.
func ours(p *problem, h float64) runner {
	text := p.embedded
	if text == "" {
		text = p.plant()
	}
	period := time.Duration(h*1e9 + 0.5)
	r := must(rig.New(must(rig.Load(text)), kernel.Options{Period: period}, false))
	x, v := r.Port("x"), r.Port("v")
	step := func(float64, vec) (vec, float64) {
		r.Step(r.Y, r.U)
		return vec{r.Y[x], r.Y[v]}, h
	}

	return runner{step, r.Reset}
}
