// Package model owns the system of matrices of a plant: states, signals, friction elements, laws
// and ports, as plain data. It does not know plant files or elements, and discretises and steps
// nothing.
//
// The packages below it make a System from a plant file. Each package knows only the packages
// listed before it:
//
//	units      how quantities, units and names are written
//	network    nodes, constraints, and torques between nodes; elements build them
//	element    what an element is; its families mechanics, planar, contact, machine, fluid
//	plantfile  the language of plant files: from a file to a network
//	library    the list of all element types, which is passed to plantfile
//	assemble   from a network to a System
//
// Package network is separate from this package for two reasons: both have types named Signal and
// Friction, and code generation reads the source of package model. Package model/kernel steps a
// System.
package model

import "lockstep/model/units"

// System is an assembled plant: one form for everything the file can say.
//
//	x' = A·x + B·v + Bc·tau        s = W·x        y = C·x + D·v + Dc·tau
//
// x are the independent speeds, then the deflections and other states something
// reads; v the signals (sources, inputs, laws); tau the friction torques, tau > 0
// where the slip s = w_b - w_a is positive. Matrices are row-major; the shape is
// the comment. It is plain data and never changes once package assemble has made it.
type System struct {
	Name      string
	States    []units.Port // n
	X0        []float64    // n, initial state
	A         []float64    // n×n
	B         []float64    // n×m
	Bc        []float64    // n×mc
	W         []float64    // mc×n
	E         []float64    // n×n, symmetric: the stored energy is ½·xᵀ·E·x, J, and what affine signals store
	Signals   []Signal     // m; affine ones come after the sources, the laws last
	Switches  []Switch     // deflections and speeds whose region the affine signals depend on
	Guards    []Program    // event indicators: a law has a breakpoint where the value crosses 0
	Inputs    []Input      // which signals can be driven from outside
	Frictions []Friction   // mc
	Outputs   []units.Port // p
	Pulses    []Pulses
	Paces     []Pace     // of what acts and of what has a state
	C         []float64  // p×n
	D         []float64  // p×m
	Dc        []float64  // p×mc
	Partition *Partition // nil: stepped as one
}

// Signal is one entry of v: a law of the state, affine in a switch, or else what it
// is as long as nobody drives it.
type Signal struct {
	Name   string
	Source Source
	Law    *Program
	Affine *Affine
}

// Switch is z = Row·x + Const and the regions it can be in: region i lies between
// Borders[i-1] and Borders[i], the first and the last have no end.
type Switch struct {
	Name    string    // of the element
	Row     []float64 // n
	Const   float64
	Borders []float64 // increasing
}

// Pace is how fast an element would be if it were alone: which one makes a plant fast.
type Pace struct {
	Name  string
	Place string  // FILE:LINE:COL of the element
	Rate  float64 // rad/s; >= 0
}

// Affine is a signal that is Slope[i]·z + Offset[i] while Switches[Switch] is in
// region i (Reiter, eq. 28, 34). It need not be continuous.
type Affine struct {
	Switch        int
	Slope, Offset []float64 // len(Borders) + 1
}

// Input is a signal that a bus or a file of inputs may drive.
type Input struct {
	units.Port
	Signal int     // index into System.Signals
	Delay  float64 // s, >= 0: dead time between a command and its effect
}

// Friction is a friction element: clutch, brake, bearing, freewheel.
//
// Its torque is bounded by ±capacity while it slips and by ±Peak·capacity while
// it is stuck, with capacity = Gain·max(0, v[Signal] - Offset). A freewheel
// (OneWay) never slips backward: stuck, its torque has no lower bound.
type Friction struct {
	Name   string
	Signal int     // index into System.Signals
	Gain   float64 // N·m per unit of the signal; >= 0
	Offset float64 // unit of the signal: below it nothing is transmitted
	Peak   float64 // static over kinetic friction; >= 1
	OneWay bool
	Floor  float64 // N·m, >= 0: least static capacity of a freewheel

	Translational bool // the slip is in m/s, the torque a force, N

	Gap *Gap // a OneWay without capacity that exists only while the gap is closed; nil for others
}

// Gap is one side of a clearance: Sign·(x[State] - Limit) >= 0, with the slip as its
// rate. It closes with an impact after which the slip is -Restitution times what it was.
type Gap struct {
	State       int
	Sign        float64 // 1 or -1
	Limit       float64 // unit of the state
	Restitution float64 // 0 to 1
}

