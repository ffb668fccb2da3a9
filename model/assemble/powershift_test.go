package assemble_test

import (
	"fmt"
	"os"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/model"
	"lockstep/model/modeltest"
)

func powershift(t *testing.T) *model.System {
	t.Helper()
	data, err := os.ReadFile("../plants/powershift.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return modeltest.System(t, string(data))
}

// The paper's numbers: radii R (m), and inertias, drag, torques and tangential forces
// K (N) chosen for its figures.
var (
	paperR = [8][4]float64{
		{1, 3, 0, 0}, {1, 2, 0, 0},
		{0, 1, 4, 0}, {0, 1, 3, 0}, {0, 1, 2, 0},
		{0, 0, 1, 4}, {0, 0, 1, 2}, {0, 0, 1, 1},
	}
	paperRc = [8]float64{3, 2, 4, 3, 2, 4, 2, 1} // radius of the wheel beside clutch i
	paperJ  = [4]float64{1, 0.3, 0.5, 2500}
	paperB  = [4]float64{-0.02, -0.01, -0.01, -0.5}
	paperK  = [8][][2]float64{
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

// J·w' = b·w + tau + Rᵀ·mu in the paper; slip here is R·w/r_c, torque -mu·r_c.
func TestPowershiftHasTheMatricesOfThePaper(t *testing.T) {
	sys := powershift(t)
	if got := names(sys.States); got != "shaft1.w[rad/s] shaft2.w[rad/s] shaft3.w[rad/s] shaft4.w[rad/s]" {
		t.Errorf("states are %s", got)
	}
	if got := names(sys.Outputs); got != "w1[rad/s] w2[rad/s] w3[rad/s] w4[rad/s] tau_engine[N.m] tau_load[N.m] tau_output[N.m]" {
		t.Errorf("outputs are %s", got)
	}
	A, E := make([]float64, 16), make([]float64, 16)
	W, Bc := make([]float64, 32), make([]float64, 32)
	for i := range 4 {
		A[5*i], E[5*i] = paperB[i]/paperJ[i], paperJ[i]
		for c := range 8 {
			W[4*c+i] = paperR[c][i] / paperRc[c]
			Bc[8*i+c] = -paperR[c][i] / paperRc[c] / paperJ[i]
		}
	}
	same(t, "A", sys.A, A)
	same(t, "E", sys.E, E)
	same(t, "W", sys.W, W)
	same(t, "Bc", sys.Bc, Bc)
	same(t, "X0", sys.X0, []float64{100, -100. / 3, 100. / 12, -100. / 48})
}

func TestPowershiftHasTheSourcesOfThePaper(t *testing.T) {
	sys := powershift(t)
	for c, f := range sys.Frictions {
		if want := fmt.Sprintf("clutch%d", c+1); f.Name != want || sys.Inputs[c].Name != want+".pressure" || f.Signal != c {
			t.Errorf("friction %d is %s, driven by signal %d", c, f.Name, f.Signal)
		}
		if in := sys.Inputs[c]; in.Unit != "Pa" || in.Min != 0 || in.Max != 4e6 || in.Signal != c {
			t.Errorf("input %d is %+v", c, in)
		}
		s := sys.Signals[f.Signal].Source
		if len(s.T) != len(paperK[c]) {
			t.Fatalf("%s: table of %d rows, want %d", f.Name, len(s.T), len(paperK[c]))
		}
		for i, row := range paperK[c] {
			if K := f.Gain * s.V[i] / paperRc[c]; s.T[i] != row[0] || !scalar.EqualWithinAbsOrRel(K, row[1], 0, 1e-14) {
				t.Errorf("%s row %d: %g N at %g s, want %v", f.Name, i, K, s.T[i], row)
			}
		}
		if f.Offset != 0 || f.Peak != 1 {
			t.Errorf("%s: offset %g, peak %g; static and sliding friction are equal", f.Name, f.Offset, f.Peak)
		}
	}
	x := make([]float64, 4) // v with the clutches open: x' = M⁻¹·(250, 0, 0, 1500)
	for i := range x {
		for j, s := range sys.Signals[8:] {
			x[i] += sys.B[i*len(sys.Signals)+8+j] * s.Source.V[0]
		}
	}
	same(t, "B·v", x, []float64{250, 0, 0, 1500. / 2500})
}

// tau_output is the torque of clutches 6 to 8 on shaft4: J4·w4' without load and drag.
func TestPowershiftOutputTorqueDrivesShaft4(t *testing.T) {
	sys := powershift(t)
	for c := range 8 {
		if got, want := sys.Dc[6*8+c], sys.Bc[3*8+c]*paperJ[3]; !scalar.EqualWithinAbs(got, want, 1e-12) {
			t.Errorf("clutch%d counts %g in tau_output, want %g", c+1, got, want)
		}
	}
}
