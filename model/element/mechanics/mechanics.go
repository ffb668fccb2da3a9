// Package mechanics owns the element types along one coordinate that turns or moves: inertias,
// springs, gears, friction, sources, loads and sensors. Types and parameters have the names of
// Mechanics.Rotational and .Translational of the Modelica Standard Library, where the library has
// them. Wheels on a road or rail are not here: see package contact.
//
// Reading order: mechanics.go (the list of the types, what they share, inertias, springs and
// dampers), sources.go, gaps.go (play, stops), regions.go (springs and dampers with regions),
// gears.go, friction.go, drag.go, loads.go, sensors.go.
package mechanics

import (
	"slices"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), teethKinds(), loadKinds(),
		sensorKinds())
}

// Domains of the nodes of an element.
const (
	turns  = network.Rotational
	moves  = network.Translational
	either = network.AnyDomain
)

// Units of elements that turn, and of those that move.
const (
	angle     = "rad|m"
	speed     = "rad/s|m/s"
	torque    = "N.m|N"
	stiffness = "N.m/rad|N/m"
	damping   = "N.m.s/rad|N.s/m"
)

// Bounds of parameters.
const (
	unbounded   = element.Any
	positive    = element.Positive
	notNegative = element.NotNegative
)

// mostSpeed is the size of the relative speed of a damper whose damping depends on a temperature, rad/s or m/s.
const mostSpeed = 1e3

type (
	parameters = []element.Parameter
	adds       = []element.Quantity
)

var number, rows, over = element.AsNumber.Of, element.AsRows.Of, element.OverTime.Of

// Parameters and states of springs and dampers.
var (
	elastic = number("c", stiffness, "", positive, "stiffness")
	viscous = number("d", damping, "", notNegative, "damping")
	relaxed = number("phi_rel0|s_rel0", angle, "0", unbounded, "unloaded deflection")
	begin   = number("phi_rel_start|s_rel_start", angle, "solved", unbounded, "deflection at the start")
	twist   = adds{{Key: "twist", Unit: angle, Meaning: "deflection beyond the unloaded one"}}
)

// initial holds the parameters of the initial speed and position of a node.
var initial = parameters{
	number("w_start|v_start", speed, "solved", unbounded, "speed at the start"),
	number("phi_start|s_start", angle, "solved", unbounded, "angle at the start|position at the start"),
}

// mass is the inertia of a node.
var mass = number("J|m", "kg.m2|kg", "", positive, "moment of inertia|mass")

// length is the length of a mass. With it the mass has the nodes NAME.a and NAME.b.
var length = number("L", "m", "0", notNegative, "length from the left end, NAME.a, to the right end, NAME.b")

// endsHint names the nodes of a mass with a length.
const endsHint = "with L its ends are NAME.a and NAME.b"

func basicKinds() []element.Kind {
	ends := element.Ends(either)
	factor, temperature := element.FactorParameters("damping")
	return []element.Kind{
		{Name: "inertia", Owns: true, Itself: turns, Parameters: append(parameters{mass}, initial...), Read: readInertia},
		{Name: "mass", Owns: true, Itself: moves, MakeNodes: addEnds, Read: readMass, Hint: endsHint,
			Parameters: append(parameters{mass, length}, initial...)},
		{Name: "fixed", Owns: true, Read: readFixed,
			Parameters: parameters{number("phi0|s0", angle, "0", unbounded, "angle or position")}},
		{Name: "damper", Flanges: ends, Parameters: parameters{viscous, factor, temperature, element.HeatParameter()},
			Adds: adds{element.LossQuantity}, Read: readLink},
		{Name: "spring", Flanges: ends, Parameters: parameters{elastic, relaxed, begin}, Adds: twist, Read: readLink},
		{Name: "spring_damper", Flanges: ends, Adds: append(adds{element.LossQuantity}, twist...), Read: readLink,
			Parameters: parameters{elastic, viscous, relaxed, begin, factor, temperature, element.HeatParameter()}},
	}
}

// readInertia reads an inertia or a mass, which is a node.
func readInertia(e *element.Element) element.Declared {
	own := e.OwnNode
	J := e.Number("J")
	e.Network.Nodes[own].J += J // that of a dual_mass_flywheel at the node is there, too
	e.ReadNodeStart(own, "w_start", "phi_start")
	return element.Declared{Rel: network.RowOf(own), Tau: network.AccelOf(own).Scaled(J), Unit: e.Per("N.m", "N"),
		Energy: squared(J/2, network.RowOf(own).Speeds(1))}
}

// squared returns c·x², which is read as a signal.
func squared(c float64, x network.Form) *law.Expr {
	return law.Formula("c*x*x", law.Names{"c": c, "x": x}).WithoutSlopes()
}

// addEnds makes the nodes at the ends of a mass with a length.
func addEnds(e *element.Element) {
	if e.Has("L") {
		e.AddNode("a", moves)
		e.AddNode("b", moves)
	}
}

// readMass reads a mass of length L: its ends are L/2 to the left and to the right of its node.
func readMass(e *element.Element) element.Declared {
	half := e.Number("L") / 2
	if len(e.Inner) > 0 {
		e.Tie(network.TermOf(e.Inner["a"], 1), network.TermOf(e.OwnNode, -1)).Gap = -half
		e.Tie(network.TermOf(e.Inner["b"], 1), network.TermOf(e.OwnNode, -1)).Gap = half
	}
	return readInertia(e)
}

func readFixed(e *element.Element) element.Declared {
	e.Network.Nodes[e.OwnNode].Phi0 = e.Number("phi0")
	return element.Declared{}
}

// readLink reads a spring, a damper or both: tau = c·(phi_rel - phi_rel0) + d·w_rel, d with
// its factor by temperature.
func readLink(e *element.Element) element.Declared {
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N")}
	if e.Kind.Name != "damper" {
		c := e.Number("c")
		d = e.AddTwist(c, c)
		d.Tau = network.StateOf(d.Twist).Scaled(c)
		d.Energy = squared(c/2, network.StateOf(d.Twist))
	}

	if e.Kind.Name != "spring" {
		damping := e.Between.Speeds(e.Number("d"))
		if factor, _ := readFactor(e); factor != nil {
			size := e.Number("d") * mostSpeed
			damping = e.AddLaw("damping", d.Unit, law.Formula("factor*damping", law.Names{"factor": factor,
				"damping": law.Of(damping).Within(-size, size)}))
		}
		d.Tau = d.Tau.Plus(damping)
		e.AddLoss(law.Power(damping, e.Between.Speeds(1)))
	}
	e.Exert(e.Between, d.Tau.Scaled(-1))
	return d
}
