// Package library owns the list of element types that a plant file may use. It has no type of its
// own: each is in the package of its family below model/element. The list is a separate package
// so that model/plantfile and the families do not import each other.
package library

import (
	"lockstep/model/element"
	"lockstep/model/element/car"
	"lockstep/model/element/contact"
	"lockstep/model/element/driver"
	"lockstep/model/element/fluid"
	"lockstep/model/element/machine"
	"lockstep/model/element/mechanics"
	"lockstep/model/element/planar"
	"lockstep/model/element/signal"
	"lockstep/model/element/thermal"
)

// Elements returns the element types of a plant file, in the order of the documentation.
func Elements() []element.Kind {
	var all []element.Kind
	for _, list := range [][]element.Kind{mechanics.Kinds(), planar.Kinds(), contact.Kinds(), car.Kinds(), machine.Kinds(), fluid.Kinds(),
		signal.Kinds(), driver.Kinds(), thermal.Kinds()} {
		all = append(all, list...)
	}
	return all
}
