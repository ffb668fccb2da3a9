// Package machine owns the element types of machines that their maps describe: engine and
// torque converter. Their inertias are elements of their own.
package machine

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

// Kinds are the element types of the family.
func Kinds() []element.Kind {
	r := network.Rotational
	return []element.Kind{
		{Name: "engine", Flanges: element.Flanges(r, "flange"),
			Keys: []string{"map", "full_load", "drag", "throttle", "override", "override_mode", "on", "lag", "tau_start",
				"idle_speed", "idle_gain", "idle_torque", "limit_speed", "limit_range"}, Read: readEngine},
		{Name: "torque_converter", Flanges: element.Flanges(r, "impeller", "turbine"),
			Keys: []string{"lambda", "K", "ratio", "w_max"}, Read: readConverter},
	}
}

// readEngine is a torque over speed and throttle (map), or between the drag and the
// full-load torque over speed, with an idle controller, a limiter and a first-order
// lag of what burns.
func readEngine(e *element.Element) element.Declared {
	at := network.RowOf(e.Node("flange"))
	w := at.Speeds(1)
	throttle := -1
	if e.Has("throttle") {
		throttle = readOverride(e, e.NeedWaveform("throttle", "1", "0 to 1"))
	}
	full, drag, isMap := readEngineTables(e, throttle)
	if e.Err != nil {
		return element.Declared{}
	}
	var l network.Law
	slope := full.MaxSlope() + drag.MaxSlope()
	if isMap {
		slope = full.MaxSlopeX()
	}
	speed := l.Arg(w, slope)
	fire(&l, speed, throttle, full, drag)
	addIdle(e, &l, speed)
	drags := func() { // pushes what the engine takes without fuel
		switch {
		case isMap:
			l.Again(speed).Push(0).Look2(full)
		case len(drag.X) > 0:
			l.Again(speed).Look(drag)
		default:
			l.Push(0)
		}
	}
	addLimiter(e, &l, speed, drags)
	if e.Has("on") {
		on := network.SignalOf(e.NeedWaveform("on", "1", "1: it runs, 0: it gets no fuel"))
		fade(&l, drags, func() { l.Arg(on, 0) })
	}
	burn := e.AddLaw(e.Name+".tau_burn", "N.m", &l)
	points := append(full.X, drag.X...)
	if !isMap {
		points = append(full.Breakpoints(), drag.Breakpoints()...)
	}
	e.GuardPoints(w, points)
	tau := network.SignalOf(burn)
	if lag := e.AtLeastZero("lag", "s", 0); lag > 0 {
		start, _ := e.Option("tau_start", "N.m", 0)
		i := e.AddState(network.State{Name: "tau", Unit: "N.m", Start: start})
		e.Network.States[i].Der = tau.Scaled(1 / lag).Plus(network.StateOf(i).Scaled(-1 / lag))
		tau = network.StateOf(i)
	}
	e.Exert(at, tau)
	e.Named["tau_burn"] = element.Reading{Form: network.SignalOf(burn), Unit: "N.m"}
	return element.Declared{Rel: at, Tau: tau, Unit: "N.m"}
}

// readOverride is what another controller leaves of the driver's demand, 0 to 1. Its
// mode is that of SAE J1939's TSC1, SPN 695: 2 asks for a torque, 3 is a limit; 0 is
// off, and 1, a speed, this engine does not control.
func readOverride(e *element.Element, throttle int) int {
	for _, key := range []string{"override", "override_mode"} {
		if f, ok := e.Fields[key]; ok && !(e.Has("override") && e.Has("override_mode")) {
			e.Fail(f.KeyAt, "%s: override and override_mode go together", e.What())
			return throttle
		}
	}
	if !e.Has("override") {
		return throttle
	}
	const far = 10 // more than any demand
	var l network.Law
	l.Arg(network.SignalOf(throttle), 0)
	asked := l.Arg(network.SignalOf(e.NeedWaveform("override", "1", "demand asked for, 0 to 1")), 0)
	l.Push(2)
	mode := l.Arg(network.SignalOf(e.NeedWaveform("override_mode", "1", "0: off, 2: asked for, 3: at most")), 0)
	l.Do(model.Sub).Push(0).Do(model.Max).Times(far).Do(model.Add, model.Min)                       // asked in mode 2 and 3 is the most
	l.Again(asked).Again(mode).Push(2).Do(model.Sub, model.Abs).Times(far).Do(model.Sub, model.Max) // and in mode 2 the least
	l.Push(0).Do(model.Max).Push(1).Do(model.Min)
	return e.AddLaw(e.Name+".demand", "1", &l)
}

