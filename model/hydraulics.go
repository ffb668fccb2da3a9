package model

import "math"

func hydraulicKinds() []kind {
	return []kind{
		{name: "wheel_brake_circuit", keys: []string{"master", "inlet", "outlet", "drain", "A_inlet", "A_outlet", "A_check", "p_check",
			"C_d", "rho", "p_transition", "stiffness", "V0", "p_V", "V_start"}, gives: "Pa", read: readWheelCircuit},
		{name: "low_pressure_accumulator", keys: []string{"p_V", "V_start", "pump", "flow", "p_suction"}, gives: "Pa", read: readAccumulator},
	}
}

// circuit is what readWheelCircuit makes of the brake of one wheel and the valves
// before it.
type circuit struct {
	*element
	rate      float64 // C_d·sqrt(2/rho): the flow through 1 m2 at 1 Pa, were it turbulent
	bend      float64 // pressure difference below which flows are laminar, Pa
	stiffness float64 // of the caliper, where it is largest, Pa/m3
}

// readWheelCircuit is a caliper behind an inlet valve, open without current, and an
// outlet valve, closed without current:
//
//	V' = Q_in - Q_out
//	Q_in = Q((1 - inlet)·A_inlet, master - p) + Q(A_check, min(0, master - p + p_check))
//	Q_out = Q(outlet·A_outlet, p - drain)
//	Q(A, dp) = C_d·A·sqrt(2/rho)·dp/(dp² + p_transition²)^(1/4)
//
// with p = p(V), the signal of the element's name. The flow through an orifice,
// C_d·A·sqrt(2·|dp|/rho), has no bounded slope at dp = 0, where no step is short enough;
// below p_transition it is laminar, proportional to dp, as in Simscape. Above, it falls
// short of the turbulent one by 1 % at 5 and by 0.25 % at 10 times p_transition.
func readWheelCircuit(e *element) declared {
	c := circuit{element: e, rate: e.above0("C_d", "1", 0.7) * math.Sqrt(2/e.above0("rho", "kg/m3", 1050)),
		bend: e.above0("p_transition", "Pa", 1e5)}
	master := e.command("master", "Pa", "pressure of the master cylinder")
	inlet := e.need("A_inlet", "m2", "cross-section of the inlet valve")
	outlet := e.need("A_outlet", "m2", "cross-section of the outlet valve")
	check := e.atLeastZero("A_check", "m2", 0)
	drain, tank := c.drain()
	curve := readCaliper(e)
	p := makeChamber(e, curve)
	if c.stiffness = curve.steepest(); e.err != nil {
		return declared{}
	}
	e.plant.signals[e.ownSignal].most = e.plant.largest(master)
	fall := signalOf(master).plus(p.scaled(-1))
	in := c.line(inlet, check, fall)
	out := c.outlet(outlet, p, drain)
	e.plant.states[volumeState(e)].der = in.plus(out.scaled(-1))
	if tank != nil {
		s := &e.plant.states[volumeState(tank)]
		s.der = s.der.plus(out)
	}
	return declared{}
}

// readAccumulator takes what the outlet valves let out that name it as their drain, and
// a return pump empties it into the lines before the inlet valves:
//
//	V' = sum of Q_out - flow·pump·min(1, p/p_suction)
//
// with p = p(V). The master pressure is given, so what comes back does not change it.
func readAccumulator(e *element) declared {
	f, ok := e.fields["p_V"]
	if !ok {
		e.fail(e.at, "%s: low_pressure_accumulator needs p_V (rows of volume and pressure)", e.what())
		return declared{}
	}
	p := makeChamber(e, readPressureOverVolume(e, f))
	for _, key := range []string{"pump", "flow"} {
		if f, ok := e.fields[key]; ok && !(e.has("pump") && e.has("flow")) {
			e.fail(f.keyAt, "%s: pump and flow go together", e.what())
		}
	}
	if !e.has("pump") || e.err != nil {
		return declared{}
	}
	flow := e.need("flow", "m3/s", "return pump")
	suction := e.above0("p_suction", "Pa", 1e5)
	var l law
	l.arg(p, flow/suction)
	l.times(1 / suction).push(0).do(Max).push(1).do(Min)
	pushOpening(e, &l, readShare(e, "pump"))
	l.do(Mul).times(flow)
	e.guardPoints(p, []float64{suction})
	s := &e.plant.states[volumeState(e)]
	s.der = s.der.plus(addFlow(e, "Q_pump", &l).scaled(-1))
	return declared{}
}

// volumeState is the state V of the element. Circuits and the accumulator behind them are read
// in any order: whoever comes first makes it.
func volumeState(e *element) int {
	if r, ok := e.named["V"]; ok {
		return r.form[0].index
	}
	start := e.atLeastZero("V_start", "m3", 0)
	i := e.addState(state{name: "V", unit: "m3", start: start})
	e.named["V"] = reading{stateOf(i), "m3"}
	return i
}

// makeChamber makes p(V) the signal of the element.
func makeChamber(e *element, curve Table) form {
	i := e.ownSignal
	if e.err != nil {
		return signalOf(i)
	}
	V := stateOf(volumeState(e))
	var p law
	p.arg(V, curve.steepest())
	p.look(curve)
	e.plant.signals[i].law = &p
	e.guardPoints(V, curve.bends())
	return signalOf(i)
}

