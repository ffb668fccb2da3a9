package fluid

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// circuit is the brake of one wheel with its valves during reading.
type circuit struct {
	*element.Element
	rate      float64 // C_d·sqrt(2/rho): turbulent flow through 1 m² at 1 Pa, m³/s
	laminar   float64 // pressure difference below which flows are laminar, Pa
	stiffness float64 // largest stiffness of the caliper, Pa/m³
}

// readWheelCircuit reads a caliper behind an inlet valve, open without current, and an outlet valve,
// closed without current:
//
//	V' = Q_in - Q_out
//	Q_in = Q((1 - inlet)·A_inlet, master - p) + Q(A_check, min(0, master - p + p_check))
//	Q_out = Q(outlet·A_outlet, p - drain)
//	Q(A, dp) = C_d·A·sqrt(2/rho)·dp/(dp² + p_transition²)^(1/4)
//
// with p = p(V), the signal with the element's name. The turbulent flow through an orifice,
// C_d·A·sqrt(2·|dp|/rho), has an infinite slope at dp = 0. Below p_transition the flow is therefore
// laminar, proportional to dp, as in Simscape. Above, it is smaller than the turbulent flow by 1 % at
// 5 and by 0.25 % at 10 times p_transition.
func readWheelCircuit(e *element.Element) element.Declared {
	c := circuit{Element: e, rate: e.Number("C_d") * math.Sqrt(2/e.Number("rho")), laminar: e.Number("p_transition")}
	master := e.Waveform("master")
	inlet, outlet, check := e.Number("A_inlet"), e.Number("A_outlet"), e.Number("A_check")
	drain, tank := c.drain()
	curve := readCaliper(e)
	c.stiffness = curve.MaxSlope()
	p := makeChamber(e, curve)
	e.Own().MaxAbs = e.Network.MaxAbs(master)
	in := c.line(inlet, check, network.SignalOf(master).Plus(p.Scaled(-1)))
	out := c.outlet(outlet, p, drain)
	e.Network.States[volume(e).Index()].Der = in.Plus(out.Scaled(-1))
	if tank != nil {
		fill(tank, out)
	}
	return element.Declared{}
}

// readAccumulator reads an accumulator, which takes the flow of the outlet valves that name it as
// their drain. A return pump empties it into the lines before the inlet valves:
//
//	V' = sum of Q_out - flow·pump·min(1, p/p_suction)
//
// with p = p(V). The master pressure is an input, so the flow of the pump does not change it.
func readAccumulator(e *element.Element) element.Declared {
	p := makeChamber(e, readPressureOverVolume(e))
	if !e.Together("pump", "flow") {
		return element.Declared{}
	}
	flow, suction := e.Number("flow"), e.Number("p_suction")
	l := network.LawOf(p, flow/suction).Times(1 / suction).Push(0).Do(model.Max).Push(1).Do(model.Min)
	pushOpening(l, readShare(e, "pump"))
	e.AddBreakpoints(p, []float64{suction})
	fill(e, e.NameLaw("Q_pump", l.Do(model.Mul).Times(flow)).Scaled(-1))
	return element.Declared{}
}

// fill adds a flow to the rate of the volume of an element.
func fill(e *element.Element, flow network.Form) {
	s := &e.Network.States[volume(e).Index()]
	s.Der = s.Der.Plus(flow)
}

// volume returns the state V of the element; the first call makes it, since a circuit may be read
// before its accumulator.
func volume(e *element.Element) network.Form {
	if r, ok := e.Named["V"]; ok {
		return r.Form
	}
	i := e.AddState(network.State{Name: "V", Start: e.Number("V_start")})
	e.ReadStart("V_start", network.StartCondition{State: 1 + i})
	return e.NameForm("V", network.StateOf(i))
}

// makeChamber makes p(V) the signal with the name of the element, and returns it.
func makeChamber(e *element.Element, curve model.Table) network.Form {
	V := volume(e)
	e.Own().Law = network.LawOf(V, curve.MaxSlope()).Look(curve)
	e.AddBreakpoints(V, curve.Breakpoints())
	return network.SignalOf(e.OwnSignal)
}

// readCaliper reads p(V): stiffness from V0 on, or a table.
func readCaliper(e *element.Element) model.Table {
	if e.Has("p_V") {
		e.Forbid("and p_V; the table has all of the curve", "stiffness", "V0")
		return readPressureOverVolume(e)
	}

	if !e.Has("stiffness") {
		e.Refuse(e.At, "wheel_brake_circuit needs stiffness (of the caliper, Pa/m3), or p_V (rows of volume and pressure)")
	}
	stiff, gap := e.Number("stiffness"), e.Number("V0")
	if gap == 0 {
		return model.Table{Extend: true, X: []float64{0, 1e-6}, Z: []float64{0, stiff * 1e-6}}
	}
	return model.Table{Extend: true, X: []float64{0, gap, 2 * gap}, Z: []float64{0, 0, stiff * gap}}
}

