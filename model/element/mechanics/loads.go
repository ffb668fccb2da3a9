package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

func loadKinds() []element.Kind {
	r, t := network.Rotational, network.Translational
	return []element.Kind{
		{Name: "linear_speed_dependent_torque", Flanges: element.OnSupport(r),
			Keys: []string{"tau_nominal", "w_nominal"}, Read: readLinearLoad},
		{Name: "linear_speed_dependent_force", Flanges: element.OnSupport(t),
			Keys: []string{"f_nominal", "v_nominal"}, Read: readLinearLoad},
		{Name: "quadratic_speed_dependent_torque", Flanges: element.OnSupport(r),
			Keys: []string{"tau_nominal", "w_nominal"}, Read: readQuadraticLoad},
		{Name: "quadratic_speed_dependent_force", Flanges: element.OnSupport(t),
			Keys: []string{"f_nominal", "v_nominal"}, Read: readQuadraticLoad},
		{Name: "eddy_current_torque", Flanges: element.OnSupport(r),
			Keys: []string{"tau_nominal", "w_nominal", "excitation", "alpha20", "TRef", "C", "T_start", "G", "T_ambient"}, Read: readEddy},
		{Name: "vehicle", Owns: true, Itself: t, Flanges: element.Flanges(r, "flange"),
			Keys: []string{"m", "R", "A", "Cd", "rho", "Cr", "g", "inclination", "wind", "v_start", "s_start", "v_max"}, Read: readVehicle},
	}
}

// readNominal reads the torque (force) of a load at its nominal speed: it accelerates
// where it is positive.
func readNominal(e *element.Element) (tau, w float64) {
	name := e.Per("tau_nominal", "f_nominal")
	tau, _ = e.Number(name, e.Per("N.m", "N"), "at the nominal speed, negative for a load")
	speed, unit := e.Per("w_nominal", "v_nominal"), e.Per("rad/s", "m/s")
	w, f := e.Number(speed, unit, "nominal speed")
	e.Positive(w, f, speed, unit)
	return tau, w
}

// readLinearLoad is tau = tau_nominal·w/w_nominal.
func readLinearLoad(e *element.Element) element.Declared {
	tau, w := readNominal(e)
	k := e.Between.Speeds(tau / w)
	e.Exert(e.Between, k)
	return element.Declared{Rel: e.Between, Tau: k, Unit: e.Per("N.m", "N")}
}

// readQuadraticLoad is tau = tau_nominal·(w/w_nominal)²·sign(w).
func readQuadraticLoad(e *element.Element) element.Declared {
	tau, w := readNominal(e)
	var l network.Law
	i := l.Arg(e.Between.Speeds(1), 4*tau/w) // up to twice the nominal speed
	l.Again(i).Do(model.Abs, model.Mul).Times(tau / (w * w))
	return exertLoad(e, e.Per("tau", "f"), &l)
}

// exertLoad exerts a law along the element.
func exertLoad(e *element.Element, name string, l *network.Law) element.Declared {
	tau := network.SignalOf(e.AddLaw(e.Name+"."+name, e.Per("N.m", "N"), l))
	e.Exert(e.Between, tau)
	return element.Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N")}
}

// readEddy is tau = 2·tau_nominal·e²·x/(1 + x²) against the slip, with
// x = w_rel/(w_nominal·(1 + alpha·(T - TRef))); its loss heats C, which G cools.
func readEddy(e *element.Element) element.Declared {
	tau, f := e.Number("tau_nominal", "N.m", "largest braking torque")
	e.NotNegative(tau, f, "tau_nominal", "N.m")
	w := e.Need("w_nominal", "rad/s", "slip of the largest torque")
	alpha := e.AtLeastZero("alpha20", "1/K", 0)
	ref, _ := e.Option("TRef", "K", 293.15)
	heat := e.AboveZero("C", "J/K", math.Inf(1))
	start, _ := e.Option("T_start", "K", ref)
	loss := e.AtLeastZero("G", "W/K", 0)
	ambient, _ := e.Option("T_ambient", "K", start)
	var field int
	if e.Has("excitation") {
		field = e.NeedWaveform("excitation", "1", "field, 0 to 1")
	} else {
		field = e.AddConstant("excitation", 1)
	}
	if e.Err != nil {
		return element.Declared{}
	}
	T := e.AddState(network.State{Name: "T", Unit: "K", Start: start})
	var l network.Law
	l.Arg(e.Between.Speeds(1), 2*tau/w)
	l.Push(w)
	l.Arg(network.StateOf(T).Plus(network.One(-ref)), 0)
	l.Times(alpha).Push(1).Do(model.Add, model.Mul, model.Div) // x
	// 2·x/(1 + x²) = sin(2·atan(x))
	l.Do(model.Atan).Times(2).Do(model.Sin).Times(tau)
	i := l.Arg(network.SignalOf(field), 0)
	l.Again(i).Do(model.Mul, model.Mul)
	brake := e.AddLaw(e.Name+".tau", "N.m", &l)
	var p network.Law
	p.Arg(network.SignalOf(brake), 0)
	p.Arg(e.Between.Speeds(1), 0)
	p.Do(model.Mul)
	power := e.AddLaw(e.Name+".lossPower", "W", &p)
	e.Named["lossPower"] = element.Reading{Form: network.SignalOf(power), Unit: "W"}
	e.Named["T"] = element.Reading{Form: network.StateOf(T), Unit: "K"}
	e.Network.States[T].Der = network.SignalOf(power).Scaled(1 / heat).Plus(network.StateOf(T).Scaled(-loss / heat)).Plus(network.One(loss * ambient / heat))
	e.Exert(e.Between, network.SignalOf(brake).Scaled(-1))
	return element.Declared{Rel: e.Between, Tau: network.SignalOf(brake), Unit: "N.m"}
}

