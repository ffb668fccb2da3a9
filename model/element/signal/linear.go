package signal

import (
	"math"
	"slices"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

func linearKinds() []element.Kind {
	T := number("T", "s", "", positive, "time constant")
	return []element.Kind{
		{Name: "gain", Gives: ofKU, GivesAs: scaled("u"), Read: readGainBlock,
			Parameters: parameters{number("k", own, "", unbounded, "gain"), input}},
		{Name: "sum", Gives: ofU, GivesAs: first("u"), Read: readSum,
			Parameters: parameters{
				element.ListOverTime.Of("u", own, "", unbounded, "[u1, u2, ...], inputs of one unit"),
				element.AsList.Of("k", "1", "1", unbounded, "[k1, k2, ...], factor of each input"),
			}},
		{Name: "integrator", Gives: ofKU + " times s", GivesAs: integrated, Adds: state, Read: readIntegrator,
			Parameters: parameters{gain, input, start,
				over("reset", "1", "none", unbounded, "truth value; where a tick finds it newly true, y becomes set"),
				over("set", ofY, "y_start", unbounded, "output after a reset, with reset")}},
		{Name: "first_order", Gives: ofKU, GivesAs: scaled("u", "y_start"), Adds: state, Read: readFirstOrder,
			Parameters: parameters{gain, input, T, start}},
		{Name: "second_order", Gives: ofKU, GivesAs: scaled("u", "y_start"), Read: readSecondOrder,
			Adds: append(adds{{Key: "yd", Unit: ofYs, Meaning: "derivative of the output"}}, state...),
			Parameters: parameters{gain, input,
				number("w", "rad/s", "", positive, "natural angular frequency"),
				number("D", "1", "", notNegative, "damping ratio").Within(0, 1e6),
				start, number("yd_start", ofYs, "0", unbounded, "derivative of the output at the start")}},
		{Name: "derivative", Gives: ofKU + " per s", GivesAs: differentiated, Read: readDerivative,
			Adds: adds{{Key: "x", Unit: ofU, Meaning: "filtered input"}},
			Parameters: parameters{gain, input, T,
				number("x_start", ofU, "0", unbounded, "filtered input at the start")}},
		{Name: "pi", Gives: ofKU, GivesAs: scaled("u"), Read: readPI,
			Adds: adds{{Key: "x", Unit: ofU, Meaning: "integral of the input over T"}},
			Parameters: parameters{gain, input, T,
				number("x_start", ofU, "0", unbounded, "integral at the start")}},
	}
}

// readGainBlock reads y = k·u.
func readGainBlock(e *element.Element) element.Declared {
	k, u := readGained(e, "u")
	e.OwnForm(u.Scaled(k))
	return element.Declared{}
}

// readSum reads y = k1·u1 + k2·u2 + ... Where the factors add up to 1, y is a temperature if the inputs are;
// where they add up to 0, y is a difference. Otherwise an input cannot be in degC.
func readSum(e *element.Element) element.Declared {
	e.SetUnit(e.Own().Unit.SI, "u")
	n := len(e.Items(e.Entry("u"), "u"))
	k := slices.Repeat([]float64{1}, n)
	if e.Has("k") {
		k = e.Numbers("k")
	}
	if n == 0 {
		e.Refuse(e.Place("u"), "u is empty; the inputs to add are wanted")
	}
	if len(k) != n {
		e.Refuse(e.Place("k"), "%d factors k for %d inputs u; one for each is wanted", len(k), n)
	}
	weight := 0.0
	for _, k := range k {
		weight += k
	}
	if !(math.Abs(weight-1) < 1e-9) && !(math.Abs(weight) < 1e-9) {
		e.ForbidCelsius("u")
	}
	var y network.Form
	for i, u := range e.Waveforms("u") {
		y = y.Plus(network.SignalOf(u).Scaled(k[i]))
	}
	e.OwnForm(y)
	return element.Declared{}
}

// integrated returns the unit of k·u·s, or that of y_start.
func integrated(e *element.Element) (units.Unit, element.UnitState) {
	if y, s := e.UnitGiven("y_start"); s == element.UnitKnown {
		return y, s
	}
	u, s := e.UnitGiven("u")
	return product(e, product(e, gainUnit(e), u, false), seconds, false), s
}

// readIntegrator reads y' = k·u.
func readIntegrator(e *element.Element) element.Declared {
	u, of := e.Measured("u")
	k := readGain(e, product(e, rate(e, e.Own().Unit), of, true))
	i := addState(e, e.Own().Unit, "y", "y_start")
	e.Network.States[i].Der = u.Scaled(k)
	e.OwnForm(network.StateOf(i))
	if e.Has("reset") {
		readReset(e, i)
	} else {
		e.Forbid("goes with reset", "set")
	}
	return element.Declared{}
}

// addState makes a state with a start value in a key, both in a unit.
func addState(e *element.Element, unit units.Unit, name, key string) int {
	e.SetUnit(unit.SI, name, key)
	i := e.AddState(network.State{Name: name, Start: e.Number(key)})
	e.ReadStart(key, network.StartCondition{State: 1 + i})
	return i
}

// readFirstOrder reads T·y' = k·u - y.
func readFirstOrder(e *element.Element) element.Declared {
	k, u := readGained(e, "u")
	T, i := e.Number("T"), addState(e, e.Own().Unit, "y", "y_start")
	y := network.StateOf(i)
	e.Network.States[i].Der = u.Scaled(k / T).Plus(y.Scaled(-1 / T))
	e.OwnForm(y)
	return element.Declared{}
}

// readSecondOrder reads y” = w²·(k·u - y) - 2·D·w·y'.
func readSecondOrder(e *element.Element) element.Declared {
	k, u := readGained(e, "u")
	w, damping := e.Number("w"), e.Number("D")
	i, j := addState(e, e.Own().Unit, "y", "y_start"), addState(e, rate(e, e.Own().Unit), "yd", "yd_start")
	y, yd := network.StateOf(i), e.NameForm("yd", network.StateOf(j))
	e.Network.States[i].Der = yd
	e.Network.States[j].Der = u.Scaled(k * w * w).Plus(y.Scaled(-w * w)).Plus(yd.Scaled(-2 * damping * w))
	e.OwnForm(y)
	return element.Declared{}
}

// differentiated returns the unit of k·u/s.
func differentiated(e *element.Element) (units.Unit, element.UnitState) {
	u, s := e.UnitGiven("u", "x_start")
	return rate(e, product(e, gainUnit(e), u, false)), s
}

// readDerivative reads T·x' = u - x, y = k·x'.
func readDerivative(e *element.Element) element.Declared {
	u, of := e.Measured("u")
	k := readGain(e, product(e, e.Own().Unit, rate(e, of), true))
	T, i := e.Number("T"), addState(e, of, "x", "x_start")
	xd := u.Scaled(1 / T).Plus(network.StateOf(i).Scaled(-1 / T))
	e.Network.States[i].Der = xd
	e.OwnForm(xd.Scaled(k))
	return element.Declared{}
}

// readPI reads T·x' = u, y = k·(x + u).
func readPI(e *element.Element) element.Declared {
	u, of := e.Measured("u")
	k := readGain(e, product(e, e.Own().Unit, of, true))
	T, i := e.Number("T"), addState(e, of, "x", "x_start")
	e.Network.States[i].Der = u.Scaled(1 / T)
	e.OwnForm(network.StateOf(i).Scaled(k).Plus(u.Scaled(k)))
	return element.Declared{}
}
