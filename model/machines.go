package model

import (
	"math"
	"slices"
)

func machineKinds() []kind {
	r := rotational
	return []kind{
		{name: "engine", flanges: []flange{{"flange", r, false}}, keys: []string{"map", "full_load", "drag", "throttle", "override", "override_mode", "on", "lag", "tau_start",
			"idle_speed", "idle_gain", "idle_torque", "limit_speed", "limit_range"}, read: readEngine},
		{name: "torque_converter", flanges: []flange{{"impeller", r, false}, {"turbine", r, false}},
			keys: []string{"lambda", "K", "ratio", "w_max"}, read: readConverter},
	}
}

// readEngine is a torque over speed and throttle (map), or between the drag and the
// full-load torque over speed, with an idle controller, a limiter and a first-order
// lag of what burns.
func readEngine(e *element) declared {
	at := rowOf(e.node("flange"))
	w := at.speeds(1)
	throttle := -1
	if e.has("throttle") {
		throttle = readOverride(e, e.command("throttle", "1", "0 to 1"))
	}
	full, drag, isMap := readEngineTables(e, throttle)
	if e.err != nil {
		return declared{}
	}
	var l law
	slope := full.steepest() + drag.steepest()
	if isMap {
		slope = full.steepest2()
	}
	speed := l.arg(w, slope)
	fire(&l, speed, throttle, full, drag)
	addIdle(e, &l, speed)
	drags := func() { // pushes what the engine takes without fuel
		switch {
		case isMap:
			l.again(speed).push(0).look2(full)
		case len(drag.X) > 0:
			l.again(speed).look(drag)
		default:
			l.push(0)
		}
	}
	addLimiter(e, &l, speed, drags)
	if e.has("on") {
		on := signalOf(e.command("on", "1", "1: it runs, 0: it gets no fuel"))
		fade(&l, drags, func() { l.arg(on, 0) })
	}
	burn := e.addLaw(e.name+".tau_burn", "N.m", &l)
	points := append(full.X, drag.X...)
	if !isMap {
		points = append(full.bends(), drag.bends()...)
	}
	e.guardPoints(w, points)
	tau := signalOf(burn)
	if lag := e.atLeastZero("lag", "s", 0); lag > 0 {
		start, _ := e.option("tau_start", "N.m", 0)
		i := e.addState(state{name: "tau", unit: "N.m", start: start})
		e.plant.states[i].der = tau.scaled(1 / lag).plus(stateOf(i).scaled(-1 / lag))
		tau = stateOf(i)
	}
	e.act(at, tau)
	e.named["tau_burn"] = reading{signalOf(burn), "N.m"}
	return declared{rel: at, tau: tau, unit: "N.m"}
}

// readOverride is what another controller leaves of the driver's demand, 0 to 1. Its
// mode is that of SAE J1939's TSC1, SPN 695: 2 asks for a torque, 3 is a limit; 0 is
// off, and 1, a speed, this engine does not control.
func readOverride(e *element, throttle int) int {
	for _, key := range []string{"override", "override_mode"} {
		if f, ok := e.fields[key]; ok && !(e.has("override") && e.has("override_mode")) {
			e.fail(f.keyAt, "%s: override and override_mode go together", e.what())
			return throttle
		}
	}
	if !e.has("override") {
		return throttle
	}
	const far = 10 // more than any demand
	var l law
	l.arg(signalOf(throttle), 0)
	asked := l.arg(signalOf(e.command("override", "1", "demand asked for, 0 to 1")), 0)
	l.push(2)
	mode := l.arg(signalOf(e.command("override_mode", "1", "0: off, 2: asked for, 3: at most")), 0)
	l.do(Sub).push(0).do(Max).times(far).do(Add, Min)                       // asked in mode 2 and 3 is the most
	l.again(asked).again(mode).push(2).do(Sub, Abs).times(far).do(Sub, Max) // and in mode 2 the least
	l.push(0).do(Max).push(1).do(Min)
	return e.addLaw(e.name+".demand", "1", &l)
}

