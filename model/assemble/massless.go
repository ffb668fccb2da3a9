package assemble

import (
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
