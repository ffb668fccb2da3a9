package signal

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Formulas of the blocks with an output of 0 or 1. A truth value is true from 0.5 on.
var (
	ofTruths = map[string]string{
		"and": "where(min(u1, u2) - 0.5, 1, 0)", "or": "where(max(u1, u2) - 0.5, 1, 0)",
		"xor": "where(abs(u1 - u2) - 0.5, 1, 0)",
	}
	ofValues = map[string]string{
		"greater": "where(u2 - u1 + tolerance, 0, 1)", "greater_equal": "where(u1 - u2 + tolerance, 1, 0)",
		"less": "where(u1 - u2 + tolerance, 0, 1)", "less_equal": "where(u2 - u1 + tolerance, 1, 0)",
	}
)

func logicKinds() []element.Kind {
	truth := func(key, meaning string) element.Parameter { return over(key, "1", "", unbounded, meaning) }
	truths := parameters{truth("u1", "first truth value"), truth("u2", "second truth value")}
	values := parameters{over("u1", own, "", unbounded, "first value"), over("u2", "of u1", "", unbounded, "second value")}
	kinds := []element.Kind{
		{Name: "switch", Gives: "of u1", GivesAs: first("u1", "u3"), Read: readSwitch,
			Parameters: parameters{over("u1", own, "", unbounded, "value while u2 is true"),
				truth("u2", "truth value"), over("u3", "of u1", "", unbounded, "value while u2 is false")}},
		{Name: "hysteresis", Gives: "1", Read: readHysteresis,
			Parameters: parameters{input,
				number("uLow", ofU, "", unbounded, "threshold below which the output becomes 0"),
				number("uHigh", ofU, "", unbounded, "threshold above which the output becomes 1"),
				element.Flag("pre_y_start", "false", "output at the start, where u is between the thresholds")}},
		{Name: "not", Gives: "1", Read: readNot, Parameters: parameters{truth("u", "truth value")}},
	}
	for _, name := range []string{"and", "or", "xor"} {
		kinds = append(kinds, element.Kind{Name: name, Gives: "1", Read: readTruths, Parameters: truths})
	}
	for _, name := range []string{"greater", "greater_equal", "less", "less_equal"} {
		kinds = append(kinds, element.Kind{Name: name, Gives: "1", Read: readComparison, Parameters: values})
	}
	return kinds
}

// readSwitch reads y = u1 while u2 is true, otherwise u3.
func readSwitch(e *element.Element) element.Declared {
	e.SetUnit(e.Own().Unit.SI, "u1", "u3")
	e.OwnLaw(law.Formula("where(u2 - 0.5, u1, u3)", law.Names{"u1": network.SignalOf(e.Waveform("u1")),
		"u2": network.SignalOf(e.Waveform("u2")), "u3": network.SignalOf(e.Waveform("u3"))}))
	return element.Declared{}
}

// readHysteresis reads a truth value that becomes 1 above uHigh and 0 below uLow.
func readHysteresis(e *element.Element) element.Declared {
	u, of := e.Measured("u")
	e.SetUnit(of.SI, "uLow", "uHigh")
	e.Entry("uLow")
	low, high := readLimits(e, "uHigh", "uLow")
	names := law.Names{"above": u.Plus(network.One(-(low + high) / 2)), "half": (high - low) / 2}
	if e.Flag("pre_y_start") { // a latch starts at +1
		truthOf(e, law.Formula("(1 + latch(above, half))/2", names))
	} else {
		truthOf(e, law.Formula("(1 - latch(-above, half))/2", names))
	}
	return element.Declared{}
}

// truthOf makes the output a truth value.
func truthOf(e *element.Element, y *law.Expr) {
	e.OwnLaw(y)
	e.Own().SetRange(0, 1)
}

// readNot reads y = 1 while u is false.
func readNot(e *element.Element) element.Declared {
	truthOf(e, law.Formula("where(u - 0.5, 0, 1)", law.Names{"u": network.SignalOf(e.Waveform("u"))}))
	return element.Declared{}
}

// readTruths reads a function of two truth values.
func readTruths(e *element.Element) element.Declared {
	truthOf(e, law.Formula(ofTruths[e.Kind.Name], pair(e)))
	return element.Declared{}
}

// readComparison reads a comparison of two values.
func readComparison(e *element.Element) element.Declared {
	u, _ := e.UnitGiven("u1", "u2")
	e.SetUnit(u.SI, "u1", "u2")
	names := pair(e)
	size := 0.0
	for _, u := range names {
		if low, high := e.Network.Range(u.(network.Form).Index()); !math.IsInf(low, 0) && !math.IsInf(high, 0) {
			size = max(size, math.Abs(low), math.Abs(high))
		}
	}
	if size == 0 { // neither range is known
		size = 1
	}
	names["tolerance"] = relativeTolerance * size
	truthOf(e, law.Formula(ofValues[e.Kind.Name], names))
	return element.Declared{}
}

// relativeTolerance is the difference below which two values count as equal, over the largest value of the
// known ranges: above the tolerance of an event indicator, so that a gear of 2 is not greater than 2.
const relativeTolerance = 1e-9

func pair(e *element.Element) law.Names {
	return law.Names{"u1": network.SignalOf(e.Waveform("u1")), "u2": network.SignalOf(e.Waveform("u2"))}
}
