// Package ecu owns the list of the virtual control units, and the bus of one: programs at the other end of the bus that
// behave as the real unit would. They are a second, independent implementation of the frames, built on
// github.com/brutella/can with its own packing. They do not import any other package of lockstep but those of rt/ecu,
// nor do their tests, and the ticking process does not use them.
//
// unit has what every unit has, gearbox and brakes have the units, diagnosis has the protocols of the tester. Users of
// the control units import this package only.
//
// Reading order: ecu.go (units by their names), open.go (their bus).
package ecu

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"lockstep/rt/ecu/brakes"
	"lockstep/rt/ecu/gearbox"
	"lockstep/rt/ecu/unit"
)

// What a user of a control unit needs of package unit.
type (
	Stepped   = unit.Stepped
	Counts    = unit.Counts
	Parameter = unit.Parameter
	Setting   = unit.Setting
	Line      = unit.Line
)

// types lists the control units.
func types() []unit.Type { return append(gearbox.Types(), brakes.Types()...) }

// Names lists the names of the control units.
func Names() (names []string) {
	for _, k := range types() {
		names = append(names, k.Name)
	}
	return names
}

// find returns the control unit called name.
func find(name string) (unit.Type, error) {
	list := types()
	i := slices.IndexFunc(list, func(k unit.Type) bool { return k.Name == name })
	if i < 0 {
		return unit.Type{}, fmt.Errorf("ecu: no control unit %q; there are: %s", name, strings.Join(Names(), ", "))
	}
	return list[i], nil
}

// Run runs the control unit called name on a bus, in real time, as unit.Run does. It always closes bus.
func Run(name string, bus io.ReadWriteCloser, log io.Writer, stop <-chan struct{}, settings ...Setting) error {
	k, err := find(name)
	if err != nil {
		bus.Close()
		return err
	}
	return unit.Run(k, bus, log, stop, settings...)
}

// NewStepped returns the control unit called name at instant 0, as unit.NewStepped does.
func NewStepped(name string, line io.Writer, log io.Writer, settings ...Setting) (*Stepped, error) {
	k, err := find(name)
	if err != nil {
		return nil, err
	}
	return unit.NewStepped(k, line, log, settings...)
}

// ParseCounts reads the counts from the last line of a control unit, "NAME: ...".
func ParseCounts(line string) (Counts, error) { return unit.ParseCounts(line) }

// Check returns an error if the control unit called name does not accept the settings.
func Check(name string, list []Setting) error {
	_, err := NewStepped(name, nil, io.Discard, list...)
	return err
}

// Parameters returns the parameters of the control unit called name, with their defaults; nil if it
// has none.
func Parameters(name string) []Parameter {
	k, err := find(name)
	if err != nil {
		return nil
	}
	return k.Parameters()
}

// Describe lists the parameters of the control unit called name with their defaults.
func Describe(name string) string { return unit.Describe(Parameters(name)) }
