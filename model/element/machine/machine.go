// Package machine owns the element types of machines described by maps: engine, torque converter and
// electric machine, and the battery. They have no inertia: an inertia is an element of its own.
//
// Reading order: machine.go (the types, engine and torque converter), electric.go.
package machine

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	type parameters = []element.Parameter
	type adds = []element.Quantity
	r, number, rows, over := network.Rotational, element.AsNumber.Of, element.AsRows.Of, element.OverTime.Of
	free, positive, notNegative := element.Any, element.Positive, element.NotNegative
	return []element.Kind{
		{Name: "engine", Flanges: element.Flanges(r, "flange"), Read: readEngine,
			Adds: adds{{Key: "tau_burn", Unit: "N.m", Meaning: "torque without the lag"},
				{Key: "tau", Unit: "N.m", Meaning: "torque with the lag"}},
			Parameters: parameters{
				rows("full_load", "rad/s, N.m", "or map", free, "[speed, torque] of full throttle"),
				rows("drag", "rad/s, N.m", "0", free, "[speed, torque] of throttle 0, with full_load"),
				element.AsMap.Of("map", "rad/s, 1, N.m", "or full_load", free,
					"{w: [...], throttle: [...], tau: [[...], ...]}, a row of tau for each speed"),
				over("throttle", "1", "1", free, "throttle, 0 to 1; required with map"),
				over("override", "1", "none", free, "demand of another controller, 0 to 1"),
				over("override_mode", "1", "none", free, "0, 1: off; 2: instead of throttle; 3: upper limit"),
				over("on", "1", "1", free, "1: runs, 0: no fuel"),
				number("lag", "s", "0", notNegative, "time constant of the torque").Within(1e-9, 0),
				number("tau_start", "N.m", "0", free, "torque at the start, with lag"),
				number("idle_speed", "rad/s", "none", positive, "speed of the idle controller"),
				number("idle_gain", "N.m.s/rad", "with idle_speed", positive, "torque per speed below idle_speed"),
				number("idle_torque", "N.m", "with idle_speed", positive, "largest torque of the idle controller"),
				number("limit_speed", "rad/s", "none", positive, "speed at which the limiter begins"),
				number("limit_range", "rad/s", "10", positive, "range over which the limiter cuts the fuel"),
			}},
		{Name: "torque_converter", Flanges: element.Flanges(r, "impeller", "turbine"), Read: readConverter,
			Adds: adds{{Key: "tau_pump", Unit: "N.m", Meaning: "torque that the impeller takes"},
				{Key: "tau_turbine", Unit: "N.m", Meaning: "torque on the turbine"}, element.LossQuantity},
			Parameters: parameters{
				rows("lambda", "1, N.m.s2", "or K", free, "[nu, pump torque over squared speed]"),
				rows("K", "1, 1", "or lambda", positive, "[nu, speed over root of pump torque], rad/s and N.m").
					Within(1e-6, 1e9),
				rows("ratio", "1, 1", "", free, "[nu, turbine torque over pump torque]").Within(0, 1e3),
				number("w_max", "rad/s", "650", positive, "largest speed expected"),
				element.HeatParameter(),
			}},
		electricMachine(), battery(),
	}
}

// engine is an engine during reading.
type engine struct {
	*element.Element
	w          network.Form // speed
	throttle   *law.Expr    // 0 to 1; nil: none
	full, drag model.Table  // torque over speed, a map also over throttle; drag without points: 0
	isMap      bool
}

// readEngine reads an engine: a torque over speed and throttle (map), or between the drag and the
// full-load torque over speed, with an idle controller, a limiter and a first-order lag.
func readEngine(e *element.Element) element.Declared {
	at := network.RowOf(e.Node("flange"))
	g := engine{Element: e, w: at.Speeds(1)}
	if e.Has("throttle") {
		g.throttle = law.Of(readOverride(e, network.SignalOf(e.Waveform("throttle"))))
	} else {
		e.Forbid("goes with throttle", "override", "override_mode")
	}
	g.readTables()
	value := g.limit(g.addIdle(g.fired()))
	if on := e.OptionalWaveform("on"); on != nil { // 1: runs, 0: no fuel
		value = g.fade(law.Of(on), value)
	}

	tau := e.NameLaw("tau_burn", value)
	if lag := e.Number("lag"); lag > 0 {
		tau = e.AddLag(network.State{Name: "tau", Start: e.Number("tau_start")}, tau, lag)
		e.ReadStart("tau_start", network.StartCondition{State: 1 + tau.Index()})
	} else {
		e.Forbid("goes with lag above 0", "tau_start")
	}

	e.Exert(at, tau)
	return element.Declared{Rel: at, Tau: tau, Unit: "N.m"}
}

