package fluid

import (
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// circuit is the brake of one wheel with its valves during reading.
type circuit struct {
	*element.Element
	most float64 // largest pressure difference expected, Pa
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
	c := circuit{Element: e}
	master := e.Waveform("master")
	drain, tank := c.drain()
	line := chamberOf(e, network.SignalOf(master), "brake_line")
	p := makeChamber(e, readCaliper(e))
	e.Own().MaxAbs = e.Network.MaxAbs(master)
	c.most = 2 * e.Own().MaxAbs
	in := c.inlet(network.SignalOf(master).Plus(p.Scaled(-1)))
	out := c.outlet(p.Plus(drain.Scaled(-1)))
	e.Network.States[volume(e).Index()].Der = in.Plus(out.Scaled(-1))
	if tank != nil {
		fill(tank, out)
	}
	if line != nil {
		fill(line, in.Scaled(-1))
	}
	return element.Declared{}
}

// readAccumulator reads an accumulator, which takes the flow of the outlet valves that name it as
// their drain. A return pump empties it into the lines before the inlet valves:
//
//	V' = sum of Q_out - flow·pump·min(1, p/p_suction)
//
// with p = p(V). The flow of the pump enters the brake_line that line names; where the master pressure is an input,
// the flow does not change it.
func readAccumulator(e *element.Element) element.Declared {
	p := makeChamber(e, readPressureOverVolume(e))
	if !e.Together("pump", "flow") {
		e.Forbid("goes with pump", "line")
		return element.Declared{}
	}
	Q := law.Formula("flow*clamp(p/p_suction, 0, 1)*pump", law.Names{"flow": e.Number("flow"),
		"p": p, "p_suction": e.Number("p_suction"), "pump": readOpening(e, "pump")})
	flow := e.NameLaw("Q_pump", Q)
	fill(e, flow.Scaled(-1))
	if to := e.OptionalWaveform("line"); to != nil {
		line := chamberOf(e, to, "brake_line")
		if line == nil {
			e.Refuse(e.Place("line"), "line: name a brake_line")
		}
		fill(line, flow)
	}
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
	e.OwnLaw(law.Formula("p(V)", law.Names{"p": curve, "V": V}))
	e.Own().MaxAbs = network.Largest(curve.Z)
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
	return drain, chamberOf(c.Element, drain, "low_pressure_accumulator")
}

// chamberOf returns the element of a type whose pressure a value over time is; nil if it is another pressure.
func chamberOf(e *element.Element, pressure network.Form, kind string) *element.Element {
	for _, other := range e.Elements {
		if other.OwnSignal == pressure.Index() && other.Kind.Name == kind {
			return other
		}
	}
	return nil
}

// readOpening reads a command of a valve or a motor, limited to 0 to 1; a missing one is 0.
func readOpening(e *element.Element, key string) *law.Expr {
	share := e.OptionalWaveform(key)
	if share == nil {
		return law.Number(0)
	}
	return law.Formula("clamp(share, 0, 1)", law.Names{"share": share})
}

// orifice returns the flow through an opening at a pressure difference; area is the key of its
// cross-section.
func (c *circuit) orifice(area string, dp network.Form) *law.Expr {
	return law.Formula("C_d*sqrt(2/rho)*"+area+"*dp/sqrt(sqrt(dp*dp + p_transition*p_transition))", law.Names{
		"C_d": c.Number("C_d"), "rho": c.Number("rho"), area: c.Number(area),
		"p_transition": c.Number("p_transition"), "dp": law.Of(dp).Within(-c.most, c.most)})
}

// inlet returns the flow from the line at fall = master - p: through the inlet valve, and back through the
// parallel check valve.
func (c *circuit) inlet(fall network.Form) network.Form {
	crack := c.Number("p_check")
	Q := law.Formula("(1 - inlet)*Q", law.Names{"inlet": readOpening(c.Element, "inlet"), "Q": c.orifice("A_inlet", fall)})
	if c.Number("A_check") == 0 {
		c.Forbid("goes with A_check", "p_check")
		return c.NameLaw("Q_in", Q)
	}
	over := fall.Plus(network.One(crack))
	return c.NameLaw("Q_in", law.Formula("Q + where(over, 0, check)",
		law.Names{"Q": Q, "over": law.Of(over).Within(-c.most, c.most), "check": c.orifice("A_check", over)}))
}

// outlet returns the flow through the outlet valve at a pressure difference.
func (c *circuit) outlet(dp network.Form) network.Form {
	return c.NameLaw("Q_out", law.Formula("outlet*Q",
		law.Names{"outlet": readOpening(c.Element, "outlet"), "Q": c.orifice("A_outlet", dp)}))
}
