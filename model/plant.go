package model

// Plant is a plant file that was read and checked: a network of nodes and of what
// acts between them. All values are SI.
type Plant struct {
	Name  string
	About string
	File  string

	nodes     []node
	ties      []tie
	links     []link
	frictions []friction
	torques   []torque
	signals   []signal // the inputs first, in their order
	inputs    []Port
	outputs   []output
}

// node is a speed, rad/s. Without inertia, it follows from the gears.
type node struct {
	name  string
	at    pos     // where it is declared, or first used
	owner string  // the kind that owns it: "inertia", "fixed"; "" massless
	J     float64 // kg·m²; > 0 for an inertia, else 0
	start float64 // initial speed, rad/s
	given bool    // start was written
	users []string
}

// row is a linear form of the speeds: Σ coef·w[node].
type row []term

type term struct {
	node int // index into Plant.nodes
	coef float64
}

// tie is a rigid connection: row = 0.
type tie struct {
	name string
	at   pos
	row  row
}

// link is a spring, a damper or both: tau = c·twist + d·rel, with twist' = rel.
type link struct {
	name string
	at   pos
	rel  row     // w_b - w_a
	c    float64 // N·m/rad; 0: no spring and no state
	d    float64 // N·m·s/rad
	rest float64 // phi_rel without torque, rad
	phi0 float64 // initial phi_rel, rad
}

// friction is a clutch or brake: |tau| <= gain·max(0, v[signal] - offset).
type friction struct {
	name   string
	at     pos
	rel    row // w_b - w_a
	signal int // index into Plant.signals
	gain   float64
	offset float64
	peak   float64
}

// torque is a source: +v[signal] acts along row.
type torque struct {
	name   string
	row    row
	signal int
}

// signal is a value over time, in SI.
type signal struct {
	name   string
	source Source
	unit   Unit
	at     pos
	read   bool // something depends on it
}

// output is a port: the sum of what its terms measure.
type output struct {
	Port
	at    pos
	terms []measure
}

// measure is coef times one quantity of the plant; index is into the list that
// kind says.
type measure struct {
	kind  measureKind
	index int
	coef  float64
}

type measureKind int

const (
	ofSpeed       measureKind = iota // nodes
	ofLinkRel                        // links: w_rel
	ofLinkTwist                      // links: phi_rel - rest
	ofLinkTorque                     // links
	ofFrictionRel                    // frictions: w_rel
	ofFriction                       // frictions: tau
	ofSignal                         // signals
)
