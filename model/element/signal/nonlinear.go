package signal

import (
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func nonlinearKinds() []element.Kind {
	limits := parameters{
		number("uMax", ofU, "", unbounded, "upper limit"),
		number("uMin", ofU, "-uMax", unbounded, "lower limit"),
	}
	limited := append(parameters{input}, limits...)
	return []element.Kind{
		{Name: "product", Gives: "of the product", GivesAs: multiplied, Read: readProduct,
			Parameters: parameters{element.ListOverTime.Of("u", own, "", unbounded, "[u1, u2, ...], inputs")}},
		{Name: "division", Gives: "of u1 over u2", GivesAs: divided, Read: readDivision,
			Parameters: parameters{over("u1", own, "", unbounded, "numerator"), over("u2", own, "", unbounded, "denominator")}},
		{Name: "limiter", Gives: ofU, GivesAs: first("u", "uMax", "uMin"), Read: readLimiter, Parameters: limited},
		{Name: "dead_zone", Gives: ofU, GivesAs: first("u", "uMax", "uMin"), Read: readDeadZone, Parameters: limited},
		{Name: "slew_rate_limiter", Gives: ofU, GivesAs: first("u", "y_start"), Adds: state, Read: readSlewRate,
			Parameters: parameters{input,
				number("Rising", ofYs, "", positive, "largest slope"),
				number("Falling", ofYs, "-Rising", unbounded, "least slope, below 0"),
				number("Td", "s", "", positive, "time constant with which the output follows within these slopes"), start}},
		{Name: "combi_table_1ds", Gives: "of the table", GivesAs: tabled, Read: readTable1,
			Parameters: parameters{input, rows("table", ofU+", "+own, "", unbounded, "[u, y]")}},
		{Name: "combi_table_2ds", Gives: "of the table", GivesAs: mapped, Read: readTable2,
			Parameters: parameters{
				over("u1", own, "", unbounded, "input of the rows"), over("u2", own, "", unbounded, "input of the columns"),
				element.AsMap.Of("table", "of u1, of u2, any unit", "", unbounded,
					"{u1: [...], u2: [...], y: [[...], ...]}, a row of y for each u1")}},
		{Name: "lim_pid", Gives: ofKU + "_s", GivesAs: scaled("u_s", "yMax", "yMin"), Read: readPID,
			Adds: adds{{Key: "xi", Unit: ofU, Meaning: "integral over Ti, with Ti"},
				{Key: "xd", Unit: ofU, Meaning: "filtered input of the derivative, with Td"}},
			Parameters: parameters{
				over("u_s", own, "", unbounded, "setpoint"), over("u_m", "of u_s", "", unbounded, "measured value"), gain,
				number("Ti", "s", "none", positive, "time constant of the integral; none: no integral"),
				number("Td", "s", "0", notNegative, "time constant of the derivative; 0: no derivative").Within(1e-9, 0),
				number("yMax", ofY, "", unbounded, "upper limit"),
				number("yMin", ofY, "-yMax", unbounded, "lower limit"),
				number("wp", "1", "1", notNegative, "weight of the setpoint in the proportional part").Within(0, 1e3),
				number("wd", "1", "0", notNegative, "weight of the setpoint in the derivative, with Td").Within(0, 1e3),
				number("Ni", "1", "0.9", positive, "time constant of the anti-windup over Ti, with Ti").Within(1e-3, 1e3),
				number("Nd", "1", "10", positive, "Td over the time constant of the filter, with Td").Within(1e-3, 1e6),
				number("xi_start", "of u_s", "0", unbounded, "integral at the start, with Ti"),
				number("xd_start", "of u_s", "0", unbounded, "filtered input at the start, with Td"),
			}},
	}
}

// multiplied returns the unit of a product of the inputs u; it is open while that of one input is.
func multiplied(e *element.Element) (y units.Unit, all element.UnitState) {
	y, all = units.SIUnit(units.Dim{}), element.UnitKnown
	for _, g := range e.Items(e.Fields["u"], "u") {
		switch u, s := e.ValueUnit(g, e.What()+": u"); s {
		case element.UnitKnown:
			y = product(e, y, u, false)
		case element.UnitOpen:
			all = s
		}
	}
	return y, all
}

// readProduct reads y = u1·u2·...
func readProduct(e *element.Element) element.Declared {
	e.ForbidCelsius("u")
	y, f := law.Number(1), e.Entry("u")
	items := e.Items(f, "u")
	if len(items) < 2 {
		e.Refuse(f.At, "a product of %d inputs; at least two are wanted", len(items))
	}
	for i, g := range items {
		y = law.Formula("y*u", law.Names{"y": y, "u": e.MeasuredItem("u", i, g)})
	}
	e.OwnLaw(y)
	return element.Declared{}
}

// divided returns the unit of u1/u2; it is open while that of u1 or u2 is.
func divided(e *element.Element) (units.Unit, element.UnitState) {
	a, s := e.UnitGiven("u1")
	b, t := e.UnitGiven("u2")
	if s == element.UnitOpen || t == element.UnitOpen {
		return product(e, a, b, true), element.UnitOpen
	}
	return product(e, a, b, true), element.UnitKnown
}

// readDivision reads y = u1/u2.
func readDivision(e *element.Element) element.Declared {
	e.ForbidCelsius("u1", "u2")
	a, _ := e.Measured("u1")
	b, _ := e.Measured("u2")
	refuse := func(error) {
		e.Refuse(e.Place("u2"), "u2 may be 0; divide by an input whose min and max exclude 0, or by a limiter")
	}
	e.DeferCheck(func() {
		if low, high := e.Network.Range(b.Index()); !(low > 0 || high < 0) {
			refuse(nil)
		}
	})
	e.DeferLaw(e.OwnSignal, law.Owner{Name: e.Name, At: e.At}, law.Formula("u1/u2", law.Names{"u1": a, "u2": b}), refuse)
	return element.Declared{}
}

// readLimits reads an upper limit, and a lower one that is its negative if omitted.
func readLimits(e *element.Element, upper, lower string) (low, high float64) {
	high = e.Number(upper)
	low = e.NumberOr(lower, -high)
	if !(low < high) {
		e.Refuse(e.Place(upper), "%s %s is not above %s %s", upper, units.Format(high, e.UnitOf(upper)),
			lower, units.Format(low, e.UnitOf(lower)))
	}
	return low, high
}

// readInput reads u in the unit of the output, and the limits.
func readInput(e *element.Element) (u network.Form, low, high float64) {
	e.SetUnit(e.Own().Unit.SI, "u", "uMax", "uMin")
	u = network.SignalOf(e.Waveform("u"))
	low, high = readLimits(e, "uMax", "uMin")
	return u, low, high
}

// readLimiter reads y = u between uMin and uMax.
func readLimiter(e *element.Element) element.Declared {
	u, low, high := readInput(e)
	e.OwnLaw(law.Formula("clamp(u, uMin, uMax)", law.Names{"u": u, "uMin": low, "uMax": high}))
	e.Own().SetRange(low, high)
	return element.Declared{}
}

// readDeadZone reads y = u - uMax above uMax, u - uMin below uMin, otherwise 0.
func readDeadZone(e *element.Element) element.Declared {
	u, low, high := readInput(e)
	zone := element.DeadZone(low, high)
	e.OwnLaw(law.Formula("zone(u)", law.Names{"zone": zone, "u": u, "uMax": high, "uMin": low}))
	return element.Declared{}
}

// readSlewRate reads y' = (u - y)/Td, between Falling and Rising.
func readSlewRate(e *element.Element) element.Declared {
	unit := e.Own().Unit
	e.SetUnit(unit.SI, "u")
	e.SetUnit(rate(e, unit).SI, "Rising", "Falling")
	u := network.SignalOf(e.Waveform("u"))
	low, high := readLimits(e, "Rising", "Falling")
	if !(low < 0) {
		e.Refuse(e.Place("Falling"), "Falling %s is not below 0", units.Format(low, rate(e, unit).SI))
	}
	i := addState(e, unit, "y", "y_start")
	y := network.StateOf(i)
	e.LimitRate(i, u.Plus(y.Scaled(-1)).Scaled(1/e.Number("Td")), rate(e, unit).SI, low, high)
	e.OwnForm(y)
	return element.Declared{}
}

// tabled returns the unit of the last column of a table.
func tabled(e *element.Element) (units.Unit, element.UnitState) {
	return e.ColumnUnit("table"), element.UnitKnown
}

// readTable1 reads a map of u: linear between its rows, constant outside.
func readTable1(e *element.Element) element.Declared {
	u, of := e.Measured("u")
	e.SetUnit(of.SI+", "+e.Own().Unit.SI, "table")
	t := e.Table("table")
	e.OwnLaw(law.Lookup(t, law.Of(u)))
	e.Own().MaxAbs = network.Largest(t.Z)
	return element.Declared{}
}

// mapKeys are the keys of a map of two inputs.
var mapKeys = [3]string{"u1", "u2", "y"}

// mapped returns the unit of the values of a map.
func mapped(e *element.Element) (units.Unit, element.UnitState) {
	what := e.What() + ": table"
	f, ok := e.Fields["table"]
	if ok {
		if f, ok = e.Section(f, what, mapKeys[:]...)["y"]; ok {
			if u, s := e.ValueUnit(f, what); s == element.UnitKnown {
				return u, s
			}
		}
	}
	return units.SIUnit(units.Dim{}), element.UnitKnown
}

// readTable2 reads a map of u1 and u2: bilinear between its points, constant outside.
func readTable2(e *element.Element) element.Declared {
	a, ofA := e.Measured("u1")
	b, ofB := e.Measured("u2")
	e.SetUnit(ofA.SI+", "+ofB.SI+", "+e.Own().Unit.SI, "table")
	t := e.Map2("table", mapKeys)
	e.OwnLaw(law.Formula("table(u1, u2)", law.Names{"table": t, "u1": a, "u2": b}))
	e.Own().MaxAbs = network.Largest(t.Z)
	return element.Declared{}
}

// readPID reads LimPID of the Modelica library: with e = u_s - u_m,
//
//	raw = k·(wp·u_s - u_m + xi + D)     y = raw between yMin and yMax
//	xi' = (e + (y - raw)/(k·Ni))/Ti     D = Nd·(v - xd), xd' = Nd/Td·(v - xd), v = wd·u_s - u_m
//
// (y - raw)/(k·Ni) is the anti-windup.
func readPID(e *element.Element) element.Declared {
	s, of := e.Measured("u_s")
	e.SetUnit(of.SI, "u_m", "xi_start", "xd_start")
	e.SetUnit(e.Own().Unit.SI, "yMax", "yMin")
	m := network.SignalOf(e.Waveform("u_m"))
	k := readGain(e, product(e, e.Own().Unit, of, true))
	low, high := readLimits(e, "yMax", "yMin")
	if k == 0 {
		e.Refuse(e.Place("k"), "k is zero; the anti-windup divides by it")
	}
	raw := s.Scaled(e.Number("wp")).Plus(m.Scaled(-1))
	Td := e.Number("Td")
	if Td > 0 {
		Nd, i := e.Number("Nd"), addState(e, of, "xd", "xd_start")
		v := s.Scaled(e.Number("wd")).Plus(m.Scaled(-1)).Plus(network.StateOf(i).Scaled(-1))
		e.Network.States[i].Der = v.Scaled(Nd / Td)
		e.NameForm("xd", network.StateOf(i))
		raw = raw.Plus(v.Scaled(Nd))
	} else {
		e.Forbid("goes with Td above 0", "Nd", "wd", "xd_start")
	}
	integral := -1
	if e.Has("Ti") {
		integral = addState(e, of, "xi", "xi_start")
		raw = raw.Plus(e.NameForm("xi", network.StateOf(integral)))
	} else {
		e.Forbid("goes with Ti", "Ni", "xi_start")
	}
	raw = raw.Scaled(k)
	e.OwnLaw(law.Formula("clamp(raw, yMin, yMax)", law.Names{"raw": raw, "yMin": low, "yMax": high}))
	e.Own().SetRange(low, high)
	if integral >= 0 {
		over := network.SignalOf(e.OwnSignal).Plus(raw.Scaled(-1)).Scaled(1 / (k * e.Number("Ni")))
		e.Network.States[integral].Der = s.Plus(m.Scaled(-1)).Plus(over).Scaled(1 / e.Number("Ti"))
	}
	return element.Declared{}
}
