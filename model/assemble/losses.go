package assemble

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"lockstep/model"
	"lockstep/model/network"
)

// lose computes load and share of every lossy gear. The load is that of its tie and of
// its friction.
func (a *assembly) lose() error {
	for _, k := range a.GearLosses {
		f, err := a.measured(network.TieOf(k.Tie).Scaled(-1).Plus(network.FrictionOf(k.Friction)), k.At, "element \""+k.Name+"\"")
		if err != nil {
			return err
		}
		own := a.ofTorques() + k.Friction
		share := min(max(f[own], 0), 1)
		f[own] = 0
		if !(k.Eta2+(1-k.Eta2)*share > 0) {
			return refuse(a.Plant, k.Name, k.At, "eta_mf2 is 0, but there is no inertia on its flange a to hold still")
		}
		a.loads, a.shares = append(a.loads, f), append(a.shares, share)
	}
	return nil
}

// steepestLoss is the largest |d capacity / d load0|.
func steepestLoss(k network.GearLoss, share float64) float64 {
	return max((1-k.Eta1)/(1-(1-k.Eta1)*share), (1-k.Eta2)/(k.Eta2+(1-k.Eta2)*share))
}

// Bounds of converges.
const (
	maxGain = 0.75 // in a round: 12 of them leave 3 % of a jump of the torques, and that for a piece
	maxSets = 10   // friction elements of which all lock sets are looked at
)

// converges checks how lossy gears follow each other and other friction elements
// through the plant: the kernel brings them in line in a bounded number of rounds,
// and each must leave a part only.
//
// Locks are swept one by one into G = W·Bc and the loads L over all torques: with
// tau_l = -G[l]·tau/G[l][l] for a lock, L[k] gets -L[k][l]·G[l]/G[l][l].
func (a *assembly) converges(sys *model.System) error {
	if len(a.GearLosses) == 0 || a.mc < 2 {
		return nil
	}
	n, mc := a.n, a.mc
	rows := make([][]float64, mc+len(a.GearLosses))
	for i := range mc {
		rows[i] = make([]float64, mc)
		for j := range mc {
			for q := range n {
				rows[i][j] += sys.W[i*n+q] * sys.Bc[q*mc+j]
			}
		}
	}
	for k, f := range a.loads {
		rows[mc+k] = append([]float64(nil), f[a.ofTorques():a.ofMassless()]...)
	}
	sets := 1 << min(mc, maxSets)
	if mc > maxSets {
		sets = mc + 2 // none, each alone, all
	}
	for set := range sets {
		locked := func(i int) bool { return set>>i&1 == 1 }
		if mc > maxSets {
			locked = func(i int) bool { return set == i+1 || set == mc+1 }
		}
		if k, gain := a.gain(rows, locked); gain > maxGain {
			return refuse(a.Plant, a.GearLosses[k].Name, a.GearLosses[k].At, "its losses depend too much on what other friction elements do (%.2g of "+
				"a change comes back, %g is bearable); larger efficiencies are wanted, or a spring between", gain, maxGain)
		}
	}
	return nil
}

// gain is how much of a change of the losses comes back to them in a round while some
// friction elements are locked: the spectral radius of what they do to each other,
// whatever their signs. The worst of them is that which gets most.
func (a *assembly) gain(rows [][]float64, locked func(int) bool) (worst int, gain float64) {
	mc := a.mc
	var s [][]float64
	for _, r := range rows {
		s = append(s, append([]float64(nil), r...))
	}
	for l := range mc {
		if !locked(l) || !(math.Abs(s[l][l]) > 1e-9*math.Abs(rows[l][l])) {
			continue
		}
		pivot := append([]float64(nil), s[l]...)
		for i := range s {
			addTo(s[i], -s[i][l]/pivot[l], pivot)
		}
	}
	m := mat.NewDense(len(a.GearLosses), len(a.GearLosses), nil)
	most := 0.0
	for k, f := range a.GearLosses {
		for j, other := range a.GearLosses {
			if !locked(f.Friction) && !locked(other.Friction) {
				m.Set(k, j, steepestLoss(f, a.shares[k])*math.Abs(s[mc+k][other.Friction]))
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
