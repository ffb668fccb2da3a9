// Package fluid owns the element types with oil or air in them: actuators of clutches, wheel brake
// circuits, brake cylinders. The clutch or brake that the pressure acts on is not here:
// see package mechanics.
//
// Reading order: fluid.go (types, actuators and cylinders), hydraulics.go (wheel brake
// circuits), line.go (the line before them).
package fluid

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	type parameters = []element.Parameter
	type adds = []element.Quantity
	number, rows, over := element.AsNumber.Of, element.AsRows.Of, element.OverTime.Of
	free, positive, notNegative, share := element.Any, element.Positive, element.NotNegative, element.Share
	volume := element.Quantity{Key: "V", Unit: "m3", Meaning: "volume of the fluid"}
	start := number("V_start", "m3", "0", notNegative, "volume at the start")
	return []element.Kind{
		{Name: "hydraulic_actuator", Gives: "Pa", Read: readActuator,
			Adds: adds{{Key: "p_map", Unit: "Pa", Meaning: "pressure of the map"},
				{Key: "p_valve", Unit: "Pa", Meaning: "pressure that the valve sets, with lag and hysteresis"},
				{Key: "p_out", Unit: "Pa", Meaning: "p_valve, at most line_pressure"},
				{Key: "Q", Unit: "m3/s", Meaning: "flow to the piston"}, volume},
			Parameters: parameters{
				over("current", "A", "", free, "current of the solenoid"),
				rows("pressure_map", "A, Pa", "", free, "[current, pressure]"),
				number("lag", "s", "0", notNegative, "time constant of the valve").Within(1e-9, 0),
				number("hysteresis", "Pa", "0", notNegative, "width of the loop over the current, with lag"),
				over("line_pressure", "Pa", "none", notNegative, "pressure before the valve"),
				number("fill_volume", "m3", "none", positive, "volume up to the kiss point; none: no piston"),
				number("fill_pressure", "Pa", "0", notNegative, "pressure of the empty piston"),
				number("kiss_pressure", "Pa", "with fill_volume", free, "pressure at which the plates touch"),
				number("stiffness", "Pa/m3", "with fill_volume", positive, "stiffness of the plates"),
				number("flow", "m3/s", "with fill_volume", positive, "flow at 1 bar of difference"),
				number("flow_range", "Pa", "1e4", positive, "difference around which the flow is bounded"),
				number("p_start", "Pa", "none", notNegative, "pressure of valve and piston at the start, with a state"),
			}},
		{Name: "wheel_brake_circuit", Gives: "Pa", Read: readWheelCircuit,
			Adds: adds{volume, {Key: "Q_in", Unit: "m3/s", Meaning: "flow through inlet and check valve"},
				{Key: "Q_out", Unit: "m3/s", Meaning: "flow through the outlet valve"}},
			Parameters: parameters{
				over("master", "Pa", "", free, "pressure of the master cylinder or of a brake_line"),
				over("inlet", "1", "0", share, "inlet valve; 1: closed"),
				over("outlet", "1", "0", share, "outlet valve; 1: open"),
				over("drain", "Pa", "0", free, "pressure behind the outlet valve, or an accumulator"),
				number("A_inlet", "m2", "", positive, "cross-section of the inlet valve"),
				number("A_outlet", "m2", "", positive, "cross-section of the outlet valve"),
				number("A_check", "m2", "0", notNegative, "cross-section of the check valve; 0: none"),
				number("p_check", "Pa", "1e4", notNegative, "opening pressure of the check valve"),
				number("C_d", "1", "0.7", positive, "discharge coefficient").Within(1e-6, 1e3),
				number("rho", "kg/m3", "1050", positive, "density of the fluid"),
				number("p_transition", "Pa", "1e5", positive, "difference below which flows are laminar"),
				number("stiffness", "Pa/m3", "or p_V", positive, "stiffness of the caliper"),
				number("V0", "m3", "0", notNegative, "volume up to contact of the pads, with stiffness"),
				rows("p_V", "m3, Pa", "or stiffness", free, "[volume, pressure], not falling"),
				start,
			}},
		{Name: "low_pressure_accumulator", Gives: "Pa", Read: readAccumulator,
			Adds: adds{volume, {Key: "Q_pump", Unit: "m3/s", Meaning: "flow of the pump"}},
			Parameters: parameters{
				rows("p_V", "m3, Pa", "", free, "[volume, pressure], not falling"), start,
				over("pump", "1", "none", share, "drive of the return pump; with flow"),
				number("flow", "m3/s", "with pump", positive, "flow of the pump at full drive"),
				number("p_suction", "Pa", "1e5", positive, "pressure below which the pump delivers less"),
				over("line", "Pa", "none", free, "brake_line that the pump delivers to"),
			}},
		{Name: "brake_line", Gives: "Pa", Read: readBrakeLine,
			Adds: adds{volume, {Key: "Q_master", Unit: "m3/s", Meaning: "flow from the master cylinder"},
				{Key: "Q_suction", Unit: "m3/s", Meaning: "flow that the pump draws from the master cylinder"}},
			Parameters: parameters{
				over("master", "Pa", "", free, "pressure of the master cylinder"),
				over("isolation", "1", "0", share, "isolation valve; 1: closed"),
				over("suction", "1", "0", share, "suction valve; 1: open"),
				over("pump", "1", "0", share, "drive of the pump"),
				number("flow", "m3/s", "with suction", positive, "flow of the pump from the master cylinder at full drive"),
				number("A_isolation", "m2", "", positive, "cross-section of the isolation valve"),
				number("A_check", "m2", "0", notNegative, "cross-section of the check valve; 0: none"),
				number("p_check", "Pa", "1e4", notNegative, "opening pressure of the check valve"),
				number("p_relief", "Pa", "none", positive, "pressure over that of the master cylinder up to which the closed valve holds"),
				number("C_d", "1", "0.7", positive, "discharge coefficient").Within(1e-6, 1e3),
				number("rho", "kg/m3", "1050", positive, "density of the fluid"),
				number("p_transition", "Pa", "1e5", positive, "difference below which flows are laminar"),
				rows("p_V", "m3, Pa", "", free, "[volume, pressure], not falling"), start,
			}},
		{Name: "brake_cylinder", Gives: "Pa", Read: readCylinder, Adds: adds{{Key: "p", Unit: "Pa", Meaning: "pressure"}},
			Parameters: parameters{
				over("demand", "Pa", "", free, "pressure that the brake asks for"),
				over("hold", "1", "0", share, "hold valve; 1: closed"),
				over("vent", "1", "0", share, "vent valve; 1: open"),
				number("T_fill", "s", "", positive, "time constant of filling"),
				number("T_release", "s", "T_vent", positive, "time constant of releasing"),
				number("T_vent", "s", "", positive, "time constant of venting"),
				number("p_start", "Pa", "0", notNegative, "pressure at the start"),
			}},
	}
}

