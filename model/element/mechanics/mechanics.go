// Package mechanics owns the element types along one coordinate that turns or moves: inertias,
// springs, gears, friction, sources, loads and sensors. Types and parameters have the names
// of Mechanics.Rotational and .Translational of the Modelica Standard Library, where it has them.
// Wheels on a road or rail are not here: see package contact.
//
// mechanics.go lists the types and has their common parts; each other file declares and reads one
// group of types: basic.go (inertias, springs), sources.go, gaps.go, clearance.go and regions.go (play,
// springs with regions), gears.go, friction.go, loads.go, sensors.go.
package mechanics

import (
	"slices"

	"lockstep/model/element"
	"lockstep/model/network"
)

// Kinds are the elements along one coordinate.
func Kinds() []element.Kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), loadKinds(),
		sensorKinds())
}

// What a node of an element does.
const (
	turns  = network.Rotational
	moves  = network.Translational
	either = network.AnyDomain
)

// Units of elements that turn and that move.
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
	begin   = number("phi_rel_start|s_rel_start", angle, "from angles", unbounded, "deflection at the start")
	twist   = adds{{Key: "twist", Unit: angle, Meaning: "deflection beyond the unloaded one"}}
)

// initial are the parameters of how a node starts.
var initial = parameters{
	number("w_start|v_start", speed, "0", unbounded, "speed at the start"),
	number("phi_start|s_start", angle, "0", unbounded, "angle at the start|position at the start"),
}
