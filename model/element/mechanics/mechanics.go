package mechanics

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are the elements along one coordinate.
func Kinds() []element.Kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), loadKinds(), sensorKinds())
}