// readOverride returns the throttle after the override of another controller, 0 to 1. The mode is that
// of TSC1 in SAE J1939, SPN 695: 0 off, 1 speed control, which has no effect here, 2 torque control,
// 3 limit.
func readOverride(e *element.Element, throttle network.Form) network.Form {
	if !e.Together("override", "override_mode") {
		return throttle
	}
	return e.AddLaw("demand", "1", law.Formula(
		"clamp(where(mode - 1.5, where(mode - 2.5, min(throttle, override), override), throttle), 0, 1)",
		law.Names{"throttle": throttle, "override": network.SignalOf(e.Waveform("override")),
			"mode": network.SignalOf(e.Waveform("override_mode"))}))
}

// fired returns the torque with fuel, at the speed and the throttle.
func (g *engine) fired() *law.Expr {
	names := law.Names{"w": g.w, "full": g.full, "drag": g.motored(), "throttle": g.throttle}
	switch {
	case g.isMap:
		return law.Formula("full(w, throttle)", names)
	case g.throttle != nil:
		return law.Formula("drag + throttle*(full(w) - drag)", names)
	}
	return law.Formula("full(w)", names)
}

// motored returns the torque without fuel.
func (g *engine) motored() *law.Expr {
	switch {
	case g.isMap:
		return law.Lookup(g.full.Column(0), law.Of(g.w))
	case len(g.drag.X) > 0:
		return law.Lookup(g.drag, law.Of(g.w))
	}
	return law.Number(0)
}

// readTables reads the map, or the full-load torque and the drag.
func (g *engine) readTables() {
	if g.isMap = g.Has("map"); g.isMap == g.Has("full_load") {
		g.Refuse(g.At, "engine needs either map or full_load")
	}
	if g.isMap {
		g.full = g.Map2("map", [3]string{"w", "throttle", "tau"})
		if g.throttle == nil {
			g.Refuse(g.At, "engine with a map needs throttle (0 to 1, or the name of an input)")
		}
		g.Forbid("goes with full_load; in a map it is the column of throttle 0", "drag")
		return
	}

	g.full = g.Table("full_load")
	if g.throttle == nil && !g.Has("on") && !g.Has("limit_speed") {
		g.Forbid("goes with throttle, on or limit_speed", "drag")
	}
	if g.Has("drag") {
		g.drag = g.Table("drag")
	}
}

// addIdle adds the idle controller to a torque: idle_gain·(idle_speed - w), from 0 to idle_torque.
func (g *engine) addIdle(tau *law.Expr) *law.Expr {
	if !g.Has("idle_speed") {
		g.Forbid("goes with idle_speed", "idle_gain", "idle_torque")
		return tau
	}
	return law.Formula("tau + clamp(idle_gain*(idle_speed - w), 0, idle_torque)", law.Names{"tau": tau, "w": g.w,
		"idle_speed": g.Number("idle_speed"), "idle_gain": g.Number("idle_gain"), "idle_torque": g.Number("idle_torque")})
}

// limit fades a torque to the drag from limit_speed on, over limit_range.
func (g *engine) limit(tau *law.Expr) *law.Expr {
	if !g.Has("limit_speed") {
		g.Forbid("goes with limit_speed", "limit_range")
		return tau
	}
	return g.fade(law.Formula("clamp((limit_speed + limit_range - w)/limit_range, 0, 1)", law.Names{"w": g.w,
		"limit_speed": g.Number("limit_speed"), "limit_range": g.Number("limit_range")}), tau)
}

// fade returns drag + part·(torque - drag).
func (g *engine) fade(part, tau *law.Expr) *law.Expr {
	return law.Formula("drag + part*(tau - drag)", law.Names{"drag": g.motored(), "part": part, "tau": tau})
}

