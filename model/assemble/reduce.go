package assemble

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/model/network"
)

// basis is the null-space basis of the rigid connections: w = N·u, with u the speeds
// of the independent nodes: those with inertia, then the massless ones, then those
// that a source prescribes. N is the identity on them.
type basis struct {
	nodes []int       // of the columns
	free  int         // the first are nodes with inertia: their speeds are states
	open  int         // the next are massless: springs and dampers determine them
	rows  [][]float64 // per node: its row of N
	gaps  []float64   // per node: its place is rows·places + gaps
}

// reduce eliminates the ties one after the other (Gauss-Jordan), so that a tie that
// contradicts those before it can be named; one that follows from them is dropped.
// What is eliminated is, in this order of preference, a massless node, an inertia
// without an initial speed, an inertia with one; the last of its kind in the file. Of
// bodies it is the coordinate that moves most, an angle only where no place is left, and
// none that hardly moves, from which the others would follow badly. So no inertia depends
// on a massless node.
func reduce(p *network.Plant) (*basis, error) {
	n := len(p.Nodes)
	pivots := make([][]float64, n) // dependent node: 0 = row·w, with 1 at the node; else nil
	gaps := make([]float64, n)     // and of places
	for _, t := range p.Ties {
		r, gap := make([]float64, n), t.Gap
		for _, x := range t.Row {
			if p.Nodes[x.Node].Owner != "fixed" {
				r[x.Node] += x.Coef
			}
		}
		scale := largest(r)
		for q, pr := range pivots {
			if pr != nil {
				gap -= r[q] * gaps[q]
				subtract(r, r[q], pr, q)
			}
		}
		clean(r, scale)
		q := pivot(p, r)
		if q < 0 && largest(r) > 0 {
			return nil, refuse(p, t.Name, t.At, "the speed it gives contradicts the gears and the other speed sources")
		}
		if q < 0 && t.Joint {
			return nil, refuse(p, t.Name, t.At, "it over-constrains: the motion that it takes is taken already; "+
				"remove it, or the other joint")
		}
		if q < 0 {
			continue
		}
		f := r[q]
		for i := range r {
			r[i] /= f
		}
		gap /= f
		for i, pr := range pivots {
			if pr != nil {
				scale := largest(pr)
				gaps[i] -= pr[q] * gap
				subtract(pr, pr[q], r, q)
				clean(pr, scale)
			}
		}
		pivots[q], gaps[q] = r, gap
		if held := stuckBody(p, pivots); held != "" {
			return nil, refuse(p, t.Name, t.At, "it over-constrains: it leaves %s no speed but zero; "+
				"remove it, or put more into dof", held)
		}
		if held := heldNodes(p, pivots); held != "" {
			return nil, refuse(p, t.Name, t.At, "together with the other gears it leaves %s no speed but zero; "+
				"remove it or correct a ratio", held)
		}
	}
	b := basisOf(p, pivots)
	b.gaps = gaps
	return b, nil
}

// errorf is an error at a place of the plant file, refuse one of an element.
func errorf(p *network.Plant, at network.Pos, format string, args ...any) error {
	return network.NewError(p.File, "", at, format, args...)
}

func refuse(p *network.Plant, element string, at network.Pos, format string, args ...any) error {
	return network.NewError(p.File, element, at, "element %q: "+format, slices.Insert(args, 0, any(element))...)
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
func pivot(p *network.Plant, r []float64) int {
	best, rank, scale := -1, 7, largest(r)
	for i, v := range r {
		k := 0
		if p.Nodes[i].J > 0 {
			k = 2
			if p.Nodes[i].Given {
				k = 4
			}
		}
		if tilts(&p.Nodes[i]) {
			k++
		}
		framed := p.Nodes[i].Framed && p.Nodes[i].J > 0
		if framed && math.Abs(v) < 0.01*scale {
			k = 6
		}
		if v == 0 || p.Nodes[i].Driven > 0 || k > rank || k == rank && framed && p.Nodes[best].Framed && math.Abs(v) < math.Abs(r[best]) {
			continue
		}
		best, rank = i, k
	}
	return best
}

// heldNodes names the nodes that can no longer turn. Joints may hold a body along some of its
// coordinates.
func heldNodes(p *network.Plant, pivots [][]float64) string {
	var names []string
	for q, n := range p.Nodes {
		if !n.Framed && still(pivots, q) {
			names = append(names, fmt.Sprintf("%q", n.Name))
		}
	}
	return strings.Join(names, ", ")
}

// stuckBody names the coordinates of a body of which none can move any more.
func stuckBody(p *network.Plant, pivots [][]float64) string {
	moves, names := map[string]bool{}, map[string][]string{}
	for q, n := range p.Nodes {
		if n.Framed && n.J > 0 {
			moves[n.By] = moves[n.By] || !still(pivots, q)
			names[n.By] = append(names[n.By], fmt.Sprintf("%q", n.Name))
		}
	}
	for _, n := range p.Nodes {
		if list := names[n.By]; list != nil && !moves[n.By] {
			return strings.Join(list, ", ")
		}
	}
	return ""
}

// still tells whether the ties leave node q no speed but zero.
func still(pivots [][]float64, q int) bool {
	if pivots[q] == nil {
		return false
	}
	for i, v := range pivots[q] {
		if i != q && v != 0 {
			return false
		}
	}
	return true
}

// basisOf sorts the independent nodes and expresses the others in them.
func basisOf(p *network.Plant, pivots [][]float64) *basis {
	var massive, massless, driven []int
	for i, n := range p.Nodes {
		switch {
		case pivots[i] != nil || n.Owner == "fixed":
		case n.J > 0:
			massive = append(massive, i)
		case n.Driven == 0:
			massless = append(massless, i)
		default:
			driven = append(driven, i)
		}
	}
	b := &basis{nodes: slices.Concat(massive, massless, driven), free: len(massive), open: len(massless)}
	for i := range p.Nodes {
		row := make([]float64, len(b.nodes))
		for j, f := range b.nodes {
			switch r := pivots[i]; {
			case i == f:
				row[j] = 1
			case r != nil && r[f] != 0:
				row[j] = -r[f]
			}
		}
		b.rows = append(b.rows, row)
	}
	return b
}

// form expresses a row of node speeds in the independent ones.
func (b *basis) form(r network.Row) []float64 {
	f := make([]float64, len(b.nodes))
	scale := 0.0
	for _, t := range r {
		for j, c := range b.rows[t.Node] {
			f[j] += t.Coef * c
			scale = max(scale, math.Abs(t.Coef*c))
		}
	}
	clean(f, 1e-3*scale)
	return f
}

// tilts tells whether the node is the angle of a body.
func tilts(n *network.Node) bool { return n.Framed && n.Domain == network.Rotational }
