// Package signal owns the element types that make signals from signals: gains, sums, controllers,
// limiters, maps, switches and logic, with the names and meanings of Modelica.Blocks. They have no
// flanges. The unit of a block follows from the units of its keys.
//
// Linear continuous blocks are states of the matrices of the plant. Static nonlinear blocks are laws
// with events at their breakpoints. Sampled blocks are states that are set at ticks.
//
// Reading order: signal.go (the list of the types, units), linear.go, nonlinear.go, logic.go, sampled.go.
package signal

import (
	"slices"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	return slices.Concat(linearKinds(), nonlinearKinds(), logicKinds(), sampledKinds())
}

type (
	parameters = []element.Parameter
	adds       = []element.Quantity
)

// Bounds of parameters.
const (
	unbounded   = element.Any
	positive    = element.Positive
	notNegative = element.NotNegative
)

// Units that follow from the units of other keys.
const (
	own  = "any unit"
	ofU  = "of u"
	ofY  = "of y"
	ofKU = "of k times u"
	ofYs = "of y per s"
)

var number, over, rows = element.AsNumber.Of, element.OverTime.Of, element.AsRows.Of

// Parameters that several types share.
var (
	input = over("u", own, "", unbounded, "input")
	gain  = number("k", own, "1", unbounded, "gain")
	start = number("y_start", ofY, "0", unbounded, "output at the start")
	state = adds{{Key: "y", Unit: ofY, Meaning: "output as a state"}}
)

// first returns the unit of the first of the keys with a unit.
func first(keys ...string) func(e *element.Element) (units.Unit, element.UnitState) {
	return func(e *element.Element) (units.Unit, element.UnitState) { return e.UnitGiven(keys...) }
}

// scaled returns the unit of k times u, or of a key that has the unit of the output.
func scaled(u string, outputs ...string) func(e *element.Element) (units.Unit, element.UnitState) {
	return func(e *element.Element) (units.Unit, element.UnitState) {
		if y, s := e.UnitGiven(outputs...); s == element.UnitKnown {
			return y, s
		}
		of, s := e.UnitGiven(u)
		return product(e, gainUnit(e), of, false), s
	}
}

// gainUnit returns the unit of the key k; 1 for a number without a unit.
func gainUnit(e *element.Element) units.Unit {
	k, _ := e.UnitGiven("k")
	return k
}

// product returns the unit of a product, or of a quotient.
func product(e *element.Element, u, f units.Unit, over bool) units.Unit {
	p, err := u.Product(f, over)
	if err != nil {
		e.Refuse(e.At, "the unit of its output: %s", units.Reason(err))
	}
	return p
}

// seconds is the unit of time.
var seconds = units.Want("s").Unit

// rate returns the unit of the derivative of a quantity.
func rate(e *element.Element, u units.Unit) units.Unit { return product(e, u, seconds, true) }

// readGained reads k and u, checks that k·u has the unit of the output, and returns them.
func readGained(e *element.Element, key string) (k float64, u network.Form) {
	u, of := e.Measured(key)
	k = readGain(e, product(e, e.Own().Unit, of, true))
	return k, u
}

// readGain reads the key k in a unit. It can be left out where that unit is 1.
func readGain(e *element.Element, unit units.Unit) float64 {
	if !e.Has("k") && unit.Dim != (units.Dim{}) {
		e.Refuse(e.At, "k is missing; the units of its input and output want k in %s", unit.SI)
	}
	e.SetUnit(unit.SI, "k")
	e.ForbidCelsius("k")
	return e.Number("k")
}
