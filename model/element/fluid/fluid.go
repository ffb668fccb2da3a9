// Package fluid owns the element types with oil or air in them: actuators of clutches, wheel brake
// circuits, brake cylinders. The clutch or brake that their pressure presses on is not among them.
package fluid

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are hydraulic and pneumatic elements.
func Kinds() []element.Kind {
	return slices.Concat(actuatorKinds(), hydraulicKinds(), pneumaticKinds())
}
