package network

import "lockstep/model"

// Law is a model.Program before assembly, over quantities of the plant. Package law makes it.
type Law struct {
	Args     []Form
	Slopes   []float64 // of the arguments: bounds over their ranges
	Ranges   []Range   // of the arguments, in operation
	Combined []bool    // of the arguments: the slope is that of all laws of the element together
	Size     float64   // largest absolute value over these ranges; 0: unknown
	Ops      []model.Op
	Tables   []model.Table
	Swings   *Oscillation // nil: none
	Borders  []float64    // of an event indicator: see model.Program

	// At returns the value for arguments, whatever the sides of the event indicators, and whether the
	// slopes are to hold there; nil for an event indicator.
	At func(args []float64) (value float64, holds bool)

	// Sized returns the slopes where quantities without a known range, such as the force of a spring,
	// are as large as these arguments; nil if all have one.
	Sized func(args []float64) []float64
}

// Range is an interval of values in operation.
type Range struct{ Low, High float64 }

// Oscillation describes a law that is faster than its slopes alone: its value oscillates with up to
// Fastest, rad/s, while the quantity with the rate Args[Rate] grows.
type Oscillation struct {
	Rate    int
	Fastest float64
}

// ContactLoss is the loss K·N of a contact that carries N. The loss acts on the body that pushes in
// one direction of the motion.
type ContactLoss struct {
	Name    string
	At      Pos
	Rel     Row
	Contact int // index of the friction element
	Own     int // index of the signal of the loss
	K       float64
}

// GearLoss is the friction of a lossy gear. Its law needs the load, which depends on the whole plant.
type GearLoss struct {
	Name          string
	At            Pos
	Friction, Tie int
	Eta1, Eta2    float64 // least efficiencies
}
