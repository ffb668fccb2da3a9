package law

import (
	"math"

	"lockstep/model"
)

// span is an interval of values, both ends included; it is empty where low > high.
type span struct{ low, high float64 }

var everything = span{math.Inf(-1), math.Inf(1)}

func point(v float64) span { return span{v, v} }

func (a span) plus(b span) span { return span{a.low + b.low, a.high + b.high} }

func (a span) negative() span { return span{-a.high, -a.low} }

// with returns the smallest span that holds a and b.
func (a span) with(b span) span { return span{min(a.low, b.low), max(a.high, b.high)} }

// inside returns what a and b have in common.
func (a span) inside(b span) span { return span{max(a.low, b.low), min(a.high, b.high)} }

// times returns the products; 0 times infinity is 0.
func (a span) times(b span) span {
	s := point(zeroProduct(a.low, b.low))
	for _, p := range [3]float64{zeroProduct(a.low, b.high), zeroProduct(a.high, b.low), zeroProduct(a.high, b.high)} {
		s = s.with(point(p))
	}
	return s
}

// zeroProduct returns a·b; 0 if one of them is 0.
func zeroProduct(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

// inverse returns the values of 1/b.
func (b span) inverse() span {
	if b.low <= 0 && b.high >= 0 {
		switch {
		case b.low == 0 && b.high > 0:
			return span{1 / b.high, math.Inf(1)}
		case b.high == 0 && b.low < 0:
			return span{math.Inf(-1), 1 / b.low}
		}
		return everything
	}
	return span{1 / b.high, 1 / b.low}
}

// size returns the largest absolute value.
func (a span) size() float64 { return max(math.Abs(a.low), math.Abs(a.high)) }

// values returns the values of an operation on a and b.
func values(op operation, a, b span) span {
	switch op {
	case add:
		return a.plus(b)
	case sub:
		return a.plus(b.negative())
	case mul:
		return a.times(b)
	case div:
		if b == point(0) {
			return point(0)
		}
		return a.times(b.inverse())
	case neg:
		return a.negative()
	case abs:
		if a.low <= 0 && a.high >= 0 {
			return span{0, a.size()}
		}
		return span{math.Min(math.Abs(a.low), math.Abs(a.high)), a.size()}
	case sign:
		return span{signOf(a.low), signOf(a.high)}
	case minimum:
		return span{min(a.low, b.low), min(a.high, b.high)}
	case maximum:
		return span{max(a.low, b.low), max(a.high, b.high)}
	case sqrt:
		return span{math.Sqrt(max(0, a.low)), math.Sqrt(max(0, a.high))}
	case exp:
		return span{math.Exp(a.low), math.Exp(a.high)}
	case atan:
		return span{math.Atan(a.low), math.Atan(a.high)}
	case sin:
		return sines(a)
	}
	return sines(a.plus(point(math.Pi / 2))) // cos
}

func signOf(v float64) float64 {
	if v == 0 {
		return 0
	}
	return math.Copysign(1, v)
}

// sines returns the values of sin.
func sines(a span) span {
	if a == point(a.low) {
		return point(math.Sin(a.low))
	}
	if !(a.high-a.low < 2*math.Pi) {
		return span{-1, 1}
	}
	s := point(math.Sin(a.low)).with(point(math.Sin(a.high)))
	turns := func(at float64) bool { // sin has an extreme at, plus full turns
		return math.Ceil((a.low-at)/(2*math.Pi)) <= math.Floor((a.high-at)/(2*math.Pi))
	}
	if turns(math.Pi / 2) {
		s.high = 1
	}
	if turns(-math.Pi / 2) {
		s.low = -1
	}
	return s
}

// slopes returns the slopes of an operation along a variable: a and b are the values of its operands,
// da and db their slopes, v is its value. Slopes at corners are those on both sides.
func slopes(op operation, a, b, da, db, v span) span {
	switch op {
	case add:
		return da.plus(db)
	case sub:
		return da.plus(db.negative())
	case mul:
		return da.times(b).plus(a.times(db))
	case div: // (da - v·db)/b
		if b == point(0) {
			return point(0)
		}
		return da.plus(v.times(db).negative()).times(b.inverse())
	case neg:
		return da.negative()
	case abs:
		switch {
		case a.low >= 0:
			return da
		case a.high <= 0:
			return da.negative()
		}
		return da.with(da.negative())
	case sign:
		return point(0)
	case minimum:
		return larger(b, a, da, db)
	case maximum:
		return larger(a, b, da, db)
	case sqrt:
		if a.high <= 0 {
			return point(0)
		}
		s := da.times(span{1 / (2 * v.high), 1 / (2 * v.low)})
		if a.low < 0 {
			s = s.with(point(0))
		}
		return s
	case exp:
		return da.times(v)
	case atan:
		return da.times(point(1).plus(values(abs, a, a).times(values(abs, a, a))).inverse())
	case sin:
		return da.times(values(cos, a, a))
	}
	return da.times(sines(a).negative()) // cos
}

// larger returns the slopes of the larger one of a and b.
func larger(a, b, da, db span) span {
	switch {
	case a.low > b.high:
		return da
	case b.low > a.high:
		return db
	}
	return da.with(db)
}

// tableValues returns the values of a table of one variable, and its slopes.
func tableValues(t *model.Table, a span) (v, slope span) {
	at := func(x float64) span { return point(tableAt(t, x)) }
	v = at(a.low).with(at(a.high))
	n := len(t.X)
	slope = span{math.Inf(1), math.Inf(-1)}
	if !t.Extend && (a.low < t.X[0] || a.high > t.X[n-1]) {
		slope = point(0)
	}
	for i, x := range t.X {
		if x >= a.low && x <= a.high {
			v = v.with(point(t.Z[i]))
		}
		if i == n-1 {
			break
		}
		first, last := i == 0 && t.Extend, i == n-2 && t.Extend
		if (a.high >= x || first) && (a.low <= t.X[i+1] || last) {
			slope = slope.with(point((t.Z[i+1] - t.Z[i]) / (t.X[i+1] - x)))
		}
	}
	return v, slope
}

// tableAt returns the value of a table of one variable at x, which may be infinite.
func tableAt(t *model.Table, x float64) float64 {
	n := len(t.X)
	i := 0
	for i < n-2 && x >= t.X[i+1] {
		i++
	}
	if !t.Extend {
		x = min(max(x, t.X[0]), t.X[n-1])
	}
	return t.Z[i] + zeroProduct((t.Z[i+1]-t.Z[i])/(t.X[i+1]-t.X[i]), x-t.X[i])
}

// mapValues returns the values of a table of two variables, which is not extended, at rows a and
// columns b, and its slopes along both.
func mapValues(t *model.Table, a, b span) (v, byRow, byColumn span) {
	none := span{math.Inf(1), math.Inf(-1)}
	v, byRow, byColumn = none, none, none
	rows, columns := touched(t.X, a), touched(t.Y, b)
	z := func(i, j int) float64 { return t.Z[i*len(t.Y)+j] }
	for i := rows[0]; i <= rows[1]; i++ {
		for j := columns[0]; j <= columns[1]; j++ {
			v = v.with(point(z(i, j)))
			if i < rows[1] {
				byRow = byRow.with(point((z(i+1, j) - z(i, j)) / (t.X[i+1] - t.X[i])))
			}
			if j < columns[1] {
				byColumn = byColumn.with(point((z(i, j+1) - z(i, j)) / (t.Y[j+1] - t.Y[j])))
			}
		}
	}
	if a.low < t.X[0] || a.high > t.X[len(t.X)-1] {
		byRow = byRow.with(point(0))
	}
	if b.low < t.Y[0] || b.high > t.Y[len(t.Y)-1] {
		byColumn = byColumn.with(point(0))
	}
	return v, byRow, byColumn
}

// touched returns the first and the last point of the intervals of x that a touches.
func touched(x []float64, a span) [2]int {
	first, last := 0, len(x)-1
	for first < len(x)-2 && x[first+1] < a.low {
		first++
	}
	for last > first+1 && x[last-1] > a.high {
		last--
	}
	return [2]int{first, last}
}
