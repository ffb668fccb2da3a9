// Package network owns a plant as a network: nodes that turn or move, rigid constraints between
// them, and torques and forces on them. For errors it has positions in the plant file. Elements
// build it and model/assemble makes matrices of it. It checks nothing and does not know element
// types.
//
// It is a separate package because elements and assembly share it, and the kernel does not need it.
//
// Reading order: plant.go (Plant), law.go (laws, losses of contacts and gears), waveform.go (values
// over time and their ranges).
package network

import (
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/units"
)

// Pos is a position in the plant file.
type Pos = yamlfile.Pos

// Plant is the network of a plant file that was read and checked. All values are SI.
type Plant struct {
	Name  string
	About string
	File  string

	Nodes         []Node
	Ties          []Tie
	States        []State
	Efforts       []Effort
	Frictions     []Friction
	Signals       []Signal // the inputs first, in their order
	Switches      []Region
	Guards        []Guard
	GearLosses    []GearLoss
	ContactLosses []ContactLoss
	Inputs        []model.Input // Signal is an index into Signals
	Outputs       []Output
	Pulses        []model.Pulses   // State is an index into States
	Partition     *model.Partition // nil: none
}

// Add appends an item to a list of a plant and returns its index.
func Add[T any](list *[]T, item T) int {
	*list = append(*list, item)
	return len(*list) - 1
}

// Domain says whether a node turns or moves. One network has nodes of both domains.
type Domain int

const (
	AnyDomain Domain = iota
	Rotational
	Translational
)

func (d Domain) String() string {
	return [...]string{"of any kind", "rotational", "translational"}[d]
}

// Per returns trans if the domain is Translational, otherwise rot.
func (d Domain) Per(rot, trans string) string {
	if d == Translational {
		return trans
	}
	return rot
}

// Spell returns one half of "ROT|TRANS", as Per does; a text without | is returned unchanged.
func (d Domain) Spell(text string) string {
	rot, trans, two := strings.Cut(text, "|")
	if two {
		return d.Per(rot, trans)
	}
	return text
}

// Node is a speed, rad/s or m/s. Without inertia, it follows from the gears, or from
// the springs and dampers at it.
type Node struct {
	Name   string
	At     Pos     // position of its declaration or first use
	Owner  string  // element type that owns the node: "inertia", "fixed", ...; "": a node without mass
	Domain Domain  // AnyDomain is treated as rotational
	By     string  // element that decided the domain
	J      float64 // kg·m² or kg; > 0 for an inertia or mass, else 0
	Start  float64 // initial speed
	Given  bool    // the file gives Start
	Phi0   float64 // initial angle or position
	Placed bool    // the file gives Phi0
	Framed bool    // node of a body, which alone gives the start values
	Fixes  bool    // Phi0 depends on a position in the plane
	Loose  bool    // Phi0 lacks the offset from the centre of a body whose position the file omits
	Driven int     // 1 + index of the state that is the prescribed speed; 0: not prescribed
	Users  []string
}

// Row is a linear form of the speeds: Σ coef·w[node].
type Row []Term

// Term is Coef·w[Node].
type Term struct {
	Node int // index into Plant.Nodes
	Coef float64
}

// Tie is a rigid connection: row = 0. It exerts a multiplier along row.
type Tie struct {
	Name  string
	At    Pos
	Row   Row
	Gap   float64 // value of Row with positions (angles) in place of speeds
	Joint bool    // constraint of a mechanical joint, which must remove a degree of freedom
}

// State is a quantity with the rate Der: the twist of a spring, an angle, a temperature, a lag.
type State struct {
	Name  string
	Unit  string // SI
	At    Pos
	Der   Form
	Start float64
	Speed Row     // if the file gives a start speed of these nodes: the row that replaces Start
	Along Row     // row of angles (positions) that is added to Start, if one is known
	Stays bool    // without known angles: true: the state starts at Start, false: at 0
	C     float64 // stiffness: the stored energy is ½·C·x²
}

// Effort is a torque or force: a node of Row gets Value times its coefficient.
type Effort struct {
	Element string
	At      Pos
	Row     Row
	Value   Form
}

// Friction is a friction element: |tau| <= gain·max(0, v[signal] - offset).
type Friction struct {
	model.Friction
	At    Pos
	Rel   Row     // w_b - w_a
	Press int     // signal of its normal force
	Rough float64 // largest torque per N of the normal force, N·m/N; 0: unknown
}

