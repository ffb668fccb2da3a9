package kernel

import (
	"math"
	"strconv"
	"testing"
	"time"

	"lockstep/hil_test/truth"
	"lockstep/model"
	"lockstep/model/units"
)

// The Powershift gearbox of Morselli, section 5, assembled by hand from the
// parameters of the reference file: R, J, b, sources and capacities.
var (
	psJ = []float64{1, 0.3, 0.5, 2500}     // kg·m²
	psB = []float64{0.02, 0.01, 0.01, 0.5} // N·m·s/rad, drag to ground
	psR = [8][4]float64{                   // radii, m
		{1, 3, 0, 0}, {1, 2, 0, 0},
		{0, 1, 4, 0}, {0, 1, 3, 0}, {0, 1, 2, 0},
		{0, 0, 1, 4}, {0, 0, 1, 2}, {0, 0, 1, 1},
	}
	psK = [8][][2]float64{ // tangential force over time, s and N
		{{0, 900}, {0.5, 900}, {0.56, 0}, {1.7, 0}, {1.9, 450}, {2.0, 900}, {2.5, 900}, {2.56, 0}, {3.5, 0}},
		{{0, 0}, {0.5, 0}, {0.7, 620}, {0.8, 1200}, {1.7, 1200}, {1.76, 0}, {2.5, 0}, {2.72, 650}, {2.9, 1200}, {3.5, 1200}},
		{{0, 3500}, {1.7, 3500}, {1.76, 0}, {3.5, 0}},
		{{0, 0}, {2.5, 0}, {2.74, 1800}, {2.9, 3500}, {3.5, 3500}},
		{{0, 0}, {1.7, 0}, {1.9, 1700}, {2.0, 3500}, {2.5, 3500}, {2.56, 0}, {3.5, 0}},
		{{0, 9000}, {2.5, 9000}, {2.56, 0}, {3.5, 0}},
		{{0, 0}, {2.5, 0}, {2.76, 4500}, {2.95, 9000}, {3.5, 9000}},
		{{0, 0}, {1.1, 0}, {1.2, 60}, {3.5, 60}},
	}
)

// powershift is the plant with the state w1..w4, the signals K1..K8, tau_M and
// tau_L, and the outputs w1..w4. The K are tangential forces: the slip is the
// peripheral speed R·w, the friction "torque" the force.
func powershift() *model.System {
	const n, m, mc = 4, 10, 8
	inf := math.Inf(1)
	s := &model.System{
		Name: "powershift", X0: []float64{100, -100. / 3, 100. / 12, -100. / 48},
		A: make([]float64, n*n), B: make([]float64, n*m), Bc: make([]float64, n*mc),
		W: make([]float64, mc*n), E: make([]float64, n*n),
		C: identity(n), D: make([]float64, n*m), Dc: make([]float64, n*mc),
	}
	for i := range n {
		port := units.Port{Name: "w" + strconv.Itoa(i+1), Unit: "rad/s", Min: -inf, Max: inf}
		s.States = append(s.States, port)
		s.Outputs = append(s.Outputs, port)
		s.A[i*n+i] = -psB[i] / psJ[i]
		s.E[i*n+i] = psJ[i]
	}
	for c := range mc {
		name := "clutch" + strconv.Itoa(c+1)
		var src model.Source
		for _, row := range psK[c] {
			src.T, src.V = append(src.T, row[0]), append(src.V, row[1])
		}
		s.Signals = append(s.Signals, model.Signal{Name: name + ".K", Source: src})
		s.Inputs = append(s.Inputs, model.Input{Port: units.Port{Name: name + ".K", Unit: "N", Max: inf}, Signal: c})
		s.Frictions = append(s.Frictions, model.Friction{Name: name, Signal: c, Gain: 1, Peak: 1})
		for i := range n {
			s.W[c*n+i] = psR[c][i]
			s.Bc[i*mc+c] = -psR[c][i] / psJ[i]
		}
	}
	constant := func(v float64) model.Source { return model.Source{T: []float64{0}, V: []float64{v}} }
	s.Signals = append(s.Signals, model.Signal{Name: "tau_M", Source: constant(250)}, model.Signal{Name: "tau_L", Source: constant(1500)})
	s.B[0*m+8] = 1 / psJ[0]
	s.B[3*m+9] = 1 / psJ[3] // tau_L opposes w4 < 0
	return s
}

// withAngles returns sys with the angles of the given bodies as further states and outputs, so that
// the work of constant torques on them is exact.
func withAngles(sys *model.System, bodies ...int) *model.System {
	n, m, mc := len(sys.X0), len(sys.Signals), len(sys.Frictions)
	wide := n + len(bodies)
	s := *sys
	s.X0 = append(append([]float64(nil), sys.X0...), make([]float64, len(bodies))...)
	s.A, s.E = make([]float64, wide*wide), make([]float64, wide*wide)
	s.B, s.Bc, s.W = make([]float64, wide*m), make([]float64, wide*mc), make([]float64, mc*wide)
	s.C, s.D, s.Dc = identity(wide), make([]float64, wide*m), make([]float64, wide*mc)
	copy(s.B, sys.B)
	copy(s.Bc, sys.Bc)
	for i := range n {
		copy(s.A[i*wide:], sys.A[i*n:(i+1)*n])
		copy(s.E[i*wide:], sys.E[i*n:(i+1)*n])
	}
	for i := range mc {
		copy(s.W[i*wide:], sys.W[i*n:(i+1)*n])
	}
	s.States = append([]units.Port(nil), sys.States...)
	for k, body := range bodies {
		s.A[(n+k)*wide+body] = 1
		s.States = append(s.States, units.Port{Name: "theta" + strconv.Itoa(body+1), Unit: "rad", Min: math.Inf(-1), Max: math.Inf(1)})
	}
	s.Outputs = s.States
	return &s
}

// frictionless removes the viscous drag from a powershift.
func frictionless(s *model.System) *model.System {
	for i := range psB {
		s.A[i*len(s.X0)+i] = 0
	}
	return s
}

// energy returns the energy stored in state x, J.
func energy(s *model.System, x []float64) float64 {
	e := 0.0
	for i := range x {
		e += x[i] * dotRow(s.E, i, x) / 2
	}
	return e
}

// powershiftTruth reads the reference solution of the powershift: time, s, and four speeds, rad/s.
func powershiftTruth(t *testing.T) truth.Table {
	t.Helper()
	table := truth.Read(t, "testdata/H_powershift.csv")
	if len(table.Rows) != 3501 || len(table.Names) != 5 {
		t.Fatalf("truth file has %d rows of %d columns, want 3501 of 5", len(table.Rows), len(table.Names))
	}
	return table
}

// bothSchemes and bothForms are the cases of most tests.
var (
	bothSchemes = []Scheme{Papers, Complete}
	bothForms   = []Form{Projected, Held}
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func prepare(t testing.TB, sys *model.System, opt Options) *Kernel {
	t.Helper()
	tables, err := Prepare(sys, opt)
	if err != nil {
		t.Fatal(err)
	}
	return New(tables)
}