// fire replaces the speed on top by the torque at the given throttle.
func fire(l *network.Law, speed, throttle int, full, drag model.Table) {
	switch {
	case len(full.Y) > 0:
		l.Arg(network.SignalOf(throttle), 0)
		l.Look2(full)
	case throttle >= 0 && len(drag.X) > 0: // drag + throttle·(full - drag)
		l.Look(full).Again(speed).Look(drag).Do(model.Sub)
		l.Arg(network.SignalOf(throttle), 0)
		l.Do(model.Mul).Again(speed).Look(drag).Do(model.Add)
	case throttle >= 0:
		l.Look(full)
		l.Arg(network.SignalOf(throttle), 0)
		l.Do(model.Mul)
	default:
		l.Look(full)
	}
}

// readEngineTables reads the torques of an engine.
func readEngineTables(e *element.Element, throttle int) (full, drag model.Table, isMap bool) {
	f, isMap := e.Fields["map"]
	g, isCurve := e.Fields["full_load"]
	switch {
	case isMap == isCurve:
		e.Fail(e.At, "%s: engine needs either map or full_load", e.What())
	case isMap:
		full = e.Map2(f, [3]string{"w", "throttle", "tau"}, [3]string{"rad/s", "1", "N.m"})
		if throttle < 0 {
			e.Fail(e.At, "%s: engine with a map needs throttle (0 to 1, or the name of an input)", e.What())
		}
		if d, ok := e.Fields["drag"]; ok {
			e.Fail(d.KeyAt, "%s: drag goes with full_load; in a map it is the column of throttle 0", e.What())
		}
	default:
		full = e.Table(g, "rad/s", "N.m")
		if d, ok := e.Fields["drag"]; ok {
			drag = e.Table(d, "rad/s", "N.m")
		}
	}
	return full, drag, isMap
}

// addIdle adds the idle controller: idle_gain·(idle_speed - w), from 0 to idle_torque.
func addIdle(e *element.Element, l *network.Law, speed int) {
	if !e.Has("idle_speed") {
		for _, key := range []string{"idle_gain", "idle_torque"} {
			if f, ok := e.Fields[key]; ok {
				e.Fail(f.KeyAt, "%s: %s goes with idle_speed", e.What(), key)
			}
		}
		return
	}
	idle := e.Need("idle_speed", "rad/s", "idle speed")
	gain := e.Need("idle_gain", "N.m.s/rad", "torque per speed below idle")
	most := e.Need("idle_torque", "N.m", "largest torque of the idle controller")
	l.Slopes[speed] += gain
	l.Push(idle).Again(speed).Do(model.Sub).Times(gain).Push(0).Do(model.Max).Push(most).Do(model.Min, model.Add)
	e.GuardPoints(l.Args[speed], []float64{idle - most/gain, idle})
}

// addLimiter fades the torque to the drag from limit_speed on, over limit_range.
func addLimiter(e *element.Element, l *network.Law, speed int, drags func()) {
	if !e.Has("limit_speed") {
		return
	}
	limit := e.Need("limit_speed", "rad/s", "speed at which fuel is cut")
	span := e.AboveZero("limit_range", "rad/s", 10)
	l.Slopes[speed] += largestEntry(e, l) / span
	fade(l, drags, func() {
		l.Push(limit + span).Again(speed).Do(model.Sub).Times(1 / span).Push(0).Do(model.Max).Push(1).Do(model.Min)
	})
	e.GuardPoints(l.Args[speed], []float64{limit, limit + span})
}

// fade replaces the top by drag + part·(top - drag).
func fade(l *network.Law, drags, part func()) {
	drags()
	l.Do(model.Sub)
	part()
	l.Do(model.Mul)
	drags()
	l.Do(model.Add)
}

// largestEntry is the largest entry of the tables of a law.
func largestEntry(e *element.Element, l *network.Law) float64 {
	m := 0.0
	for _, t := range l.Tables {
		for _, z := range t.Z {
			m = max(m, math.Abs(z))
		}
	}
	return m
}

