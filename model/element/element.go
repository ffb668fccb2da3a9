// Package element owns what an element of a plant file is: its type, how it reads its parameters
// and their bounds, and what it can add to the network. It holds no element type and does not read
// files: the caller gives each Element its entry in the file and its Namespace.
//
// The types are in packages by family, mechanics, planar, contact, machine and fluid, so that a
// family can grow without the others.
//
// Reading order: element.go (Kind, Element), parameters.go (what an element reads), build.go (what
// it adds to the network).
package element

import (
	"fmt"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kind is an element type: the nodes it touches, its parameters, and how its entry becomes
// part of the plant.
type Kind struct {
	Name       string
	Owns       bool           // it is a node itself, of domain itself
	Itself     network.Domain // of the node it owns
	Flanges    []Flange
	Parameters []Parameter
	Gives      string           // unit of the signal of its own name, "" where it has none
	Adds       []Quantity       // what outputs can read of it beside what follows from its flanges
	Hint       string           // where its nodes are, for a flange that names it as NAME; "": it has none inside
	Early      func(e *Element) // makes the nodes of a kind that owns several
	Read       func(e *Element) Declared
}

// Quantity is what outputs read of an element as NAME.Key: a signal or a state.
type Quantity struct {
	Key     string
	Unit    string // SI; as that of a Parameter
	Meaning string // noun phrase
}

// Domain returns the domain of all elements of the type; network.AnyDomain where their nodes
// decide.
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
	Key      string
	Domain   network.Domain // network.AnyDomain: that of the other flanges of the element
	Optional bool           // left out, it is ground
}

// Flanges are keys that each name a node of domain d.
func Flanges(d network.Domain, keys ...string) []Flange {
	var list []Flange
	for _, key := range keys {
		list = append(list, Flange{Key: key, Domain: d})
	}
	return list
}

// Ends are the flanges of an element between two nodes.
func Ends(d network.Domain) []Flange { return Flanges(d, "a", "b") }

// OnSupport are the flanges of an element on a node, with a support that may be left out.
func OnSupport(d network.Domain) []Flange {
	return []Flange{{"flange", d, false}, {"support", d, true}}
}

// Element is one entry of the section elements while it is read.
type Element struct {
	*yamlfile.Reader
	*Plant
	Namespace
	Name      string // with the names of the sub-assemblies around it: left.brake
	Assembly  string // in which it is declared; "" for the plant
	Kind      *Kind
	At        network.Pos
	Fields    map[string]Field
	Nodes     map[string]int // by flange key
	Domain    network.Domain // of its flanges
	Between   network.Row    // w_b - w_a, or w_flange - w_support
	OwnNode   int            // of an element that is a node
	OwnSignal int            // signal of its name; -1: it has none
	Named     map[string]Reading
	Data      any // what its family keeps of it for the other elements
}

// Namespace reads values that may name parameters, inputs and signals: those that are
// known where an element stands.
type Namespace interface {
	Quantity(f Field, what string, want units.Wanted) float64 // in SI
	Signal(f Field, what, name string, want units.Wanted) int // an index into the signals of the network
	FullName(name string) string                              // name in the whole plant
}

// Plant is the plant that is being read, with what its elements know of each other.
type Plant struct {
	Network  *network.Plant
	Elements []*Element
	angles   map[int]int // node -> the state that is its angle
}

// Angle is the state that integrates the speed of node n.
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

// What names the element in a message.
func (e *Element) What() string {
	if e.Assembly != "" {
		return fmt.Sprintf("element %q of assembly %q", e.Name, e.Assembly)
	}
	return fmt.Sprintf("element %q", e.Name)
}

// Field is an entry of the file with its places.
type Field = yamlfile.Field

// Refuse refuses the element in a message that begins with its name. It ends the reading of the
// file, as every error does.
func (e *Element) Refuse(at network.Pos, format string, args ...any) {
	e.FailAt(at, "%s: %s", e.What(), fmt.Sprintf(format, args...))
}

// Declared is an element as the section outputs sees it.
type Declared struct {
	Kind     string
	Rel      network.Row  // w_b - w_a; nil: it has none
	Tau      network.Form // its own torque or force; nil: none
	Unit     string
	Angle    string // unit of phi_rel where a state of it exists
	Twist    int    // that state, phi_rel - rest
	Rest     float64
	Friction bool
	Named    map[string]Reading
}

// Reading is a quantity that outputs can read by name.
type Reading struct {
	Form network.Form
	Unit string
}

// Term is coef times the speed of a flange.
func (e *Element) Term(key string, coef float64) network.Term {
	return network.TermOf(e.Node(key), coef)
}

// Node is the node of a flange, or ground.
func (e *Element) Node(key string) int {
	if i, ok := e.Nodes[key]; ok {
		return i
	}
	return network.Ground
}
