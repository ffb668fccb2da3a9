// Package model owns the system of matrices of a plant: states, signals, friction elements, laws
// and ports, as plain data. It does not know plant files or elements, and discretises and steps
// nothing.
//
// The packages below it make a System from a plant file. Each package knows only the packages
// listed before it:
//
//	units      notation of quantities, units and names
//	network    nodes, and the ties, torques and laws between them
//	law        formulas of laws, their event indicators and slopes
//	element    element types and their parameters; families mechanics, planar, contact, machine, fluid,
//	           signal, thermal
//	plantfile  the language of plant files: from a file to a network
//	library    the list of all element types, which is passed to plantfile
//	assemble   from a network to a System
//
// Package network is separate from this package for two reasons: both have types named Signal and
// Friction, and code generation reads the source of package model. Package model/kernel steps a
// System.
package model

import "lockstep/model/units"

// System is an assembled plant in matrix form:
//
//	x' = A·x + B·v + Bc·tau        s = W·x        y = C·x + D·v + Dc·tau
//
// x are the independent speeds, then the deflections and other states that something reads; v the
// signals (sources, inputs, laws); tau the friction torques, tau > 0 where the slip s = w_b - w_a
// is positive. Matrices are row-major; the comment gives the shape. A System is plain data and
// never changes after package assemble has made it.
type System struct {
	Name      string
	States    []units.Port // n
	X0        []float64    // n, initial state
	A         []float64    // n×n
	B         []float64    // n×m
	Bc        []float64    // n×mc
	W         []float64    // mc×n
	E         []float64    // n×n, symmetric: the stored energy is ½·xᵀ·E·x, J, without that of affine signals
	Signals   []Signal     // m; sources, then affine signals, then laws
	Switches  []Switch     // deflections and speeds whose region the affine signals depend on
	Guards    []Program    // event indicators of laws: a law passes a breakpoint where the value passes a border
	Inputs    []Input      // signals that can be driven from outside
	Frictions []Friction   // mc
	Outputs   []units.Port // p
	Pulses    []Pulses
	Samples   []Sample   // in the order of a tick
	Paces     []Pace     // of each effort and each state
	C         []float64  // p×n
	D         []float64  // p×m
	Dc        []float64  // p×mc
	Partition *Partition // nil: the plant is stepped as one part
}

// Signal is one entry of v: a law of the state, an affine function of a switch, or a source. The
// source of an input holds while nothing drives the input.
type Signal struct {
	Name   string
	Source Source
	Law    *Program
	Affine *Affine
	Size   float64 // of a law: largest absolute value expected; 0: unknown
}

// Switch is z = Row·x + Const with its regions: region i lies between Borders[i-1] and Borders[i];
// the first and the last region are unbounded.
type Switch struct {
	Name    string    // of the element
	Row     []float64 // n
	Const   float64
	Borders []float64 // increasing
	Inner   bool      // part of an element whose state another switch shows: no output, not in events

	While []RegionSet // the switch is followed while all of these hold; otherwise its region means nothing
	Wrap  *Wrap       // nil: none
}

// RegionSet holds while a switch is in one of some regions: bit r of Set is region r.
type RegionSet struct {
	Switch int
	Set    uint64
}

// Wrap makes the level of a switch a position modulo a period, such as that of teeth. The level is x[State].
// The first and the last border are a period apart; beyond them the state returns by a period.
type Wrap struct {
	State  int
	Period float64 // unit of the state; > 0
}

// Pace is the rate that an element would have alone; the largest ones limit the step.
type Pace struct {
	Name  string
	Place string  // FILE:LINE:COL of the element
	Rate  float64 // rad/s; >= 0
}

// Affine is a signal that is Slope[i]·z + Offset[i] while Switches[Switch] is in region i and all
// gates are open, otherwise 0 (Reiter, eq. 28, 34). It need not be continuous.
type Affine struct {
	Switch        int
	Slope, Offset []float64 // len(Borders) + 1
	Gates         []Gate
}

// Gate is open while Switches[Switch] is in a region.
type Gate struct{ Switch, Region int }

