package model

func pneumaticKinds() []kind {
	return []kind{
		{name: "brake_cylinder", keys: []string{"demand", "hold", "vent", "T_fill", "T_release", "T_vent", "p_start"}, gives: "Pa", read: readCylinder},
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
func readCylinder(e *element) declared {
	demand := e.command("demand", "Pa", "pressure that the brake asks for")
	vent := e.need("T_vent", "s", "time constant to the atmosphere")
	fill := e.need("T_fill", "s", "time constant from the supply")
	release := e.above0("T_release", "s", vent)
	start := e.atLeastZero("p_start", "Pa", 0)
	hold, open := readShare(e, "hold"), readShare(e, "vent")
	if e.err != nil {
		return declared{}
	}
	p := stateOf(e.addState(state{name: "p", unit: "Pa", start: start}))
	var l, g law
	dp := l.arg(signalOf(demand).plus(p.scaled(-1)), 1/min(fill, release))
	l.push(0).do(Max).times(1 / fill).again(dp).push(0).do(Min).times(1 / release).do(Add)
	for _, valve := range []int{hold, open} {
		l.push(1)
		pushOpening(e, &l, valve)
		l.do(Sub, Mul)
	}
	l.arg(p, 1/vent)
	pushOpening(e, &l, open)
	l.do(Mul).times(1 / vent).do(Sub)
	if fill != release {
		g.arg(signalOf(demand).plus(p.scaled(-1)), 0)
		e.addGuard(&g)
	}
	e.plant.states[p[0].index].der = signalOf(e.addLaw(e.name+".rate", "Pa/s", &l))
	s := &e.plant.signals[e.ownSignal]
	s.law, s.most = &law{}, max(start, e.plant.largest(demand))
	s.law.arg(p, 1)
	return declared{}
}
