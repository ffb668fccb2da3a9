// Package mechanics owns the element types along one coordinate that turns or moves, as in
// Mechanics.Rotational and .Translational of the Modelica Standard Library: inertias, springs,
// gears, friction, sources, loads and sensors. Wheels on a road or rail are not among them.
package mechanics

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are the elements along one coordinate.
func Kinds() []element.Kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), loadKinds(), sensorKinds())
}
