package assemble

import (
	"math"

	"lockstep/model"
	"lockstep/model/network"
)

// resize makes slopes as large as they are where the plant starts, in state x with the
// signals v.
func resize(p *model.Program, open []network.Unsized, x, v []float64) {
	for _, u := range open {
		if more := math.Abs(functionalAt(&p.Args[u.By], x, v)) / u.Assumed; more > 1 && !math.IsInf(more, 0) {
			p.Slopes[u.Arg] *= more
		}
	}
}

// startSignals are the signals where the plant starts, by their place: sources at their largest,
// friction at none.
func startSignals(sys *model.System) []float64 {
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
			if low, high := network.SourceRange(s.Source); high >= low {
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
func programAt(p *model.Program, x, v []float64) float64 {
	var s [model.MaxStack]float64
	top := -1
	for _, op := range p.Ops {
		switch op.Code {
		case model.Push, model.Arg, model.Side:
			top++
			s[top] = op.Value
			if op.Code == model.Arg {
				s[top] = functionalAt(&p.Args[op.Index], x, v)
			} else if op.Code == model.Side {
				s[top] = 1
			}
		case model.If:
			top--
		case model.Look:
			s[top] = p.Tables[op.Index].At(s[top])
		case model.Look2:
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
	ofTwo = map[model.Code]func(a, b float64) float64{
		model.Add: func(a, b float64) float64 { return a + b },
		model.Sub: func(a, b float64) float64 { return a - b },
		model.Mul: func(a, b float64) float64 { return a * b },
		model.Div: func(a, b float64) float64 {
			if b == 0 {
				return 0
			}
			return a / b
		},
		model.Min: math.Min, model.Max: math.Max,
	}
	ofOneValue = map[model.Code]func(b float64) float64{
		model.Neg: func(b float64) float64 { return -b },
		model.Sign: func(b float64) float64 {
			if b == 0 {
				return 0
			}
			return math.Copysign(1, b)
		},
		model.Sqrt: func(b float64) float64 { return math.Sqrt(max(0, b)) },
		model.Abs:  math.Abs, model.Exp: math.Exp, model.Atan: math.Atan, model.Sin: math.Sin, model.Cos: math.Cos,
	}
)

func functionalAt(f *model.Functional, x, v []float64) float64 {
	sum := f.Const
	for i, c := range f.Row {
		sum += c * x[i]
	}
	for i, j := range f.Signal {
		sum += f.Coef[i] * v[j]
	}
	return sum
}
