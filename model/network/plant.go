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

// Plant is the network of a plant file that has been read and checked. All values are SI.
type Plant struct {
	Name  string
	About string
	File  string

	Nodes         []Node
	Ties          []Tie
	States        []State
	Starts        []StartCondition
	Efforts       []Effort
	Frictions     []Friction
	Signals       []Signal // the inputs first, in their order
	Switches      []Region
	Indicators    []Indicator
	GearLosses    []GearLoss
	ContactLosses []ContactLoss
	Inputs        []model.Input // Signal is an index into Signals
	Outputs       []Output
	Parameters    []Parameter
	Presets       []Preset
	Pulses        []model.Pulses // State is an index into States
	Samples       []Sample
	Partition     *model.Partition // nil: none
	Elements      []Element        // in the order of the file
	Linear        []LinearBody     // bodies that turn and whose points, lines or joints are linear in the angle
}

// Element is an element of the plant file and the nodes that it connects.
type Element struct {
	Name    string
	Type    string
	Flanges []Flange
}

// LinearBody is a body in the plane whose points move linearly in its angle.
type LinearBody struct {
	Name  string
	At    Pos
	Node  int     // its angle, an index into Plant.Nodes
	Start float64 // angle at the start, rad
}

// Flange is the connection of an element to a node.
type Flange struct {
	Key  string // key of the flange in the plant file; "": the node is the element itself
	Node int    // index into Plant.Nodes, or Ground
}

// Parameter is a number of the section parameters of a plant file.
type Parameter struct {
	units.Port         // name, unit and range
	Value      float64 // in Unit
	Tunable    bool    // may change while a bench runs
}

// Preset is a start preset of a plant file: a quantity, or one of several choices.
type Preset struct {
	units.Port          // name; unit and range of a quantity
	Choices    []string // nil: a quantity
}

// Add appends an item to a list of a plant and returns its index.
func Add[T any](list *[]T, item T) int {
	*list = append(*list, item)
	return len(*list) - 1
}

// Domain tells whether a node turns or moves. Speeds of both kinds are coordinates of one network.
type Domain int

const (
	AnyDomain Domain = iota
	Rotational
	Translational
)

func (d Domain) String() string {
	return [...]string{"of any kind", "rotational", "translational"}[d]
}

// Per returns trans for a node that moves, else rot.
func (d Domain) Per(rot, trans string) string {
	if d == Translational {
		return trans
	}
	return rot
}

// Spell returns one half of "ROT|TRANS", as Per does, and any other text unchanged.
func (d Domain) Spell(text string) string {
	rot, trans, two := strings.Cut(text, "|")
	if two {
		return d.Per(rot, trans)
	}
	return text
}

// Node is a coordinate with a speed, rad/s or m/s. The speed of a node without inertia follows from
// gears, or from the springs and dampers at the node.
type Node struct {
	Name      string
	At        Pos      // where the node is declared, or first used
	Owner     string   // type of the element that owns the node: "inertia", "fixed", ...; "": massless
	Domain    Domain   // AnyDomain counts as rotational
	By        string   // element that determined the domain
	J         float64  // inertia, kg·m², or mass, kg; 0: massless
	Phi0      float64  // angle, rad, or position, m, of a fixed node or of a body as the file gives it
	OfBody    bool     // the node belongs to a body
	InPlane   bool     // its position is one in the plane
	Displaced bool     // its position lacks an offset from the centre of a body that the file does not place
	Driven    int      // 1 + index of the state that is its speed; 0: the speed is not prescribed
	Users     []string // elements with a flange at the node
}

// Row is a linear form of the speeds: Σ coef·w[node].
type Row []Term

// Term is Coef·w[Node].
type Term struct {
	Node int // index into Plant.Nodes
	Coef float64
}

// Tie is a rigid connection: Row = 0. Its Lagrange multiplier acts along Row.
type Tie struct {
	Name  string
	At    Pos
	Row   Row
	Gap   float64 // value of Row for positions (angles) instead of speeds
	Joint bool    // the tie must remove a degree of freedom
}

// State is a quantity with the rate Der: the twist of a spring, an angle, a temperature, a lag.
type State struct {
	Name  string
	Unit  string // SI
	At    Pos
	Der   Form
	Start float64 // initial value unless a StartCondition gives it
	Along Row     // the state is Start plus the angle (position) along these nodes; nil: it is not an angle
	Speed Row     // the state is the speed along these nodes; nil: it is not a speed
	C     float64 // the stored energy is ½·C·x², J
}

// Sample is a model.Sample before assembly: State and Rate are indices into States. Samples of one element
// keep their order.
type Sample struct {
	model.Sample
	At     Pos
	Value  Law
	Direct bool // Value must not read State: it would depend on itself
	Reset  bool // Value reads the states before the resets of the tick
}

