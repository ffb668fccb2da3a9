package model

// Elements are the element types of a plant file, in the order of its documentation.
func Elements() []kind {
	var all []kind
	for _, list := range [][]kind{basicKinds(), gearKinds(), frictionKinds(), driveKinds(), loadKinds(), machineKinds(), gapKinds(), regionKinds(), tyreKinds(), harmonicKinds(), hydraulicKinds(), pneumaticKinds(), planarKinds(), railKinds()} {
		all = append(all, list...)
	}
	return all
}
