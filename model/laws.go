package model

import "math"

// law is a Program in the making, over quantities of the plant.
type law struct {
	args   []form
	slopes []float64
	ops    []Op
	tables []Table
	stiff  []stiffness
	open   []unsized
	loss   int // 1 + the loss whose load is args[0]; 0: it is no law of a lossy gear
}

// stiffness says that the law has a spring of stiffness c in it, on the argument
// whose rate is args[rate], or swings by itself with up to own, rad/s, as that argument
// goes on: both make the law faster than the slopes alone say.
type stiffness struct {
	rate   int
	c, own float64
}

// arg pushes the value of f; slope is the largest |d value / d f| of the whole law.
// It returns the index of the argument, with which push again.
func (l *law) arg(f form, slope float64) int {
	l.args = append(l.args, f)
	l.slopes = append(l.slopes, math.Abs(slope))
	l.again(len(l.args) - 1)
	return len(l.args) - 1
}

// again pushes argument i once more.
func (l *law) again(i int) *law {
	l.ops = append(l.ops, Op{Code: Arg, Index: i})
	return l
}

func (l *law) push(v float64) *law {
	l.ops = append(l.ops, Op{Code: Push, Value: v})
	return l
}

func (l *law) do(codes ...Code) *law {
	for _, c := range codes {
		l.ops = append(l.ops, Op{Code: c})
	}
	return l
}

// times multiplies the top by v.
func (l *law) times(v float64) *law { return l.push(v).do(Mul) }

// look replaces the top by its value in a table of one variable; look2 the two
// topmost, row and column.
func (l *law) look(t Table) *law  { return l.withTable(Look, t) }
func (l *law) look2(t Table) *law { return l.withTable(Look2, t) }

func (l *law) withTable(c Code, t Table) *law {
	l.tables = append(l.tables, t)
	l.ops = append(l.ops, Op{Code: c, Index: len(l.tables) - 1})
	return l
}

// choose leaves a where guard g is positive, otherwise b, the top.
func (l *law) choose(g int) *law {
	l.ops = append(l.ops, Op{Code: If, Index: g})
	return l
}

// side pushes the side of guard g, +1 or -1.
func (l *law) side(g int) *law {
	l.ops = append(l.ops, Op{Code: Side, Index: g})
	return l
}

// addLaw makes a signal of a law; addGuard a guard.
func (e *element) addLaw(name string, unit string, l *law) int {
	u, _ := Units(unit)
	e.plant.signals = append(e.plant.signals, signal{name: name, law: l, unit: u, at: e.at, read: true})
	return len(e.plant.signals) - 1
}

func (e *element) addGuard(l *law) int {
	e.plant.guards = append(e.plant.guards, guard{e.name, e.at, *l})
	return len(e.plant.guards) - 1
}

// addState makes a state of the element; its name is made of both.
func (e *element) addState(s state) int {
	s.name, s.at = e.name+"."+s.name, e.at
	e.plant.states = append(e.plant.states, s)
	return len(e.plant.states) - 1
}

// act lets the element exert value along row.
func (e *element) act(r row, value form) {
	e.plant.efforts = append(e.plant.efforts, effort{e.name, e.at, r, value})
}

// corners is a function of one variable that changes its sign at each of the given
// increasing points: one guard for all corners of a table.
func corners(points []float64) Table {
	t := Table{Extend: true}
	sign := -1.0
	for i, x := range points {
		if i == 0 {
			t.X, t.Z = append(t.X, x-1), append(t.Z, sign)
		}
		t.X, t.Z = append(t.X, x), append(t.Z, 0)
		sign = -sign
		next := x + 1
		if i+1 < len(points) {
			next = x + (points[i+1]-x)/2
		}
		t.X, t.Z = append(t.X, next), append(t.Z, sign)
	}
	return t
}

// bends are the inner points of a table of one variable at which it has a corner;
// its ends count where it is not extended.
func (t Table) bends() []float64 {
	var list []float64
	for i, x := range t.X {
		before, after := 0.0, 0.0
		switch n := len(t.X); {
		case (i == 0 || i == n-1) && t.Extend || n < 2:
			continue
		case i == 0:
			after = slope(t, 0)
		case i == n-1:
			before = slope(t, n-2)
		default:
			before, after = slope(t, i-1), slope(t, i)
		}
		if math.Abs(after-before) > 1e-12*(math.Abs(after)+math.Abs(before)) {
			list = append(list, x)
		}
	}
	return list
}

// slope is that of interval i of a table of one variable.
func slope(t Table, i int) float64 { return (t.Z[i+1] - t.Z[i]) / (t.X[i+1] - t.X[i]) }

// at is the value of a table of one variable that is not extended.
func (t Table) at(x float64) float64 {
	for i := range len(t.X) - 1 {
		if x < t.X[i+1] {
			return t.Z[i] + slope(t, i)*(max(x, t.X[0])-t.X[i])
		}
	}
	return t.Z[len(t.Z)-1]
}

// steepest is the largest slope of a table of one variable.
func (t Table) steepest() float64 {
	s := 0.0
	for i := range len(t.X) - 1 {
		s = max(s, math.Abs(slope(t, i)))
	}
	return s
}
