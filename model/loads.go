package model

import "math"

func loadKinds() []kind {
	r, t := rotational, translational
	return []kind{
		{name: "linear_speed_dependent_torque", flanges: onSupport(r), keys: []string{"tau_nominal", "w_nominal"}, read: readLinearLoad},
		{name: "linear_speed_dependent_force", flanges: onSupport(t), keys: []string{"f_nominal", "v_nominal"}, read: readLinearLoad},
		{name: "quadratic_speed_dependent_torque", flanges: onSupport(r), keys: []string{"tau_nominal", "w_nominal"}, read: readQuadraticLoad},
		{name: "quadratic_speed_dependent_force", flanges: onSupport(t), keys: []string{"f_nominal", "v_nominal"}, read: readQuadraticLoad},
		{name: "eddy_current_torque", flanges: onSupport(r), keys: []string{"tau_nominal", "w_nominal", "excitation", "alpha20", "TRef", "C", "T_start", "G", "T_ambient"}, read: readEddy},
		{name: "vehicle", owns: true, itself: t, flanges: []flange{{"flange", r, false}},
			keys: []string{"m", "R", "A", "Cd", "rho", "Cr", "g", "inclination", "wind", "v_start", "s_start", "v_max"}, read: readVehicle},
	}
}

// readNominal reads the torque (force) of a load at its nominal speed: it accelerates
// where it is positive.
func readNominal(e *element) (tau, w float64) {
	name := e.per("tau_nominal", "f_nominal")
	tau, _ = e.number(name, e.per("N.m", "N"), "at the nominal speed, negative for a load")
	speed, unit := e.per("w_nominal", "v_nominal"), e.per("rad/s", "m/s")
	w, f := e.number(speed, unit, "nominal speed")
	e.positive(w, f, speed, unit)
	return tau, w
}

// readLinearLoad is tau = tau_nominal·w/w_nominal.
func readLinearLoad(e *element) declared {
	tau, w := readNominal(e)
	k := e.between.speeds(tau / w)
	e.act(e.between, k)
	return declared{rel: e.between, tau: k, unit: e.per("N.m", "N")}
}

// readQuadraticLoad is tau = tau_nominal·(w/w_nominal)²·sign(w).
func readQuadraticLoad(e *element) declared {
	tau, w := readNominal(e)
	var l law
	i := l.arg(e.between.speeds(1), 4*tau/w) // up to twice the nominal speed
	l.again(i).do(Abs, Mul).times(tau / (w * w))
	return exertLoad(e, e.per("tau", "f"), &l)
}

// exertLoad exerts a law along the element.
func exertLoad(e *element, name string, l *law) declared {
	tau := signalOf(e.addLaw(e.name+"."+name, e.per("N.m", "N"), l))
	e.act(e.between, tau)
	return declared{rel: e.between, tau: tau, unit: e.per("N.m", "N")}
}

// readEddy is tau = 2·tau_nominal·e²·x/(1 + x²) against the slip, with
// x = w_rel/(w_nominal·(1 + alpha·(T - TRef))); its loss heats C, which G cools.
func readEddy(e *element) declared {
	tau, f := e.number("tau_nominal", "N.m", "largest braking torque")
	e.notNegative(tau, f, "tau_nominal", "N.m")
	w := e.need("w_nominal", "rad/s", "slip of the largest torque")
	alpha := e.atLeastZero("alpha20", "1/K", 0)
	ref, _ := e.option("TRef", "K", 293.15)
	heat := e.above0("C", "J/K", math.Inf(1))
	start, _ := e.option("T_start", "K", ref)
	loss := e.atLeastZero("G", "W/K", 0)
	ambient, _ := e.option("T_ambient", "K", start)
	var field int
	if e.has("excitation") {
		field = e.command("excitation", "1", "field, 0 to 1")
	} else {
		field = e.fixedSignal("excitation", 1)
	}
	if e.err != nil {
		return declared{}
	}
	T := e.addState(state{name: "T", unit: "K", start: start})
	var l law
	l.arg(e.between.speeds(1), 2*tau/w)
	l.push(w)
	l.arg(stateOf(T).plus(one(-ref)), 0)
	l.times(alpha).push(1).do(Add, Mul, Div) // x
	// 2·x/(1 + x²) = sin(2·atan(x))
	l.do(Atan).times(2).do(Sin).times(tau)
	i := l.arg(signalOf(field), 0)
	l.again(i).do(Mul, Mul)
	brake := e.addLaw(e.name+".tau", "N.m", &l)
	var p law
	p.arg(signalOf(brake), 0)
	p.arg(e.between.speeds(1), 0)
	p.do(Mul)
	power := e.addLaw(e.name+".lossPower", "W", &p)
	e.named["lossPower"] = reading{signalOf(power), "W"}
	e.named["T"] = reading{stateOf(T), "K"}
	e.plant.states[T].der = signalOf(power).scaled(1 / heat).plus(stateOf(T).scaled(-loss / heat)).plus(one(loss * ambient / heat))
	e.act(e.between, signalOf(brake).scaled(-1))
	return declared{rel: e.between, tau: signalOf(brake), unit: "N.m"}
}

