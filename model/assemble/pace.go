package assemble

import (
	"fmt"
	"math"

	"lockstep/model"
	"lockstep/model/network"
)

// paces are how fast elements would be alone. What an element exerts follows the state
// by a row r, and its torque drives the state by g: a damper is as fast as |r|·|g|, a
// spring, whose twist A makes of speeds, as the root of |r|·|A|·|g|.
func (a *assembly) paces(sys *model.System) {
	for i, e := range a.Efforts {
		g := make([]float64, a.n)
		for j := range a.free {
			for k := range a.free {
				g[j] += a.inverted.At(j, k) * a.along[i][k]
			}
		}
		a.pace(sys, e.Element, e.At, a.values[i], g)
	}
	for i, s := range a.States {
		g := make([]float64, a.n)
		g[a.free+i] = 1
		a.pace(sys, s.Name, s.At, a.rates[a.free+i], g)
	}
}

func (a *assembly) pace(sys *model.System, name string, at network.Pos, value, g []float64) {
	r := make([]float64, a.n)
	addSize(r, 1, value[:a.n])
	for i := range a.m {
		c := math.Abs(value[a.ofSignals()+i])
		switch s := &sys.Signals[a.place[i]]; {
		case s.Affine != nil:
			addSize(r, c*largest(s.Affine.Slope), sys.Switches[s.Affine.Switch].Row)
		case s.Law != nil:
			for k, f := range s.Law.Args {
				addSize(r, c*s.Law.Slopes[k], f.Row)
			}
		}
	}
	damper, spring := 0.0, 0.0
	for i := range a.n {
		damper += r[i] * math.Abs(g[i])
		for j := range a.n {
			spring += r[i] * math.Abs(sys.A[i*a.n+j]*g[j])
		}
	}
	sys.Paces = append(sys.Paces, model.Pace{Name: name, Place: fmt.Sprintf("%s:%d:%d", a.File, at.Line, at.Col), Rate: max(damper, math.Sqrt(spring))})
}

// addSize is dst += c·|v|.
func addSize(dst []float64, c float64, v []float64) {
	for i, x := range v {
		dst[i] += c * math.Abs(x)
	}
}
