package network

import (
	"math"

	"lockstep/model"
)

// Law is a model.Program in the making, over quantities of the plant.
type Law struct {
	Args    []Form
	Slopes  []float64
	Ops     []model.Op
	Tables  []model.Table
	Stiff   []Stiffness
	Unsized []Unsized
	Loss    int // 1 + the loss whose load is args[0]; 0: it is no law of a lossy gear
}

// Stiffness says that the law has a spring of stiffness c in it, on the argument
// whose rate is args[rate], or swings by itself with up to own, rad/s, as that argument
// goes on: both make the law faster than the slopes alone say.
type Stiffness struct {
	Rate   int
	C, Own float64
}

// LawOf is the law f; slope is the largest |d value / d f| of what the law becomes.
func LawOf(f Form, slope float64) *Law { return new(Law).Arg(f, slope) }

// Product is the law f·g.
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

// Look replaces the top by its value in a table of one variable; Look2 the two
// topmost, row and column.
func (l *Law) Look(t model.Table) *Law { return l.withTable(model.Look, t) }

func (l *Law) Look2(t model.Table) *Law { return l.withTable(model.Look2, t) }

func (l *Law) withTable(c model.Code, t model.Table) *Law {
	l.Tables = append(l.Tables, t)
	return l.operate(model.Op{Code: c, Index: len(l.Tables) - 1})
}

// Choose leaves a where guard g is positive, otherwise b, the top.
func (l *Law) Choose(g int) *Law { return l.operate(model.Op{Code: model.If, Index: g}) }

// Side pushes the side of guard g, +1 or -1.
func (l *Law) Side(g int) *Law { return l.operate(model.Op{Code: model.Side, Index: g}) }

// Unsized is an argument of a law whose slope grows with the size of another one, by, that
// is not known, the force of a spring, say: so much was assumed.
type Unsized struct {
	Arg, By int
	Assumed float64
}

// SizeSlope notes that the slope of argument arg grows with the size of a signal, which the
// law reads as its argument by.
func (p *Plant) SizeSlope(l *Law, arg, by, signal int) {
	if low, high := p.Range(signal); math.IsInf(low, 0) || math.IsInf(high, 0) {
		l.Unsized = append(l.Unsized, Unsized{arg, by, p.MaxAbs(signal)})
	}
}

// ContactLoss is the loss k·N of a contact that carries N, taken from the body that pushes in
// one direction of the motion.
type ContactLoss struct {
	Name    string
	At      Pos
	Rel     Row
	Contact int // friction element
	Own     int // signal of the loss
	K       float64
}

// GearLoss is the friction of a lossy gear, with what its law needs from the whole plant.
type GearLoss struct {
	Name          string
	At            Pos
	Friction, Tie int
	Eta1, Eta2    float64 // least efficiencies
}
