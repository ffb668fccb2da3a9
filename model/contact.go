package model

// contactKinds are the contacts of a wheel with what it rolls on.
func contactKinds() []kind { return append(tyreKinds(), railKinds()...) }
