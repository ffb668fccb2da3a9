package mechanics

import (
	"maps"
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

func loadKinds() []element.Kind {
	on := element.OnSupport
	nominal := parameters{
		number("tau_nominal|f_nominal", torque, "", unbounded, "value at the nominal speed; negative: a load"),
		number("w_nominal|v_nominal", speed, "", positive, "nominal speed"),
		element.Flag("TorqueDirection|ForceDirection", "true", "true: the same direction at any sign of the speed"),
	}
	least := number("w0|v0", speed, "0.1", positive, "speed below which the value is made regular")
	inverse := slices.Insert(slices.Clone(nominal), 2, least)
	signed := parameters{
		number("tau_nominal|f_nominal", torque, "", unbounded, "value at any speed; negative: a load"),
		element.Word("reg", "Exp", "value around speed 0", slices.Sorted(maps.Keys(regularisations))...),
		least,
	}
	eddy := parameters{
		number("tau_nominal|f_nominal", torque, "", notNegative, "largest braking torque|largest braking force"),
		number("w_nominal|v_nominal", speed, "", positive, "slip of the largest torque at TRef|slip of the largest force at TRef"),
		over("excitation", "1", "1", unbounded, "coil current over the nominal one").Within(0, 1e3),
		number("alpha20", "1/K", "0", notNegative, "temperature coefficient of the resistance at 20 degC"),
		number("TRef", "K", "293.15", notNegative, "temperature at which w_nominal holds|temperature at which v_nominal holds"),
		number("C", "J/K", "infinite", positive, "heat capacity"),
		number("T_start", "K", "TRef", notNegative, "temperature at the start"),
		number("G", "W/K", "0", notNegative, "heat conductance to the ambient"),
		number("T_ambient", "K", "T_start", notNegative, "ambient temperature"),
		element.HeatParameter(),
	}
	heated := adds{{Key: "T", Unit: "K", Meaning: "temperature"}, {Key: "lossPower", Unit: "W", Meaning: "braking power"}}
	return []element.Kind{
		{Name: "linear_speed_dependent_torque", Flanges: on(turns), Parameters: nominal, Read: readLinearLoad},
		{Name: "linear_speed_dependent_force", Flanges: on(moves), Parameters: nominal, Read: readLinearLoad},
		{Name: "quadratic_speed_dependent_torque", Flanges: on(turns), Parameters: nominal, Read: readQuadraticLoad},
		{Name: "quadratic_speed_dependent_force", Flanges: on(moves), Parameters: nominal, Read: readQuadraticLoad},
		{Name: "inverse_speed_dependent_torque", Flanges: on(turns), Parameters: inverse, Read: readInverseLoad},
		{Name: "inverse_speed_dependent_force", Flanges: on(moves), Parameters: inverse, Read: readInverseLoad},
		{Name: "sign_torque", Flanges: on(turns), Parameters: signed, Read: readSigned},
		{Name: "sign_force", Flanges: on(moves), Parameters: signed, Read: readSigned},
		{Name: "eddy_current_torque", Flanges: on(turns), Parameters: eddy, Adds: heated, Read: readEddy},
		{Name: "eddy_current_force", Flanges: on(moves), Parameters: eddy, Adds: heated, Read: readEddy},
		{Name: "vehicle", Owns: true, Itself: moves, Read: readVehicle,
			Flanges: []element.Flange{{Key: "flange", Domain: turns, Missing: "no driven wheels"}},
			Parameters: slices.Concat(parameters{
				number("m", "kg", "", positive, "mass"),
				number("R", "m", "with flange", positive, "radius of the wheels").Within(leastRatio, mostRatio),
				number("J", "kg.m2", "0", notNegative, "moment of inertia of the wheels, with flange"),
				number("A", "m2", "0", notNegative, "frontal area"),
				number("Cd", "1", "0", notNegative, "drag coefficient").Within(0, 1e3),
				number("rho", "kg/m3", "1.2", notNegative, "density of the air"),
				over("wind", "m/s", "0", unbounded, "speed of the wind, positive from behind"),
				number("Cr", "1", "0.015", notNegative, "coefficient of rolling resistance").Within(0, 10),
				over("inclination", "1", "0", unbounded, "tangent of the slope, positive uphill").Within(0, 1e3),
				number("g", "m/s2", "9.80665", notNegative, "gravitational acceleration"),
				number("v_max", "m/s", "100", positive, "largest speed expected"),
			}, initial),
			Adds: adds{{Key: "f_air", Unit: "N", Meaning: "force of the air, with A and Cd above 0"},
				{Key: "f_slope", Unit: "N", Meaning: "force of the slope, with inclination"}}},
	}
}

// readLinearLoad reads a load tau = tau_nominal·w/w_nominal, or with |w| if TorqueDirection is true.
func readLinearLoad(e *element.Element) element.Declared {
	if !e.Flag("TorqueDirection") {
		return e.Drive(e.Between.Speeds(e.Number("tau_nominal") / e.Number("w_nominal")))
	}
	return driveLoad(e, "tau_nominal/w_nominal*abs(w)")
}

// driveLoad exerts the formula of a load over the speed w, up to twice the nominal one.
func driveLoad(e *element.Element, formula string) element.Declared {
	w := e.Number("w_nominal")
	load := law.Formula(formula, law.Names{"tau_nominal": e.Number("tau_nominal"), "w_nominal": w,
		"w": law.Of(e.Between.Speeds(1)).Within(-2*w, 2*w)})
	return driveLaw(e, load)
}

// readQuadraticLoad reads a load tau = tau_nominal·(w/w_nominal)², times sign(w) unless
// TorqueDirection is true.
func readQuadraticLoad(e *element.Element) element.Declared {
	if e.Flag("TorqueDirection") {
		return driveLoad(e, "tau_nominal/(w_nominal*w_nominal)*w*w")
	}
	return driveLoad(e, "tau_nominal/(w_nominal*w_nominal)*w*abs(w)")
}

// readInverseLoad reads a load of constant power, tau = tau_nominal·w_nominal/|w|, from w0 on; below w0 it is
// constant. Unless TorqueDirection is true, it has the sign of w, and below w0 it is tau_nominal·w/w0: it jumps
// at w0 unless that is w_nominal, as in the Modelica Standard Library.
func readInverseLoad(e *element.Element) element.Declared {
	tau, nominal, least := e.Number("tau_nominal"), e.Number("w_nominal"), e.Number("w0")
	w := e.Between.Speeds(1)
	names := law.Names{"tau_nominal": tau, "w_nominal": nominal, "w0": least, "w": w}
	names["size"] = law.Formula("abs(w)", names).Plain() // its corner is where the load is flat
	load := law.Formula("tau_nominal*w_nominal/max(size, w0)", names)
	if !e.Flag("TorqueDirection") {
		names["inner"] = law.Formula("tau_nominal*w/w0", names)
		names["far"] = law.Formula("max(size, w0)", names).Plain() // the event is that of where
		load = law.Formula("where(size - w0, tau_nominal*w_nominal*w/(far*far), inner)", names)
	}
	return driveLaw(e, load.WithSlope(w, math.Abs(tau)/least*max(1, nominal/least)))
}

// driveLaw exerts a law along the relative speed.
func driveLaw(e *element.Element, value *law.Expr) element.Declared {
	return e.Drive(e.AddLaw(e.Per("tau", "f"), e.Per("N.m", "N"), value))
}

// regularisation is the part of tau_nominal that a sign_torque has at the speed w, and its largest slope over w/w0.
type regularisation struct {
	formula string
	slope   float64
}

// regularisations are those of Modelica.Blocks.Types.Regularization. within is w/w0 between -1 and 1.
var regularisations = map[string]regularisation{
	"Exp":    {"2/(1 + exp(-w/(0.01*w0))) - 1", 50},
	"Sine":   {"sin(quarter*within)", math.Pi / 2},
	"Linear": {"within", 1},
	"CoSine": {"sign(w)*(1 - cos(quarter*within))", math.Pi / 2},
}

// readSigned reads a torque of constant size in the direction of the speed, made regular around speed 0.
func readSigned(e *element.Element) element.Declared {
	tau, least, reg := e.Number("tau_nominal"), e.Number("w0"), regularisations[e.Word("reg")]
	w := e.Between.Speeds(1)
	names := law.Names{"tau_nominal": tau, "w0": least, "w": w, "quarter": math.Pi / 2}
	names["within"] = law.Formula("clamp(w/w0, -1, 1)", names)
	names["part"] = law.Formula(reg.formula, names)
	return driveLaw(e, law.Formula("tau_nominal*part", names).WithSlope(w, math.Abs(tau)*reg.slope/least))
}

// celsius20 is 20 degC, the temperature of alpha20, K.
const celsius20 = 293.15

// readEddy reads an eddy-current brake: tau = 2·tau_nominal·e²·x/(1 + x²) against the slip, with
// x = w_rel/(w_nominal·(1 + alpha·(T - TRef))). Its loss heats the capacity C, which G cools. As in the
// Modelica Standard Library alpha = alpha20/(1 + alpha20·(TRef - 20 degC)).
func readEddy(e *element.Element) element.Declared {
	tau, w := e.Number("tau_nominal"), e.Number("w_nominal")
	alpha, ref := e.Number("alpha20"), e.Number("TRef")
	if from20 := 1 + alpha*(ref-celsius20); from20 > 0 {
		alpha /= from20
	} else {
		e.Refuse(e.Place("TRef"), "TRef %s: the resistance would be 0 or negative there with this alpha20",
			units.Format(ref, "K"))
	}
	if !e.Has("C") {
		e.Forbid("goes with C; without it the temperature stays at T_start", "G", "T_ambient")
	} else if !e.Has("G") {
		e.Forbid("goes with G", "T_ambient")
	}
	heat, cooling := e.NumberOr("C", math.Inf(1)), e.Number("G")
	start := e.NumberOr("T_start", ref)
	ambient := e.NumberOr("T_ambient", start)
	field := e.OptionalWaveform("excitation")
	if field == nil {
		field = network.SignalOf(e.AddConstant("excitation", 1))
	}

	var T network.Form
	i := -1
	if e.Has("heat_port") {
		e.Forbid("and heat_port; its heat_capacitor has them", "C", "G", "T_start", "T_ambient")
		T = network.SignalOf(e.HeatPort("heat_port"))
	} else {
		i = e.AddState(network.State{Name: "T", Start: start})
		e.ReadStart("T_start", network.StartCondition{State: 1 + i})
		T = network.StateOf(i)
	}
	e.NameForm("T", T)
	slip := e.Between.Speeds(1)
	most := e.Network.MaxAbs(field.Index())
	// 2·x/(1 + x²) = sin(2·atan(x)), and x·d/dx of it is at most 1
	const formula = "tau_nominal*sin(2*atan(w/(w_nominal*(1 + alpha20*(T - TRef)))))*excitation*excitation"
	torque := law.Formula(formula, law.Names{
		"tau_nominal": tau, "w": slip, "w_nominal": w, "alpha20": alpha, "TRef": ref, "excitation": field,
		"T": law.Of(T).Within(min(start, ambient, ref), math.Inf(1))}).WithSlope(T, tau*alpha*most*most)
	brake := e.AddLaw(e.Per("tau", "f"), e.Per("N.m", "N"), torque)
	e.AddLoss(law.Power(brake, slip))
	if i < 0 {
		return e.Resist(brake)
	}
	power := e.Named["lossPower"].Form
	e.Network.States[i].Der = power.Scaled(1 / heat).Plus(T.Scaled(-cooling / heat)).Plus(network.One(cooling * ambient / heat))
	return e.Resist(brake)
}

// readVehicle reads a mass on wheels of radius R:
//
//	(m + J/R²)·v' = f_wheel - m·g·sin(a) - m·g·cos(a)·Cr (friction) - ½·rho·Cd·A·|v - wind|·(v - wind)
//
// with tan(a) = inclination. The rolling resistance is a friction element, which can hold the vehicle
// on a small slope. Without a flange it has no driven wheels.
func readVehicle(e *element.Element) element.Declared {
	own := e.OwnNode
	n := &e.Network.Nodes[own]
	m := e.Number("m")
	n.J = m
	e.ReadNodeStart(own, "w_start", "phi_start")
	if _, driven := e.Nodes["flange"]; driven {
		r := e.Number("R")
		n.J += e.Number("J") / (r * r)
		e.Tie(e.Term("flange", r), network.TermOf(own, -1))
	} else {
		e.Forbid("goes with flange", "R", "J")
	}
	if !e.Together("A", "Cd") {
		e.Forbid("goes with A and Cd", "rho", "wind", "v_max")
	}
	area, cd, rho, wind := e.Number("A"), e.Number("Cd"), e.Number("rho"), e.OptionalWaveform("wind")
	cr, weight, fast := e.Number("Cr"), m*e.Number("g"), e.Number("v_max")
	e.Between = network.RowOf(own)
	if k := rho * cd * area / 2; k > 0 {
		air := e.Between.Speeds(1).Plus(wind.Scaled(-1))
		drag := law.Formula("-k*v*abs(v)", law.Names{"k": k, "v": law.Of(air).Within(-fast, fast)})
		e.Exert(e.Between, e.NameLaw("f_air", drag))
	}

	slope := e.OptionalWaveform("inclination") // tangent, positive uphill; nil: flat
	if cr > 0 {
		k := model.Friction{Gain: cr * weight, Peak: 1}
		if slope == nil {
			k.Signal = e.AddConstant("cos", 1)
		} else {
			k.Signal = e.AddLaw("cos", "1", law.Formula("cos(atan(inclination))", law.Names{"inclination": slope})).Index()
		}

		e.AddFriction(k)
	}

	if slope != nil && weight > 0 {
		pull := law.Formula("-weight*sin(atan(inclination))", law.Names{"weight": weight, "inclination": slope})
		e.Exert(e.Between, e.NameLaw("f_slope", pull))
	}

	return element.Declared{Rel: e.Between, Friction: cr > 0, Energy: squared(n.J/2, e.Between.Speeds(1))}
}
