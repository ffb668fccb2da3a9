package kernel_test

import (
	"math"
	"slices"
	"sort"

	"lockstep/model"
)

// refSource is the value of s at t on the smooth stretch that contains mid.
func refSource(s model.Source, t, mid float64) float64 {
	if s.Sum != nil {
		sum := 0.0
		for _, list := range s.Sum {
			product := 1.0
			for _, leaf := range list {
				product *= refSource(leaf, t, mid)
			}
			sum += product
		}
		return sum
	}
	v := 0.0
	if s.Amplitude != 0 && mid >= s.Start {
		v = s.Amplitude * math.Sin(2*math.Pi*s.Frequency*(t-s.Start)+s.Phase)
	}
	if len(s.T) == 0 {
		return v
	}
	if s.Period > 0 {
		if mid < s.Start {
			return v + s.V[0]
		}
		laps := math.Floor((mid - s.Start) / s.Period)
		t, mid = t-s.Start-laps*s.Period, mid-s.Start-laps*s.Period
	}
	next := sort.Search(len(s.T), func(i int) bool { return s.T[i] > mid })
	switch {
	case next == 0:
		return v + s.V[0]
	case next == len(s.T):
		return v + s.V[next-1]
	case s.Held:
		return v + s.V[next-1]
	}
	t0, t1, v0, v1 := s.T[next-1], s.T[next], s.V[next-1], s.V[next]
	return v + (v0*(t1-t)+v1*(t-t0))/(t1-t0)
}

// refCorners returns the breakpoints of s in (0, end), s.
func refCorners(s model.Source, end float64) []float64 {
	var at []float64
	for _, list := range s.Sum {
		for _, leaf := range list {
			at = append(at, refCorners(leaf, end)...)
		}
	}
	if s.Sum == nil {
		at = append(at, s.Start)
		if s.Period <= 0 {
			at = append(at, s.T...)
		}
		for lap := 0.0; s.Period > 0 && s.Start+lap*s.Period < end; lap++ {
			base := s.Start + lap*s.Period
			at = append(at, base)
			for _, t := range s.T {
				at = append(at, base+t)
			}
		}
	}
	return slices.DeleteFunc(at, func(t float64) bool { return t <= 0 || t >= end })
}

// program evaluates a law with its own stack of any depth.
func (p *refPlant) program(law *model.Program, x []float64) float64 {
	var stack []float64
	pop := func() float64 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		return v
	}
	for _, op := range law.Ops {
		var v float64
		switch op.Code {
		case model.Push:
			v = op.Value
		case model.Arg:
			a := law.Args[op.Index]
			v = a.Const + dot(a.Row, x)
			for i, j := range a.Signal {
				v += a.Coef[i] * p.v[j]
			}
		case model.Side:
			v = p.side[op.Index]
		case model.Look:
			v = refTable(law.Tables[op.Index], pop())
		case model.Look2:
			column := pop()
			v = refTable2(law.Tables[op.Index], pop(), column)
		case model.Line:
			i := int(pop())
			v = refLine(law.Tables[op.Index].X, law.Tables[op.Index].Z, i, pop())
		case model.Patch:
			t := law.Tables[op.Index]
			j, column, i, row := int(pop()), pop(), int(pop()), pop()
			var ends [2]float64
			for k := range ends {
				ends[k] = refLine(t.Y, t.Z[(i+k)*len(t.Y):], j, column)
			}
			w := (row - t.X[i]) / (t.X[i+1] - t.X[i])
			v = (1-w)*ends[0] + w*ends[1]
		case model.If:
			no := pop()
			if v = pop(); p.side[op.Index] != 1 {
				v = no
			}
		case model.Choose:
			no, yes := pop(), pop()
			if v = no; pop() >= 0 {
				v = yes
			}
		case model.Add, model.Sub, model.Mul, model.Div, model.Min, model.Max:
			b := pop()
			v = refBinary(op.Code, pop(), b)
		default:
			v = refUnary(op.Code, pop())
		}
		stack = append(stack, v)
	}
	return stack[len(stack)-1]
}

// refLine is the value at v of the line through points i and i+1.
func refLine(x, z []float64, i int, v float64) float64 {
	w := (v - x[i]) / (x[i+1] - x[i])
	return (1-w)*z[i] + w*z[i+1]
}

// sideAt is the side of event indicator g in state x; at a border it keeps its present one.
func (p *refPlant) sideAt(g int, x []float64) float64 {
	v, borders := p.program(&p.sys.Guards[g], x), p.sys.Guards[g].Borders
	if len(borders) == 0 {
		if v == 0 {
			return p.side[g]
		}
		return math.Copysign(1, v)
	}
	side := 0
	for _, b := range borders {
		if v > b || v == b && side < int(p.side[g]) {
			side++
		}
	}
	return float64(side)
}

func refBinary(c model.Code, a, b float64) float64 {
	switch {
	case c == model.Add:
		return a + b
	case c == model.Sub:
		return a - b
	case c == model.Mul:
		return a * b
	case c == model.Min:
		return math.Min(a, b)
	case c == model.Max:
		return math.Max(a, b)
	case b == 0:
		return 0
	}
	return a / b
}

func refUnary(c model.Code, b float64) float64 {
	switch c {
	case model.Neg:
		return -b
	case model.Sign:
		return float64(sign(b))
	case model.Sqrt:
		return math.Sqrt(math.Max(0, b))
	}
	return map[model.Code]func(float64) float64{
		model.Abs: math.Abs, model.Exp: math.Exp, model.Atan: math.Atan, model.Sin: math.Sin, model.Cos: math.Cos,
	}[c](b)
}

func sign(v float64) int8 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// refWeight is the interval of x around v and v's share of its upper end.
func refWeight(x []float64, v float64, extend bool) (int, float64) {
	i := sort.SearchFloat64s(x[1:len(x)-1], v)
	w := (v - x[i]) / (x[i+1] - x[i])
	if !extend {
		w = math.Max(0, math.Min(1, w))
	}
	return i, w
}

func refTable(t model.Table, v float64) float64 {
	if len(t.X) == 1 {
		return t.Z[0]
	}
	i, w := refWeight(t.X, v, t.Extend)
	return (1-w)*t.Z[i] + w*t.Z[i+1]
}

func refTable2(t model.Table, row, column float64) float64 {
	i, w := refWeight(t.X, row, t.Extend)
	j, q := refWeight(t.Y, column, t.Extend)
	at := func(r, c int) float64 { return t.Z[r*len(t.Y)+c] }
	return (1-w)*((1-q)*at(i, j)+q*at(i, j+1)) + w*((1-q)*at(i+1, j)+q*at(i+1, j+1))
}
