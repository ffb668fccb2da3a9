package model

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// loss is the friction of a lossy gear, with what its law needs from the whole plant.
type loss struct {
	name          string
	at            pos
	friction, tie int
	eta1, eta2    float64 // least efficiencies
}

// The side of a lossy gear outlasts its end by a part of the load and by a torque,
// N·m, and its capacity is larger by twice that: without load there is no side, only
// rounding, and a gear that just holds its load holds it.
const (
	marginPart = 1e-11
	marginTau  = 1e-12
)

// selfLocking is how much more than flange b can ask for a gear holds that b cannot
// drive: without it, a worm at rest has nothing in reserve but rounding.
const selfLocking = 2

// lossTable is over |w_a|: efficiencies with flange a and with flange b driving, and
// the bearing friction, N·m on the side of a, in both cases.
type lossTable struct {
	eta1, eta2, tau1, tau2 Table
}

func (t lossTable) all() []Table { return []Table{t.eta1, t.eta2, t.tau1, t.tau2} }

// readLossyGear is an ideal gear and a friction element from flange a to the support.
// With load the torque into flange a, its torque is tau_loss while w_a > 0,
//
//	tau_loss = max((1 - eta1)·load + tau1, (1 - 1/eta2)·load + tau2)
//
// and backward the same with both torques negative. It takes part in the load itself:
// load = load0 + share·tau_loss, so that the capacity, of load0 alone, is
//
//	max(((1 - eta1)·load0 + tau1)/(1 - (1 - eta1)·share),
//	    (eta2·tau2 - (1 - eta2)·load0)/(eta2 + (1 - eta2)·share))
//
// with -load0 backward, the second times selfLocking where eta2 reaches 0. Stuck, the sign of its own torque is the side.
func readLossyGear(e *element) declared {
	tieGear(e)
	t := readLossTable(e)
	if e.err != nil {
		return declared{}
	}
	e.between = difference(e.node("a"), e.node("support"))
	own := len(e.plant.frictions)
	ideal := true
	for i, table := range t.all() {
		for _, z := range table.Z {
			ideal = ideal && z == [4]float64{1, 1, 0, 0}[i]
		}
	}
	if ideal {
		return e.rub(Friction{Signal: e.fixedSignal("tau_max", 0), Gain: 1, Peak: 1})
	}
	k := len(e.plant.losses)
	e.plant.losses = append(e.plant.losses, loss{e.name, e.at, own, len(e.plant.ties) - 1, slices.Min(t.eta1.Z), slices.Min(t.eta2.Z)})
	d := e.rub(Friction{Gain: 1, Peak: 1})

	var side law
	load := side.arg(loadOf(k), 0)
	side.ops = nil
	side.arg(frictionOf(own), 0)
	side.arg(e.between.speeds(1), 0) // tells the side at the start
	side.times(1e-6).do(Add)
	g := e.addGuard(outlastEnd(e, &side, load))

	var l law
	l.loss = k + 1
	driving, braking := pushLosses(e, &l, k, g, t)
	driving()
	braking()
	margin(l.do(Max), 0).times(2).do(Add)
	e.plant.frictions[own].Signal = e.addLaw(e.name+".tau_max", "N.m", &l)

	var corner law
	driving, braking = pushLosses(e, &corner, k, g, t)
	driving()
	braking()
	e.addGuard(outlastEnd(e, corner.do(Sub), 0))
	guardLosses(e, t)
	return d
}

// outlastEnd lets a guard keep its side until the other is plain, under a load.
func outlastEnd(e *element, l *law, load int) *law {
	return margin(l, load).side(len(e.plant.guards)).do(Mul, Add)
}

// margin pushes how far a side outlasts its end.
func margin(l *law, load int) *law {
	return l.again(load).do(Abs).times(marginPart).push(marginTau).do(Add)
}

// pushLosses prepares l and returns what pushes the loss with flange a driving and with
// flange b driving, both on the side of guard g.
func pushLosses(e *element, l *law, k, g int, t lossTable) (driving, braking func()) {
	load := l.arg(loadOf(k), 0)
	share := l.arg(shareOf(k), 0)
	speed := l.arg(e.between.speeds(1), t.tau1.steepest()+t.tau2.steepest())
	l.ops = nil // all are pushed where they are wanted
	at := func(t Table) *law {
		if len(t.X) == 1 {
			return l.push(t.Z[0])
		}
		return l.again(speed).do(Abs).look(t)
	}
	rest := func(eta Table) { // 1 - eta
		l.push(1)
		at(eta).do(Sub)
	}
	driving = func() {
		rest(t.eta1)
		l.again(load).do(Mul).side(g).do(Mul)
		at(t.tau1).do(Add)
		l.push(1)
		rest(t.eta1)
		l.again(share).do(Mul, Sub, Div)
	}
	braking = func() {
		at(t.eta2)
		at(t.tau2).do(Mul)
		rest(t.eta2)
		l.again(load).do(Mul).side(g).do(Mul, Sub)
		at(t.eta2)
		rest(t.eta2)
		l.again(share).do(Mul, Add, Div)
		if slices.Min(t.eta2.Z) == 0 {
			l.times(selfLocking)
		}
	}
	return driving, braking
}

