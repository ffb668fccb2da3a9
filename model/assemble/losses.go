package assemble

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
	"lockstep/model/network"
)

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
