// Package mechanics owns the element types along one coordinate that turns or moves: inertias,
// springs, gears, friction, sources, loads and sensors. They are those of Mechanics.Rotational and
// .Translational of the Modelica Standard Library, where it has them. Wheels on a road or rail are
// not among them.
//
// mechanics.go lists the types; each other file is one kind of them: basic.go (inertias, springs),
// regions.go, gaps.go and clearance.go (springs with regions, play), gears.go and lossy.go,
// friction.go, sources.go, harmonics.go, loads.go, sensors.go.
package mechanics

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are the elements along one coordinate.
func Kinds() []element.Kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), loadKinds(), sensorKinds())
}