// In returns the slope and the offset in the regions of the switches.
func (a *Affine) In(region []int) (slope, offset float64) {
	for _, g := range a.Gates {
		if region[g.Switch] != g.Region {
			return 0, 0
		}
	}
	return a.Slope[region[a.Switch]], a.Offset[region[a.Switch]]
}

// Input is a signal that a bus or a file of inputs may drive.
type Input struct {
	units.Port
	Signal int     // index into System.Signals
	Delay  float64 // s, >= 0: dead time between a command and its effect
}

// Friction is a friction element: clutch, brake, bearing, freewheel.
//
// Its torque is bounded by ±capacity while it slips and by ±Peak·capacity while it is locked, with
// capacity = Gain·max(0, v[Signal] - Offset). A freewheel (OneWay) never slips backward: locked, its
// torque has no lower bound.
type Friction struct {
	Name   string
	Signal int     // index into System.Signals
	Gain   float64 // N·m per unit of the signal; >= 0
	Offset float64 // unit of the signal; below it the capacity is 0
	Peak   float64 // static over kinetic friction; >= 1
	OneWay bool
	Floor  float64 // N·m, >= 0; least static capacity of a freewheel

	Translational bool // the slip is in m/s, the torque is a force, N

	Gap *Gap // nil: no gap; else a OneWay without capacity that acts only while the gap is closed

	Impacts int // 1 + state that counts the energy that impulses of this element take, J; 0: none

	// Presses are the contacts whose forces are part of the capacity. The friction acts at once where their forces
	// change, in an impact too.
	Presses []Press

	Face int     // 1 + contact on whose face this element slides: the capacity is Mu times the force of the contact; 0: none
	Mu   float64 // coefficient of friction of that face, 1; > 0
}

// Press is a contact that presses a friction element.
type Press struct {
	Contact int     // index into System.Frictions; it presses one friction element only
	Per     float64 // capacity per force of the contact, N·m per N or 1; > 0
}

// Gap is one side of a clearance: Sign·(x[State] - Limit) >= 0, with the slip as its rate. After an
// impact that closes the gap, the slip is -Restitution times the slip before.
type Gap struct {
	State       int
	Sign        float64 // 1 or -1
	Limit       float64 // unit of the state
	Restitution float64 // 0 to 1

	// A gap between faces of finite extent exists while all of While hold; nil: always. With Row, the state
	// takes the value Row·x + Const where the gap begins to exist. Where the sides then overlap, x[Yields] moves
	// them apart; its entry in Row is not 0.
	While  []RegionSet
	Row    []float64 // n, or nil
	Const  float64
	Yields int
}

// Exists reports whether the gap exists in the regions of the switches.
func (g *Gap) Exists(region []int) bool {
	for _, r := range g.While {
		if r.Set>>region[r.Switch]&1 == 0 {
			return false
		}
	}
	return true
}

// Pulses is a wheel-speed sensor with three outputs, for which C, D and Dc are 0. Output is the
// number of edges since the start, in either direction; Output+1 the time since the last edge, or
// since the start, s; Output+2 the time between the last two edges, s, 0 before the second edge.
// Edge i, a whole number, lies at the angle
//
//	x[State] = 2π/Teeth·(i + 1/2 + Runout·sin(2π·i/Teeth))
type Pulses struct {
	Output int
	State  int     // rad
	Teeth  int     // edges per turn, >= 1
	Runout float64 // share of a pitch, 0 to 0.5
}

// Sample sets a state at ticks of the grid: x[State] = Value. Value follows from the inputs of the tick and
// from the states; earlier samples of the list have already set theirs. It has no event indicators.
type Sample struct {
	Name    string // of the element
	Place   string // FILE:LINE:COL of the element
	State   int
	Value   Program
	Period  float64 // s, a multiple of the step; 0: every tick
	Initial bool    // Value at the start is also the initial value of the state
	Refresh bool    // Value reads laws that read states set by earlier samples

	// A sample with a Delay does not set State at ticks but x[Rate], which must be the rate of State. State
	// then follows Value late by Delay, straight between ticks. Before the first value arrives, State is
	// that value.
	Delay float64 // s, at least one step; 0: none
	Rate  int
}