// fire replaces the speed on top by the torque at the given throttle.
func fire(l *law, speed, throttle int, full, drag Table) {
	switch {
	case len(full.Y) > 0:
		l.arg(signalOf(throttle), 0)
		l.look2(full)
	case throttle >= 0 && len(drag.X) > 0: // drag + throttle·(full - drag)
		l.look(full).again(speed).look(drag).do(Sub)
		l.arg(signalOf(throttle), 0)
		l.do(Mul).again(speed).look(drag).do(Add)
	case throttle >= 0:
		l.look(full)
		l.arg(signalOf(throttle), 0)
		l.do(Mul)
	default:
		l.look(full)
	}
}

// readEngineTables reads the torques of an engine.
func readEngineTables(e *element, throttle int) (full, drag Table, isMap bool) {
	f, isMap := e.fields["map"]
	g, isCurve := e.fields["full_load"]
	switch {
	case isMap == isCurve:
		e.fail(e.at, "%s: engine needs either map or full_load", e.what())
	case isMap:
		full = e.map2(f, [3]string{"w", "throttle", "tau"}, [3]string{"rad/s", "1", "N.m"})
		if throttle < 0 {
			e.fail(e.at, "%s: engine with a map needs throttle (0 to 1, or the name of an input)", e.what())
		}
		if d, ok := e.fields["drag"]; ok {
			e.fail(d.keyAt, "%s: drag goes with full_load; in a map it is the column of throttle 0", e.what())
		}
	default:
		full = e.table(g, "rad/s", "N.m")
		if d, ok := e.fields["drag"]; ok {
			drag = e.table(d, "rad/s", "N.m")
		}
	}
	return full, drag, isMap
}

// addIdle adds the idle controller: idle_gain·(idle_speed - w), from 0 to idle_torque.
func addIdle(e *element, l *law, speed int) {
	if !e.has("idle_speed") {
		for _, key := range []string{"idle_gain", "idle_torque"} {
			if f, ok := e.fields[key]; ok {
				e.fail(f.keyAt, "%s: %s goes with idle_speed", e.what(), key)
			}
		}
		return
	}
	idle := e.need("idle_speed", "rad/s", "idle speed")
	gain := e.need("idle_gain", "N.m.s/rad", "torque per speed below idle")
	most := e.need("idle_torque", "N.m", "largest torque of the idle controller")
	l.slopes[speed] += gain
	l.push(idle).again(speed).do(Sub).times(gain).push(0).do(Max).push(most).do(Min, Add)
	e.guardPoints(l.args[speed], []float64{idle - most/gain, idle})
}

// addLimiter fades the torque to the drag from limit_speed on, over limit_range.
func addLimiter(e *element, l *law, speed int, drags func()) {
	if !e.has("limit_speed") {
		return
	}
	limit := e.need("limit_speed", "rad/s", "speed at which fuel is cut")
	span := e.above0("limit_range", "rad/s", 10)
	l.slopes[speed] += largestEntry(e, l) / span
	fade(l, drags, func() {
		l.push(limit + span).again(speed).do(Sub).times(1 / span).push(0).do(Max).push(1).do(Min)
	})
	e.guardPoints(l.args[speed], []float64{limit, limit + span})
}

// fade replaces the top by drag + part·(top - drag).
func fade(l *law, drags, part func()) {
	drags()
	l.do(Sub)
	part()
	l.do(Mul)
	drags()
	l.do(Add)
}

// largestEntry is the largest entry of the tables of a law.
func largestEntry(e *element, l *law) float64 {
	m := 0.0
	for _, t := range l.tables {
		for _, z := range t.Z {
			m = max(m, math.Abs(z))
		}
	}
	return m
}

// guardPoints places a guard where f passes one of the points.
func (e *element) guardPoints(f form, points []float64) {
	slices.Sort(points)
	points = slices.Compact(points)
	if len(points) == 0 {
		return
	}
	var g law
	g.arg(f, 0)
	g.look(corners(points))
	e.addGuard(&g)
}