// readCaliper reads p(V): stiffness from V0 on, or a table.
func readCaliper(e *element) Table {
	if f, ok := e.fields["p_V"]; ok {
		for _, key := range []string{"stiffness", "V0"} {
			if g, both := e.fields[key]; both {
				e.fail(g.keyAt, "%s: %s and p_V; the table has all of the curve", e.what(), key)
			}
		}
		return readPressureOverVolume(e, f)
	}
	if !e.has("stiffness") {
		e.fail(e.at, "%s: wheel_brake_circuit needs stiffness (of the caliper, Pa/m3), or p_V (rows of volume and pressure)", e.what())
		return Table{}
	}
	stiff := e.need("stiffness", "Pa/m3", "caliper")
	gap := e.atLeastZero("V0", "m3", 0)
	if gap == 0 {
		return Table{Extend: true, X: []float64{0, 1e-6}, Z: []float64{0, stiff * 1e-6}}
	}
	return Table{Extend: true, X: []float64{0, gap, 2 * gap}, Z: []float64{0, 0, stiff * gap}}
}

// readPressureOverVolume reads rows [V, p] that go on as they end; p must not fall.
func readPressureOverVolume(e *element, f field) Table {
	t := e.table(f, "m3", "Pa")
	t.Extend = true
	if e.err == nil && len(t.X) < 2 {
		e.fail(f.at, "%s: p_V: one row; at least two are wanted", e.what())
	}
	for i := range t.Z {
		if e.err == nil && i > 0 && !(t.Z[i] >= t.Z[i-1]) {
			e.fail(f.at, "%s: p_V: pressure %s in row %d is below the %s before; it must not fall with the volume", e.what(),
				withUnit(t.Z[i], "Pa"), i+1, withUnit(t.Z[i-1], "Pa"))
		}
	}
	return t
}

// drain is the pressure behind the outlet valve, and the accumulator there if it is one.
func (c *circuit) drain() (form, *element) {
	if !c.has("drain") {
		return nil, nil
	}
	i := c.drive(c.fields["drain"], "Pa")
	if i == c.ownSignal && c.err == nil {
		c.fail(c.fields["drain"].at, "%s: it drains into itself; name a low_pressure_accumulator, or a pressure", c.what())
	}
	for _, other := range c.all {
		if other.ownSignal == i && other.kind.name == "low_pressure_accumulator" {
			return signalOf(i), other
		}
	}
	return signalOf(i), nil
}

// readShare reads a command from 0 to 1, of a valve or a motor; -1 where it is left out, 0.
func readShare(e *element, key string) int {
	f, ok := e.fields[key]
	if !ok {
		return -1
	}
	i := e.drive(f, "1")
	low, high := e.plant.span(i)
	switch {
	case e.err != nil:
	case math.IsInf(low, 0) || math.IsInf(high, 0):
		e.guardPoints(signalOf(i), []float64{0, 1})
	case !(low >= 0 && high <= 1):
		e.fail(f.at, "%s: %s goes from %g to %g; a share of 0 to 1 is wanted", e.what(), key, low, high)
	}
	return i
}

// pushOpening pushes a share.
func pushOpening(e *element, l *law, share int) {
	if share < 0 {
		l.push(0)
		return
	}
	l.arg(signalOf(share), 0)
	l.push(0).do(Max).push(1).do(Min)
}

// orifice pushes the flow through an opening of area at the pressure difference that dp
// pushes.
func (c *circuit) orifice(l *law, area float64, dp func()) {
	dp()
	dp()
	dp()
	l.do(Mul).push(c.bend*c.bend).do(Add, Sqrt, Sqrt, Div).times(c.rate * area)
}

// steep tells of a flow through an opening how it follows the volume in the caliper, most
// where there is no difference of pressures. No operation uses that argument.
func (c *circuit) steep(l *law, area float64) {
	l.arg(stateOf(volumeState(c.element)), c.stiffness*c.rate*area/math.Sqrt(c.bend))
	l.ops = nil
}

// line is the flow from the master cylinder at fall = master - p: through the inlet valve,
// and back through the check valve beside it.
func (c *circuit) line(area, check float64, fall form) form {
	crack := c.atLeastZero("p_check", "Pa", 1e4)
	share := readShare(c.element, "inlet")
	if f, ok := c.fields["p_check"]; ok && check == 0 {
		c.fail(f.keyAt, "%s: p_check goes with A_check", c.what())
	}
	if c.err != nil {
		return nil
	}
	var l, g law
	dp := l.arg(fall, 0)
	c.steep(&l, area+check)
	c.orifice(&l, area, func() { l.again(dp) })
	pushOpening(c.element, &l, share)
	l.push(1).do(Sub, Mul, Neg)
	if check > 0 {
		c.orifice(&l, check, func() { l.again(dp).push(crack).do(Add).push(0).do(Min) })
		l.do(Add)
		g.arg(fall, 0)
		c.addGuard(g.push(crack).do(Add))
	}
	return addFlow(c.element, "Q_in", &l)
}

// outlet is the flow through the outlet valve from p to drain.
func (c *circuit) outlet(area float64, p, drain form) form {
	share := readShare(c.element, "outlet")
	if c.err != nil {
		return nil
	}
	var l law
	dp := l.arg(p.plus(drain.scaled(-1)), 0)
	if len(drain) > 0 { // how it follows what is behind it
		l.arg(drain, area*c.rate/math.Sqrt(c.bend))
	}
	c.steep(&l, area)
	c.orifice(&l, area, func() { l.again(dp) })
	pushOpening(c.element, &l, share)
	return addFlow(c.element, "Q_out", l.do(Mul))
}

// addFlow makes a signal of a flow, m3/s.
func addFlow(e *element, name string, l *law) form {
	Q := signalOf(e.addLaw(e.name+"."+name, "m3/s", l))
	e.named[name] = reading{Q, "m3/s"}
	return Q
}
