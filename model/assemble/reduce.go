package assemble

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/network"
	"lockstep/model/units"
)

// basis is the null-space basis of the rigid connections: w = N·u. u are the speeds of the
// independent nodes: those with inertia, then massless ones, then those that a source prescribes. N
// is the identity on them.
type basis struct {
	nodes         []int       // node of each column
	freeCount     int         // the first columns: nodes with inertia; their speeds are states
	masslessCount int         // the next columns: massless nodes, which springs and dampers determine
	rows          [][]float64 // per node: its row of N
	offsets       []float64   // per node: its place is rows·places + offset
}

// mostChained bounds the ratio of two speeds that gears one behind the other make.
const mostChained = 1e9

// reduce eliminates the ties one after the other (Gauss-Jordan), so that it can name a tie that
// contradicts those before it. A tie that follows from others is dropped. It eliminates, in this
// order of preference, a massless node, an inertia without an initial speed, an inertia with one;
// the last of its kind in the file. Of a body it eliminates the coordinate that moves most. It
// takes an angle only where no position is left, and no coordinate that hardly moves, from which
// the others would follow badly. So no inertia depends on a massless node.
func reduce(p *network.Plant) *basis {
	n := len(p.Nodes)
	pivots := make([][]float64, n) // dependent node: 0 = row·w, with 1 at the node; otherwise nil
	gaps := make([]float64, n)     // offset of the node's place
	given := make([]bool, n)       // the file gives the speed of the node
	for _, s := range p.Starts {
		if s.Speed && s.Key != "" && len(s.Row) == 1 {
			given[s.Row[0].Node] = true
		}
	}

	for _, t := range p.Ties {
		r, gap := make([]float64, n), t.Gap
		size := math.Abs(gap)
		for _, x := range t.Row {
			if at := x.Coef * p.Nodes[x.Node].Phi0; p.Nodes[x.Node].Owner == "fixed" {
				gap, size = gap-at, max(size, math.Abs(at))
			} else {
				r[x.Node] += x.Coef
			}
		}

		scale := network.Largest(r)
		for q, pr := range pivots {
			if pr != nil && r[q] != 0 {
				gap, size = gap-r[q]*gaps[q], max(size, math.Abs(r[q]*gaps[q]))
				sweep(r, pr, q)
			}
		}

		clean(r, scale)
		if !(math.Abs(gap) > 1e-12*size) {
			gap = 0
		}
		q := pivot(p, r, given)
		switch {
		case q < 0 && network.Largest(r) > 0:
			refuse(p, t.Name, t.At, "the speed it gives contradicts the gears and the other speed sources")
		case q < 0 && t.Joint:
			refuse(p, t.Name, t.At, "it over-constrains: another joint already removes this motion; "+
				"remove it, or the other joint")
		case q < 0 && math.Abs(gap) > 1e-9*size:
			refuse(p, t.Name, t.At,
				"the other gears, or where the bodies start, hold its ends %s apart; correct where they start",
				units.Format(units.DropRounding(math.Abs(gap)), p.Nodes[t.Row[0].Node].AngleUnit()))
		case q < 0:
			continue
		}

		fast, held := substitute(pivots, gaps, r, gap, q)
		if fast >= 0 {
			refuse(p, t.Name, t.At, "together with the other gears it makes %q turn %.3g times as fast as another node; "+
				"at most %g times is possible, correct a ratio", p.Nodes[fast].Name, network.Largest(pivots[fast]), mostChained)
		}
		if !held {
			continue
		}
		if held := immobileBody(p, pivots); held != nil {
			refuse(p, t.Name, t.At, "it over-constrains: it leaves %s no speed but zero; "+
				"remove it, or put more into dof", strings.Join(held, ", "))
		}

		if held := immobileNodes(p, pivots); held != nil {
			refuse(p, t.Name, t.At, "together with the other gears it leaves %s no speed but zero; "+
				"remove it or correct a ratio", strings.Join(held, ", "))
		}
	}

	b := basisOf(p, pivots)
	b.offsets = gaps
	return b
}

// substitute makes node q dependent by row r and its gap, and replaces q in the rows of the other
// dependent nodes. It returns a node that turns too fast for others now, -1: none, and whether the row
// leaves a node only speed zero.
func substitute(pivots [][]float64, gaps, r []float64, gap float64, q int) (fast int, held bool) {
	gap /= r[q]
	divide(r, r[q])
	pivots[q], gaps[q] = r, gap
	fast = -1
	for i, pr := range pivots {
		if pr == nil || pr[q] == 0 {
			continue
		}
		if i != q {
			scale := network.Largest(pr)
			gaps[i] -= pr[q] * gap
			sweep(pr, r, q)
			clean(pr, scale)
		}
		if fast < 0 && !(network.Largest(pr) <= mostChained) {
			fast = i
		}
		held = held || immobile(pivots, i)
	}
	return fast, held
}