// readVehicle is a mass on wheels of radius R:
//
//	m·v' = f_wheel - m·g·sin(a) - m·g·cos(a)·Cr (friction) - ½·rho·Cd·A·|v - wind|·(v - wind)
//
// with tan(a) = inclination. The rolling resistance is a friction element: it holds
// the vehicle on a slope that is not too steep.
func readVehicle(e *element) declared {
	n := &e.plant.nodes[e.ownNode]
	n.J = e.need("m", "kg", "mass")
	n.start, _ = e.option("v_start", "m/s", 0)
	n.phi0, _ = e.option("s_start", "m", 0)
	n.given, n.placed = e.has("v_start"), e.has("s_start")
	own := e.ownNode
	radius := e.need("R", "m", "wheel radius")
	e.tie(e.term("flange", radius), termOf(own, -1))
	area, cd, rho := e.atLeastZero("A", "m2", 0), e.atLeastZero("Cd", "1", 0), e.atLeastZero("rho", "kg/m3", 1.2)
	cr := e.atLeastZero("Cr", "1", 0)
	weight := n.J * e.atLeastZero("g", "m/s2", 9.80665)
	fast := e.above0("v_max", "m/s", 100)
	along := rowOf(own)
	if k := rho * cd * area / 2; k > 0 {
		air := along.speeds(1)
		if e.has("wind") {
			air = air.plus(signalOf(e.command("wind", "m/s", "speed of the air")).scaled(-1))
		}
		var l law
		i := l.arg(air, 2*k*fast)
		l.again(i).do(Abs, Mul).times(-k)
		exertNamed(e, "f_air", along, &l)
	}
	flat := !e.has("inclination")
	slope := 0
	if !flat {
		slope = e.command("inclination", "1", "tangent of the slope, positive uphill")
	}
	if cr > 0 {
		k := Friction{Gain: cr * weight, Peak: 1}
		if flat {
			k.Signal = e.fixedSignal("cos", 1)
		} else {
			var l law
			l.arg(signalOf(slope), 0)
			l.do(Atan, Cos)
			k.Signal = e.addLaw(e.name+".cos", "1", &l)
		}
		between := e.between
		e.between = along
		e.rub(k)
		e.between = between
	}
	if !flat && weight > 0 {
		var l law
		l.arg(signalOf(slope), 0)
		l.do(Atan, Sin).times(-weight)
		exertNamed(e, "f_slope", along, &l)
	}
	return declared{rel: along, friction: cr > 0}
}

// exertNamed lets a law act along a row, and names it for the outputs.
func exertNamed(e *element, name string, along row, l *law) {
	unit := "N.m"
	if e.plant.nodes[along[0].node].domain == translational {
		unit = "N"
	}
	i := e.addLaw(e.name+"."+name, unit, l)
	e.act(along, signalOf(i))
	e.named[name] = reading{signalOf(i), unit}
}
