// Package machine owns the element types of machines described by maps: engine and torque
// converter. They have no inertia: an inertia is an element of its own.
package machine

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
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
				number("lag", "s", "0", notNegative, "time constant of the torque"),
				number("tau_start", "N.m", "0", free, "torque at the start, with lag"),
				number("idle_speed", "rad/s", "none", positive, "speed of the idle controller"),
				number("idle_gain", "N.m.s/rad", "with idle_speed", positive, "torque per speed below idle_speed"),
				number("idle_torque", "N.m", "with idle_speed", positive, "largest torque of the idle controller"),
				number("limit_speed", "rad/s", "none", positive, "speed at which the limiter begins"),
				number("limit_range", "rad/s", "10", positive, "range over which the limiter cuts the fuel"),
			}},
		{Name: "torque_converter", Flanges: element.Flanges(r, "impeller", "turbine"), Read: readConverter,
			Adds: adds{{Key: "tau_pump", Unit: "N.m", Meaning: "torque that the impeller takes"},
				{Key: "tau_turbine", Unit: "N.m", Meaning: "torque on the turbine"}},
			Parameters: parameters{
				rows("lambda", "1, N.m.s2", "or K", free, "[nu, pump torque over squared speed]"),
				rows("K", "1, 1", "or lambda", positive, "[nu, speed over root of pump torque], rad/s and N.m"),
				rows("ratio", "1, 1", "", free, "[nu, turbine torque over pump torque]"),
				number("w_max", "rad/s", "650", positive, "largest speed expected"),
			}},
	}
}

// engine is an engine during reading: its law l and the values that the law reads.
type engine struct {
	*element.Element
	w          network.Form // speed
	throttle   network.Form // 0 to 1; nil: none
	full, drag model.Table  // torque over speed, a map also over throttle; drag without points: 0
	isMap      bool
	l          network.Law
	speed      int // argument of the law that is w
}

