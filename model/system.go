package model

// Port is a scalar at the border of a plant.
type Port struct {
	Name     string
	Unit     string  // SI, spelled as in Units; "1" for a bare number
	Min, Max float64 // accepted range in Unit; ±Inf where there is none
}

// System is an assembled plant: one linear form for everything the file can say.
//
//	x' = A·x + B·v + Bc·tau        s = W·x        y = C·x + D·v + Dc·tau
//
// x are the independent speeds, then the deflections something reads; v the
// signals (sources and inputs); tau the friction torques, tau > 0 where the slip
// s = w_b - w_a is positive. Matrices are row-major; the shape is the comment.
// It is plain data and never changes after Assemble.
type System struct {
	Name      string
	States    []Port     // n
	X0        []float64  // n, initial state
	A         []float64  // n×n
	B         []float64  // n×m
	Bc        []float64  // n×mc
	W         []float64  // mc×n
	E         []float64  // n×n, symmetric: the stored energy is ½·xᵀ·E·x, J
	Signals   []Signal   // m
	Inputs    []Input    // which signals can be driven from outside
	Frictions []Friction // mc
	Outputs   []Port     // p
	C         []float64  // p×n
	D         []float64  // p×m
	Dc        []float64  // p×mc
}

// Signal is one entry of v: what it is as long as nobody drives it.
type Signal struct {
	Name   string
	Source Source
}

// Input is a signal that a bus or a file of inputs may drive.
type Input struct {
	Port
	Signal int // index into System.Signals
}

// Friction is a friction element: clutch or brake.
//
// Its torque is bounded by ±capacity while it slips and by ±Peak·capacity while
// it is stuck, with capacity = Gain·max(0, v[Signal] - Offset).
type Friction struct {
	Name   string
	Signal int     // index into System.Signals
	Gain   float64 // N·m per unit of the signal; >= 0
	Offset float64 // unit of the signal: below it nothing is transmitted
	Peak   float64 // static over kinetic friction; >= 1
}

// Source is a value known in advance as a function of time.
//
// A table is linear between its rows and constant outside them; two rows of
// equal time are a jump. One row is a constant.
type Source struct {
	T []float64 // s, not decreasing
	V []float64 // unit of the signal, len(T)
}
