package assemble

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"lockstep/model/network"
)

// solveMassless expresses the speeds of massless nodes by the other parts: the torques on each node
// add up to zero. Where only springs act, this holds for the twists, and its rate gives the speeds.
func (a *assembly) solveMassless() {
	if a.masslessCount == 0 {
		return
	}
	a.checkStiffness()
	var rows [][]float64
	for j := range a.masslessCount {
		r := a.zero()
		for i, e := range a.Efforts {
			if g := a.along[i][a.freeCount+j]; g != 0 {
				addTo(r, g, a.rawForm(e.Value))
			}
		}

		clean(r, 1e-4*network.Largest(r))
		rows = append(rows, r)
	}

	solved, rest := a.gauss(rows)
	for _, r := range rest {
		if network.Largest(r[a.freeCount:a.n]) == 0 {
			continue // no spring either
		}
		if network.Largest(r[:a.freeCount]) != 0 || network.Largest(r[a.n:]) != 0 {
			n := a.masslessNode(max(0, unsolved(solved)))
			refuseAt(a.Plant, n.At, "node %q is massless, hangs on springs alone, and a torque acts on it; "+
				"give it an inertia, or a damper", n.Name)
		}

		rate := a.zero()
		for i, s := range a.states {
			if v := r[a.freeCount+i]; v != 0 {
				addTo(rate, v, a.rawForm(s.Der))
			}
		}

		a.staticForms = append(a.staticForms, r)
		rows = append(rows, rate)
	}

	if len(rest) > 0 {
		solved, _ = a.gauss(rows)
	}
	if j := unsolved(solved); j >= 0 {
		n := a.masslessNode(j)
		refuseAt(a.Plant, n.At, "node %q is massless and nothing determines its speed (it touches %s); "+
			"give it an inertia, or a gear to a node that has one", n.Name, strings.Join(n.Users, ", "))
	}

	a.massless = solved
}

// stiffnessRange is the largest ratio of two stiffnesses at massless nodes. A twist is the difference of
// two motions; at this ratio the torque of the stiffer spring has an error of 1e-6 of the softer one's.
const stiffnessRange = 1e11

// checkStiffness refuses springs at joined massless nodes if the torque of the softest would be lost in
// the rounding of the stiffest.
func (a *assembly) checkStiffness() {
	for _, springs := range a.springGroups() {
		byStiffness := func(s, t springAtNode) int { return cmp.Compare(s.c, t.c) }
		soft, stiff := slices.MinFunc(springs, byStiffness), slices.MaxFunc(springs, byStiffness)
		if ratio := stiff.c / soft.c; !(ratio <= stiffnessRange) {
			n := a.masslessNode(stiff.node).Name
			refuse(a.Plant, stiff.Element, stiff.At, "at massless node %q it is %.2g times as stiff as %q, whose %s "+
				"would be lost in rounding; leave %q out, or give %q an inertia", n, ratio, soft.Element,
				a.masslessNode(soft.node).Domain.Per("torque", "force"), stiff.Element, n)
		}
	}
}

// springAtNode is a spring at a massless node.
type springAtNode struct {
	*network.Effort
	node int     // massless speed
	c    float64 // stiffness along the node, N·m/rad or N/m; > 0
}

// springGroups returns the springs at massless nodes, grouped by nodes that springs join.
func (a *assembly) springGroups() (groups [][]springAtNode) {
	group := make([]int, a.masslessCount) // of each massless node
	for j := range group {
		group[j] = j
	}
	var springs []springAtNode
	for i := range a.Efforts {
		e, c, first := &a.Efforts[i], 0.0, -1
		for _, m := range e.Value {
			if m.Kind == network.OfState && a.Plant.States[m.Index].C > 0 {
				c = max(c, math.Abs(m.Coef))
			}
		}
		if c == 0 {
			continue
		}

		for j, g := range a.along[i][a.freeCount : a.freeCount+a.masslessCount] {
			if g == 0 {
				continue
			}
			springs = append(springs, springAtNode{e, j, g * g * c})
			if first < 0 {
				first = j
			}
			old := group[j]
			for k := range group {
				if group[k] == old {
					group[k] = group[first]
				}
			}
		}
	}

	groups = make([][]springAtNode, a.masslessCount)
	for _, s := range springs {
		groups[group[s.node]] = append(groups[group[s.node]], s)
	}
	return slices.DeleteFunc(groups, func(g []springAtNode) bool { return len(g) == 0 })
}

// masslessNode returns the node of massless speed j.
func (a *assembly) masslessNode(j int) *network.Node { return &a.Nodes[a.nodes[a.freeCount+j]] }

// unsolved returns the first massless speed without a solution; -1 for none.
func unsolved(solved [][]float64) int {
	return slices.IndexFunc(solved, func(r []float64) bool { return r == nil })
}

// gauss solves rows = 0 for the massless speeds as far as possible. solved[j] is speed j as a form
// without massless speeds, nil where no row determines it. rest are the remaining rows, without
// massless speeds.
func (a *assembly) gauss(rows [][]float64) (solved, rest [][]float64) {
	first, end := a.ofMassless(), a.ofOne()
	var left [][]float64
	var scale []float64
	for _, r := range rows {
		left = append(left, slices.Clone(r))
		scale = append(scale, network.Largest(r[first:end]))
	}

	given := make([][]float64, a.masslessCount) // the row in which the speed is the pivot
	for i, col := range eliminate(left, first, end, scale) {
		if col >= 0 {
			given[col] = left[i]
			continue
		}

		clear(left[i][first:end])
		clean(left[i], 1e-2*network.Largest(rows[i]))
		rest = append(rest, left[i])
	}

	solved = make([][]float64, a.masslessCount)
	for j, r := range given {
		if r == nil {
			continue
		}
		s := a.zero()
		addTo(s, -1, r)
		s[first+j] = 0
		known := true // false where it depends on a speed without a row
		for q := range a.masslessCount {
			known = known && (s[first+q] == 0 || given[q] != nil)
		}
		if known {
			solved[j] = s
		}
	}

	return solved, rest
}