// readEngine reads an engine: a torque over speed and throttle (map), or between the drag and the
// full-load torque over speed, with an idle controller, a limiter and a first-order lag.
func readEngine(e *element.Element) element.Declared {
	at := network.RowOf(e.Node("flange"))
	g := engine{Element: e, w: at.Speeds(1)}
	if e.Has("throttle") {
		g.throttle = readOverride(e, network.SignalOf(e.Waveform("throttle")))
	}
	g.readTables()
	points := slices.Clone(g.full.X)
	if !g.isMap {
		points = append(g.full.Breakpoints(), g.drag.Breakpoints()...)
	}
	g.speed = g.l.Read(g.w, g.full.MaxSlope()+g.drag.MaxSlope())
	g.pushFired()
	g.addIdle()
	g.addLimiter()
	if on := e.OptionalWaveform("on"); on != nil { // 1: runs, 0: no fuel
		g.fade(func() { g.l.Arg(on, 0) })
	}

	tau := e.NameProgram("tau_burn", &g.l)
	e.AddBreakpoints(g.w, points)
	if lag := e.Number("lag"); lag > 0 {
		tau = e.AddLag(network.State{Name: "tau", Start: e.Number("tau_start")}, tau, lag)
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
	const far = 10 // above any demand
	l := network.LawOf(throttle, 0)
	asked := l.Read(network.SignalOf(e.Waveform("override")), 0)
	mode := l.Read(network.SignalOf(e.Waveform("override_mode")), 0)
	// in modes 2 and 3 asked is the upper limit
	l.Again(asked).Push(2).Again(mode).Do(model.Sub).Push(0).Do(model.Max).Times(far).Do(model.Add, model.Min)
	// in mode 2 asked is also the lower limit
	l.Again(asked).Again(mode).Push(2).Do(model.Sub, model.Abs).Times(far).Do(model.Sub, model.Max)
	return e.AddProgram("demand", "1", l.Push(0).Do(model.Max).Push(1).Do(model.Min))
}

// pushFired pushes the torque with fuel, at the speed and the throttle.
func (g *engine) pushFired() {
	g.l.Again(g.speed)
	switch {
	case g.isMap:
		g.l.Arg(g.throttle, 0).Look2(g.full)
	case g.throttle != nil && len(g.drag.X) > 0: // drag + throttle·(full - drag)
		g.l.Look(g.full).Again(g.speed).Look(g.drag).Do(model.Sub)
		g.l.Arg(g.throttle, 0).Do(model.Mul).Again(g.speed).Look(g.drag).Do(model.Add)
	case g.throttle != nil:
		g.l.Look(g.full).Arg(g.throttle, 0).Do(model.Mul)
	default:
		g.l.Look(g.full)
	}
}

// pushDrag pushes the torque without fuel.
func (g *engine) pushDrag() {
	switch {
	case g.isMap:
		g.l.Again(g.speed).Push(0).Look2(g.full)
	case len(g.drag.X) > 0:
		g.l.Again(g.speed).Look(g.drag)
	default:
		g.l.Push(0)
	}
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
	if g.Has("drag") {
		g.drag = g.Table("drag")
	}
}

// addIdle adds the idle controller: idle_gain·(idle_speed - w), from 0 to idle_torque.
func (g *engine) addIdle() {
	if !g.Has("idle_speed") {
		g.Forbid("goes with idle_speed", "idle_gain", "idle_torque")
		return
	}

	idle, gain, most := g.Number("idle_speed"), g.Number("idle_gain"), g.Number("idle_torque")
	g.l.Slopes[g.speed] += gain
	g.l.Push(idle).Again(g.speed).Do(model.Sub).Times(gain).Push(0).Do(model.Max).Push(most).Do(model.Min, model.Add)
	g.AddBreakpoints(g.w, []float64{idle - most/gain, idle})
}

// addLimiter fades the torque to the drag from limit_speed on, over limit_range.
func (g *engine) addLimiter() {
	if !g.Has("limit_speed") {
		return
	}
	limit, span := g.Number("limit_speed"), g.Number("limit_range")
	most := 0.0
	for _, t := range g.l.Tables {
		most = max(most, network.Largest(t.Z))
	}
	g.l.Slopes[g.speed] += most / span
	g.fade(func() {
		g.l.Push(limit + span).Again(g.speed).Do(model.Sub).Times(1 / span)
		g.l.Push(0).Do(model.Max).Push(1).Do(model.Min)
	})
	g.AddBreakpoints(g.w, []float64{limit, limit + span})
}

// fade replaces the torque on top of the stack by drag + part·(torque - drag).
func (g *engine) fade(part func()) {
	g.pushDrag()
	g.l.Do(model.Sub)
	part()
	g.l.Do(model.Mul)
	g.pushDrag()
	g.l.Do(model.Add)
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
	torque := func(ratio model.Table) *network.Law {
		byTurbine, byPump := converterSlopes(lambda, ratio, fast)
		var l network.Law
		t, p := l.Read(wt, byTurbine), l.Read(wp, byPump)
		l.Again(t).Again(p).Do(model.Div).Look(lambda)
		if len(ratio.X) > 1 {
			l.Again(t).Again(p).Do(model.Div).Look(ratio).Do(model.Mul)
		} else {
			l.Times(ratio.Z[0])
		}

		return l.Again(p).Do(model.Mul).Again(p).Do(model.Abs, model.Mul)
	}

	in := e.NameProgram("tau_pump", torque(element.Constant(1)))
	out := e.NameProgram("tau_turbine", torque(ratio))
	e.Exert(network.RowOf(pump), in.Scaled(-1))
	e.Exert(network.RowOf(turbine), out)
	points := append(lambda.Breakpoints(), ratio.Breakpoints()...)
	e.AddLawBreakpoints(network.LawOf(wt, 0).Arg(wp, 0).Do(model.Div), points)
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
