package mechanics

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
)

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
	eta1, eta2, tau1, tau2 model.Table
}

func (t lossTable) all() []model.Table { return []model.Table{t.eta1, t.eta2, t.tau1, t.tau2} }

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
func readLossyGear(e *element.Element) element.Declared {
	tieGear(e)
	t := readLossTable(e)
	if e.Err != nil {
		return element.Declared{}
	}
	e.Between = network.Difference(e.Node("a"), e.Node("support"))
	own := len(e.Network.Frictions)
	ideal := true
	for i, table := range t.all() {
		for _, z := range table.Z {
			ideal = ideal && z == [4]float64{1, 1, 0, 0}[i]
		}
	}
	if ideal {
		return e.AddFriction(model.Friction{Signal: e.AddConstant("tau_max", 0), Gain: 1, Peak: 1})
	}
	k := len(e.Network.GearLosses)
	e.Network.GearLosses = append(e.Network.GearLosses, network.GearLoss{Name: e.Name, At: e.At, Friction: own, Tie: len(e.Network.Ties) - 1, Eta1: slices.Min(t.eta1.Z), Eta2: slices.Min(t.eta2.Z)})
	d := e.AddFriction(model.Friction{Gain: 1, Peak: 1})

	var side network.Law
	load := side.Arg(network.GearLoadOf(k), 0)
	side.Ops = nil
	side.Arg(network.FrictionOf(own), 0)
	side.Arg(e.Between.Speeds(1), 0) // tells the side at the start
	side.Times(1e-6).Do(model.Add)
	g := e.AddGuard(outlastEnd(e, &side, load))

	var l network.Law
	l.Loss = k + 1
	driving, braking := pushLosses(e, &l, k, g, t)
	driving()
	braking()
	margin(l.Do(model.Max), 0).Times(2).Do(model.Add)
	e.Network.Frictions[own].Signal = e.AddLaw(e.Name+".tau_max", "N.m", &l)

	var corner network.Law
	driving, braking = pushLosses(e, &corner, k, g, t)
	driving()
	braking()
	e.AddGuard(outlastEnd(e, corner.Do(model.Sub), 0))
	guardLosses(e, t)
	return d
}

// outlastEnd lets a guard keep its side until the other is plain, under a load.
func outlastEnd(e *element.Element, l *network.Law, load int) *network.Law {
	return margin(l, load).Side(len(e.Network.Guards)).Do(model.Mul, model.Add)
}

// margin pushes how far a side outlasts its end.
func margin(l *network.Law, load int) *network.Law {
	return l.Again(load).Do(model.Abs).Times(marginPart).Push(marginTau).Do(model.Add)
}

// pushLosses prepares l and returns what pushes the loss with flange a driving and with
// flange b driving, both on the side of guard g.
func pushLosses(e *element.Element, l *network.Law, k, g int, t lossTable) (driving, braking func()) {
	load := l.Arg(network.GearLoadOf(k), 0)
	share := l.Arg(network.GearShareOf(k), 0)
	speed := l.Arg(e.Between.Speeds(1), t.tau1.MaxSlope()+t.tau2.MaxSlope())
	l.Ops = nil // all are pushed where they are wanted
	at := func(t model.Table) *network.Law {
		if len(t.X) == 1 {
			return l.Push(t.Z[0])
		}
		return l.Again(speed).Do(model.Abs).Look(t)
	}
	rest := func(eta model.Table) { // 1 - eta
		l.Push(1)
		at(eta).Do(model.Sub)
	}
	driving = func() {
		rest(t.eta1)
		l.Again(load).Do(model.Mul).Side(g).Do(model.Mul)
		at(t.tau1).Do(model.Add)
		l.Push(1)
		rest(t.eta1)
		l.Again(share).Do(model.Mul, model.Sub, model.Div)
	}
	braking = func() {
		at(t.eta2)
		at(t.tau2).Do(model.Mul)
		rest(t.eta2)
		l.Again(load).Do(model.Mul).Side(g).Do(model.Mul, model.Sub)
		at(t.eta2)
		rest(t.eta2)
		l.Again(share).Do(model.Mul, model.Add, model.Div)
		if slices.Min(t.eta2.Z) == 0 {
			l.Times(selfLocking)
		}
	}
	return driving, braking
}

// guardLosses places a guard on the corners of the table.
func guardLosses(e *element.Element, t lossTable) {
	var points []float64
	for _, table := range t.all() {
		for _, x := range table.Breakpoints() {
			if x > 0 {
				points = append(points, x)
			}
		}
	}
	if len(points) == 0 {
		return
	}
	var g network.Law
	g.Arg(e.Between.Speeds(1), 0)
	slices.Sort(points)
	g.Do(model.Abs).Look(element.GuardTable(slices.Compact(points)))
	e.AddGuard(&g)
}

// readLossTable reads rows [|w_a|, eta_mf1, eta_mf2, tau_bf1, tau_bf2]. They go on like the
// last two until an efficiency has halved or reached 1, or a torque has reached 0, and
// stay as they are from there on.
func readLossTable(e *element.Element) lossTable {
	cols := [][]float64{{0}, {1}, {1}, {0}, {0}}
	if f, ok := e.Fields["lossTable"]; ok {
		if cols = e.Columns(f, "rad/s", "1", "1", "N.m", "N.m"); e.Err == nil {
			checkLosses(e, f, cols)
		}
	}
	if n := len(cols[0]); e.Err == nil && n > 1 {
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
	table := func(j int) model.Table {
		t := model.Table{X: cols[0], Z: cols[j]}
		if e.Err == nil && slices.Min(t.Z) == slices.Max(t.Z) {
			t = model.Table{X: t.X[:1], Z: t.Z[:1]}
		}
		return t
	}
	return lossTable{table(1), table(2), table(3), table(4)}
}

// checkLosses refuses what is no gear.
func checkLosses(e *element.Element, f syntax.Field, cols [][]float64) {
	if cols[0][0] != 0 {
		e.Fail(f.At, "%s: lossTable: the first row is at speed %g; 0 is wanted", e.What(), cols[0][0])
	}
	for i := range cols[0] {
		eta1, eta2, tau1, tau2 := cols[1][i], cols[2][i], cols[3][i], cols[4][i]
		switch {
		case !(eta1 > 0 && eta1 <= 1):
			e.Fail(f.At, "%s: lossTable: eta_mf1 %g in row %d is outside 0 to 1, 0 not included", e.What(), eta1, i+1)
		case !(eta2 >= 0 && eta2 <= 1):
			e.Fail(f.At, "%s: lossTable: eta_mf2 %g in row %d is outside 0 to 1", e.What(), eta2, i+1)
		case !(tau1 >= 0 && tau2 >= 0):
			e.Fail(f.At, "%s: lossTable: tau_bf %g, %g N.m in row %d is negative", e.What(), tau1, tau2, i+1)
		case eta1 == 1 && eta2 == 1 && tau1 != tau2:
			e.Fail(f.At, "%s: lossTable: tau_bf1 %g and tau_bf2 %g N.m in row %d differ, but no efficiency does; "+
				"without mesh losses the bearings take the same either way", e.What(), tau1, tau2, i+1)
		}
	}
}