// StartCondition is a condition on the initial state: the angle (position) along Row is Value, or the speed
// along Row, or a state.
type StartCondition struct {
	Element string
	Key     string // key of the element, such as phi_start; "": a default
	At      Pos
	Row     Row
	Speed   bool // Row is a speed
	State   int  // 1 + index of the state; 0: Row applies
	Value   float64
	Unit    string // SI
	Rank    StartRank
	Weight  float64 // > 0, against other conditions of the same rank; not used for StartGiven
	Preset  string  // NAME=VALUE of the start preset that gives it; "": none
	Yields  bool    // a condition of StartGiven that does not hold where presets contradict it
}

// StartRank orders start conditions. A condition determines only what no condition of an earlier
// rank determines.
type StartRank int

const (
	StartGiven   StartRank = iota // the file gives it: it holds exactly
	StartGuess                    // a guess
	StartRelaxed                  // the unloaded deflection of a spring; the weight is the stiffness
	StartInPlay                   // the unloaded deflection of an element with play
	StartDefault                  // 0, or the default of a state
)

// Effort is a torque or force of an element. On each node in Row acts Value times its coefficient.
type Effort struct {
	Element string
	At      Pos
	Row     Row
	Value   Form
}

// Friction is a friction element: |tau| <= Gain·max(0, v[Signal] - Offset).
type Friction struct {
	model.Friction
	At       Pos
	Rel      Row     // w_b - w_a
	Opening  Form    // of a gap whose model.Gap has While: the value that the state takes; nil: it holds always
	Press    int     // signal of the normal force
	PerPress float64 // largest torque per N of normal force; 0: unknown
}

// Signal is a value over time, in SI: a source, a law, or affine in a switch.
type Signal struct {
	Name     string
	Source   model.Source
	Law      *Law
	Affine   *model.Affine
	Waveform Waveform // waveform in the file, of an element; nil: none
	Unit     units.Unit
	MaxAbs   float64 // largest absolute value expected; 0: unknown
	Bounds   *Range  // of the values of a law; nil: unknown
	Linear   Form    // the same value as a linear form; nil: it is not linear
	At       Pos
	Read     bool // something reads the signal
	Implicit bool // a law that may depend on itself: the law iteration solves for it, and must contract
}

// Indicator is an event indicator: the laws of its element have a breakpoint where Law crosses 0, or
// one of its borders.
type Indicator struct {
	Name string
	At   Pos
	Law  Law
}

// Region is a Switch before assembly: Form is z without Const.
type Region struct {
	model.Switch
	At   Pos
	Form Form
}

// Output is a port with its value as a linear form.
type Output struct {
	units.Port
	At   Pos
	Form Form
}

// Form is a linear form: a sum of quantities of the plant with coefficients.
type Form []Measure

// Measure is Coef times one quantity of the plant; Kind tells in which list Index counts.
type Measure struct {
	Kind  MeasureKind
	Index int
	Coef  float64
}

// MeasureKind is the kind of a quantity.
type MeasureKind int

const (
	OfOne         MeasureKind = iota // the number 1
	OfSpeed                          // nodes
	OfAccel                          // nodes: the rate of their speed; in outputs and laws only
	OfDrive                          // nodes: the torque that drives a prescribed one; in outputs and laws only
	OfTie                            // ties: the multiplier; in outputs and laws only
	OfGearLoad                       // losses: torque into flange a without the gear's own friction; in laws only
	OfGearShare                      // losses: share of its friction torque that flange a gives, a number; in laws only
	OfContactLoss                    // contact losses: the loss; in laws only
	OfState                          // states
	OfSignal                         // signals
	OfFriction                       // frictions: tau; not in rates of states
)

// Speeds returns the row as a form, times scale.
func (r Row) Speeds(scale float64) Form {
	var f Form
	for _, t := range r {
		f = append(f, Measure{OfSpeed, t.Node, scale * t.Coef})
	}
	return f
}

// Scaled returns f times k.
func (f Form) Scaled(k float64) Form {
	out := slices.Clone(f)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}

// Index returns the index of the only quantity of f.
func (f Form) Index() int { return f[0].Index }

// Plus returns f + g.
func (f Form) Plus(g Form) Form { return append(append(Form(nil), f...), g...) }

// These functions return one quantity as a form with coefficient 1; One returns a number.
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

// Difference returns w[plus] - w[minus]; ground does not move.
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

// Ground is the index of the node that does not move, the default of a support.
const Ground = -1

// SpeedUnit returns the unit of the speed of a node, AngleUnit that of its angle or position.
func (n *Node) SpeedUnit() string { return n.Domain.Per("rad/s", "m/s") }
func (n *Node) AngleUnit() string { return n.Domain.Per("rad", "m") }

// Scaled returns r times k.
func (r Row) Scaled(k float64) Row {
	out := slices.Clone(r)
	for i := range out {
		out[i].Coef *= k
	}
	return out
}