// eliminate gives each row a pivot where possible: a column from first up to end in which the row
// has 1 and the others have 0 (Gauss and Jordan, with full pivoting). It returns the columns,
// counted from first; -1 where the row is zero there within rounding of size scale.
func eliminate(rows [][]float64, first, end int, scale []float64) []int {
	pivots := slices.Repeat([]int{-1}, len(rows))
	for range rows {
		at, col, best := -1, -1, 1e-10
		for i, r := range rows {
			for j, x := range r[first:end] {
				if v := math.Abs(x); pivots[i] < 0 && v > best*scale[i] {
					at, col, best = i, j, v/scale[i]
				}
			}
		}

		if at < 0 {
			break
		}
		pivots[at] = col
		divide(rows[at], rows[at][first+col])
		for i, r := range rows {
			if i != at {
				sweep(r, rows[at], first+col)
			}
		}
	}

	return pivots
}

// sweep removes column q from r by a row that has 1 there.
func sweep(r, row []float64, q int) {
	addTo(r, -r[q], row)
	r[q] = 0
}

// divide divides r by f.
func divide(r []float64, f float64) {
	for i := range r {
		r[i] /= f
	}
}

// clean sets entries within rounding of scale to zero.
func clean(r []float64, scale float64) {
	for i, v := range r {
		if math.Abs(v) <= 1e-10*scale {
			r[i] = 0
		}
	}
}

// pivot returns the node of r to eliminate; -1 if r is zero.
func pivot(p *network.Plant, r []float64, given []bool) int {
	best, rank, scale := -1, 7, network.Largest(r)
	for i, v := range r {
		n, k := &p.Nodes[i], 0
		if n.J > 0 {
			k = 2
			if given[i] {
				k = 4
			}
		}

		if n.OfBody && n.Domain == network.Rotational { // the angle of a body
			k++
		}
		framed := n.OfBody && n.J > 0
		if framed && math.Abs(v) < 0.01*scale {
			k = 6
		}
		if v == 0 || n.Driven > 0 || k > rank {
			continue
		}
		if k == rank && framed && p.Nodes[best].OfBody && math.Abs(v) < math.Abs(r[best]) {
			continue
		}
		best, rank = i, k
	}

	return best
}

// immobileNodes returns the names of the nodes that can no longer turn. Joints may hold a body
// along some of its coordinates.
func immobileNodes(p *network.Plant, pivots [][]float64) (names []string) {
	for q, n := range p.Nodes {
		if !n.OfBody && immobile(pivots, q) {
			names = append(names, strconv.Quote(n.Name))
		}
	}

	return names
}

// immobileBody returns the names of the coordinates of a body none of which can move any more.
func immobileBody(p *network.Plant, pivots [][]float64) []string {
	moves := map[string]bool{}
	for q := range p.Nodes {
		if n := &p.Nodes[q]; n.OfBody && n.J > 0 {
			moves[n.By] = moves[n.By] || !immobile(pivots, q)
		}
	}

	for _, n := range p.Nodes {
		if moving, isBody := moves[n.By]; isBody && !moving {
			return coordinates(p, n.By)
		}
	}

	return nil
}

// coordinates returns the names of the coordinates of a body.
func coordinates(p *network.Plant, body string) (names []string) {
	for _, n := range p.Nodes {
		if n.OfBody && n.J > 0 && n.By == body {
			names = append(names, strconv.Quote(n.Name))
		}
	}
	return names
}

// immobile reports whether the ties leave node q only speed zero.
func immobile(pivots [][]float64, q int) bool {
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

// basisOf sorts the independent nodes and expresses the others by them.
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

	b := &basis{nodes: slices.Concat(massive, massless, driven), freeCount: len(massive), masslessCount: len(massless)}
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

// form expresses a row of node speeds by the independent ones.
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

// Layout says how System treats the nodes of a plant.
type Layout struct {
	Bodies   []string // nodes with inertia
	Free     int      // degrees of freedom: the first states, the independent speeds
	Held     []string // coordinates of bodies that joints hold fixed
	Carried  []string // points of bodies, and lines between them
	Geared   []string // other massless nodes whose speed follows from gears
	Balanced []string // massless nodes whose speed follows from springs and dampers
	Driven   []string // sources that prescribe a speed; the driven node is geared to the source
}

// LayoutOf returns the Layout of a plant. It fails where System fails to reduce the gears.
func LayoutOf(p *network.Plant) (l *Layout, err error) {
	defer yamlfile.Catch(&err)
	b := reduce(p)
	l = &Layout{Free: b.freeCount}
	for i, n := range p.Nodes {
		switch {
		case n.Owner == "fixed":
		case n.Driven > 0:
			l.Driven = append(l.Driven, n.Name)
		case n.J > 0:
			if l.Bodies = append(l.Bodies, n.Name); !slices.Contains(b.nodes, i) && network.Largest(b.rows[i]) == 0 {
				l.Held = append(l.Held, n.Name)
			}
		case n.OfBody:
			name := n.Name
			if n.Owner == "body" {
				name = name[:strings.LastIndexByte(name, '.')] // of .x and .y
			}
			if k := len(l.Carried); k == 0 || l.Carried[k-1] != name {
				l.Carried = append(l.Carried, name)
			}
		case slices.Contains(b.nodes, i):
			l.Balanced = append(l.Balanced, n.Name)
		default:
			l.Geared = append(l.Geared, n.Name)
		}
	}

	return l, nil
}
