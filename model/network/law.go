package network

import (
	"math"

	"lockstep/model"
)

// Law is a model.Program before assembly, over quantities of the plant.
type Law struct {
	Args     []Form
	Slopes   []float64
	Ops      []model.Op
	Tables   []model.Table
	Stiff    []Stiffness
	Unsized  []Unsized
	Ranges   []Range   // of the arguments: the slopes hold there
	Combined []bool    // of the arguments: the slope is that of all laws of the element together
	Limits   []Limit   // further conditions for the slopes
	Borders  []float64 // of an event indicator: see model.Program
	Loss     int       // 1 + index of the GearLoss whose load is Args[0]; 0: not a law of a lossy gear
}

// Range is an interval of values in operation.
type Range struct{ Low, High float64 }

// Limit is the range in operation of a part of a law.
type Limit struct {
	Ops []model.Op
	Range
}

// Stiffness describes a law that is faster than its slopes alone: the law contains a spring of
// stiffness C, whose deflection has the rate Args[Rate], or its value oscillates with up to Own,
// rad/s, while that deflection grows.
type Stiffness struct {
	Rate   int
	C, Own float64
}

// LawOf begins a law with f; slope is the largest |d value / d f| of the finished law.
func LawOf(f Form, slope float64) *Law { return new(Law).Arg(f, slope) }

// Product returns the law f·g.
func Product(f, g Form) *Law { return LawOf(f, 0).Arg(g, 0).Do(model.Mul) }

// Read gives the law the argument f and returns its index; slope is the largest
// |d value / d f| of the whole law.
func (l *Law) Read(f Form, slope float64) int {
	l.Args = append(l.Args, f)
	l.Slopes = append(l.Slopes, math.Abs(slope))
	return len(l.Args) - 1
}

// Arg reads f and pushes its value.
func (l *Law) Arg(f Form, slope float64) *Law { return l.Again(l.Read(f, slope)) }

// operate appends an operation.
func (l *Law) operate(op model.Op) *Law {
	l.Ops = append(l.Ops, op)
	return l
}

// Again pushes argument i.
func (l *Law) Again(i int) *Law { return l.operate(model.Op{Code: model.Arg, Index: i}) }

// Push pushes a number.
func (l *Law) Push(v float64) *Law { return l.operate(model.Op{Code: model.Push, Value: v}) }

// Do appends operations.
func (l *Law) Do(codes ...model.Code) *Law {
	for _, c := range codes {
		l.Ops = append(l.Ops, model.Op{Code: c})
	}
	return l
}

// Times multiplies the top by v.
func (l *Law) Times(v float64) *Law { return l.Push(v).Do(model.Mul) }

// Look replaces the top by its value in a table of one variable.
func (l *Law) Look(t model.Table) *Law { return l.withTable(model.Look, t) }

// Look2 replaces the two topmost values, row and column, by their value in a table of two variables.
func (l *Law) Look2(t model.Table) *Law { return l.withTable(model.Look2, t) }

func (l *Law) withTable(c model.Code, t model.Table) *Law {
	l.Tables = append(l.Tables, t)
	return l.operate(model.Op{Code: c, Index: len(l.Tables) - 1})
}

// Choose leaves a where event indicator i is positive, otherwise b, the top.
func (l *Law) Choose(i int) *Law { return l.operate(model.Op{Code: model.If, Index: i}) }

// Side pushes the sign of event indicator i, +1 or -1.
func (l *Law) Side(i int) *Law { return l.operate(model.Op{Code: model.Side, Index: i}) }

// Unsized is an argument of a law whose slope grows with the size of argument By. That size is not
// known before assembly, as of the force of a spring; the slope holds for the size Assumed.
type Unsized struct {
	Arg, By int
	Assumed float64
}

// SizeSlope records that the slope of argument arg grows with the size of a signal, which the law
// reads as argument by. A signal of known range needs no record.
func (p *Plant) SizeSlope(l *Law, arg, by, signal int) {
	if low, high := p.Range(signal); math.IsInf(low, 0) || math.IsInf(high, 0) {
		l.Unsized = append(l.Unsized, Unsized{arg, by, p.MaxAbs(signal)})
	}
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