// Source is a value known in advance as a function of time: a table plus a sine or, with Sum, a sum
// of products of sources.
//
// A table is linear between its rows, or constant with Held, and constant outside them. Two rows
// of equal time are a jump; one row is a constant; an empty table is 0. With Period > 0 the table
// repeats from Start on, and its times count from Start.
type Source struct {
	T      []float64 // s, not decreasing
	V      []float64 // unit of the signal, len(T)
	Held   bool
	Start  float64 // s; begin of the periodic table, and of the sine
	Period float64 // s; 0: the table does not repeat

	Amplitude float64 // sine from Start on: Amplitude·exp(-Damping·(t-Start))·sin(2π·Frequency·(t-Start) + Phase)
	Frequency float64 // Hz
	Phase     float64 // rad
	Damping   float64 // decay of the amplitude, 1/s; >= 0

	Sum [][]Source // sum over the products of the inner lists; their sources have no Sum
}

// IsConstant reports whether the source has one value at all times.
func (s *Source) IsConstant() bool { return len(s.Sum) == 0 && len(s.V) == 1 && s.Amplitude == 0 }

// Leaves returns the sources without Sum that make up the value: s itself, or the factors of its
// products.
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

// Program computes a value from linear functionals of the state and the signals by a list of
// operations on a stack of at most MaxStack values.
type Program struct {
	Args   []Functional
	Slopes []float64 // len(Args): largest |d value / d arg| expected
	Ops    []Op
	Tables []Table

	// Of an event indicator that has more than two sides: the values, increasing, between which the
	// sides lie. Without them the sides are + and - of the value.
	Borders []float64
}

// MaxStack is the depth of the stack of a Program.
const MaxStack = 16

// Functional is Row·x + sum of Coef[k]·v[Signal[k]] + Tau·tau + Const. Signals have a lower index
// than the laws that read them. With Tau the value can be any torque of the plant, such as that of
// a gear or of an inertia.
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

// Code is the kind of an operation. In the comments b is the top of the stack and a the value below.
type Code uint8

const (
	Push   Code = iota // Value
	Arg                // value of Args[Index]
	Side               // side of System.Guards[Index] in this substep: +1 or -1, or with Borders 0, 1, 2, ...
	Add                // a + b
	Sub                // a - b
	Mul                // a·b
	Div                // a/b; 0 where |b| is below 1e-100
	Neg                // -b
	Abs                // |b|
	Sign               // -1, 0, 1
	Min                // min(a, b)
	Max                // max(a, b)
	Sqrt               // sqrt(max(0, b))
	Exp                // exp(b)
	Atan               // atan(b)
	Sin                // sin(b)
	Cos                // cos(b)
	Look               // Tables[Index] at b
	Look2              // Tables[Index] at row a, column b
	Line               // Tables[Index] at a, continued from its interval b
	Patch              // Tables[Index] at the row and the column below, each followed by its interval
	If                 // a where the sign of Guards[Index] is +1, otherwise b
	Choose             // of three values: the second where the first, below it, is at least 0, otherwise the third
)

// Operands returns the number of values that the operation takes from the stack.
func (c Code) Operands() int {
	switch c {
	case Push, Arg, Side:
		return 0
	case Add, Sub, Mul, Div, Min, Max, Look2, Line, If:
		return 2
	case Choose:
		return 3
	case Patch:
		return 4
	}
	return 1
}

// Table is a function of one or two variables, linear (bilinear) between its points. Outside them it
// continues the line of the two outermost points with Extend, and is constant otherwise.
type Table struct {
	X, Y   []float64 // increasing; Y is empty for one variable
	Z      []float64 // len(X), or len(X)×len(Y)
	Extend bool
}

// Partition divides a plant into two parts: nodes that only friction and laws drive take Sub micro
// steps per period, the linear rest takes one step (Gyebroszki, Efficient numerical time-domain
// simulation of rail vehicles with coupled simulator systems, ch. 7).
type Partition struct {
	Sub   int    // micro steps per period, 1 to 20
	Iter  int    // additional iterations per period, 0 to 5
	Place string // FILE:LINE:COL
}