// readConverter reads a torque converter; with nu = w_turbine/w_impeller,
//
//	tau_pump = lambda(nu)·w_impeller·|w_impeller|, tau_turbine = ratio(nu)·tau_pump
//
// or lambda = 1/K². A table of lambda that ends at nu <= 1 is mirrored at nu = 1: beyond the coupling
// point the torque changes its sign and is not multiplied.
func readConverter(e *element.Element) element.Declared {
	lambda, ratio := readConverterTables(e)
	fast := e.Number("w_max")
	pump, turbine := e.Node("impeller"), e.Node("turbine")
	wp, wt := network.RowOf(pump).Speeds(1), network.RowOf(turbine).Speeds(1)
	w := law.Of(wp).Within(-fast, fast)
	nu := law.Formula("w_turbine/w_impeller", law.Names{"w_turbine": wt, "w_impeller": w})
	torque := func(ratio model.Table) *law.Expr {
		byTurbine, byPump := converterSlopes(lambda, ratio, fast)
		return law.Formula("lambda(nu)*ratio(nu)*w_impeller*abs(w_impeller)",
			law.Names{"nu": nu, "lambda": lambda, "ratio": ratio, "w_impeller": w}).
			WithSlope(wt, byTurbine).WithSlope(wp, byPump)
	}

	in := e.NameLaw("tau_pump", torque(element.Constant(1)))
	out := e.NameLaw("tau_turbine", torque(ratio))
	e.Exert(network.RowOf(pump), in.Scaled(-1))
	e.Exert(network.RowOf(turbine), out)
	e.AddLoss(law.Formula("in - out", law.Names{"in": law.Power(in, wp), "out": law.Power(out, wt)}).
		WithCombinedSlope(in, 0).WithCombinedSlope(out, 0).WithCombinedSlope(wp, 0).WithCombinedSlope(wt, 0))
	return element.Declared{Rel: network.Difference(turbine, pump), Tau: out, Unit: "N.m"}
}

// converterSlopes returns bounds of the slopes of the torque lambda·ratio·w_impeller² along both
// speeds, up to the speed fast of the impeller, rad/s.
func converterSlopes(lambda, ratio model.Table, fast float64) (byTurbine, byPump float64) {
	product := func(x float64) float64 { return lambda.At(x) * ratio.At(x) }
	points := slices.Concat(lambda.X, ratio.X)
	slices.Sort(points)
	points = slices.Compact(points)
	for i := range len(points) - 1 { // a parabola between two points is steepest at one of them
		a, b := points[i], points[i+1]
		for _, end := range [2][2]float64{{a, a + (b-a)*1e-3}, {b, b - (b-a)*1e-3}} {
			x, near := end[0], end[1]
			rise := math.Abs((product(near) - product(x)) / (near - x))
			byTurbine = max(byTurbine, rise*fast)
			byPump = max(byPump, (2*math.Abs(product(x))+rise*math.Abs(x))*fast)
		}
	}

	return byTurbine, byPump
}

// readConverterTables reads lambda or K, and ratio, over nu.
func readConverterTables(e *element.Element) (lambda, ratio model.Table) {
	direct := e.Has("lambda")
	if direct == e.Has("K") {
		e.Refuse(e.At, "torque_converter needs either lambda (N.m.s2) or K (rad/s over the root of N.m)")
	}
	if direct {
		lambda = e.Table("lambda")
	} else {
		lambda = e.Table("K")
		for i, k := range lambda.Z {
			lambda.Z[i] = 1 / (k * k)
		}
	}

	ratio = e.Table("ratio")
	if len(lambda.X) < 2 {
		e.Refuse(e.At, "lambda or K has one row; give at least two")
	}

	if last := lambda.X[len(lambda.X)-1]; last <= 1 {
		n := len(lambda.X)
		if last < 1 {
			lambda.X, lambda.Z = append(lambda.X, 1), append(lambda.Z, 0)
		} else if lambda.Z[n-1] == 0 {
			n--
		}

		for i := n - 1; i >= 0; i-- {
			if x := 2 - lambda.X[i]; x > lambda.X[len(lambda.X)-1] {
				lambda.X, lambda.Z = append(lambda.X, x), append(lambda.Z, -lambda.Z[i])
			}
		}
	}

	return lambda, ratio
}