// readActuator reads an actuator: the current of a solenoid determines the pressure at a piston.
//
// pressure_map gives the pressure of the valve over the current, with dead band and saturation. lag is a
// first-order lag of the spool, hysteresis twice its dry friction:
//
//	lag·p_valve' = (p_map - p_valve) beyond ±hysteresis/2        p_out = min(p_valve, line_pressure)
//
// With fill_volume, oil flows to the piston and fills it from fill_pressure to kiss_pressure, where the
// plates touch. Above, the pressure rises with the stiffness of the pack:
//
//	V' = flow·dp/(dp² + flow_range²)^(1/4),  dp = p_out - p(V)
//
// where flow_range, a pressure, bounds the slope at dp = 0. The signal with the element's name is the
// pressure at the piston.
func readActuator(e *element.Element) element.Declared {
	current := network.SignalOf(e.Waveform("current"))
	t := e.Table("pressure_map")
	valve := e.NameLaw("p_map", law.Formula("pressure_map(current)", law.Names{"pressure_map": t, "current": current}))
	e.Own().MaxAbs = network.Largest(t.Z)
	if lag := e.Number("lag"); lag > 0 {
		start := t.Z[0]
		if e.Has("p_start") {
			start = e.Number("p_start")
		}
		valve = addSpool(e, valve, lag, start)
	} else {
		e.Forbid("goes with lag above 0", "hysteresis")
	}
	e.NameForm("p_valve", valve)
	if line := e.OptionalWaveform("line_pressure"); line != nil {
		valve = e.NameLaw("p_out", law.Formula("min(p_valve, line_pressure)", law.Names{"p_valve": valve, "line_pressure": line}))
	} else {
		e.NameForm("p_out", valve)
	}
	if e.Has("fill_volume") {
		fillPiston(e, valve, t)
	} else {
		if !(e.Number("lag") > 0) {
			e.Forbid("goes with lag above 0 or fill_volume", "p_start")
		}
		e.Forbid("goes with fill_volume", "fill_pressure", "kiss_pressure", "stiffness", "flow", "flow_range")
		e.OwnLaw(law.Of(valve))
	}

	return element.Declared{}
}

