package model

import (
	"fmt"
	"math"
	"strings"
)

// basis is the null-space basis of the rigid connections: w = N·x, with N
// (nodes × len(free)) the identity on the free nodes.
type basis struct {
	free []int       // nodes whose speeds are states, in file order
	rows [][]float64 // per node: its row of N
}

// reduce eliminates the ties one after the other (Gauss-Jordan), so that a tie that
// contradicts those before it can be named. What is eliminated is, in this order of
// preference, a massless node, an inertia without an initial speed, an inertia with
// one; the last of its kind in the file. So the free nodes are inertias.
func (p *Plant) reduce() (*basis, error) {
	n := len(p.nodes)
	pivots := make([][]float64, n) // dependent node: 0 = row·w, with 1 at the node; else nil
	for _, t := range p.ties {
		r := make([]float64, n)
		for _, x := range t.row {
			if p.nodes[x.node].owner != "fixed" {
				r[x.node] += x.coef
			}
		}
		scale := largest(r)
		for q, pr := range pivots {
			if pr != nil {
				subtract(r, r[q], pr, q)
			}
		}
		clean(r, scale)
		q := p.pivot(r)
		if q < 0 {
			return nil, p.errorf(t.at, "element %q: its speeds already follow from the other gears; remove it", t.name)
		}
		f := r[q]
		for i := range r {
			r[i] /= f
		}
		for _, pr := range pivots {
			if pr != nil {
				scale := largest(pr)
				subtract(pr, pr[q], r, q)
				clean(pr, scale)
			}
		}
		pivots[q] = r
		if held := p.held(pivots); held != "" {
			return nil, p.errorf(t.at, "element %q: together with the other gears it leaves %s no speed but zero; "+
				"remove it or correct a ratio", t.name, held)
		}
	}
	return p.freeNodes(pivots)
}

func (p *Plant) errorf(at pos, format string, args ...any) error {
	return &fileError{p.File, at, oneLine(fmt.Sprintf(format, args...))}
}

// subtract is r -= f·s, exactly zero at q.
func subtract(r []float64, f float64, s []float64, q int) {
	if f == 0 {
		return
	}
	for i, v := range s {
		r[i] -= f * v
	}
	r[q] = 0
}

// clean sets to zero what is left by rounding.
func clean(r []float64, scale float64) {
	for i, v := range r {
		if math.Abs(v) <= 1e-10*scale {
			r[i] = 0
		}
	}
}

func largest(r []float64) float64 {
	m := 0.0
	for _, v := range r {
		m = max(m, math.Abs(v))
	}
	return m
}

// pivot chooses the node of r to eliminate; -1 if r is zero.
func (p *Plant) pivot(r []float64) int {
	best, rank := -1, 3
	for i, v := range r {
		k := 0
		if p.nodes[i].owner == "inertia" {
			k = 1
			if p.nodes[i].given {
				k = 2
			}
		}
		if v != 0 && k <= rank {
			best, rank = i, k
		}
	}
	return best
}

// held names the nodes that can no longer turn.
func (p *Plant) held(pivots [][]float64) string {
	var names []string
	for q := range p.nodes {
		r := pivots[q]
		if r == nil {
			continue
		}
		still := true
		for i, v := range r {
			still = still && (i == q || v == 0)
		}
		if still {
			names = append(names, fmt.Sprintf("%q", p.nodes[q].name))
		}
	}
	return strings.Join(names, ", ")
}

func (p *Plant) freeNodes(pivots [][]float64) (*basis, error) {
	b := &basis{}
	for i, n := range p.nodes {
		if pivots[i] != nil || n.owner == "fixed" {
			continue
		}
		if n.owner == "" {
			return nil, p.errorf(n.at, "node %q is massless and nothing determines its speed (it touches %s); "+
				"give it an inertia, or a gear to a node that has one", n.name, strings.Join(n.users, ", "))
		}
		b.free = append(b.free, i)
	}
	for i := range p.nodes {
		row := make([]float64, len(b.free))
		for j, f := range b.free {
			switch r := pivots[i]; {
			case i == f:
				row[j] = 1
			case r != nil && r[f] != 0:
				row[j] = -r[f]
			}
		}
		b.rows = append(b.rows, row)
	}
	return b, nil
}

// start returns the initial speeds of the free nodes, after checking that those
// given for others agree with the gears.
func (p *Plant) start(b *basis) ([]float64, error) {
	x := make([]float64, len(b.free))
	for j, f := range b.free {
		x[j] = p.nodes[f].start
	}
	for i, n := range p.nodes {
		w, size := 0.0, math.Abs(n.start)
		for j, c := range b.rows[i] {
			w += c * x[j]
			size = max(size, math.Abs(c*x[j]))
		}
		if n.given && !(math.Abs(w-n.start) <= 1e-9*size) {
			return nil, p.errorf(n.at, "element %q: w_start %.9g rad/s contradicts the gears, which make it %.9g rad/s",
				n.name, n.start, w)
		}
	}
	return x, nil
}

// form expresses a row of node speeds in the free speeds.
func (b *basis) form(r row) []float64 {
	f := make([]float64, len(b.free))
	scale := 0.0
	for _, t := range r {
		for j, c := range b.rows[t.node] {
			f[j] += t.coef * c
			scale = max(scale, math.Abs(t.coef*c))
		}
	}
	clean(f, 1e-3*scale)
	return f
}
