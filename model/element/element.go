// Package element owns the framework of element types: their declaration, the reading of parameters
// within bounds, and the functions that add to the network. It declares no element type and does not
// read files: model/plantfile gives each Element its entry and its Namespace.
//
// The types are in packages by family: mechanics, planar, contact, machine, fluid, signal, driver and thermal.
//
// Reading order: element.go (Kind, Element), parameters.go (what an element reads), build.go (what
// it adds to the network), heat.go (heat capacities, and losses that flow into them).
package element

import (
	"fmt"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kind is an element type: its flanges, its parameters, and the function that adds an element to the
// plant.
type Kind struct {
	Name       string
	Owns       bool           // an element is itself a node, of domain Itself
	Itself     network.Domain // domain of the node that an element owns
	Flanges    []Flange
	Parameters []Parameter
	Gives      string                                   // unit of the signal with the name of the element; "": no such signal
	GivesAs    func(e *Element) (units.Unit, UnitState) // that unit where it follows from the keys
	Signals    []Quantity                               // further signals, NAME.Key
	Adds       []Quantity                               // further quantities that outputs can read, besides those of the flanges
	Hint       string                                   // names of the nodes inside element NAME, for errors; "": there are none
	MakeNodes  func(e *Element)                         // makes further nodes of a type, NAME.KEY; nil: none
	First      bool                                     // it is read before the other types, which need its points
	Read       func(e *Element) Declared
}

// Quantity is a signal or a state of an element, which outputs read as NAME.Key.
type Quantity struct {
	Key     string
	Unit    string // SI, in the form of Parameter.Unit
	Meaning string // noun phrase
}

// Domain returns the domain of all elements of the type; network.AnyDomain if it depends on their
// nodes.
func (k *Kind) Domain() network.Domain {
	d, any := k.Itself, false
	for _, f := range k.Flanges {
		d, any = max(d, f.Domain), any || f.Domain == network.AnyDomain
	}
	if any && d != network.Translational {
		return network.AnyDomain
	}
	return d
}

// Keys returns the keys of an entry of the type, type included.
func (k *Kind) Keys() []string {
	keys := []string{"type"}
	for _, f := range k.Flanges {
		keys = append(keys, f.Key)
	}
	for _, p := range k.Parameters {
		if k.Domain() != network.AnyDomain {
			p = p.In(k.Domain())
		}
		keys = append(keys, strings.Split(p.Key, "|")...)
	}
	return keys
}

// Flange is a key that names a node.
type Flange struct {
	Key     string
	Domain  network.Domain // network.AnyDomain: as the other flanges of the element
	Missing string         // what takes the place of the node if the key is left out; "": the key is required
}

// Flanges returns flanges of domain d.
func Flanges(d network.Domain, keys ...string) []Flange {
	var list []Flange
	for _, key := range keys {
		list = append(list, Flange{Key: key, Domain: d})
	}
	return list
}

// Ends returns the flanges of an element between two nodes.
func Ends(d network.Domain) []Flange { return Flanges(d, "a", "b") }

// OnSupport returns the flanges of an element at one node, with an optional support.
func OnSupport(d network.Domain) []Flange {
	return append(Flanges(d, "flange"), Support("support", d))
}

// Support returns an optional flange that is otherwise the ground.
func Support(key string, d network.Domain) Flange {
	return Flange{Key: key, Domain: d, Missing: "ground"}
}

// Element is one entry of the section elements during reading.
type Element struct {
	*yamlfile.Reader
	*Plant
	Namespace
	Name      string // name in the whole plant: left.brake in sub-assembly left
	Assembly  string // name of the assembly that declares the element; "": the plant
	Kind      *Kind
	At        network.Pos
	Fields    map[string]Field
	Nodes     map[string]int // index of the node, by flange key
	Inner     map[string]int // index of the node NAME.KEY, by key, of a type that makes such nodes
	Domain    network.Domain // domain of its flanges
	Between   network.Row    // w_b - w_a, or w_flange - w_support
	OwnNode   int            // index of the node, if the type is a node
	OwnSignal int            // index of the signal with its name; -1: none
	Signals   map[string]int // index of each signal in Kind.Signals, by its key
	Named     map[string]Reading
	Contacts  []int             // friction elements that take energy in impacts
	Frictions []int             // friction elements that take energy beyond the event budget
	Data      any               // data that the family shares between its elements
	used      map[string]bool   // keys whose values have been read
	units     map[string]string // SI unit of a key, or of a quantity in Kind.Adds, that follows from other keys
	relative  map[string]bool   // keys whose values are factors or differences
}

// Namespace reads values that may contain names. It knows the parameters, inputs and signals of the
// plant or of the sub-assembly that holds the element.
type Namespace interface {
	Quantity(f Field, what string, want units.Wanted) float64   // in SI
	ValueUnit(f Field, what string) (u units.Unit, s UnitState) // of a value over time
	Signal(f Field, what, name string, want units.Wanted) int   // an index into the signals of the network
	FullName(name string) string                                // name in the whole plant
}

// UnitState says whether a value over time has a unit.
type UnitState int

const (
	UnitBare  UnitState = iota // numbers without a unit
	UnitOpen                   // the unit follows from a signal whose unit is not found yet
	UnitKnown                  // the value has a unit
)

// Plant is the plant during reading, with all elements.
type Plant struct {
	Network  *network.Plant
	Elements []*Element
	ReadFile func(name string) (data []byte, path string, err error) // reads a file beside the plant file
	angles   map[int]int                                             // state that is the angle, by node
	laws     []pendingLaw
	checks   []func()

	capacities map[int]heatCapacity // by the signal of the temperature
	flows      []heatFlow
}

// Angle returns the state that integrates the speed of node n; the first call makes it.
func (p *Plant) Angle(n int) int {
	if i, ok := p.angles[n]; ok {
		return i
	}
	node := &p.Network.Nodes[n]
	if p.angles == nil {
		p.angles = map[int]int{}
	}
	s := network.State{Name: node.Name + node.Domain.Per(".phi", ".s"), Unit: node.AngleUnit(), At: node.At,
		Der: network.RowOf(n).Speeds(1), Along: network.RowOf(n)}
	p.angles[n] = network.Add(&p.Network.States, s)
	return p.angles[n]
}

// What names the element in an error.
func (e *Element) What() string {
	if e.Assembly != "" {
		return fmt.Sprintf("element %q of assembly %q", e.Name, e.Assembly)
	}
	return fmt.Sprintf("element %q", e.Name)
}

// Field is an entry of the file with its positions.
type Field = yamlfile.Field

// Refuse reports an error that begins with the name of the element. It ends the reading of the file,
// as every error does.
func (e *Element) Refuse(at network.Pos, format string, args ...any) {
	e.FailAt(at, "%s: %s", e.What(), fmt.Sprintf(format, args...))
}

// Declared holds the quantities of an element that the section outputs can read.
type Declared struct {
	Kind      string
	Rel       network.Row  // w_b - w_a; nil: none
	Tau       network.Form // its own torque or force; nil: none
	Energy    *law.Expr    // energy that it stores, J; nil: none
	Unit      string
	Angle     string // unit of phi_rel; "": there is no state
	Twist     int    // index of the state phi_rel - Rest; valid if Angle is set
	Rest      float64
	Friction  bool
	Contacts  []int     // friction elements that take energy in impacts
	Frictions []int     // friction elements that take energy beyond the event budget
	Loss      *law.Expr // what Contacts lose besides, W; nil: nothing
	Named     map[string]Reading
}

// Reading is a value that an output can read.
type Reading struct {
	Form     network.Form
	Unit     string
	Declared string // unit that the plant file declares for it; "": none
}

// Term returns coef times the speed of a flange.
func (e *Element) Term(key string, coef float64) network.Term {
	return network.TermOf(e.Node(key), coef)
}

// Node returns the node of a flange, network.Ground for a missing one.
func (e *Element) Node(key string) int {
	if i, ok := e.Nodes[key]; ok {
		return i
	}
	return network.Ground
}
