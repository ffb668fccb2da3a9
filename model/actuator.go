package model

import "math"

func actuatorKinds() []kind {
	return []kind{
		{name: "hydraulic_actuator", keys: []string{"current", "pressure_map", "lag", "fill_volume", "fill_pressure", "kiss_pressure",
			"stiffness", "flow", "flow_range"}, gives: "Pa", read: readActuator},
	}
}

// readActuator turns the current of a solenoid into the pressure at a piston.
//
// pressure_map gives the pressure of the valve over the current (dead band and
// saturation are its shape), lag its first-order lag. With fill_volume, oil flows to
// the piston and fills it from fill_pressure to kiss_pressure, where the plates
// touch; from there on the pressure rises with the stiffness of the pack:
//
//	V' = flow·dp/sqrt(|dp| + flow_range),  dp = p_valve - p(V)
//
// and flow_range, a pressure, keeps it bounded around dp = 0. The signal of the
// element's name is the pressure at the piston.
func readActuator(e *element) declared {
	current := e.command("current", "A", "of the solenoid")
	f, ok := e.fields["pressure_map"]
	if !ok {
		e.fail(e.at, "%s: hydraulic_actuator needs pressure_map (rows of current and pressure)", e.what())
		return declared{}
	}
	t := e.table(f, "A", "Pa")
	lag := e.atLeastZero("lag", "s", 0)
	if e.err != nil {
		return declared{}
	}
	var l law
	l.arg(signalOf(current), 0)
	l.look(t)
	valve := signalOf(e.addLaw(e.name+".p_map", "Pa", &l))
	e.guardPoints(signalOf(current), t.bends())
	for _, p := range t.Z {
		s := &e.plant.signals[e.ownSignal]
		s.most = max(s.most, math.Abs(p))
	}
	e.named["p_map"] = reading{valve, "Pa"}
	if lag > 0 {
		i := e.addState(state{name: "p_valve", unit: "Pa", start: t.Z[0]})
		e.plant.states[i].der = valve.scaled(1 / lag).plus(stateOf(i).scaled(-1 / lag))
		valve = stateOf(i)
	}
	e.named["p_valve"] = reading{valve, "Pa"}
	out := &law{}
	if e.has("fill_volume") {
		fillPiston(e, out, valve)
	} else {
		for _, key := range []string{"fill_pressure", "kiss_pressure", "stiffness", "flow", "flow_range"} {
			if f, ok := e.fields[key]; ok {
				e.fail(f.keyAt, "%s: %s goes with fill_volume", e.what(), key)
			}
		}
		out.arg(valve, 0)
	}
	e.plant.signals[e.ownSignal].law = out
	return declared{}
}

// fillPiston adds the piston: its volume is a state, p(V) goes to out.
func fillPiston(e *element, out *law, valve form) {
	volume := e.need("fill_volume", "m3", "oil up to the kiss point")
	low := e.atLeastZero("fill_pressure", "Pa", 0)
	kiss, f := e.number("kiss_pressure", "Pa", "pressure at which the plates touch")
	if !(kiss >= low) {
		e.fail(f.at, "%s: kiss_pressure %s is below fill_pressure %s", e.what(), withUnit(kiss, "Pa"), withUnit(low, "Pa"))
	}
	stiff := e.need("stiffness", "Pa/m3", "of the plates")
	flow, f := e.number("flow", "m3/s", "oil flow at a difference of 1 bar")
	e.positive(flow, f, "flow", "m3/s")
	bend := e.above0("flow_range", "Pa", 1e4)
	if e.err != nil {
		return
	}
	flow /= math.Sqrt(1e5)
	p := Table{Extend: true, X: []float64{-volume, 0, volume, 2 * volume},
		Z: []float64{low - stiff*volume, low, kiss, kiss + stiff*volume}}
	V := e.addState(state{name: "V", unit: "m3"})
	out.arg(stateOf(V), stiff)
	out.look(p)
	e.guardPoints(stateOf(V), []float64{0, volume})
	var q law
	dp := stateOf(V)
	i := q.arg(valve, 0)
	j := q.arg(dp, stiff*flow/math.Sqrt(bend))
	q.look(p).do(Sub).again(i).again(j).look(p).do(Sub, Abs).push(bend).do(Add, Sqrt, Div).times(flow)
	e.plant.states[V].der = signalOf(e.addLaw(e.name+".Q", "m3/s", &q))
	e.named["V"] = reading{stateOf(V), "m3"}
}