// readPressureOverVolume reads rows [V, p], extended at both ends; p must not fall.
func readPressureOverVolume(e *element.Element) model.Table {
	t, at := e.Table("p_V"), e.Place("p_V")
	t.Extend = true
	if len(t.X) < 2 {
		e.Refuse(at, "p_V has one row; give at least two")
	}
	for i, p := range t.Z {
		if i > 0 && !(p >= t.Z[i-1]) {
			e.Refuse(at, "p_V: pressure %s in row %d is below the %s before; it must not fall with the volume",
				units.Format(p, "Pa"), i+1, units.Format(t.Z[i-1], "Pa"))
		}
	}

	return t
}

// drain returns the pressure behind the outlet valve, nil for 0, and the accumulator there, if any.
func (c *circuit) drain() (network.Form, *element.Element) {
	drain := c.OptionalWaveform("drain")
	if drain == nil {
		return nil, nil
	}
	if drain.Index() == c.OwnSignal {
		c.Refuse(c.Place("drain"), "it drains into itself; name a low_pressure_accumulator, or a pressure")
	}
	for _, other := range c.Elements {
		if other.OwnSignal == drain.Index() && other.Kind.Name == "low_pressure_accumulator" {
			return drain, other
		}
	}

	return drain, nil
}

// readShare reads a command of a valve or a motor, 0 to 1; nil for a missing key, which means 0.
func readShare(e *element.Element, key string) network.Form {
	share := e.OptionalWaveform(key)
	if share == nil {
		return nil
	}
	if low, high := e.Network.Range(share.Index()); math.IsInf(low, 0) || math.IsInf(high, 0) {
		e.AddBreakpoints(share, []float64{0, 1})
	}
	return share
}

// pushOpening pushes a command, limited to 0 to 1.
func pushOpening(l *network.Law, share network.Form) *network.Law {
	if share == nil {
		return l.Push(0)
	}
	return l.Arg(share, 0).Push(0).Do(model.Max).Push(1).Do(model.Min)
}

// orifice pushes the flow through an opening of an area, m²; dp pushes the pressure difference.
func (c *circuit) orifice(l *network.Law, area float64, dp func()) {
	dp()
	dp()
	dp()
	l.Do(model.Mul).Push(c.laminar*c.laminar).Do(model.Add, model.Sqrt, model.Sqrt, model.Div).Times(c.rate * area)
}

// addVolumeSlope gives a flow through an opening its slope along the volume in the caliper, which is
// largest at pressure difference 0. No operation uses that argument.
func (c *circuit) addVolumeSlope(l *network.Law, area float64) {
	l.Read(volume(c.Element), c.stiffness*c.rate*area/math.Sqrt(c.laminar))
}

// line returns the flow from the master cylinder at fall = master - p: through the inlet valve, and
// back through the parallel check valve.
func (c *circuit) line(area, check float64, fall network.Form) network.Form {
	crack := c.Number("p_check")
	share := readShare(c.Element, "inlet")
	if check == 0 {
		c.Forbid("goes with A_check", "p_check")
	}
	var l network.Law
	dp := l.Read(fall, 0)
	c.addVolumeSlope(&l, area+check)
	c.orifice(&l, area, func() { l.Again(dp) })
	pushOpening(&l, share).Push(1).Do(model.Sub, model.Mul, model.Neg)
	if check > 0 {
		c.orifice(&l, check, func() { l.Again(dp).Push(crack).Do(model.Add).Push(0).Do(model.Min) })
		l.Do(model.Add)
		c.AddIndicator(network.LawOf(fall, 0).Push(crack).Do(model.Add))
	}

	return c.NameLaw("Q_in", &l)
}

// outlet returns the flow through the outlet valve from p to drain.
func (c *circuit) outlet(area float64, p, drain network.Form) network.Form {
	share := readShare(c.Element, "outlet")
	var l network.Law
	dp := l.Read(p.Plus(drain.Scaled(-1)), 0)
	if len(drain) > 0 { // the slope along the pressure of the drain
		l.Read(drain, area*c.rate/math.Sqrt(c.laminar))
	}
	c.addVolumeSlope(&l, area)
	c.orifice(&l, area, func() { l.Again(dp) })
	return c.NameLaw("Q_out", pushOpening(&l, share).Do(model.Mul))
}
