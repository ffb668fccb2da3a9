// Package element owns what an element of a plant file is: its type, how it reads its
// parameters and their bounds, and what it can add to the network. It holds no element
// type: these are in packages by family, mechanics, planar, contact, machine and fluid. It
// does not read files: what loads them gives each Element its entry and its Namespace.
package element

import (
	"fmt"

	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Kind is an element type: the nodes it touches, its keys, and how its entry becomes
// part of the plant.
type Kind struct {
	Name        string
	Owns        bool           // it is a node itself, of domain itself
	Itself      network.Domain // of the node it owns
	Flanges     []Flange
	Points      []string // keys that name points of bodies
	Keys        []string
	Gives       string           // unit of the signal of its own name, "" where it has none
	GivesMoving string           // the same of an element that moves, where it is another
	Hint        string           // where its nodes are, for a flange that names it as NAME; "": it has none inside
	Early       func(e *Element) // makes the nodes of a kind that owns several
	Read        func(e *Element) Declared
}

// Flange is a key that names a node.
type Flange struct {
	Key      string
	Domain   network.Domain // AnyDomain: that of the other flanges of the element
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
	*syntax.Reader
	*Plant
	Namespace
	Name      string // with the names of the sub-assemblies around it: left.brake
	Assembly  string // in which it is declared; "" for the plant
	Kind      *Kind
	At        network.Pos
	Fields    map[string]syntax.Field
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
	Quantity(f syntax.Field, what string, want units.Wanted) float64 // in SI
	Signal(f syntax.Field, what, name string, want units.Wanted) int // an index into the signals of the network
	FullName(name string) string                                     // name in the whole plant
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
	name := ".phi"
	if node.Domain == network.Translational {
		name = ".s"
	}
	p.Network.States = append(p.Network.States, network.State{Name: node.Name + name, Unit: node.AngleUnit(), At: node.At,
		Der: network.RowOf(n).Speeds(1), Along: network.RowOf(n)})
	if p.angles == nil {
		p.angles = map[int]int{}
	}
	p.angles[n] = len(p.Network.States) - 1
	return p.angles[n]
}

// What names the element in a message.
func (e *Element) What() string {
	if e.Assembly != "" {
		return fmt.Sprintf("element %q of assembly %q", e.Name, e.Assembly)
	}
	return fmt.Sprintf("element %q", e.Name)
}

// Fail refuses the element.
func (e *Element) Fail(at network.Pos, format string, args ...any) {
	e.FailElement(e.Name, at, format, args...)
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
