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

// Pos is a place in the plant file.
type Pos = yamlfile.Pos

// Plant is a plant file that was read and checked: a network of nodes and of what
// acts between them. All values are SI.
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
	Inputs        []model.Input // Signal is an index into signals
	Outputs       []Output
	Pulses        []model.Pulses   // State is an index into states
	Partition     *model.Partition // nil: none
}

// Add appends an item to a list of a plant and returns its index.
func Add[T any](list *[]T, item T) int {
	*list = append(*list, item)
	return len(*list) - 1
}

// Domain is what a node does: it turns or it moves. A speed of either kind is a
// coordinate of the same network.
type Domain int

const (
	AnyDomain Domain = iota
	Rotational
	Translational
)

func (d Domain) String() string {
	return [...]string{"of any kind", "rotational", "translational"}[d]
}

// Per chooses a spelling: that of what moves, or else that of what turns.
func (d Domain) Per(rot, trans string) string {
	if d == Translational {
		return trans
	}
	return rot
}

// Spell chooses of "ROT|TRANS" as Per does; any other text is one spelling.
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
	At     Pos     // where it is declared, or first used
	Owner  string  // the kind that owns it: "inertia", "fixed", ...; "" massless
	Domain Domain  // AnyDomain counts as rotational
	By     string  // the element that fixed the domain
	J      float64 // kg·m² or kg; > 0 for an inertia or mass, else 0
	Start  float64 // initial speed
	Given  bool    // start was written
	Phi0   float64 // initial angle or position
	Placed bool    // phi0 was written
	Framed bool    // it is of a body, which alone says where it starts
	Fixes  bool    // phi0 is a place in the plane,
	Loose  bool    // or it leaves out an offset from the centre of a body, of which no place was written
	Driven int     // 1 + the state that is its speed; 0: it is not prescribed
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
	Gap   float64 // what row is of places (angles) instead of speeds
	Joint bool    // it must take a degree of freedom
}

// State is a quantity with der as its rate: the twist of a spring, an angle, a
// temperature, a lag.
type State struct {
	Name  string
	Unit  string // SI
	At    Pos
	Der   Form
	Start float64
	Speed Row     // start is the speed along these nodes where one of them is given
	Along Row     // the angles (positions) of these nodes are added to start where they are known
	Stays bool    // where none of them is known, start holds; otherwise the state is 0 then
	C     float64 // the stored energy is ½·c·x²
}

// Effort is a torque or force: value acts along row, on node n with its coefficient.
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
	Rough float64 // torque at most for each N of that; 0: not known
}

// Signal is a value over time, in SI: a source, or a law of the plant.
type Signal struct {
	Name     string
	Source   model.Source
	Law      *Law
	Affine   *model.Affine
	Waveform Waveform // as it was written, of an element; nil: not
	Unit     units.Unit
	MaxAbs   float64 // largest absolute value to be expected; 0: unknown
	Linear   Form    // the same value as a form of signals, where it is one
	At       Pos
	Read     bool // something depends on it
}

// Guard is a place where a law has a corner.
type Guard struct {
	Name string
	At   Pos
	Law  Law
}

// Region is a Switch in the making: z as a form of speeds and states.
type Region struct {
	model.Switch
	At   Pos
	Form Form
}

// Output is a port: a linear form of what the plant has.
type Output struct {
	units.Port
	At   Pos
	Form Form
}

// Form is a sum of quantities.
type Form []measure

// measure is coef times one quantity of the plant; index is into the list that
// kind says.
type measure struct {
	Kind  MeasureKind
	Index int
	Coef  float64
}

// MeasureKind says of what a Measure is.
type MeasureKind int

const (
	OfOne         MeasureKind = iota // the number 1
	OfSpeed                          // nodes
	OfAccel                          // nodes: the rate of their speed; in outputs and laws only
	OfDrive                          // nodes: what drives a prescribed one; in outputs and laws only
	OfTie                            // ties: the multiplier; in outputs and laws only
	OfGearLoad                       // losses: the torque into flange a without the gear's own friction; in laws only
	OfGearShare                      // losses: how much of its friction torque flange a gives; a number, in laws only
	OfContactLoss                    // pushes: the loss of a contact; in laws only
	OfState                          // states
	OfSignal                         // signals
	OfFriction                       // frictions: tau; not in rates
)

// Speeds is the row as a form, times scale.
func (r Row) Speeds(scale float64) Form {
	var f Form
	for _, t := range r {
		f = append(f, measure{OfSpeed, t.Node, scale * t.Coef})
	}
	return f
}

// Scaled is f times the number k.
func (f Form) Scaled(k float64) Form {
	out := slices.Clone(f)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}

// Index is that of the only quantity of f.
func (f Form) Index() int { return f[0].Index }

// Plus is f + g.
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

// Coef is the coefficient of node n.
func (r Row) Coef(n int) (c float64) {
	for _, t := range r {
		if t.Node == n {
			c += t.Coef
		}
	}

	return c
}

// TermOf is coef·w[n].
func TermOf(n int, coef float64) Term { return Term{n, coef} }

// RowOf is w[n].
func RowOf(n int) Row { return Row{TermOf(n, 1)} }

// Difference is w[plus] - w[minus]; ground does not move.
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

// Ground is the node that does not move, where a support is left out.
const Ground = -1

// SpeedUnit is the unit of the speed of a node, AngleUnit that of its angle or position.
func (n *Node) SpeedUnit() string { return n.Domain.Per("rad/s", "m/s") }
func (n *Node) AngleUnit() string { return n.Domain.Per("rad", "m") }

// Scaled is r times the number k.
func (r Row) Scaled(k float64) Row {
	out := slices.Clone(r)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}
