package machine

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func electricMachine() element.Kind {
	number, over := element.AsNumber.Of, element.OverTime.Of
	factor, temperature := element.FactorParameters("torque limits")
	return element.Kind{Name: "electric_machine", Flanges: element.OnSupport(network.Rotational), Read: readElectricMachine,
		Adds: []element.Quantity{{Key: "tau_limited", Unit: "N.m", Meaning: "command within the limits"},
			{Key: "tau", Unit: "N.m", Meaning: "torque of the machine, with the lag"},
			{Key: "P_el", Unit: "W", Meaning: "electrical power that it draws; negative: it generates"}, element.LossQuantity},
		Parameters: []element.Parameter{
			over("tau_ref", "N.m", "", element.Any, "torque command"),
			number("delay", "s", "0", element.NotNegative, "dead time of the command, at least one step"),
			element.AsRows.Of("tau_max", "rad/s, N.m", "or tau_map", element.NotNegative, "[speed, largest torque]"),
			element.AsRows.Of("tau_min", "rad/s, N.m", "-tau_max", element.Any, "[speed, least torque], with tau_max"),
			element.AsMap.Of("tau_map", "rad/s, V, N.m", "or tau_max", element.NotNegative,
				"{w: [...], voltage: [...], tau: [[...], ...]}, torque limit over the size of the speed and the voltage"),
			over("voltage", "V", "with tau_map", element.NotNegative, "voltage of the supply, such as a battery"),
			factor, temperature,
			number("lag", "s", "0", element.NotNegative, "time constant of the torque").Within(1e-9, 0),
			number("rate", "N.m/s", "none", element.Positive, "largest change of the torque per time, with lag"),
			element.AsMap.Of("losses", "rad/s, N.m, W", "0", element.NotNegative,
				"{w: [...], tau: [...], P: [[...], ...]}, loss over the sizes of speed and torque"),
			element.HeatParameter(),
		}}
}

func battery() element.Kind {
	return element.Kind{Name: "battery", Gives: "V", Read: readBattery,
		Adds: []element.Quantity{{Key: "soc", Unit: "1", Meaning: "state of charge"},
			{Key: "I", Unit: "A", Meaning: "current; negative: it charges"},
			{Key: "P_max", Unit: "W", Meaning: "largest power that it delivers"},
			{Key: "shortage", Unit: "W", Meaning: "power that is asked for beyond P_max"}, element.LossQuantity},
		Parameters: []element.Parameter{
			element.OverTime.Of("power", "W", "", element.Any, "power that the consumers draw; negative: it charges"),
			element.NumberRows.Of("U0", "1, V", "", element.Positive, "open-circuit voltage; [state of charge, voltage]"),
			element.NumberRows.Of("R", "1, V/A", "", element.Positive, "internal resistance; [state of charge, resistance]").Within(1e-9, 1e6),
			element.AsNumber.Of("capacity", "A.s", "", element.Positive, "charge from empty to full"),
			element.AsNumber.Of("soc_start", "1", "0.5", element.Share, "state of charge at the start"),
			element.HeatParameter(),
		}}
}

// readElectricMachine reads a machine with its inverter: the command of a dead time before, limited by speed, voltage and
// temperature, is the torque after a lag and at a limited rate.
func readElectricMachine(e *element.Element) element.Declared {
	w := e.Between.Speeds(1)
	low, high := readTorqueLimits(e, w)
	if factor, _ := e.TemperatureFactor(); factor != nil {
		low = law.Formula("factor*limit", law.Names{"factor": factor, "limit": low})
		high = law.Formula("factor*limit", law.Names{"factor": factor, "limit": high})
	}
	wanted := network.SignalOf(e.Waveform("tau_ref"))
	if late := e.Number("delay"); late > 0 {
		y := network.Add(&e.Network.States, network.State{Name: e.Name + ".tau_ref", Unit: "N.m", At: e.At})
		e.AddDelay(y, wanted, late, "N.m/s")
		wanted = network.StateOf(y)
	}
	tau := e.NameLaw("tau_limited", law.Formula("max(min(tau_ref, high), low)",
		law.Names{"tau_ref": wanted, "low": low, "high": high}))
	if lag := e.Number("lag"); lag > 0 {
		tau = addInverter(e, tau, lag)
	} else {
		e.Forbid("goes with lag above 0", "rate")
	}
	e.NameForm("tau", tau)
	loss := law.Number(0)
	if e.Has("losses") {
		loss = law.Formula("losses(abs(w), abs(tau))", law.Names{"w": w, "tau": tau,
			"losses": firstQuadrant(e, "losses", "w", "tau", "P")})
	} else {
		e.Forbid("goes with losses", "heat_port") // factor_T then has its temperature
	}
	e.AddLoss(loss.WithoutSlopes())
	e.NameLaw("P_el", law.Formula("tau*w + loss", law.Names{"tau": tau, "w": w, "loss": loss}).WithoutSlopes())
	return e.Drive(tau)
}