// guardLosses places a guard on the corners of the table.
func guardLosses(e *element, t lossTable) {
	var points []float64
	for _, table := range t.all() {
		for _, x := range table.bends() {
			if x > 0 {
				points = append(points, x)
			}
		}
	}
	if len(points) == 0 {
		return
	}
	var g law
	g.arg(e.between.speeds(1), 0)
	slices.Sort(points)
	g.do(Abs).look(corners(slices.Compact(points)))
	e.addGuard(&g)
}

// readLossTable reads rows [|w_a|, eta_mf1, eta_mf2, tau_bf1, tau_bf2]. They go on like the
// last two until an efficiency has halved or reached 1, or a torque has reached 0, and
// stay as they are from there on.
func readLossTable(e *element) lossTable {
	cols := [][]float64{{0}, {1}, {1}, {0}, {0}}
	if f, ok := e.fields["lossTable"]; ok {
		if cols = e.columns(f, "rad/s", "1", "1", "N.m", "N.m"); e.err == nil {
			checkLosses(e, f, cols)
		}
	}
	if n := len(cols[0]); e.err == nil && n > 1 {
		further := math.Inf(1)
		slope := [5]float64{}
		for j := 1; j < 5; j++ {
			z := cols[j][n-1]
			s := (z - cols[j][n-2]) / (cols[0][n-1] - cols[0][n-2])
			slope[j] = s
			switch {
			case j < 3 && s > 0:
				further = min(further, (1-z)/s)
			case j < 3 && s < 0:
				further = min(further, -z/2/s)
			case s < 0:
				further = min(further, -z/s)
			}
		}
		if further > 0 && (slope != [5]float64{}) {
			further = min(further, 1e6)
			slope[0] = 1
			for j := range cols {
				cols[j] = append(cols[j], max(0, cols[j][n-1]+further*slope[j]))
			}
		}
	}
	table := func(j int) Table {
		t := Table{X: cols[0], Z: cols[j]}
		if e.err == nil && slices.Min(t.Z) == slices.Max(t.Z) {
			t = Table{X: t.X[:1], Z: t.Z[:1]}
		}
		return t
	}
	return lossTable{table(1), table(2), table(3), table(4)}
}

// checkLosses refuses what is no gear.
func checkLosses(e *element, f field, cols [][]float64) {
	if cols[0][0] != 0 {
		e.fail(f.at, "%s: lossTable: the first row is at speed %g; 0 is wanted", e.what(), cols[0][0])
	}
	for i := range cols[0] {
		eta1, eta2, tau1, tau2 := cols[1][i], cols[2][i], cols[3][i], cols[4][i]
		switch {
		case !(eta1 > 0 && eta1 <= 1):
			e.fail(f.at, "%s: lossTable: eta_mf1 %g in row %d is outside 0 to 1, 0 not included", e.what(), eta1, i+1)
		case !(eta2 >= 0 && eta2 <= 1):
			e.fail(f.at, "%s: lossTable: eta_mf2 %g in row %d is outside 0 to 1", e.what(), eta2, i+1)
		case !(tau1 >= 0 && tau2 >= 0):
			e.fail(f.at, "%s: lossTable: tau_bf %g, %g N.m in row %d is negative", e.what(), tau1, tau2, i+1)
		case eta1 == 1 && eta2 == 1 && tau1 != tau2:
			e.fail(f.at, "%s: lossTable: tau_bf1 %g and tau_bf2 %g N.m in row %d differ, but no efficiency does; "+
				"without mesh losses the bearings take the same either way", e.what(), tau1, tau2, i+1)
		}
	}
}

// lose computes load and share of every lossy gear. The load is that of its tie and of
// its friction.
func (a *assembly) lose() error {
	for _, k := range a.losses {
		f, err := a.measured(tieOf(k.tie).scaled(-1).plus(frictionOf(k.friction)), k.at, "element \""+k.name+"\"")
		if err != nil {
			return err
		}
		own := a.ofTorques() + k.friction
		share := min(max(f[own], 0), 1)
		f[own] = 0
		if !(k.eta2+(1-k.eta2)*share > 0) {
			return refuse(a.Plant, k.name, k.at, "eta_mf2 is 0, but there is no inertia on its flange a to hold still")
		}
		a.loads, a.shares = append(a.loads, f), append(a.shares, share)
	}
	return nil
}

// steepestLoss is the largest |d capacity / d load0|.
func steepestLoss(k loss, share float64) float64 {
	return max((1-k.eta1)/(1-(1-k.eta1)*share), (1-k.eta2)/(k.eta2+(1-k.eta2)*share))
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
func (a *assembly) converges(sys *System) error {
	if len(a.losses) == 0 || a.mc < 2 {
		return nil
	}
	n, mc := a.n, a.mc
	rows := make([][]float64, mc+len(a.losses))
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
			return refuse(a.Plant, a.losses[k].name, a.losses[k].at, "its losses depend too much on what other friction elements do (%.2g of "+
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
	m := mat.NewDense(len(a.losses), len(a.losses), nil)
	most := 0.0
	for k, f := range a.losses {
		for j, other := range a.losses {
			if !locked(f.friction) && !locked(other.friction) {
				m.Set(k, j, steepestLoss(f, a.shares[k])*math.Abs(s[mc+k][other.friction]))
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
