package model

import "slices"

// mechanicsKinds are the elements along one coordinate.
func mechanicsKinds() []kind {
	return slices.Concat(basicKinds(), sourceKinds(), gapKinds(), regionKinds(), gearKinds(), frictionKinds(), loadKinds(), sensorKinds())
}
