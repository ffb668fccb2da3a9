package model

import "fmt"

// kind is an element type: the nodes it touches, its keys, and how its entry becomes
// part of the plant.
type kind struct {
	name        string
	owns        bool   // it is a node itself, of domain itself
	itself      domain // of the node it owns
	flanges     []flange
	frames      []string // keys that name points of bodies
	keys        []string
	gives       string           // unit of the signal of its own name, "" where it has none
	givesMoving string           // the same of an element that moves, where it is another
	hint        string           // where its nodes are, for a flange that names it as NAME; "": it has none inside
	early       func(e *element) // makes the nodes of a kind that owns several
	read        func(e *element) declared
}

// flange is a key that names a node.
type flange struct {
	key      string
	domain   domain // anyDomain: that of the other flanges of the element
	optional bool   // left out, it is ground
}

// ends are the flanges of an element between two nodes; onSupport of one on a node
// and a support that may be left out.
func ends(d domain) []flange { return []flange{{"a", d, false}, {"b", d, false}} }

func onSupport(d domain) []flange {
	return []flange{{"flange", d, false}, {"support", d, true}}
}

// element is one entry of the section elements while it is read.
type element struct {
	*reader
	*parts
	namespace
	name      string // with the names of the sub-assemblies around it: left.brake
	assembly  string // in which it is declared; "" for the plant
	kind      *kind
	at        pos
	fields    map[string]field
	nodes     map[string]int // by flange key
	domain    domain         // of its flanges
	between   row            // w_b - w_a, or w_flange - w_support
	ownNode   int            // of an element that is a node
	ownSignal int            // signal of its name; -1: it has none
	named     map[string]reading
	data      any // what its family keeps of it for the other elements
}

// namespace reads values that may name parameters, inputs and signals: those that are
// known where an element stands.
type namespace interface {
	quantity(f field, what string, want wanted) float64 // in SI
	signal(f field, what, name string, want wanted) int // an index into Plant.signals
	full(name string) string                            // name in the whole plant
}

// parts is the plant that is being read, with what its elements know of each other.
type parts struct {
	plant  *Plant
	all    []*element
	angles map[int]int // node -> the state that is its angle
}

// angle is the state that integrates the speed of node n.
func (p *parts) angle(n int) int {
	if i, ok := p.angles[n]; ok {
		return i
	}
	node := &p.plant.nodes[n]
	name := ".phi"
	if node.domain == translational {
		name = ".s"
	}
	p.plant.states = append(p.plant.states, state{name: node.name + name, unit: node.angleUnit(), at: node.at,
		der: rowOf(n).speeds(1), along: rowOf(n)})
	if p.angles == nil {
		p.angles = map[int]int{}
	}
	p.angles[n] = len(p.plant.states) - 1
	return p.angles[n]
}

func (e *element) what() string {
	if e.assembly != "" {
		return fmt.Sprintf("element %q of assembly %q", e.name, e.assembly)
	}
	return fmt.Sprintf("element %q", e.name)
}

// fail refuses the element.
func (e *element) fail(at pos, format string, args ...any) { e.failOf(e.name, at, format, args...) }

// declared is an element as the section outputs sees it.
type declared struct {
	kind     string
	rel      row  // w_b - w_a; nil: it has none
	tau      form // its own torque or force; nil: none
	unit     string
	angle    string // unit of phi_rel where a state of it exists
	twist    int    // that state, phi_rel - rest
	rest     float64
	friction bool
	named    map[string]reading
}

// reading is a quantity that outputs can read by name.
type reading struct {
	form form
	unit string
}

// term is coef times the speed of a flange.
func (e *element) term(key string, coef float64) term { return termOf(e.node(key), coef) }

// node is the node of a flange, or ground.
func (e *element) node(key string) int {
	if i, ok := e.nodes[key]; ok {
		return i
	}
	return ground
}
