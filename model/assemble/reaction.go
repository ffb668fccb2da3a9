package assemble

import (
	"math"
	"slices"
	"strings"

	"lockstep/model/network"
)

// tieElimination is the elimination of all rigid ties, with C·w = 0. Mix·C has a 1 at the pivot of
// each row and 0 there in the other rows; rows without a pivot are zero. Prescribed nodes do not
// move in it.
type tieElimination struct {
	mix   [][]float64 // ties×ties
	pivot []int       // node, or -1
}

// eliminateTies eliminates the ties.
func (a *assembly) eliminateTies() *tieElimination {
	n, k := len(a.Nodes), len(a.Ties)
	rows := make([][]float64, k) // row of C, followed by row of Mix
	for i, t := range a.Ties {
		rows[i] = make([]float64, n+k)
		for _, x := range t.Row {
			if q := a.Nodes[x.Node]; q.Owner != "fixed" && q.Driven == 0 {
				rows[i][x.Node] += x.Coef
			}
		}

		rows[i][n+i] = 1
		if s := network.Largest(rows[i][:n]); s > 0 {
			divide(rows[i], s)
		}
	}

	l := &tieElimination{pivot: eliminate(rows, 0, n, slices.Repeat([]float64{1}, k))}
	for _, r := range rows {
		l.mix = append(l.mix, r[n:])
	}
	return l
}

// reaction returns Σ c·λ of the multipliers λ of the ties. By the balance J·w' = F + Cᵀ·λ of all
// nodes it is z·(J·w' - F) along any z with C·z = c: a motion that breaks the ties as c says and
// keeps the others. Where the ties share the load with others there is none; the error names them.
func (a *assembly) reaction(c []float64, at network.Pos, what string) []float64 {
	if a.tieSolution == nil {
		a.tieSolution = a.eliminateTies()
	}
	z := make([]float64, len(a.Nodes))
	for i, q := range a.tieSolution.pivot {
		y, size := 0.0, 0.0
		for t, m := range a.tieSolution.mix[i] {
			y += m * c[t]
			size = max(size, math.Abs(m*c[t]))
		}

		switch {
		case q >= 0:
			z[q] = y
		case math.Abs(y) > 1e-10*size:
			refuseAt(a.Plant, at, "%s: its torque is not determined: %s are a closed loop of rigid connections; "+
				"make one of them elastic, or remove it", what, strings.Join(a.tiesInRow(a.tieSolution.mix[i]), ", "))
		}
	}

	sum := a.total()
	add := func(k float64, f []float64) {
		for i, v := range f {
			sum.add(i, k*v)
		}
	}

	for q, n := range a.Nodes {
		if z[q] == 0 || n.J == 0 {
			continue
		}
		for j, u := range a.rows[q] {
			if u != 0 { // an inertia depends on no massless speed
				add(z[q]*n.J*u, a.rates[a.column(j)])
			}
		}
	}

	for i, e := range a.Efforts {
		along := 0.0
		for _, x := range e.Row {
			along += x.Coef * z[x.Node]
		}
		add(-along, a.values[i])
	}

	return sum.rounded()
}

// tiesInRow returns the names of the ties in a row of the elimination.
func (a *assembly) tiesInRow(mix []float64) []string {
	var names []string
	for t, m := range mix {
		if name := a.Ties[t].Name; math.Abs(m) > 1e-10*network.Largest(mix) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	return names
}

// measuredForm returns a form in which accelerations and torques of ties are replaced by their
// values from the motion.
func (a *assembly) measuredForm(f network.Form, at network.Pos, what string) []float64 {
	var plain network.Form
	sum, ties := a.zero(), make([]float64, len(a.Ties))
	tied := false
	for _, m := range f {
		var part []float64
		switch m.Kind {
		case network.OfAccel:
			part = a.accelAlong(a.rows[m.Index], at, what)
		case network.OfDrive:
			j := slices.Index(a.nodes, m.Index)
			part = a.accelAlong(a.inertia.RawRowView(j), at, what)
			addTo(part, -1, a.force(j))
		case network.OfTie:
			ties[m.Index] += m.Coef
			tied = true
		case network.OfGearLoad:
			part = a.gearLoads[m.Index]
		case network.OfContactLoss:
			part = a.contactLosses[m.Index]
		case network.OfGearShare:
			part = a.zero()
			part[a.ofOne()] = a.gearShares[m.Index]
		default:
			plain = append(plain, m)
		}

		addTo(sum, m.Coef, part)
	}

	addTo(sum, 1, a.resolvedForm(plain))
	if tied {
		addTo(sum, 1, a.reaction(ties, at, what))
	}
	return sum
}

// accelAlong returns Σ row·u' over the columns of N.
func (a *assembly) accelAlong(row []float64, at network.Pos, what string) []float64 {
	sum := a.zero()
	for j, c := range row {
		if c != 0 {
			addTo(sum, c, a.accel(j, at, what))
		}
	}

	return sum
}

// accel returns the rate of column j of N.
func (a *assembly) accel(j int, at network.Pos, what string) []float64 {
	c := a.column(j)
	if c < a.n {
		return a.rates[c]
	}
	out := a.zero()
	for i, v := range a.massless[j-a.freeCount] {
		switch {
		case v == 0:
		case i < a.n:
			addTo(out, v, a.rates[i])
		case i < a.ofOne():
			refuseAt(a.Plant, at, "%s: the node is massless and its speed follows a torque at once; "+
				"its acceleration is not defined", what)
		}
	}

	return out
}