// addSpool makes the pressure of the valve a state that follows the map with a lag, where the difference exceeds
// the friction of the spool.
func addSpool(e *element.Element, wanted network.Form, lag, start float64) network.Form {
	s := network.State{Name: "p_valve", Start: start}
	width := e.Number("hysteresis")
	if width == 0 {
		return e.AddLag(s, wanted, lag)
	}
	i := e.AddState(s)
	missing := wanted.Plus(network.StateOf(i).Scaled(-1))
	held := e.AddLaw("held", "Pa", law.Formula("max(min(missing, high), low)",
		law.Names{"missing": missing, "low": -width / 2, "high": width / 2})) // constant while the spool moves
	e.Network.States[i].Der = missing.Plus(held.Scaled(-1)).Scaled(1 / lag)
	return network.StateOf(i)
}

// fillPiston adds the piston: the volume V is a state, the pressure is p(V). The pressure of the valve
// is that of a map.
func fillPiston(e *element.Element, valve network.Form, pressures model.Table) {
	volume, low, kiss := e.Number("fill_volume"), e.Number("fill_pressure"), e.Number("kiss_pressure")
	if !(kiss >= low) {
		e.Refuse(e.Place("kiss_pressure"), "kiss_pressure %s is below fill_pressure %s",
			units.Format(kiss, "Pa"), units.Format(low, "Pa"))
	}
	stiff := e.Number("stiffness")
	p := model.Table{Extend: true, X: []float64{-volume, 0, volume, 2 * volume},
		Z: []float64{low - stiff*volume, low, kiss, kiss + stiff*volume}}
	start := 0.0 // empty
	if e.Has("p_start") {
		switch p := e.Number("p_start"); {
		case p >= kiss:
			start = volume + (p-kiss)/stiff
		case p > low:
			start = volume * (p - low) / (kiss - low)
		default:
			start = (p - low) / stiff
		}
	}
	state := e.AddState(network.State{Name: "V", Start: start})
	V := e.NameForm("V", network.StateOf(state))
	e.OwnLaw(law.Formula("p(V)", law.Names{"p": p, "V": V, "stiffness": stiff, "fill_volume": volume}))
	most := network.Largest(pressures.Z) + kiss
	missing := valve.Plus(network.SignalOf(e.OwnSignal).Scaled(-1))
	dp, flow, around := law.Of(missing).Within(-most, most), e.Number("flow")/math.Sqrt(1e5), e.Number("flow_range")
	largest := flow * most / math.Sqrt(math.Hypot(most, around))
	Q := law.Formula("flow*dp/sqrt(sqrt(dp*dp + flow_range*flow_range))", law.Names{"flow": flow, "dp": dp, "flow_range": around}).
		Within(-largest, largest).WithSlope(missing, flow/math.Sqrt(around)) // steepest at dp = 0
	e.Network.States[state].Der = e.NameLaw("Q", Q)
}

// readCylinder reads a brake cylinder behind the two magnet valves of a wheel slide protection.
// Without current the pressure follows the demand:
//
//	p' = (1 - hold)·(1 - vent)·(demand - p)/T - vent·p/T_vent
//
// with T = T_fill while the demand is above p, otherwise T_release. p, relative to the atmosphere, is
// the signal with the element's name. Filling from 0 to 90 % of the demand takes 2.3·T_fill, venting
// to 10 % takes 2.3·T_vent, so a brake test gives these times.
func readCylinder(e *element.Element) element.Declared {
	asked := e.Waveform("demand")
	vent, fill, start := e.Number("T_vent"), e.Number("T_fill"), e.Number("p_start")
	release := e.NumberOr("T_release", vent)
	hold, open := readOpening(e, "hold"), readOpening(e, "vent")
	i := e.AddState(network.State{Name: "p", Start: start})
	e.ReadStart("p_start", network.StartCondition{State: 1 + i})
	p := network.StateOf(i)
	most := max(start, e.Network.MaxAbs(asked))
	const formula = "where(missing, missing/T_fill, missing/T_release)*(1 - hold)*(1 - vent) - vent*p/T_vent"
	rate := law.Formula(formula, law.Names{
		"missing": law.Of(network.SignalOf(asked).Plus(p.Scaled(-1))).Within(-most, most), "p": law.Of(p).Within(0, most),
		"T_fill": fill, "T_release": release, "T_vent": vent, "hold": hold, "vent": open})
	e.Network.States[i].Der = e.AddLaw("rate", "Pa/s", rate)
	e.OwnLaw(law.Of(p))
	e.Own().MaxAbs = most
	return element.Declared{}
}