// Pulses is a wheel-speed sensor. Its outputs are Output, the number of edges passed
// since the start in either direction; Output+1, the time since the last one (or the
// start), s; and Output+2, the time between the last two, s, 0 until there are two. C, D
// and Dc are 0 there. Edge i, a whole number, is passed at the angle
//
//	x[State] = 2π/Teeth·(i + 1/2 + Runout·sin(2π·i/Teeth))
type Pulses struct {
	Output int
	State  int     // rad
	Teeth  int     // edges per turn, >= 1
	Runout float64 // share of a pitch, 0 to 0.5
}

// Source is a value known in advance as a function of time: its table plus its
// sine, or, where Sum is given, a sum of products of such.
//
// A table is linear between its rows, or held with Held, and constant outside
// them; two rows of equal time are a jump; one row is a constant; no row is 0.
// With Period > 0 it repeats from Start on, its times counted from there.
type Source struct {
	T      []float64 // s, not decreasing
	V      []float64 // unit of the signal, len(T)
	Held   bool
	Start  float64 // s: begin of the periodic table, and of the sine
	Period float64 // s; 0: the table does not repeat

	Amplitude float64 // sine from Start on: Amplitude·sin(2π·Frequency·(t-Start) + Phase)
	Frequency float64 // Hz
	Phase     float64 // rad

	Sum [][]Source // leaves only: the value is the sum over the products of the inner lists
}

// Leaves are the sources that the value is made of: s itself, or the factors of its products.
func (s *Source) Leaves() []*Source {
	if len(s.Sum) == 0 {
		return []*Source{s}
	}
	var list []*Source
	for _, factors := range s.Sum {
		for i := range factors {
			list = append(list, &factors[i])
		}
	}

	return list
}

// Program computes a value from linear functionals of the state and the signals,
// by a short list of operations on a stack of at most MaxStack values.
type Program struct {
	Args   []Functional
	Slopes []float64 // len(Args): largest |d value / d arg| to be expected
	Ops    []Op
	Tables []Table
}

// MaxStack is the depth of the stack of a Program.
const MaxStack = 16

// Functional is Row·x + sum of Coef[k]·v[Signal[k]] + Tau·tau + Const. A signal
// it reads stands before the law that reads it. With Tau it reads the friction
// torques, and so any torque of the plant: a gear's, an inertia's.
type Functional struct {
	Row    []float64 // n, or nil
	Tau    []float64 // mc, or nil
	Signal []int
	Coef   []float64
	Const  float64
}

// Op is one operation; Index and Value are its operands where it has any.
type Op struct {
	Code  Code
	Index int
	Value float64
}

// Code is the kind of an operation. In the comments a is the value below b, the
// top of the stack.
type Code uint8

const (
	Push  Code = iota // Value
	Arg               // value of Args[Index]
	Side              // sign of System.Guards[Index] in this substep, +1 or -1
	Add               // a + b
	Sub               // a - b
	Mul               // a·b
	Div               // a/b; 0 where b is 0
	Neg               // -b
	Abs               // |b|
	Sign              // -1, 0, 1
	Min               // min(a, b)
	Max               // max(a, b)
	Sqrt              // sqrt(max(0, b))
	Exp               // exp(b)
	Atan              // atan(b)
	Sin               // sin(b)
	Cos               // cos(b)
	Look              // Tables[Index] at b
	Look2             // Tables[Index] at row a, column b
	If                // a if the sign of Guards[Index] is +1, otherwise b
)

// Table is a function of one or two variables, linear (bilinear) between its
// points, extended by its last two points with Extend and constant otherwise.
type Table struct {
	X, Y   []float64 // increasing; Y is empty for one variable
	Z      []float64 // len(X), or len(X)×len(Y)
	Extend bool
}

// Partition has a plant stepped in two parts: what friction and laws alone turn by Sub
// micro steps of the period, the linear rest by one (Gyebroszki, Efficient numerical
// time-domain simulation of rail vehicles with coupled simulator systems, ch. 7).
type Partition struct {
	Sub   int    // micro steps of a period, 1 to 20
	Iter  int    // additional iterations that refine it, 0 to 5
	Place string // FILE:LINE:COL
}
