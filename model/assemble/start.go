package assemble

import (
	"math"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// startState returns the initial state. It checks that the given speeds of dependent nodes agree
// with the gears.
func (a *assembly) startState() []float64 {
	u := make([]float64, len(a.nodes))
	for j, n := range a.nodes {
		u[j] = a.Nodes[n].Start
		if a.Nodes[n].Driven > 0 {
			u[j] = a.driveStart(&a.states[a.driveState(j)])
		}
	}

	x := slices.Clone(u[:a.freeCount])
	places, placed := make([]float64, len(a.Nodes)), make([]bool, len(a.Nodes))
	for i, n := range a.Nodes {
		places[i], placed[i] = a.placeOf(i)
		w, size, known := 0.0, math.Abs(n.Start), true
		for j, c := range a.rows[i] {
			w += c * u[j]
			size = max(size, math.Abs(c*u[j]))
			known = known && (c == 0 || j < a.freeCount || j >= a.freeCount+a.masslessCount)
		}

		if n.Given && known && !(math.Abs(w-n.Start) <= 1e-9*size) {
			refuse(a.Plant, n.Name, n.At, "%s %.9g %s contradicts the gears, which make it %.9g %s",
				n.Domain.Per("w_start", "v_start"), n.Start, n.SpeedUnit(), w, n.SpeedUnit())
		}
	}

	for _, s := range a.states {
		a.refuseMixed(&s)
		v, any := s.Start, false
		for _, t := range s.Along {
			v += t.Coef * places[t.Node]
			any = any || placed[t.Node]
		}

		if s.Along != nil && !any && !s.Stays {
			v = 0
		}
		if s.Speed != nil {
			v = a.driveStart(&s)
		}
		x = append(x, v)
	}

	return x
}

// refuseMixed refuses a distance between a node with a position in the plane and a node of a body
// without one. The second node would be taken to lie at the centre of its body.
func (a *assembly) refuseMixed(s *network.State) {
	var place, loose *network.Node
	for _, t := range s.Along {
		n := &a.Nodes[t.Node]
		if n.InPlane {
			place = n
		}
		if n.Displaced {
			loose = n
		}
	}

	if place != nil && loose != nil {
		refuse(a.Plant, s.Name[:strings.LastIndexByte(s.Name, '.')], s.At, "where %q is in the plane is not known, "+
			"but %q is at %s; give x_start and y_start to both bodies or to none",
			loose.Name, place.Name, units.Format(units.DropRounding(place.Phi0), "m"))
	}
}

// driveStart returns the initial speed of a prescribed node. A filtered source starts at the start
// speed of its flange, if the file gives one.
func (a *assembly) driveStart(s *network.State) float64 {
	v, given := 0.0, false
	for _, t := range s.Speed {
		v += t.Coef * a.Nodes[t.Node].Start
		given = given || a.Nodes[t.Node].Given
	}

	if given {
		return v
	}
	return s.Start
}

// placeOf returns the angle (position) at which node i starts, as given or through the gears.
// placed reports whether it follows from given values. A body is placed only by its own start
// values: two places in a joint give their distance, not the rotation of a body.
func (a *assembly) placeOf(i int) (at float64, placed bool) {
	n := &a.Nodes[i]
	if n.Placed || n.OfBody {
		return n.Phi0, n.Placed
	}
	at = n.Phi0
	for j, c := range a.rows[i] {
		if from := &a.Nodes[a.nodes[j]]; a.nodes[j] != i && c != 0 {
			at += c * from.Phi0
			placed = placed || from.Placed
		}
	}

	if placed {
		at += a.offsets[i]
	}
	return at, placed
}

// scaleSlopes enlarges slopes to their size at the start of the plant, in state x with the signals
// v.
func scaleSlopes(p *model.Program, open []network.Unsized, x, v []float64) {
	for _, u := range open {
		if more := math.Abs(functionalAt(&p.Args[u.By], x, v)) / u.Assumed; more > 1 && !math.IsInf(more, 0) {
			p.Slopes[u.Arg] *= more
		}
	}
}

// startSignals returns the signals at the start of the plant, by their index: sources at their
// largest value, without friction.
func startSignals(sys *model.System) []float64 {
	v := make([]float64, len(sys.Signals))
	for j := range v {
		switch s := &sys.Signals[j]; {
		case s.Law != nil:
			v[j] = programAt(sys, s.Law, v, nil)
		case s.Affine != nil:
			z, r := sys.Switches[s.Affine.Switch].At(sys.X0)
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

// sideAt returns the side of event indicator g at the start; 1 where it depends on itself. within are
// the indicators that depend on it.
func sideAt(sys *model.System, g int, v []float64, within []int) float64 {
	if slices.Contains(within, g) {
		return 1
	}
	p := &sys.Guards[g]
	value := programAt(sys, p, v, append(within, g))
	if len(p.Borders) == 0 {
		if value < 0 {
			return -1
		}
		return 1
	}
	side := 0.0
	for _, b := range p.Borders {
		if value >= b {
			side++
		}
	}
	return side
}

// programAt estimates the value of a program at the start with the signals v: without friction, and
// with tables of two variables at their largest value.
func programAt(sys *model.System, p *model.Program, v []float64, within []int) float64 {
	var s []float64
	for _, op := range p.Ops {
		top := len(s) - 1
		switch op.Code {
		case model.Push:
			s = append(s, op.Value)
		case model.Arg:
			s = append(s, functionalAt(&p.Args[op.Index], sys.X0, v))
		case model.Side:
			s = append(s, sideAt(sys, op.Index, v, within))
		case model.If:
			if sideAt(sys, op.Index, v, within) < 0 {
				s[top-1] = s[top]
			}
			s = s[:top]
		case model.Look:
			s[top] = p.Tables[op.Index].At(s[top])
		case model.Line:
			t, i := &p.Tables[op.Index], int(s[top])
			s = s[:top]
			s[top-1] = t.Z[i] + (s[top-1]-t.X[i])/(t.X[i+1]-t.X[i])*(t.Z[i+1]-t.Z[i])
		case model.Look2:
			s = append(s[:top-1], network.Largest(p.Tables[op.Index].Z))
		case model.Patch:
			s = append(s[:top-3], network.Largest(p.Tables[op.Index].Z))
		default:
			if f, ok := ofTwo[op.Code]; ok {
				s = append(s[:top-1], f(s[top-1], s[top]))
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

// functionalAt returns the value of a functional in state x with the signals v.
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
