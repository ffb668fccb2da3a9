package contact

import "lockstep/model/element"

// Kinds are the contacts of a wheel with what it rolls on.
func Kinds() []element.Kind { return append(tyreKinds(), railKinds()...) }
