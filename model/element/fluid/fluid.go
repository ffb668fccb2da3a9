// Package fluid owns the element types with oil or air in them: actuators of clutches, wheel
// brake circuits, brake cylinders. What their pressure presses on is of other families.
package fluid

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are hydraulic and pneumatic elements.
func Kinds() []element.Kind {
	return slices.Concat(actuatorKinds(), hydraulicKinds(), pneumaticKinds())
}
