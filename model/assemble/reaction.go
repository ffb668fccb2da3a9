package assemble

import (
	"math"
	"slices"

	"lockstep/model/network"
)

// loosening is the elimination of all rigid ties, with C·w = 0: Mix·C has a 1 at the
// pivot of each row, where the others have 0, and is zero in rows without a pivot.
// Prescribed nodes do not move in it.
type loosening struct {
	mix   [][]float64 // ties×ties
	pivot []int       // node, or -1
}

// loosen eliminates the ties by Gauss-Jordan with full pivoting.
func (a *assembly) loosen() *loosening {
	n, k := len(a.Plant.Nodes), len(a.Ties)
	rows := make([][]float64, k) // of C, then of Mix
	for i, t := range a.Ties {
		rows[i] = make([]float64, n+k)
		for _, x := range t.Row {
			if q := a.Plant.Nodes[x.Node]; q.Owner != "fixed" && q.Driven == 0 {
				rows[i][x.Node] += x.Coef
			}
		}
		rows[i][n+i] = 1
		if s := largest(rows[i][:n]); s > 0 {
			for j := range rows[i] {
				rows[i][j] /= s
			}
		}
	}
	l := &loosening{pivot: make([]int, k)}
	for i := range l.pivot {
		l.pivot[i] = -1
	}
	for range rows {
		at, col, best := -1, -1, 1e-10
		for i, r := range rows {
			for j := range n {
				if v := math.Abs(r[j]); l.pivot[i] < 0 && v > best {
					at, col, best = i, j, v
				}
			}
		}
		if at < 0 {
			break
		}
		l.pivot[at] = col
		f := rows[at][col]
		for j := range rows[at] {
			rows[at][j] /= f
		}
		for i, r := range rows {
			if i != at && r[col] != 0 {
				addTo(r, -r[col], rows[at])
				r[col] = 0
			}
		}
	}
	for _, r := range rows {
		l.mix = append(l.mix, r[n:])
	}
	return l
}

// reaction is Σ c·λ of the multipliers of the ties. By the balance J·w' = F + Cᵀ·λ of
// all nodes it is z·(J·w' - F) along any z with C·z = c: a motion that breaks the ties
// as c says and keeps the others. There is none where the ties share the load with
// others; these are named.
func (a *assembly) reaction(c []float64, at network.Pos, what string) ([]float64, error) {
	if a.loose == nil {
		a.loose = a.loosen()
	}
	z := make([]float64, len(a.Plant.Nodes))
	for i, q := range a.loose.pivot {
		y, size := 0.0, 0.0
		for t, m := range a.loose.mix[i] {
			y += m * c[t]
			size = max(size, math.Abs(m*c[t]))
		}
		switch {
		case q >= 0:
			z[q] = y
		case math.Abs(y) > 1e-10*size:
			return nil, errorf(a.Plant, at, "%s: its torque is not determined: %s are a closed loop of rigid connections; "+
				"make one of them elastic, or remove it", what, list(a.sharing(a.loose.mix[i])))
		}
	}
	sum, size := a.zero(), a.zero()
	add := func(k float64, f []float64) {
		addTo(sum, k, f)
		for i, v := range f {
			size[i] = max(size[i], math.Abs(k*v))
		}
	}
	for q, n := range a.Plant.Nodes {
		if z[q] == 0 || n.J == 0 {
			continue
		}
		for j, u := range a.rows[q] {
			if u != 0 { // an inertia depends on no massless node
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
	for i, v := range sum {
		if math.Abs(v) <= 1e-13*size[i] {
			sum[i] = 0 // rounding
		}
	}
	return sum, nil
}

// sharing names the ties of a row of the elimination.
func (a *assembly) sharing(mix []float64) []string {
	var names []string
	for t, m := range mix {
		if name := a.Ties[t].Name; math.Abs(m) > 1e-10*largest(mix) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// measured is a form with the accelerations and the torques of ties in it, which
// follow from the motion.
func (a *assembly) measured(f network.Form, at network.Pos, what string) ([]float64, error) {
	var plain network.Form
	sum, ties := a.zero(), make([]float64, len(a.Ties))
	tied := false
	for _, m := range f {
		part, err := []float64(nil), error(nil)
		switch m.Kind {
		case network.OfAccel:
			part, err = a.accelAlong(a.rows[m.Index], at, what)
		case network.OfDrive:
			j := slices.Index(a.basis.nodes, m.Index)
			part, err = a.accelAlong(a.inertia.RawRowView(j), at, what)
			if err == nil {
				addTo(part, -1, a.force(j))
			}
		case network.OfTie:
			ties[m.Index] += m.Coef
			tied = true
			continue
		case network.OfGearLoad:
			part = a.loads[m.Index]
		case network.OfContactLoss:
			part = a.pushed[m.Index]
		case network.OfGearShare:
			part = a.zero()
			part[a.ofOne()] = a.shares[m.Index]
		default:
			plain = append(plain, m)
			continue
		}
		if err != nil {
			return nil, err
		}
		addTo(sum, m.Coef, part)
	}
	addTo(sum, 1, a.resolve(plain))
	if tied {
		r, err := a.reaction(ties, at, what)
		if err != nil {
			return nil, err
		}
		addTo(sum, 1, r)
	}
	return sum, nil
}

// accelAlong is Σ row·u' over the columns of N.
func (a *assembly) accelAlong(row []float64, at network.Pos, what string) ([]float64, error) {
	sum := a.zero()
	for j, c := range row {
		if c == 0 {
			continue
		}
		r, err := a.accel(j, at, what)
		if err != nil {
			return nil, err
		}
		addTo(sum, c, r)
	}
	return sum, nil
}

// accel is the rate of column j of N.
func (a *assembly) accel(j int, at network.Pos, what string) ([]float64, error) {
	c := a.column(j)
	if c < a.n {
		return a.rates[c], nil
	}
	out := a.zero()
	for i, v := range a.massless[j-a.free] {
		switch {
		case v == 0:
		case i < a.n:
			addTo(out, v, a.rates[i])
		case i < a.ofOne():
			return nil, errorf(a.Plant, at, "%s: the node is massless and its speed follows a torque at once; "+
				"its acceleration is not defined", what)
		}
	}
	return out, nil
}