// readConverter is, with nu = w_turbine/w_impeller,
//
//	tau_pump = lambda(nu)·w_impeller·|w_impeller|, tau_turbine = ratio(nu)·tau_pump
//
// or lambda = 1/K². Tables that end at nu <= 1 are mirrored there: beyond the
// coupling point the torque changes its sign and is not multiplied.
func readConverter(e *element.Element) element.Declared {
	lambda, ratio := readConverterTables(e)
	fast := e.AboveZero("w_max", "rad/s", 650)
	if e.Err != nil {
		return element.Declared{}
	}
	pump, turbine := e.Node("impeller"), e.Node("turbine")
	wp, wt := network.RowOf(pump).Speeds(1), network.RowOf(turbine).Speeds(1)
	torque := func(ratio model.Table) *network.Law {
		var l network.Law
		byTurbine, byPump := converterSlopes(lambda, ratio, fast)
		t := l.Arg(wt, byTurbine)
		p := l.Arg(wp, byPump)
		l.Do(model.Div).Look(lambda)
		if len(ratio.X) > 1 {
			l.Again(t).Again(p).Do(model.Div).Look(ratio).Do(model.Mul)
		} else {
			l.Times(ratio.Z[0])
		}
		l.Again(p).Do(model.Mul).Again(p).Do(model.Abs, model.Mul)
		return &l
	}
	i := e.AddLaw(e.Name+".tau_pump", "N.m", torque(model.Table{X: []float64{0}, Z: []float64{1}}))
	j := e.AddLaw(e.Name+".tau_turbine", "N.m", torque(ratio))
	e.Exert(network.RowOf(pump), network.SignalOf(i).Scaled(-1))
	e.Exert(network.RowOf(turbine), network.SignalOf(j))
	e.Named["tau_pump"], e.Named["tau_turbine"] = element.Reading{Form: network.SignalOf(i), Unit: "N.m"}, element.Reading{Form: network.SignalOf(j), Unit: "N.m"}
	var g network.Law
	g.Arg(wt, 0)
	g.Arg(wp, 0)
	points := append(lambda.Breakpoints(), ratio.Breakpoints()...)
	slices.Sort(points)
	if points = slices.Compact(points); len(points) > 0 {
		g.Do(model.Div).Look(element.GuardTable(points))
		e.AddGuard(&g)
	}
	return element.Declared{Rel: network.Difference(turbine, pump), Tau: network.SignalOf(j), Unit: "N.m"}
}

// converterSlopes bounds how the torque lambda·ratio·w_impeller² follows both speeds,
// up to the speed fast of the impeller.
func converterSlopes(lambda, ratio model.Table, fast float64) (byTurbine, byPump float64) {
	points := slices.Concat(lambda.X, ratio.X)
	slices.Sort(points)
	for i := range len(points) - 1 {
		a, b := points[i], points[i+1]
		if b <= a {
			continue
		}
		product := func(x float64) float64 { return lambda.At(x) * ratio.At(x) }
		for _, x := range [2]float64{a, b} { // it is a parabola between: steepest at an end
			near := a + (b-a)*1e-3
			if x == b {
				near = b - (b-a)*1e-3
			}
			rise := math.Abs((product(near) - product(x)) / (near - x))
			byTurbine = max(byTurbine, rise*fast)
			byPump = max(byPump, (2*math.Abs(product(x))+rise*math.Abs(x))*fast)
		}
	}
	return byTurbine, byPump
}

// readConverterTables reads lambda or K, and ratio, over nu.
func readConverterTables(e *element.Element) (lambda, ratio model.Table) {
	f, direct := e.Fields["lambda"]
	g, byK := e.Fields["K"]
	h, ok := e.Fields["ratio"]
	switch {
	case direct == byK:
		e.Fail(e.At, "%s: torque_converter needs either lambda (N.m.s2) or K (rad/s over the root of N.m)", e.What())
	case !ok:
		e.Fail(e.At, "%s: torque_converter needs ratio (rows of nu and turbine torque over pump torque)", e.What())
	}
	if e.Err != nil {
		return
	}
	if direct {
		lambda = e.Table(f, "1", "N.m.s2")
	} else {
		lambda = e.Table(g, "1", "1")
		for i, k := range lambda.Z {
			if !(k > 0) {
				e.Fail(g.At, "%s: K: %g in row %d is not positive", e.What(), k, i+1)
				return
			}
			lambda.Z[i] = 1 / (k * k)
		}
	}
	ratio = e.Table(h, "1", "1")
	if len(lambda.X) < 2 && e.Err == nil {
		e.Fail(e.At, "%s: lambda or K: one row; at least two are wanted", e.What())
	}
	if e.Err != nil {
		return
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
