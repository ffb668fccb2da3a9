package model

// Elements are the element types of a plant file, in the order of its documentation.
func Elements() []kind {
	var all []kind
	for _, list := range [][]kind{mechanicsKinds(), planarKinds(), contactKinds(), machineKinds(), fluidKinds()} {
		all = append(all, list...)
	}
	return all
}
