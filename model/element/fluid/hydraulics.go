package fluid

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

func hydraulicKinds() []element.Kind {
	return []element.Kind{
		{Name: "wheel_brake_circuit",
			Keys: []string{"master", "inlet", "outlet", "drain", "A_inlet", "A_outlet", "A_check", "p_check",
				"C_d", "rho", "p_transition", "stiffness", "V0", "p_V", "V_start"}, Gives: "Pa", Read: readWheelCircuit},
		{Name: "low_pressure_accumulator",
			Keys: []string{"p_V", "V_start", "pump", "flow", "p_suction"}, Gives: "Pa", Read: readAccumulator},
	}
}

// circuit is what readWheelCircuit makes of the brake of one wheel and the valves
// before it.
type circuit struct {
	*element.Element
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
func readWheelCircuit(e *element.Element) element.Declared {
	c := circuit{Element: e, rate: e.AboveZero("C_d", "1", 0.7) * math.Sqrt(2/e.AboveZero("rho", "kg/m3", 1050)),
		bend: e.AboveZero("p_transition", "Pa", 1e5)}
	master := e.NeedWaveform("master", "Pa", "pressure of the master cylinder")
	inlet := e.Need("A_inlet", "m2", "cross-section of the inlet valve")
	outlet := e.Need("A_outlet", "m2", "cross-section of the outlet valve")
	check := e.AtLeastZero("A_check", "m2", 0)
	drain, tank := c.drain()
	curve := readCaliper(e)
	p := makeChamber(e, curve)
	if c.stiffness = curve.MaxSlope(); e.Err != nil {
		return element.Declared{}
	}
	e.Network.Signals[e.OwnSignal].MaxAbs = e.Network.MaxAbs(master)
	fall := network.SignalOf(master).Plus(p.Scaled(-1))
	in := c.line(inlet, check, fall)
	out := c.outlet(outlet, p, drain)
	e.Network.States[volumeState(e)].Der = in.Plus(out.Scaled(-1))
	if tank != nil {
		s := &e.Network.States[volumeState(tank)]
		s.Der = s.Der.Plus(out)
	}
	return element.Declared{}
}

// readAccumulator takes what the outlet valves let out that name it as their drain, and
// a return pump empties it into the lines before the inlet valves:
//
//	V' = sum of Q_out - flow·pump·min(1, p/p_suction)
//
// with p = p(V). The master pressure is given, so what comes back does not change it.
func readAccumulator(e *element.Element) element.Declared {
	f, ok := e.Fields["p_V"]
	if !ok {
		e.Fail(e.At, "%s: low_pressure_accumulator needs p_V (rows of volume and pressure)", e.What())
		return element.Declared{}
	}
	p := makeChamber(e, readPressureOverVolume(e, f))
	for _, key := range []string{"pump", "flow"} {
		if f, ok := e.Fields[key]; ok && !(e.Has("pump") && e.Has("flow")) {
			e.Fail(f.KeyAt, "%s: pump and flow go together", e.What())
		}
	}
	if !e.Has("pump") || e.Err != nil {
		return element.Declared{}
	}
	flow := e.Need("flow", "m3/s", "return pump")
	suction := e.AboveZero("p_suction", "Pa", 1e5)
	var l network.Law
	l.Arg(p, flow/suction)
	l.Times(1 / suction).Push(0).Do(model.Max).Push(1).Do(model.Min)
	pushOpening(e, &l, readShare(e, "pump"))
	l.Do(model.Mul).Times(flow)
	e.GuardPoints(p, []float64{suction})
	s := &e.Network.States[volumeState(e)]
	s.Der = s.Der.Plus(addFlow(e, "Q_pump", &l).Scaled(-1))
	return element.Declared{}
}

// volumeState is the state V of the element. Circuits and the accumulator behind them are read
// in any order: whoever comes first makes it.
func volumeState(e *element.Element) int {
	if r, ok := e.Named["V"]; ok {
		return r.Form[0].Index
	}
	start := e.AtLeastZero("V_start", "m3", 0)
	i := e.AddState(network.State{Name: "V", Unit: "m3", Start: start})
	e.Named["V"] = element.Reading{Form: network.StateOf(i), Unit: "m3"}
	return i
}

// makeChamber makes p(V) the signal of the element.
func makeChamber(e *element.Element, curve model.Table) network.Form {
	i := e.OwnSignal
	if e.Err != nil {
		return network.SignalOf(i)
	}
	V := network.StateOf(volumeState(e))
	var p network.Law
	p.Arg(V, curve.MaxSlope())
	p.Look(curve)
	e.Network.Signals[i].Law = &p
	e.GuardPoints(V, curve.Breakpoints())
	return network.SignalOf(i)
}

// readCaliper reads p(V): stiffness from V0 on, or a table.
func readCaliper(e *element.Element) model.Table {
	if f, ok := e.Fields["p_V"]; ok {
		for _, key := range []string{"stiffness", "V0"} {
			if g, both := e.Fields[key]; both {
				e.Fail(g.KeyAt, "%s: %s and p_V; the table has all of the curve", e.What(), key)
			}
		}
		return readPressureOverVolume(e, f)
	}
	if !e.Has("stiffness") {
		e.Fail(e.At, "%s: wheel_brake_circuit needs stiffness (of the caliper, Pa/m3), or p_V (rows of volume and pressure)", e.What())
		return model.Table{}
	}
	stiff := e.Need("stiffness", "Pa/m3", "caliper")
	gap := e.AtLeastZero("V0", "m3", 0)
	if gap == 0 {
		return model.Table{Extend: true, X: []float64{0, 1e-6}, Z: []float64{0, stiff * 1e-6}}
	}
	return model.Table{Extend: true, X: []float64{0, gap, 2 * gap}, Z: []float64{0, 0, stiff * gap}}
}

// readPressureOverVolume reads rows [V, p] that go on as they end; p must not fall.
func readPressureOverVolume(e *element.Element, f syntax.Field) model.Table {
	t := e.Table(f, "m3", "Pa")
	t.Extend = true
	if e.Err == nil && len(t.X) < 2 {
		e.Fail(f.At, "%s: p_V: one row; at least two are wanted", e.What())
	}
	for i := range t.Z {
		if e.Err == nil && i > 0 && !(t.Z[i] >= t.Z[i-1]) {
			e.Fail(f.At, "%s: p_V: pressure %s in row %d is below the %s before; it must not fall with the volume", e.What(),
				units.Format(t.Z[i], "Pa"), i+1, units.Format(t.Z[i-1], "Pa"))
		}
	}
	return t
}

// drain is the pressure behind the outlet valve, and the accumulator there if it is one.
func (c *circuit) drain() (network.Form, *element.Element) {
	if !c.Has("drain") {
		return nil, nil
	}
	i := c.Waveform(c.Fields["drain"], "Pa")
	if i == c.OwnSignal && c.Err == nil {
		c.Fail(c.Fields["drain"].At, "%s: it drains into itself; name a low_pressure_accumulator, or a pressure", c.What())
	}
	for _, other := range c.Elements {
		if other.OwnSignal == i && other.Kind.Name == "low_pressure_accumulator" {
			return network.SignalOf(i), other
		}
	}
	return network.SignalOf(i), nil
}

// readShare reads a command from 0 to 1, of a valve or a motor; -1 where it is left out, 0.
func readShare(e *element.Element, key string) int {
	f, ok := e.Fields[key]
	if !ok {
		return -1
	}
	i := e.Waveform(f, "1")
	low, high := e.Network.Range(i)
	switch {
	case e.Err != nil:
	case math.IsInf(low, 0) || math.IsInf(high, 0):
		e.GuardPoints(network.SignalOf(i), []float64{0, 1})
	case !(low >= 0 && high <= 1):
		e.Fail(f.At, "%s: %s goes from %g to %g; a share of 0 to 1 is wanted", e.What(), key, low, high)
	}
	return i
}

// pushOpening pushes a share.
func pushOpening(e *element.Element, l *network.Law, share int) {
	if share < 0 {
		l.Push(0)
		return
	}
	l.Arg(network.SignalOf(share), 0)
	l.Push(0).Do(model.Max).Push(1).Do(model.Min)
}

// orifice pushes the flow through an opening of area at the pressure difference that dp
// pushes.
func (c *circuit) orifice(l *network.Law, area float64, dp func()) {
	dp()
	dp()
	dp()
	l.Do(model.Mul).Push(c.bend*c.bend).Do(model.Add, model.Sqrt, model.Sqrt, model.Div).Times(c.rate * area)
}

// steep tells of a flow through an opening how it follows the volume in the caliper, most
// where there is no difference of pressures. No operation uses that argument.
func (c *circuit) steep(l *network.Law, area float64) {
	l.Arg(network.StateOf(volumeState(c.Element)), c.stiffness*c.rate*area/math.Sqrt(c.bend))
	l.Ops = nil
}

// line is the flow from the master cylinder at fall = master - p: through the inlet valve,
// and back through the check valve beside it.
func (c *circuit) line(area, check float64, fall network.Form) network.Form {
	crack := c.AtLeastZero("p_check", "Pa", 1e4)
	share := readShare(c.Element, "inlet")
	if f, ok := c.Fields["p_check"]; ok && check == 0 {
		c.Fail(f.KeyAt, "%s: p_check goes with A_check", c.What())
	}
	if c.Err != nil {
		return nil
	}
	var l, g network.Law
	dp := l.Arg(fall, 0)
	c.steep(&l, area+check)
	c.orifice(&l, area, func() { l.Again(dp) })
	pushOpening(c.Element, &l, share)
	l.Push(1).Do(model.Sub, model.Mul, model.Neg)
	if check > 0 {
		c.orifice(&l, check, func() { l.Again(dp).Push(crack).Do(model.Add).Push(0).Do(model.Min) })
		l.Do(model.Add)
		g.Arg(fall, 0)
		c.AddGuard(g.Push(crack).Do(model.Add))
	}
	return addFlow(c.Element, "Q_in", &l)
}

// outlet is the flow through the outlet valve from p to drain.
func (c *circuit) outlet(area float64, p, drain network.Form) network.Form {
	share := readShare(c.Element, "outlet")
	if c.Err != nil {
		return nil
	}
	var l network.Law
	dp := l.Arg(p.Plus(drain.Scaled(-1)), 0)
	if len(drain) > 0 { // how it follows what is behind it
		l.Arg(drain, area*c.rate/math.Sqrt(c.bend))
	}
	c.steep(&l, area)
	c.orifice(&l, area, func() { l.Again(dp) })
	pushOpening(c.Element, &l, share)
	return addFlow(c.Element, "Q_out", l.Do(model.Mul))
}

// addFlow makes a signal of a flow, m3/s.
func addFlow(e *element.Element, name string, l *network.Law) network.Form {
	Q := network.SignalOf(e.AddLaw(e.Name+"."+name, "m3/s", l))
	e.Named[name] = element.Reading{Form: Q, Unit: "m3/s"}
	return Q
}