// addInverter makes the torque a state that follows the command with a lag, at most at a rate.
func addInverter(e *element.Element, wanted network.Form, lag float64) network.Form {
	s := network.State{Name: "tau"}
	if !e.Has("rate") {
		return e.AddLag(s, wanted, lag)
	}
	i, rate := e.AddState(s), e.Number("rate")
	tau := network.StateOf(i)
	e.LimitRate(i, wanted.Plus(tau.Scaled(-1)).Scaled(1/lag), "N.m/s", -rate, rate)
	return tau
}

// readTorqueLimits reads the least and the largest torque at the speed w.
func readTorqueLimits(e *element.Element, w network.Form) (low, high *law.Expr) {
	if e.Has("tau_max") == e.Has("tau_map") {
		e.Refuse(e.At, "electric_machine needs either tau_max (rows of speed and torque) or tau_map (over speed and voltage)")
	}
	if e.Has("tau_map") {
		e.Forbid("goes with tau_max", "tau_min")
		t := firstQuadrant(e, "tau_map", "w", "voltage", "tau")
		high = law.Formula("tau_map(abs(w), voltage)", law.Names{"tau_map": t, "w": w, "voltage": network.SignalOf(e.Waveform("voltage"))})
		return law.Formula("-high", law.Names{"high": high}), high
	}
	e.Forbid("goes with tau_map", "voltage")
	t := e.Table("tau_max")
	high = law.Lookup(t, law.Of(w))
	if !e.Has("tau_min") {
		return law.Formula("-high", law.Names{"high": high}), high
	}
	least := e.Table("tau_min")
	if most := slices.Max(least.Z); !(most <= 0) {
		e.Refuse(e.Place("tau_min"), "tau_min: %s is positive; the least torque is 0 or negative", units.Format(most, "N.m"))
	}
	return law.Lookup(least, law.Of(w)), high
}

// firstQuadrant reads a map of two sizes, whose axes begin at 0 or above.
func firstQuadrant(e *element.Element, key, x, y, z string) model.Table {
	t := e.Map2(key, [3]string{x, y, z})
	for _, axis := range []struct {
		name  string
		first float64
	}{{x, t.X[0]}, {y, t.Y[0]}} {
		if !(axis.first >= 0) {
			e.Refuse(e.Place(key), "%s: %s begins at %g; the map is over sizes, from 0 or above", key, axis.name, axis.first)
		}
	}
	if least := slices.Min(t.Z); !(least >= 0) {
		e.Refuse(e.Place(key), "%s: %s %g is negative", key, z, least)
	}
	return t
}

// readBattery reads a source with the open-circuit voltage U0 and the resistance R, both over the state of charge. The
// current I is the smaller root of
//
//	(U0 - R·I)·I = P,  I = 2·P/(U0 + sqrt(U0² - 4·R·P))
//
// and soc' = -I/capacity. From P_max = U0²/(4·R) on there is no root: the battery then delivers P_max.
func readBattery(e *element.Element) element.Declared {
	i := e.AddState(network.State{Name: "soc", Start: e.Number("soc_start")})
	e.ReadStart("soc_start", network.StartCondition{State: 1 + i})
	soc := law.Of(network.StateOf(i)).Within(0, 1)
	open, resistance := e.NumberOrTable("U0"), e.NumberOrTable("R")
	power := e.Waveform("power")
	most, least := 0.0, math.Inf(1) // P_max, U0
	for _, x := range slices.Concat(open.X, resistance.X) {
		u := open.At(x)
		most, least = max(most, u*u/(4*resistance.At(x))), min(least, u)
	}
	e.DeferCheck(func() {
		if low, _ := e.Network.Range(power); low >= most && !math.IsInf(low, 0) {
			e.Refuse(e.Place("power"), "power is at least %s; U0 and R allow %s at most", units.Format(low, "W"), units.Format(most, "W"))
		}
	})
	P := network.SignalOf(power)
	names := law.Names{"U0": law.Lookup(open, soc), "R": law.Lookup(resistance, soc), "P": P}
	names["most"] = law.Formula("U0*U0/(4*R)", names)
	names["delivered"] = law.Formula("min(P, most)", names)
	// Near P_max the root is steep; up to three quarters of it the slope is at most 2/U0.
	current := law.Formula("2*delivered/(U0 + sqrt(U0*U0 - 4*R*delivered))", names).WithCombinedSlope(P, 2/least).WithoutSlopes()
	I := e.NameLaw("I", current)
	names["I"] = I
	e.NameLaw("P_max", law.Formula("most", names).WithoutSlopes())
	e.NameLaw("shortage", law.Formula("P - delivered", names).WithoutSlopes())
	e.OwnLaw(law.Formula("U0 - R*I", names).WithCombinedSlope(I, network.Largest(resistance.Z)).WithoutSlopes())
	e.Own().MaxAbs = network.Largest(open.Z)
	e.Network.States[i].Der = I.Scaled(-1 / e.Number("capacity"))
	e.AddLoss(law.Formula("R*I*I", names).WithoutSlopes())
	return element.Declared{}
}