// Signal is a value over time, in SI: a source, or a law of the plant.
type Signal struct {
	Name     string
	Source   model.Source
	Law      *Law
	Affine   *model.Affine
	Waveform Waveform // value over time in the file, if an element has one; nil: none
	Unit     units.Unit
	MaxAbs   float64 // largest absolute value expected; 0: unknown
	Linear   Form    // the value as a form; nil: it is not linear
	At       Pos
	Read     bool // an element or output reads the signal
}

// Guard is an event indicator: a law of the plant has a breakpoint where Law crosses 0.
type Guard struct {
	Name string
	At   Pos
	Law  Law
}

// Region is a model.Switch before assembly: its variable z is a form of speeds and states.
type Region struct {
	model.Switch
	At   Pos
	Form Form
}

// Output is a port and its value as a form.
type Output struct {
	units.Port
	At   Pos
	Form Form
}

// Form is a sum of quantities.
type Form []measure

// measure is Coef times one quantity of the plant. Index is an index into the list that Kind
// selects.
type measure struct {
	Kind  MeasureKind
	Index int
	Coef  float64
}

// MeasureKind selects the quantity of a measure.
type MeasureKind int

const (
	OfOne         MeasureKind = iota // the number 1
	OfSpeed                          // nodes
	OfAccel                          // nodes: acceleration; in outputs and laws only
	OfDrive                          // nodes: torque or force that drives a prescribed node; in outputs and laws only
	OfTie                            // ties: the multiplier; in outputs and laws only
	OfGearLoad                       // GearLosses: the torque into flange a without the gear's own friction; in laws only
	OfGearShare                      // GearLosses: share of the friction torque that flange a gives, 1; in laws only
	OfContactLoss                    // ContactLosses: the loss of a contact; in laws only
	OfState                          // states
	OfSignal                         // signals
	OfFriction                       // Frictions: tau; not in rates
)

// Speeds returns the row as a form, times scale.
func (r Row) Speeds(scale float64) Form {
	var f Form
	for _, t := range r {
		f = append(f, measure{OfSpeed, t.Node, scale * t.Coef})
	}
	return f
}

// Scaled returns f times the number k.
func (f Form) Scaled(k float64) Form {
	out := slices.Clone(f)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}

// Index returns the index of the first quantity of f, for a form of one quantity.
func (f Form) Index() int { return f[0].Index }

// Plus returns f + g.
func (f Form) Plus(g Form) Form { return append(append(Form(nil), f...), g...) }

// One and the functions below return a quantity of the plant as a form with coefficient 1. One
// returns the number v.
func One(v float64) Form       { return Form{{OfOne, 0, v}} }
func AccelOf(n int) Form       { return Form{{OfAccel, n, 1}} }
func DriveOf(n int) Form       { return Form{{OfDrive, n, 1}} }
func TieOf(i int) Form         { return Form{{OfTie, i, 1}} }
func GearLoadOf(i int) Form    { return Form{{OfGearLoad, i, 1}} }
func GearShareOf(i int) Form   { return Form{{OfGearShare, i, 1}} }
func ContactLossOf(i int) Form { return Form{{OfContactLoss, i, 1}} }
func StateOf(i int) Form       { return Form{{OfState, i, 1}} }
func SignalOf(i int) Form      { return Form{{OfSignal, i, 1}} }
func FrictionOf(i int) Form    { return Form{{OfFriction, i, 1}} }

// Coef returns the coefficient of node n.
func (r Row) Coef(n int) (c float64) {
	for _, t := range r {
		if t.Node == n {
			c += t.Coef
		}
	}

	return c
}

// TermOf returns coef·w[n].
func TermOf(n int, coef float64) Term { return Term{n, coef} }

// RowOf returns w[n].
func RowOf(n int) Row { return Row{TermOf(n, 1)} }

// Difference returns w[plus] - w[minus]; the speed of Ground is 0.
func Difference(plus, minus int) Row {
	var r Row
	if plus != Ground {
		r = append(r, Term{plus, 1})
	}
	if minus != Ground {
		r = append(r, Term{minus, -1})
	}
	return r
}

// Ground stands for the node that does not move, in place of a support that is left out.
const Ground = -1

// SpeedUnit returns the unit of a node's speed, AngleUnit the unit of its angle or position.
func (n *Node) SpeedUnit() string { return n.Domain.Per("rad/s", "m/s") }
func (n *Node) AngleUnit() string { return n.Domain.Per("rad", "m") }

// Scaled returns r times the number k.
func (r Row) Scaled(k float64) Row {
	out := slices.Clone(r)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}