// readConverter is, with nu = w_turbine/w_impeller,
//
//	tau_pump = lambda(nu)·w_impeller·|w_impeller|, tau_turbine = ratio(nu)·tau_pump
//
// or lambda = 1/K². Tables that end at nu <= 1 are mirrored there: beyond the
// coupling point the torque changes its sign and is not multiplied.
func readConverter(e *element) declared {
	lambda, ratio := readConverterTables(e)
	fast := e.above0("w_max", "rad/s", 650)
	if e.err != nil {
		return declared{}
	}
	pump, turbine := e.node("impeller"), e.node("turbine")
	wp, wt := rowOf(pump).speeds(1), rowOf(turbine).speeds(1)
	torque := func(ratio Table) *law {
		var l law
		byTurbine, byPump := converterSlopes(lambda, ratio, fast)
		t := l.arg(wt, byTurbine)
		p := l.arg(wp, byPump)
		l.do(Div).look(lambda)
		if len(ratio.X) > 1 {
			l.again(t).again(p).do(Div).look(ratio).do(Mul)
		} else {
			l.times(ratio.Z[0])
		}
		l.again(p).do(Mul).again(p).do(Abs, Mul)
		return &l
	}
	i := e.addLaw(e.name+".tau_pump", "N.m", torque(Table{X: []float64{0}, Z: []float64{1}}))
	j := e.addLaw(e.name+".tau_turbine", "N.m", torque(ratio))
	e.act(rowOf(pump), signalOf(i).scaled(-1))
	e.act(rowOf(turbine), signalOf(j))
	e.named["tau_pump"], e.named["tau_turbine"] = reading{signalOf(i), "N.m"}, reading{signalOf(j), "N.m"}
	var g law
	g.arg(wt, 0)
	g.arg(wp, 0)
	points := append(lambda.bends(), ratio.bends()...)
	slices.Sort(points)
	if points = slices.Compact(points); len(points) > 0 {
		g.do(Div).look(corners(points))
		e.addGuard(&g)
	}
	return declared{rel: difference(turbine, pump), tau: signalOf(j), unit: "N.m"}
}

// converterSlopes bounds how the torque lambda·ratio·w_impeller² follows both speeds,
// up to the speed fast of the impeller.
func converterSlopes(lambda, ratio Table, fast float64) (byTurbine, byPump float64) {
	points := slices.Concat(lambda.X, ratio.X)
	slices.Sort(points)
	for i := range len(points) - 1 {
		a, b := points[i], points[i+1]
		if b <= a {
			continue
		}
		product := func(x float64) float64 { return lambda.at(x) * ratio.at(x) }
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
func readConverterTables(e *element) (lambda, ratio Table) {
	f, direct := e.fields["lambda"]
	g, byK := e.fields["K"]
	h, ok := e.fields["ratio"]
	switch {
	case direct == byK:
		e.fail(e.at, "%s: torque_converter needs either lambda (N.m.s2) or K (rad/s over the root of N.m)", e.what())
	case !ok:
		e.fail(e.at, "%s: torque_converter needs ratio (rows of nu and turbine torque over pump torque)", e.what())
	}
	if e.err != nil {
		return
	}
	if direct {
		lambda = e.table(f, "1", "N.m.s2")
	} else {
		lambda = e.table(g, "1", "1")
		for i, k := range lambda.Z {
			if !(k > 0) {
				e.fail(g.at, "%s: K: %g in row %d is not positive", e.what(), k, i+1)
				return
			}
			lambda.Z[i] = 1 / (k * k)
		}
	}
	ratio = e.table(h, "1", "1")
	if len(lambda.X) < 2 && e.err == nil {
		e.fail(e.at, "%s: lambda or K: one row; at least two are wanted", e.what())
	}
	if e.err != nil {
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
