package assemble

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
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

// solveGearLosses computes load and share of every lossy gear. The load is the torque of its tie
// and of its friction.
func (a *assembly) solveGearLosses() {
	for _, k := range a.GearLosses {
		load := network.TieOf(k.Tie).Scaled(-1).Plus(network.FrictionOf(k.Friction))
		f := a.measuredForm(load, k.At, fmt.Sprintf("element %q", k.Name))
		own := a.ofTorques() + k.Friction
		share := min(max(f[own], 0), 1)
		f[own] = 0
		if !(k.Eta2+(1-k.Eta2)*share > 0) {
			refuse(a.Plant, k.Name, k.At, "eta_mf2 is 0, but there is no inertia on its flange a to hold still")
		}
		a.gearLoads, a.gearShares = append(a.gearLoads, f), append(a.gearShares, share)
	}
}

// solveContactLosses computes the losses of contacts. Let a be the acceleration of the gap without
// the torque of the contact and the loss f. Let g and c be what these add to a per N. Then
//
//	a - g·N + c·f = 0,  f = k·N    so    f = k·a/(g - k·c)
func (a *assembly) solveContactLosses() {
	for _, p := range a.ContactLosses {
		var accel network.Form
		for _, t := range p.Rel {
			accel = accel.Plus(network.AccelOf(t.Node).Scaled(t.Coef))
		}
		f := a.measuredForm(accel, p.At, fmt.Sprintf("element %q", p.Name))
		own := a.ofSignals() + a.signalOf[p.Own]
		g, c := f[a.ofTorques()+p.Contact], f[own]
		f[a.ofTorques()+p.Contact] = 0
		for _, q := range a.ContactLosses {
			if q.Contact == p.Contact {
				f[a.ofSignals()+a.signalOf[q.Own]] = 0 // only one of them acts at a time
			}
		}

		scaled := a.zero()
		addTo(scaled, p.K/(g-p.K*c), f)
		a.contactLosses = append(a.contactLosses, scaled)
	}
}

// steepestLoss returns the largest |d capacity / d load0|.
func steepestLoss(k network.GearLoss, share float64) float64 {
	return max((1-k.Eta1)/(1-(1-k.Eta1)*share), (1-k.Eta2)/(k.Eta2+(1-k.Eta2)*share))
}

// Bounds of checkLossGain.
const (
	maxGain = 0.75 // gain of an iteration: 12 iterations leave 3 % of a jump of the torques, for one substep
	maxSets = 10   // friction elements up to which all lock sets are checked
)

// checkLossGain checks the feedback between lossy gears and other friction elements through the
// plant. The kernel solves for them in a bounded number of iterations, so each iteration must
// reduce the error.
//
// Locks are eliminated one by one from G = W·Bc and from the loads L over all torques. With tau_l =
// -G[l]·tau/G[l][l] for a lock, L[k] gets -L[k][l]·G[l]/G[l][l].
func (a *assembly) checkLossGain(sys *model.System) {
	if len(a.GearLosses) == 0 || a.mc < 2 {
		return
	}
	mc := a.mc
	var effect mat.Dense
	effect.Mul(mat.NewDense(mc, a.n, sys.W), mat.NewDense(a.n, mc, sys.Bc))
	var rows [][]float64
	for i := range mc {
		rows = append(rows, effect.RawRowView(i))
	}
	for _, f := range a.gearLoads {
		rows = append(rows, slices.Clone(f[a.ofTorques():a.ofMassless()]))
	}
	sets := 1 << min(mc, maxSets)
	if mc > maxSets {
		sets = mc + 2 // no lock, each alone, all
	}
	for set := range sets {
		locked := func(i int) bool { return set>>i&1 == 1 }
		if mc > maxSets {
			locked = func(i int) bool { return set == i+1 || set == mc+1 }
		}
		if k, gain := a.lossGain(rows, locked); gain > maxGain {
			refuse(a.Plant, a.GearLosses[k].Name, a.GearLosses[k].At, "its losses depend too strongly on "+
				"other friction elements (gain %.2g, limit %g); use larger efficiencies, or put a spring between", gain, maxGain)
		}
	}
}

// lossGain returns the gain of a change of the losses in one iteration while some friction elements
// are locked: the spectral radius of their mutual effect, whatever its signs. worst is the gear
// with the largest effect on it.
func (a *assembly) lossGain(rows [][]float64, locked func(int) bool) (worst int, gain float64) {
	mc := a.mc
	var s [][]float64
	for _, r := range rows {
		s = append(s, slices.Clone(r))
	}
	for l := range mc {
		if !locked(l) || !(math.Abs(s[l][l]) > 1e-9*math.Abs(rows[l][l])) {
			continue
		}
		pivot := slices.Clone(s[l])
		for i := range s {
			addTo(s[i], -s[i][l]/pivot[l], pivot)
		}
	}

	m := mat.NewDense(len(a.GearLosses), len(a.GearLosses), nil)
	most := 0.0
	for k, f := range a.GearLosses {
		for j, other := range a.GearLosses {
			if !locked(f.Friction) && !locked(other.Friction) {
				m.Set(k, j, steepestLoss(f, a.gearShares[k])*math.Abs(s[mc+k][other.Friction]))
			}
		}

		if got := mat.Sum(m.RowView(k)); got > most {
			worst, most = k, got
		}
	}

	var eig mat.Eigen
	if !eig.Factorize(m, mat.EigenNone) {
		return worst, math.Inf(1)
	}
	for _, v := range eig.Values(nil) {
		gain = max(gain, cmplx.Abs(v))
	}
	return worst, gain
}