// readVehicle is a mass on wheels of radius R:
//
//	m·v' = f_wheel - m·g·sin(a) - m·g·cos(a)·Cr (friction) - ½·rho·Cd·A·|v - wind|·(v - wind)
//
// with tan(a) = inclination. The rolling resistance is a friction element: it holds
// the vehicle on a slope that is not too steep.
func readVehicle(e *element.Element) element.Declared {
	n := &e.Network.Nodes[e.OwnNode]
	n.J = e.Need("m", "kg", "mass")
	n.Start, _ = e.Option("v_start", "m/s", 0)
	n.Phi0, _ = e.Option("s_start", "m", 0)
	n.Given, n.Placed = e.Has("v_start"), e.Has("s_start")
	own := e.OwnNode
	radius := e.Need("R", "m", "wheel radius")
	e.Tie(e.Term("flange", radius), network.TermOf(own, -1))
	area, cd, rho := e.AtLeastZero("A", "m2", 0), e.AtLeastZero("Cd", "1", 0), e.AtLeastZero("rho", "kg/m3", 1.2)
	cr := e.AtLeastZero("Cr", "1", 0)
	weight := n.J * e.AtLeastZero("g", "m/s2", 9.80665)
	fast := e.AboveZero("v_max", "m/s", 100)
	along := network.RowOf(own)
	if k := rho * cd * area / 2; k > 0 {
		air := along.Speeds(1)
		if e.Has("wind") {
			air = air.Plus(network.SignalOf(e.NeedWaveform("wind", "m/s", "speed of the air")).Scaled(-1))
		}
		var l network.Law
		i := l.Arg(air, 2*k*fast)
		l.Again(i).Do(model.Abs, model.Mul).Times(-k)
		exertNamed(e, "f_air", along, &l)
	}
	flat := !e.Has("inclination")
	slope := 0
	if !flat {
		slope = e.NeedWaveform("inclination", "1", "tangent of the slope, positive uphill")
	}
	if cr > 0 {
		k := model.Friction{Gain: cr * weight, Peak: 1}
		if flat {
			k.Signal = e.AddConstant("cos", 1)
		} else {
			var l network.Law
			l.Arg(network.SignalOf(slope), 0)
			l.Do(model.Atan, model.Cos)
			k.Signal = e.AddLaw(e.Name+".cos", "1", &l)
		}
		between := e.Between
		e.Between = along
		e.AddFriction(k)
		e.Between = between
	}
	if !flat && weight > 0 {
		var l network.Law
		l.Arg(network.SignalOf(slope), 0)
		l.Do(model.Atan, model.Sin).Times(-weight)
		exertNamed(e, "f_slope", along, &l)
	}
	return element.Declared{Rel: along, Friction: cr > 0}
}

// exertNamed lets a law act along a row, and names it for the outputs.
func exertNamed(e *element.Element, name string, along network.Row, l *network.Law) {
	unit := "N.m"
	if e.Network.Nodes[along[0].Node].Domain == network.Translational {
		unit = "N"
	}
	i := e.AddLaw(e.Name+"."+name, unit, l)
	e.Exert(along, network.SignalOf(i))
	e.Named[name] = element.Reading{Form: network.SignalOf(i), Unit: unit}
}
