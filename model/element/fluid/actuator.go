package fluid

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

func actuatorKinds() []element.Kind {
	return []element.Kind{
		{Name: "hydraulic_actuator",
			Keys: []string{"current", "pressure_map", "lag", "fill_volume", "fill_pressure", "kiss_pressure",
				"stiffness", "flow", "flow_range"}, Gives: "Pa", Read: readActuator},
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
func readActuator(e *element.Element) element.Declared {
	current := e.NeedWaveform("current", "A", "of the solenoid")
	f, ok := e.Fields["pressure_map"]
	if !ok {
		e.Fail(e.At, "%s: hydraulic_actuator needs pressure_map (rows of current and pressure)", e.What())
		return element.Declared{}
	}
	t := e.Table(f, "A", "Pa")
	lag := e.AtLeastZero("lag", "s", 0)
	if e.Err != nil {
		return element.Declared{}
	}
	var l network.Law
	l.Arg(network.SignalOf(current), 0)
	l.Look(t)
	valve := network.SignalOf(e.AddLaw(e.Name+".p_map", "Pa", &l))
	e.GuardPoints(network.SignalOf(current), t.Breakpoints())
	for _, p := range t.Z {
		s := &e.Network.Signals[e.OwnSignal]
		s.MaxAbs = max(s.MaxAbs, math.Abs(p))
	}
	e.Named["p_map"] = element.Reading{Form: valve, Unit: "Pa"}
	if lag > 0 {
		i := e.AddState(network.State{Name: "p_valve", Unit: "Pa", Start: t.Z[0]})
		e.Network.States[i].Der = valve.Scaled(1 / lag).Plus(network.StateOf(i).Scaled(-1 / lag))
		valve = network.StateOf(i)
	}
	e.Named["p_valve"] = element.Reading{Form: valve, Unit: "Pa"}
	out := &network.Law{}
	if e.Has("fill_volume") {
		fillPiston(e, out, valve)
	} else {
		for _, key := range []string{"fill_pressure", "kiss_pressure", "stiffness", "flow", "flow_range"} {
			if f, ok := e.Fields[key]; ok {
				e.Fail(f.KeyAt, "%s: %s goes with fill_volume", e.What(), key)
			}
		}
		out.Arg(valve, 0)
	}
	e.Network.Signals[e.OwnSignal].Law = out
	return element.Declared{}
}

// fillPiston adds the piston: its volume is a state, p(V) goes to out.
func fillPiston(e *element.Element, out *network.Law, valve network.Form) {
	volume := e.Need("fill_volume", "m3", "oil up to the kiss point")
	low := e.AtLeastZero("fill_pressure", "Pa", 0)
	kiss, f := e.Number("kiss_pressure", "Pa", "pressure at which the plates touch")
	if !(kiss >= low) {
		e.Fail(f.At, "%s: kiss_pressure %s is below fill_pressure %s", e.What(), units.Format(kiss, "Pa"), units.Format(low, "Pa"))
	}
	stiff := e.Need("stiffness", "Pa/m3", "of the plates")
	flow, f := e.Number("flow", "m3/s", "oil flow at a difference of 1 bar")
	e.Positive(flow, f, "flow", "m3/s")
	bend := e.AboveZero("flow_range", "Pa", 1e4)
	if e.Err != nil {
		return
	}
	flow /= math.Sqrt(1e5)
	p := model.Table{Extend: true, X: []float64{-volume, 0, volume, 2 * volume},
		Z: []float64{low - stiff*volume, low, kiss, kiss + stiff*volume}}
	V := e.AddState(network.State{Name: "V", Unit: "m3"})
	out.Arg(network.StateOf(V), stiff)
	out.Look(p)
	e.GuardPoints(network.StateOf(V), []float64{0, volume})
	var q network.Law
	dp := network.StateOf(V)
	i := q.Arg(valve, 0)
	j := q.Arg(dp, stiff*flow/math.Sqrt(bend))
	q.Look(p).Do(model.Sub).Again(i).Again(j).Look(p).Do(model.Sub, model.Abs).Push(bend).Do(model.Add, model.Sqrt, model.Div).Times(flow)
	e.Network.States[V].Der = network.SignalOf(e.AddLaw(e.Name+".Q", "m3/s", &q))
	e.Named["V"] = element.Reading{Form: network.StateOf(V), Unit: "m3"}
}
