package fluid

import (
	"slices"

	"lockstep/model/element"
)

// Kinds are hydraulic and pneumatic elements.
func Kinds() []element.Kind {
	return slices.Concat(actuatorKinds(), hydraulicKinds(), pneumaticKinds())
}
