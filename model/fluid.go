package model

import "slices"

// fluidKinds are hydraulic and pneumatic elements.
func fluidKinds() []kind { return slices.Concat(actuatorKinds(), hydraulicKinds(), pneumaticKinds()) }
