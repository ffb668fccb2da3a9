package model

import "math"

// unsized is an argument of a law whose slope grows with the size of another one, by, that
// is not known, the force of a spring, say: so much was assumed.
type unsized struct {
	arg, by int
	assumed float64
}

// depends notes that the slope of argument arg grows with the size of a signal, which the
// law reads as its argument by.
func (p *Plant) depends(l *law, arg, by, signal int) {
	if low, high := p.span(signal); math.IsInf(low, 0) || math.IsInf(high, 0) {
		l.open = append(l.open, unsized{arg, by, p.largest(signal)})
	}
}

// depend notes that of a term whose last n arguments are its signals each slope grows with
// the size of the others.
func depend(p *Plant, l *law, term []factor, n int) {
	first, k := len(l.args)-n, 0
	for _, f := range term {
		if f.signal < 0 {
			continue
		}
		for i := range n {
			if i != k {
				p.depends(l, first+i, first+k, f.signal)
			}
		}
		k++
	}
}

// resize makes slopes as large as they are where the plant starts, in state x with the
// signals v.
func resize(p *Program, open []unsized, x, v []float64) {
	for _, u := range open {
		if more := math.Abs(functionalAt(&p.Args[u.by], x, v)) / u.assumed; more > 1 && !math.IsInf(more, 0) {
			p.Slopes[u.arg] *= more
		}
	}
}

// startSignals are the signals where the plant starts, by their place: sources at their largest,
// friction at none.
func startSignals(sys *System) []float64 {
	v := make([]float64, len(sys.Signals))
	for j := range v {
		switch s := &sys.Signals[j]; {
		case s.Law != nil:
			v[j] = programAt(s.Law, sys.X0, v)
		case s.Affine != nil:
			sw := &sys.Switches[s.Affine.Switch]
			z, r := sw.Const, 0
			for i, c := range sw.Row {
				z += c * sys.X0[i]
			}
			for r < len(sw.Borders) && z > sw.Borders[r] {
				r++
			}
			v[j] = s.Affine.Slope[r]*z + s.Affine.Offset[r]
		default:
			if low, high := sourceRange(s.Source); high >= low {
				v[j] = high
				if -low > high {
					v[j] = low
				}
			}
		}
	}
	return v
}

// programAt is about the value of a program in state x with the signals v: without friction, with
// all guards positive, and tables of two variables at their largest.
func programAt(p *Program, x, v []float64) float64 {
	var s [MaxStack]float64
	top := -1
	for _, op := range p.Ops {
		switch op.Code {
		case Push, Arg, Side:
			top++
			s[top] = op.Value
			if op.Code == Arg {
				s[top] = functionalAt(&p.Args[op.Index], x, v)
			} else if op.Code == Side {
				s[top] = 1
			}
		case If:
			top--
		case Look:
			s[top] = p.Tables[op.Index].at(s[top])
		case Look2:
			top--
			s[top] = largest(p.Tables[op.Index].Z)
		default:
			if f, ok := ofTwo[op.Code]; ok {
				top--
				s[top] = f(s[top], s[top+1])
			} else {
				s[top] = ofOneValue[op.Code](s[top])
			}
		}
	}
	return s[0]
}

// ofTwo and ofOneValue are the operations on the top of the stack.
var (
	ofTwo = map[Code]func(a, b float64) float64{
		Add: func(a, b float64) float64 { return a + b },
		Sub: func(a, b float64) float64 { return a - b },
		Mul: func(a, b float64) float64 { return a * b },
		Div: func(a, b float64) float64 {
			if b == 0 {
				return 0
			}
			return a / b
		},
		Min: math.Min, Max: math.Max,
	}
	ofOneValue = map[Code]func(b float64) float64{
		Neg: func(b float64) float64 { return -b },
		Sign: func(b float64) float64 {
			if b == 0 {
				return 0
			}
			return math.Copysign(1, b)
		},
		Sqrt: func(b float64) float64 { return math.Sqrt(max(0, b)) },
		Abs:  math.Abs, Exp: math.Exp, Atan: math.Atan, Sin: math.Sin, Cos: math.Cos,
	}
)

func functionalAt(f *Functional, x, v []float64) float64 {
	sum := f.Const
	for i, c := range f.Row {
		sum += c * x[i]
	}
	for i, j := range f.Signal {
		sum += f.Coef[i] * v[j]
	}
	return sum
}
