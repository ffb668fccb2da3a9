package kernel_test

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
)

// Modes of a friction element, defined again: this file and the other reference_
// files share no code with the kernel.
const (
	backward int8 = -1
	stuck    int8 = 0
	forward  int8 = 1
	free     int8 = 2
)

// refPlant evaluates x' of a System in given modes, straight from its definition.
type refPlant struct {
	sys      *model.System
	n, m, mc int
	input    []int     // per signal: index of the command that drives it, or -1
	u        []float64 // commands, held
	mode     []int8
	side     []float64
	segment  float64 // s, middle of the time between two corners: picks the row of a table

	v, tau, f []float64
	locks     []int      // independent stuck elements
	inverse   *mat.Dense // of W·Bc on locks
	redundant bool       // more stuck elements than that
}

// newRefPlant takes the inputs that commands drive; nil means none.
func newRefPlant(sys *model.System, driven []bool) *refPlant {
	p := &refPlant{sys: sys, n: len(sys.X0), m: len(sys.Signals), mc: len(sys.Frictions)}
	p.input = slices.Repeat([]int{-1}, p.m)
	for i, d := range driven {
		if d {
			p.input[sys.Inputs[i].Signal] = i
		}
	}
	p.u = make([]float64, len(sys.Inputs))
	p.mode, p.side = make([]int8, p.mc), make([]float64, len(sys.Guards))
	p.v, p.tau, p.f = make([]float64, p.m), make([]float64, p.mc), make([]float64, p.n)
	return p
}

// signals sets v at time t and state x.
func (p *refPlant) signals(t float64, x []float64) {
	for j, s := range p.sys.Signals {
		switch {
		case p.input[j] >= 0:
			p.v[j] = p.u[p.input[j]]
		case s.Law != nil:
			p.v[j] = p.program(s.Law, x)
		case s.Affine != nil:
			z, r := p.level(s.Affine.Switch, x)
			p.v[j] = s.Affine.Slope[r]*z + s.Affine.Offset[r]
			for _, g := range s.Affine.Gates {
				if _, r := p.level(g.Switch, x); r != g.Region {
					p.v[j] = 0
				}
			}
		default:
			p.v[j] = refSource(s.Source, t, p.segment)
		}
	}
}

// level returns z of switch i in state x and its region.
func (p *refPlant) level(i int, x []float64) (z float64, r int) {
	w := p.sys.Switches[i]
	z = dot(w.Row, x) + w.Const
	for r < len(w.Borders) && z > w.Borders[r] {
		r++
	}
	return z, r
}

// kinetic and static capacity of element i from v.
func (p *refPlant) kinetic(i int) float64 {
	f := p.sys.Frictions[i]
	return f.Gain * max(0, p.v[f.Signal]-f.Offset)
}

func (p *refPlant) static(i int) float64 {
	f := p.sys.Frictions[i]
	if f.OneWay {
		return max(f.Peak*p.kinetic(i), f.Floor)
	}
	return f.Peak * p.kinetic(i)
}

// active reports whether element i is one-way or has a capacity above zero.
func (p *refPlant) active(i int) bool {
	f := p.sys.Frictions[i]
	return f.OneWay || p.v[f.Signal] > f.Offset
}

// along returns row i of W times x.
func (p *refPlant) along(i int, x []float64) float64 {
	s := 0.0
	for j, w := range p.sys.W[i*p.n : (i+1)*p.n] {
		s += w * x[j]
	}
	return s
}

// gram returns W_i·Bc_j: the slip acceleration of i per torque of j.
func (p *refPlant) gram(i, j int) float64 {
	s := 0.0
	for k := range p.n {
		s += p.sys.W[i*p.n+k] * p.sys.Bc[k*p.mc+j]
	}
	return s
}

// lock prepares the constraint of the stuck elements: an independent subset by
// Gram-Schmidt on the rows of W, and the inverse of W·Bc on it.
func (p *refPlant) lock() {
	p.locks, p.redundant = p.locks[:0], false
	var basis [][]float64
	for i, m := range p.mode {
		if m != stuck {
			continue
		}
		row := slices.Clone(p.sys.W[i*p.n : (i+1)*p.n])
		size := norm(row)
		for range 2 {
			for _, b := range basis {
				c := dot(b, row)
				for j := range row {
					row[j] -= c * b[j]
				}
			}
		}
		left := norm(row)
		if left <= 1e-9*size {
			p.redundant = true
			continue
		}
		for j := range row {
			row[j] /= left
		}
		basis, p.locks = append(basis, row), append(p.locks, i)
	}
	if k := len(p.locks); k > 0 {
		g := mat.NewDense(k, k, nil)
		for r, i := range p.locks {
			for c, j := range p.locks {
				g.Set(r, c, p.gram(i, j))
			}
		}
		p.inverse = mat.NewDense(k, k, nil)
		if err := p.inverse.Inverse(g); err != nil {
			if _, bad := err.(mat.Condition); !bad {
				panic(err)
			}
		}
	}
}

// open sets f to x' without any torque of stuck elements; tau holds the sliding
// torques.
func (p *refPlant) open(t float64, x []float64) {
	p.signals(t, x)
	for i, m := range p.mode {
		p.tau[i] = 0
		if m == forward || m == backward {
			p.tau[i] = float64(m) * p.kinetic(i)
		}
	}
	for i := range p.n {
		p.f[i] = dot(p.sys.A[i*p.n:(i+1)*p.n], x) + dot(p.sys.B[i*p.m:(i+1)*p.m], p.v) +
			dot(p.sys.Bc[i*p.mc:(i+1)*p.mc], p.tau)
	}
}

// rate sets f to x' and tau to all friction torques; those of redundant locks
// that lock left out are 0.
func (p *refPlant) rate(t float64, x []float64) {
	p.open(t, x)
	k := len(p.locks)
	if k == 0 {
		return
	}
	for r, i := range p.locks {
		for c, j := range p.locks {
			p.tau[i] -= p.inverse.At(r, c) * p.along(j, p.f)
		}
	}
	for i := range p.n {
		for _, j := range p.locks {
			p.f[i] += p.sys.Bc[i*p.mc+j] * p.tau[j]
		}
	}
}

// settle removes the slip of the locks from x; the momentum is constant.
func (p *refPlant) settle(x []float64) {
	slip := make([]float64, len(p.locks))
	for r, i := range p.locks {
		slip[r] = p.along(i, x)
	}
	for r, i := range p.locks {
		impulse := 0.0
		for c := range p.locks {
			impulse -= p.inverse.At(r, c) * slip[c]
		}
		for k := range p.n {
			x[k] += p.sys.Bc[k*p.mc+i] * impulse
		}
	}
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func norm(a []float64) float64 { return math.Sqrt(dot(a, a)) }
