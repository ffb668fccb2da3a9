package signal

import (
	"fmt"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// maxOrder is the largest order of a discrete transfer function.
const maxOrder = 20

func sampledKinds() []element.Kind {
	period := number("samplePeriod", "s", "one step", positive, "time between two samples, a multiple of the step")
	coefficients := func(key, meaning string) element.Parameter {
		return element.AsList.Of(key, "1", "", unbounded, meaning+", from the highest power of z on")
	}
	return []element.Kind{
		{Name: "sampler", Gives: ofU, GivesAs: first("u"), Adds: state, Read: readSampler,
			Parameters: parameters{input, period}},
		{Name: "zero_order_hold", Gives: ofU, GivesAs: first("u"), Adds: state, Read: readSampler,
			Parameters: parameters{input, period}},
		{Name: "unit_delay", Gives: ofU, GivesAs: first("u", "y_start"), Adds: state, Read: readUnitDelay,
			Parameters: parameters{input, period,
				number("y_start", ofU, "0", unbounded, "output until the second sample")}},
		{Name: "discrete_transfer_function", Gives: ofU, GivesAs: first("u"), Adds: state, Read: readTransferFunction,
			Parameters: parameters{input, coefficients("b", "[b0, b1, ...], numerator"),
				coefficients("a", "[a0, a1, ...], denominator, at most 21 numbers, a0 not 0"), period}},
		{Name: "fixed_delay", Gives: ofU, GivesAs: first("u"), Adds: state, Read: readDelay,
			Parameters: parameters{input,
				number("delayTime", "s", "", positive, "time by which the output follows, at least one step")}},
	}
}

// linearSample returns a sample that sets a state to a linear form.
func linearSample(state int, value network.Form) (s network.Sample) {
	s.State = state
	s.Value = network.Law{Args: []network.Form{value}, Slopes: []float64{1}, Ops: []model.Op{{Code: model.Arg}}}
	return s
}

// readPeriod returns the time between two samples, s; 0: one step.
func readPeriod(e *element.Element) float64 {
	if !e.Has("samplePeriod") {
		return 0
	}
	return e.Number("samplePeriod")
}

// addMemory makes the state NAME.name, which outputs cannot read.
func addMemory(e *element.Element, name, unit string, start float64) int {
	return network.Add(&e.Network.States, network.State{Name: e.Name + "." + name, Unit: unit, At: e.At, Start: start})
}

// addOutput makes the state y of the unit of u, which is the output, and reads u.
func addOutput(e *element.Element) (y int, u network.Form) {
	e.SetUnit(e.Own().Unit.SI, "y", "u")
	y = e.AddState(network.State{Name: "y"})
	e.OwnForm(network.StateOf(y))
	return y, network.SignalOf(e.Waveform("u"))
}

// readSampler reads y = u at each sample.
func readSampler(e *element.Element) element.Declared {
	y, u := addOutput(e)
	s := linearSample(y, u)
	s.Period, s.Initial, s.Direct = readPeriod(e), true, true
	e.AddSample(s)
	return element.Declared{}
}

// readUnitDelay reads y = x, x⁺ = u at each sample.
func readUnitDelay(e *element.Element) element.Declared {
	y, u := addOutput(e)
	unit := e.Own().Unit.SI
	e.SetUnit(unit, "y_start")
	e.Network.States[y].Start = e.Number("y_start")
	x := addMemory(e, "x", unit, e.Number("y_start"))
	for _, s := range []network.Sample{linearSample(y, network.StateOf(x)), linearSample(x, u)} {
		s.Period = readPeriod(e)
		e.AddSample(s)
	}
	return element.Declared{}
}

// readTransferFunction reads y = b(z)/a(z)·u in the transposed direct form II:
//
//	y = b0·u + x1     xi⁺ = bi·u - ai·y + x(i+1)
func readTransferFunction(e *element.Element) element.Declared {
	y, u := addOutput(e)
	b, a := e.Numbers("b"), e.Numbers("a")
	if len(a) < 2 || len(a) > 1+maxOrder || a[0] == 0 {
		e.Refuse(e.Place("a"), "a has %d numbers; 2 to %d are wanted, the first not 0", len(a), 1+maxOrder)
	}
	if len(b) == 0 || len(b) > len(a) {
		e.Refuse(e.Place("b"), "b has %d numbers; 1 to %d are wanted, as many as a has", len(b), len(a))
	}
	b = append(make([]float64, len(a)-len(b)), b...)
	x := []int{y}
	for i := range len(a) - 1 {
		x = append(x, addMemory(e, fmt.Sprint("x", i+1), e.Own().Unit.SI, 0))
	}
	for i := range a {
		value := u.Scaled(b[i] / a[0])
		if i > 0 {
			value = value.Plus(network.StateOf(y).Scaled(-a[i] / a[0]))
		}
		if i+1 < len(x) {
			value = value.Plus(network.StateOf(x[i+1]))
		}
		s := linearSample(x[i], value)
		s.Period, s.Direct = readPeriod(e), i == 0 && b[0] != 0
		e.AddSample(s)
	}
	return element.Declared{}
}

// readDelay reads y(t) = u(t - delayTime).
func readDelay(e *element.Element) element.Declared {
	y, u := addOutput(e)
	e.AddDelay(y, u, e.Number("delayTime"), rate(e, e.Own().Unit).SI)
	return element.Declared{}
}

// readReset reads the reset of an integrator with the output y: at a rising edge y becomes set.
func readReset(e *element.Element, y int) {
	unit := e.Own().Unit.SI
	set := network.One(e.Number("y_start"))
	e.SetUnit(unit, "set")
	if e.Has("set") {
		set = network.SignalOf(e.Waveform("set"))
	}
	next := addMemory(e, "next", unit, 0)   // of y; each integrator keeps it until all have read those to be reset
	before := addMemory(e, "reset", "1", 0) // truth value at the last tick
	names := law.Names{"reset": network.SignalOf(e.Waveform("reset")), "before": network.StateOf(before), "set": set,
		"y": network.StateOf(y)}
	value := law.Sampled(law.Formula("where(min(reset - 0.5, 0.5 - before), set, y)", names))
	e.AddSample(network.Sample{Sample: model.Sample{State: next}, Reset: true, Value: value})
	become := linearSample(y, network.StateOf(next))
	become.Reset = true
	e.AddSample(become)
	truth := law.Sampled(law.Formula("where(reset - 0.5, 1, 0)", names))
	e.AddSample(network.Sample{Sample: model.Sample{State: before, Initial: true}, Value: truth})
}
