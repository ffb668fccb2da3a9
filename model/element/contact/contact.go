// Package contact owns the element types of a wheel on what it rolls on: tyre and rail. The
// wheel and the vehicle are of other families.
package contact

import "lockstep/model/element"

// Kinds are the contacts of a wheel with what it rolls on.
func Kinds() []element.Kind { return append(tyreKinds(), railKinds()...) }
