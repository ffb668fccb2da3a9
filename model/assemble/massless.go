package assemble

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"lockstep/model/network"
)

// eliminate expresses the speeds of massless nodes by what the plant has: the torques
// on each of them add up to zero. Where only springs act, that holds for the twists,
// and its rate gives the speeds.
func (a *assembly) eliminate() error {
	if a.open == 0 {
		return nil
	}
	var rows [][]float64
	for j := range a.open {
		r := a.zero()
		for i, e := range a.Efforts {
			if g := a.along[i][a.free+j]; g != 0 {
				addTo(r, g, a.raw(e.Value))
			}
		}
		clean(r, 1e-4*largest(r))
		rows = append(rows, r)
	}
	solved, rest := a.gauss(rows)
	for _, r := range rest {
		if largest(r[a.free:a.n]) == 0 {
			continue // nothing elastic either
		}
		for i, v := range r {
			if v != 0 && (i < a.free || i >= a.n) {
				return errorf(a.Plant, a.unsolved(solved).At, "node %q is massless, hangs on springs alone, and a torque acts on it; "+
					"give it an inertia, or a damper", a.unsolved(solved).Name)
			}
		}
		rate := a.zero()
		for i, s := range a.States {
			if v := r[a.free+i]; v != 0 {
				addTo(rate, v, a.raw(s.Der))
			}
		}
		a.statics = append(a.statics, r)
		rows = append(rows, rate)
	}
	if len(rest) > 0 {
		solved, _ = a.gauss(rows)
	}
	for j, r := range solved {
		if r == nil {
			n := a.Plant.Nodes[a.basis.nodes[a.free+j]]
			return errorf(a.Plant, n.At, "node %q is massless and nothing determines its speed (it touches %s); "+
				"give it an inertia, or a gear to a node that has one", n.Name, list(n.Users))
		}
		a.massless = append(a.massless, r)
	}
	return nil
}

// unsolved is the first massless node without a solution.
func (a *assembly) unsolved(solved [][]float64) *network.Node {
	for j, r := range solved {
		if r == nil {
			return &a.Plant.Nodes[a.basis.nodes[a.free+j]]
		}
	}
	return &a.Plant.Nodes[a.basis.nodes[a.free]]
}

// gauss solves rows = 0 for the massless speeds as far as they go: solved[j] is speed
// j as a form without any of them, nil where no row gives it; rest are the rows left
// over, without massless speeds.
func (a *assembly) gauss(rows [][]float64) (solved, rest [][]float64) {
	first := a.ofMassless()
	left := make([][]float64, len(rows))
	scale := make([]float64, len(rows))
	for i, r := range rows {
		left[i] = append([]float64(nil), r...)
		scale[i] = largest(r[first : first+a.open])
	}
	solved = make([][]float64, a.open)
	used := make([]bool, len(rows))
	for range a.open {
		at, col, best := -1, -1, 1e-10
		for i, r := range left {
			for j := range a.open {
				if v := math.Abs(r[first+j]); !used[i] && solved[j] == nil && v > best*scale[i] {
					at, col, best = i, j, v/scale[i]
				}
			}
		}
		if at < 0 {
			break
		}
		used[at] = true
		pivot := left[at]
		f := pivot[first+col]
		for i := range pivot {
			pivot[i] /= f
		}
		for i, r := range left {
			if i != at && r[first+col] != 0 {
				addTo(r, -r[first+col], pivot)
				r[first+col] = 0
			}
		}
		solved[col] = pivot
	}
	for i, r := range left {
		if !used[i] {
			clear(r[first : first+a.open])
			clean(r, 1e-2*largest(rows[i]))
			rest = append(rest, r)
		}
	}
	return a.explicit(solved), rest
}

// explicit turns pivot rows into solutions; one that depends on a speed that nothing
// gives is none.
func (a *assembly) explicit(pivots [][]float64) [][]float64 {
	first := a.ofMassless()
	solved := make([][]float64, a.open)
	for j, r := range pivots {
		if r == nil {
			continue
		}
		s := a.zero()
		addTo(s, -1, r)
		s[first+j] = 0
		known := true
		for q := range a.open {
			known = known && (s[first+q] == 0 || pivots[q] != nil)
		}
		if known {
			solved[j] = s
		}
	}
	return solved
}

// settle moves massless nodes between springs to where the springs are in balance at
// the start: turning node j changes the twists as its speed changes their rates.
func (a *assembly) settle(x0 []float64) error {
	if len(a.statics) == 0 {
		return nil
	}
	gain, off := mat.NewDense(len(a.statics), a.open, nil), mat.NewVecDense(len(a.statics), nil)
	change := make([][]float64, len(a.States))
	for q, s := range a.States {
		change[q] = a.raw(s.Der)[a.ofMassless():a.ofOne()]
	}
	for i, r := range a.statics {
		for q := range a.States {
			v := r[a.free+q]
			off.SetVec(i, off.AtVec(i)-v*x0[a.free+q])
			for j := range a.open {
				gain.Set(i, j, gain.At(i, j)+v*change[q][j])
			}
		}
	}
	var turn mat.VecDense
	if err := turn.SolveVec(gain, off); err != nil {
		return errorf(a.Plant, network.Pos{Line: 1, Col: 1}, "the massless nodes between springs have no place of rest: %v", err)
	}
	for q := range a.States {
		for j := range a.open {
			x0[a.free+q] += change[q][j] * turn.AtVec(j)
		}
	}
	return nil
}

func list(names []string) string {
	s := ""
	for i, n := range names {
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}
