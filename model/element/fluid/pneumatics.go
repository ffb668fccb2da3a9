package fluid

import (
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

func pneumaticKinds() []element.Kind {
	return []element.Kind{
		{Name: "brake_cylinder",
			Keys: []string{"demand", "hold", "vent", "T_fill", "T_release", "T_vent", "p_start"}, Gives: "Pa", Read: readCylinder},
	}
}

// readCylinder is a brake cylinder behind the two magnet valves of a wheel slide
// protection, which without current let it follow the demand:
//
//	p' = (1 - hold)·(1 - vent)·(demand - p)/T - vent·p/T_vent
//
// with T = T_fill while the demand is above p, otherwise T_release, and p, above the
// atmosphere, the signal of the element's name. Times are what a test of the brake gives:
// from 0 it takes 2.3·T_fill to 90 % of the demand, and 2.3·T_vent to lose 90 %.
func readCylinder(e *element.Element) element.Declared {
	demand := e.NeedWaveform("demand", "Pa", "pressure that the brake asks for")
	vent := e.Need("T_vent", "s", "time constant to the atmosphere")
	fill := e.Need("T_fill", "s", "time constant from the supply")
	release := e.AboveZero("T_release", "s", vent)
	start := e.AtLeastZero("p_start", "Pa", 0)
	hold, open := readShare(e, "hold"), readShare(e, "vent")
	if e.Err != nil {
		return element.Declared{}
	}
	p := network.StateOf(e.AddState(network.State{Name: "p", Unit: "Pa", Start: start}))
	var l, g network.Law
	dp := l.Arg(network.SignalOf(demand).Plus(p.Scaled(-1)), 1/min(fill, release))
	l.Push(0).Do(model.Max).Times(1 / fill).Again(dp).Push(0).Do(model.Min).Times(1 / release).Do(model.Add)
	for _, valve := range []int{hold, open} {
		l.Push(1)
		pushOpening(e, &l, valve)
		l.Do(model.Sub, model.Mul)
	}
	l.Arg(p, 1/vent)
	pushOpening(e, &l, open)
	l.Do(model.Mul).Times(1 / vent).Do(model.Sub)
	if fill != release {
		g.Arg(network.SignalOf(demand).Plus(p.Scaled(-1)), 0)
		e.AddGuard(&g)
	}
	e.Network.States[p[0].Index].Der = network.SignalOf(e.AddLaw(e.Name+".rate", "Pa/s", &l))
	s := &e.Network.Signals[e.OwnSignal]
	s.Law, s.MaxAbs = &network.Law{}, max(start, e.Network.MaxAbs(demand))
	s.Law.Arg(p, 1)
	return element.Declared{}
}
