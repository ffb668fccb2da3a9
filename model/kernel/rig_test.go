package kernel

import (
	"math"
	"strconv"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/units"
)

// rig is a small plant assembled by hand. Every signal is an input, the capacities first; every
// state is an output.
type rig struct {
	J         []float64 // inertia of each body, kg·m²
	Drag      []float64 // viscous, to ground, N·m·s/rad; nil: none
	Springs   []spring
	Frictions []contact
	Torques   []torque
	X0        []float64 // speeds, then deflections of the springs; nil: at rest
}

// spring acts between bodies A and B, -1 is ground: its deflection grows with
// w_b - w_a.
type spring struct {
	A, B int
	C, D float64 // N·m/rad, N·m·s/rad
}

// contact is a friction element whose slip is W·w.
type contact struct {
	W            []float64 // per body
	K            model.Source
	Gain         float64 // 0 is 1
	Offset, Peak float64 // Peak 0 is 1
}

type torque struct {
	Body int
	Tau  model.Source // N·m
}

// always is a constant source; table is a source with rows of time and value.
func always(v float64) model.Source { return model.Source{T: []float64{0}, V: []float64{v}} }

func table(rows ...float64) (s model.Source) {
	for i := 0; i < len(rows); i += 2 {
		s.T, s.V = append(s.T, rows[i]), append(s.V, rows[i+1])
	}
	return s
}

func (r rig) system() *model.System {
	nb, mc := len(r.J), len(r.Frictions)
	n, m := nb+len(r.Springs), mc+len(r.Torques)
	inf := math.Inf(1)
	s := &model.System{
		Name: "rig", X0: make([]float64, n), A: make([]float64, n*n), B: make([]float64, n*m), Bc: make([]float64, n*mc),
		W: make([]float64, mc*n), E: make([]float64, n*n), C: identity(n), D: make([]float64, n*m), Dc: make([]float64, n*mc),
	}
	copy(s.X0, r.X0)
	for i := range n {
		port := units.Port{Name: "x" + strconv.Itoa(i), Unit: "rad/s", Min: -inf, Max: inf}
		if i >= nb {
			port.Unit = "rad"
		}
		s.States, s.Outputs = append(s.States, port), append(s.Outputs, port)
	}
	for i, j := range r.J {
		s.E[i*n+i] = j
		if r.Drag != nil {
			s.A[i*n+i] -= r.Drag[i] / j
		}
	}
	r.addSprings(s)
	signal := func(name, unit string, src model.Source) {
		s.Inputs = append(s.Inputs, model.Input{Port: units.Port{Name: name, Unit: unit, Min: -inf, Max: inf}, Signal: len(s.Signals)})
		s.Signals = append(s.Signals, model.Signal{Name: name, Source: src})
	}
	for c, f := range r.Frictions {
		name := "f" + strconv.Itoa(c)
		signal(name+".K", "N.m", f.K)
		law := model.Friction{Name: name, Signal: c, Gain: f.Gain, Offset: f.Offset, Peak: max(f.Peak, 1)}
		if law.Gain == 0 {
			law.Gain = 1
		}
		s.Frictions = append(s.Frictions, law)
		for i, w := range f.W {
			s.W[c*n+i] = w
			s.Bc[i*mc+c] = -w / r.J[i]
		}
	}
	for k, q := range r.Torques {
		signal("tau"+strconv.Itoa(k), "N.m", q.Tau)
		s.B[q.Body*m+mc+k] = 1 / r.J[q.Body]
	}
	return s
}

// addSprings adds the deflections of the springs and the torques they give.
func (r rig) addSprings(s *model.System) {
	n, nb := len(s.X0), len(r.J)
	for k, sp := range r.Springs {
		at := nb + k
		s.E[at*n+at] = sp.C
		for body, sign := range map[int]float64{sp.A: -1, sp.B: 1} {
			if body < 0 {
				continue
			}
			s.A[at*n+body] = sign
			s.A[body*n+at] = -sign * sp.C / r.J[body]
			for other, sign2 := range map[int]float64{sp.A: -1, sp.B: 1} {
				if other >= 0 {
					s.A[body*n+other] -= sign * sign2 * sp.D / r.J[body]
				}
			}
		}
	}
}

// run is a kernel with its inputs and outputs.
type run struct {
	*Kernel
	y, u []float64
}

func start(t testing.TB, sys *model.System, opt Options) *run {
	t.Helper()
	k := prepare(t, sys, opt)
	m, p := k.Dims()
	r := &run{Kernel: k, y: make([]float64, p), u: make([]float64, m)}
	copy(r.u, k.t.Start)
	k.Output(r.y)
	return r
}

func (r *run) step() { r.Step(r.y, r.u) }

// tail is the offset of the outputs of the step itself.
func (r *run) tail() int            { return len(r.y) - 5 }
func (r *run) lagOut() float64      { return r.y[r.tail()+1] }
func (r *run) transOut() float64    { return r.y[r.tail()+3] }
func (r *run) faultOut() float64    { return r.y[r.tail()+4] }
func (r *run) modeOf(i int) int8    { return int8(r.y[r.tail()-3*r.t.Mc+3*i]) }
func (r *run) slipOf(i int) float64 { return r.y[r.tail()-3*r.t.Mc+3*i+1] }
func (r *run) tauOf(i int) float64  { return r.y[r.tail()-3*r.t.Mc+3*i+2] }

// period is a duration of s seconds.
func period(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }
