package mechanics

import (
	"maps"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Sizes of ratios of gears, and of radii of wheels, m.
const (
	leastRatio = 1e-6
	mostRatio  = 1e6
)

func gearKinds() []element.Kind {
	flanges := element.Flanges
	gear := append(element.Ends(turns), element.Support("support", turns))
	rolling := append(flanges(turns, "a"), flanges(moves, "b")...)
	rolling = append(rolling, element.Support("support_r", turns), element.Support("support_t", moves))
	ratio := number("ratio", "1", "", element.Nonzero, "speed of a over speed of b").Within(leastRatio, mostRatio)
	losses := rows("lossTable", "rad/s, 1, 1, N.m, N.m", "no losses", unbounded,
		"[speed of a, eta_mf1, eta_mf2, tau_bf1, tau_bf2], from speed 0 on")
	teeth := func(key, sun string) element.Parameter {
		return number(key, "1", "", positive, "teeth of the ring over teeth of the "+sun).Within(leastRatio, mostRatio)
	}
	return []element.Kind{
		{Name: "ideal_gear", Flanges: gear, Parameters: parameters{ratio}, Read: readGear},
		{Name: "lossy_gear", Flanges: gear, Parameters: parameters{ratio, losses, element.HeatParameter()},
			Adds: adds{element.LossQuantity}, Read: readLossyGear},
		{Name: "gearbox", Flanges: gear, MakeNodes: addGearShaft, Read: readGearbox, Hint: "the shaft behind its gear is NAME.gear_b",
			Parameters: parameters{ratio, losses, elastic, number("d", damping, "0", notNegative, "damping"),
				number("backlash", angle, "0", notNegative, "total play"), begin, element.HeatParameter()},
			Adds: append(adds{element.LossQuantity}, twist...)},
		{Name: "ideal_planetary", Flanges: flanges(turns, "sun", "carrier", "ring"), Read: readPlanetary,
			Parameters: parameters{teeth("ratio", "sun"),
				element.Word("planets", "single", "planets between sun and ring", "single", "double")}},
		{Name: "ravigneaux", Flanges: flanges(turns, "sun_small", "sun_large", "carrier", "ring"), Read: readRavigneaux,
			Parameters: parameters{teeth("ratio_small", "small sun"), teeth("ratio_large", "large sun")}},
		{Name: "differential", Flanges: flanges(turns, "drive", "left", "right"), Read: readDifferential,
			Parameters: parameters{number("ratio", "1", "1", element.Nonzero, "speed of drive over mean of left and right").
				Within(leastRatio, mostRatio)}},
		{Name: "ideal_rolling_wheel", Flanges: rolling, Read: readRolling,
			Parameters: parameters{number("radius", "m", "", positive, "rolling radius").Within(leastRatio, mostRatio)}},
		{Name: "ideal_gear_r2t", Flanges: rolling, Read: readRolling,
			Parameters: parameters{number("ratio", "rad/m", "", element.Nonzero, "angle of a over path of b").
				Within(leastRatio, mostRatio)}},
		{Name: "rod", Flanges: element.Ends(moves), Read: readRod,
			Parameters: parameters{number("L", "m", "0", unbounded, "position of b less that of a")}},
		{Name: "disc", Flanges: element.Ends(turns), Read: readRod,
			Parameters: parameters{number("deltaPhi", "rad", "0", unbounded, "angle of b less that of a")}},
	}
}

// readGear reads a gear: w_a - w_support = ratio·(w_b - w_support).
func readGear(e *element.Element) element.Declared {
	ratio := e.Number("ratio")
	e.Tie(e.Term("a", 1), e.Term("b", -ratio), e.Term("support", ratio-1))
	return element.Declared{}
}

// readPlanetary reads a planetary set: (1 + ratio)·w_carrier = w_sun + ratio·w_ring; with pairs of
// planets between sun and ring (1 - ratio)·w_carrier = w_sun - ratio·w_ring.
func readPlanetary(e *element.Element) element.Declared {
	g := e.Number("ratio")
	if e.Word("planets") == "double" {
		g = -g
	}
	e.Tie(e.Term("carrier", 1+g), e.Term("sun", -1), e.Term("ring", -g))
	return element.Declared{}
}

// readRavigneaux reads two planetary sets on one carrier and one ring: the large sun with single
// planets, the small sun with pairs of planets.
func readRavigneaux(e *element.Element) element.Declared {
	small, large := e.Number("ratio_small"), e.Number("ratio_large")
	e.Tie(e.Term("carrier", 1-small), e.Term("sun_small", -1), e.Term("ring", small))
	e.Tie(e.Term("carrier", 1+large), e.Term("sun_large", -1), e.Term("ring", -large))
	return element.Declared{}
}

// readDifferential reads a differential: w_drive = ratio·(w_left + w_right)/2.
func readDifferential(e *element.Element) element.Declared {
	ratio := e.Number("ratio")
	e.Tie(e.Term("drive", 1), e.Term("left", -ratio/2), e.Term("right", -ratio/2))
	return element.Declared{}
}

// readRolling reads a rolling wheel, w_a·radius = v_b, or a rack and pinion, w_a = ratio·v_b, both
// relative to the supports.
func readRolling(e *element.Element) element.Declared {
	var ratio float64
	if e.Kind.Name == "ideal_rolling_wheel" {
		ratio = 1 / e.Number("radius")
	} else {
		ratio = e.Number("ratio")
	}

	e.Tie(e.Term("a", 1), e.Term("b", -ratio), e.Term("support_r", -1), e.Term("support_t", ratio))
	return element.Declared{}
}

// addGearShaft makes the node between the gear and the elasticity of a gearbox.
func addGearShaft(e *element.Element) { e.AddNode("gear_b", turns) }

// readGearbox reads a lossy_gear from a to the inner node and an elasto_backlash from there to b. Its relative angle and
// torque are those of the elasticity; the friction element of the gear is NAME.lossy_gear.
func readGearbox(e *element.Element) element.Declared {
	e.Number("c") // both parts mark the keys that they read in one list
	gear, shaft := *e, *e
	gear.Nodes, shaft.Nodes = maps.Clone(e.Nodes), map[string]int{"a": e.Inner["gear_b"], "b": e.Node("b")}
	gear.Nodes["b"] = e.Inner["gear_b"]
	own := len(e.Network.Frictions)
	readLossyGear(&gear)
	e.Network.Frictions[own].Name = e.Name + ".lossy_gear"
	loss := e.Named["lossPower"].Form
	shaft.Between = network.Difference(shaft.Node("b"), shaft.Node("a"))
	d := readBacklash(&shaft)
	e.NameForm("lossPower", loss.Plus(e.Named["lossPower"].Form))
	return d
}

// readRod reads a rigid joint of two nodes without inertia, a rod or a disc, with a fixed distance or angle
// from a to b.
func readRod(e *element.Element) element.Declared {
	key := "L"
	if e.Kind.Name == "disc" {
		key = "deltaPhi"
	}
	e.Tie(e.Term("b", 1), e.Term("a", -1)).Gap = e.Number(key)
	return element.Declared{}
}

// Hysteresis of the event indicators of a lossy gear: marginPart times the load plus marginTau, N·m.
// The capacity is larger by twice the hysteresis. Without it rounding would decide the direction of
// power at zero load, and whether a gear holds a load equal to its capacity.
const (
	marginPart = 1e-11
	marginTau  = 1e-12
)

// selfLocking is the factor on the capacity of a gear that flange b cannot drive. With 1 rounding
// would decide whether a worm gear at rest stays locked.
const selfLocking = 2

// lossTable holds tables over |w_a|: the efficiencies with flange a driving and with flange b
// driving, and the bearing friction in both cases, N·m on the side of a.
type lossTable struct {
	eta1, eta2, tau1, tau2 model.Table
}

func (t lossTable) all() []model.Table { return []model.Table{t.eta1, t.eta2, t.tau1, t.tau2} }

// lossy is a lossy gear during reading.
type lossy struct {
	*element.Element
	lossTable
	at int // index of the GearLoss
}

// readLossyGear reads an ideal gear with a friction element from flange a to the support. load is
// the torque into flange a. While w_a > 0 the friction torque is
//
//	tau_loss = max((1 - eta1)·load + tau1, (1 - 1/eta2)·load + tau2)
//
// and while w_a < 0 the same with both torques negative. The loss changes the load, load = load0 +
// share·tau_loss, so the capacity as a function of load0 is
//
//	max(((1 - eta1)·load0 + tau1)/(1 - (1 - eta1)·share),
//	    (eta2·tau2 - (1 - eta2)·load0)/(eta2 + (1 - eta2)·share))
//
// with -load0 for w_a < 0, and with selfLocking times the second term if eta2 reaches 0. While the
// gear is locked, the sign of its friction torque takes the place of the sign of w_a.
func readLossyGear(e *element.Element) element.Declared {
	readGear(e)
	g := lossy{Element: e, lossTable: readLossTable(e), at: len(e.Network.GearLosses)}
	e.Between = network.Difference(e.Node("a"), e.Node("support"))
	own := len(e.Network.Frictions)
	ideal := true
	for i, table := range g.all() {
		for _, z := range table.Z {
			ideal = ideal && z == [4]float64{1, 1, 0, 0}[i]
		}
	}

	if ideal {
		return declareLoss(e, e.AddFriction(model.Friction{Signal: e.AddConstant("tau_max", 0), Gain: 1, Peak: 1}))
	}
	e.Network.GearLosses = append(e.Network.GearLosses, network.GearLoss{Name: e.Name, At: e.At, Friction: own,
		Tie: len(e.Network.Ties) - 1, Eta1: slices.Min(g.eta1.Z), Eta2: slices.Min(g.eta2.Z)})
	d := e.AddFriction(model.Friction{Gain: 1, Peak: 1})

	e.Network.Frictions[own].Signal = e.AddLaw("tau_max", "N.m", g.capacity(own)).Index()
	return declareLoss(e, d)
}

// capacity returns the capacity of the friction element, which has the index own.
func (g *lossy) capacity(own int) *law.Expr {
	load, share, w := network.GearLoadOf(g.at), network.GearShareOf(g.at), g.Between.Speeds(1)
	speed := slipOf(g.Element)
	names := law.Names{"load": load, "share": share, "tau": network.FrictionOf(own), "w": w,
		"eta1": law.Lookup(g.eta1, speed), "eta2": law.Lookup(g.eta2, speed),
		"tau1": law.Lookup(g.tau1, speed), "tau2": law.Lookup(g.tau2, speed)}
	formula := func(name, text string) { names[name] = law.Formula(text, names) }

	names["size"] = law.Formula("abs(load)", names).Plain()
	names["marginPart"], names["marginTau"] = marginPart, marginTau
	formula("margin", "size*marginPart + marginTau")
	formula("forward", "latch(tau + 1e-6*w, margin)") // w decides at the start
	formula("driving", "((1 - eta1)*load*forward + tau1)/(1 - (1 - eta1)*share)")
	formula("driven", "(eta2*tau2 - (1 - eta2)*load*forward)/(eta2 + (1 - eta2)*share)")
	if slices.Min(g.eta2.Z) == 0 {
		names["selfLocking"] = float64(selfLocking)
		formula("driven", "driven*selfLocking")
	}
	formula("larger", "latch(driving - driven, margin)")
	names["loss"] = law.Formula("max(driving, driven)", names).Plain() // the load may jump past the corner
	return law.Formula("loss + 2*margin", names).WithEvent(names["larger"].(*law.Expr)).
		WithCombinedSlope(load, 0). // known after assembly
		WithCombinedSlope(share, 0).WithCombinedSlope(network.FrictionOf(own), 0).
		WithCombinedSlope(w, g.tau1.MaxSlope()+g.tau2.MaxSlope())
}

// maxFurther is the speed beyond the last row of a loss table up to which its torques continue, rad/s.
const maxFurther = 1e6

// readLossTable reads rows [|w_a|, eta_mf1, eta_mf2, tau_bf1, tau_bf2]. Beyond the last row the
// efficiencies are constant. The torques continue their last slope until one has reached 0, and are
// constant from there on.
func readLossTable(e *element.Element) lossTable {
	cols := [][]float64{{0}, {1}, {1}, {0}, {0}}
	if f, ok := e.Field("lossTable"); ok {
		cols = e.Columns("lossTable")
		checkLosses(e, f, cols)
	}

	if n := len(cols[0]); n > 1 {
		further := maxFurther
		slope := [5]float64{1}
		for j := 3; j < 5; j++ {
			slope[j] = (cols[j][n-1] - cols[j][n-2]) / (cols[0][n-1] - cols[0][n-2])
			if slope[j] < 0 {
				further = min(further, -cols[j][n-1]/slope[j])
			}
		}
		if further > 0 && (slope[3] != 0 || slope[4] != 0) {
			for j := range cols {
				cols[j] = append(cols[j], max(0, cols[j][n-1]+further*slope[j]))
			}
		}
	}

	table := func(j int) model.Table {
		t := model.Table{X: cols[0], Z: cols[j]}
		if slices.Min(t.Z) == slices.Max(t.Z) {
			t = model.Table{X: t.X[:1], Z: t.Z[:1]}
		}
		return t
	}

	return lossTable{table(1), table(2), table(3), table(4)}
}

// checkLosses refuses values that a gear cannot have.
func checkLosses(e *element.Element, f element.Field, cols [][]float64) {
	if cols[0][0] != 0 {
		e.Refuse(f.At, "lossTable: the first row is at speed %g; 0 is wanted", cols[0][0])
	}
	for i := range cols[0] {
		eta1, eta2, tau1, tau2 := cols[1][i], cols[2][i], cols[3][i], cols[4][i]
		switch {
		case !(eta1 >= leastRatio && eta1 <= 1):
			e.Refuse(f.At, "lossTable: eta_mf1 %g in row %d is outside %g to 1", eta1, i+1, leastRatio)
		case !(eta2 == 0 || eta2 >= leastRatio && eta2 <= 1):
			e.Refuse(f.At, "lossTable: eta_mf2 %g in row %d is not 0 and outside %g to 1", eta2, i+1, leastRatio)
		case !(tau1 >= 0 && tau2 >= 0):
			e.Refuse(f.At, "lossTable: tau_bf %g, %g N.m in row %d is negative", tau1, tau2, i+1)
		case eta1 == 1 && eta2 == 1 && tau1 != tau2:
			e.Refuse(f.At, "lossTable: tau_bf1 %g and tau_bf2 %g N.m in row %d differ, but no efficiency does; "+
				"without mesh losses the bearings take the same either way", tau1, tau2, i+1)
		}
	}
}
